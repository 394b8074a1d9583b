"""Spark builds an index, and matches events in all forms with it."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tamis
import tamis.spark
from tamis.language.engine_sql import to_sql
from tamis.spark.manifest import SegmentFiles
from tamis.spark.match_task import GROUP
from tamis.spark.matching import spread_over_groups
from tamis.workload import generate, preset
from tests.differential.attributes import entry_column, event_table
from tests.differential.comparison import ask, random_batch
from tests.differential.engines import Spark
from tests.parameters import few_of
from tests.spark.frames import WORKLOADS, expressions_of, frame, pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BOOKS: list[dict[str, Any]] = [
    {"id": "ann", "expression": "price < 20 AND genre = 'crime'", "weight": 1.0, "tag": "a"},
    {"id": "bob", "expression": "price BETWEEN 10 AND 40", "weight": 3.0, "tag": "b"},
    {"id": "cid", "expression": "title LIKE '%Sea%' OR signed", "weight": 2.0, "tag": None},
    {"id": "dan", "expression": "author.born < 1900", "weight": 3.0, "tag": "d"},
]
SCHEMA = "id string, expression string, weight double, tag string"


@pytest.fixture(scope="module")
def books(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("books") / "index")
    report = tamis.spark.build(frame(spark, BOOKS, SCHEMA), path, shards=3)
    assert (report.version, report.subscriptions, report.shards, report.rejected) == (1, 4, 3, 0)
    assert report.rejections.collect() == []
    return path


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    rows = [
        (1, 12, "crime", "The Sea", False, (1890,), "x"),
        (2, 35, "poetry", "Sand", True, (1950,), "y"),
        (3, None, "crime", None, None, None, "z"),
        (4, 100, "crime", "Ice", False, (1850,), "x"),
    ]
    schema = "number int, price int, genre string, title string, signed boolean, author struct<born: int>, shop string"
    return spark.createDataFrame(rows, schema)


PAIRS = {(1, "ann"), (1, "bob"), (1, "cid"), (1, "dan"), (2, "bob"), (2, "cid"), (4, "dan")}


def test_columns_and_nested_structs(events: DataFrame, books: str) -> None:
    found = tamis.spark.match(events, books, event_id="number")
    assert found.columns == ["number", "subscription"]
    assert [field.dataType.simpleString() for field in found.schema] == ["int", "string"]
    assert pairs(found.collect()) == PAIRS


def test_columns_of_both_sides(events: DataFrame, books: str) -> None:
    found = tamis.spark.match(events, books, event_id="number", keep=["shop", "author"], carry=["tag"])
    assert found.columns == ["number", "subscription", "shop", "author", "tag"]
    row = next(row for row in found.collect() if (row.number, row.subscription) == (4, "dan"))
    assert (row.shop, row.author.born, row.tag) == ("x", 1850, "d")
    assert {row.tag for row in found.collect() if row.subscription == "cid"} == {None}


def test_the_largest_weights(events: DataFrame, books: str) -> None:
    best = {(1, "bob"), (1, "dan"), (2, "bob"), (2, "cid"), (4, "dan")}
    assert pairs(tamis.spark.match(events, books, "number", k=2).collect()) == best
    assert pairs(tamis.spark.match(events, books, "number", k=1).collect()) == {(1, "bob"), (2, "bob"), (4, "dan")}
    ranked = tamis.spark.match(events, books, "number", k=3, carry=["weight", "expression", "tag"])
    assert ranked.columns == ["number", "subscription", "rank", "weight", "expression", "tag"]
    of_first = sorted((tuple(row)[1:] for row in ranked.collect() if row.number == 1), key=lambda row: row[1])
    assert of_first == [
        ("bob", 1, 3.0, "price BETWEEN 10 AND 40", "b"),
        ("dan", 2, 3.0, "author.born < 1900", "d"),
        ("cid", 3, 2.0, "title LIKE '%Sea%' OR signed", None),
    ]


def test_counts(events: DataFrame, books: str) -> None:
    found = tamis.spark.match(events, books, "number", counts=True, carry=["tag"])
    assert found.columns == ["subscription", "matches", "tag"]
    assert {tuple(row) for row in found.collect()} == {
        ("ann", 1, "a"),
        ("bob", 2, "b"),
        ("cid", 2, None),
        ("dan", 2, "d"),
    }
    best = tamis.spark.match(events, books, "number", counts=True, k=1)
    assert {tuple(row) for row in best.collect()} == {("bob", 2), ("dan", 1)}


@pytest.mark.parametrize("options", [{}, {"k": 2}, {"counts": True}])
def test_an_index_that_does_not_fit_is_matched_in_groups(
    events: DataFrame, books: str, options: dict[str, Any]
) -> None:
    whole = tamis.spark.match(events, books, "number", keep=[] if "counts" in options else ["shop"], **options)
    grouped = tamis.spark.match(
        events, books, "number", keep=[] if "counts" in options else ["shop"], memory=1, **options
    )
    assert grouped.columns == whole.columns
    assert sorted(map(tuple, grouped.collect())) == sorted(map(tuple, whole.collect()))


def test_groups_with_more_subscriptions_get_more_tasks(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    groups = ((SegmentFiles("large", rows=900, bytes=9),), (SegmentFiles("small", rows=100, bytes=1),))
    spark.conf.set("spark.sql.shuffle.partitions", "10")
    try:
        spread = (
            spread_over_groups(spark.range(1000), groups)
            .groupBy(F.spark_partition_id().alias("task"), GROUP)
            .count()
            .collect()
        )
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert len({row.task for row in spread}) == len(spread) == 10, "a task has events of one group"
    sizes = {group: sorted(row["count"] for row in spread if row[GROUP] == group) for group in (0, 1)}
    assert [sum(each) for each in sizes.values()] == [1000, 1000], "each event meets both"
    assert sizes[1] == [1000]
    assert len(sizes[0]) == 9
    assert sizes[0][-1] <= 1.2 * sizes[0][0]


def test_maps_and_lists_of_structs(spark: SparkSession, books: str) -> None:
    maps = [(1, {"price": "12", "genre": "crime", "title": "The Sea"}), (2, {"genre": "x"}), (3, None)]
    found = tamis.spark.match(spark.createDataFrame(maps, "id long, attributes map<string, string>"), books)
    assert pairs(found.collect()) == {(1, "cid")}  # a price that is a string is not a number
    numbers = spark.createDataFrame([(1, {"price": 12}), (2, {})], "id long, attributes map<string, int>")
    assert pairs(tamis.spark.match(numbers, books).collect()) == {(1, "bob")}
    lists = spark.createDataFrame(
        [(7, [("price", 12), ("price", 50)]), (8, [])], "id long, entries array<struct<attribute: string, value: int>>"
    )
    assert pairs(tamis.spark.match(lists, books).collect()) == {(7, "bob")}


def test_columns_beside_a_column_of_all_attributes(spark: SparkSession, books: str) -> None:
    event = "id, 'x' AS shop, timestamp'2026-01-01' AS at, map('price', 12) AS attributes"
    maps = spark.range(1).selectExpr(*event.split(", ", 3))
    found = tamis.spark.match(maps, books, keep=["shop"], time="at")
    assert [tuple(row) for row in found.collect()] == [(0, "bob", "x")]
    entries = "array(named_struct('attribute', 'price', 'value', 12)) AS entries"
    lists = maps.selectExpr("id", "shop", entries)
    # A kept column may be the column with all attributes.
    found = tamis.spark.match(lists, books, keep=["entries"], attributes=["entries"])
    assert [(row.id, row.subscription, row.entries[0].value) for row in found.collect()] == [(0, "bob", 12)]
    # If both columns are attributes, the map is an object, and its entries are like fields of a struct.
    subscriptions = spark.createDataFrame([(1, "attributes.price = 12 AND shop = 'x'")], "id int, expression string")
    found = tamis.spark.match(maps, subscriptions, attributes=["shop", "attributes"])
    assert pairs(found.collect()) == {(0, 1)}
    # Kept columns of wide events are attributes.
    assert pairs(tamis.spark.match(spark.range(13).selectExpr("id", "id AS price"), books, keep=["price"]).collect()) == {
        (10, "bob"), (11, "bob"), (12, "bob"),
    }  # fmt: skip
    # Beside other columns, a map is an object and a list of structs is a list of objects, as in every table.
    rules = [(1, "attributes.price = 12 AND shop = 'x'"), (2, "entries.value = 12"), (3, "price = 12")]
    subscriptions = spark.createDataFrame(rules, "id int, expression string")
    assert pairs(tamis.spark.match(maps, subscriptions).collect()) == {(0, 1)}
    assert pairs(tamis.spark.match(lists, subscriptions).collect()) == {(0, 2)}
    python = tamis.Matcher()
    python.add_many([1, 2, 3], [text for _, text in rules])
    for events, expected in ((maps, [1]), (lists, [2])):
        assert python.match_batch(events.toArrow())["subscription"].to_pylist() == expected
        assert "price" not in {row.attribute for row in tamis.spark.statistics(events).collect()}


def test_columns_without_predicates_are_not_read(spark: SparkSession, books: str) -> None:
    odd = ["X'FF' AS raw", "make_interval(1) AS span", "array(map(1, X'00')) AS maps"]
    events = spark.range(1).selectExpr("id", "12 AS price", *odd, "timestamp_micros(571000000000000000) AS at")
    assert pairs(tamis.spark.match(events, books).collect()) == {(0, "bob")}
    assert tamis.spark.wrong_events(events, books).collect() == []
    rules = [(1, "price = 12 AND genre IS NULL"), (2, "at > DATE '2000-01-01'"), (3, "maps.x = 1")]
    subscriptions = spark.createDataFrame(rules, "id int, expression string")
    (wrong,) = tamis.spark.wrong_events(events, subscriptions).collect()
    assert wrong.reason == "attribute 'at': a timestamp is not within the years 1 to 9999"
    assert tamis.spark.match(events, subscriptions, skip_wrong=True).count() == 0
    assert pairs(tamis.spark.match(events.drop("at"), subscriptions).collect()) == {(0, 1)}
    asking = spark.createDataFrame([(1, "raw = 'x'")], "id int, expression string")
    with pytest.raises(tamis.FrameError, match="column 'raw' of events, binary, has no meaning as a value"):
        tamis.spark.match(events, asking)
    (wrong,) = tamis.spark.wrong_events(events, asking).collect()
    assert wrong.reason.startswith("attribute 'raw': binary is not a value of the language")
    asking = spark.createDataFrame([(1, "span = 'x'")], "id int, expression string")
    with pytest.raises(tamis.FrameError, match="Spark cannot hand over the column 'span'"):
        tamis.spark.match(events, asking)


def test_subscriptions_without_an_index(spark: SparkSession, events: DataFrame) -> None:
    subscriptions = frame(spark, BOOKS, SCHEMA)
    assert pairs(tamis.spark.match(events, subscriptions, "number").collect()) == PAIRS
    wrong = frame(spark, [*BOOKS, {"id": "eve", "expression": "price <"}], SCHEMA)
    with pytest.raises(
        tamis.FrameError, match=r"(?s)1 subscriptions are wrong, such as 'eve': .*Hint: tamis.spark.build"
    ):
        tamis.spark.match(events, wrong, "number")


def test_the_folder_of_an_index_for_one_call(spark: SparkSession, events: DataFrame, tmp_path: Path) -> None:
    rows = frame(spark, BOOKS, "id string, expression string")
    expected = pairs(tamis.spark.match(events, rows, "number").collect())
    try:
        spark.conf.set("spark.tamis.folder", f"file://{tmp_path}")
        assert pairs(tamis.spark.match(events, rows, "number").collect()) == expected
        assert [path.name[:6] for path in tmp_path.iterdir()] == ["tamis-"]
        spark.conf.set("spark.tamis.folder", str(tmp_path / "none"))
        with pytest.raises(tamis.OptionError, match=r"spark\.tamis\.folder cannot be written"):
            tamis.spark.match(events, rows, "number")
    finally:
        spark.conf.unset("spark.tamis.folder")


def test_an_event_id_may_repeat_and_may_be_of_any_type(spark: SparkSession, books: str) -> None:
    rows = [(bytearray(b"a"), 15), (bytearray(b"a"), 25)]
    found = tamis.spark.match(spark.createDataFrame(rows, "key binary, price int"), books, "key")
    assert sorted((bytes(row.key), row.subscription) for row in found.collect()) == [(b"a", "bob"), (b"a", "bob")]


def test_the_id_is_an_attribute_too(spark: SparkSession, tmp_path: Path) -> None:
    tamis.spark.build(frame(spark, [{"id": 1, "expression": "id > 5"}], "id int, expression string"), tmp_path)
    found = tamis.spark.match(spark.range(8), tmp_path)
    assert pairs(found.collect()) == {(6, 1), (7, 1)}
    assert found.schema["subscription"].dataType.simpleString() == "bigint"


def test_wrong_subscriptions_are_returned_with_reasons(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        *BOOKS,
        {"id": "eve", "expression": "price <", "tag": "e"},
        {"id": None, "expression": "price < 1"},
        {"id": "fay", "expression": "a = 1"},
        {"id": "fay", "expression": "a = 2"},
        {"id": "gus", "expression": None},
        {"id": "hal", "expression": "price = ANY (SELECT price FROM history)", "weight": 0.0},
        {"id": "ida", "expression": "a = 1", "weight": float("nan")},
    ]
    rows = [{"weight": 0.0, **row} for row in rows]
    report = tamis.spark.build(frame(spark, rows, SCHEMA), tmp_path, shards=2)
    assert (report.subscriptions, report.rejected) == (4, 7)
    reasons = [(row.id, row.reason, row.tag) for row in report.rejections.collect()]
    assert sorted(str(identifier) for identifier, _, _ in reasons) == ["None", "eve", "fay", "fay", "gus", "hal", "ida"]
    by_id = {identifier: (reason, tag) for identifier, reason, tag in reasons}
    assert by_id["fay"] == ("2 rows have the id 'fay'", None)
    assert by_id[None][0] == "id is null"
    assert by_id["eve"][1] == "e"
    assert "line 1, column" in by_id["eve"][0]
    assert "null" in by_id["gus"][0]
    assert "weight" in by_id["ida"][0]
    found = tamis.spark.match(spark.createDataFrame([(1, 12)], "id int, price int"), tmp_path)
    assert pairs(found.collect()) == {(1, "bob")}


@pytest.mark.parametrize("name", ["my index", "my[1]index", "100%é#x?{a}"])
def test_a_folder_may_have_any_name(spark: SparkSession, tmp_path: Path, name: str) -> None:
    report = tamis.spark.build(frame(spark, [{"id": "a", "expression": "a = 1"}, {"id": "b", "expression": "("}], SCHEMA),
                               (tmp_path / name).as_uri(), shards=1)  # fmt: skip
    assert [row.id for row in report.rejections.collect()] == ["b"]
    assert [row.id for row in tamis.spark.rejections(spark, tmp_path / name).collect()] == ["b"]
    found = tamis.spark.match(spark.createDataFrame([(1, 1)], "id int, a int"), tmp_path / name)
    assert pairs(found.collect()) == {(1, "a")}


def test_only_wrong_subscriptions_give_an_empty_index(spark: SparkSession, tmp_path: Path) -> None:
    report = tamis.spark.build(frame(spark, [{"id": "a", "expression": "("}], SCHEMA), tmp_path)
    assert (report.subscriptions, report.rejected) == (0, 1)
    found = tamis.spark.match(spark.range(3), tmp_path)
    assert found.collect() == []
    assert tamis.spark.match(spark.range(3), tmp_path, counts=True).collect() == []


def test_validity(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "always", "expression": "a = 1", "weight": 1.0},
        {"id": "from", "expression": "a = 1", "weight": 2.0, "valid_from": datetime(2026, 1, 2)},
        {"id": "until", "expression": "a = 1", "weight": 3.0, "valid_until": datetime(2026, 1, 2)},
        {
            "id": "between",
            "expression": "a = 1",
            "weight": 4.0,
            "valid_from": datetime(2026, 1, 1),
            "valid_until": datetime(2026, 1, 3),
        },
    ]
    schema = "id string, expression string, weight double, valid_from timestamp, valid_until timestamp"
    tamis.spark.build(frame(spark, rows, schema), tmp_path, shards=2)
    days = [(0, datetime(2025, 12, 31)), (1, datetime(2026, 1, 1)), (2, datetime(2026, 1, 2)), (9, None)]
    events = spark.createDataFrame([(number, 1, when) for number, when in days], "id int, a int, happened timestamp")
    found = tamis.spark.match(events, tmp_path, time="happened", attributes=["a"])
    assert pairs(found.collect()) == {
        (0, "always"), (0, "until"),
        (1, "always"), (1, "until"), (1, "between"),
        (2, "always"), (2, "from"), (2, "between"),
        (9, "always"),
    }  # fmt: skip
    best = tamis.spark.match(events, tmp_path, time="happened", attributes=["a"], k=1)
    assert pairs(best.collect()) == {(0, "until"), (1, "between"), (2, "between"), (9, "always")}
    # A date is its midnight in UTC.
    dated = events.selectExpr("id", "a", "date(happened) AS day")
    assert pairs(tamis.spark.match(dated, tmp_path, time="day").collect()) == pairs(found.collect())
    for wrong in ("string(happened)", "id", "double(id)"):
        with pytest.raises(
            tamis.FrameError, match="'w' says when events happened and must be a timestamp or a date, not"
        ):
            tamis.spark.match(events.selectExpr("id", f"{wrong} AS w"), tmp_path, time="w")
    now = tamis.spark.match(events.where("id = 0"), tmp_path, attributes=["a"])
    assert pairs(now.collect()) == {(0, "always"), (0, "from")}


def test_statistics_of_past_events_plan_the_subscriptions(spark: SparkSession, tmp_path: Path) -> None:
    subscriptions = [{"id": number, "expression": f"a = {number % 2} AND b = {number}"} for number in range(200)]
    before = spark.range(3000).selectExpr("id AS number", "map('a', cast(id % 2 AS int), 'b', 0) AS event")
    schema = "id int, expression string"
    tamis.spark.build(frame(spark, subscriptions, schema), tmp_path, events=before, event_id="number")
    (segment,) = tmp_path.glob("segments/*.tamis")
    assert "b = " in str(tamis.load(segment).plan(1))


def test_a_damaged_or_missing_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    tamis.spark.build(frame(spark, BOOKS, SCHEMA), tmp_path, shards=1)
    (columns,) = (tmp_path / "segments").glob("*.arrow")
    whole = columns.read_bytes()
    events = spark.createDataFrame([(1, 12)], "id int, price int")
    columns.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Exception, match=rf"{columns.name} is damaged"):
        tamis.spark.match(events, tmp_path).collect()
    columns.unlink()
    with pytest.raises(Exception, match=rf"does not see .*{columns.name}"):
        tamis.spark.match(events, tmp_path).collect()


@pytest.mark.parametrize("kind", ["timestamp_ntz", "date"])
def test_validity_without_a_zone_is_utc(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows = spark.createDataFrame([("s", "a = 1")], "id string, expression string")
        rows = rows.selectExpr("*", f"CAST('2026-01-01' AS {kind}) AS valid_from")
        tamis.spark.build(rows, tmp_path, shards=1)
        events = spark.createDataFrame([(0, 1, "2025-12-31T23:59:59Z"), (1, 1, "2026-01-01T00:00:00Z")],
                                       "id int, a int, at string")  # fmt: skip
        events = events.selectExpr("id", "a", "CAST(at AS timestamp) AS at")
        assert pairs(tamis.spark.match(events, tmp_path, time="at", attributes=["a"]).collect()) == {(1, "s")}
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))


@pytest.mark.parametrize("seed", few_of([0, 1], [0]))
def test_every_kind_of_value_and_operator(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    batch = random_batch(seed, expressions=100, events=60)
    table = event_table(batch.events)
    subscriptions = pa.table({"id": pa.array(range(100)), "expression": list(map(str, batch.expressions))})
    events = spark.createDataFrame(table.append_column("event id", pa.array(range(60))))
    report = tamis.spark.build(spark.createDataFrame(subscriptions), tmp_path, shards=2, events=events)
    assert report.rejected == 0
    found = tamis.spark.match(events.repartition(3), tmp_path, "event id", attributes=table.column_names)
    truths = ask(Spark(spark), batch).truths  # Spark's own
    truth = {(row, number) for number, each in enumerate(truths) for row, true in enumerate(each) if true}
    assert len(truth) > 500
    assert pairs(found.collect()) == truth


@pytest.mark.parametrize("form", ["list", "map"])
def test_every_kind_of_value_in_other_forms(spark: SparkSession, tmp_path: Path, form: str) -> None:
    batch = random_batch(5, expressions=100, events=60)
    subscriptions = pa.table({"id": pa.array(range(100)), "expression": list(map(str, batch.expressions))})
    column = entry_column(batch.events, as_map=form == "map")
    events = spark.createDataFrame(pa.table({"event id": pa.array(range(60)), "event": column}))
    tamis.spark.build(spark.createDataFrame(subscriptions), tmp_path, shards=2)
    found = tamis.spark.match(events.repartition(3), tmp_path, "event id")
    truths = ask(Spark(spark), batch).truths  # Spark's own
    truth = {(row, number) for number, each in enumerate(truths) for row, true in enumerate(each) if true}
    assert len(truth) > 500
    assert pairs(found.collect()) == truth


def test_decimals(spark: SparkSession) -> None:
    """Up to 15 digits they are compared as Spark compares them."""
    events = spark.range(300).selectExpr(
        "id", "cast(id / 100 - 1 AS decimal(10, 2)) AS d", "cast(id AS decimal(20, 0)) AS w"
    )
    conditions = ["d < 0.1", "d = 0.35", "d >= 1.15 AND d <> 1.2", "d IN (0.01, 0.29, 1)", "w BETWEEN 7 AND 9"]
    rules = spark.createDataFrame(list(enumerate(conditions)), "id long, expression string")
    truth = {(row.id, number) for number, text in enumerate(conditions) for row in events.where(text).collect()}
    assert len(truth) > 100
    assert pairs(tamis.spark.match(events, rules).collect()) == truth


@pytest.mark.parametrize("shape", few_of(WORKLOADS, ["alerts", "dense", "detection", "wide-12-range"]))
def test_every_workload(spark: SparkSession, tmp_path: Path, shape: str) -> None:
    workload = generate(preset(shape, subscriptions=80, **WORKLOADS[shape]))
    subscriptions = workload.subscriptions()
    # The answers of Spark's SQL, for a table with a column for each attribute.
    engine = Spark(spark)
    rows = pa.array(range(30))
    engine.load(workload.events(30, wide=True).append_column("row", rows))
    truths = engine.truths([to_sql(expression, "spark") for expression in expressions_of(subscriptions)])
    truth = {(row, number) for number, each in enumerate(truths) for row, true in enumerate(each) if true}
    assert truth
    tamis.spark.build(spark.createDataFrame(subscriptions), tmp_path, shards=2)
    for wide in (True, False):
        events = spark.createDataFrame(workload.events(30, wide=wide).append_column("event id", rows))
        assert pairs(tamis.spark.match(events, tmp_path, "event id").collect()) == truth, f"wide: {wide}"


def test_errors_of_frames_are_raised_at_once(
    spark: SparkSession, events: DataFrame, books: str, tmp_path: Path
) -> None:
    def refused(message: str, call: Any) -> None:
        with pytest.raises((tamis.FrameError, tamis.OptionError, tamis.IndexFolderError), match=message):
            call()

    match: Any = tamis.spark.match
    build = tamis.spark.build
    refused("events have no column 'id'; they have: number, price", lambda: match(events, books))
    refused("have no column 'size'", lambda: match(events, books, "number", attributes=["size"]))
    refused("have no column 'size'", lambda: match(events, books, "number", keep=["size"]))
    refused(
        r"`keep` must be a list of columns. Hint: keep=\['shop'\]", lambda: match(events, books, "number", keep="shop")
    )
    refused(
        "no column 'owner' to carry; they have: tag, expression, weight",
        lambda: match(events, books, "number", carry=["owner"]),
    )
    refused("k is", lambda: match(events, books, "number", k=0))
    refused("there is no index at", lambda: match(events, tmp_path / "none", "number"))
    for memory in ("4g", 0, -1, 1.5, True):
        refused(
            "`memory` must be a number of bytes",
            lambda memory=memory: match(events, books, memory=memory),
        )
    refused("`version` must be the number of a version", lambda: match(events, books, "number", version="1"))
    refused("`event_id` must be the name of a column, not None", lambda: match(events, books, None))
    refused("`time` must be the name of a column, not 5", lambda: match(events, books, "number", time=5))
    refused("has no version 7; it has: 1", lambda: match(events, books, "number", version=7))
    named = events.withColumnRenamed("shop", "tag")
    refused("two columns 'tag'", lambda: match(named, books, "number", keep=["tag"], carry=["tag"]))
    shouted = events.withColumnRenamed("shop", "Subscription")
    refused("two columns 'Subscription'", lambda: match(shouted, books, "number", keep=["Subscription"]))
    clash = spark.createDataFrame([(1, 2, 3)], "number int, price int, PRICE int")
    refused("does not tell the columns 'price' and 'PRICE' apart. Hint", lambda: match(clash, books, "number"))
    binary = events.selectExpr("number", "cast(genre AS binary) AS genre", "price")
    refused("column 'genre' of events, binary, has no meaning", lambda: match(binary, books, "number"))
    refused("need the columns 'id' and either", lambda: build(events, tmp_path))
    refused("shards must be 'auto' or a number", lambda: build(frame(spark, BOOKS, SCHEMA), tmp_path, shards=0))
    numbers = spark.createDataFrame([(1.5, "a = 1")], "id double, expression string")
    refused("strings or whole numbers, not double", lambda: build(numbers, tmp_path))
    refused("none://x/y cannot be opened", lambda: build(frame(spark, BOOKS, SCHEMA), "none://x/y"))
    for name in ("Reason", "change"):
        taken = frame(spark, BOOKS, SCHEMA).withColumnRenamed("tag", name)
        refused(f"a column is called '{name}', but", partial(build, taken, tmp_path))
    assert list(tmp_path.iterdir()) == []
