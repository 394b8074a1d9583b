"""Arguments that are not a DataFrame, session or path are refused with a clear message, before Spark is called."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import tamis.spark as ts
from tamis.errors import FileError, FrameError, IndexFolderError, OptionError
from tamis.spark.given import checked_index, listed
from tamis.workload import preset

PANDAS = pd.DataFrame({"id": [1], "expression": ["a = 1"]})
OTHERS = [None, "events.parquet", Path("events"), PANDAS, pa.table({"id": [1]}), [{"id": 1}], 5]

FRAMES: dict[str, Callable[[Any], Any]] = {
    "build": lambda other: ts.build(other, "index"),
    "update": lambda other: ts.update("index", other),
    "match": lambda other: ts.match(other, "index"),
    "match_stream": lambda other: ts.match_stream(other, "index", checkpoint="c", output="o"),
    "update_stream": lambda other: ts.update_stream(other, "index", checkpoint="c"),
    "statistics": ts.statistics,
    "wrong_events": lambda other: ts.wrong_events(other, "index"),
}
SESSIONS: dict[str, Callable[[Any], Any]] = {
    "subscriptions": lambda other: ts.subscriptions(other, "index"),
    "rejections": lambda other: ts.rejections(other, "index"),
    "generate_subscriptions": lambda other: ts.generate_subscriptions(other, preset("zipf")),
    "generate_events": lambda other: ts.generate_events(other, preset("zipf"), 3),
    "run_pipeline": lambda other: ts.run_pipeline(other, "s", "e", "o"),
}


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: type(other).__name__)
@pytest.mark.parametrize("name", FRAMES)
def test_arguments_that_are_not_frames(name: str, other: Any) -> None:
    with pytest.raises(FrameError, match="must be a DataFrame of Spark, not "):
        FRAMES[name](other)


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: type(other).__name__)
@pytest.mark.parametrize("name", SESSIONS)
def test_arguments_that_are_not_sessions(name: str, other: Any) -> None:
    with pytest.raises(FrameError, match="a Spark session is needed, not "):
        SESSIONS[name](other)


def test_the_messages() -> None:
    for other, message in (
        (None, "events must be a DataFrame of Spark, not None"),
        (
            "a.parquet",
            "events must be a DataFrame of Spark, not 'a.parquet' (str). Hint: spark.read.parquet(...) reads one",
        ),
        (
            PANDAS,
            "events must be a DataFrame of Spark, not a pandas DataFrame. Hint: spark.createDataFrame(...) makes one",
        ),
    ):
        with pytest.raises(FrameError) as refusal:
            ts.match(other, "index")  # type: ignore[arg-type]
        assert str(refusal.value).startswith(message)


@pytest.mark.parametrize("path", [None, 5, "", b"x", PANDAS], ids=lambda path: type(path).__name__)
def test_arguments_that_are_not_paths(path: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: ts.collect_garbage(path),
        lambda: ts.batch_records(path),
    ]
    for call in calls:
        with pytest.raises(IndexFolderError, match="the path of a folder must be a string or a Path, not "):
            call()


def test_other_options() -> None:
    with pytest.raises(OptionError, match="`retain` must be a timedelta"):
        ts.collect_garbage("index", retain=5)  # type: ignore[arg-type]
    with pytest.raises(IndexFolderError):
        ts.collect_garbage("no-such-index", retain=timedelta(1))
    with pytest.raises(FrameError, match="the index must be a path, or a DataFrame of Spark"):
        checked_index(PANDAS)
    for wrong in (5, [1], None):
        with pytest.raises(OptionError, match="`keep` must be a list of"):
            listed(wrong, "keep")  # type: ignore[arg-type]


def test_inputs_of_a_pipeline_are_checked_without_spark(tmp_path: Path) -> None:
    from tamis.spark.pipeline import check_inputs

    subscriptions, events = tmp_path / "s.csv", tmp_path / "e.jsonl"
    subscriptions.write_text("id,expression\n1,a = 1\n")
    events.write_text('{"id": 1}\n')
    check_inputs(subscriptions, events, tmp_path / "out")
    (tmp_path / "no.parquet").write_text("no")
    (tmp_path / "twice.csv").write_text("a,a\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "matches").mkdir()
    for words, message in (
        ((subscriptions, tmp_path / "missing", "o"), "missing: there is no such file or folder"),
        ((tmp_path / "no.parquet", events, "o"), "no.parquet: is not a Parquet file, or is cut off"),
        ((tmp_path / "twice.csv", events, "o"), "twice.csv:1: two columns have the same name"),
        ((tmp_path / "empty.csv", events, "o"), "empty.csv: is empty"),
        ((subscriptions, events, tmp_path / "out"), "out: the folder has the results of an earlier run"),
        ((None, events, "o"), "None: "),
        ((subscriptions, events, events), "e.jsonl: is a file, but the results need a folder"),
    ):
        with pytest.raises(FileError, match=message):
            check_inputs(*words)
