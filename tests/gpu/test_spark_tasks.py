"""Tasks of Spark on a card: the same matches as on the CPU, in bounded memory, and clear errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark
import pytest

import tamis
from tamis import CapabilityError, OptionError
from tamis.spark import task_card
from tamis.spark.given import checked_device
from tamis.spark.index_folder import IndexFolder
from tamis.spark.java import ensure_java
from tamis.spark.manifest import Manifest, SegmentFiles, without_rows
from tamis.spark.match_task import CountTask, MatchTask
from tamis.spark.segment_files import write_removed
from tests.markdown import ROOT
from tests.spark.test_match_task import COUNT, PAIR, folder, handed_over, written

__all__ = ["folder"]


class Given:
    """What Spark gives to a task: cards with these addresses."""

    def __init__(self, *addresses: str, name: str = "gpu") -> None:
        self._found = {name: self}
        self.addresses = list(addresses)

    def resources(self) -> dict[str, Any]:
        return self._found


@pytest.fixture(autouse=True)
def _no_cards() -> None:
    task_card.matching_on.cache_clear()


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, Given("0"))


def give(monkeypatch: pytest.MonkeyPatch, context: Given | None) -> None:
    from pyspark import TaskContext

    monkeypatch.setattr(TaskContext, "get", lambda: context)


def sorted_rows(task: MatchTask, events: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*handed_over(task, events, 7).to_pydict().values(), strict=True))


def both(task: MatchTask, events: pa.Table) -> list[tuple[Any, ...]]:
    """What a task finds on both devices."""
    found = sorted_rows(task, events)
    assert sorted_rows(replace(task, gpu_share=0.5, tally={}), events) == found
    return found


@pytest.fixture
def segment(folder: IndexFolder) -> SegmentFiles:
    texts = [f"price > {n / 10} AND (item = {n % 4} OR price < 2)" for n in range(60)]
    return written(folder, {"id": range(60), "expression": texts, "weight": [n % 7 for n in range(60)]})


@pytest.mark.compiled
@pytest.mark.usefixtures("given")
def test_tasks_find_the_same_on_a_card(folder: IndexFolder, segment: SegmentFiles) -> None:
    prices = {"id": [1, 2, 3, 4], "price": pa.array([0.5, None, 1.5, 4.5])}
    task = MatchTask(folder, ((segment,),), "id", ("price", "item"), names=PAIR)
    best = replace(task, k=3, names=(*PAIR, "rank"))
    count = CountTask(folder, ((segment,),), "id", ("price", "item"), names=COUNT)
    assert both(task, pa.table({**prices, "item": [0, 1, 2, 2]}))
    assert both(best, pa.table({**prices, "item": [[0, 1], [1], None, [3, 2]]}))
    assert both(count, pa.table({**prices, "item": [0, 1, 2, 2**53 + 1]}))
    texts = ['{"price": 4, "item": 3}', None, '{"price": 0.5}', '{"price": 1, "item": [1, 2]}']
    lines = pa.table({"id": range(4), "body": texts})
    assert both(replace(task, attributes=("body",), json=True), lines)
    other = written(folder, {"id": [900], "expression": ["price < 9"]})
    removed = without_rows(segment, *write_removed(folder, np.array([1, 30])), 2)
    assert (4, 900) in both(replace(task, groups=((removed, other),)), pa.table({**prices, "item": [0, 1, 2, 2]}))


@pytest.mark.compiled
@pytest.mark.usefixtures("given")
@pytest.mark.parametrize("kind", ["rows of their own", "a shared row", "several values"])
def test_fewer_events_at_a_time_if_they_match_too_much(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from tamis.gpu.buffers import BufferLimits
    from tamis.gpu.card import SegmentsOnCard, card_of
    from tamis.gpu.matching import CardMatching

    most, sizes, found_in = 100, list[int](), MatchTask.found_in
    own = kind == "rows of their own"
    expressions = [f"price > {n if own else 3} AND item > 0" for n in range(most)]
    segment = written(folder, {"id": range(most), "expression": expressions})
    limits = BufferLimits(rows=most, most=most)
    monkeypatch.setattr(
        task_card, "matching_on", lambda number, _: CardMatching(SegmentsOnCard(card_of(number)), limits)
    )

    def watched(task: MatchTask, opened: Any, events: pa.Table, limit: int | None) -> Any:
        sizes.append(len(events))
        return found_in(task, opened, events, limit)

    monkeypatch.setattr(MatchTask, "found_in", watched)
    prices = [0.0, 5000.0, 5000.0, 0.0, 0.0]
    items: list[Any] = [[1, 2]] * 5 if kind == "several values" else [1] * 5
    events = pa.table({"id": range(5), "price": prices, "item": items})
    task = MatchTask(folder, ((segment,),), "id", ("price", "item"), names=PAIR, gpu_share=1.0)
    assert sorted_rows(task, events) == [(event, row) for event in (1, 2) for row in range(most)]
    assert sizes[:2] == [5, 2]


@pytest.mark.compiled
def test_tasks_without_a_card(folder: IndexFolder, segment: SegmentFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    events = pa.table({"id": [1], "price": [1.0], "item": [1]})
    task = MatchTask(folder, ((segment,),), "id", ("price", "item"), names=PAIR, gpu_share=1.0)
    for context in (None, Given("0", name="fpga"), Given()):
        give(monkeypatch, context)
        with pytest.raises(OptionError, match="Spark gave this task no GPU, as in local mode"):
            sorted_rows(task, events)
    give(monkeypatch, Given("GPU-5a3e"))
    with pytest.raises(OptionError, match="the address of this task's GPU is 'GPU-5a3e', and must be the number"):
        sorted_rows(task, events)
    give(monkeypatch, Given("7"))
    with pytest.raises(OptionError, match="no device 'gpu:7'"):
        sorted_rows(task, events)
    give(monkeypatch, Given("0"))
    tamis.gpu.card.card_of.cache_clear()
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    with pytest.raises(CapabilityError, match=r"Hint: pip install 'tamis\[gpu\]'"):
        sorted_rows(task, events)


def session(amount: str | None) -> Any:
    """What a session says of its tasks."""
    return SimpleNamespace(conf={} if amount is None else {"spark.task.resource.gpu.amount": amount})


def test_the_share_of_a_card() -> None:
    shares = [task_card.gpu_share(session(amount), "gpu") for amount in ("0.25", "1", "2")]
    assert shares == [0.25, 1.0, 1.0]
    assert task_card.gpu_share(session("1"), None) is None
    with pytest.raises(OptionError, match=r"no GPU: spark\.task\.resource\.gpu\.amount is not set"):
        task_card.gpu_share(session(None), "gpu")


def test_words_for_devices() -> None:
    assert [checked_device(word) for word in (None, "cpu", "gpu")] == [None, None, "gpu"]
    for wrong in ("gpu:1", "GPU", 0, True, ["gpu"]):
        with pytest.raises(
            OptionError, match=r"`device` must be 'cpu' or 'gpu', not .* Hint: Spark gives each task its"
        ):
            checked_device(wrong)


PROGRAM = """
import functools, json, os, sys
from pathlib import Path
from pyspark.sql import SparkSession
import tamis.spark
from tamis.spark import matching
from tests import java_options

