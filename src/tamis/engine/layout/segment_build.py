"""A segment: an immutable index over some conjunctions.

    event value --scale--> space --lists--> entries --filter word--> survivors --records--> rows --> owners

An entry is two words: the *filter word*, the least likely other predicate of its conjunction (its hull), and a reference to
its record (side by side: 10 % faster than in two arrays). So a list is scanned without a branch, and only what passes the
filter touches a record. Where that keeps many from their records, the entries have a second filter word. Long lists have
blocks of entries that an event may pass over, or parts that are sorted by a bound: see `guards` and `runs`.

Rows are numbered in the order in which their records were laid out, so that neighbours in a list are neighbours everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.engine.layout.forecast import Forecast, expected_entries
from tamis.engine.layout.guards import Guards, looked_at, padding_word, with_guards
from tamis.engine.layout.key_numbers import Roll, enrol
from tamis.engine.layout.lists import Entries, Points, enter, first_point_list
from tamis.engine.layout.pairs import Pairs, complete_pairs, with_pairs
from tamis.engine.layout.plan import PAIRS, POINTS, RANKED, Plan, deciding, plan_rows
from tamis.engine.layout.predicate_codes import KEYS, MASK_WORDS, POINT, Coded, code_predicates
from tamis.engine.layout.records import (
    DONE,
    GROUPS,
    MOST_ROWS,
    MOST_WORDS,
    PLACE_BITS,
    UNIT,
    most_words,
    range_word,
    write_record,
)
from tamis.engine.layout.runs import Runs, find_runs, sorted_runs
from tamis.engine.layout.scale import MOST_SPACES, Scales, scales_of
from tamis.engine.layout.second_filter import choose_second
from tamis.engine.layout.statistics import likelihood_of
from tamis.kernels.background import checkpoint
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U32, U64
from tamis.kernels.packed import aligned_zeros
from tamis.kernels.prefetch import prefetch

HAS_RUNS = 1 << 31
"""Set in the begin of a list that has runs."""
_NONE = -1
_PADDING = 64
_FAR, _NEAR = 16, 8
_PLACE = (1 << 40) - 1


class SegmentFullError(Exception):
    """There are more records than references can reach: the rows must be parted."""


class Directory(NamedTuple):
    """Where lists begin and end."""

    begin: npt.NDArray[np.uint32]
    """Of the lists of spaces, presence, always and points; one more at the end. HAS_RUNS is set where a list has runs."""
    bounds: npt.NDArray[np.uint32]
    """For the sorted bounds of a dimension: their begin, then the end of the satisfied prefix for each space."""


class Lookup(NamedTuple):
    """What is needed to find the space and code of a value: see `Scales`, and the columns of `about` above."""

    local: npt.NDArray[np.int32]
    about: npt.NDArray[np.int64]
    cuts: npt.NDArray[np.int64]
    table: npt.NDArray[np.uint8]
    shift: npt.NDArray[np.uint8]
    whole: npt.NDArray[np.int64]
    """Two words for every whole number of the dimensions that have a table: its space and its list, see `whole_word`, and where
    the sorted upper and lower bounds that it satisfies end."""
    brief: npt.NDArray[np.int64]
    """For every dimension of the matcher what a plain event needs besides, where its value is in `whole`: see `_brief`."""


CELL, BLOCKS, AT, LOWEST, WHOLES, SIDES, PRESENCE, SHIFT_AT = range(8)
EDGES, ENROLLED, ALL_ENROLLED, SHIFTS = 1 << 32, 1 << 33, 1 << 34, (1 << 32) - 1
"""The columns of `Lookup.about`: what matching needs to know of a dimension, in one cache line.

