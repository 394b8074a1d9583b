"""Where the log keeps its events: as packed bytes, or as a table of Arrow.

Packed events are written in small groups, in which each name stands once. Python's `marshal` writes numbers, strings and booleans
in 60 % of the time of `pickle`, which writes the rest. Groups of 16 take 80 bytes for an event of five attributes, where a
dictionary takes 540. One event alone would take 94, and twice the time.
"""

from __future__ import annotations

import functools
import marshal
import pickle
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tamis.earlier.alike import AlikeEvents
from tamis.earlier.column import Column, Given
from tamis.earlier.number_events import NumberEvents
from tamis.encoding.columns import Column as ArrowColumn
from tamis.encoding.columns import Odd
from tamis.encoding.events.flat_rows import asked_columns, asked_rows, flat_events, plain_column
from tamis.encoding.events.mappings import Mappings
from tamis.encoding.events.plain_columns import write_plain_keys
from tamis.kernels.numbers import I64s
from tamis.language.event import FlatEvent, flatten
from tamis.language.values import INT64_MAX, INT64_MIN

LogEvent = dict[str, Given]
"""A flat event, or a *raw* one: as it came, with numbers, strings, booleans and None alone."""

_TEXT, _RAW = frozenset({str}), frozenset({int, float, str, bool, type(None)})
_NAN = float("nan")
_DICTIONARIES = frozenset({dict})
_PICKLED = 0x80
"""The first byte of what pickle writes. Marshal begins a list with another one."""
_PROTOCOL = 5
_VERSION = 4
"""The version of marshal that looks for repetitions."""
GROUP = 16
"""Events of a group. To read one of them, all are read."""


class Chunk(Protocol):
    """Some events of the log, in order."""

    @property
    def nbytes(self) -> int: ...

    def __len__(self) -> int: ...

    def events(self, rows: Sequence[int], among: Collection[str] | None = None) -> list[FlatEvent]:
        """Some events in their normal form, perhaps without attributes that are not `among` these."""

    def fill(self, column: Column, numbers: I64s) -> None:
        """Append the values of all events to a column. These are the numbers of the events."""

    def keep(self, rows: I64s) -> Chunk:
        """A chunk with only some events, at least one, which shares no memory with what users may change."""


def flat_event(event: LogEvent) -> FlatEvent:
    """An event of the log in its normal form."""
    for values in event.values():
        return event if isinstance(values, tuple) else flatten(event)
    return {}


def asked_of(event: LogEvent, names: Collection[str]) -> FlatEvent:
    """An event in its normal form, perhaps without attributes that are not among these. None of these has a wrong value."""
    for values in event.values():
        if isinstance(values, tuple):
            return event
        break
    found: FlatEvent = {}
    for name in event.keys() & names:
        value = event[name]
        if value is not None and value == value:
            found[name] = (value,)
    return found


def values_of(events: Iterable[LogEvent], attribute: str) -> list[Given]:
    """The values of an attribute in events of the log. NaN stands for none: NumPy reads it in a third of the time of None."""
    return [event.get(attribute, _NAN) for event in events]


def has_plain_names(event: dict[Any, Any]) -> bool:
    """Whether no name is of a class that may decide itself what it equals."""
    return set(map(type, event)) <= _TEXT


def is_raw(event: Any) -> bool:
    """Whether an event may be kept as it came."""
    return type(event) is dict and has_plain_names(event) and set(map(type, event.values())) <= _RAW


def raw_copies(events: Sequence[Any]) -> list[Any]:
    """Copies of events that may be kept as they came, and None in place of others."""
    if set(map(type, events)) <= _DICTIONARIES:
        copies = [event.copy() for event in events]
        # All at once: this takes half of the time of one after another.
        names, values = chain.from_iterable(copies), chain.from_iterable(map(dict.values, copies))
        if set(map(type, names)) <= _TEXT and set(map(type, values)) <= _RAW:
            return copies
    return [event.copy() if is_raw(event) else None for event in events]


