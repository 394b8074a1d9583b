"""From rows to subscriptions: comparing keys where records could not decide, naming owners, running programs.

    row      0    1    2    3            sole owner's slot, or ~g: group g has the owners
    sole     17   ~0   4    ~1
    start    0    2    3                 owners of group g: start[g] .. start[g + 1]
    slot     8 9  3
    program  - -  12                     what the owner's tree still has to say, if it kept one
    several  - -  x                      the owner has more clauses: it is named once, whichever of them hold

Where slots lie close together, rows are numbered by them. A row with a sole owner is that of slot ``first + row``, and a bit says
which rows have one. So most owners are named without a read of memory. For a thousand rows, this read takes as long as finding
two hundred of them. Numbers without a row have a group without owners.

A subscription is dead from the moment that `died` says of its slot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.evaluation import EventPlaces, accepts, conjunction_holds, load_event, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.programs import ACCEPT, Programs
from tamis.engine.layout.record_words import is_in_doubt, row_of
from tamis.engine.matching.results import Life, Slots
from tamis.kernels.bits import has_bit_in_bytes
from tamis.kernels.fields import reader_of
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I64, U32, UP, Bools, I32s, I64s, U8s, U32s
from tamis.kernels.packed import Packed
from tamis.kernels.prefetch import prefetch
from tamis.kernels.ranges import Span
from tamis.kernels.sorting import sort_unique

ALIVE = np.iinfo(np.int64).max
"""The time of death of what lives."""
NOT_BY_SLOT = -(1 << 40)
_CLOSE = 64
_AHEAD = 16


class Owners(NamedTuple):
    """Who is named when a row holds, as kernels read it."""

    sole: I32s
    start: I64s
    slot: I32s
    program: I64s
    several: Bools

    def by_row(self, conjunction: I32s) -> Owners:
        """The owners of rows, given those of the conjunctions that rows were made from; -1: it was made from none."""
        nobody = len(self.start) - 1
        sole = np.where(conjunction < 0, ~nobody, self.sole[np.maximum(conjunction, 0)]).astype(np.int32)
        return self._replace(sole=sole, start=np.append(self.start, self.start[-1]))


class Numbering(NamedTuple):
    """How rows are numbered, as kernels read it."""

    first: I64s
    """The slot of row 0, in an array of its own; NOT_BY_SLOT."""
    is_sole: U8s
    """By row, one bit each: whether it has a sole owner. Empty if all have one, and where rows are not numbered by slots."""


OTHERWISE_NUMBERED = Numbering(np.array([NOT_BY_SLOT]), np.zeros(0, np.uint8))


def numbering_of(owners: Owners) -> Numbering:
    """How the rows of some owners are numbered."""
    rows = np.flatnonzero(owners.sole >= 0)
    first = owners.sole[rows] - rows
    if len(rows) == 0 or (first != first[0]).any():
        return OTHERWISE_NUMBERED
    groups = np.diff(owners.start)[~owners.sole[owners.sole < 0]]
    bits = np.packbits(owners.sole >= 0, bitorder="little") if groups.any() else np.zeros(0, np.uint8)
    return Numbering(first[:1].astype(np.int64), bits)


def slot_numbers(sole: I32s, most: int) -> I64s | None:
    """Numbers of the rows of conjunctions, by the slots of sole owners; None if these lie too far apart, or there are `most`."""
    alone = np.flatnonzero(sole >= 0)
    if len(alone) == 0:
        return None
    slots = sole[alone].astype(np.int64)
    first, span = int(slots.min()), int(slots.max()) - int(slots.min()) + 1
    others = len(sole) - len(alone)
    if span > len(alone) + len(sole) // 2 + _CLOSE or span + others >= most:
        return None
    numbers = np.empty(len(sole), np.int64)
    numbers[alone] = slots - first
    numbers[sole < 0] = span + np.arange(others)
    return numbers


class OwnerArrays(NamedTuple):
    """What naming the owners of rows needs."""

    owners: Owners
    conjunction: I32s
    """Row -> its conjunction in `table`."""
    table: Conjunctions
    programs: Programs
    numbering: Numbering


class NamingScratch(NamedTuple):
    """What naming owners writes to."""

    places: EventPlaces
    slots: Slots
    repeated: Slots
    """Slots of subscriptions with several clauses, found for one event, once for each clause that matches."""


class Place(NamedTuple):
    """How far the events of a batch have come."""

    event: int
    """The next event to name owners for."""
    stop: int
    """Rows have been found for the events before this one."""
    at: int
    """Where the rows of the next event begin."""


class _Named(NamedTuple):
    """What is known of an event while its owners are named."""

    filled: int
    """How many slots there are."""
    parts: int
    """How many slots are in `NamingScratch.repeated`."""
    compared: int
    """How many keys were compared."""
    loaded: bool
    """Whether the event is loaded."""


_read_owners = reader_of(OwnerArrays)


@lean_kernel
def name_owners(
    given: Packed, batch: EventBatch, life: Life, rows: U32s, counts: I64s, place: Place, naming: NamingScratch
) -> tuple[int, int, int, int]:
    """Turn the rows of events into slots; `counts`, which were those of rows, become those of slots.

    `given` are packed `OwnerArrays`. Returns the event at which it stopped for want of room, where its rows begin, how many slots
    there are, and how many rows were compared.
    """
    arrays = _read_owners(given)
    event, at = place.event, place.at
    filled, compared = 0, 0
    while event < place.stop:
        before, end = filled, at + counts[event]
        filled, parts, more = _name_rows(rows, Span(at, end), arrays, batch, event, life, naming, filled)
        compared += more
        if filled + parts > len(naming.slots) or parts > len(naming.repeated):
            return event, at, before, compared
        if parts:
            parts = sort_unique(naming.repeated, 0, parts)
            for i in range(parts):
                naming.slots[UP(filled + i)] = naming.repeated[UP(i)]
            filled += parts
        counts[event] = filled - before
        at = end
        event += 1
    return event, at, filled, compared


@merged
def _name_rows(
    rows: U32s,
    part: Span,
    arrays: OwnerArrays,
    batch: EventBatch,
    event: int,
    life: Life,
    naming: NamingScratch,
    filled: int,
) -> tuple[int, int, int]:
    """Name the owners of the rows of one event, without writing beyond the room that there is.

    `part` is where its rows are. Returns the number of slots, the number of slots besides of subscriptions with several
    clauses, and how many rows were compared.
    """
    i, end = part.begin, part.end
    owners, numbering, out = arrays.owners, arrays.numbering, naming.slots
    by_slot = numbering.first[0] != NOT_BY_SLOT
    loaded, parts, compared = False, 0, 0
    while i < end:
        if by_slot and filled + (end - i) <= len(out):
            i, filled = _name_by_slot(rows, i, end, numbering, life, out, filled)
            if i == end:
                break
        else:
            prefetch(owners.sole, row_of(rows[UP(min(i + _AHEAD, end - 1))]))
        word = rows[UP(i)]
        row = row_of(word)
        i += 1
        if is_in_doubt(word):
            if not loaded:
                load_event(batch, event, naming.places)
                loaded = True
            compared += 1
            if not conjunction_holds(arrays.conjunction[UP(row)], arrays.table, batch, naming.places):
                continue
        owner = I64(owners.sole[UP(row)])
        if owner >= 0:
            if filled < len(out):
                out[UP(filled)] = owner
            filled += I64(len(life.died) == 0 or life.died[UP(owner)] > life.now)
        else:
            before = _Named(filled, parts, compared, loaded)
            filled, parts, compared, loaded = _name_group(~owner, arrays, batch, event, life, naming, before)
    if loaded:
        unload_event(batch, event, naming.places)
    return filled, parts, compared


@inlined
def _name_group(
    group: int,
    arrays: OwnerArrays,
    batch: EventBatch,
    event: int,
    life: Life,
    naming: NamingScratch,
    before: _Named,
) -> _Named:
    """Name the owners of a row that has several, after those of the rows before it."""
    owners = arrays.owners
    filled, parts, compared, loaded = before
    for o in range(owners.start[UP(group)], owners.start[UP(group + 1)]):
        slot = owners.slot[UP(o)]
        if len(life.died) > 0 and life.died[UP(slot)] <= life.now:
            continue
        if owners.program[UP(o)] != ACCEPT:
            if not loaded:
                load_event(batch, event, naming.places)
                loaded = True
            compared += 1
            if not accepts(owners.program[UP(o)], arrays.programs, batch, naming.places):
                continue
        if owners.several[UP(o)]:
            if parts < len(naming.repeated):
                naming.repeated[UP(parts)] = slot
            parts += 1
        else:
            if filled < len(naming.slots):
                naming.slots[UP(filled)] = slot
            filled += 1
    return _Named(filled, parts, compared, loaded)


@inlined
def _name_by_slot(
    rows: U32s, i: int, end: int, numbering: Numbering, life: Life, out: Slots, filled: int
) -> tuple[int, int]:
    """Name sole owners by the numbers of their rows, up to a row that is in doubt or has several; there is room for all."""
    first, is_sole = numbering.first[0], numbering.is_sole
    died, now = life.died, life.now
    if len(died) == 0 and len(is_sole) == 0:
        doubt = U32(0)
        for k in range(i, end):
            doubt |= rows[UP(k)]
        if not is_in_doubt(doubt):  # LLVM makes vectors of this loop, which ends nowhere else.
            for k in range(end - i):
                out[UP(filled + k)] = first + row_of(rows[UP(i + k)])
            return end, filled + end - i
        while i < end and not is_in_doubt(rows[UP(i)]):
            out[UP(filled)] = first + row_of(rows[UP(i)])
            filled += 1
            i += 1
        return i, filled
    while i < end and not is_in_doubt(rows[UP(i)]):
        row = row_of(rows[UP(i)])
        if len(is_sole) > 0 and not has_bit_in_bytes(is_sole, row):
            break
        out[UP(filled)] = first + row
        if len(died) > 0:
            prefetch(died, first + row_of(rows[UP(min(i + _AHEAD, end - 1))]))
            filled += I64(died[UP(first + row)] > now)
        else:
            filled += 1
        i += 1
    return i, filled
