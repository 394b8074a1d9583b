"""From rows to subscriptions: comparing keys where records could not decide, naming owners, running programs.

    row      0    1    2    3            sole owner's slot, or ~g: group g has the owners
    sole     17   ~0   4    ~1
    start    0    2    3                 owners of group g: start[g] .. start[g + 1]
    slot     8 9  3
    program  - -  12                     what the owner's tree still has to say, if it kept one
    several  - -  x                      the owner has more clauses: it is named once, whichever of them hold

A subscription is dead from the moment that `died` says of its slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.conjunctions import Conjunctions
from tamis.encoding.events import holds
from tamis.encoding.kernel import inlined, lean_kernel
from tamis.encoding.numbers import I64, U32, UP
from tamis.encoding.packed import Packed, b1, i4, i8, packed, u1
from tamis.encoding.programs import ACCEPT, Programs
from tamis.encoding.sorting import sort_unique
from tamis.engine.prefetch import prefetch
from tamis.engine.records import DOUBT, ROW

ALIVE = np.iinfo(np.int64).max
"""When what lives dies."""
_AHEAD = 16


class Owners(NamedTuple):
    """Who is named when a row holds, as kernels read it."""

    sole: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int32]
    program: npt.NDArray[np.int64]
    several: npt.NDArray[np.bool_]


class EventScratch(NamedTuple):
    """By dimension of the matcher: where the event's values begin, and how many there are; 0 between events."""

    value: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]


def packed_owners(
    owners: Owners, conjunction: npt.NDArray[np.int32], table: Conjunctions, programs: Programs
) -> Packed:
    """What naming the owners of rows needs, as one; see `_unpacked_owners` for the order."""
    start, predicates = table
    arrays = (*owners, conjunction, start, *predicates, *programs.predicates, programs.then, programs.otherwise)
    return packed(arrays)


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
    )


@lean_kernel
def name_owners(
    given: Any, batch: Any, life: Any, found: Any, place: Any, scratch: EventScratch, out: Any
) -> tuple[int, int, int, int]:
    """Turn the rows found for events from `place[0]` up to `place[1]` into slots; `found` is rows and counts, made new counts.

    Returns the event at which it stopped for want of room, where its rows begin, how much of `out` is filled, and how many
    rows were compared. `place[2]` says where the rows of the first event begin. No deaths at all: `life[0]` is empty.
    """
    owners, conjunction, table, programs = _unpacked_owners(given)
    sole, group, slots, program, several = owners
    start, predicates = table
    died, now = life
    immortal = len(died) == 0
    rows, counts = found
    event, stop, at = place
    out_slots, clauses = out
    filled, compared = 0, 0
    while event < stop:
        before, end, loaded, parts = filled, at + counts[event], False, 0
        for i in range(at, end):
            prefetch(sole, I64(rows[UP(min(i + _AHEAD, end - 1))] & U32(ROW)))
            word = rows[UP(i)]
            row = I64(word & U32(ROW))
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