def may_be_wrong(event: LogEvent, names: Collection[str]) -> bool:
    """Whether a raw event may have a value outside the language for one of these attributes."""
    for name in names if len(names) <= len(event) else event.keys() & names:
        value: Any = event.get(name)
        cls = type(value)
        if (cls is str and not value.isascii()) or (cls is int and not INT64_MIN <= value <= INT64_MAX):
            return True
    return False


class ListedEvents:
    """Events as they came."""

    def __init__(self, events: Sequence[LogEvent]) -> None:
        self.listed = events
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self.listed)

    def events(self, rows: Sequence[int], among: Collection[str] | None = None) -> list[FlatEvent]:
        if among is None:
            return [flat_event(self.listed[row]) for row in rows]
        return [asked_of(self.listed[row], among) for row in rows]

    def values(self, attribute: str) -> list[Given]:
        """The values of an attribute in all events."""
        return values_of(self.listed, attribute)

    def fill(self, column: Column, numbers: I64s) -> None:
        column.append(self.values(column.attribute), numbers)

    def keep(self, rows: I64s) -> Chunk:
        whole = len(rows) == len(self.listed)
        return packed(self.listed if whole else [self.listed[row] for row in rows.tolist()])


class LeftEvents:
    """Events that all left. Only their positions are still there."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.nbytes = 0

    def __len__(self) -> int:
        return self._count

    def events(self, rows: Sequence[int], among: Collection[str] | None = None) -> list[FlatEvent]:
        return [{} for _ in rows]

    def fill(self, column: Column, numbers: I64s) -> None:
        column.append([None] * self._count, numbers)

    def keep(self, rows: I64s) -> Chunk:
        return LeftEvents(len(rows))


class PackedEvents:
    """Events as bytes, in groups.

    blob   [16 events][16 events][5 events]      ends   where each group ends
    """

    def __init__(self, blob: bytes, ends: I64s, count: int) -> None:
        self._blob, self._ends, self._count = blob, ends, count
        self.nbytes = len(blob) + ends.nbytes

    @classmethod
    def of(cls, events: Sequence[LogEvent]) -> PackedEvents:
        written = [_written(events[at : at + GROUP]) for at in range(0, len(events), GROUP)]
        return cls(b"".join(written), np.cumsum(list(map(len, written)), dtype=np.int64), len(events))

    def __len__(self) -> int:
        return self._count

    def _group(self, number: int) -> list[LogEvent]:
        start = int(self._ends[number - 1]) if number else 0
        return _read(self._blob[start : int(self._ends[number])])

    def _listed(self, rows: Iterable[int]) -> list[LogEvent]:
        """Some events. Rows ascend."""
        found, known, group = [], -1, []
        for row in rows:
            if row // GROUP != known:
                known = row // GROUP
                group = self._group(known)
            found.append(group[row % GROUP])
        return found

    def events(self, rows: Sequence[int], among: Collection[str] | None = None) -> list[FlatEvent]:
        return list(map(flat_event, self._listed(rows)))

    def fill(self, column: Column, numbers: I64s) -> None:
        column.append(values_of(self._listed(range(self._count)), column.attribute), numbers)

    def keep(self, rows: I64s) -> Chunk:
        return self if len(rows) == self._count else PackedEvents.of(self._listed(rows.tolist()))


def packed(events: Sequence[LogEvent]) -> Chunk:
    """Events in little memory."""
    return AlikeEvents.of(events) or PackedEvents.of(events)


def plain_chunk(events: Mappings, few: int) -> AlikeEvents | NumberEvents | None:
    """Events in arrays, if they are alike or of numbers alone, and at least `few`. None of their values is wrong then."""
    given = events.events
    if len(given) < few or set(map(type, given)) != _DICTIONARIES:
        return None
    if len(set(map(len, given))) == 1 and set(map(type, chain.from_iterable(given))) == _TEXT:
        alike = AlikeEvents.of(given)
        if alike is not None:
            return alike
    numbers = events.numbers()
    return None if numbers is None else NumberEvents.of(numbers)


def _written(events: Any) -> bytes:
    try:
        return marshal.dumps(events, _VERSION)
    except ValueError:
        return pickle.dumps(events, _PROTOCOL)


def _read(written: bytes) -> list[LogEvent]:
    events: list[LogEvent]
    events = pickle.loads(written) if written[0] == _PICKLED else marshal.loads(written)
    return events


class TableEvents:
    """Rows of a table."""

    def __init__(self, table: pa.Table, *, is_own: bool = False) -> None:
        self.table = table
        self._is_own = is_own
        self._found: dict[str, list[ArrowColumn | Odd]] = {}
        """The columns that `read` has found, by attribute."""
        self._plain: dict[str, pa.Array | None] = {}
        """The columns of plain numbers, by attribute."""

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes)

    def __len__(self) -> int:
        return len(self.table)

    def events(self, rows: Sequence[int], among: Collection[str] | None = None) -> list[FlatEvent]:
        if among is not None:
            return asked_rows(self.table, rows, among)
        whole = len(rows) == len(self.table)
        return flat_events(self.table if whole else self.table.take(pa.array(rows, pa.int64())))

    def read(self, attributes: Collection[str]) -> list[Odd]:
        """Read the columns of some attributes, which stay at hand; returns the wrong values."""
        self._found = {name: [] for name in attributes if self._plain_column(name) is None}
        wrong = []
        for found in asked_columns(self.table, self._found) if self._found else ():
            if isinstance(found, Odd):
                wrong.append(found)
            if found.attribute in self._found:
                self._found[found.attribute].append(found)
        return wrong

    def has_several(self) -> bool:
        """Whether an event may have several values of an attribute."""
        schema = self.table.schema
        return len(set(schema.names)) < len(schema) or any(not _is_flat(each) for each in schema.types)

    def columns(self, attribute: str) -> list[ArrowColumn]:
        """The columns of an attribute, one for each kind. An attribute with a wrong value is missing from its event."""
        right: list[ArrowColumn] = []
        wrong: list[I64s] = []
        found_all = self._found.get(attribute)
        for found in asked_columns(self.table, [attribute]) if found_all is None else found_all:
            if found.attribute != attribute:
                continue
            if isinstance(found, Odd):
                wrong.append(found.rows)
            else:
                right.append(found)
        if wrong:
            gone = np.concatenate(wrong)
            right = [_without(each, gone) for each in right]
        return [each for each in right if len(each.rows)]

    def _plain_column(self, attribute: str) -> pa.Array | None:
        if attribute not in self._plain:
            self._plain[attribute] = plain_column(self.table, attribute)
        return self._plain[attribute]

    def fill(self, column: Column, numbers: I64s) -> None:
        plain = self._plain_column(column.attribute)
        if plain is None or not column.append_by(len(self), functools.partial(write_plain_keys, plain)):
            column.append_arrow(self.columns(column.attribute), numbers)

    def keep(self, rows: I64s) -> Chunk:
        if self._is_own and len(rows) == len(self):
            return self
        if rows[-1] - rows[0] == len(rows) - 1:
            table = self.table.slice(int(rows[0]), len(rows))
        else:
            table = self.table.take(pa.array(rows))
        return copied(table)


def _is_flat(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_primitive(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind))


def _without(column: ArrowColumn, gone: I64s) -> ArrowColumn:
    kept = ~np.isin(column.rows, gone)
    values = column.values.filter(pa.array(kept)) if isinstance(column.values, pa.Array) else column.values[kept]
    return column._replace(rows=column.rows[kept], values=values)


def copied(table: pa.Table) -> Chunk:
    """Rows of a table in memory of our own: users may have made theirs from arrays that they write to again."""
    size = pa.MockOutputStream()
    try:
        _write(table, size)
        # A buffer that grows may be larger than what it has.
        buffer = pa.allocate_buffer(size.size())
        _write(table, pa.FixedSizeBufferWriter(buffer))
        return TableEvents(pa.ipc.open_stream(buffer).read_all(), is_own=True)
    except pa.ArrowException:  # a type that Arrow cannot write
        return PackedEvents.of(flat_events(table))


def _write(table: pa.Table, sink: Any) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
