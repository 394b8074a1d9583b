"""Streams: every micro-batch is matched with one version of the index, and every pair is delivered once."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tamis
import tamis.spark
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import Manifest
from tamis.spark.matching import MatchOptions
from tamis.spark.store import open_store
from tamis.spark.streaming import BatchMatcher, BatchUpdater
from tests.spark.frames import Pairs, frame, pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parent.parent.parent
AVAILABLE = {"availableNow": True}
CHANGES = "change string, id string, expression string"

PROGRAM = """
import sys
from pathlib import Path
import tamis.spark
from tests.spark_session import start_spark
folder = Path(sys.argv[1])
spark = start_spark(folder / "spark")
reader = spark.readStream.schema("id long, a int").option("maxFilesPerTrigger", 1)
query = tamis.spark.match_stream(
    reader.json(str(folder / "events")), folder / "index", checkpoint=folder / "checkpoint", output=folder / "matches",
    trigger={"availableNow": True},
)
query.awaitTermination()
"""


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    """An index of ten subscriptions, s0: a = 0 and so on, and an empty folder of events."""
    rows = [{"id": f"s{number}", "expression": f"a = {number}"} for number in range(10)]
    tamis.spark.build(frame(spark, rows, "id string, expression string"), tmp_path / "index")
    (tmp_path / "events").mkdir()
    return tmp_path


def put(folder: Path, name: str, events: list[tuple[int, int]]) -> None:
    """Put a file of events where the stream reads, in one step."""
    part = folder / name
    part.write_text("".join(json.dumps({"id": identifier, "a": value}) + "\n" for identifier, value in events))
    part.rename(folder / "events" / f"{name}.json")


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("id long, a int").option("maxFilesPerTrigger", 1).json(str(folder / "events"))


def delivered(spark: SparkSession, folder: Path) -> Pairs:
    return pairs(spark.read.parquet(str(folder / "matches")).select("id", "subscription").collect())


def run(spark: SparkSession, folder: Path, **options: Any) -> None:
    query = tamis.spark.match_stream(
        stream(spark, folder),
        folder / "index",
        checkpoint=folder / "checkpoint",
        output=folder / "matches",
        trigger=AVAILABLE,
        **options,
    )
    query.awaitTermination()
    assert query.exception() is None


def change(spark: SparkSession, folder: Path, rows: list[tuple[str, str, str | None]]) -> None:
    tamis.spark.update(folder / "index", spark.createDataFrame(rows, CHANGES))


def test_a_running_query_uses_a_new_version(spark: SparkSession, folder: Path) -> None:
    told: queue.Queue[tamis.spark.BatchProgress] = queue.Queue()
    listener = tamis.spark.BatchListener(folder / "checkpoint", told.put)
    other = tamis.spark.BatchListener(folder / "another", told.put)
    spark.streams.addListener(listener)
    spark.streams.addListener(other)
    query = tamis.spark.match_stream(
        stream(spark, folder), folder / "index", checkpoint=folder / "checkpoint", output=folder / "matches"
    )
    try:
        put(folder, "first", [(1, 3), (2, 11)])
        query.processAllAvailable()
        assert delivered(spark, folder) == {(1, "s3")}
        change(spark, folder, [("added", "late", "a = 11"), ("removed", "s3", None)])
        put(folder, "second", [(3, 3), (4, 11)])
        query.processAllAvailable()
    finally:
        query.stop()
    assert delivered(spark, folder) == {(1, "s3"), (4, "late")}
    records = tamis.spark.batch_records(folder / "checkpoint")
    assert [record.version for record in records] == [1, 2]
    batches = spark.read.parquet(str(folder / "matches")).select("batch", "subscription").collect()
    assert {tuple(row) for row in batches} == {(records[0].batch, "s3"), (records[1].batch, "late")}
    progress = [told.get(timeout=300) for _ in records]
    spark.streams.removeListener(listener)
    spark.streams.removeListener(other)
    assert [(each.batch, each.version, each.rows) for each in progress] == [(0, 1, 2), (1, 2, 2)]
    assert [each.counters for each in progress] == [record.counters for record in records]
    assert 0 < progress[0].phases["addBatch"] <= progress[0].seconds
    assert str(progress[1]).startswith("batch 1 with version 2: 2 rows, 1 matches, ")


def test_queries_have_the_names_they_are_given_and_run_side_by_side(spark: SparkSession, folder: Path) -> None:
    names = ["one", "two", None, None]
    queries = []
    try:
        for number, name in enumerate(names):
            checkpoint, output = folder / f"checkpoint-{number}", folder / f"matches-{number}"
            options: dict[str, Any] = {"checkpoint": checkpoint, "output": output, "name": name}
            queries.append(tamis.spark.match_stream(stream(spark, folder), folder / "index", **options))
        assert [query.name for query in queries] == names
    finally:
        for query in queries:
            query.stop()


def test_columns_and_the_largest_weights(spark: SparkSession, folder: Path) -> None:
    change(spark, folder, [("added", "more", "a >= 0")])
    put(folder, "events-1", [(1, 3), (2, 99)])
    run(spark, folder, k=1, keep=["a"])
    rows = spark.read.parquet(str(folder / "matches")).collect()
    assert {(row.id, row.subscription, row.a) for row in rows} == {(1, "more", 3), (2, "more", 99)}


def test_a_repeated_batch_uses_its_first_version(spark: SparkSession, folder: Path) -> None:
    seen: list[tuple[int, list[Any]]] = []

    def deliver(matches: DataFrame, batch: int) -> None:
        seen.append((batch, sorted(map(tuple, matches.collect()))))
        if len(seen) == 1:
            change(spark, folder, [("removed", "s3", None)])
            raise RuntimeError("the sink is away")

    def start() -> Any:
        return tamis.spark.match_stream(
            stream(spark, folder),
            folder / "index",
            checkpoint=folder / "checkpoint",
            deliver=deliver,
            trigger=AVAILABLE,
        )

    put(folder, "only", [(1, 3), (2, 4)])
    with pytest.raises(Exception, match="the sink is away"):
        start().awaitTermination()
    start().awaitTermination()
    assert seen == [(0, [(1, "s3"), (2, "s4")])] * 2


def test_validity_is_checked_at_the_start_of_a_batch(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    bounds = [("over", "a > 0", "2026-01-01", "2026-02-01"), ("later", "a > 0", "2026-03-01", None)]
    rows = [
        (each[0], each[1], *(day and datetime.fromisoformat(f"{day}T00:00+00:00") for day in each[2:]))
        for each in bounds
    ]
    given = spark.createDataFrame(rows, "id string, expression string, valid_from timestamp, valid_until timestamp")
    tamis.spark.build(given, tmp_path / "valid")
    records = tmp_path / "checkpoint" / "tamis-batches"
    records.mkdir(parents=True)
    found: list[tuple[int, str]] = []
    matcher = BatchMatcher(
        IndexFolder(tmp_path / "valid"),
        open_store(records.parent),
        MatchOptions.of("id", None, (), (), None, None, None),
        lambda matches, batch: found.extend((batch, row.subscription) for row in matches.collect()),
    )
    events = spark.createDataFrame([(1, 5)], "id int, a int")
    for batch, day in enumerate(("2026-01-15", "2026-02-15", "2026-03-15")):
        moment = int(datetime.fromisoformat(f"{day}T00:00+00:00").timestamp() * 1_000_000)
        (records / f"{batch:012}.json").write_text(json.dumps({"batch": batch, "version": 1, "moment": moment}))
        matcher(events, batch)
    assert found == [(0, "over"), (2, "later")]
    matcher(events, 3)  # now
    assert found[2:] == [(3, "later")]


def test_a_delivered_batch_is_not_delivered_again(spark: SparkSession, folder: Path) -> None:
    put(folder, "one", [(1, 3)])
    put(folder, "two", [(2, 4)])
    run(spark, folder)
    # As if Spark had been killed after the last delivery, before it noted the delivery.
    commits = folder / "checkpoint" / "commits"
    (commits / "1").unlink()
    (commits / ".1.crc").unlink()
    written = (folder / "matches" / "batch=1").stat().st_mtime_ns
    # And as if another process had been killed while it wrote.
    (folder / "matches" / ".batch=1.killed").mkdir()
    # And as if the versions of the last batch and of the next batch had been collected as garbage.
    records = folder / "checkpoint" / "tamis-batches"
    for batch in (1, 2):
        (records / f"{batch:012}.json").write_text(json.dumps({"batch": batch, "version": 99, "moment": 0}))
    put(folder, "three", [(3, 5)])
    run(spark, folder)
    assert delivered(spark, folder) == {(1, "s3"), (2, "s4"), (3, "s5")}
    assert (folder / "matches" / "batch=1").stat().st_mtime_ns == written
    assert [record.version for record in tamis.spark.batch_records(folder / "checkpoint")] == [1, 99, 1]
    # If a function delivers the matches, it is not known what it delivered of such a batch.
    options = MatchOptions.of("id", None, (), (), None, None, None)
    matcher = BatchMatcher(
        IndexFolder(folder / "index"), open_store(records.parent), options, lambda matches, batch: None
    )
    with pytest.raises(tamis.IndexFolderError, match=r"(?s)batch 1 began with version 99 .* Hint: delete .*1\.json"):
        matcher(spark.range(0), 1)


def test_a_driver_that_is_killed_loses_nothing_and_repeats_nothing(spark: SparkSession, folder: Path) -> None:
    for number in range(8):
        put(folder, f"part-{number}", [(10 * number + value, value) for value in range(10)])
    started = [sys.executable, "-c", PROGRAM, str(folder)]
    # Kill Python and the JVM, which notes progress, at the same time.
    with subprocess.Popen(
        started, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as first:
        wait_for(lambda: (folder / "matches" / "batch=2").exists() or first.poll() is not None)
        os.killpg(first.pid, signal.SIGKILL)
        _, errors = first.communicate()
    assert first.returncode == -signal.SIGKILL, errors
    assert not (folder / "matches" / "batch=7").exists()
    change(spark, folder, [("removed", "s9", None)])
    run(spark, folder)
    records = tamis.spark.batch_records(folder / "checkpoint")
    assert [record.batch for record in records] == list(range(len(records)))
    versions = {record.batch: record.version for record in records}
    assert list(versions.values()) == sorted(versions.values())
    assert set(versions.values()) == {1, 2}
    # After it was killed, Spark may put two files into one batch.
    found = spark.read.parquet(str(folder / "matches")).collect()
    version_of = {row.id // 10: versions[row.batch] for row in found}
    everything = {(10 * part + value, f"s{value}") for part in range(8) for value in range(10)}
    later = {(10 * part + 9, "s9") for part in range(8) if version_of[part] == 2}
    assert delivered(spark, folder) == everything - later


def wait_for(happens: Callable[[], bool], seconds: float = 300) -> None:
    ends = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.01)


def test_a_new_query_does_not_take_the_batches_of_another_for_its_own(spark: SparkSession, folder: Path) -> None:
    put(folder, "one", [(1, 3)])
    run(spark, folder)
    shutil.rmtree(folder / "checkpoint")
    put(folder, "two", [(2, 4)])
    with pytest.raises(Exception, match="was written by a query with another checkpoint"):
        run(spark, folder)
    assert delivered(spark, folder) == {(1, "s3")}


def test_a_stream_of_changes(spark: SparkSession, folder: Path) -> None:
    source = folder / "changes"
    source.mkdir()
    rows = [("added", "new", "a = 50"), ("removed", "s1", None), ("added", "wrong", "a =")]
    spark.createDataFrame(rows, CHANGES).coalesce(1).write.mode("append").json(str(source))

    def carry_out() -> None:
        reader = spark.readStream.schema(CHANGES).json(str(source))
        query = tamis.spark.update_stream(
            reader, folder / "index", checkpoint=folder / "changes-checkpoint", trigger=AVAILABLE
        )
        query.awaitTermination()

    carry_out()
    assert [row.id for row in tamis.spark.rejections(spark, folder / "index").collect()] == ["wrong"]
    events = spark.createDataFrame([(1, 50), (2, 1)], "id int, a int")
    assert pairs(tamis.spark.match(events, folder / "index").collect()) == {(1, "new")}
    os.unlink(folder / "changes-checkpoint" / "commits" / "0")
    os.unlink(folder / "changes-checkpoint" / "commits" / ".0.crc")
    carry_out()
    assert IndexFolder(folder / "index").versions() == [1, 2]
    # With a new checkpoint, the numbers of batches begin again, and do not mean the earlier batches.
    shutil.rmtree(folder / "changes-checkpoint")
    carry_out()
    assert IndexFolder(folder / "index").versions() == [1, 2, 3]


def test_conflicting_changes_are_tried_again(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process publishes a version while a batch of changes is carried out."""
    others: Iterator[list[tuple[str, str, str | None]]] = iter([[("added", "other", "a = 51")]])
    publish = IndexFolder.publish

    def late(index: IndexFolder, manifest: Manifest) -> Manifest:
        for rows in others:
            change(spark, folder, rows)
        return publish(index, manifest)

    monkeypatch.setattr(IndexFolder, "publish", late)
    given = spark.createDataFrame([("added", "new", "a = 51")], CHANGES)
    BatchUpdater(str(folder / "index"), "source", None)(given, 0)
    events = spark.createDataFrame([(1, 51)], "id int, a int")
    assert pairs(tamis.spark.match(events, folder / "index").collect()) == {(1, "new"), (1, "other")}
    assert IndexFolder(folder / "index").versions() == [1, 2, 3]


