"""Keys and times of events, as the history reads them: of one event, of a chunk, and of events that are retained."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.earlier.alike import AlikeEvents
from tamis.earlier.chunks import Chunk, ListedEvents, TableEvents
from tamis.earlier.column import Column, Given
from tamis.earlier.key_ranges import LARGE, TIME
from tamis.earlier.leaving import Time
from tamis.earlier.number_events import NumberEvents
from tamis.encoding.columns import Column as ArrowColumn
from tamis.encoding.columns import plain_texts
from tamis.encoding.dimensions.keys import double_value
from tamis.kernels.numbers import I64s
from tamis.language.values import Interval, Kind, kind_of, to_microseconds

ShelfKey = str | tuple[Kind, Any]
"""A string stands for itself. Other values come with their kind: for Python, 1 and True are equal."""


class Stamp(NamedTuple):
    """The time of an event, and its kind."""

    time: Time
    kind: Kind | None


def _alone(given: Given | None) -> Any:
    """The only value of an attribute; None if there is none, or if there are several or an Interval."""
    value = given
    if type(given) is tuple:
        value = given[0] if len(given) == 1 else None
    return None if isinstance(value, Interval | tuple) or value != value else value


def shelf_key(given: Given | None) -> ShelfKey | None:
    """The key of the shelf for a value of the attribute; None if the event equals no other."""
    value = _alone(given)
    if value is None or type(value) is str:
        return value
    kind = kind_of(value)
    assert kind is not None
    return kind, to_microseconds(value) if isinstance(value, date) else value


def stamp(given: Given | None) -> Stamp | None:
    """The time of an event with these values; None if it has no usable one."""
    value = _alone(given)
    kind = kind_of(value)
    if kind is Kind.TIMESTAMP:
        return Stamp(to_microseconds(value), kind)
    if kind is not Kind.NUMBER or not math.isfinite(value):
        return None
    return Stamp(value, kind)


def stamps(chunk: Chunk, attribute: str) -> list[Stamp | None]:
    """The times of all events of a chunk."""
    if isinstance(chunk, ListedEvents | AlikeEvents | NumberEvents):
        return list(map(stamp, chunk.values(attribute)))
    assert isinstance(chunk, TableEvents)
    found: list[Stamp | None] = [None] * len(chunk)
    for row, kind, value in _values(chunk.columns(attribute)):
        if kind is Kind.TIMESTAMP or (kind is Kind.NUMBER and math.isfinite(value)):
            found[row] = Stamp(value, kind)
    return found


def shelf_keys(chunk: Chunk, attribute: str) -> list[ShelfKey | None]:
    """The keys of all events of a chunk."""
    if isinstance(chunk, ListedEvents | AlikeEvents | NumberEvents):
        return list(map(shelf_key, chunk.values(attribute)))
    assert isinstance(chunk, TableEvents)
    found: list[ShelfKey | None] = [None] * len(chunk)
    for row, kind, value in _values(chunk.columns(attribute)):
        found[row] = value if kind is Kind.STRING else (kind, value)
    return found


def _values(columns: Iterable[ArrowColumn]) -> Iterable[tuple[int, Kind, Any]]:
    """The row, kind and value of each event that has a single value; microseconds for a timestamp."""
    columns = list(columns)
    seen: set[int] = set()
    several: set[int] = set()
    if len(columns) > 1 or (columns and len(set(columns[0].rows.tolist())) < len(columns[0].rows)):
        for column in columns:
            for row in column.rows.tolist():
                (several if row in seen else seen).add(row)
    for column in columns:
        values = column.values
        plain = plain_texts(values).to_pylist() if isinstance(values, pa.Array) else values.tolist()
        for row, value in zip(column.rows.tolist(), plain, strict=True):
            if row not in several:
                yield row, column.kind, value


def times_of(column: Column, positions: I64s) -> list[Time]:
    """The times of retained events. Whole numbers are integers, so that differences are exact."""
    domains, keys = column.domains[positions].tolist(), column.keys[positions].tolist()
    return [
        key if domain in (TIME, LARGE) else _whole(double_value(key)) for domain, key in zip(domains, keys, strict=True)
    ]


def _whole(number: float) -> Time:
    return int(number) if number.is_integer() else number
