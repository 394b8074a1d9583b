"""Matching events against a segment, in two phases: collect survivors from the lists, then check their records.

An event with at most one value in each dimension, and no interval, is *plain*: spaces and codes decide nearly everything. For any
other event lists and filters give candidates, whose keys are compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.kernel import inlined, lean_kernel
from tamis.encoding.keys import KEY_MIN
from tamis.engine.body import AT, BLOCKS, CELL, HAS_RUNS, LOWEST, PRESENCE, SHIFT_AT, SIDES, WHOLES, Body, unpacked_body
from tamis.engine.lists import BAND_RUN, LOWER_RUN, UPPER_RUN, find_point
from tamis.engine.numbers import I64, U32, U64, UP
from tamis.engine.packed import b1, i4, i8, u1, u4
from tamis.engine.plan import DONE, LONG, RANKED
from tamis.engine.prefetch import prefetch
from tamis.engine.records import DOUBT, PLACE_BITS, ROW, keys_hold, mask_holds, range_holds, set_holds
from tamis.engine.scale import MISSING, code_of, space_of, table_space
from tamis.engine.sorting import sort_unique

AHEAD = 16
"""So many records are fetched before they are needed."""
NO_CODE = 0xFFFFFFFF
_LISTS_AHEAD = 3
_LINES_AHEAD = 16
_PLACE = (1 << PLACE_BITS) - 1
_BEGIN = HAS_RUNS - 1


class Scratch(NamedTuple):
    """What a thread needs to match against one segment; between events it is as it was made."""

    space: npt.NDArray[np.uint8]
    """The space of the event's value by dimension, MISSING; behind the last dimension 0, which always passes."""
    several: npt.NDArray[np.bool_]
    """Whether the event has several values in the dimension, or an interval."""
    code: npt.NDArray[np.uint32]
    """The code of the event's value, NO_CODE; for wide dimensions."""
    low: npt.NDArray[np.int64]
    """The lowest and the highest key of the event, valid where it has the dimension."""
    high: npt.NDArray[np.int64]
    touched: npt.NDArray[np.int32]
    """The dimensions of the event, one after another."""
    first: npt.NDArray[np.int32]
    """The space of the lowest and of the highest key in each of them."""
    last: npt.NDArray[np.int32]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    run: npt.NDArray[np.int64]
    survivor: npt.NDArray[np.uint32]


def scratch_for(body: Body, entries: int, lists: int) -> Scratch:
    """Scratch for events that meet at most so many entries in so many lists."""
    dimensions = body.dimensions
    ranked = min(dimensions, RANKED)
    space = np.full(ranked + 1, MISSING, np.uint8)
    space[ranked] = 0
    touched, first, last = np.empty((3, dimensions + 1), np.int32)
    begin, end = np.zeros((2, lists + _LISTS_AHEAD + 8), np.int64)
    return Scratch(
        space,
        np.zeros(ranked + 1, np.bool_),
        np.full(dimensions if len(body.lookup.shift) else 0, NO_CODE, np.uint32),
        np.zeros(dimensions, np.int64),
        np.zeros(dimensions, np.int64),
        touched,
        first,
        last,
        begin,
        end,
        np.zeros(len(body.runs.list) + 1, np.int64),
        np.zeros(entries + AHEAD, np.uint32),
    )


NO_ROOM_ENTRIES, NO_ROOM_LISTS, NO_ROOM_OUT = 1, 2, 3


