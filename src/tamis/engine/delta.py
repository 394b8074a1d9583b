"""The delta: rows that are not in a segment yet, found by a hash table that is changed in place.

Columns grow at their end; their published part does not change. A row with predicates that name a value is *linked*: it is in the
chain of one of these values, the shortest chain. All other rows lie *apart*, and every event looks at them.

    heads    hash of dimension and key -> the row that was linked last, or -1; lengths: the number of rows in the chain

    links    next   dimension  key  dimension  lo  hi      a line of the caches for each row
             row    of the value    of the next narrowest

    apart    row        3     17    20
             dimension  7     ANY   12       of the narrowest predicate; ANY: nothing to test first
             lo, hi     10 30       MIN 99   its lowest and highest key

A reader may meet new rows in chains while another thread links them, and skips them. A row is never linked twice: if linking is
interrupted before the row counts, all rows move to new columns.

Columns have room behind their end, and are packed when they are made. A view is the columns and a number of rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.evaluation import conjunction_holds, load_event, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.plain_row import PlainRow, plain_conjunction, read_scratch
from tamis.encoding.expressions.predicates import Predicates
from tamis.encoding.expressions.programs import ACCEPT, NO_PROGRAMS, Programs
from tamis.engine.layout.lists import home_of
from tamis.engine.matching.owners import OTHERWISE_NUMBERED, NamingScratch, OwnerArrays, Owners, Place, name_owners
from tamis.engine.matching.results import CANDIDATES, COMPARED, SURVIVORS, WORK, Found, Life, Slots, Work
from tamis.engine.matching.thread_scratch import DeltaEvent, DeltaScratch, Extent
from tamis.engine.rows import Rows, concatenated_programs, nbytes
from tamis.engine.slot_lease import Lease
from tamis.kernels.atomic import store_last
from tamis.kernels.fields import packed_fields, reader_of
from tamis.kernels.kernel import brief_kernel, inlined, lean_kernel
from tamis.kernels.numbers import I64, UP, I32s, I64s, U32s
from tamis.kernels.packed import Packed, address_of
from tamis.kernels.prefetch import prefetch
from tamis.kernels.ranges import Span
from tamis.kernels.sorting import first_above

_ROWS = 64
"""Rows that the first columns have room for."""
_EACH = 8
"""Predicates per row that they have room for."""
_ROWS_ENTERED, _ROWS_APART = range(2)
"""Places in `Chains.entered`."""
_LINKED, _APART, _NO_ROOM, _NOT_PLAIN = range(4)
"""Results of `_append`."""
_ANY = -2
_NONE = -1
_SOME = int(Mode.SOME)
_NO_ROW = np.iinfo(np.int32).max
_NEXT, _DIMENSION, _KEY, _SECOND, _SECOND_LO, _SECOND_HI = range(6)
"""Places of the words of a row in `links`."""
_WORDS = 8
"""Words of a row in `links`: a line of the caches."""


class Apart(NamedTuple):
    """The narrowest predicates of rows that lie apart, ascending by row. Behind the last row there is `_NO_ROW`."""

    row: I32s
    dimension: I32s
    lo: I64s
    hi: I64s


class Chains(NamedTuple):
    """The hash table, the links, and the rows apart."""

    heads: I32s
    lengths: I32s
    """Lengths of the chains. Only the writer reads them."""
    links: I64s
    apart: Apart
    entered: I64s
    """The number of rows that are linked or lie apart, and the number of rows apart."""

    @classmethod
    def with_room(cls, rows: int) -> Chains:
        row = np.full(rows + 1, _NO_ROW, np.int32)
        apart = Apart(row, np.empty(rows, np.int32), *np.empty((2, rows), np.int64))
        heads = np.full(2 << (rows - 1).bit_length(), _NONE, np.int32)
        lengths, links = np.zeros(len(heads), np.int32), np.empty(_WORDS * rows, np.int64)
        return cls(heads, lengths, links, apart, np.zeros(2, np.int64))


class DeltaArrays(NamedTuple):
    """All arrays of a delta. The first of them are `OwnerArrays`, so `name_owners` can read the packed form."""

    owned: OwnerArrays
    chains: Chains


_read_delta = reader_of(DeltaArrays)


class Columns:
    """Rows, owners and chains, with room behind their end."""

    __slots__ = ("chains", "given", "numbers", "owners", "place", "programs", "table")

    def __init__(self, table: Conjunctions, owners: Owners, chains: Chains, programs: Programs) -> None:
        self.table = table
        self.owners = owners
        self.chains = chains
        self.programs = programs
        self.numbers = np.arange(len(owners.sole), dtype=np.int32)
        owned = OwnerArrays(owners, self.numbers, table, programs, OTHERWISE_NUMBERED)
        self.given: Packed = packed_fields(DeltaArrays(owned, chains))
        """The packed `DeltaArrays`."""
        self.place = address_of(self.given), len(self.given)

    @classmethod
    def with_room(cls, rows: int, predicates: int, intervals: int) -> Columns:
        start = np.zeros(predicates + 1, np.int64)
        lo, hi = np.empty((2, intervals), np.int64)
        held = Predicates(np.empty(predicates, np.int32), np.empty(predicates, np.uint8), start, lo, hi)
        slot, sole = np.empty((2, rows), np.int32)
        group = np.arange(rows + 1, dtype=np.int64)
        owners = Owners(sole, group, slot, np.empty(rows, np.int64), np.empty(rows, np.bool_))
        return cls(Conjunctions(np.zeros(rows + 1, np.int64), held), owners, Chains.with_room(rows), NO_PROGRAMS)

    def sizes(self, rows: int) -> tuple[int, int, int]:
        """The number of rows, predicates and intervals of the first `rows` rows."""
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
        ends = (predicates, predicates, predicates + 1, intervals, intervals, *[rows] * 5)
        mine: Any = (*self.table.predicates, *self.owners)
        theirs: Any = (*other.table.predicates, *other.owners)
        for old, new, end in zip(mine, theirs, ends, strict=True):
            new[:end] = old[:end]
        other.enter(0, rows)

    def enter(self, first: int, last: int) -> None:
        """Link rows, or put them apart."""
        _enter(self.given, first, last)


class DeltaView(NamedTuple):
    """The rows of a delta at one moment."""

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
    """The first `number` rows of `columns`. Only the writer changes it. Views stay as they are."""

    __slots__ = ("__weakref__", "apart", "columns", "lease", "number", "part_id")

    def __init__(self) -> None:
        self.lease = Lease()
        self.part_id = id(self)
        self.columns = Columns.with_room(_ROWS, _ROWS * _EACH, _ROWS * _EACH)
        self.number = 0
        self.apart = 0
        """The number of rows apart, which every event looks at."""

    @property
    def nbytes(self) -> int:
        """The size of the columns, with the room behind their end."""
        columns = self.columns
        return nbytes((columns.table, columns.owners, columns.chains, columns.programs))

    def __len__(self) -> int:
        return self.number

    def add(self, rows: Rows) -> None:
        """Append rows of subscriptions that have no rows here yet."""
        predicates = rows.table.predicates
        self._reserve(rows.number, len(predicates.dimension), len(predicates.lo))
        program = rows.program
        if len(rows.programs.then):
            joined, program = concatenated_programs(self.columns.programs, rows)
            columns = self.columns
            self.columns = Columns(columns.table, columns.owners, columns.chains, joined)
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
        columns.enter(first, last)
        self.number, self.apart = last, int(columns.chains.entered[_ROWS_APART])

    def add_plain(self, row: PlainRow, slot: int) -> bool:
        """Append one row, if it is a conjunction as it stands; returns whether it is."""
        added = _append(self.columns.given, self.number, slot, *row)
        if added == _NO_ROOM:
            self._reserve(1, row.predicates, row.length)
            added = _append(self.columns.given, self.number, slot, *row)
        if added == _NOT_PLAIN:
            return False
        self.number += 1
        self.apart += added == _APART
        return True

    def _reserve(self, rows: int, predicates: int, intervals: int) -> None:
        """Make room for more rows, in columns without rows of an interrupted call."""
        columns = self.columns
        used = columns.sizes(self.number)
        needed = [have + more for have, more in zip(used, (rows, predicates, intervals), strict=True)]
        fits = all(need <= room for need, room in zip(needed, columns.room(), strict=True))
        if fits and columns.chains.entered[_ROWS_ENTERED] == self.number:
            return
        doubled = [max(need, 2 * room) for need, room in zip(needed, columns.room(), strict=True)]
        larger = Columns.with_room(*doubled)
        columns.copied(self.number, larger)
        self.columns = Columns(larger.table, larger.owners, larger.chains, columns.programs)

    def slots(self) -> Slots:
        return self.columns.owners.slot[: self.number]

    def view(self) -> DeltaView:
        return DeltaView(self.columns, self.number)


@lean_kernel
def _enter(given: Packed, first: int, last: int) -> None:
    """Link rows, or put them apart."""
    arrays = _read_delta(given)
    for row in range(first, last):
        _enter_row(row, arrays.owned.table, arrays.chains)


@inlined
def _enter_row(row: int, table: Conjunctions, chains: Chains) -> None:
    """Link a row, or put it apart."""
    predicates = table.predicates
    heads, lengths, links, apart, entered = chains.heads, chains.lengths, chains.links, chains.apart, chains.entered
    narrowest, second = np.inf, np.inf
    d, low, high = _ANY, KEY_MIN, KEY_MAX
    second_d, second_low, second_high = _NONE, KEY_MIN, KEY_MAX
    for p in range(table.start[row], table.start[row + 1]):
        if predicates.mode[p] != _SOME:
            continue
        this_low = predicates.lo[predicates.start[p]]
        this_high = predicates.hi[predicates.start[p + 1] - 1]
        width = np.float64(this_high) - np.float64(this_low)
        if this_low == this_high:
            width = -1.0 / (1.0 + lengths[home_of(predicates.dimension[p], this_low, heads)])
        if width < narrowest:
            second, second_d, second_low, second_high = narrowest, max(d, _NONE), low, high
            narrowest, d, low, high = width, I64(predicates.dimension[p]), this_low, this_high
        elif width < second:
            second, second_d, second_low, second_high = width, I64(predicates.dimension[p]), this_low, this_high
    at = _WORDS * row
    links[at + _NEXT], links[at + _DIMENSION], links[at + _KEY] = _NONE, _ANY, low
    links[at + _SECOND], links[at + _SECOND_LO], links[at + _SECOND_HI] = second_d, second_low, second_high
    if d != _ANY and low == high:
        head = home_of(d, low, heads)
        links[at + _DIMENSION], links[at + _NEXT] = d, heads[head]
        lengths[head] += 1
        store_last(heads, head, row)
    else:
        place = entered[_ROWS_APART]
        apart.dimension[place], apart.lo[place], apart.hi[place] = d, low, high
        apart.row[place] = row
        entered[_ROWS_APART] += 1
    entered[_ROWS_ENTERED] = row + 1


@brief_kernel
def _append(given: Packed, row: int, slot: int, packed: Packed, codes: I64s, count: int, length: int) -> int:
    """Write a plain row behind the others, if there is room for it and it is a conjunction."""
    arrays = _read_delta(given)
    owners, table, entered = arrays.owned.owners, arrays.owned.table, arrays.chains.entered
    predicates = table.predicates
    place = table.start[row]
    at = predicates.start[place]
    if row >= len(owners.sole) or place + count > len(predicates.dimension) or entered[_ROWS_ENTERED] != row:
        return _NO_ROOM
    if at + length > len(predicates.lo):
        return _NO_ROOM
    kept = plain_conjunction(packed, codes, count)
    if kept < 0:
        return _NOT_PLAIN
    scratch = read_scratch(packed)
    for i in range(kept):
        p = scratch.order[i]
        predicates.dimension[place + i], predicates.mode[place + i] = scratch.dimension[p], scratch.mode[p]
        for v in range(scratch.start[p], scratch.start[p + 1]):
            predicates.lo[at], predicates.hi[at] = scratch.lo[v], scratch.hi[v]
            at += 1
        predicates.start[place + i + 1] = at
    table.start[row + 1] = place + kept
    owners.sole[row], owners.slot[row], owners.program[row], owners.several[row] = slot, slot, ACCEPT, False
    before = entered[_ROWS_APART]
    _enter_row(row, table, arrays.chains)
    return _APART if entered[_ROWS_APART] > before else _LINKED


def match_delta(view: DeltaView, batch: EventBatch, dimensions: int, life: Life, room: DeltaScratch) -> Found:
    """Match a batch against the rows of a delta."""
    events, (columns, rows) = len(batch.start) - 1, view
    counts = np.zeros(events, np.int64)
    parts: list[Slots] = []
    work = np.zeros(WORK, np.int64)
    found = room.found(rows)
    loaded = room.event(dimensions)
    event = 0
    while event < events:
        # As many events at a time as there is room for, even if all rows match.
        stop = min(events, event + max(1, len(found) // max(rows, 1)))
        scan_delta(columns.given, rows, batch, Span(event, stop), loaded, counts, found, work)
        at = 0
        size = int(counts[event:stop].sum())
        while event < stop:
            naming = NamingScratch(loaded.places, np.empty(size, np.int32), room.repeated(size))
            event, at, filled, compared = name_owners(
                columns.given, batch, life, found, counts, Place(event, stop, at), naming
            )
            parts.append(naming.slots[:filled])
            work[COMPARED] += compared
            size = max(2 * size, 1024)
    slots = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
    return Found(counts, slots, Work(*work.tolist()))


class _Scan(NamedTuple):
    """What scanning the rows of a delta for one event needs."""

    arrays: DeltaArrays
    batch: EventBatch
    loaded: DeltaEvent
    found: U32s
    """The rows that the event satisfies."""
    work: I64s


@lean_kernel
def scan_delta(
    given: Packed,
    rows: int,
    batch: EventBatch,
    events: Span,
    loaded: DeltaEvent,
    counts: I64s,
    found: U32s,
    work: I64s,
) -> None:
    """Note the rows that some events satisfy. `found` has room for all of them."""
    scan = _Scan(_read_delta(given), batch, loaded, found, work)
    apart = scan.arrays.chains.apart
    lying_apart = first_above(apart.row, 0, len(apart.row), rows - 1)
    filled = 0
    for event in range(events.begin, events.end):
        load_event(batch, event, loaded.places)
        one_by_one = _extend(event, scan.arrays.chains, batch, loaded.extent)
        before = filled
        filled = _scan_chains(event, rows, scan, filled) if one_by_one else _scan_links(rows, scan, filled)
        filled = _scan_apart(lying_apart, scan, filled)
        counts[event] = filled - before
        unload_event(batch, event, loaded.places)
        for v in range(batch.start[event], batch.start[event + 1]):
            d = UP(batch.dimension[UP(v)])
            loaded.extent.lowest[d], loaded.extent.highest[d] = KEY_MAX, KEY_MIN


@inlined
def _extend(event: int, chains: Chains, batch: EventBatch, extent: Extent) -> bool:
    """Note the lowest and highest keys of an event, and fetch the heads of its chains.

    Returns whether it has no interval and no value twice: otherwise chains would miss rows, or find them twice.
    """
    one_by_one = True
    first = batch.start[event]
    for v in range(first, batch.start[event + 1]):
        d, low, high = batch.dimension[UP(v)], batch.lo[UP(v)], batch.hi[UP(v)]
        ascends = v == first or batch.dimension[UP(v - 1)] != d or batch.lo[UP(v - 1)] < low
        one_by_one &= ascends and low == high
        extent.lowest[UP(d)] = min(extent.lowest[UP(d)], low)
        extent.highest[UP(d)] = max(extent.highest[UP(d)], high)
        prefetch(chains.heads, home_of(I64(d), low, chains.heads))
    return one_by_one


@inlined
def _scan_chains(event: int, rows: int, scan: _Scan, filled: int) -> int:
    """Note the linked rows that an event satisfies, by the chains of its values."""
    batch, heads, links = scan.batch, scan.arrays.chains.heads, scan.arrays.chains.links
    for v in range(batch.start[event], batch.start[event + 1]):
        head = home_of(I64(batch.dimension[UP(v)]), batch.lo[UP(v)], heads)
        prefetch(links, _WORDS * max(heads[UP(head)], 0))
    for v in range(batch.start[event], batch.start[event + 1]):
        d, key = I64(batch.dimension[UP(v)]), batch.lo[UP(v)]
        row = I64(heads[UP(home_of(d, key, heads))])
        while row != _NONE:
            at = _WORDS * row
            scan.work[CANDIDATES] += 1
            named = (links[UP(at + _DIMENSION)] == d) & (links[UP(at + _KEY)] == key)
            if (row < rows) & named & _second_may_hold(links, at, scan.loaded.extent):
                filled = _note_if_it_holds(row, scan, filled)
            row = links[UP(at + _NEXT)]
    return filled


@inlined
def _scan_links(rows: int, scan: _Scan, filled: int) -> int:
    """Note the linked rows that an event satisfies, among all rows: an interval of the event may cover many values."""
    links, extent = scan.arrays.chains.links, scan.loaded.extent
    for row in range(rows):
        at = _WORDS * row
        d, key = links[UP(at + _DIMENSION)], links[UP(at + _KEY)]
        within = (key <= extent.highest[UP(max(d, 0))]) & (extent.lowest[UP(max(d, 0))] <= key)
        scan.work[CANDIDATES] += I64(d != _ANY)
        if (d != _ANY) & within & _second_may_hold(links, at, extent):
            filled = _note_if_it_holds(row, scan, filled)
    return filled


@inlined
def _scan_apart(count: int, scan: _Scan, filled: int) -> int:
    """Note the rows that an event satisfies, among the first `count` rows apart."""
    apart, extent = scan.arrays.chains.apart, scan.loaded.extent
    for i in range(count):
        # One branch, taken by the few rows that pass. With more branches, which are hard to predict, it took four times as long.
        d = apart.dimension[UP(i)]
        at = UP(max(d, 0))
        if (d == _ANY) | ((apart.lo[UP(i)] <= extent.highest[at]) & (extent.lowest[at] <= apart.hi[UP(i)])):
            filled = _note_if_it_holds(I64(apart.row[UP(i)]), scan, filled)
    scan.work[CANDIDATES] += count
    return filled


@inlined
def _note_if_it_holds(row: int, scan: _Scan, filled: int) -> int:
    """Note a row if the event satisfies all of its predicates; returns the number of noted rows."""
    scan.work[SURVIVORS] += 1
    scan.found[UP(filled)] = row
    return filled + I64(conjunction_holds(row, scan.arrays.owned.table, scan.batch, scan.loaded.places))


@inlined
def _second_may_hold(links: I64s, at: int, extent: Extent) -> bool:
    """Whether the event has values around those of the next narrowest predicate, if there is one."""
    d = links[UP(at + _SECOND)]
    lowest, highest = extent.lowest[UP(max(d, 0))], extent.highest[UP(max(d, 0))]
    return (d == _NONE) | ((links[UP(at + _SECOND_LO)] <= highest) & (lowest <= links[UP(at + _SECOND_HI)]))
