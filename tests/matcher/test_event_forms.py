"""Events as dictionaries or as Arrow in many forms have the same matches."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tests.random_cases import RandomCases

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("each_index")]

MICROSECOND = datetime(2026, 11, 14, 10, 0, 0, 1)


def matcher_of(*expressions: str) -> tamis.Matcher:
    matcher = tamis.Matcher()
    matcher.add_many(range(len(expressions)), expressions)
    return matcher


def found(matcher: tamis.Matcher, events: Any) -> list[tuple[int, Any]]:
    result = matcher.match_batch(events)
    assert result.schema.names == ["event", "subscription"]
    assert result.schema.field("event").type == pa.int64()
    return sorted(zip(result["event"].to_pylist(), result["subscription"].to_pylist(), strict=True))


def expected(matcher: tamis.Matcher, events: Any) -> list[tuple[int, Any]]:
    return sorted((row, each) for row, event in enumerate(events) for each in matcher.match(event))


COLUMNS: list[tuple[pa.Array, str]] = [
    (pa.array([1, None, 3], pa.int8()), "a >= 3"),
    (pa.array([1, None, 3], pa.uint32()), "a < 2"),
    (pa.array([2**63 - 1, None, 3], pa.uint64()), "a = 9223372036854775807"),
    (pa.array([2**53 + 1, 2**53, None]), "a = 9007199254740993"),
    (pa.array([1.5, math.nan, None], pa.float64()), "a IS NOT NULL"),
    (pa.array([0.1, 0.5, None], pa.float32()), "a = 0.5"),
    (pa.array([np.float16(0.5), None, np.float16(2)], pa.float16()), "a = 2"),
    (pa.array([Decimal("19.99"), None, Decimal("20.00")], pa.decimal128(10, 2)), "a = 19.99"),
    (pa.array([Decimal(9007199254740993), None, Decimal(4)], pa.decimal128(16, 0)), "a = 9007199254740993"),
    (pa.array([Decimal("0.1"), None, Decimal(4)], pa.decimal256(60, 20)), "a = 0.1"),
    (pa.array([True, None, False]), "a"),
    (pa.array([True, None, False]), "NOT a"),
    (pa.array(["x", None, "yy"]), "a LIKE 'y%'"),
    (pa.array(["x", None, "yy"], pa.large_string()), "a <> 'x'"),
    (pa.array(["x", None, "yy"], pa.string_view()), "a = 'x'"),
    (pa.array(["É", None, "yé"]).dictionary_encode(), "a ILIKE '%é'"),
    (pa.array([date(2026, 11, 14), None, date(2026, 11, 15)]), "a > TIMESTAMP '2026-11-14 10:00:00'"),
    (pa.array([date(2026, 11, 14), None, date(2026, 11, 15)], pa.date64()), "a = DATE '2026-11-14'"),
    (pa.array([MICROSECOND, None, MICROSECOND], pa.timestamp("us")), "a = TIMESTAMP '2026-11-14 10:00:00.000001'"),
    (pa.array([MICROSECOND, None, None], pa.timestamp("us", "Europe/Zurich")), "a > DATE '2026-11-14'"),
    (pa.array([1, None, 10**18], pa.timestamp("ns")), "a < DATE '1970-01-02'"),
    (pa.array([1, None, 10**9], pa.timestamp("s", "UTC")), "a < DATE '1970-01-02'"),
    (pa.array([1, None, 10**12], pa.timestamp("ms")), "a > DATE '1970-01-02'"),
    (pa.array([[1, 2], None, []], pa.list_(pa.int64())), "a = 2"),
    (pa.array([[1, None, 2], [None], []], pa.large_list(pa.int64())), "a IS NOT NULL"),
    (pa.array([[1, 2], None, [7, 7]], pa.list_(pa.int64(), 2)), "a > 6"),
    (pa.array([["a", "b"], ["c"], None], pa.list_view(pa.string())), "a <> 'c'"),
    (pa.nulls(3), "a IS NULL"),
]


@pytest.mark.parametrize(("column", "text"), COLUMNS, ids=lambda value: str(getattr(value, "type", value)))
def test_a_column_of_each_type(column: pa.Array, text: str) -> None:
    matcher = matcher_of(text, "a IS NULL", "NOT (a IS NULL)")
    plain = column.cast(pa.timestamp("us"), safe=False) if pa.types.is_timestamp(column.type) else column
    values = [
        value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value for value in plain.to_pylist()
    ]
    events = [{"a": value} for value in values]
    assert found(matcher, pa.table({"a": column})) == expected(matcher, events)
    sliced = pa.table({"a": pa.chunked_array([column.slice(1), column])}).slice(1)
    assert found(matcher, sliced) == expected(matcher, events[2:] + events)


def test_nanoseconds_are_cut_to_microseconds() -> None:
    matcher = matcher_of("a = TIMESTAMP '1970-01-01 00:00:00.000001'", "a < DATE '1970-01-01'")
    assert found(matcher, pa.table({"a": pa.array([1999, -1], pa.timestamp("ns"))})) == [(0, 0), (1, 1)]


NESTED = [
    {"user": {"name": "Ann", "geo": {"country": "CH"}}, "price": 5},
    {"user": {"name": "Bob", "geo": None}, "price": None},
    {"user": None, "price": 7},
]


def test_structs_are_flattened_to_dotted_names() -> None:
    matcher = matcher_of("user.geo.country = 'CH'", "user.name <> 'Ann'", "user.name IS NULL", "price > 5")
    assert found(matcher, pa.Table.from_pylist(NESTED)) == expected(matcher, NESTED) == [(0, 0), (1, 1), (2, 2), (2, 3)]


MIXED = [
    {"a": 1, "b": "x", "tags": ["p", "q"]},
    {"a": "1", "c": True},
    {},
    {"a": 2.5, "b": datetime(2026, 11, 14), "tags": "p"},
]
QUESTIONS = [
    "a = 1",
    "a = '1'",
    "a > 2",
    "b = 'x'",
    "b = DATE '2026-11-14'",
    "c",
    "tags = 'q'",
    "tags <> 'q'",
    "a IS NULL",
]

VARIANT = pa.struct(
    [
        ("integer", pa.int64()),
        ("number", pa.float64()),
        ("string", pa.string()),
        ("boolean", pa.bool_()),
        ("timestamp", pa.timestamp("us")),
    ]
)


def variant(value: Any) -> dict[str, Any]:
    field = {bool: "boolean", int: "integer", float: "number", str: "string", datetime: "timestamp"}[type(value)]
    return {field: value}


def entries(event: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, variant(value))
        for name, values in event.items()
        for value in (values if isinstance(values, list) else [values])
    ]


def test_a_single_map_column() -> None:
    matcher = matcher_of(*QUESTIONS)
    column = pa.array([entries(event) for event in MIXED], pa.map_(pa.string(), VARIANT))
    assert found(matcher, pa.table({"event": column})) == expected(matcher, MIXED)
    strings = pa.array([[("a", "1"), ("b", "x")], None, [], [("b", None)]], pa.map_(pa.string(), pa.string()))
    events = [{"a": "1", "b": "x"}, {}, {}, {"b": None}]
    assert found(matcher, pa.table({"anything": strings})) == expected(matcher, events)
    lists = pa.array([[("tags", ["p", "q"])], [("tags", [])]], pa.map_(pa.string(), pa.list_(pa.string())))
    assert found(matcher, pa.table({"e": lists})) == expected(matcher, [{"tags": ["p", "q"]}, {}])


def test_a_single_column_of_attribute_value_structs() -> None:
    matcher = matcher_of(*QUESTIONS)
    rows = [[{"attribute": name, "value": value} for name, value in entries(event)] for event in MIXED]
    kind = pa.list_(pa.struct([("attribute", pa.string()), ("value", VARIANT)]))
    assert found(matcher, pa.table({"event": pa.array(rows, kind)})) == expected(matcher, MIXED)
    numbers = pa.list_(pa.struct([("value", pa.float64()), ("attribute", pa.string())]))
    table = pa.table(
        {"e": pa.array([[{"attribute": "a", "value": 1.0}], None, [{"attribute": "a", "value": math.nan}]], numbers)}
    )
    assert found(matcher, table.slice(0, 2)) == expected(matcher, [{"a": 1.0}, {}])
    assert found(matcher, table.slice(2)) == expected(matcher, [{"a": None}])


def test_a_map_beside_other_columns_is_a_nested_object() -> None:
    matcher = matcher_of("labels.env = 'prod'", "size > 1")
    labels = pa.array([[("env", "prod")], [("env", "test")]], pa.map_(pa.string(), pa.string()))
    assert found(matcher, pa.table({"labels": labels, "size": [1, 2]})) == [(0, 0), (1, 1)]


def test_other_libraries_through_the_capsule_protocol() -> None:
    import duckdb
    import pandas as pd
    import polars as pl

    matcher = matcher_of("a > 1 AND b = 'x'", "b IS NULL")
    data: dict[str, list[Any]] = {"a": [1, 2, 3], "b": ["x", "x", None]}
    events = [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}, {"a": 3, "b": None}]
    assert found(matcher, pl.DataFrame(data)) == expected(matcher, events)
    assert found(matcher, pd.DataFrame(data)) == expected(matcher, events)
    assert found(matcher, duckdb.sql("SELECT * FROM (VALUES (1, 'x'), (2, 'x'), (3, NULL)) AS t(a, b)")) == expected(
        matcher, events
    )
    assert found(matcher, pa.RecordBatch.from_pylist(events)) == expected(matcher, events)
    assert found(matcher, pa.table(data).to_reader()) == expected(matcher, events)


def test_no_events_and_no_subscriptions() -> None:
    empty = tamis.Matcher()
    assert empty.match({"a": 1}) == []
    assert empty.match_batch([]).num_rows == 0
    assert empty.count_batch([{"a": 1}, {}]).tolist() == [0, 0]
    matcher = matcher_of("a = 1")
    assert matcher.match_batch([]).num_rows == 0
    assert matcher.match_batch(pa.table({"a": pa.array([], pa.int64())})).num_rows == 0
    assert matcher.count_batch(pa.table({})).tolist() == []


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (pa.table({"a": pa.array([b"x"])}), "event 0, attribute 'a': binary is not a value"),
        (pa.table({"a": pa.array([None, 1], pa.duration("s"))}), r"event 1, attribute 'a': duration\[s\] is not"),
        (pa.table({"a": pa.array([2**63], pa.uint64())}), "beyond 64 bits"),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "given twice"),
        (pa.table({"e": pa.array([[(1, 1)]], pa.map_(pa.int64(), pa.int64()))}), "must be strings"),
        (pa.table({"a": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())}), "not within the years 1 to 9999"),
        (pa.table({"a": pa.array([5, 2**60], pa.int64()).cast(pa.timestamp("s"))}), "event 1, .*not within the years"),
        (pa.table({"a": pa.array([-(2**63)], pa.int64()).cast(pa.timestamp("us"))}), "not within the years 1 to 9999"),
        (pa.table({"a": pa.array([2**60], pa.int64()).cast(pa.timestamp("us", "UTC"))}), "not within the years 1 to"),
        (pa.chunked_array([[1]]), "cannot be read as an Arrow table"),
        ({"a": 1}, "match\\(\\) takes a single event"),
        ("a = 1", "a list of mappings"),
        (5, "a list of mappings"),
        ([{"a": 1}, 5], "event 1"),
        ([{"a": 1}, {"a": object()}], "event 1, attribute 'a'"),
        ([{"a": [[b"x"]]}], "event 0, attribute 'a'"),
        ([{"a": 2**64}], "beyond 64 bits"),
        ([{"a": "\ud800"}], "lone surrogate"),
        ([{1: 2}], "name must be a string"),
    ],
)
def test_wrong_events_are_refused(events: Any, message: str) -> None:
    matcher = matcher_of("a = 1")
    with pytest.raises(tamis.TamisError, match=message):
        matcher.match_batch(events)
    with pytest.raises(tamis.TamisError, match=message):
        matcher.count_batch(events)


@pytest.mark.compiled
def test_random_events_as_dictionaries_and_as_arrow() -> None:
    """Both encoders get the same random values, if Arrow can hold them."""
    cases = RandomCases(11)
    matcher = tamis.Matcher()
    matcher.add_many(range(300), [cases.expression() for _ in range(300)])
    events = []
    for _ in range(150):
        event = cases.event()
        flat = {name: value if isinstance(value, list) else [value] for name, value in event.items()}
        events.append({n: [v for v in vs if not isinstance(v, tamis.Interval)] for n, vs in flat.items()})
    rows = [
        [
            {"attribute": name, "value": arrow_variant(value)}
            for name, values in event.items()
            for value in values
            if value is not None
        ]
        for event in events
    ]
    kind = pa.list_(pa.struct([("attribute", pa.string()), ("value", VARIANT)]))
    assert (
        found(matcher, pa.table({"event": pa.array(rows, kind)})) == expected(matcher, events) == found(matcher, events)
    )


def arrow_variant(value: Any) -> dict[str, Any]:
    if isinstance(value, datetime):
        return {"timestamp": value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value}
    if isinstance(value, date):
        return {"timestamp": datetime(value.year, value.month, value.day)}
    return variant(value)


def test_values_of_another_kind_than_predicates_need_are_counted() -> None:
    events: list[dict[str, Any]] = [
        {"a": "one", "b": 5, "c": 3, "d": 7},  # a and c
        {"a": 1, "c": "x", "e": 5},  # e lacks a string
        {"e": "x"},  # e lacks a number
        {"e": [1, "x"], "a": [1, "x"]},
        {"a": None, "c": []},
    ]
    one_by_one, table = (matcher_of("a = 1", "b IS NOT NULL", "c LIKE 'x%'", "e = 1 OR e = 'x'") for _ in range(2))
    for event in events:
        one_by_one.match(event)
    rows = [[{"attribute": name, "value": value} for name, value in entries(event)] for event in events[:4]]
    table.match_batch(
        pa.table({"event": pa.array(rows, pa.list_(pa.struct([("attribute", pa.string()), ("value", VARIANT)])))})
    )
    assert one_by_one.stats()["mismatched"] == table.stats()["mismatched"] == 2 + 1 + 1


LEFT_OUT = pa.array([True, False, False])


ODD_LISTS = [
    (
        pa.ListArray.from_arrays(pa.array([0, 1, 3, 4], pa.int32()), pa.array([1, 2, None, 1]), mask=LEFT_OUT),
        [[], [2], [1]],
    ),
    (pa.FixedSizeListArray.from_arrays(pa.array([1, 1, 2, 2, 1, 3]), 2, mask=LEFT_OUT), [[], [2], [1, 3]]),
    (
        pa.ListViewArray.from_arrays(pa.array([2, 0], pa.int32()), pa.array([1, 2], pa.int32()), pa.array([2, 1, 3])),
        [[3], [2, 1]],
    ),
]


@pytest.mark.parametrize(("column", "rows"), ODD_LISTS)
def test_lists_that_are_null_but_have_elements(column: pa.Array, rows: list[Any]) -> None:
    matcher = matcher_of("a = 1", "a = 2", "a = 3", "a IS NULL")
    events = [{"a": row} for row in rows]
    assert found(matcher, pa.table({"a": column})) == expected(matcher, events)
    assert found(matcher, pa.table({"a": column}).slice(1)) == expected(matcher, events[1:])


def test_maps_that_are_null_but_have_entries() -> None:
    matcher = matcher_of("a = 1", "b = 2", "c = 3")
    keys, items = pa.array(["a", "b", "c"]), pa.array([1, 2, 3])
    column = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), keys, items, mask=LEFT_OUT)
    assert found(matcher, pa.table({"e": column})) == [(1, 1), (2, 2)]
    assert found(matcher, pa.table({"e": column}).slice(2)) == [(0, 2)]


def test_strings_as_views_anywhere() -> None:
    """polars gives all strings, categories and lists of them as views."""
    import polars as pl

    matcher = matcher_of("a = 'x'", "a = 'y'", "s.a = 'x'")
    assert found(matcher, pl.DataFrame({"a": ["x", None, "y"]}, schema={"a": pl.Categorical})) == [(0, 0), (2, 1)]
    assert found(matcher, pl.DataFrame({"a": ["x"]}).with_columns(pl.col("a").cast(pl.Enum(["x"])))) == [(0, 0)]
    assert found(matcher, pl.DataFrame({"a": [["x", "y"], []]}, schema={"a": pl.List(pl.Categorical)})) == [
        (0, 0),
        (0, 1),
    ]
    assert found(
        matcher, pl.DataFrame({"e": [[{"attribute": "b", "value": "x"}, {"attribute": "a", "value": "y"}]]})
    ) == [(0, 1)]
    assert found(matcher, pl.DataFrame({"s": [{"a": "x"}, None], "t": [1, 2]})) == [(0, 2)]


def test_a_map_of_variants_beside_another_column() -> None:
    matcher = matcher_of("e.a = 1", "e.a = 'x'")
    column = pa.array([[("a", {"integer": 1})], [("a", {"string": "x"})]], pa.map_(pa.string(), VARIANT))
    assert found(matcher, pa.table({"e": column, "k": [1, 2]})) == [(0, 0), (1, 1)]


def test_a_list_of_variants_beside_another_column() -> None:
    """Structs with a field for every kind are values, all others are objects."""
    matcher = matcher_of("e = 1", "e = 'x'", "e.string = 'x'")
    rows = [[{"integer": 1}, {"string": "x"}], [{"string": "x"}]]
    assert found(matcher, pa.table({"e": pa.array(rows, pa.list_(VARIANT)), "k": [1, 2]})) == [(0, 0), (0, 1), (1, 1)]
    texts = pa.list_(pa.struct([("integer", pa.int64()), ("string", pa.string())]))
    assert found(matcher, pa.table({"e": pa.array(rows, texts), "k": [1, 2]})) == [(0, 2), (1, 2)]


def test_a_name_nested_and_dotted_but_only_once_per_row() -> None:
    matcher = matcher_of("b.c = 1")
    assert found(matcher, pa.table({"b": [{"c": 1}, {"c": None}], "b.c": [None, 1]})) == [(0, 0), (1, 0)]
    with pytest.raises(tamis.EventError, match=r"event 1, attribute 'b\.c': given twice"):
        matcher.match_batch(pa.table({"b": [{"c": None}, {"c": 1}], "b.c": [None, 1]}))


BROKEN = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
ENDS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([1, 2]))


def test_strings_that_are_not_utf8() -> None:
    matcher = matcher_of("a = 'x' OR a RLIKE 'x'", "a.e = 1")
    with pytest.raises(tamis.EventError, match="event 0, attribute 'a': a string is not UTF-8"):
        matcher.match_batch(pa.table({"a": BROKEN}))
    # No predicate can have it as the name of an attribute.
    assert found(matcher, pa.table({"m": pa.MapArray.from_arrays([0, 1], BROKEN, pa.array([1]))})) == []


def test_run_ends_and_dictionaries_of_nothing() -> None:
    matcher = matcher_of("a = 2", "a IS NULL")
    assert found(matcher, pa.table({"a": ENDS})) == [(1, 0)]
    inside = pa.StructArray.from_arrays([ENDS], names=["e"], mask=pa.array([True, False]))
    assert found(matcher_of("a.e = 2"), pa.table({"a": inside})) == [(1, 0)]
    assert found(matcher, pa.table({"a": pa.array([None]).dictionary_encode()})) == [(0, 1)]


def test_a_name_with_the_character_between_joined_names_is_no_other_form() -> None:
    matcher = matcher_of("a = 1 AND b = 2")
    for _ in range(3):  # From the second time on, an event has a form.
        assert matcher.match({"a": 1, "b": 2, "c": 3}) == [0]
    assert matcher.match({"a\0b": 1, "c": 2}) == []