CELL: its first cell. BLOCKS: how many blocks of cuts it has, at AT; 0: spaces are looked up in a table at AT, for WHOLES whole
numbers from LOWEST. SIDES: where its sorted upper and lower bounds lie, each in 32 bits. PRESENCE: begin and end of
the list of the dimension, in 32 bits. SHIFT_AT: as in `Scales`; above SHIFTS it has EDGES and ENROLLED, where `Coded` says so,
and ALL_ENROLLED, where all keys that have lists of their own are on the roll.
"""


class Body(NamedTuple):
    """All arrays of a segment that matching reads."""

    lookup: Lookup
    directory: Directory
    entry: npt.NDArray[np.uint32]
    """Filter word and reference of each entry."""
    second: npt.NDArray[np.uint32]
    """The second filter word of each entry; empty where these would not pay."""
    guard: Guards
    points: Points
    roll: Roll
    runs: Runs
    run_entry: npt.NDArray[np.uint32]
    record: npt.NDArray[np.uint32]
    pairs: Pairs
    row: npt.NDArray[np.int32]
    """Row -> the conjunction it was made from; -1: there is no such row."""
    cells: int
    dimensions: int
    entries: int
    """In lists, runs and pairs, padding left out."""

    @property
    def guards(self) -> int:
        """How many blocks have one."""
        return int(np.count_nonzero(self.guard < min(self.dimensions, RANKED)))


def build(
    table: Conjunctions, sample: EventBatch | None, numbers: npt.NDArray[np.int64] | None = None
) -> tuple[Body, Forecast]:
    """Build a segment over all conjunctions of a table; and what it was planned with.

    Rows have the numbers that are given, else those that their records come by. A thread of ours may be told to stop between any
    two steps that take long.
    """
    start, predicates = table
    scales = scales_of(predicates)
    likelihood = likelihood_of(scales, predicates, sample)
    checkpoint()
    coded = code_predicates(predicates, scales, likelihood)
    roll = enrol(predicates, coded)
    checkpoint()
    plan, list_costs = plan_rows(start, predicates, coded, scales, likelihood)
    plan, pairs, pair_rows = with_pairs(start, plan, predicates, coded, scales, likelihood, sample)
    checkpoint()
    has_second = choose_second(start, plan, coded, scales, likelihood)
    checkpoint()
    entries, points = enter(start, plan, predicates, coded, scales)
    plain_lists = first_point_list(scales) + len(points.key)
    joined = find_runs(start, entries, plan, predicates, coded, scales, likelihood, sample, has_second, plain_lists)
    checkpoint()
    in_run = joined != 0
    listed = Entries(entries.list[~in_run], entries.row[~in_run])
    checkpoint()
    plain, guard = with_guards(start, listed, plan, coded, scales, likelihood, sample)
    share = looked_at(plain, guard, likelihood, len(start) - 1)
    expected = expected_entries(plan, coded, scales, likelihood, share, entries.row, in_run)
    checkpoint()
    run_entries = Entries(entries.list[in_run], entries.row[in_run])
    runs, run_rows = sorted_runs(run_entries, joined[in_run], plan, predicates)
    rows = len(start) - 1
    words = most_words(start, predicates, coded) + _PADDING
    written = np.empty(words, np.uint32), np.empty(rows, np.uint64)
    every = np.concatenate((plain.row, pair_rows))
    plain_entries = np.bincount(every[every >= 0], minlength=rows)
    longest = int(np.diff(start).max(initial=1))
    scratch = np.empty(longest, np.int64), np.empty(MASK_WORDS, np.uint64), np.empty(GROUPS, np.int64)
    filled = _write_records(plain_entries, has_second, start, plan, predicates, coded, scales, roll, written, scratch)
    if filled + UNIT * rows >= MOST_WORDS or rows >= MOST_ROWS:
        raise SegmentFullError
    checkpoint()
    entry, run_entry = (aligned_zeros(2 * (len(part) + _PADDING), np.uint32) for part in (plain.row, run_rows))
    record = np.zeros(filled + UNIT * rows + _PADDING, np.uint32)
    numbers = np.full(rows, _NONE, np.int64) if numbers is None else numbers
    conjunction = np.full(max(rows, int(numbers.max(initial=0)) + 1), _NONE, np.int32)
    complete = np.repeat(runs.complete, np.diff(runs.start))
    references = np.empty(len(every), np.uint32)
    layout = references, run_entry[1::2], record, numbers, np.full(rows, _NONE, np.int64)
    filled = _lay_out(every, run_rows, complete, written, layout)
    checkpoint()
    entry[1 : 2 * len(plain.row) : 2] = references[: len(plain.row)]
    conjunction[numbers] = np.arange(rows)
    nothing = min(len(scales.spaces), RANKED)
    second = np.zeros(len(entry) // 2 if has_second else 0, np.uint32)
    _filter_words(plain.row, plan.filter, coded, nothing, entry[::2])
    _filter_words(run_rows, plan.second, coded, nothing, run_entry[::2])
    if has_second:
        _filter_words(plain.row, plan.second, coded, nothing, second)
    checkpoint()
    pair_words = np.empty(len(pair_rows), np.uint32)
    _filter_words(pair_rows, plan.second, coded, nothing, pair_words)
    complete_pairs(pairs, pair_words, references[len(plain.row) :])
    directory, sides = _directory(plain.list, runs.list, scales, plain_lists)
    about = _about(scales, plan, coded, directory, sides)
    body = Body(
        Lookup(
            scales.local,
            about,
            scales.cuts,
            scales.table,
            scales.shift,
            _whole_words(scales, directory, sides),
            _brief(scales, about, directory.bounds),
        ),
        directory,
        entry,
        second,
        guard,
        points,
        roll,
        runs,
        run_entry,
        record[: filled + _PADDING].copy(),
        pairs,
        conjunction,
        int(scales.cell[-1]),
        len(scales.spaces),
        int(np.count_nonzero(every >= 0)) + len(run_rows),
    )
    return body, Forecast(scales, likelihood, list_costs, np.array([expected]))


def _directory(
    lists: npt.NDArray[np.int64], run_lists: npt.NDArray[np.int64], scales: Scales, plain: int
) -> tuple[Directory, list[npt.NDArray[np.int64]]]:
    """The directory, and where the upper and lower bounds of each dimension lie in it."""
    cells = int(scales.cell[-1])
    counts = np.bincount(lists, minlength=plain + 2 * cells)
    ends = np.cumsum(counts)
    begin = np.zeros(plain + 1, np.uint32)
    begin[1:] = ends[:plain]
    begin[run_lists] |= U32(HAS_RUNS)
    # A dimension with bounds on one side only has an empty list on the other: matching takes fewer branches that way.
    places, filled = [], MOST_SPACES + 2
    bounds: list[npt.NDArray[Any]] = [np.zeros(filled)]
    for side in range(2):
        base = plain + side * cells
        used = np.add.reduceat(counts[base : base + cells], scales.cell[:-1]) if cells else np.zeros(0)
        at = np.zeros(len(scales.spaces), np.int64)
        for d in np.flatnonzero(used).tolist():
            first, spaces = base + int(scales.cell[d]), int(scales.spaces[d])
            prefix = ends[first : first + spaces]
            at[d] = filled
            bounds.append(ends[first - 1 : first] if first else np.zeros(1))
            bounds.append(prefix[::-1] if side == 0 else prefix)
            filled += spaces + 1
        places.append(at)
    return Directory(begin, np.concatenate(bounds).astype(np.uint32)), places


BRIEF = 4
"""A dimension has so many words in `Lookup.brief`."""
WHOLE_RUNS = 1 << 8
WHOLE_MOST = (1 << 23) - 1


@inlined
def whole_word(space: int, begin: int, end: int, has_runs: bool) -> int:
    """What matching needs to know of a whole number, in one word.

    begin of the list << 32 | size << 9 | has runs? << 8 | space          WHOLE_MOST: too long, look it up
    """
    return (begin << 32) | (min(end - begin, WHOLE_MOST) << 9) | (WHOLE_RUNS if has_runs else 0) | space


def _whole_words(scales: Scales, directory: Directory, sides: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    words = np.zeros(max(len(scales.table), 2), np.int64)
    _fill_whole_words(scales.wholes, scales.cell, scales.table, directory, sides[0], sides[1], words)
    return words


@lean_kernel
def _fill_whole_words(wholes: Any, cell: Any, table: Any, directory: Any, upper: Any, lower: Any, words: Any) -> None:
    begins, bounds = directory
    at = 0
    for d in range(len(wholes)):
        for _ in range(wholes[d]):
            space = I64(table[2 * at])
            begin, end = I64(begins[cell[d] + space]), I64(begins[cell[d] + space + 1]) & (HAS_RUNS - 1)
            words[2 * at] = whole_word(space, begin & (HAS_RUNS - 1), end, begin & HAS_RUNS != 0)
            words[2 * at + 1] = (I64(bounds[upper[d] + 1 + space]) << 32) | I64(bounds[lower[d] + 1 + space])
            at += 1


def _about(
    scales: Scales, plan: Plan, coded: Coded, directory: Directory, sides: list[npt.NDArray[np.int64]]
) -> npt.NDArray[np.int64]:
    by_table = scales.wholes > 0
    flags = EDGES * coded.edges | ENROLLED * coded.enrolled | ALL_ENROLLED * _all_enrolled(plan, coded)
    first = int(scales.cell[-1])
    presence = directory.begin[first : first + len(scales.spaces) + 1].astype(np.int64)
    columns = (
        scales.cell[:-1],
        np.where(by_table, 0, scales.blocks),
        np.where(by_table, scales.table_at, scales.cut),
        scales.lowest,
        scales.wholes,
        sides[0] | (sides[1] << 32),
        (presence[:-1] << 32) | (presence[1:] & (HAS_RUNS - 1)),
        np.where(scales.shift_at < 0, -1, scales.shift_at | flags),
    )
    return np.ascontiguousarray(np.stack(columns, axis=1, dtype=np.int64)).ravel()


def _all_enrolled(plan: Plan, coded: Coded) -> npt.NDArray[np.bool_]:
    """By dimension: whether all keys that have lists of their own are on the roll, as those that POINT and KEYS name are."""
    by_keys = plan.access[plan.way == POINTS]
    unnamed = by_keys[(coded.kind[by_keys] != POINT) & (coded.kind[by_keys] != KEYS)]
    all_enrolled = coded.enrolled.copy()
    all_enrolled[coded.dimension[unnamed]] = False
    return all_enrolled


def _brief(scales: Scales, about: npt.NDArray[np.int64], bounds: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Four words for every dimension of the matcher; two dimensions share a cache line.

    lowest << 32 | wholes                     0 where a table lies too far for this: then whole numbers are found as others are
    place in `whole` << 32 | dimension here                                  -1: there is none
    begin of the list of the dimension << 32 | its end
    begin of its sorted upper bounds << 32 | begin of its lower ones
    """
    lines = about.reshape(-1, 8)
    lowest, wholes, place = lines[:, LOWEST], lines[:, WHOLES], lines[:, AT] >> 1
    near = (wholes > 0) & (np.abs(lowest) < 1 << 31) & (place < 1 << 30)
    sides = lines[:, SIDES]
    upper, lower = (bounds[at].astype(np.int64) for at in (sides & 0xFFFFFFFF, sides >> 32))
    words = np.full((len(scales.local) + 1, BRIEF), -1, np.int64)
    there = np.flatnonzero(scales.local >= 0)
    at = scales.local[there]
    words[there, 0] = np.where(near, (lowest << 32) | wholes, 0)[at]
    words[there, 1] = (np.where(near, place << 32, 0) | np.arange(len(lines)))[at]
    words[there, 2] = lines[at, PRESENCE] & ((HAS_RUNS << 32) - 1)
    words[there, 3] = ((upper << 32) | lower)[at]
    return words.ravel()


