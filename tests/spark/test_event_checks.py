"""Wrong events make a job fail with an error that names their ids, or are left out and listed with reasons."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tamis
import tamis.spark
from tests.spark.frames import frame, pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id long, event array<struct<attribute: string, value: double>>"
RIGHT = [(1, [("price", 5.0)]), (2, [("price", 50.0), ("size", 1.0)]), (5, None)]
WRONG = [(3, [("price", 5.0), (None, 1.0)]), (4, [(None, 5.0)])]
REASONS = dict.fromkeys((3, 4), "an attribute's name is null")
CHEAP = {(1, "cheap"), (1, "any"), (2, "any")}


@pytest.fixture
def index(spark: SparkSession, tmp_path: Path) -> Path:
    rows = [{"id": "cheap", "expression": "price < 20"}, {"id": "any", "expression": "price > 0"}]
    # Wrong past events do not prevent a build.
    tamis.spark.build(frame(spark, rows, "id string, expression string"), tmp_path / "index", 2, events=given(spark))
    return tmp_path / "index"


def given(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([*RIGHT, *WRONG], SCHEMA).repartition(2)


def test_a_wrong_event_fails_the_job_and_is_named(spark: SparkSession, index: Path) -> None:
    with pytest.raises(Exception, match=r"EventError: the event whose id is [34]: an attribute's name .*skip_wrong"):
        tamis.spark.match(given(spark), index).collect()


@pytest.mark.parametrize("memory", [None, 1])
def test_wrong_events_are_left_out_and_listed(spark: SparkSession, index: Path, memory: int | None) -> None:
    events = given(spark)
    assert pairs(tamis.spark.match(events, index, memory=memory, skip_wrong=True).collect()) == CHEAP
    heaviest = tamis.spark.match(events, index, memory=memory, skip_wrong=True, k=1).collect()
    assert pairs(heaviest) == {(1, "any"), (2, "any")}
    counts = tamis.spark.match(events, index, memory=memory, skip_wrong=True, counts=True).collect()
    assert pairs(counts) == {("cheap", 1), ("any", 2)}
    assert dict(map(tuple, tamis.spark.wrong_events(events, index).collect())) == REASONS


def test_columns_and_kinds_of_wrong_events(spark: SparkSession, tmp_path: Path) -> None:
    rules = [{"id": 1, "expression": "size = 1"}]
    declared = {"size": "number", "colour": "string", "at": "timestamp", "m": {"x": "timestamp"}}
    tamis.spark.build(frame(spark, rules, "id long, expression string"), tmp_path, schema=declared)
    far = "timestamp_micros(571000000000000000)"
    events = spark.sql(
        f"SELECT 1 AS size, 'a' AS key, map('at', current_timestamp()) AS m, 'red' AS colour UNION ALL "
        f"SELECT 1, 'b', map('x', {far}), 'red' UNION ALL "
        "SELECT 1, 'c', NULL, cast(X'C328' AS string) UNION ALL SELECT 2, 'd', NULL, NULL"
    )
    wrong = tamis.spark.wrong_events(events, tmp_path, "key", keep=["size"], attributes=["size", "m", "colour"])
    assert wrong.columns == ["key", "reason", "size"]
    reasons = {row.key: row.reason for row in wrong.collect()}
    assert set(reasons) == {"b", "c"}
    assert reasons["b"] == "attribute 'm.x': a timestamp is not within the years 1 to 9999"
    assert reasons["c"] == "attribute 'colour': a string is not UTF-8"
    attributes = ["size", "m", "colour"]
    found = tamis.spark.match(events, tmp_path, "key", attributes=attributes, skip_wrong=True)
    assert pairs(found.collect()) == {("a", 1)}
    # Values that the schema does not allow.
    texts = events.selectExpr("key", "cast(size AS string) AS size").where("key < 'c'")
    told = {row.key: row.reason for row in tamis.spark.wrong_events(texts, tmp_path, "key").collect()}
    assert told == dict.fromkeys("ab", "attribute 'size': the value is a string, but the schema declares a number")
    subscriptions = frame(spark, rules, "id long, expression string")  # subscriptions without an index have no schema
    assert tamis.spark.wrong_events(texts, subscriptions, "key").collect() == []
    for version in (True, "1"):
        with pytest.raises(tamis.OptionError, match="`version` must be the number of a version"):
            tamis.spark.wrong_events(texts, tmp_path, "key", version=version)  # type: ignore[arg-type]
    with pytest.raises(tamis.OptionError, match="`skip_wrong` must be True or False, not 'no'"):
        tamis.spark.match(texts, tmp_path, "key", skip_wrong="no")  # type: ignore[arg-type]
    with pytest.raises(tamis.FrameError, match="two columns 'reason'"):
        tamis.spark.wrong_events(events.withColumnRenamed("key", "reason"), tmp_path, "reason", attributes=["size"])


def test_statistics_leave_out_entries_without_a_name(spark: SparkSession) -> None:
    (price, size) = tamis.spark.statistics(given(spark)).collect()
    assert (price.attribute, price.events, size.attribute, size.events) == ("price", 3, "size", 1)
    assert price.presence == pytest.approx(3 / 5)


def test_a_stream_goes_on_without_wrong_events(spark: SparkSession, index: Path, tmp_path: Path) -> None:
    given(spark).coalesce(1).write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "events"))
    delivered: list[set[tuple[Any, Any]]] = []

    def start(**options: Any) -> None:
        query = tamis.spark.match_stream(
            stream, index, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}, **options
        )
        query.awaitTermination()

    def fails_once(matches: DataFrame, _: int) -> None:
        delivered.append(pairs(matches.collect()))
        if len(delivered) == 1:
            raise RuntimeError("the sink is away")

    with pytest.raises(Exception, match="the event whose id is"):
        start(output=tmp_path / "matches")
    with pytest.raises(Exception, match="the sink is away"):
        start(deliver=fails_once, wrong=tmp_path / "wrong")
    start(deliver=fails_once, wrong=tmp_path / "wrong")
    assert delivered == [CHEAP, CHEAP]
    wrong = spark.read.parquet(str(tmp_path / "wrong")).collect()
    assert sorted((row.id, row.reason, row.batch) for row in wrong) == [(3, REASONS[3], 0), (4, REASONS[4], 0)]
    for wrong_folder in ("matches", "matches/wrong", "checkpoint"):
        with pytest.raises(tamis.OptionError, match="is within `"):
            start(output=tmp_path / "matches", wrong=tmp_path / wrong_folder)
    with pytest.raises(
        tamis.OptionError, match=r"in `wrong` the column 'batch' is the number of a batch\. Hint: rename 'Batch'"
    ):
        tamis.spark.match_stream(
            stream.withColumnRenamed("id", "Batch"),
            index,
            "Batch",
            checkpoint=tmp_path / "another",
            deliver=fails_once,
            wrong=tmp_path / "wrong",
        )
    with pytest.raises(tamis.FrameError, match="two columns 'reason'"):
        tamis.spark.match_stream(
            stream.withColumnRenamed("id", "reason"),
            index,
            "reason",
            checkpoint=tmp_path / "another",
            output=tmp_path / "matches",
            wrong=tmp_path / "wrong",
        )


@pytest.mark.parametrize("form", ["map(attribute, text, 'n', 'x') AS event", "named_struct('a', text, 'n', 1) AS s"])
def test_one_wrong_string_is_one_wrong_event(spark: SparkSession, index: Path, form: str) -> None:
    texts = spark.range(300).selectExpr("id", "if(id = 77, cast(X'C328' AS string), 'ok') AS text", "'a' AS attribute")
    events = texts.coalesce(1).selectExpr("id", form)
    rules = frame(spark, [{"id": 1, "expression": "n IS NOT NULL OR s.n IS NOT NULL"}], "id long, expression string")
    assert tamis.spark.wrong_events(events, index).collect() == []
    assert tamis.spark.match(events, rules, skip_wrong=True).count() == 300
    asking = frame(spark, [{"id": 1, "expression": "a = 'ok' OR s.a = 'ok'"}], "id long, expression string")
    assert tamis.spark.match(events, asking, skip_wrong=True).count() == 299
    assert [row.id for row in tamis.spark.wrong_events(events, asking).collect()] == [77]
    with pytest.raises(Exception, match=r"the event whose id is 77: attribute '.*a': a string is not UTF-8"):
        tamis.spark.match(events, asking).collect()


def test_a_batch_whose_wrong_events_are_listed_is_not_matched_with_another_version(
    spark: SparkSession, index: Path, tmp_path: Path
) -> None:
    """Otherwise, an event that is wrong in only one of the versions might be in neither folder."""
    given(spark).coalesce(1).write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "events"))
    output = tmp_path / "matches"

    def start() -> None:
        tamis.spark.match_stream(
            stream,
            index,
            checkpoint=tmp_path / "checkpoint",
            output=output,
            wrong=tmp_path / "wrong",
            trigger={"availableNow": True},
        ).awaitTermination()

    output.write_text("in the way")
    with pytest.raises(Exception, match="matches"):
        start()
    output.unlink()
    rows = [{"id": "cheap", "expression": "price < 20"}]
    tamis.spark.build(frame(spark, rows, "id string, expression string"), index)
    tamis.spark.collect_garbage(index, retain=timedelta(0))
    with pytest.raises(Exception, match=r"which was collected meanwhile. Hint: delete .*json and .*wrong/batch=0"):
        start()


def test_the_pipeline_counts_wrong_events(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rules.csv").write_text("id,expression\nr1,price < 20\n")
    lines = [
        '{"id": 1, "event": [{"attribute": "price", "value": 5}]}',
        '{"id": 2, "event": [{"attribute": null, "value": 5}]}',
    ]
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    out = tmp_path / "out"
    summary = tamis.spark.run_pipeline(spark, tmp_path / "rules.csv", tmp_path / "events.jsonl", out)
    assert (summary.figures["events"], summary.figures["wrong events"], summary.figures["matches"]) == (2, 1, 1)
    (row,) = spark.read.parquet(str(out / "wrong_events")).collect()
    assert tuple(row) == (2, REASONS[3])
    assert re.search(r"<b>1</b><span>wrong events</span>", (out / "summary.html").read_text())
    # A name that is already taken is reported before anything is overwritten.
    renamed = (tmp_path / "events.jsonl").read_text().replace('"id"', '"reason"')
    (tmp_path / "events.jsonl").write_text(renamed)
    with pytest.raises(tamis.FrameError, match="two columns 'reason'"):
        tamis.spark.run_pipeline(
            spark, tmp_path / "rules.csv", tmp_path / "events.jsonl", out, event_id="reason", overwrite=True
        )
    assert (out / "summary.html").exists()
