"""The flat form of events."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import EventError, TamisError
from tamis.language.event import MAX_NESTING, flatten, kind_of_value
from tamis.language.values import INT64_MAX, INT64_MIN, Interval
from tests.language.close_cases import events


class Colour(StrEnum):
    RED = "red"


class OldColour(str, Enum):  # noqa: UP042 - the older kind of str enumeration, whose hash is that of its name
    RED = "colour"


class Frozen(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, inner: dict[str, Any]) -> None:
        self.inner = inner

    def __getitem__(self, key: str) -> Any:
        return self.inner[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)


@pytest.mark.parametrize(
    ("event", "flat"),
    [
        ({}, {}),
        ({"a": 1}, {"a": (1,)}),
        ({"a": 1.5, "b": "x", "c": True}, {"a": (1.5,), "b": ("x",), "c": (True,)}),
        ({"a": "é"}, {"a": ("é",)}),
        ({"é": 1}, {"é": (1,)}),
        ({"user": {"geo": {"country": "fr"}}}, {"user.geo.country": ("fr",)}),
        ({"user.geo.country": "fr"}, {"user.geo.country": ("fr",)}),
        ({"user": {"geo.country": "fr"}}, {"user.geo.country": ("fr",)}),
        ({"a": {"b": 1}, "a.c": 2, "d": 3}, {"a.b": (1,), "a.c": (2,), "d": (3,)}),
        ({"a": {}}, {}),
        ({"a": {"b": {}}}, {}),
        ({"a": None}, {}),
        ({"a": float("nan")}, {}),
        ({"a": []}, {}),
        ({"a": [None, float("nan")]}, {}),
        ({"a": [1, None, 2]}, {"a": (1, 2)}),
        ({"a": (1, "x")}, {"a": (1, "x")}),
        ({"a": {1}}, {"a": (1,)}),
        ({"a": frozenset(["x"])}, {"a": ("x",)}),
        ({"a": [1, 1]}, {"a": (1, 1)}),
        ({"a": Interval(1, 2)}, {"a": (Interval(1, 2),)}),
        ({"a": [Interval(1, 2), 7]}, {"a": (Interval(1, 2), 7)}),
        ({"a": INT64_MAX, "b": INT64_MIN}, {"a": (INT64_MAX,), "b": (INT64_MIN,)}),
        ({"a": float("inf")}, {"a": (float("inf"),)}),
        ({"a": date(2026, 11, 14)}, {"a": (date(2026, 11, 14),)}),
        ({"a": datetime(2026, 11, 14, 10)}, {"a": (datetime(2026, 11, 14, 10),)}),
        ({"a": datetime(2026, 11, 14, 10, tzinfo=UTC)}, {"a": (datetime(2026, 11, 14, 10),)}),
        (
            {"a": datetime(2026, 11, 14, 10, tzinfo=timezone(timedelta(hours=2)))},
            {"a": (datetime(2026, 11, 14, 8),)},
        ),
        ({"a": Decimal("1.5")}, {"a": (1.5,)}),
        ({"a": Decimal("NaN")}, {}),
        ({"a": Colour.RED}, {"a": ("red",)}),
        ({Colour.RED: 1}, {"red": (1,)}),
        ({"a": np.float64(1.5), "b": np.int32(3), "c": np.bool_(True)}, {"a": (1.5,), "b": (3,), "c": (True,)}),
        ({"a": np.float64("nan")}, {}),
        ({"a": np.array([1, 2])}, {"a": (1, 2)}),
        ({"a": np.array([1.5, np.nan])}, {"a": (1.5,)}),
        ({"a": np.array(["x", None], dtype=object)}, {"a": ("x",)}),
        ({"a": np.array([], dtype=float)}, {}),
        ({"a": np.array(5)}, {"a": (5,)}),
        (OrderedDict(a=OrderedDict(b=1)), {"a.b": (1,)}),
        (Frozen({"a": Frozen({"b": 1})}), {"a.b": (1,)}),
        # What is missing on one side is not given twice.
        ({"a": {"b": None}, "a.b": 2}, {"a.b": (2,)}),
        ({"a.b": 2, "a": {"b": None}}, {"a.b": (2,)}),
        ({"a.b": 2, "a": {"b": []}}, {"a.b": (2,)}),
        ({"a": 1, "a.b": 2}, {"a": (1,), "a.b": (2,)}),
    ],
)
def test_flatten(event: Mapping[str, Any], flat: dict[str, tuple[Any, ...]]) -> None:
    assert flatten(event) == flat


@pytest.mark.parametrize(
    "value", [1, 1.5, "x", True, np.float64(1.5), np.int64(3), np.str_("x"), Colour.RED, Decimal(2)]
)
def test_values_are_plain(value: object) -> None:
    [plain] = flatten({"a": value})["a"]
    assert type(plain) in (bool, int, float, str)


def test_names_are_plain() -> None:
    [name, nested] = flatten({OldColour.RED: 1, "a": {OldColour.RED: 2}})
    assert (type(name), type(nested)) == (str, str)
    assert flatten({OldColour.RED: 1})["colour"] == (1,)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([("a", 1)], "an event is a mapping from attributes to values, not list"),
        (None, "not NoneType"),
        ("a", "not str"),
        ({1: 2}, "name is a string, not 1"),
        ({None: 2}, "name is a string, not None"),
        ({"": 2}, "cannot be empty"),
        ({"a": {"": 2}}, "cannot be empty inside 'a'"),
        ({"a": {1: 2}}, "name is a string, not 1 inside 'a'"),
        ({"\ud800": 1}, "lone surrogate"),
        ({"a": {"\ud800": 1}}, "lone surrogate"),
        ({"a": np.timedelta64(5, "ns")}, "attribute 'a': .* a span of time has no kind"),
        ({"a": np.datetime64("20000-01-01")}, "attribute 'a': .* the year 20000 is not within 1 to 9999"),
        ({"a": [np.datetime64("-0001-01-01")]}, "attribute 'a': .* the year -1 is not within 1 to 9999"),
        ({"a": "\ud800"}, "attribute 'a': .* lone surrogate"),
        ({"a": ["\ud800"]}, "attribute 'a': .* lone surrogate"),
        ({"a": {"b": 1}, "a.b": 2}, "attribute 'a.b': is given twice"),
        ({"a.b": 2, "a": {"b": 1}}, "attribute 'a.b': is given twice"),
        ({"a": {"b.c": 1, "b": {"c": 2}}}, "attribute 'a.b.c': is given twice"),
        ({"a": [[1]]}, "attribute 'a': a list holds scalars, not other lists"),
        ({"a": [1, (2,)]}, "not other lists"),
        ({"a": [np.array([1])]}, "not other lists"),
        ({"a": [{"b": 1}]}, "attribute 'a': a list holds scalars, not objects"),
        ({"a": b"x"}, "attribute 'a': bytes is not a value"),
        ({"a": [b"x"]}, "attribute 'a': bytes is not a value"),
        ({"a": object()}, "attribute 'a': object is not a value"),
        ({"a": {"b": object()}}, "attribute 'a.b': object is not a value"),
        ({"a": 1j}, "complex is not a value"),
        ({"a": range(3)}, "range is not a value"),
        ({"a": (x for x in "ab")}, "generator is not a value"),
        ({"a": INT64_MAX + 1}, "attribute 'a': the integer .* is beyond 64 bits"),
        ({"a": INT64_MIN - 1}, "beyond 64 bits"),
        ({"a": [10**400]}, "beyond 64 bits"),
        ({"a": np.zeros((2, 2))}, "array of 2 dimensions"),
        ({"a": timedelta(1)}, "timedelta is not a value"),
    ],
)
def test_refused(event: Any, message: str) -> None:
    with pytest.raises(EventError, match=message):
        flatten(event)


def test_the_message_names_row_and_attribute() -> None:
    with pytest.raises(EventError, match=r"^event 3, attribute 'user\.age': bytes") as caught:
        flatten({"user": {"age": b"x"}}, row=3)
    assert (caught.value.row, caught.value.attribute) == (3, "user.age")
    with pytest.raises(EventError, match=r"^event 0: an attribute's name is a string"):
        flatten({1: 2}, row=0)  # type: ignore[dict-item]


def nested(levels: int) -> dict[str, Any]:
    event: dict[str, Any] = {"x": 1}
    for _ in range(levels):
        event = {"a": event}
    return event


def test_nesting_up_to_the_limit() -> None:
    assert flatten(nested(MAX_NESTING)) == {"a." * MAX_NESTING + "x": (1,)}


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 5_000])
def test_nesting_beyond_the_limit(levels: int) -> None:
    with pytest.raises(EventError, match="nested deeper than 100 levels") as caught:
        flatten(nested(levels), row=1)
    assert len(str(caught.value)) < 300


def test_an_object_that_holds_itself() -> None:
    event: dict[str, Any] = {}
    event["a"] = event
    event["b"] = event
    with pytest.raises(EventError, match="or one holds itself"):
        flatten(event)


@given(events())
def test_flattening_twice_is_flattening_once(event: dict[str, Any]) -> None:
    flat = flatten(event)
    assert flatten(flat) == flat
    assert all(flat.values())


ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.dates(), st.datetimes(),
        st.decimals(), st.complex_numbers(), st.characters(categories=["Cs"]),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.one_of(st.text(), st.integers()), inner)),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.one_of(st.text(), st.none()), ANYTHING))
def test_nothing_but_our_own_errors_escapes(event: dict[Any, Any]) -> None:
    try:
        flat = flatten(event)
    except TamisError:
        return
    assert all(kind_of_value(value) is not None for values in flat.values() for value in values)