@lean_kernel
def match_rows(
    body: Any, batch: Any, scratch: Any, place: Any, counts: Any, out: Any, work: Any
) -> tuple[int, int, int, int]:
    """Match events from `place[0]` up to `place[1]`: rows, some with DOUBT, to `out`, how many each to `counts`.

    `body` and `scratch` are packed. Returns the event at which it stopped, how much of `out` is filled, and, if it stopped for
    want of room, of what and how much is needed.
    """
    v_start, v_dimension, v_lo, v_hi = batch
    space, several, code, low, high, touched, first, last, begin, end, run, survivor = _unpacked_scratch(scratch)
    lookup, directory, entry, points, runs, run_entry, record, sizes = unpacked_body(body)
    local, about, cuts, table, shift = lookup
    begins, bounds = directory
    event, stop = place
    filled, lack, need = 0, 0, 0
    while event < stop:
        values = v_start[event], v_start[event + 1]
        count, plain = load(
            begins,
            values,
            v_dimension,
            v_lo,
            v_hi,
            local,
            about,
            cuts,
            table,
            shift,
            space,
            several,
            code,
            low,
            high,
            touched,
            first,
            last,
        )
        met = 0
        if plain:
            lists, met = plain_lists(
                about, begins, bounds, entry, points, runs.list, sizes, touched, first, low, count, begin, end, run
            )
        else:
            lists = presence_lists(about, bounds, touched, first, last, count, begin, end)
            if lists >= 0:
                lists, met = several_lists(
                    values,
                    v_dimension,
                    v_lo,
                    v_hi,
                    local,
                    about,
                    cuts,
                    table,
                    begins,
                    points,
                    runs.list,
                    sizes,
                    begin,
                    end,
                    run,
                    lists,
                )
        entries = 0
        if lists < 0:
            lack, need = NO_ROOM_LISTS, 2 * len(begin) - lists
        else:
            if len(runs.list) > 0:
                for i in range(count):
                    if about[UP(touched[UP(i)] * 8 + PRESENCE)] >> 32 & HAS_RUNS:
                        met = add_runs(runs.list, sizes[0] + touched[UP(i)], met, run)
                for i in range(met):
                    f, g = run_bounds(runs, run[UP(i)], space, low, high)
                    entries += g - f
            for i in range(lists):
                entries += end[UP(i)] - begin[UP(i)]
            need = entries
            if entries + AHEAD > len(survivor):
                lack = NO_ROOM_ENTRIES
            elif filled + entries > len(out):
                lack = NO_ROOM_OUT
        if lack == 0:
            before = filled
            work[0] += entries
            if plain:
                for i in range(lists, lists + _LISTS_AHEAD):
                    begin[UP(i)], end[UP(i)] = 0, 0
                found = scan_lists(lists, begin, end, entry, space, survivor)
                if met:
                    found, filled = scan_runs(runs, run_entry, met, run, space, low, high, survivor, found, out, filled)
                work[1] += found
                filled = check(record, space, code, low, survivor, found, out, filled)
            else:
                filled = list_candidates(lists, begin, end, entry, record, space, several, out, filled)
                if met:
                    filled = run_candidates(runs, run_entry, met, run, record, space, low, high, out, filled)
                filled = before + sort_unique(out, before, filled)
                work[1] += filled - before
            counts[event] = filled - before
            event += 1
        unload(count, plain, touched, space, several, code)
        if lack:
            break
    return event, filled, lack, need


@inlined
def _unpacked_scratch(given: Any) -> Any:
    """The arrays of `Scratch`, in its order."""
    return (
        u1(given, 0),
        b1(given, 1),
        u4(given, 2),
        i8(given, 3),
        i8(given, 4),
        i4(given, 5),
        i4(given, 6),
        i4(given, 7),
        i8(given, 8),
        i8(given, 9),
        i8(given, 10),
        u4(given, 11),
    )


# -- the event


@inlined
def load(
    begins: Any,
    place: Any,
    v_dimension: Any,
    v_lo: Any,
    v_hi: Any,
    local: Any,
    about: Any,
    cuts: Any,
    table: Any,
    shift: Any,
    space: Any,
    several: Any,
    code: Any,
    low: Any,
    high: Any,
    touched: Any,
    first: Any,
    last: Any,
) -> tuple[int, bool]:
    """Find the spaces of the event's values; returns in how many dimensions it has some, and whether it is plain."""
    count, plain, before = 0, True, -1
    for v in range(place[0], place[1]):
        d = v_dimension[UP(v)]
        if d >= len(local):
            continue
        dimension = I64(local[UP(d)])
        if dimension < 0:
            continue
        key = v_lo[UP(v)]
        line = dimension * 8
        at, blocks = about[UP(line + AT)], about[UP(line + BLOCKS)]
        if blocks == 0:
            s = I64(table_space(table, at, about[UP(line + LOWEST)], about[UP(line + WHOLES)], key))
        else:
            s = space_of(cuts, at, blocks, key)
        t = s
        if v_hi[UP(v)] != key or d == before:
            plain = False
            t = _space(about, table, cuts, dimension, v_hi[UP(v)])
            if d == before:
                count -= 1
                s, t = min(s, I64(first[UP(count)])), max(t, I64(last[UP(count)]))
            if dimension < RANKED:
                several[UP(dimension)] = True
        else:
            prefetch(begins, about[UP(line + CELL)] + s)
        if about[UP(line + SHIFT_AT)] >= 0:
            code[UP(dimension)] = code_of(cuts, at, blocks, shift, about[UP(line + SHIFT_AT)], s, key)
            low[UP(dimension)] = min(low[UP(dimension)], key) if d == before else key
            high[UP(dimension)] = max(high[UP(dimension)], v_hi[UP(v)]) if d == before else v_hi[UP(v)]
        if dimension < RANKED:
            space[UP(dimension)] = s
        touched[UP(count)] = dimension
        first[UP(count)], last[UP(count)] = s, t
        count += 1
        before = d
    return count, plain


