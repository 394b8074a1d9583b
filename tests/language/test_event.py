"""The flat form of events."""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import EventError, TamisError
from tamis.language.event import MAX_NESTING, FlatEvent, Refused, flatten, kind_of_value, refuse_asked
from tamis.language.values import INT64_MAX, INT64_MIN, Interval
from tests.language.close_cases import events


class Colour(StrEnum):
    RED = "red"


class OldColour(str, Enum):  # noqa: UP042 - the older kind of str enumeration, whose hash is that of its name
    RED = "colour"


@dataclass
class Point:
    x: Any
    y: Any


class Frozen(Mapping[str, Any]):
    """A mapping that is not a dict."""

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
        # An attribute that is missing in one place is not given twice.
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
        ([("a", 1)], "an event must be a mapping from attributes to values, a dataclass or a pandas Series, not list"),
        (None, "not NoneType"),
        ("a", "not str"),
        ({1: 2}, "name must be a string, not 1"),
        ({None: 2}, "name must be a string, not None"),
    ],
)
def test_objects_that_are_not_events(event: Any, message: str) -> None:
    with pytest.raises(EventError, match=message):
        flatten(event)
    with pytest.raises(EventError, match=f"^event 3: .*{message}"):
        flatten(event, row=3)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.timedelta64(5, "ns"), "durations are not supported"),
        (np.datetime64("20000-01-01"), "the year 20000 is not within 1 to 9999"),
        ([np.datetime64("-0001-01-01")], "the year -1 is not within 1 to 9999"),
        ("\ud800", "lone surrogate"),
        (["\ud800"], "lone surrogate"),
        (b"x", "bytes is not a value"),
        ([b"x"], "bytes is not a value"),
        ([1, b"x", 2], "bytes is not a value"),
        (object(), "object is not a value"),
        (uuid.UUID(int=1), "UUID is not a value"),
        (time(10, 30), "time is not a value"),
        (timedelta(1), "timedelta is not a value"),
        (1j, "complex is not a value"),
        (range(3), "range is not a value"),
        ((x for x in "ab"), "generator is not a value"),
        (INT64_MAX + 1, "the integer .* is beyond 64 bits"),
        (INT64_MIN - 1, "beyond 64 bits"),
        ([10**400], "beyond 64 bits"),
    ],
)
def test_a_value_outside_the_language_is_an_error_only_if_it_is_used(value: Any, reason: str) -> None:
    flat = flatten({"a": value, "b": 1, "o": {"a": value, "b": 2}})
    assert {name: values for name, values in flat.items() if values} == {"b": (1,), "o.b": (2,)}
    assert re.search(reason, refused(flat, "a").reason)
    assert re.search(reason, refused(flat, "o.a").reason)
    assert flatten(flat) == flat
    assert isinstance(flatten(flat)["a"], Refused)
    refuse_asked(flat, lambda: {"b", "o.b", "o", "a.x"})
    for name in ("a", "o.a"):
        with pytest.raises(EventError, match=rf"^event 3, attribute '{name}': .*{reason}") as caught:
            refuse_asked(flat, lambda name=name: {"b", name}, row=3)  # type: ignore[misc]
        assert (caught.value.row, caught.value.attribute) == (3, name)


def refused(flat: FlatEvent, name: str) -> Refused:
    values = flat[name]
    assert isinstance(values, Refused)
    return values


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ({"a": {"b": 1}, "a.b": 2}, "a.b"),
        ({"a.b": 2, "a": {"b": 1}}, "a.b"),
        ({"a": {"b.c": 1, "b": {"c": 2}}}, "a.b.c"),
        ({"a": [{"b.c": 1, "b": {"c": 2}}]}, "a.b.c"),
        ({"a": [{"b": 1}], "a.b": 2}, "a.b"),
        ({"a.b": b"x", "a": {"b": 1}}, "a.b"),
    ],
)
def test_an_attribute_given_twice(event: dict[str, Any], name: str) -> None:
    assert refused(flatten(event), name).reason == "given twice: nested and as a dotted name"


@pytest.mark.parametrize(
    "event", [{"": 2}, {"a": {"": 2}}, {"a": {1: 2}}, {"\ud800": 1}, {"a": [{"\ud800": 1, "": 2}]}]
)
def test_names_that_no_expression_can_write_are_left_out(event: dict[str, Any]) -> None:
    assert flatten({**event, "b": 1}) == {"b": (1,)}


