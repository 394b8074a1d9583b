"""From the entries that an event meets to the rows that it satisfies: filter words, then records."""

from __future__ import annotations

from typing import Any

from tamis.encoding.kernel import inlined
from tamis.encoding.numbers import I64, U8, U32, U64, UP
from tamis.engine.coding import SET_SIZE
from tamis.engine.lists import BAND_RUN
from tamis.engine.plan import DONE, LONG, SHAPES
from tamis.engine.prefetch import prefetch
from tamis.engine.records import (
    DOUBT,
    PLACE_BITS,
    code_above,
    codes_hold,
    keys_hold,
    mask_holds,
    range_holds,
    set_holds,
)
from tamis.engine.scale import MISSING

AHEAD = 16
"""So many records are fetched before they are needed."""
LISTS_AHEAD = 3
_LINES_AHEAD = 12
SORTED_FROM, SORTED_BELOW, SORTED_AT_ONCE = 256, 256, 1024
"""Survivors are sorted by shape if they are so many, but fewer than that in each list: with a thousand matches 10 to 20 % faster."""
_PLACE = (1 << PLACE_BITS) - 1


# -- plain events


@inlined
def scan_lists(lists: int, met: Any, entries: Any, space: Any, survivor: Any) -> int:
    """Collect the entries whose filter words hold. The next lists are fetched meanwhile: there is room for some more."""
    begin, end = met[0], met[1]
    entry, second = entries
    for i in range(lists, lists + LISTS_AHEAD):
        begin[UP(i)], end[UP(i)] = 0, 0
    for i in range(LISTS_AHEAD):
        _fetch_list(entry, begin[UP(i)], end[UP(i)])
    n = 0
    for i in range(lists):
        _fetch_list(entry, begin[UP(i + LISTS_AHEAD)], end[UP(i + LISTS_AHEAD)])
        if len(second) > 0:
            for q in range(begin[UP(i)], end[UP(i)]):
                survivor[UP(n)] = entry[UP(2 * q + 1)]
                n += I64(range_holds(entry[UP(2 * q)], space) & range_holds(second[UP(q)], space))
        else:
            for q in range(begin[UP(i)], end[UP(i)]):
                survivor[UP(n)] = entry[UP(2 * q + 1)]
                n += I64(range_holds(entry[UP(2 * q)], space))
    return n


@inlined
def _fetch_list(entry: Any, begin: int, end: int) -> None:
    # The first lines not in a loop with so many turns as there are lines, which would surprise the processor at every list.
    prefetch(entry, 2 * begin)
    prefetch(entry, 2 * begin + 16)
    prefetch(entry, 2 * begin + 32)
    prefetch(entry, 2 * begin + 48)
    if end - begin > 64:
        for line in range(4, _LINES_AHEAD):
            prefetch(entry, 2 * begin + 16 * line)


@inlined
def scan_runs(
    runs: Any, entry: Any, count: int, met: Any, event: Any, survivor: Any, survivors: int, out: Any, filled: int
) -> tuple[int, int]:
    """Collect survivors of runs; where nothing is left to check, they are matches."""
    _, dimensions, sides, complete, _, _, ends = runs
    _, _, run, run_begin, run_end = met
    space, low = event[0], event[3]
    for i in range(count):
        r = run[UP(i)]
        band = sides[UP(r)] >= BAND_RUN
        key = low[UP(dimensions[UP(r)])]
        if complete[UP(r)]:
            for q in range(run_begin[UP(i)], run_end[UP(i)]):
                out[UP(filled)] = entry[UP(2 * q + 1)]
                filled += I64(not band or ends[UP(q)] >= key)
        else:
            for q in range(run_begin[UP(i)], run_end[UP(i)]):
                survivor[UP(survivors)] = entry[UP(2 * q + 1)]
                within = not band or ends[UP(q)] >= key
                survivors += I64(range_holds(entry[UP(2 * q)], space) and within)
    return survivors, filled


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
def check(
    record: Any, event: Any, survivor: Any, survivors: int, lists: int, ordered: Any, out: Any, filled: int
) -> int:
    """Check the records of survivors from so many lists; the rows of those that hold are written."""
    # In a list, entries of one shape are neighbours already: only few of them from each list are worth sorting.
    sort = SORTED_FROM <= survivors < SORTED_BELOW * lists
    begin = 0
    while begin < survivors:
        block, count = survivor, survivors
        if sort:
            block, count = ordered[0], min(SORTED_AT_ONCE, survivors - begin)
            _sort_by_shape(survivor, begin, count, ordered)
        filled = _check_block(record, event, block, count, out, filled)
        begin += count
    return filled