@inlined
def _space(about: Any, table: Any, cuts: Any, dimension: int, key: int) -> int:
    line = dimension * 8
    at, blocks = about[UP(line + AT)], about[UP(line + BLOCKS)]
    if blocks == 0:
        return I64(table_space(table, at, about[UP(line + LOWEST)], about[UP(line + WHOLES)], key))
    return space_of(cuts, at, blocks, key)


@inlined
def unload(count: int, plain: bool, touched: Any, space: Any, several: Any, code: Any) -> None:
    """Forget the event."""
    for i in range(count):
        if touched[UP(i)] < RANKED:
            space[UP(touched[UP(i)])] = MISSING
    if not plain:
        for i in range(count):
            if touched[UP(i)] < RANKED:
                several[UP(touched[UP(i)])] = False
    if len(code) > 0:
        for i in range(count):
            code[UP(touched[UP(i)])] = NO_CODE


# -- lists


@inlined
def presence_lists(
    about: Any, bounds: Any, touched: Any, first: Any, last: Any, count: int, begin: Any, end: Any
) -> int:
    """Note the lists that an event meets by having a dimension; returns how many, or minus the room that is needed."""
    if 5 * count + 8 > len(begin):
        return -5 * count - 8
    lists = 0
    for i in range(count):
        line = I64(touched[UP(i)]) * 8
        here = about[UP(line + PRESENCE)]
        begin[UP(lists)], end[UP(lists)] = (here >> 32) & _BEGIN, here & _BEGIN
        lists += I64(end[UP(lists)] > begin[UP(lists)])
        sides = about[UP(line + SIDES)]
        lists = add_prefix(bounds, sides & 0xFFFFFFFF, I64(first[UP(i)]), lists, begin, end)
        lists = add_prefix(bounds, sides >> 32, I64(last[UP(i)]), lists, begin, end)
    return lists


@inlined
def plain_lists(
    about: Any,
    begins: Any,
    bounds: Any,
    entry: Any,
    points: Any,
    run_lists: Any,
    sizes: Any,
    touched: Any,
    first: Any,
    low: Any,
    count: int,
    begin: Any,
    end: Any,
    run: Any,
) -> tuple[int, int]:
    """Note all lists of a plain event, and their runs; returns how many of each, or minus the room that is needed."""
    cells, dimensions = sizes
    point_start, point_key, point_table = points
    if 6 * count + 8 > len(begin):
        return -6 * count - 8, 0
    lists, runs = 0, 0
    for i in range(count):
        dimension, s = I64(touched[UP(i)]), I64(first[UP(i)])
        line = dimension * 8
        before = lists
        lists, runs = add_list(begins, run_lists, about[UP(line + CELL)] + s, lists, runs, begin, end, run)
        if lists > before:
            # Where lists are short, those that are fetched while others are scanned come too late.
            prefetch(entry, 2 * begin[UP(before)])
        here = about[UP(line + PRESENCE)]
        begin[UP(lists)], end[UP(lists)] = (here >> 32) & _BEGIN, here & _BEGIN
        lists += I64(end[UP(lists)] > begin[UP(lists)])
        sides = about[UP(line + SIDES)]
        if sides != 0:
            lists = add_prefix(bounds, sides & 0xFFFFFFFF, s, lists, begin, end)
            lists = add_prefix(bounds, sides >> 32, s, lists, begin, end)
        if len(point_key) > 0 and point_start[UP(dimension)] < point_start[UP(dimension + 1)]:
            number = I64(find_point(dimension, low[UP(dimension)], point_start, point_key, point_table))
            if number >= 0:
                at = cells + dimensions + 1 + number
                lists, runs = add_list(begins, run_lists, at, lists, runs, begin, end, run)
    return add_list(begins, run_lists, cells + dimensions, lists, runs, begin, end, run)


