"""Checking: records reduce the survivors of a single-valued event to the rows that match."""

from __future__ import annotations

import numpy as np

from tamis.engine.layout.aspects import ASPECTS, aspect_of, is_bound
from tamis.engine.layout.lookup import ABOUT, EDGES, SHIFT_AT
from tamis.engine.layout.record_header import LONG_WORDS, long_header
from tamis.engine.layout.record_words import (
    DONE,
    FAR_TEST_WORDS,
    LONG,
    MASK_SIZE,
    SET_WORDS,
    SHAPES,
    far_set_holds,
    far_set_size,
    found_row,
    groups_in,
    in_doubt,
    mask_holds,
    predicates_in,
    range_holds,
    record_at,
    reference_of,
    set_holds,
    settled_row,
    shape_of,
)
from tamis.engine.layout.scale import HIGHEST_CODE
from tamis.engine.layout.segment_build import Body
from tamis.engine.matching.scratch import AHEAD, LANES, SORTED_AT_ONCE, LoadedEvent, Ordered, Scratch
from tamis.engine.matching.vectors import VECTORS, check_vector, have_only_ranges
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64, U32, UP, I64s, U8s, U32s
from tamis.kernels.prefetch import LINE, prefetch
from tamis.kernels.ranges import Span

SORTED_FROM, SORTED_BELOW = 256, 256
"""Survivors are sorted by shape from SORTED_FROM on, and below SORTED_BELOW for each list. A thousand survivors: 10 to 20 % less
time."""
FEWEST_IN_VECTORS = 32
"""Survivors from which on vector code checks records."""
_SECOND_FETCH = 12
"""The word of a record of ranges to prefetch besides the first: the words up to this one lie in at most two cache lines."""


@inlined
def fetch_record(record: U32s, reference: np.uint32, wide: bool) -> None:
    """Prefetch a record. Records of tests (`wide`) are longer."""
    at, shape = record_at(reference), shape_of(reference)
    names, bounds = groups_in(shape)
    if shape != DONE:
        prefetch(record, at)
        prefetch(record, at + (LINE if wide else _SECOND_FETCH))
        if shape == LONG or (wide and names + bounds > LINE):
            prefetch(record, at + 2 * LINE)


@inlined
def check(body: Body, scratch: Scratch, survivors: int, lists: int, out: U32s, filled: int) -> int:
    """Check the records of survivors that come from `lists` lists, and write the rows whose records hold."""
    event, survivor, ordered = scratch.event, scratch.survivor, scratch.ordered
    # In wide segments, entries of one shape are neighbours within a list, or within a part of a list that has the same guard. So
    # sorting pays only if each list gives few survivors. Other records are so quickly checked that it always pays: with 14,000
    # survivors it saves a fifth of the time, vector code or not.
    is_wide = len(event.seen) > 0
    sort = survivors >= SORTED_FROM and (not is_wide or survivors < SORTED_BELOW * lists)
    begin = 0
    while begin < survivors:
        block, count = survivor, survivors
        if sort:
            block, count = ordered.reference, min(SORTED_AT_ONCE, survivors - begin)
            _sort_by_shape(survivor, begin, count, ordered)
        for i in range(count, count + AHEAD + LANES):
            block[UP(i)] = U32(reference_of(DONE, 0))
        for i in range(AHEAD):
            fetch_record(body.record, block[UP(i)], is_wide)
        # `wide` is a constant in each call. To test it inside the loop costs segments of both kinds 5 %.
        if is_wide:
            filled = _check_block(body.record, body.lookup.about, event, block, Span(0, count), True, out, filled)
        elif VECTORS and count >= FEWEST_IN_VECTORS:
            filled = _check_in_vectors(body.record, body.lookup.about, event, block, count, out, filled)
        else:
            filled = _check_block(body.record, body.lookup.about, event, block, Span(0, count), False, out, filled)
        begin += count
    return filled


@inlined
def _sort_by_shape(survivor: U32s, begin: int, count: int, ordered: Ordered) -> None:
    """Sort survivors by shape. The shape tells how many steps a record takes, and the processor then predicts this number."""
    references, places = ordered.reference, ordered.place
    for shape in range(SHAPES):
        places[UP(shape)] = 0
    for i in range(begin, begin + count):
        places[UP(shape_of(survivor[UP(i)]))] += 1
    at = 0
    for shape in range(SHAPES):
        size = places[UP(shape)]
        places[UP(shape)] = at
        at += size
    for i in range(begin, begin + count):
        reference = survivor[UP(i)]
        shape = UP(shape_of(reference))
        at = places[shape]
        references[UP(at)] = reference
        places[shape] = at + 1


