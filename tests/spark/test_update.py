"""Changes of an index: each is a new version, wrong changes are returned, old versions stay for their readers."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tamis
import tamis.spark
from tamis.spark.index_folder import IndexFolder
from tests.spark.frames import frame, pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
SCHEMA = "change string, id string, expression string, weight double, tag string"


def subscriptions(count: int) -> list[dict[str, Any]]:
    return [{"id": f"s{number}", "expression": f"a = {number % 7}", "tag": f"t{number}"} for number in range(count)]


def changes(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return frame(spark, [{"weight": 0.0, **row} for row in rows], SCHEMA)


@pytest.fixture
def index(spark: SparkSession, tmp_path: Path) -> Path:
    rows = [{"weight": 0.0, **row} for row in subscriptions(40)]
    tamis.spark.build(frame(spark, rows, SCHEMA.removeprefix("change string, ")), tmp_path / "index", shards=2)
    return tmp_path / "index"


def wanted(spark: SparkSession, index: Path, event: dict[str, Any], **options: Any) -> set[str]:
    events = spark.createDataFrame([(0, *event.values())], ", ".join(["event int", *(f"{name} int" for name in event)]))
    found = tamis.spark.match(events, index, "event", **options)
    return {subscription for _, subscription in pairs(found.collect())}


def test_adding_removing_and_replacing(spark: SparkSession, index: Path) -> None:
    report = tamis.spark.update(
        index,
        changes(
            spark,
            [
                {"change": "added", "id": "new", "expression": "a = 1", "tag": "n"},
                {"change": "removed", "id": "s1"},
                {"change": "added", "id": "s8", "expression": "a = 5"},
                {"change": "removed", "id": "s15"},
                {"change": "added", "id": "s15", "expression": "a = 6"},
            ],
        ),
    )
    assert report[:5] == (2, 1, 2, 1, 0)
    assert wanted(spark, index, {"a": 1}) == {"s22", "s29", "s36", "new"}
    assert wanted(spark, index, {"a": 5}) == {"s5", "s8", "s12", "s19", "s26", "s33"}
    assert "s15" in wanted(spark, index, {"a": 6})
    assert wanted(spark, index, {"a": 1}, version=1) == {"s1", "s8", "s15", "s22", "s29", "s36"}
    assert IndexFolder(index).manifest().subscriptions == 40
    events = spark.createDataFrame([(0, 1)], "event int, a int")
    carried = tamis.spark.match(events, index, "event", carry=["tag"]).collect()
    assert {row.subscription: row.tag for row in carried} == {"s22": "t22", "s29": "t29", "s36": "t36", "new": "n"}


def test_wrong_changes_are_returned_and_change_nothing(spark: SparkSession, index: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"change": "added", "id": "s1", "expression": "a ="},
        {"change": "removed", "id": "s2"},
        {"change": "added", "id": "s2", "expression": None},
        {"change": "removed", "id": "nobody"},
        {"change": "changed", "id": "s3", "expression": "a = 1"},
        {"change": "added", "id": None, "expression": "a = 1"},
        {"change": "added", "id": "twice", "expression": "a = 1"},
        {"change": "added", "id": "twice", "expression": "a = 2"},
    ]
    report = tamis.spark.update(index, changes(spark, wrong))
    assert report[:5] == (1, 0, 0, 0, 7)
    reasons = {row.id: row.reason for row in report.rejections.collect()}
    assert reasons["nobody"] == "no subscription has this id"
    assert reasons["s3"] == "the change must be 'added' or 'removed', not 'changed'"
    assert reasons["twice"] == "the id 'twice' is added 2 times"
    assert IndexFolder(index).versions() == [1]
    assert {"s1", "s2"} <= wanted(spark, index, {"a": 1}) | wanted(spark, index, {"a": 2})


def test_the_last_change_of_an_id_counts(spark: SparkSession, index: Path) -> None:
    rows = [
        (1, "added", "s1", "a = 100"),
        (3, "added", "s1", "a = 101"),
        (2, "removed", "s1", None),
        (5, "removed", "x", None),
        (4, "added", "x", "a = 101"),
        (6, "removed", "nobody", None),
    ]
    given = spark.createDataFrame(rows, "at int, change string, id string, expression string")
    report = tamis.spark.update(index, given, order="at")
    assert (report.replaced, report.removed) == (1, 0)
    assert [row.id for row in report.rejections.collect()] == ["nobody"]  # x was added and removed
    assert wanted(spark, index, {"a": 101}) == {"s1"}


def test_the_last_valid_change_counts(spark: SparkSession, index: Path) -> None:
    """As if each change had its own batch."""
    rows = [
        (1, "added", "new", "a = 101"),
        (2, "added", "new", "a = = 102"),
        (1, "removed", "s1", None),
        (2, "added", "s1", "a = ="),
        (1, "added", "s2", "a = 101"),
        (2, "altered", "s2", "a = 102"),
        (1, "added", "s3", "a = 101"),
        (2, "added", "s3", "a = 102"),
        (2, "added", "s3", "a = 103"),
    ]
    given = spark.createDataFrame(rows, "at int, change string, id string, expression string")
    report = tamis.spark.update(index, given, order="at")
    assert (report.added, report.replaced, report.removed, report.rejected) == (1, 2, 1, 5)
    assert wanted(spark, index, {"a": 101}) == {"new", "s2", "s3"}
    assert wanted(spark, index, {"a": 102}) == set()
    assert "s1" not in wanted(spark, index, {"a": 1})
    rejected = sorted((row.id, row.at, row.expression) for row in report.rejections.collect())
    assert rejected == sorted((row[2], row[0], row[3]) for row in rows if row[0] == 2)


def test_columns_that_may_have_no_nulls(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "index"
    tamis.spark.build(spark.sql("SELECT 'x' AS id, 'a = 1' AS expression, array('u') AS tags"), path)
    given = spark.createDataFrame(
        [("added", "y", "a = 1", ["v"])], "change string, id string, expression string, tags array<string>"
    )
    assert tamis.spark.update(path, given).added == 1


def test_changes_without_a_time_are_rejected(spark: SparkSession, index: Path) -> None:
    given = spark.createDataFrame(
        [("added", "n", "a = 1", None), ("removed", "s1", None, 1)],
        "change string, id string, expression string, at int",
    )
    report = tamis.spark.update(index, given, order="at")
    assert (report.added, report.removed, report.rejected) == (0, 1, 1)
    assert [(row.id, row.at, row.reason) for row in report.rejections.collect()] == [("n", None, "at is null")]
    never = spark.sql("SELECT 'added' AS change, 'n' AS id, 'a = 1' AS expression, double('NaN') AS at")
    assert [row.reason for row in tamis.spark.update(index, never, order="at").rejections.collect()] == ["at is NaN"]
    rows = [("added", "s2", "a = 100", 1.0, "b"), ("added", "s2", "a = 100", 2.0, "a")]
    given = spark.createDataFrame(rows, "change string, id string, expression string, weight double, tag string")
    assert tamis.spark.update(index, given, order="weight").replaced == 1  # A column that also has another meaning.
    assert tamis.spark.update(index, given, order="tag").replaced == 1
    with pytest.raises(tamis.FrameError, match="'when'"):
        tamis.spark.update(index, given, order="when")


def test_adding_and_removing_one_id_at_once(spark: SparkSession, index: Path) -> None:
    both = [{"change": "added", "id": "x", "expression": "a = 1"}, {"change": "removed", "id": "x"}]
    report = tamis.spark.update(index, changes(spark, both))
    assert report[:5] == (2, 1, 0, 0, 1)
    assert [row.reason for row in report.rejections.collect()] == ["no subscription has this id"]
    report = tamis.spark.update(index, changes(spark, both), source="stream", batch=1)
    assert report[1:5] == (0, 0, 0, 2)
    assert all("Hint: `order`" in row.reason for row in report.rejections.collect())


def test_building_again_does_not_undo_a_version_published_during_the_build(spark: SparkSession, index: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    path = str(index)

    def meanwhile(text: str) -> str:
        folder = IndexFolder(path)
        if folder.versions() == [1, 2]:
            folder.publish(replace(folder.manifest(), version=3))
        return text

    given = changes(spark, [{"change": "added", "id": "new", "expression": "a = 1"}])
    tamis.spark.update(index, given, source="stream", batch=3)

    rows = frame(spark, [{"id": "a", "expression": "a = 1"}], "id string, expression string")
    with pytest.raises(tamis.ConflictError):
        tamis.spark.build(rows.withColumn("expression", F.udf(meanwhile, "string")("expression")), index, shards=1)
    report = tamis.spark.build(rows, index, shards=1)
    assert report.version == 4
    assert IndexFolder(index).manifest().applied == {"stream": 3}, "what a stream has done is not done again"


def test_sessions_with_other_settings(spark: SparkSession, tmp_path: Path) -> None:
    schema = "id string, predicates array<struct<attribute: string, operator: string, values: array<{}>>>, at timestamp"

    def rows(change: list[str], name: str, kind: str) -> DataFrame:
        given = spark.createDataFrame([(name, [("a", "=", [1])], None)], schema.format(kind))
        given = given.selectExpr("*", "timestamp'2026-01-01 00:00:00Z' AS valid_from", "current_timestamp() AS seen")
        return given.selectExpr(*(f"'{word}' AS change" for word in change), "*")

    kept = {name: spark.conf.get(name) for name in ("spark.sql.session.timeZone", _LARGE)}
    tamis.spark.build(rows([], "first", "bigint"), tmp_path, shards=1)
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        spark.conf.set(_LARGE, "true")
        report = tamis.spark.update(tmp_path, rows(["added"], "second", "int"))
    finally:
        for name, value in kept.items():
            spark.conf.set(name, str(value))
    assert (report.added, len(IndexFolder(tmp_path).manifest().segments)) == (1, 1), "merged with what was there"
    assert wanted(spark, tmp_path, {"a": 1}) == {"first", "second"}
    with pytest.raises(tamis.FrameError, match=r"that of the changes is array<struct<.*values:array<string>>>"):
        tamis.spark.update(tmp_path, rows(["added"], "third", "string"))


def test_a_batch_of_a_stream_is_carried_out_once(spark: SparkSession, index: Path) -> None:
    given = changes(spark, [{"change": "added", "id": "new", "expression": "a = 1"}])
    assert tamis.spark.update(index, given, source="s", batch=4).version == 2
    again = tamis.spark.update(index, given, source="s", batch=4)
    assert again[:5] == (2, 0, 0, 0, 0)
    assert tamis.spark.update(index, given, source="other", batch=4)[:3] == (3, 0, 1)
    with pytest.raises(tamis.OptionError, match="give both `source` and `batch`"):
        tamis.spark.update(index, given, source="s")


def test_removals_need_the_id_only(spark: SparkSession, index: Path) -> None:
    given = spark.createDataFrame([("removed", f"s{number}") for number in range(40)], "change string, id string")
    assert tamis.spark.update(index, given).removed == 40
    assert IndexFolder(index).manifest().subscriptions == 0
    assert IndexFolder(index).manifest().segments == []
    assert wanted(spark, index, {"a": 1}) == set()


def test_changes_must_fit_the_index(spark: SparkSession, index: Path) -> None:
    def refused(message: str, rows: list[Any], schema: str) -> None:
        with pytest.raises(tamis.FrameError, match=message):
            tamis.spark.update(index, spark.createDataFrame(rows, schema))

    refused("need the columns 'id', 'change'", [(1,)], "id int")
    refused("ids of the index are string, but those of the changes are bigint", [("added", 1, "a = 1")],
            "change string, id int, expression string")  # fmt: skip
    refused("carries no column 'size'; it carries: tag", [("added", "a", "a = 1", 1)],
            "change string, id string, expression string, size int")  # fmt: skip
    refused("the column 'tag' of the index is string, not int", [("added", "a", "a = 1", 1)],
            "change string, id string, expression string, tag int")  # fmt: skip


def test_many_small_changes_leave_few_segments_and_the_truth(spark: SparkSession, index: Path) -> None:
    draw = random.Random(3)
    truth = {row["id"]: row["expression"] for row in subscriptions(40)}
    for step in range(12):
        gone = draw.sample(sorted(truth), 2)
        rows = [{"change": "removed", "id": identifier} for identifier in gone]
        for identifier in gone:
            del truth[identifier]
        for number in range(4):
            added = draw.choice([f"new{step}-{number}", *sorted(truth)[:3]])
            if all(row["id"] != added for row in rows):
                truth[added] = f"a = {draw.randrange(7)}"
                rows.append({"change": "added", "id": added, "expression": truth[added]})
        report = tamis.spark.update(index, changes(spark, rows))
        assert report.rejected == 0
    manifest = IndexFolder(index).manifest()
    assert manifest.subscriptions == len(truth)
    assert max(len(bucket) for bucket in manifest.buckets) <= 4
    matcher = tamis.Matcher()
    matcher.add_many(truth, truth.values())
    for value in range(7):
        assert wanted(spark, index, {"a": value}) == set(matcher.match({"a": value}))


def test_garbage_is_collected_and_running_readers_go_on(spark: SparkSession, index: Path) -> None:
    events = spark.createDataFrame([(0, 1)], "event int, a int")
    before = tamis.spark.match(events, index, "event")
    tamis.spark.update(index, changes(spark, [{"change": "removed", "id": f"s{number}"} for number in range(20)]))
    assert tamis.spark.collect_garbage(index) == 0  # a day has not passed
    assert len(before.collect()) == 6
    assert tamis.spark.collect_garbage(index, retain=timedelta(0)) > 0
    assert IndexFolder(index).versions() == [2]
    there = {str(file.relative_to(index)) for file in index.rglob("*.*") if file.parent.name != "versions"}
    assert there == IndexFolder(index).manifest().files
    assert len(wanted(spark, index, {"a": 1})) == 3
    with pytest.raises(tamis.IndexFolderError, match=r"has no version 1; it has: 2\. Hint: old versions are collected"):
        tamis.spark.match(events, index, "event", version=1)
