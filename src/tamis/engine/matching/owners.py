"""From rows to subscriptions: comparing keys where records could not decide, naming owners, running programs.

    row      0    1    2    3            sole owner's slot, or ~g: group g has the owners
    sole     17   ~0   4    ~1
    start    0    2    3                 owners of group g: start[g] .. start[g + 1]
    slot     8 9  3
    program  - -  12                     what the owner's tree still has to say, if it kept one
    several  - -  x                      the owner has more clauses: it is named once, whichever of them hold

Where slots lie close together, rows are numbered by them: a row with a sole owner is that of slot ``first + row``, and a bit
says which rows have one. So most are named without a look at memory, which for a thousand rows takes as long as finding
two hundred of them. Numbers that are nobody's have a group without owners.

A subscription is dead from the moment that `died` says of its slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import holds
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.programs import ACCEPT, Programs
from tamis.engine.layout.records import DOUBT, ROW
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U8, U32, UP
from tamis.kernels.packed import Packed, b1, i4, i8, packed, u1
from tamis.kernels.prefetch import prefetch
from tamis.kernels.sorting import sort_unique

ALIVE = np.iinfo(np.int64).max
"""When what lives dies."""
NOT_BY_SLOT = -(1 << 40)
_CLOSE = 64
_AHEAD = 16


class Owners(NamedTuple):
    """Who is named when a row holds, as kernels read it."""

    sole: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int32]
    program: npt.NDArray[np.int64]
    several: npt.NDArray[np.bool_]

    def by_row(self, conjunction: npt.NDArray[np.int32]) -> Owners:
        """The owners of rows, given those of the conjunctions that rows were made from; -1: it was made from none."""
        nobody = len(self.start) - 1
        sole = np.where(conjunction < 0, ~nobody, self.sole[np.maximum(conjunction, 0)]).astype(np.int32)
        return self._replace(sole=sole, start=np.append(self.start, self.start[-1]))


class Numbering(NamedTuple):
    """How rows are numbered, as kernels read it."""

    first: npt.NDArray[np.int64]
    """The slot of row 0, in an array of its own; NOT_BY_SLOT."""
    is_sole: npt.NDArray[np.uint8]
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


def slot_numbers(sole: npt.NDArray[np.int32], most: int) -> npt.NDArray[np.int64] | None:
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


class EventScratch(NamedTuple):
    """By dimension of the matcher: where the event's values begin, and how many there are; 0 between events."""

    value: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]


OWNERS_PACKED = 21
"""So many arrays are packed by `packed_owners`."""


def packed_owners(
    owners: Owners,
    numbering: Numbering,
    conjunction: npt.NDArray[np.int32],
    table: Conjunctions,
    programs: Programs,
) -> Packed:
    """What naming the owners of rows needs, as one; see `_unpacked_owners` for the order."""
    start, predicates = table
    steps = (*programs.predicates, programs.then, programs.otherwise)
    return packed((*owners, conjunction, start, *predicates, *steps, *numbering))


@inlined
def _unpacked_owners(given: Any) -> Any:
    return (
        (i4(given, 0), i8(given, 1), i4(given, 2), i8(given, 3), b1(given, 4)),
        i4(given, 5),
        (i8(given, 6), (i4(given, 7), u1(given, 8), i8(given, 9), i8(given, 10), i8(given, 11))),
        (
            (i4(given, 12), u1(given, 13), i8(given, 14), i8(given, 15), i8(given, 16)),
            i8(given, 17),
            i8(given, 18),
        ),
        (i8(given, 19)[0], u1(given, 20)),
    )


