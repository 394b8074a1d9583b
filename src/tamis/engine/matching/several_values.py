"""Events with several values of an attribute, or an interval: from the entries that they meet to rows, some of them in doubt.

A list decides its access predicate for such events too: `x in {1, 2}` is true if it is true of one of the values. Filter words
and records do not decide predicates on dimensions with several values. Such rows are in doubt, and `owners` compares their keys.
Survivors in doubt are collected from the end of the array.
"""

from __future__ import annotations

import numpy as np

from tamis.engine.layout.aspects import aspect_of, is_member, test_dimension
from tamis.engine.layout.guards import BLOCK
from tamis.engine.layout.pairs import pair_reference, pair_word
from tamis.engine.layout.record_header import LONG_WORDS, long_header
from tamis.engine.layout.record_words import (
    DONE,
    DOUBT,
    LONG,
    SET_WORDS,
    doubt_first,
    doubt_last,
    found_row,
    groups_in,
    in_doubt,
    range_dimension,
    range_holds,
    record_at,
    row_of,
    set_dimension,
    set_holds,
    settled_row,
    shape_of,
)
from tamis.engine.layout.runs import BAND_RUN
from tamis.engine.layout.scale import HIGHEST_CODE, MISSING
from tamis.engine.layout.segment_build import Body, entry_reference, entry_word
from tamis.engine.matching.checking import fetch_record
from tamis.engine.matching.filtering import is_guarded
from tamis.engine.matching.scratch import AHEAD, LoadedEvent, Scratch
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64, U32, UP, Bools, U8s, U32s
from tamis.kernels.sorting import sort_unique


