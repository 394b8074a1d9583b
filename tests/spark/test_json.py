"""Events as a column of JSON: Spark gives what `Matcher.match_json_batch` gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tamis
import tamis.spark
from tamis import FrameError, Matcher, OptionError, WrongEventsError
from tests.json_texts import JsonTexts
from tests.spark.frames import frame, pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXPRESSIONS = (
    "a = 5",
    "a IS NULL",
    "a LIKE '%x%'",
    "b > 0 OR b IS NULL",
    "a.b = 5",
    "c <> 'xy'",
    "b.c IN (5, 12)",
    "NOT a = 'x'",
)


@pytest.fixture
def index(spark: SparkSession, tmp_path: Path) -> Path:
    rules = [{"id": number, "expression": text} for number, text in enumerate(EXPRESSIONS)]
    tamis.spark.build(frame(spark, rules, "id long, expression string"), tmp_path / "index", 2)
    return tmp_path / "index"


def matcher() -> Matcher[int]:
    made: Matcher[int] = Matcher()
    made.add_many(range(len(EXPRESSIONS)), EXPRESSIONS)
    return made


def given(spark: SparkSession, texts: list[bytes | None], kind: str = "binary") -> DataFrame:
    rows = [(row, text, "kept") for row, text in enumerate(texts)]
    events = spark.createDataFrame(rows, "id long, body binary, note string").repartition(3)
    return events if kind == "binary" else events.withColumn("body", events["body"].cast("string"))


@pytest.mark.parametrize("memory", [None, 1])
def test_random_texts(spark: SparkSession, index: Path, memory: int | None) -> None:
    texts = JsonTexts(3)
    lines: list[bytes | None] = [texts.line() for _ in range(300)]
    lines += [None, b"", b"  "]
    wrong: list[tamis.EventError] = []
    found = matcher().match_json_batch([line or b"" for line in lines], wrong=wrong)
    assert wrong
    expected = set(zip(*found.to_pydict().values(), strict=True))
    events = given(spark, lines)
    matched = tamis.spark.match(events, index, json="body", skip_wrong=True, memory=memory)
    assert pairs(matched.collect()) == expected
    listed = tamis.spark.wrong_events(events, index, json="body").collect()
    assert {row.id for row in listed} == {error.row for error in wrong}
    with pytest.raises(WrongEventsError):
        matcher().match_json_batch([line or b"" for line in lines])
    with pytest.raises(Exception, match=r"EventError: the event whose id is \d+: .*skip_wrong"):
        tamis.spark.match(events, index, json="body", memory=memory).collect()


def test_strings_counts_and_kept_columns(spark: SparkSession, index: Path) -> None:
    events = given(spark, [b'{"a": 5}', b'{"a": "x", "b": {"c": 12}}', b"{}"], "string")
    found = tamis.spark.match(events, index, json="body", keep=["note"]).collect()
    assert {(row.subscription, row.note) for row in found if row.id == 0} == {(0, "kept"), (3, "kept")}
    counts = tamis.spark.match(events, index, json="body", counts=True).collect()
    assert dict(map(tuple, counts))[3] == 3


def test_wrong_options(spark: SparkSession, index: Path) -> None:
    events = given(spark, [b"{}"])
    with pytest.raises(FrameError, match=r"'id' must have JSON, a string or binary, not bigint"):
        tamis.spark.match(events, index, json="id")
    with pytest.raises(FrameError, match=r"events have no column 'bod'"):
        tamis.spark.match(events, index, json="bod")
    with pytest.raises(OptionError, match=r"`attributes` has no meaning with `json`"):
        tamis.spark.match(events, index, json="body", attributes=["note"])
    with pytest.raises(OptionError, match=r"`json` must be the name of a column"):
        tamis.spark.match(events, index, json=5)  # type: ignore[arg-type]


def test_a_stream(spark: SparkSession, index: Path, tmp_path: Path) -> None:
    given(spark, [b'{"a": 5}', b'{"a": ', b'{"b": {"c": 12}}']).write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema("id long, body binary, note string").parquet(str(tmp_path / "events"))
    query = tamis.spark.match_stream(
        stream,
        index,
        checkpoint=tmp_path / "checkpoint",
        output=tmp_path / "matches",
        wrong=tmp_path / "wrong",
        trigger={"availableNow": True},
        json="body",
    )
    query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "matches")).select("id", "subscription").collect()
    assert pairs(found) == {(0, 0), (0, 3), (2, 1), (2, 3), (2, 6)}
    assert [row.id for row in spark.read.parquet(str(tmp_path / "wrong")).collect()] == [1]
