"""Stored events come back equal."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.broker.event_text import event_text, read_event
from tamis.errors import EventError

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
_NAMES = st.text(max_size=3) | st.sampled_from(["$date", "$object", "$tuple", "$set", "a"])
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_NAMES, inner, max_size=3)
        | st.tuples(inner, inner)
        | st.sets(st.integers(), max_size=3)
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


@dataclass
class Book:
    title: str
    prices: list[int]


def test_dataclasses_and_series_are_stored_as_objects() -> None:
    assert read_event(event_text(Book("x", [1]))) == {"title": "x", "prices": [1]}
    assert read_event(event_text({"book": Book("x", [1])})) == {"book": {"title": "x", "prices": [1]}}
    assert read_event(event_text(pd.Series({"price": 15}))) == {"price": 15}


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
