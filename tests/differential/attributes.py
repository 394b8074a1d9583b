"""The attributes of the differential tests, and how tables carry their values.

An engine has one type per column, our events have not. An attribute that is *plain* has one kind and one value, and
is a column under its own name: any engine reads our predicates on it as they are. For the others the engine gets a
column for each kind of value, a list if there may be several; `translation` sends a predicate to the right one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeAlias

import pyarrow as pa

from tamis.language.values import Kind, kind_of

Event: TypeAlias = dict[str, Any]

WHOLE = pa.int64()
REAL = pa.float64()
TEXT = pa.string()
FLAG = pa.bool_()
MOMENT = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")
DAY = pa.date32()

_VARIANT = pa.struct({"integer": WHOLE, "number": REAL, "string": TEXT, "boolean": FLAG, "timestamp": MOMENT})


@dataclass(frozen=True)
class Attribute:
    """An attribute: the kinds of its values, each with the type of its column, and whether it has several values."""

    name: str
    types: Mapping[Kind, pa.DataType]
    several: bool = False

    @property
    def plain(self) -> bool:
        return len(self.types) == 1 and not self.several

    def column(self, kind: Kind) -> str:
        """The engine's column for the values of a kind."""
        return self.name if self.plain else f"{self.name} {kind}"


_EVERY_KIND = {Kind.NUMBER: REAL, Kind.STRING: TEXT, Kind.BOOLEAN: FLAG, Kind.TIMESTAMP: MOMENT}

ATTRIBUTES = {
    attribute.name: attribute
    for attribute in [
        Attribute("whole", {Kind.NUMBER: WHOLE}),
        Attribute("user.count", {Kind.NUMBER: WHOLE}),
        Attribute("real", {Kind.NUMBER: REAL}),
        Attribute("text", {Kind.STRING: TEXT}),
        Attribute("odd name", {Kind.STRING: TEXT}),
        Attribute("flag", {Kind.BOOLEAN: FLAG}),
        Attribute("moment", {Kind.TIMESTAMP: MOMENT}),
        Attribute("instant", {Kind.TIMESTAMP: INSTANT}),
        Attribute("date", {Kind.TIMESTAMP: DAY}),
        Attribute("nowhere", {Kind.NUMBER: WHOLE}),
        Attribute("anything", _EVERY_KIND),
        Attribute("number or text", {Kind.NUMBER: REAL, Kind.STRING: TEXT}),
        Attribute("wholes", {Kind.NUMBER: WHOLE}, several=True),
        Attribute("reals", {Kind.NUMBER: REAL}, several=True),
        Attribute("tags", {Kind.STRING: TEXT}, several=True),
        Attribute("flags", {Kind.BOOLEAN: FLAG}, several=True),
        Attribute("moments", {Kind.TIMESTAMP: MOMENT}, several=True),
        Attribute("mixed", _EVERY_KIND, several=True),
    ]
}
PLAIN = [attribute for attribute in ATTRIBUTES.values() if attribute.plain]
TRANSLATED = [attribute for attribute in ATTRIBUTES.values() if not attribute.plain]


def event_table(events: list[Event]) -> pa.Table:
    """The events as our own `match_batch` takes them: a column per attribute, NaNs and mixed kinds included."""
    return pa.table({name: _own_column(attribute, events) for name, attribute in ATTRIBUTES.items()})


def entry_column(events: list[Event], *, as_map: bool) -> pa.Array:
    """The events as one column: a map from attributes to lists of values, or a list of attributes with a value each."""
    rows = [
        [(name, value if isinstance(value, list) else [value]) for name, value in event.items() if name in ATTRIBUTES]
        for event in events
    ]
    if as_map:
        maps = [[(name, [_variant(value) for value in values]) for name, values in row] for row in rows]
        return pa.array(maps, pa.map_(TEXT, pa.list_(_VARIANT)))
    lists = [
        [{"attribute": name, "value": _variant(value)} for name, values in row for value in values] for row in rows
    ]
    return pa.array(lists, pa.list_(pa.struct({"attribute": TEXT, "value": _VARIANT})))


def engine_table(events: list[Event]) -> pa.Table:
    """The events as an engine takes them, numbered by `row`: a column per attribute and kind, a NaN is NULL."""
    columns = {"row": pa.array(range(len(events)), pa.int64())}
    for attribute in ATTRIBUTES.values():
        for kind, cell in attribute.types.items():
            values = [_of_kind(event.get(attribute.name), kind, cell) for event in events]
            columns[attribute.column(kind)] = pa.array(values, pa.list_(cell) if attribute.several else cell)
    return pa.table(columns)


def _own_column(attribute: Attribute, events: list[Event]) -> pa.Array:
    values = [event.get(attribute.name) for event in events]
    if attribute.plain:
        (cell,) = attribute.types.values()
        return pa.array([_cell(value, cell) for value in values], cell)
    lists = [value if isinstance(value, list) else [value] for value in values]
    if len(attribute.types) == 1:
        (cell,) = attribute.types.values()
        return pa.array([[_cell(element, cell) for element in elements] for elements in lists], pa.list_(cell))
    # A struct of its own would be read as a nested object, so a scalar of any kind is a list of one.
    return pa.array([[_variant(element) for element in elements] for elements in lists], pa.list_(_VARIANT))


def _variant(value: Any) -> dict[str, Any] | None:
    kind = kind_of(value)
    if kind is None:
        return None
    return {"integer" if type(value) is int else kind.value: _cell(value, MOMENT)}


def _of_kind(value: Any, kind: Kind, cell: pa.DataType) -> Any:
    """What of a value goes into the column of a kind; of a list that means its elements, and NULLs stay."""
    if isinstance(value, list):
        return [_of_kind(element, kind, cell) for element in value]
    if kind_of(value) is not kind or (isinstance(value, float) and math.isnan(value)):
        return None
    return _cell(value, cell)


def _cell(value: Any, cell: pa.DataType) -> Any:
    """The value as a column of timestamps takes it: a date is its midnight."""
    if cell == MOMENT and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value