@inlined
def add_prefix(bounds: Any, at: int, space: int, lists: int, begin: Any, end: Any) -> int:
    """Note the satisfied prefix of sorted bounds that lie at `at` - 1; 0: there are none."""
    if at:
        begin[UP(lists)], end[UP(lists)] = I64(bounds[UP(at - 1)]), I64(bounds[UP(at + space)])
        lists += I64(end[UP(lists)] > begin[UP(lists)])
    return lists


@inlined
def several_lists(
    place: Any,
    v_dimension: Any,
    v_lo: Any,
    v_hi: Any,
    local: Any,
    about: Any,
    cuts: Any,
    table: Any,
    begins: Any,
    points: Any,
    run_lists: Any,
    sizes: Any,
    begin: Any,
    end: Any,
    run: Any,
    lists: int,
) -> tuple[int, int]:
    """The same for an event that is not plain; minus the room that is needed where there is too little."""
    cells, dimensions = sizes
    point_start, point_key, point_table = points
    runs = 0
    for v in range(place[0], place[1]):
        d = v_dimension[UP(v)]
        if d >= len(local) or local[UP(d)] < 0:
            continue
        dimension = I64(local[UP(d)])
        s = _space(about, table, cuts, dimension, v_lo[UP(v)])
        t = _space(about, table, cuts, dimension, v_hi[UP(v)])
        number, upto = point_start[UP(dimension)], point_start[UP(dimension + 1)]
        if number < upto:
            if v_lo[UP(v)] == v_hi[UP(v)]:
                number = I64(find_point(dimension, v_lo[UP(v)], point_start, point_key, point_table))
                upto = number + I64(number >= 0)
            else:
                number = first_above(point_key, number, upto, v_lo[UP(v)] - 1)
                upto = first_above(point_key, number, upto, v_hi[UP(v)])
        room = lists + (t - s + 1) + (upto - number) + 8
        if room > len(begin):
            return -room, 0
        for at in range(s, t + 1):
            at += about[UP(dimension * 8 + CELL)]
            lists, runs = add_list(begins, run_lists, at, lists, runs, begin, end, run)
        for at in range(max(number, 0), upto):
            at += cells + dimensions + 1
            lists, runs = add_list(begins, run_lists, at, lists, runs, begin, end, run)
    return add_list(begins, run_lists, cells + dimensions, lists, runs, begin, end, run)


@inlined
def add_list(
    begins: Any, run_lists: Any, number: int, lists: int, runs: int, begin: Any, end: Any, run: Any
) -> tuple[int, int]:
    b, e = I64(begins[UP(number)]), I64(begins[UP(number + 1)]) & _BEGIN
    begin[UP(lists)], end[UP(lists)] = b & _BEGIN, e
    lists += I64(e > b & _BEGIN)
    if b & HAS_RUNS:
        runs = add_runs(run_lists, number, runs, run)
    return lists, runs


@inlined
def add_runs(run_lists: Any, number: int, runs: int, run: Any) -> int:
    """Note the runs of a list, which may have been noted before."""
    r = first_above(run_lists, 0, len(run_lists), number - 1)
    while r < len(run_lists) and run_lists[UP(r)] == number:
        known = False
        for i in range(runs):
            known = known or run[UP(i)] == r
        if not known:
            run[UP(runs)] = r
            runs += 1
        r += 1
    return runs


@inlined
def first_above(keys: Any, begin: int, end: int, key: int) -> int:
    """The first place in ascending keys whose key is above `key`."""
    while begin < end:
        middle = (begin + end) // 2
        if keys[UP(middle)] <= key:
            begin = middle + 1
        else:
            end = middle
    return begin


