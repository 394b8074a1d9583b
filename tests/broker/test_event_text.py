"""Stored events come back equal."""

from __future__ import annotations

import array
import json
import math
from collections import UserList, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.broker.event_text import event_text, read_event
from tamis.errors import BrokerError, EventError
from tamis.language.event import Refused, flatten

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.decimals(allow_nan=False),
    st.binary(),
    st.uuids(),
    st.builds(tamis.Interval, st.integers(-5, 0), st.floats(0, 9)),
)
_MEMBERS = st.recursive(
    _SCALARS, lambda inner: st.frozensets(inner, max_size=3) | st.tuples(inner, inner), max_leaves=6
)
"""What a set can hold."""
_NAMES = st.text(max_size=3) | st.sampled_from(["$date", "$object", "$tuple", "$set", "a"])
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_NAMES, inner, max_size=3)
        | st.tuples(inner, inner)
        | st.sets(_MEMBERS, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(_NAMES, _VALUES, max_size=4))
def test_any_event_comes_back_equal(event: dict[str, Any]) -> None:
    text = event_text(event)
    assert read_event(text) == event
    assert isinstance(json.loads(text), dict)
    text.encode()  # SQLite stores UTF-8


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (15, "15"),
        ("é", '"é"'),
        (datetime(2026, 11, 18, 9, 30), '{"$timestamp":"2026-11-18T09:30:00"}'),
        (date(2026, 11, 18), '{"$date":"2026-11-18"}'),
        (Decimal("9.90"), '{"$decimal":"9.90"}'),
        (tamis.Interval(20, 30), '{"$interval":[20,30]}'),
        (b"\x00\xff", '{"$bytes":"AP8="}'),
        (UUID(int=1), '{"$uuid":"00000000-0000-0000-0000-000000000001"}'),
        (math.inf, '{"$number":"inf"}'),
        ((1, 2), '{"$tuple":[1,2]}'),
        ({"$date": "my own"}, '{"$object":{"$date":"my own"}}'),
        ("\ud800", '"\\ud800"'),
    ],
)
def test_a_value_has_a_readable_form(value: Any, text: str) -> None:
    assert event_text({"a": value}) == f'{{"a":{text}}}'
    assert read_event(event_text({"a": value})) == {"a": value}


def test_a_zone_is_kept() -> None:
    at = datetime(2026, 11, 18, 9, 30, tzinfo=timezone(timedelta(hours=2)))
    back = read_event(event_text({"at": at}))["at"]
    assert (back, back.utcoffset()) == (at, timedelta(hours=2))


def test_nan_comes_back_as_nan() -> None:
    assert math.isnan(read_event(event_text({"a": math.nan}))["a"])


def test_foreign_numbers_become_plain() -> None:
    class Genre(StrEnum):
        CRIME = "crime"

    event = {"a": np.int64(3), "b": np.float32(0.5), "c": Genre.CRIME, "d": np.array([1, 2]), "e": np.bool_(True)}
    assert read_event(event_text(event)) == {"a": 3, "b": 0.5, "c": "crime", "d": [1, 2], "e": True}
    times = {"t": pd.Timestamp("2026-11-18 09:30"), "n": np.datetime64("2026-11-18T09:30"), "x": pd.NaT, "y": pd.NA}
    at = datetime(2026, 11, 18, 9, 30)
    assert read_event(event_text(times)) == {"t": at, "n": at, "x": None, "y": None}


_NANOSECONDS = "2026-11-18T09:30:00.123456789"


@pytest.mark.parametrize(
    "value",
    [
        pd.Timestamp(_NANOSECONDS),
        pd.Timestamp(_NANOSECONDS, tz="UTC"),
        np.datetime64(_NANOSECONDS),
        np.array(_NANOSECONDS, "datetime64[ns]"),
        [{"at": np.array([_NANOSECONDS], "datetime64[ns]")}],
        pd.Series([pd.Timestamp(_NANOSECONDS)]).to_numpy(),
    ],
    ids=repr,
)
def test_nanoseconds_cannot_be_stored(value: Any) -> None:
    with pytest.raises(
        EventError, match=r"nanoseconds: .*09:30:00\.123456789.*Hint: round it to microseconds"
    ) as caught:
        event_text({"good": 1, "at": value})
    assert caught.value.attribute == "at"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_whole_microseconds_come_back_equal(unit: Any) -> None:
    texts = {"s": "09:30:01", "ms": "09:30:01.25", "us": "09:30:01.123456", "ns": "09:30:01.123456"}
    at = np.datetime64(f"2026-11-18T{texts[unit]}", unit)
    expected = datetime.fromisoformat(f"2026-11-18T{texts[unit]}")
    event = {"numpy": at, "array": np.array([at]), "pandas": pd.Timestamp(at), "none": np.datetime64("NaT", unit)}
    assert read_event(event_text(event)) == {"numpy": expected, "array": [expected], "pandas": expected, "none": None}


def test_a_table_with_nanoseconds_is_refused() -> None:
    table = pa.table({"at": pa.array([0, 1000, 1001], pa.timestamp("ns", "UTC"))})
    with tamis.open(":memory:") as broker:
        broker.publish_many(table[:2])
        with pytest.raises(EventError, match="nanoseconds") as caught:
            broker.publish_many(table)
        assert (caught.value.row, broker.stats()["events"]) == (2, 2)


@dataclass
class Book:
    title: str
    prices: list[int]