@inlined
def _check_block(
    record: U32s, about: I64s, event: LoadedEvent, survivor: U32s, part: Span, wide: bool, out: U32s, filled: int
) -> int:
    """Check some survivors. `wide`: the segment has wide dimensions. The first AHEAD records were fetched, and AHEAD follow."""
    space, seen = event.space, event.seen
    for i in range(part.begin, part.end):
        fetch_record(record, survivor[UP(i + AHEAD)], wide)
        reference = survivor[UP(i)]
        at, shape = record_at(reference), shape_of(reference)
        if shape == DONE:
            out[UP(filled)] = settled_row(reference)
            filled += 1
            continue
        if shape == LONG:
            matched, tied = check_long(record, at, space, seen)
        elif wide:
            names, bounds = groups_in(shape)
            matched, tied = check_tests(record, at + 1, names, predicates_in(record[UP(at)]), bounds, seen)
        else:
            ranges, sets = groups_in(shape)
            matched, tied = check_ranges(record, at + 1, ranges, sets, space), False
        if matched:
            doubt = wide and tied and ties_are_in_doubt(record, at, shape, seen, about)
            out[UP(filled)] = found_row(record[UP(at)]) | in_doubt(doubt)
            filled += 1
    return filled


@inlined
def _check_in_vectors(
    record: U32s, about: I64s, event: LoadedEvent, survivor: U32s, count: int, out: U32s, filled: int
) -> int:
    """`_check_block` of `count` survivors in a segment without wide dimensions."""
    for at in range(0, count, LANES):
        end = min(at + LANES, count)
        if have_only_ranges(survivor, at):
            for i in range(at + AHEAD, at + AHEAD + LANES):
                fetch_record(record, survivor[UP(i)], False)
            filled = check_vector(record, survivor, at, end, event.space, out, filled)
        else:
            filled = _check_block(record, about, event, survivor, Span(at, end), False, out, filled)
    return filled


@inlined
def check_ranges(record: U32s, p: int, ranges: int, sets: int, space: U8s) -> bool:
    matched = True
    for w in range(p, p + ranges):
        if not range_holds(record[UP(w)], space):
            return False
    for w in range(p + ranges, p + ranges + SET_WORDS * sets, SET_WORDS):
        if not set_holds(record[UP(w)], record[UP(w + 1)], space):
            matched = False
            break
    return matched


@inlined
def check_tests(record: U32s, p: int, names: int, named: int, bounds: int, seen: U32s) -> tuple[bool, bool]:
    """Whether all tests hold, and whether a bound is tied. The `names` tests for keys stand for `named` predicates."""
    found = 0
    for w in range(p, p + names):
        test = record[UP(w)]
        found += I64(seen[UP(aspect_of(test))] == test)
    if found != named:
        return False, False
    least = U32(HIGHEST_CODE)
    for w in range(p + names, p + names + bounds):
        test = record[UP(w)]
        above = U32(seen[UP(aspect_of(test))] - test)
        if above > U32(HIGHEST_CODE):
            return False, False
        least = min(least, above)
    return True, least == U32(0)


@inlined
def counts_of(record: U32s, at: int, shape: int) -> tuple[int, int, int, int]:
    """The place of the first test of a record, and the numbers of tests for keys, of tests for bounds, and of far tests."""
    if shape != LONG:
        names, bounds = groups_in(shape)
        return at + 1, names, bounds, 0
    header = long_header(record, at)
    return at + LONG_WORDS + header.ranges, header.names, header.bounds, header.far_tests


@inlined
def check_long(record: U32s, at: int, space: U8s, seen: U32s) -> tuple[bool, bool]:
    """Whether a long record holds, and whether a bound is tied."""
    header = long_header(record, at)
    p = at + LONG_WORDS + header.ranges
    for w in range(at + LONG_WORDS, p):
        if not range_holds(record[UP(w)], space):
            return False, False
    matched, tied = check_tests(record, p, header.names, header.named, header.bounds, seen)
    if not matched:
        return False, False
    p += header.names + header.bounds
    for _ in range(header.far_tests):
        test, shown = record[UP(p + 1)], seen[UP(record[UP(p)])]
        above = U32(shown - test)
        if above > U32(HIGHEST_CODE) or (above != U32(0) and not is_bound(test)):
            return False, False
        tied |= above == U32(0)
        p += FAR_TEST_WORDS
    for _ in range(header.far_sets):
        if not far_set_holds(record, p, seen):
            return False, False
        p += 1 + far_set_size(record[UP(p)])
    for _ in range(header.sets):
        if not set_holds(record[UP(p)], record[UP(p + 1)], space):
            return False, False
        p += SET_WORDS
    for _ in range(header.masks):
        if not mask_holds(record, p, space):
            return False, False
        p += MASK_SIZE
    return True, tied


@inlined
def ties_are_in_doubt(record: U32s, at: int, shape: int, seen: U32s, about: I64s) -> bool:
    """Whether the record has a tied bound that its code does not decide."""
    p, names, bounds, far = counts_of(record, at, shape)
    doubt = False
    for w in range(p + names, p + names + bounds):
        test = record[UP(w)]
        doubt |= _is_edge(I64(aspect_of(test)), test, seen, about)
    for w in range(p + names + bounds, p + names + bounds + FAR_TEST_WORDS * far, FAR_TEST_WORDS):
        doubt |= _is_edge(I64(record[UP(w)]), record[UP(w + 1)], seen, about)
    return doubt


@inlined
def _is_edge(aspect: int, test: np.uint32, seen: U32s, about: I64s) -> bool:
    shifts = about[UP(ABOUT * (aspect // ASPECTS) + SHIFT_AT)]
    return seen[UP(aspect)] == test and is_bound(test) and shifts >= 0 and shifts & EDGES != 0
