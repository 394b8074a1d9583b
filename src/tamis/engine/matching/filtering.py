"""From the entries that an event meets to the rows that it satisfies: filter words, then records."""

from __future__ import annotations

from typing import Any

from tamis.engine.layout.aspects import ASPECTS, is_bound, is_member
from tamis.engine.layout.guards import BLOCK, GUARDED
from tamis.engine.layout.pairs import pair_reference, pair_word
from tamis.engine.layout.records import (
    DONE,
    DOUBT,
    LONG,
    PLACE_BITS,
    PREDICATES_AT,
    ROW,
    SHAPES,
    UNIT,
    far_set_holds,
    far_set_size,
    mask_holds,
    range_holds,
    set_holds,
)
from tamis.engine.layout.runs import BAND_RUN
from tamis.engine.layout.scale import CODE_BITS, HIGHEST_CODE, MISSING
from tamis.engine.layout.segment_build import EDGES, SHIFT_AT
from tamis.kernels.kernel import inlined, merged
from tamis.kernels.numbers import I64, U32, UP
from tamis.kernels.prefetch import prefetch

AHEAD = 16
"""So many records are fetched before they are needed."""
LISTS_AHEAD = 3
_LINES_AHEAD = 12
SORTED_FROM, SORTED_BELOW, SORTED_AT_ONCE = 256, 256, 1024
"""Survivors are sorted by shape if they are so many, and fewer than that in each list: with a thousand it saves 10 to 20 %."""
_PLACE = (1 << PLACE_BITS) - 1


# -- plain events


@inlined
def filter_pairs(count: int, pairs: Any, space: Any, survivor: Any) -> int:
    """Put the references of those entries of pairs in the place of their numbers whose filter words hold; returns how many."""
    entry, n = pairs[3], 0
    for i in range(count):
        place = I64(survivor[UP(i)])
        survivor[UP(n)] = pair_reference(entry, place)
        n += I64(range_holds(pair_word(entry, place), space))
    return n


@inlined
def room_for(entries: int) -> int:
    """How long the array of survivors has to be, for so many entries."""
    return entries + entries // BLOCK + 2 * AHEAD