def test_wrong_calls(spark: SparkSession, folder: Path) -> None:
    events = stream(spark, folder)
    with pytest.raises(tamis.OptionError, match="give either `output`, a folder, or `deliver`"):
        tamis.spark.match_stream(events, folder / "index", checkpoint=folder / "c")
    with pytest.raises(tamis.FrameError, match=r"not a stream. Hint: tamis\.spark\.match takes"):
        tamis.spark.match_stream(spark.range(3), folder / "index", checkpoint=folder / "c", output=folder / "m")
    with pytest.raises(tamis.IndexFolderError, match="there is no index"):
        tamis.spark.match_stream(events, folder / "none", checkpoint=folder / "c", output=folder / "m")
    with pytest.raises(tamis.FrameError, match="no column 'key'"):
        tamis.spark.match_stream(events, folder / "index", "key", checkpoint=folder / "c", output=folder / "m")
    with pytest.raises(tamis.OptionError, match=r"`checkpoint`: none://b/c cannot be opened"):
        tamis.spark.match_stream(events, folder / "index", checkpoint="none://b/c", output=folder / "m")
    with pytest.raises(tamis.OptionError, match=r"`wrong`, s3://b/m/w, is within `output`, s3://b/m\. Hint"):
        tamis.spark.match_stream(
            events, folder / "index", checkpoint=folder / "c", output="s3://b/m/", wrong="s3://b/m/w"
        )
    with pytest.raises(tamis.IndexFolderError, match="has no finished batch"):
        tamis.spark.read_output(spark, folder / "nothing")
    with pytest.raises(tamis.OptionError, match="'batch' is the number of a batch"):
        tamis.spark.match_stream(
            events.selectExpr("a", "id AS batch"),
            folder / "index",
            "batch",
            checkpoint=folder / "c",
            output=folder / "m",
        )
    with pytest.raises(tamis.FrameError, match="changes are not a stream"):
        tamis.spark.update_stream(spark.range(3), folder / "index", checkpoint=folder / "c")