@lean_kernel
def _write_records(
    plain_entries: Any,
    has_second: bool,
    start: Any,
    plan: Any,
    predicates: Any,
    coded: Any,
    scales: Any,
    roll: Any,
    written: Any,
    scratch: Any,
) -> int:
    """Write the records of all conjunctions in their order; returns how many words they take."""
    access, way, filters, second = plan.access, plan.way, plan.filter, plan.second
    mode = predicates.mode
    record, place = written
    filled = 0
    for row in range(len(start) - 1):
        in_runs = plain_entries[row] == 0
        seconds = second[row] if has_second or in_runs or way[row] == PAIRS else _NONE
        choice = deciding(access[row], mode), way[row], filters[row], seconds
        shape, size = write_record(
            start[row],
            start[row + 1],
            choice,
            in_runs,
            predicates,
            coded,
            scales,
            roll,
            scratch,
            record,
            filled,
        )
        place[row] = (U64(size) << U64(48)) | (U64(shape) << U64(40)) | U64(filled)
        filled += size
    return filled


@lean_kernel
def _lay_out(plain: Any, run_rows: Any, complete: Any, written: Any, layout: Any) -> int:
    """Bring the records into the order of the entries, and number rows without a number; returns how many words records take."""
    old, place = written
    references, run_references, record, number, final = layout
    rows, filled, count = 0, 0, len(plain) + len(run_rows)
    for i in range(count):
        if i + _FAR < len(plain):
            prefetch(final, max(plain[i + _FAR], 0))
            prefetch(place, max(plain[i + _FAR], 0))
        if i + _NEAR < len(plain):
            prefetch(old, I64(place[max(plain[i + _NEAR], 0)] & U64(_PLACE)))
        in_run = i >= len(plain)
        row = run_rows[i - len(plain)] if in_run else plain[i]
        if row < 0:
            references[i] = 0
            continue
        if number[row] == _NONE:
            number[row] = rows
            rows += 1
        if in_run and complete[i - len(plain)]:
            run_references[i - len(plain)] = U32(number[row])
            continue
        if final[row] == _NONE:
            at = I64(place[row] & U64(_PLACE))
            size = I64(place[row] >> U64(48))
            shape = I64((place[row] >> U64(40)) & U64(0xFF))
            if shape == DONE:
                final[row] = (shape << PLACE_BITS) | number[row]
            else:
                for w in range(size):
                    record[filled + w] = old[at + w]
                record[filled] |= U32(number[row])
                final[row] = (shape << PLACE_BITS) | (filled // UNIT)
                filled += (size + UNIT - 1) // UNIT * UNIT
        if in_run:
            run_references[i - len(plain)] = final[row]
        else:
            references[i] = final[row]
    return filled


@lean_kernel
def _filter_words(rows: Any, filters: Any, coded: Any, nothing: int, out: Any) -> None:
    """The filter word of each entry: the hull of the filter predicate of its row."""
    dimension, first, last = coded.dimension, coded.first, coded.last
    for i in range(len(rows)):
        p = filters[max(rows[i], 0)]
        if rows[i] < 0:
            out[i] = padding_word(nothing)
        elif p >= 0:
            out[i] = range_word(I64(dimension[p]), I64(first[p]), I64(last[p]))
        else:
            out[i] = U32(nothing) << U32(16)