@pytest.mark.parametrize(
    ("value", "flat"),
    [
        ([{"port": 22}, {"port": 80}], {"a.port": (22, 80)}),
        ([{"port": 22}, {"host": "x"}, {}, None, {"port": None}], {"a.port": (22,), "a.host": ("x",)}),
        ([{"port": [1, 2]}, {"port": 3}], {"a.port": (1, 2, 3)}),
        ([{"b": {"c": 1}}, {"b.c": 2}, {"b": [{"c": 3}]}], {"a.b.c": (1, 2, 3)}),
        ([1, {"b": 2}, "x", {"b": "y"}], {"a": (1, "x"), "a.b": (2, "y")}),
        ([[1, 2], [3, [4]]], {"a": (1, 2, 3, 4)}),
        ([[{"b": 1}], [[{"b": 2}], {"b": 3}]], {"a.b": (1, 2, 3)}),
        (({"b": 1}, {"b": Interval(2, 3)}), {"a.b": (1, Interval(2, 3))}),
        (np.array([[1, 2], [3, 4]]), {"a": (1, 2, 3, 4)}),
        ([np.array([1]), (2,)], {"a": (1, 2)}),
        ([], {}),
        ([{}], {}),
        ([[], [[]]], {}),
        ([Point(1, 2.5), Point(3, None)], {"a.x": (1, 3), "a.y": (2.5,)}),
        (Point(1, {"z": 2}), {"a.x": (1,), "a.y.z": (2,)}),
    ],
)
def test_lists_of_objects_and_of_lists(value: Any, flat: FlatEvent) -> None:
    assert flatten({"a": value}) == flat
    assert flatten(flatten({"a": value})) == flat


def test_an_element_of_a_list_with_a_value_outside_the_language() -> None:
    flat = flatten({"a": [{"b": 1, "c": 2}, {"b": b"x", "c": 3}, 7]})
    assert flat == {"a": (7,), "a.b": (), "a.c": (2, 3)}
    assert "bytes" in refused(flat, "a.b").reason


def test_events_that_are_not_mappings() -> None:
    import pandas as pd

    assert flatten(Point(1, "x")) == {"x": (1,), "y": ("x",)}
    assert flatten(pd.Series({"x": 1.5, "y": None, "z": "s"})) == {"x": (1.5,), "z": ("s",)}
    assert flatten(pd.Series({"x": 1, "y": 2})) == {"x": (1,), "y": (2,)}
    with pytest.raises(EventError, match="name must be a string, not 0"):
        flatten(pd.Series([1, 2]))
    with pytest.raises(EventError, match="not type"):
        flatten(Point)


class Broken(Mapping[str, Any]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("broken")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("broken")

    def __len__(self) -> int:
        return 1


def test_an_object_that_cannot_be_read() -> None:
    flat = flatten({"a": Broken(), "b": 1})
    refuse_asked(flat, lambda: {"b", "ab", "c.a"})
    for asked in ("a", "a.x", "a.x.y"):
        with pytest.raises(EventError, match="attribute 'a': Broken cannot be read: broken"):
            refuse_asked(flat, lambda asked=asked: {asked})  # type: ignore[misc]


def nested(levels: int) -> dict[str, Any]:
    event: dict[str, Any] = {"x": 1}
    for _ in range(levels):
        event = {"a": event}
    return event


def test_nesting_up_to_the_limit() -> None:
    assert flatten(nested(MAX_NESTING)) == {"a." * MAX_NESTING + "x": (1,)}


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 5_000])
def test_nesting_beyond_the_limit(levels: int) -> None:
    flat = flatten({**nested(levels), "b": 1})
    refuse_asked(flat, lambda: {"b", "a", "a.a"})
    with pytest.raises(EventError, match="nested deeper than 100 levels") as caught:
        refuse_asked(flat, lambda: {"a." * levels + "x"}, row=1)
    assert len(str(caught.value)) < 300


def test_a_list_nested_beyond_the_limit() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = [value]
    assert "nested deeper" in refused(flatten({"a": value}), "a").reason


def test_an_object_that_holds_itself() -> None:
    event: dict[str, Any] = {"x": 1}
    event["a"] = event
    event["b"] = event
    event["c"] = [{"d": event, "e": 5}]
    flat = flatten(event)
    assert {name: values for name, values in flat.items() if values} == {"x": (1,), "c.e": (5,)}
    refuse_asked(flat, lambda: {"x"})
    for asked in ("a", "b.x", "c.d.a"):
        with pytest.raises(EventError, match="or one contains itself"):
            refuse_asked(flat, lambda asked=asked: {asked})  # type: ignore[misc]


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
def test_only_errors_of_tamis_are_raised(event: dict[Any, Any]) -> None:
    try:
        flat = flatten(event)
    except TamisError:
        return
    assert all(kind_of_value(value) is not None for values in flat.values() for value in values)