def test_dataclasses_and_series_are_stored_as_objects() -> None:
    assert read_event(event_text(Book("x", [1]))) == {"title": "x", "prices": [1]}
    assert read_event(event_text({"book": Book("x", [1])})) == {"book": {"title": "x", "prices": [1]}}
    assert read_event(event_text(pd.Series({"price": 15}))) == {"price": 15}


@dataclass(frozen=True)
class Point:
    x: int


class Numbers(list[int]):
    """A list that a set can hold."""

    def __hash__(self) -> int:  # type: ignore[override]
        return len(self)


@dataclass
class Shelf(list[int]):
    """A list with fields: the language takes it as an object."""

    name: str


@pytest.mark.parametrize(
    "value", [{frozenset([1])}, {(1, frozenset([2, (3,)]))}, frozenset([frozenset([frozenset()])]), [{frozenset("ab")}]]
)
def test_sets_within_sets_come_back_equal(value: Any) -> None:
    assert read_event(event_text({"a": value})) == {"a": value}


@pytest.mark.parametrize("member", [Point(1), (1, Point(2)), frozenset([Point(3)]), Numbers([1]), (Numbers(),)])
def test_a_set_of_objects_or_lists_cannot_be_stored(member: Any) -> None:
    with pytest.raises(EventError, match="a set cannot be stored if objects or lists are in it") as caught:
        event_text({"good": 1, "bad": {member}})
    assert caught.value.attribute == "bad"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        "5",
        '["$date"]',
        '{"a":{"$set":[[1]]}}',
        '{"a":{"$set":5}}',
        '{"a":{"$date":"yesterday"}}',
        '{"a":{"$date":5}}',
        '{"a":{"$decimal":"x"}}',
        '{"a":{"$decimal":[]}}',
        '{"a":{"$bytes":"?"}}',
        '{"a":{"$uuid":7}}',
        '{"a":{"$interval":[1]}}',
        '{"a":{"$interval":[2,1]}}',
        '{"a":{"$interval":{}}}',
        '{"a":{"$object":[]}}',
        '{"a":' + "9" * 5000 + "}",
        '{"a":' + "[" * 100_000,
        None,
    ],
    ids=lambda text: repr(text)[:30],
)
def test_a_damaged_text_is_an_error_that_says_what_to_do(text: Any) -> None:
    with pytest.raises(BrokerError, match="Hint: the tables are damaged"):
        read_event(text)


@pytest.mark.parametrize(
    "value",
    [
        memoryview(b"ab"),
        deque([1]),
        range(3),
        array.array("i", [1]),
        UserList([1]),
        {"a": 1}.keys(),
        iter([1]),
        pd.Series([1]),
        pd.Series({"a": 1}),
        pd.Index([1]),
        pd.Categorical(["a"]),
        np.ma.masked_array([1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_language_does_not_take_as_a_list_is_not_stored_as_one(value: Any) -> None:
    assert isinstance(flatten({"bad": value})["bad"], Refused)
    with pytest.raises(EventError, match="cannot be stored") as caught:
        event_text({"good": 1, "bad": value})
    assert caught.value.attribute == "bad"


@pytest.mark.parametrize(
    "value",
    [
        [1, None, "a"],
        (1, (2, 3)),
        {1},
        frozenset(["a"]),
        {(1, frozenset([2]))},
        np.array([[1, 2], [3, 4]]),
        np.array(5),
        np.array(["2026-11-18"], dtype="datetime64[ns]"),
        [np.float32(0.1)],
        Point(1),
        [Point(1), Point(2)],
        Shelf("crime"),
        pd.Timestamp("2026-11-18 09:30:00.123456"),
        Decimal("0.1"),
        Decimal("NaN"),
        10**400,
    ],
    ids=repr,
)
def test_the_language_takes_a_stored_value_as_the_published_one(value: Any) -> None:
    assert flatten(read_event(event_text({"a": value}))) == flatten({"a": value})


def test_a_bytearray_comes_back_as_bytes() -> None:
    back = read_event(event_text({"a": bytearray(b"\x00\xff")}))["a"]
    assert (type(back), back) == (bytes, b"\x00\xff")


@pytest.mark.parametrize("value", [10**5000, [1, {"b": 10**5000}]], ids=["plain", "nested"])
def test_an_integer_that_python_does_not_write_is_an_error(value: Any) -> None:
    with pytest.raises(EventError, match="an integer has more than 4300 digits") as caught:
        event_text({"good": 1, "bad": value})
    assert caught.value.attribute == "bad"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "object cannot be stored"),
        (timedelta(1), "timedelta cannot be stored"),
        ({1: 2}, "a name within an object must be a string"),
        ([[object()]], "object cannot be stored"),
    ],
)
def test_what_cannot_be_stored_is_an_error_that_names_the_attribute(value: Any, message: str) -> None:
    with pytest.raises(EventError, match=message) as caught:
        event_text({"good": 1, "bad": value})
    assert caught.value.attribute == "bad"


def test_an_event_that_holds_itself_is_an_error() -> None:
    inner: list[Any] = []
    inner.append(inner)
    with pytest.raises(EventError, match="nested deeper"):
        event_text({"a": inner})


@pytest.mark.parametrize("event", [[1], 5, "text", {1: 2}])
def test_what_is_not_an_event_is_an_error(event: Any) -> None:
    with pytest.raises(EventError):
        event_text(event)