folder = Path(sys.argv[1])
settings = {
    "spark.worker.resource.gpu.amount": "1", "spark.worker.resource.gpu.discoveryScript": str(folder / "cards.sh"),
    "spark.executor.resource.gpu.amount": "1", "spark.task.resource.gpu.amount": "0.5",
    "spark.executorEnv.NUMBA_ENABLE_CUDASIM": "1", "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1",
    "spark.local.dir": str(folder / "local"), "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
    "spark.executor.extraJavaOptions": os.environ[java_options.DAEMON],
}
builder = SparkSession.builder.master("local-cluster[1,1,512]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()

def watched(task, batches):
    # Say afterwards how many cards the worker has used.
    from tamis.spark import task_card
    yield from task(batches)
    (folder / "used").write_text(str(task_card.matching_on.cache_info().currsize))

def watching(frame, task, schema):
    return map_in_arrow(frame, functools.partial(watched, task), schema)

map_in_arrow, matching.map_in_arrow = matching.map_in_arrow, watching
events = spark.range(0, 6, 1, 1).selectExpr("id", "id / 2.0D AS price", "id % 3 AS item")
print(json.dumps(sorted(map(list, tamis.spark.match(events, folder, device="gpu").collect()))))
"""


@pytest.mark.spark
@pytest.mark.own_spark
@pytest.mark.compiled
@pytest.mark.long
def test_a_cluster_whose_executors_have_a_card(folder: IndexFolder, segment: SegmentFiles, tmp_path: Path) -> None:
    folder.publish(Manifest(1, "2026-11-16T10:00:00+00:00", "bigint", "expression", "string", {}, ((segment,),)))
    script = tmp_path / "cards.sh"
    script.write_text('#!/bin/sh\necho \'{"name": "gpu", "addresses": ["0"]}\'\n')
    script.chmod(0o755)
    ensure_java()
    home = tmp_path / "spark"  # A cluster in one process writes into its home.
    home.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    own = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    task = MatchTask(folder, ((segment,),), "id", ("price", "item"), names=PAIR)
    events = pa.table({"id": range(6), "price": [n / 2 for n in range(6)], "item": [n % 3 for n in range(6)]})
    assert json.loads(done.stdout.splitlines()[-1]) == [list(pair) for pair in sorted_rows(task, events)]
    assert (tmp_path / "used").read_text() == "1"