@inlined
def check_lists(first: int, last: int, body: Body, scratch: Scratch, out: U32s, filled: int) -> tuple[int, int]:
    """Check the entries of the lists from `first` up to `last`. Write the rows that hold or may hold; rows may repeat.

    Returns how much of `out` is filled, and how many entries were skipped because of guards.
    """
    begin, end = scratch.met.begin, scratch.met.end
    entry, second, guard = body.entry, body.second, body.guard
    space, several, survivor = scratch.event.space, scratch.event.several, scratch.survivor
    sure, doubtful, passed_over = 0, len(survivor), 0
    for i in range(first, last):
        at, stop = begin[UP(i)], end[UP(i)]
        guarded = is_guarded(guard, at, stop)
        while at < stop:
            upto = at + BLOCK if guarded else stop
            if guarded and space[UP(guard[UP(at // BLOCK)])] == MISSING:
                passed_over += BLOCK
                at = upto
            while at < upto:
                held, doubt = _may_hold(entry_word(entry, at), space, several)
                if len(second) > 0:
                    also, doubts = _may_hold(second[UP(at)], space, several)
                    held, doubt = held & also, doubt | doubts
                sure, doubtful = _put(entry_reference(entry, at), held, doubt, survivor, sure, doubtful)
                at += 1
    return _check_parts(body.record, scratch.event, survivor, sure, doubtful, out, filled), passed_over


@inlined
def check_pairs(count: int, body: Body, scratch: Scratch, out: U32s, filled: int) -> int:
    """`check_lists` for entries of pairs. `survivor` holds the entries' numbers first, and then survivors from both ends."""
    entry = body.pairs.entry
    space, several, survivor = scratch.event.space, scratch.event.several, scratch.survivor
    sure, doubtful = 0, len(survivor)
    for i in range(count):
        place = I64(survivor[UP(i)])
        held, doubt = _may_hold(pair_word(entry, place), space, several)
        sure, doubtful = _put(pair_reference(entry, place), held, doubt, survivor, sure, doubtful)
    return _check_parts(body.record, scratch.event, survivor, sure, doubtful, out, filled)


@inlined
def check_runs(count: int, body: Body, scratch: Scratch, out: U32s, filled: int) -> int:
    """`check_lists` for runs. Returns only how much of `out` is filled."""
    runs, entry, met = body.runs, body.run_entry, scratch.met
    space, several, low, survivor = scratch.event.space, scratch.event.several, scratch.event.low, scratch.survivor
    sure, doubtful = 0, len(survivor)
    for i in range(count):
        r = met.run[UP(i)]
        dimension = UP(runs.dimension[UP(r)])
        # The highest value decides a lower bound, the lowest value an upper bound. A band may lie between two values.
        band = runs.side[UP(r)] >= BAND_RUN
        unsure = band and several[dimension]
        for q in range(met.run_begin[UP(i)], met.run_end[UP(i)]):
            if band and runs.end[UP(q + runs.end_shift[UP(r)])] < low[dimension]:
                continue
            if runs.complete[UP(r)]:
                out[UP(filled)] = entry_reference(entry, q) | in_doubt(unsure)
                filled += 1
                continue
            held, doubt = _may_hold(entry_word(entry, q), space, several)
            sure, doubtful = _put(entry_reference(entry, q), held, doubt | unsure, survivor, sure, doubtful)
    return _check_parts(body.record, scratch.event, survivor, sure, doubtful, out, filled)


@inlined
def _may_hold(word: np.uint32, space: U8s, several: Bools) -> tuple[bool, bool]:
    """Whether a range may hold, and whether it is in doubt."""
    doubt = several[UP(range_dimension(word))]
    return doubt | range_holds(word, space), doubt


@inlined
def _put(reference: np.uint32, held: bool, doubt: bool, survivor: U32s, sure: int, doubtful: int) -> tuple[int, int]:
    """Keep an entry that holds, at one of the two ends, without a branch.

    An entry that does not hold is written between the ends, where there is room for it.
    """
    survivor[UP(sure)] = reference
    survivor[UP(doubtful - 1)] = reference
    return sure + I64(held & (not doubt)), doubtful - I64(held & doubt)


@inlined
def _check_parts(
    record: U32s, event: LoadedEvent, survivor: U32s, sure: int, doubtful: int, out: U32s, filled: int
) -> int:
    filled = _check_some(record, event, survivor, 0, sure, U32(0), out, filled)
    return _check_some(record, event, survivor, doubtful, len(survivor), U32(DOUBT), out, filled)


@inlined
def _check_some(
    record: U32s, event: LoadedEvent, survivor: U32s, begin: int, end: int, doubt: np.uint32, out: U32s, filled: int
) -> int:
    """Check the records of a part of the survivors."""
    wide = len(event.seen) > 0
    for i in range(begin, min(begin + AHEAD, end)):
        fetch_record(record, survivor[UP(i)], wide)
    for i in range(begin, end):
        fetch_record(record, survivor[UP(min(i + AHEAD, end - 1))], wide)
        at, shape = record_at(survivor[UP(i)]), shape_of(survivor[UP(i)])
        if shape == DONE:
            out[UP(filled)] = settled_row(survivor[UP(i)]) | doubt
            filled += 1
            continue
        p, row = at + 1, found_row(record[UP(at)]) | doubt
        ranges, sets = groups_in(shape)
        if shape == LONG:
            # Only the ranges are checked here. `owners` compares keys for the rest of the record.
            p, ranges, sets, row = at + LONG_WORDS, long_header(record, at).ranges, 0, row | U32(DOUBT)
        if wide and shape != LONG:
            matched, unsure = _check_tests(record, p, ranges, sets, event)
        else:
            matched, unsure = _check_ranges(record, p, ranges, sets, event)
        out[UP(filled)] = row | in_doubt(unsure)
        filled += I64(matched)
    return filled


@inlined
def _check_ranges(record: U32s, p: int, ranges: int, sets: int, event: LoadedEvent) -> tuple[bool, bool]:
    """Whether all ranges and sets may hold, and whether one is in doubt."""
    doubt = False
    for w in range(p, p + ranges):
        held, unsure = _may_hold(record[UP(w)], event.space, event.several)
        doubt |= unsure
        if not held:
            return False, doubt
    for w in range(p + ranges, p + ranges + SET_WORDS * sets, SET_WORDS):
        if event.several[UP(set_dimension(record[UP(w + 1)]))]:
            doubt = True
        elif not set_holds(record[UP(w)], record[UP(w + 1)], event.space):
            return False, doubt
    return True, doubt


@inlined
def _check_tests(record: U32s, p: int, names: int, bounds: int, event: LoadedEvent) -> tuple[bool, bool]:
    """Whether all tests may hold, and whether one is in doubt. A tied bound counts as in doubt."""
    found, doubt = False, False
    for w in range(p, p + names + bounds):
        test = record[UP(w)]
        shown, unsure = event.seen[UP(aspect_of(test))], event.several[UP(test_dimension(test))]
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


@inlined
def sort_rows(words: U32s, begin: int, end: int) -> int:
    """`sort_unique` for rows, some with DOUBT. A row that is found once without DOUBT keeps no DOUBT."""
    for i in range(begin, end):
        words[i] = doubt_last(words[i])
    end = begin + sort_unique(words, begin, end)
    kept = begin
    for i in range(begin, end):
        word = doubt_first(words[i])
        if kept == begin or row_of(word) != row_of(words[kept - 1]):
            words[kept] = word
            kept += 1
    return kept - begin