@inlined
def scan_lists(lists: int, met: Any, entries: Any, space: Any, survivor: Any, n: int, most: int) -> tuple[int, int]:
    """Collect the entries whose filter words hold, behind the survivors that there are; lists have at most so many entries. The
    next lists are fetched meanwhile: there is room for some more. Returns how many survivors there are, and how many entries
    guards kept from being looked at."""
    begin, end = met[0], met[1]
    entry, second, guard = entries
    for i in range(lists, lists + LISTS_AHEAD):
        begin[UP(i)], end[UP(i)] = 0, 0
    for i in range(LISTS_AHEAD):
        _fetch_list(entry, guard, begin[UP(i)], end[UP(i)])
    # Blocks are collected at the end of the array: that takes no branch which the processor could only guess, and what is scanned
    # can be fetched in time.
    blocks = len(survivor) - AHEAD - most // BLOCK
    block, passed_over = blocks, 0
    for i in range(lists):
        _fetch_list(entry, guard, begin[UP(i + LISTS_AHEAD)], end[UP(i + LISTS_AHEAD)])
        first, last = begin[UP(i)], end[UP(i)]
        if _is_guarded(guard, first, last):
            passed_over += (last - first) // BLOCK
            for k in range(first // BLOCK, last // BLOCK):
                survivor[UP(block)] = U32(k)
                block += I64(space[UP(guard[UP(k)])] != MISSING)
        else:
            n = _scan(first, last, entry, second, space, survivor, n)
    if block > blocks:
        for i in range(block, block + AHEAD):
            survivor[UP(i)] = 0
        for i in range(blocks, blocks + AHEAD):
            _fetch_block(entry, second, I64(survivor[UP(i)]))
        for i in range(blocks, block):
            _fetch_block(entry, second, I64(survivor[UP(i + AHEAD)]))
            first = BLOCK * I64(survivor[UP(i)])
            n = _scan(first, first + BLOCK, entry, second, space, survivor, n)
    return n, BLOCK * (passed_over - (block - blocks))


@inlined
def _is_guarded(guard: Any, begin: int, end: int) -> bool:
    return end - begin >= GUARDED and begin < BLOCK * len(guard)


@inlined
def _fetch_block(entry: Any, second: Any, block: int) -> None:
    prefetch(entry, 2 * BLOCK * block)
    if len(second) > 0:
        prefetch(second, BLOCK * block)


@merged
def _scan(first: int, last: int, entry: Any, second: Any, space: Any, survivor: Any, n: int) -> int:
    """Collect some of the entries from one up to another."""
    if len(second) > 0:
        for q in range(first, last):
            survivor[UP(n)] = entry[UP(2 * q + 1)]
            n += I64(range_holds(entry[UP(2 * q)], space) & range_holds(second[UP(q)], space))
    else:
        for q in range(first, last):
            survivor[UP(n)] = entry[UP(2 * q + 1)]
            n += I64(range_holds(entry[UP(2 * q)], space))
    return n


@inlined
def _fetch_list(entry: Any, guard: Any, begin: int, end: int) -> None:
    if _is_guarded(guard, begin, end):
        return  # Which of its blocks to fetch is not known yet.
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
    _, dimensions, sides, complete, _, _, ends, shifts = runs
    _, _, run, run_begin, run_end = met
    space, low = event[0], event[3]
    for i in range(count):
        r = run[UP(i)]
        band = sides[UP(r)] >= BAND_RUN
        key, shift = low[UP(dimensions[UP(r)])], shifts[UP(r)]
        if complete[UP(r)]:
            for q in range(run_begin[UP(i)], run_end[UP(i)]):
                out[UP(filled)] = entry[UP(2 * q + 1)]
                filled += I64(not band or ends[UP(q + shift)] >= key)
        else:
            for q in range(run_begin[UP(i)], run_end[UP(i)]):
                survivor[UP(survivors)] = entry[UP(2 * q + 1)]
                within = not band or ends[UP(q + shift)] >= key
                survivors += I64(range_holds(entry[UP(2 * q)], space) and within)
    return survivors, filled


@inlined
def _fetch_record(record: Any, reference: Any, wide: bool) -> None:
    """Fetch a record; those of tests are longer."""
    at = UNIT * I64(reference & U32(_PLACE))
    shape = I64(reference >> U32(PLACE_BITS))
    if shape != DONE:
        prefetch(record, at)
        prefetch(record, at + (16 if wide else 12))
        if shape == LONG or (wide and (shape & 15) + (shape >> 4) > 16):
            prefetch(record, at + 32)


@inlined
def check(
    record: Any,
    about: Any,
    event: Any,
    survivor: Any,
    survivors: int,
    lists: int,
    ordered: Any,
    out: Any,
    filled: int,
) -> int:
    """Check the records of survivors from so many lists; the rows of those that hold are written."""
    # In a list, or a part of one with the same guard, entries of one shape are neighbours already: only few of them from each
    # list are worth sorting.
    sort = SORTED_FROM <= survivors < SORTED_BELOW * lists
    begin = 0
    while begin < survivors:
        block, count = survivor, survivors
        if sort:
            block, count = ordered[0], min(SORTED_AT_ONCE, survivors - begin)
            _sort_by_shape(survivor, begin, count, ordered)
        # Told here, and known in the loop: to ask there would cost either kind 5 %.
        if len(event[2]) > 0:
            filled = _check_block(record, about, event, block, count, True, out, filled)
        else:
            filled = _check_block(record, about, event, block, count, False, out, filled)
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
def _check_block(
    record: Any, about: Any, event: Any, survivor: Any, count: int, wide: bool, out: Any, filled: int
) -> int:
    """Check some survivors in a segment that has wide dimensions or not; there is room for AHEAD more behind them."""
    space, seen = event[0], event[2]
    for i in range(AHEAD):
        survivor[UP(count + i)] = U32(DONE << PLACE_BITS)
    for i in range(min(count, AHEAD)):
        _fetch_record(record, survivor[UP(i)], wide)
    for i in range(count):
        _fetch_record(record, survivor[UP(i + AHEAD)], wide)
        reference = survivor[UP(i)]
        shape = I64(reference >> U32(PLACE_BITS))
        at = UNIT * I64(reference & U32(_PLACE))
        if shape == DONE:
            out[UP(filled)] = reference & U32(_PLACE)
            filled += 1
            continue
        if shape == LONG:
            matched, tied = _check_long(record, at, space, seen)
        elif wide:
            named = I64((record[UP(at)] >> U32(PREDICATES_AT)) & U32(15))
            matched, tied = _check_tests(record, at + 1, shape & 15, named, shape >> 4, seen)
        else:
            matched, tied = _check_ranges(record, at + 1, shape & 15, shape >> 4, space), False
        if matched:
            doubt = wide and tied and _is_in_doubt(record, at, shape, seen, about)
            out[UP(filled)] = (record[UP(at)] & U32(DOUBT | ROW)) | (U32(doubt) << U32(31))
            filled += 1
    return filled


@inlined
def _check_ranges(record: Any, p: int, ranges: int, sets: int, space: Any) -> bool:
    matched = True
    for w in range(p, p + ranges):
        if not range_holds(record[UP(w)], space):
            return False
    for w in range(p + ranges, p + ranges + 2 * sets, 2):
        if not set_holds(record[UP(w)], record[UP(w + 1)], space):
            matched = False
            break
    return matched


@inlined
def _check_tests(record: Any, p: int, names: int, named: int, bounds: int, seen: Any) -> tuple[bool, bool]:
    """Whether all tests hold, and whether a bound is tied. Those for keys stand for so many predicates."""
    found = 0
    for w in range(p, p + names):
        test = record[UP(w)]
        found += I64(seen[UP(test >> U32(CODE_BITS))] == test)
    if found != named:
        return False, False
    least = U32(HIGHEST_CODE)
    for w in range(p + names, p + names + bounds):
        test = record[UP(w)]
        above = U32(seen[UP(test >> U32(CODE_BITS))] - test)
        if above > U32(HIGHEST_CODE):
            return False, False
        least = min(least, above)
    return True, least == U32(0)


@inlined
def _counts(record: Any, at: int, shape: int) -> tuple[int, int, int, int]:
    """Where the tests of a record begin, and how many there are for keys, for bounds, and far ones."""
    if shape != LONG:
        return at + 1, shape & 15, shape >> 4, 0
    header = record[UP(at + 2)]
    begin = at + 3 + I64(record[UP(at + 1)] & U32(255))
    return begin, I64(header & U32(255)), I64((header >> U32(8)) & U32(255)), I64((header >> U32(16)) & U32(255))


@inlined
def _check_long(record: Any, at: int, space: Any, seen: Any) -> tuple[bool, bool]:
    """Whether a long record holds, and whether a bound is tied."""
    header = record[UP(at + 1)]
    p, names, bounds, far = _counts(record, at, LONG)
    for w in range(at + 3, p):
        if not range_holds(record[UP(w)], space):
            return False, False
    matched, tied = _check_tests(record, p, names, I64(record[UP(at + 2)] >> U32(24)), bounds, seen)
    if not matched:
        return False, False
    p += names + bounds
    for _ in range(far):
        test, shown = record[UP(p + 1)], seen[UP(record[UP(p)])]
        above = U32(shown - test)
        if above > U32(HIGHEST_CODE) or (above != U32(0) and not is_bound(test)):
            return False, False
        tied |= above == U32(0)
        p += 2
    for _ in range(I64(header >> U32(24))):
        if not far_set_holds(record, p, seen):
            return False, False
        p += 1 + far_set_size(record[UP(p)])
    for _ in range(I64((header >> U32(8)) & U32(255))):
        if not set_holds(record[UP(p)], record[UP(p + 1)], space):
            return False, False
        p += 2
    for _ in range(I64((header >> U32(16)) & U32(255))):
        if not mask_holds(record, p, space):
            return False, False
        p += 9
    return True, tied


@inlined
def _is_in_doubt(record: Any, at: int, shape: int, seen: Any, about: Any) -> bool:
    """Whether a bound is tied that its code does not decide."""
    p, names, bounds, far = _counts(record, at, shape)
    doubt = False
    for w in range(p + names, p + names + bounds):
        test = record[UP(w)]
        doubt |= _is_edge(I64(test >> U32(CODE_BITS)), test, seen, about)
    for w in range(p + names + bounds, p + names + bounds + 2 * far, 2):
        doubt |= _is_edge(I64(record[UP(w)]), record[UP(w + 1)], seen, about)
    return doubt


@inlined
def _is_edge(aspect: int, test: Any, seen: Any, about: Any) -> bool:
    shifts = about[UP((aspect // ASPECTS) * 8 + SHIFT_AT)]
    return seen[UP(aspect)] == test and is_bound(test) and shifts >= 0 and shifts & EDGES != 0


# -- other events
#
# A list decides its access predicate for events of several values too: `x in {1, 2}` is true if one of them is. What filter words
# and records say of dimensions with several values is left in doubt. Survivors in doubt are collected from the end of the array.


@inlined
def check_several(
    first: int, last: int, met: Any, entries: Any, record: Any, event: Any, survivor: Any, out: Any, filled: int
) -> tuple[int, int]:
    """Check the entries of some lists; the rows of those that hold, or may, are written, some of them several times. Returns how
    much of `out` is filled, and how many entries guards kept from being looked at."""
    begin, end = met[0], met[1]
    entry, second, guard = entries
    space, several = event[0], event[1]
    sure, doubtful, passed_over = 0, len(survivor), 0
    for i in range(first, last):
        at, stop = begin[UP(i)], end[UP(i)]
        guarded = _is_guarded(guard, at, stop)
        while at < stop:
            upto = at + BLOCK if guarded else stop
            if guarded and space[UP(guard[UP(at // BLOCK)])] == MISSING:
                passed_over += BLOCK
                at = upto
            while at < upto:
                held, doubt = _may_hold(entry[UP(2 * at)], space, several)
                if len(second) > 0:
                    also, doubts = _may_hold(second[UP(at)], space, several)
                    held, doubt = held & also, doubt | doubts
                sure, doubtful = _put(entry[UP(2 * at + 1)], held, doubt, survivor, sure, doubtful)
                at += 1
    return _check_parts(record, event, survivor, sure, doubtful, out, filled), passed_over


@inlined
def check_pairs_several(count: int, pairs: Any, record: Any, event: Any, survivor: Any, out: Any, filled: int) -> int:
    """The same for so many entries of pairs, whose numbers are where survivors go; these come from both ends."""
    entry = pairs[3]
    space, several = event[0], event[1]
    sure, doubtful = 0, len(survivor)
    for i in range(count):
        place = I64(survivor[UP(i)])
        held, doubt = _may_hold(pair_word(entry, place), space, several)
        sure, doubtful = _put(pair_reference(entry, place), held, doubt, survivor, sure, doubtful)
    return _check_parts(record, event, survivor, sure, doubtful, out, filled)


@inlined
def check_runs_several(
    runs: Any, entry: Any, count: int, met: Any, record: Any, event: Any, survivor: Any, out: Any, filled: int
) -> int:
    """The same for runs."""
    _, dimensions, sides, complete, _, _, ends, shifts = runs
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
            if band and ends[UP(q + shifts[UP(r)])] < low[dimension]:
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
    space, several, seen = event[0], event[1], event[2]
    wide = len(seen) > 0
    for i in range(begin, min(begin + AHEAD, end)):
        _fetch_record(record, survivor[UP(i)], wide)
    for i in range(begin, end):
        _fetch_record(record, survivor[UP(min(i + AHEAD, end - 1))], wide)
        reference = survivor[UP(i)]
        at, shape = UNIT * I64(reference & U32(_PLACE)), I64(reference >> U32(PLACE_BITS))
        if shape == DONE:
            out[UP(filled)] = (reference & U32(_PLACE)) | doubt
            filled += 1
            continue
        p, ranges, sets, row = at + 1, shape & 15, shape >> 4, (record[UP(at)] & U32(DOUBT | ROW)) | doubt
        if shape == LONG:
            # What follows its ranges is left to the comparison of keys.
            p, ranges, sets, row = at + 3, I64(record[UP(at + 1)] & U32(255)), 0, row | U32(DOUBT)
        if wide and shape != LONG:
            matched, unsure = _check_tests_several(record, p, ranges, sets, seen, several)
        else:
            matched, unsure = _check_ranges_several(record, p, ranges, sets, space, several)
        out[UP(filled)] = row | (U32(unsure) << U32(31))
        filled += I64(matched)
    return filled


@inlined
def _check_ranges_several(record: Any, p: int, ranges: int, sets: int, space: Any, several: Any) -> tuple[bool, bool]:
    """Whether ranges and sets may hold, and whether that is in doubt."""
    doubt = False
    for w in range(p, p + ranges):
        held, unsure = _may_hold(record[UP(w)], space, several)
        doubt |= unsure
        if not held:
            return False, doubt
    for w in range(p + ranges, p + ranges + 2 * sets, 2):
        if several[UP((record[UP(w + 1)] >> U32(16)) & U32(0x7FFF))]:
            doubt = True
        elif not set_holds(record[UP(w)], record[UP(w + 1)], space):
            return False, doubt
    return True, doubt


@inlined
def _check_tests_several(record: Any, p: int, names: int, bounds: int, seen: Any, several: Any) -> tuple[bool, bool]:
    """The same for tests. Ties are taken for doubts."""
    found, doubt = False, False
    for w in range(p, p + names + bounds):
        test = record[UP(w)]
        shown, unsure = seen[UP(test >> U32(CODE_BITS))], several[UP(test >> U32(CODE_BITS + 2))]
        doubt |= unsure
        if w < p + names:
            found |= unsure or shown == test
            if is_member(test):
                continue
            held, found = found, False
        else:
            held = unsure or U32(shown - test) <= U32(HIGHEST_CODE)
            doubt |= shown == test
        if not held:
            return False, doubt
    return True, doubt