@inlined
def _sort_by_shape(survivor: Any, begin: int, count: int, ordered: Any) -> None:
    """Bring survivors of one shape together: it says how many steps a record takes, which the processor then foresees."""
    references, places = ordered
    for shape in range(SHAPES):
        places[UP(shape)] = 0
    for i in range(begin, begin + count):
        places[UP(survivor[UP(i)] >> U32(PLACE_BITS))] += 1
    at = 0
    for shape in range(SHAPES):
        size = places[UP(shape)]
        places[UP(shape)] = at
        at += size
    for i in range(begin, begin + count):
        reference = survivor[UP(i)]
        shape = UP(reference >> U32(PLACE_BITS))
        at = places[shape]
        references[UP(at)] = reference
        places[shape] = at + 1


@inlined
def _check_block(record: Any, event: Any, survivor: Any, count: int, out: Any, filled: int) -> int:
    """Check some survivors; there is room for AHEAD more behind them."""
    space, _, code, low, _, _, _, _ = event
    for i in range(AHEAD):
        survivor[UP(count + i)] = U32(DONE << PLACE_BITS)
    for i in range(AHEAD):
        _fetch_record(record, survivor[UP(i)])
    for i in range(count):
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
            matched, doubt = _check_long(record, at, p + ranges, space, code, low)
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
def _check_long(record: Any, at: int, p: int, space: Any, code: Any, key: Any) -> tuple[bool, bool]:
    """Check what follows the ranges of a long record; returns whether it holds, and whether keys must be compared."""
    header, wide = record[UP(at + 1)], record[UP(at + 2)]
    codes, edges = I64(wide & U32(255)), I64((wide >> U32(8)) & U32(255))
    points = I64((wide >> U32(16)) & U32(255))
    # Without branches but for failing: ties are as good as random.
    tied = U32(0)
    for _ in range(edges):
        above, width = code_above(record, p, code), record[UP(p)] & U32(0xFFFFFF)
        if above > width:
            return False, False
        tied |= U32(above == U32(0)) | U32(above == width)
        p += 2
    for _ in range(codes - edges):
        if code_above(record, p, code) > record[UP(p)] & U32(0xFFFFFF):
            return False, False
        p += 2
    for _ in range(points):
        dimension = UP(record[UP(p)])
        point = I64(U64(record[UP(p + 1)]) | (U64(record[UP(p + 2)]) << U64(32)))
        if key[dimension] != point or space[dimension] == U8(MISSING):
            return False, False
        p += 3
    for _ in range(I64(wide >> U32(24))):
        if not codes_hold(record, p, code):
            return False, False
        p += 1 + SET_SIZE
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


# -- other events
#
# A list decides its access predicate for events of several values too: `x in {1, 2}` is true if one of them is. What filter words
# and records say of dimensions with several values is left in doubt. Survivors in doubt are collected from the end of the array.


@inlined
def check_several(
    first: int, last: int, met: Any, entries: Any, record: Any, event: Any, survivor: Any, out: Any, filled: int
) -> int:
    """Check the entries of some lists; the rows of those that hold, or may, are written, some of them several times."""
    begin, end = met[0], met[1]
    entry, second = entries
    space, several = event[0], event[1]
    sure, doubtful = 0, len(survivor)
    for i in range(first, last):
        for q in range(begin[UP(i)], end[UP(i)]):
            held, doubt = _may_hold(entry[UP(2 * q)], space, several)
            if len(second) > 0:
                also, doubts = _may_hold(second[UP(q)], space, several)
                held, doubt = held & also, doubt | doubts
            sure, doubtful = _put(entry[UP(2 * q + 1)], held, doubt, survivor, sure, doubtful)
    return _check_parts(record, event, survivor, sure, doubtful, out, filled)