@lean_kernel
def name_owners(
    given: Any, batch: Any, life: Any, found: Any, place: Any, scratch: EventScratch, out: Any
) -> tuple[int, int, int, int]:
    """Turn the rows found for events from `place[0]` up to `place[1]` into slots; `found` is rows and counts, made new counts.

    Returns the event at which it stopped for want of room, where its rows begin, how much of `out` is filled, and how many
    rows were compared. `place[2]` says where the rows of the first event begin. No deaths at all: `life[0]` is empty.
    """
    owners, conjunction, table, programs, numbering = _unpacked_owners(given)
    sole, group, slots, program, several = owners
    start, predicates = table
    died, now = life
    immortal, by_slot = len(died) == 0, numbering[0] != NOT_BY_SLOT
    rows, counts = found
    event, stop, at = place
    out_slots, clauses = out
    filled, compared = 0, 0
    while event < stop:
        before, i, end, loaded, parts = filled, at, at + counts[event], False, 0
        while i < end:
            if by_slot and filled + (end - i) <= len(out_slots):
                i, filled = _name_by_slot(rows, i, end, numbering, life, out_slots, filled)
                if i == end:
                    break
            else:
                prefetch(sole, I64(rows[UP(min(i + _AHEAD, end - 1))] & U32(ROW)))
            word = rows[UP(i)]
            row = I64(word & U32(ROW))
            i += 1
            if word & U32(DOUBT):
                if not loaded:
                    load_event(batch, event, scratch)
                    loaded = True
                compared += 1
                if not conjunction_holds(conjunction[UP(row)], start, predicates, batch, scratch):
                    continue
            owner = I64(sole[UP(row)])
            if owner >= 0:
                if filled < len(out_slots):
                    out_slots[UP(filled)] = owner
                filled += I64(immortal or died[UP(owner)] > now)
                continue
            for o in range(group[UP(~owner)], group[UP(~owner + 1)]):
                slot = slots[UP(o)]
                if not immortal and died[UP(slot)] <= now:
                    continue
                if program[UP(o)] != ACCEPT:
                    if not loaded:
                        load_event(batch, event, scratch)
                        loaded = True
                    compared += 1
                    if not accepts(program[UP(o)], programs, batch, scratch):
                        continue
                if several[UP(o)]:
                    if parts < len(clauses):
                        clauses[UP(parts)] = slot
                    parts += 1
                else:
                    if filled < len(out_slots):
                        out_slots[UP(filled)] = slot
                    filled += 1
        if loaded:
            unload_event(batch, event, scratch)
        if filled + parts > len(out_slots) or parts > len(clauses):
            return event, at, before, compared
        if parts:
            parts = sort_unique(clauses, 0, parts)
            for i in range(parts):
                out_slots[UP(filled + i)] = clauses[UP(i)]
            filled += parts
        counts[event] = filled - before
        at = end
        event += 1
    return event, at, filled, compared


@inlined
def _name_by_slot(rows: Any, i: int, end: int, numbering: Any, life: Any, out: Any, filled: int) -> tuple[int, int]:
    """Name sole owners by the numbers of their rows, up to a row that is in doubt or has several; there is room for all."""
    first, is_sole = numbering
    died, now = life
    if len(died) == 0 and len(is_sole) == 0:
        while i < end and not rows[UP(i)] & U32(DOUBT):
            out[UP(filled)] = first + I64(rows[UP(i)] & U32(ROW))
            filled += 1
            i += 1
        return i, filled
    while i < end and not rows[UP(i)] & U32(DOUBT):
        row = I64(rows[UP(i)] & U32(ROW))
        if len(is_sole) > 0 and not (is_sole[UP(row >> 3)] >> U8(row & 7)) & U8(1):
            break
        out[UP(filled)] = first + row
        if len(died) > 0:
            prefetch(died, first + I64(rows[UP(min(i + _AHEAD, end - 1))] & U32(ROW)))
            filled += I64(died[UP(first + row)] > now)
        else:
            filled += 1
        i += 1
    return i, filled


@inlined
def load_event(batch: Any, event: int, scratch: Any) -> None:
    start, dimension, _, _ = batch
    value, values = scratch
    for v in range(start[event], start[event + 1]):
        d = dimension[UP(v)]
        if values[UP(d)] == 0:
            value[UP(d)] = v
        values[UP(d)] += 1


@inlined
def unload_event(batch: Any, event: int, scratch: Any) -> None:
    start, dimension, _, _ = batch
    _, values = scratch
    for v in range(start[event], start[event + 1]):
        values[UP(dimension[UP(v)])] = 0


@inlined
def conjunction_holds(row: int, start: Any, predicates: Any, batch: Any, scratch: Any) -> bool:
    """Whether all predicates of a conjunction are true of the loaded event."""
    p_dimension, p_mode, p_start, p_lo, p_hi = predicates
    _, _, v_lo, v_hi = batch
    value, values = scratch
    for p in range(start[row], start[row + 1]):
        d = p_dimension[p]
        if not holds(p_mode[p], p_lo, p_hi, p_start[p], p_start[p + 1], v_lo, v_hi, value[UP(d)], values[UP(d)]):
            return False
    return True


@inlined
def accepts(step: int, programs: Any, batch: Any, scratch: Any) -> bool:
    """Whether a program accepts the loaded event."""
    predicates, then, otherwise = programs
    p_dimension, p_mode, p_start, p_lo, p_hi = predicates
    _, _, v_lo, v_hi = batch
    value, values = scratch
    while step >= 0:
        d = p_dimension[step]
        held = holds(
            p_mode[step], p_lo, p_hi, p_start[step], p_start[step + 1], v_lo, v_hi, value[UP(d)], values[UP(d)]
        )
        step = then[step] if held else otherwise[step]
    return step == ACCEPT
