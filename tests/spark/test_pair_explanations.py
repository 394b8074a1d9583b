"""Expressions of an index come back as text, and pairs of events and subscriptions are explained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tamis
import tamis.spark
from tests.spark.frames import frame, pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BOOKS: list[dict[str, Any]] = [
    {"id": "ann", "expression": "price < 20 AND genre = 'crime'"},
    {"id": "cid", "expression": "title LIKE '%Sea%' OR signed"},
    {"id": "dan", "expression": "author.born < 1900"},
]


@pytest.fixture(scope="module")
def books(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("books") / "index")
    tamis.spark.build(frame(spark, BOOKS, "id string, expression string"), path, shards=3)
    return path


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    rows = [
        (1, 12, "crime", "The Sea", False, (1890,)),
        (2, 35, "poetry", "Sand", True, (1950,)),
        (3, None, "crime", None, None, None),
        (4, 100, "crime", "Ice", False, (1850,)),
    ]
    schema = "number int, price int, genre string, title string, signed boolean, author struct<born: int>"
    return spark.createDataFrame(rows, schema)


def test_expressions_of_predicates_and_of_an_index_with_removed_rows(spark: SparkSession, tmp_path: Path) -> None:
    schema = "id int, predicates array<struct<attribute: string, operator: string, values: array<bigint>>>"
    rows = [
        (1, [("a", ">", [3]), ("b", "=", [1])]),
        (2, [("a", "~", [3])]),  # rejected
        (3, [("a", "IN", [4, 5])]),
        (4, [("a", ">", [0])]),
    ]
    index = tmp_path / "index"
    assert tamis.spark.build(spark.createDataFrame(rows, schema), index, shards=1).rejected == 1
    texts = {1: "a > 3 AND b = 1", 3: "a IN (4, 5)", 4: "a > 0"}
    there = tamis.spark.subscriptions(spark, index)
    assert {row.id: (row.expression, row.weight) for row in there.collect()} == {
        number: (text, 0.0) for number, text in texts.items()
    }
    tamis.spark.update(index, spark.createDataFrame([("removed", 1)], "change string, id int"))
    events = spark.createDataFrame([(7, 4, 1)], "event int, a int, b int")
    found = tamis.spark.match(events, index, "event", carry=["expression", "weight"]).collect()
    assert {tuple(row)[1:] for row in found} == {(3, texts[3], 0.0), (4, texts[4], 0.0)}
    counted = tamis.spark.match(events, index, "event", counts=True, carry=["expression"]).collect()
    assert {tuple(row) for row in counted} == {(3, 1, texts[3]), (4, 1, texts[4])}


def test_explanations_of_pairs(spark: SparkSession, events: DataFrame, books: str) -> None:
    rows = [(1, "ann"), (2, "ann"), (3, "dan"), (1, "cid"), (9, "ann"), (1, "nobody"), (4, "dan")]
    found = tamis.spark.explain(spark.createDataFrame(rows, "number int, subscription string"), events, books, "number")
    assert found.columns == ["number", "subscription", "matched", "explanation"]
    said = {(row.number, row.subscription): (row.matched, row.explanation) for row in found.collect()}
    matcher = tamis.Matcher()
    matcher.add_many([book["id"] for book in BOOKS], [book["expression"] for book in BOOKS])
    own: dict[int, dict[str, Any]] = {
        1: {"price": 12, "genre": "crime", "title": "The Sea", "signed": False, "author": {"born": 1890}},
        2: {"price": 35, "genre": "poetry", "title": "Sand", "signed": True, "author": {"born": 1950}},
        3: {"genre": "crime"},
        4: {"price": 100, "genre": "crime", "title": "Ice", "signed": False, "author": {"born": 1850}},
    }
    for event, subscription in [(1, "ann"), (2, "ann"), (3, "dan"), (1, "cid"), (4, "dan")]:
        why = matcher.explain(subscription, own[event])
        assert said[event, subscription] == (why.matched, str(why))
    assert said[9, "ann"] == (None, "no event has this id")
    assert said[1, "nobody"] == (None, "no subscription has this id")
    whole = tamis.spark.match(events, books, "number")
    again = tamis.spark.explain(whole, events, books, "number")
    assert (
        {(row[0], row[1]) for row in again.collect() if row.matched} == pairs(whole.collect()) == pairs(again.collect())
    )
    as_map = events.selectExpr("number", "map('price', price, 'signed', int(signed)) AS event")
    (only,) = tamis.spark.explain(whole.where("subscription = 'ann' AND number = 1"), as_map, books, "number").collect()
    assert (only.matched, only.explanation.splitlines()[1]) == (False, "├─ TRUE     price < 20   (price is 12)")


def test_explanations_of_json(spark: SparkSession, books: str) -> None:
    lines = [
        b'{"price": 12, "genre": "crime"}',
        b'{"price": 35, "genre": "crime"}',
        b'{"author": {"born": 1850}}',
        b'{"price": 12, "price": 13}',
        b'{"note": 1, "note": 2}',
        b'{"price": ',
        b" ",
        None,
    ]
    rows = [(number, line) for number, line in enumerate(lines)]
    given = spark.createDataFrame(rows, "number int, body binary").repartition(2)
    asked = [(number, "dan" if number == 2 else "ann") for number in range(len(rows))]
    wanted = spark.createDataFrame(asked, "number int, subscription string")
    for events in (given, given.withColumn("body", given["body"].cast("string"))):
        found = tamis.spark.explain(wanted, events, books, "number", json="body").collect()
        said = {row.number: (row.matched, row.explanation) for row in found}
        assert [said[number][0] for number in range(5)] == [True, False, True, None, False]
        assert said[1][1].splitlines()[1:] == [
            "├─ FALSE    price < 20   (price is 35)",
            "└─ TRUE     genre = 'crime'   (genre is 'crime')",
        ]
        assert said[3][1].startswith("the event is wrong: ")
        assert "twice" in said[3][1]
        assert said[5][1].startswith("the event is wrong: not JSON")
        assert said[6] == said[7] == (None, "no event has this id")
    with pytest.raises(tamis.OptionError, match="`attributes` has no meaning with `json`"):
        tamis.spark.explain(wanted, given, books, "number", json="body", attributes=["body"])


def test_explanations_of_wrong_arguments(spark: SparkSession, events: DataFrame, books: str) -> None:
    right = spark.createDataFrame([(1, "ann")], "number int, subscription string")
    for given, message in (
        (right.select("number"), "pairs need the column 'subscription'; they have: number"),
        (right.select("subscription"), "pairs need the column 'number'"),
        (right.selectExpr("number", "1 AS subscription"), "ids of the index are string, but the column .* is bigint"),
    ):
        with pytest.raises(tamis.FrameError, match=message):
            tamis.spark.explain(given, events, books, "number")
    far = spark.sql("SELECT 1 AS number, timestamp_micros(571000000000000000) AS price")
    (only,) = tamis.spark.explain(right, far, books, "number").collect()
    assert only.matched is None
    assert only.explanation.startswith("the event is wrong: ")
