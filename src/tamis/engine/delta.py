"""The delta: rows that are not in a segment yet. It is small, and every event looks at all of it.

Columns that grow at their end; what was published of them does not change. The narrowest predicate of each row lies in columns of
its own, which are read first:

    row         0     1     2
    dimension   7     ANY   12       of the narrowest predicate; ANY: nothing to test first
    lo, hi      10 10       MIN 99   its lowest and highest key

Columns have room behind their end, and are packed when they are made: a view is those that were there, and a number of rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.conjunctions import Conjunctions
from tamis.encoding.events import EventBatch
from tamis.encoding.kernel import brief_kernel, inlined, lean_kernel
from tamis.encoding.keys import KEY_MAX, KEY_MIN
from tamis.encoding.leaf import Mode
from tamis.encoding.numbers import UP
from tamis.encoding.packed import Packed, address_of, b1, i4, i8, packed, u1
from tamis.encoding.plain_row import DIMENSION, HI, LO, MODE, ORDER, START, PlainRow, plain_conjunction
from tamis.encoding.predicates import Predicates
from tamis.encoding.programs import ACCEPT, NO_PROGRAMS, Programs
from tamis.engine.found import Found, Life, Slots, Work
from tamis.engine.lease import Lease
from tamis.engine.owners import (
    OTHERWISE_NUMBERED,
    OWNERS_PACKED,
    Owners,
    conjunction_holds,
    load_event,
    name_owners,
    packed_owners,
    unload_event,
)
from tamis.engine.room import DeltaRoom
from tamis.engine.rows import Rows, concatenated_programs

_ROWS = 64
"""So many rows have room at first; there is always room for as many predicates each as `_EACH`."""
_EACH = 8
_APPENDED, _NO_ROOM, _NOT_PLAIN = 0, 1, 2
_ANY = -2
_SOME = int(Mode.SOME)


class Firsts(NamedTuple):
    """The narrowest predicate of each row."""

    dimension: npt.NDArray[np.int32]
    lo: npt.NDArray[np.int64]
    hi: npt.NDArray[np.int64]


class Columns:
    """Rows, owners and firsts with room behind their end."""

    __slots__ = ("firsts", "given", "numbers", "owners", "place", "programs", "table")

    def __init__(self, table: Conjunctions, owners: Owners, firsts: Firsts, programs: Programs) -> None:
        self.table = table
        self.owners = owners
        self.firsts = firsts
        self.programs = programs
        self.numbers = np.arange(len(owners.sole), dtype=np.int32)
        held = packed_owners(owners, OTHERWISE_NUMBERED, self.numbers, table, programs)
        self.given: Packed = np.concatenate((held, packed(firsts)))
        """All of them for kernels: what `packed_owners` packs, then the firsts."""
        self.place = address_of(self.given), len(self.given)

    @classmethod
    def with_room(cls, rows: int, predicates: int, intervals: int) -> Columns:
        start = np.zeros(predicates + 1, np.int64)
        lo, hi = np.empty((2, intervals), np.int64)
        held = Predicates(np.empty(predicates, np.int32), np.empty(predicates, np.uint8), start, lo, hi)
        slot, sole = np.empty((2, rows), np.int32)
        group = np.arange(rows + 1, dtype=np.int64)
        owners = Owners(sole, group, slot, np.empty(rows, np.int64), np.empty(rows, np.bool_))
        firsts = Firsts(np.empty(rows, np.int32), *np.empty((2, rows), np.int64))
        return cls(Conjunctions(np.zeros(rows + 1, np.int64), held), owners, firsts, NO_PROGRAMS)

    def sizes(self, rows: int) -> tuple[int, int, int]:
        """How many rows, predicates and intervals so many rows are."""
        predicates = int(self.table.start[rows])
        return rows, predicates, int(self.table.predicates.start[predicates])

    def room(self) -> tuple[int, int, int]:
        return len(self.numbers), len(self.table.predicates.dimension), len(self.table.predicates.lo)

    def rows(self, number: int) -> Rows:
        """The first rows."""
        rows, predicates, intervals = self.sizes(number)
        dimension, mode, start, lo, hi = self.table.predicates
        held = Predicates(
            dimension[:predicates], mode[:predicates], start[: predicates + 1], lo[:intervals], hi[:intervals]
        )
        _, _, slot, program, several = self.owners
        table = Conjunctions(self.table.start[: rows + 1], held)
        return Rows(table, slot[:rows], program[:rows], several[:rows], self.programs)

    def copied(self, rows: int, other: Columns) -> None:
        """Copy the first rows to columns with more room."""
        _, predicates, intervals = self.sizes(rows)
        other.table.start[: rows + 1] = self.table.start[: rows + 1]
        ends = (predicates, predicates, predicates + 1, intervals, intervals, *[rows] * 8)
        mine: Any = (*self.table.predicates, *self.owners, *self.firsts)
        theirs: Any = (*other.table.predicates, *other.owners, *other.firsts)
        for old, new, end in zip(mine, theirs, ends, strict=True):
            new[:end] = old[:end]


class DeltaView(NamedTuple):
    """What of a delta was there at some moment."""

    columns: Columns
    number: int

    @property
    def rows(self) -> Rows:
        return self.columns.rows(self.number)

    def living(self, life: Life) -> Rows:
        """The rows whose owners are alive."""
        rows = self.rows
        return rows.taken(np.flatnonzero(life.died[rows.slot] > life.now))


class Delta:
    """Rows that grow at their end: `number` of them in `columns`. Only the one writer changes it; views stay as they are."""

    __slots__ = ("__weakref__", "columns", "key", "lease", "number")

    def __init__(self) -> None:
        self.lease = Lease()
        self.key = id(self)
        self.columns = Columns.with_room(_ROWS, _ROWS * _EACH, _ROWS * _EACH)
        self.number = 0

    def __len__(self) -> int:
        return self.number

    def add(self, rows: Rows) -> None:
        """Append rows, of subscriptions that have none here yet."""
        predicates = rows.table.predicates
        self._reserve(rows.number, len(predicates.dimension), len(predicates.lo))
        program = rows.program
        if len(rows.programs.then):
            joined, program = concatenated_programs(self.columns.programs, rows)
            columns = self.columns
            self.columns = Columns(columns.table, columns.owners, columns.firsts, joined)
        columns = self.columns
        first, place, interval = columns.sizes(self.number)
        last = first + rows.number
        columns.table.start[first + 1 : last + 1] = rows.table.start[1:] + place
        held = columns.table.predicates
        held.dimension[place : place + len(predicates.dimension)] = predicates.dimension
        held.mode[place : place + len(predicates.mode)] = predicates.mode
        held.start[place + 1 : place + len(predicates.start)] = predicates.start[1:] + interval
        held.lo[interval : interval + len(predicates.lo)] = predicates.lo
        held.hi[interval : interval + len(predicates.hi)] = predicates.hi
        owners, numbers = columns.owners, columns.numbers[first:last]
        owners.slot[first:last], owners.several[first:last] = rows.slot, rows.several
        owners.program[first:last] = program
        owners.sole[first:last] = np.where((program == ACCEPT) & ~rows.several, rows.slot, ~numbers)
        _choose_first(columns.table, numbers, *columns.firsts)
        self.number = last

    def add_plain(self, row: PlainRow, slot: int) -> bool:
        """Append one row, if it is a conjunction as it stands."""
        added = _append(self.columns.given, self.number, slot, *row)
        if added == _NO_ROOM:
            self._reserve(1, row.predicates, row.length)
            added = _append(self.columns.given, self.number, slot, *row)
        self.number += added == _APPENDED
        return added == _APPENDED

    def _reserve(self, rows: int, predicates: int, intervals: int) -> None:
        """Have room for so many more."""
        columns = self.columns
        used = columns.sizes(self.number)
        needed = [have + more for have, more in zip(used, (rows, predicates, intervals), strict=True)]
        if all(need <= room for need, room in zip(needed, columns.room(), strict=True)):
            return
        doubled = [max(need, 2 * room) for need, room in zip(needed, columns.room(), strict=True)]
        larger = Columns.with_room(*doubled)
        columns.copied(self.number, larger)
        self.columns = Columns(larger.table, larger.owners, larger.firsts, columns.programs)

    def slots(self) -> Slots:
        return self.columns.owners.slot[: self.number]

    def view(self) -> DeltaView:
        return DeltaView(self.columns, self.number)


@lean_kernel
def _choose_first(table: Any, conjunctions: Any, dimension: Any, lo: Any, hi: Any) -> None:
    """Note the narrowest predicate of each conjunction."""
    predicates = table.predicates
    for c in conjunctions:
        narrowest = np.inf
        dimension[c], lo[c], hi[c] = _ANY, KEY_MIN, KEY_MAX
        for p in range(table.start[c], table.start[c + 1]):
            if predicates.mode[p] == _SOME:
                low = predicates.lo[predicates.start[p]]
                high = predicates.hi[predicates.start[p + 1] - 1]
                width = np.float64(high) - np.float64(low)
                if width < narrowest:
                    narrowest = width
                    dimension[c], lo[c], hi[c] = predicates.dimension[p], low, high


@brief_kernel
def _append(given: Any, row: int, slot: int, scratch: Any, codes: Any, count: int, length: int) -> int:
    """Write a plain row behind the others, if there is room for it and it is a conjunction."""
    sole, program, several, slots = i4(given, 0), i8(given, 3), b1(given, 4), i4(given, 2)
    start, p_dimension, p_mode, p_start, p_lo, p_hi = (
        i8(given, 6),
        i4(given, 7),
        u1(given, 8),
        i8(given, 9),
        i8(given, 10),
        i8(given, 11),
    )
    place = start[row]
    at = p_start[place]
    if row >= len(sole) or place + count > len(p_dimension) or at + length > len(p_lo):
        return _NO_ROOM
    kept = plain_conjunction(scratch, codes, count)
    if kept < 0:
        return _NOT_PLAIN
    s, lo, hi = scratch[START], scratch[LO], scratch[HI]
    for i in range(kept):
        p = scratch[ORDER, i]
        p_dimension[place + i], p_mode[place + i] = scratch[DIMENSION, p], scratch[MODE, p]
        for v in range(s[p], s[p + 1]):
            p_lo[at], p_hi[at] = lo[v], hi[v]
            at += 1
        p_start[place + i + 1] = at
    start[row + 1] = place + kept
    table = Conjunctions(start, Predicates(p_dimension, p_mode, p_start, p_lo, p_hi))
    scratch[0, 0] = row
    _choose_first(table, scratch[0, :1], *_unpacked_firsts(given))
    sole[row], slots[row], program[row], several[row] = slot, slot, ACCEPT, False
    return _APPENDED


def match_delta(view: DeltaView, batch: EventBatch, dimensions: int, life: Life, room: DeltaRoom) -> Found:
    """Match a batch against the rows of a delta."""
    events, (columns, rows) = len(batch.start) - 1, view
    counts = np.zeros(events, np.int64)
    parts: list[Slots] = []
    work = np.zeros(3, np.int64)
    found = room.found(rows)
    scratch = room.event(dimensions)
    event = 0
    while event < events:
        # As many events at a time as surely have room.
        stop = min(events, event + max(1, len(found) // max(rows, 1)))
        scan_delta(columns.given, rows, batch, (event, stop), (scratch, room.extent(dimensions)), counts, found, work)
        at = 0
        size = int(counts[event:stop].sum())
        while event < stop:
            out = np.empty(size, np.int32)
            event, at, filled, judged = name_owners(
                columns.given,
                batch,
                life,
                (found, counts),
                (event, stop, at),
                scratch,
                (out, room.clauses(size)),
            )
            parts.append(out[:filled])
            work[2] += judged
            size = max(2 * size, 1024)
    slots = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
    return Found(counts, slots, Work(*work.tolist()))


@inlined
def _unpacked_firsts(given: Any) -> Any:
    return i4(given, OWNERS_PACKED), i8(given, OWNERS_PACKED + 1), i8(given, OWNERS_PACKED + 2)


@lean_kernel
def scan_delta(given: Any, rows: int, batch: Any, place: Any, scratch: Any, counts: Any, found: Any, work: Any) -> None:
    """Note the rows that events satisfy; `found` has room for all."""
    dimension, lo, hi = _unpacked_firsts(given)
    start = i8(given, 6)
    predicates = i4(given, 7), u1(given, 8), i8(given, 9), i8(given, 10), i8(given, 11)
    v_start, v_dimension, v_lo, v_hi = batch
    event_scratch, (lowest, highest) = scratch
    filled = 0
    for event in range(place[0], place[1]):
        load_event(batch, event, event_scratch)
        for v in range(v_start[event], v_start[event + 1]):
            d = UP(v_dimension[UP(v)])
            lowest[d] = min(lowest[d], v_lo[UP(v)])
            highest[d] = max(highest[d], v_hi[UP(v)])
        before = filled
        for row in range(rows):
            # Without branches but for the few rows that pass: they cannot be foretold, and took four times as long.
            d = dimension[UP(row)]
            at = UP(max(d, 0))
            if (d == _ANY) | ((lo[UP(row)] <= highest[at]) & (lowest[at] <= hi[UP(row)])):
                work[1] += 1
                if conjunction_holds(row, start, predicates, batch, event_scratch):
                    found[UP(filled)] = row
                    filled += 1
        work[0] += rows
        counts[event] = filled - before
        unload_event(batch, event, event_scratch)
        for v in range(v_start[event], v_start[event + 1]):
            d = UP(v_dimension[UP(v)])
            lowest[d], highest[d] = KEY_MAX, KEY_MIN