@inlined
def check_runs_several(
    runs: Any, entry: Any, count: int, met: Any, record: Any, event: Any, survivor: Any, out: Any, filled: int
) -> int:
    """The same for runs."""
    _, dimensions, sides, complete, _, _, ends = runs
    _, _, run, run_begin, run_end = met
    space, several, low = event[0], event[1], event[3]
    sure, doubtful = 0, len(survivor)
    for i in range(count):
        r = run[UP(i)]
        dimension = UP(dimensions[UP(r)])
        # The highest value decides a lower bound, the lowest an upper one; a band may lie between two values.
        band = sides[UP(r)] >= BAND_RUN
        unsure = band and several[dimension]
        for q in range(run_begin[UP(i)], run_end[UP(i)]):
            if band and ends[UP(q)] < low[dimension]:
                continue
            if complete[UP(r)]:
                out[UP(filled)] = entry[UP(2 * q + 1)] | (U32(unsure) << U32(31))
                filled += 1
                continue
            held, doubt = _may_hold(entry[UP(2 * q)], space, several)
            sure, doubtful = _put(entry[UP(2 * q + 1)], held, doubt | unsure, survivor, sure, doubtful)
    return _check_parts(record, event, survivor, sure, doubtful, out, filled)


@inlined
def _may_hold(word: Any, space: Any, several: Any) -> tuple[bool, bool]:
    """Whether a range may hold, and whether that is in doubt."""
    doubt = several[UP(word >> U32(16))]
    return doubt | range_holds(word, space), doubt


@inlined
def _put(reference: Any, held: bool, doubt: bool, survivor: Any, sure: int, doubtful: int) -> tuple[int, int]:
    """Keep an entry that holds, at either end, without a branch: there is room between the two for what does not."""
    survivor[UP(sure)] = reference
    survivor[UP(doubtful - 1)] = reference
    return sure + I64(held & (not doubt)), doubtful - I64(held & doubt)


@inlined
def _check_parts(record: Any, event: Any, survivor: Any, sure: int, doubtful: int, out: Any, filled: int) -> int:
    filled = _check_some(record, event, survivor, 0, sure, U32(0), out, filled)
    return _check_some(record, event, survivor, doubtful, len(survivor), U32(DOUBT), out, filled)


@inlined
def _check_some(record: Any, event: Any, survivor: Any, begin: int, end: int, doubt: Any, out: Any, filled: int) -> int:
    """Check the records of a part of the survivors."""
    space, several = event[0], event[1]
    for i in range(begin, min(begin + AHEAD, end)):
        _fetch_record(record, survivor[UP(i)])
    for i in range(begin, end):
        _fetch_record(record, survivor[UP(min(i + AHEAD, end - 1))])
        reference = survivor[UP(i)]
        at, shape = I64(reference & U32(_PLACE)), I64(reference >> U32(PLACE_BITS))
        if shape == DONE:
            out[UP(filled)] = U32(at) | doubt
            filled += 1
            continue
        ranges, sets, p = shape & 15, shape >> 4, at + 1
        row = record[UP(at)] | doubt
        if shape == LONG:
            # What follows its ranges is left to the comparison of keys.
            ranges, sets, p, row = I64(record[UP(at + 1)] & U32(255)), 0, at + 3, row | U32(DOUBT)
        matched = True
        for w in range(p, p + ranges):
            held, unsure = _may_hold(record[UP(w)], space, several)
            row |= U32(unsure) << U32(31)
            if not held:
                matched = False
                break
        if not matched:
            continue
        for w in range(p + ranges, p + ranges + 2 * sets, 2):
            if several[UP((record[UP(w + 1)] >> U32(16)) & U32(0x7FFF))]:
                row |= U32(DOUBT)
            elif not set_holds(record[UP(w)], record[UP(w + 1)], space):
                matched = False
                break
        out[UP(filled)] = row
        filled += I64(matched)
    return filled
