"""Matching events against a segment, in two phases: collect survivors from the lists, then check their records.

An event with at most one value in each dimension, and no interval, is *plain*: spaces and codes decide nearly everything. Of any
other event, they decide what concerns dimensions in which it has one value; for the rest keys are compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import EventBatch
from tamis.engine.layout.aspects import nothing_seen
from tamis.engine.layout.pairs import PairScratch, find_pairs, pair_scratch
from tamis.engine.layout.plan import RANKED
from tamis.engine.layout.records import SHAPES
from tamis.engine.layout.scale import MISSING
from tamis.engine.layout.segment_build import Body, unpacked_body
from tamis.engine.matching.filtering import (
    AHEAD,
    LISTS_AHEAD,
    SORTED_AT_ONCE,
    check,
    check_pairs_several,
    check_runs_several,
    check_several,
    filter_pairs,
    room_for,
    scan_lists,
    scan_runs,
)
from tamis.engine.matching.lists_met import (
    MOST_LISTS,
    bound_runs,
    lists_of_several,
    load,
    load_wide,
    note_cells,
    presence_runs,
    show_several,
    unload,
)
from tamis.engine.matching.sorting import sort_rows
from tamis.kernels.kernel import entry_kernel, inlined
from tamis.kernels.numbers import UP
from tamis.kernels.packed import Packed, b1, i4, i8, packed, u1, u4, u8, words_at


class Scratch(NamedTuple):
    """What a thread needs to match against a segment; between events it is as it was made."""

    space: npt.NDArray[np.uint8]
    """The space of the event's value by dimension, MISSING; behind the last dimension 0, which always passes."""
    several: npt.NDArray[np.bool_]
    """Whether the event has several values in the dimension, or an interval."""
    seen: npt.NDArray[np.uint32]
    """The aspects of all dimensions; empty where none is wide."""
    low: npt.NDArray[np.int64]
    """The lowest and the highest key of the event, valid where it has the dimension."""
    high: npt.NDArray[np.int64]
    touched: npt.NDArray[np.int32]
    """The dimensions of the event, one after another."""
    first: npt.NDArray[np.int32]
    """The space of the lowest and of the highest key in each of them."""
    last: npt.NDArray[np.int32]
    """Of a plain event, whose spaces these would be again: where its keys lie in the table of points, -1: nowhere, it seems."""
    place: npt.NDArray[np.int32]
    """Of a plain event: where each of its values is looked up among whole numbers, or ~ the number of the value."""
    origin: npt.NDArray[np.int32]
    """Its dimensions as the matcher numbers them."""
    begin: npt.NDArray[np.int64]
    """The lists that the event meets."""
    end: npt.NDArray[np.int64]
    run: npt.NDArray[np.int64]
    """The runs that it meets, and the parts of them whose condition may hold."""
    run_begin: npt.NDArray[np.int64]
    run_end: npt.NDArray[np.int64]
    survivor: npt.NDArray[np.uint32]
    ordered: npt.NDArray[np.uint32]
    """Some of them, sorted by shape; and where those of each shape go."""
    places: npt.NDArray[np.int64]
    pairs: PairScratch


class Needs(NamedTuple):
    """What the scratch for a segment depends on. Segments that need the same can share it."""

    dimensions: int
    wide: bool
    """Whether any dimension is."""
    runs: int
    """Room for so many runs; and for so many cells, if there are pairs."""
    cells: int


def needs_of(body: Body) -> Needs:
    """What a segment needs, and some more, so that others like it need the same."""
    runs, cells = len(body.runs.list) + 1, body.cells if body.pairs.entries else 0
    return Needs(body.dimensions, len(body.lookup.shift) > 0, _round(runs), _round(cells))


def _round(number: int) -> int:
    return 1 << (number - 1).bit_length() if number else 0


def scratch_for(needs: Needs, entries: int, lists: int) -> Scratch:
    """Scratch for events that meet at most so many entries in so many lists."""
    dimensions = needs.dimensions
    ranked = min(dimensions, RANKED)
    space = np.full(ranked + 1, MISSING, np.uint8)
    space[ranked] = 0
    touched, first, last, place, origin = np.empty((5, dimensions + 1), np.int32)
    begin, end = np.zeros((2, lists + LISTS_AHEAD + 8), np.int64)
    run, run_begin, run_end = np.zeros((3, needs.runs), np.int64)
    return Scratch(
        space,
        np.zeros(ranked + 1, np.bool_),
        nothing_seen(ranked if needs.wide else 0),
        np.zeros(dimensions, np.int64),
        np.zeros(dimensions, np.int64),
        touched,
        first,
        last,
        place,
        origin,
        begin,
        end,
        run,
        run_begin,
        run_end,
        np.zeros(room_for(entries), np.uint32),
        np.zeros(SORTED_AT_ONCE + AHEAD, np.uint32),
        np.zeros(SHAPES, np.int64),
        pair_scratch(needs.cells, lists),
    )


NO_ROOM_ENTRIES, NO_ROOM_LISTS, NO_ROOM_OUT = 1, 2, 3


BODY, SCRATCH, START, DIMENSION, LOW, HIGH, COUNTS, OUT, WORK = range(9)
"""The arrays of a call of `match_rows`: the packed body and scratch, the events, how many rows each has, the rows, the work."""
EVENT, STOP, FILLED, LACK, NEED = range(18, 23)
"""The numbers behind them: from which event on, and up to which; what of OUT is filled; what was lacking, and how much of it."""
_CALL_WORDS = 23