# -- survivors


@inlined
def _fetch_list(entry: Any, begin: int, end: int) -> None:
    for line in range(min(_LINES_AHEAD, (end - begin + 7) // 8)):
        prefetch(entry, 2 * begin + 16 * line)


@inlined
def scan_lists(lists: int, begin: Any, end: Any, entry: Any, space: Any, survivor: Any) -> int:
    """Collect the entries whose filter words hold. The next lists are fetched meanwhile."""
    for i in range(_LISTS_AHEAD):
        _fetch_list(entry, begin[UP(i)], end[UP(i)])
    n = 0
    for i in range(lists):
        _fetch_list(entry, begin[UP(i + _LISTS_AHEAD)], end[UP(i + _LISTS_AHEAD)])
        for q in range(begin[UP(i)], end[UP(i)]):
            survivor[UP(n)] = entry[UP(2 * q + 1)]
            n += I64(range_holds(entry[UP(2 * q)], space))
    return n


@inlined
def run_bounds(runs: Any, r: int, space: Any, low: Any, high: Any) -> tuple[int, int]:
    """The entries of a run whose condition may hold: exactly those that do, but for bands."""
    _, dimensions, sides, _, start, keys, _ = runs
    dimension, side = I64(dimensions[UP(r)]), I64(sides[UP(r)])
    begin, end = start[UP(r)], start[UP(r + 1)]
    if space[UP(dimension)] == MISSING:
        return begin, begin
    if side == LOWER_RUN:
        return begin, gallop(keys, begin, end, high[UP(dimension)])
    if side == UPPER_RUN:
        return begin, gallop(keys, begin, end, ~low[UP(dimension)])
    widest = side - BAND_RUN + 1
    least = low[UP(dimension)]
    least = KEY_MIN if widest >= 63 or least < KEY_MIN + (1 << widest) else least - (1 << widest)
    upto = first_above(keys, begin, end, high[UP(dimension)])
    return first_above(keys, begin, upto, least), upto


@inlined
def gallop(keys: Any, begin: int, end: int, key: int) -> int:
    """`first_above` whose cost grows with the answer, not with the run."""
    step = 16
    while begin + step <= end and keys[UP(begin + step - 1)] <= key:
        begin += step
        step += step
    return first_above(keys, begin, min(begin + step, end), key)


@inlined
def scan_runs(
    runs: Any,
    entry: Any,
    count: int,
    run: Any,
    space: Any,
    low: Any,
    high: Any,
    survivor: Any,
    survivors: int,
    out: Any,
    filled: int,
) -> tuple[int, int]:
    """Collect survivors of runs; where nothing is left to check, they are matches."""
    _, dimensions, sides, complete, _, _, ends = runs
    for i in range(count):
        r = run[UP(i)]
        begin, end = run_bounds(runs, r, space, low, high)
        band = sides[UP(r)] >= BAND_RUN
        key = low[UP(dimensions[UP(r)])]
        if complete[UP(r)]:
            for q in range(begin, end):
                out[UP(filled)] = entry[UP(2 * q + 1)]
                filled += I64(not band or ends[UP(q)] >= key)
        else:
            for q in range(begin, end):
                survivor[UP(survivors)] = entry[UP(2 * q + 1)]
                within = not band or ends[UP(q)] >= key
                survivors += I64(range_holds(entry[UP(2 * q)], space) and within)
    return survivors, filled


@inlined
def list_candidates(
    lists: int, begin: Any, end: Any, entry: Any, record: Any, space: Any, several: Any, out: Any, filled: int
) -> int:
    """The rows that an event which is not plain may satisfy by its lists, some of them several times."""
    for i in range(lists):
        for q in range(begin[UP(i)], end[UP(i)]):
            word = entry[UP(2 * q)]
            if range_holds(word, space) or several[UP(word >> U32(16))]:
                out[UP(filled)] = _row(record, entry[UP(2 * q + 1)]) | U32(DOUBT)
                filled += 1
    return filled


@inlined
def run_candidates(
    runs: Any, entry: Any, count: int, run: Any, record: Any, space: Any, low: Any, high: Any, out: Any, filled: int
) -> int:
    """The same by its runs."""
    complete = runs.complete
    for i in range(count):
        r = run[UP(i)]
        first, last = run_bounds(runs, r, space, low, high)
        for q in range(first, last):
            reference = entry[UP(2 * q + 1)]
            out[UP(filled)] = (reference if complete[UP(r)] else _row(record, reference)) | U32(DOUBT)
            filled += 1
    return filled


@inlined
def _row(record: Any, reference: Any) -> Any:
    at = reference & U32(_PLACE)
    if reference >> U32(PLACE_BITS) == U32(DONE):
        return at
    return record[UP(at)] & U32(ROW)


# -- records


@inlined
def _fetch_record(record: Any, reference: Any) -> None:
    at = I64(reference & U32(_PLACE))
    shape = reference >> U32(PLACE_BITS)
    if shape != U32(DONE):
        prefetch(record, at)
        prefetch(record, at + 12)
    if shape == U32(LONG):
        prefetch(record, at + 24)


@inlined
def check(record: Any, space: Any, code: Any, low: Any, survivor: Any, survivors: int, out: Any, filled: int) -> int:
    """Check the records of survivors; the rows of those that hold are written."""
    for i in range(AHEAD):
        survivor[UP(survivors + i)] = U32(DONE << PLACE_BITS)
    for i in range(AHEAD):
        _fetch_record(record, survivor[UP(i)])
    for i in range(survivors):
        _fetch_record(record, survivor[UP(i + AHEAD)])
        reference = survivor[UP(i)]
        shape = I64(reference >> U32(PLACE_BITS))
        at = I64(reference & U32(_PLACE))
        if shape == DONE:
            out[UP(filled)] = U32(at)
            filled += 1
            continue
        ranges, sets, p = shape & 15, shape >> 4, at + 1
        if shape == LONG:
            ranges, sets, p = I64(record[UP(at + 1)] & U32(255)), 0, at + 3
        matched = True
        for w in range(p, p + ranges):
            if not range_holds(record[UP(w)], space):
                matched = False
                break
        if not matched:
            continue
        row = record[UP(at)]
        if shape == LONG:
            matched, doubt = check_long(record, at, p + ranges, space, code, low)
            row |= U32(doubt) << U32(31)
        else:
            for w in range(p + ranges, p + ranges + 2 * sets, 2):
                if not set_holds(record[UP(w)], record[UP(w + 1)], space):
                    matched = False
                    break
        out[UP(filled)] = row
        filled += I64(matched)
    return filled


@inlined
def check_long(record: Any, at: int, p: int, space: Any, code: Any, key: Any) -> tuple[bool, bool]:
    """Check what follows the ranges of a long record; returns whether it holds, and whether keys must be compared."""
    header, codes = record[UP(at + 1)], I64(record[UP(at + 2)] & U32(0xFFFF))
    edges = I64(record[UP(at + 2)] >> U32(16))
    # Without branches but for failing: ties are as good as random.
    tied = U32(0)
    for _ in range(edges):
        word = U64(record[UP(p)]) | (U64(record[UP(p + 1)]) << U64(32))
        width = U32(word & U64(0xFFFFFF))
        above = U32(code[UP(word >> U64(48))] - U32((word >> U64(24)) & U64(0xFFFFFF)))
        if above > width:
            return False, False
        tied |= U32(above == U32(0)) | U32(above == width)
        p += 2
    for _ in range(codes - edges):
        word = U64(record[UP(p)]) | (U64(record[UP(p + 1)]) << U64(32))
        above = U32(code[UP(word >> U64(48))] - U32((word >> U64(24)) & U64(0xFFFFFF)))
        if above > U32(word & U64(0xFFFFFF)):
            return False, False
        p += 2
    for _ in range(I64(header >> U32(24))):
        if not keys_hold(record, p, space, key):
            return False, False
        p += 1 + 2 * I64((record[UP(p)] >> U32(16)) & U32(0x7FFF))
    for _ in range(I64((header >> U32(8)) & U32(255))):
        if not set_holds(record[UP(p)], record[UP(p + 1)], space):
            return False, False
        p += 2
    for _ in range(I64((header >> U32(16)) & U32(255))):
        if not mask_holds(record, p, space):
            return False, False
        p += 9
    return True, tied != U32(0)