def rows_call(
    body: Packed, scratch: Packed, batch: EventBatch, counts: Any, rows: npt.NDArray[np.uint32], work: Any
) -> Packed:
    """What `match_rows` takes. The caller keeps the arrays, and sets EVENT and STOP."""
    return packed((body, scratch, *batch, counts, rows, work), (0, 0, 0, 0, 0))


@entry_kernel
def match_rows(address: int) -> int:
    """Match events from EVENT up to STOP: rows, some with DOUBT, to OUT, how many each to COUNTS.

    `address` is that of a `rows_call`. EVENT becomes the event at which it stopped; LACK says what for, if it is not STOP.
    """
    call = words_at(address, _CALL_WORDS)
    batch = EventBatch(i8(call, START), i4(call, DIMENSION), i8(call, LOW), i8(call, HIGH))
    event, filled, lack, need = _match_rows(
        i8(call, BODY),
        batch,
        i8(call, SCRATCH),
        (call[EVENT], call[STOP]),
        i8(call, COUNTS),
        u4(call, OUT),
        i8(call, WORK),
    )
    call[EVENT], call[FILLED], call[LACK], call[NEED] = event, filled, lack, need
    return event


@inlined
def _match_rows(
    body: Any, batch: Any, scratch: Any, place: Any, counts: Any, out: Any, work: Any
) -> tuple[int, int, int, int]:
    """Returns the event at which it stopped, how much of `out` is filled, and, if it stopped for want of room, of what and how
    much is needed."""
    v_start, v_dimension, v_lo, v_hi = batch
    event, met, survivor, ordered, of_pairs = _unpacked_scratch(scratch)
    lookup, directory, listed, points, roll, runs, run_entry, record, pairs, sizes = unpacked_body(body)
    e, stop = place
    filled, lack, need = 0, 0, 0
    while e < stop and not lack:
        values = v_start[e], v_start[e + 1], v_dimension, v_lo, v_hi
        room = MOST_LISTS * (v_start[e + 1] - v_start[e] + 1)
        if room > len(met[0]):
            lack, need = NO_ROOM_LISTS, 2 * room
            break
        count, plain, lists, passed = load(values, lookup, directory, listed, runs.list, sizes, event, met)
        wide = len(event[2]) > 0
        if wide and plain:
            lists, passed = load_wide(
                values,
                count,
                lookup,
                directory,
                listed[0],
                points,
                roll,
                runs.list,
                sizes,
                event,
                (lists, passed),
                met,
            )
        once = lists
        if not plain:
            if wide:
                show_several(values, lookup, roll, event)
            lists, once, passed = lists_of_several(
                values, count, lookup, directory, points, runs.list, sizes, event, met
            )
        entries, paired, looked = 0, 0, 0
        if lists >= 0 and len(pairs[1]) > 0:
            cells = note_cells(values, count, plain, lookup, pairs, of_pairs, event)
            # Half of the room is left to survivors in doubt, which come from its end.
            paired, looked = find_pairs(pairs, of_pairs, max(cells, 0), survivor, (len(survivor) - AHEAD) // 2)
            lists = min(lists, cells) if cells < 0 else lists
        if lists < 0:
            lack, need = NO_ROOM_LISTS, 2 * len(met[0]) - lists
        elif paired < 0:
            lack, need = NO_ROOM_ENTRIES, -2 * paired
        else:
            if len(runs.list) > 0:
                passed = presence_runs(lookup[1], runs.list, sizes[0], event[5], count, passed, met)
                entries = bound_runs(runs, passed, event, met)
            for i in range(lists):
                entries += met[1][UP(i)] - met[0][UP(i)]
            need = entries + paired
            if room_for(need) > len(survivor):
                lack = NO_ROOM_ENTRIES
            elif filled + need > len(out):
                lack = NO_ROOM_OUT
        if not lack:
            before = filled
            work[0] += entries + looked
            if plain:
                found = filter_pairs(paired, pairs, event[0], survivor)
                found, passed_over = scan_lists(lists, met, listed, event[0], survivor, found, entries)
                work[0] -= passed_over
                if passed:
                    found, filled = scan_runs(runs, run_entry, passed, met, event, survivor, found, out, filled)
                work[1] += found
                filled = check(record, lookup[1], event, survivor, found, lists + passed, ordered, out, filled)
            else:
                if paired:
                    filled = check_pairs_several(paired, pairs, record, event, survivor, out, filled)
                    filled = before + sort_rows(out, before, filled)
                filled, passed_over = check_several(0, once, met, listed, record, event, survivor, out, filled)
                again = filled
                filled, more = check_several(once, lists, met, listed, record, event, survivor, out, filled)
                work[0] -= passed_over + more
                if passed:
                    filled = check_runs_several(runs, run_entry, passed, met, record, event, survivor, out, filled)
                filled = again + sort_rows(out, again, filled)
                work[1] += filled - before
            counts[e] = filled - before
        unload(count, plain, event)
        e += not lack
    return e, filled, lack, need


@inlined
def _unpacked_scratch(given: Any) -> Any:
    """The arrays of `Scratch`, in its order: of the event, of what it meets, survivors, sorted ones, and those of pairs."""
    return (
        (
            u1(given, 0),
            b1(given, 1),
            u4(given, 2),
            i8(given, 3),
            i8(given, 4),
            i4(given, 5),
            i4(given, 6),
            i4(given, 7),
            i4(given, 8),
            i4(given, 9),
        ),
        (i8(given, 10), i8(given, 11), i8(given, 12), i8(given, 13), i8(given, 14)),
        u4(given, 15),
        (u4(given, 16), i8(given, 17)),
        (u4(given, 18), u8(given, 19), i8(given, 20), i8(given, 21), b1(given, 22)),
    )
