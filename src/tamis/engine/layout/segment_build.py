"""How the arrays of a segment are built.

    event value --scale--> space --lists--> entries --filter word--> survivors --records--> rows --> owners

An entry is a *filter word*, the hull of the least likely other predicate of its conjunction, and a reference to its record. The
two words lie side by side, which is 10 % faster than two arrays. So a list is scanned without a branch, and only survivors
touch their records. If a second filter word would spare many records, entries have one. Long lists have blocks of entries that
events may skip, or parts that are sorted by a bound: see `guards` and `runs`.

If the slots of owners lie close together, rows are numbered by these slots (see `matching.owners`). Else rows are numbered in the
order of their records, so that neighbours in a list are neighbours everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.engine.layout.aspects import Words
from tamis.engine.layout.costs import USUAL_COSTS, Costs
from tamis.engine.layout.forecast import Forecast, expected_entries
from tamis.engine.layout.guards import GuardedLists, Guards, padding_word, visited_share
from tamis.engine.layout.key_numbers import KeyNumbers, number_keys
from tamis.engine.layout.limits import USUAL_LAYOUT_LIMITS, LayoutLimits
from tamis.engine.layout.lists import Entries, Points, enter, first_point_list
from tamis.engine.layout.lookup import Directory, Lookup, find_lists
from tamis.engine.layout.pairs import Pairs, complete_pairs, with_pairs
from tamis.engine.layout.plan import PAIRS, RANKED, Choice, Plan, deciding, plan_rows
from tamis.engine.layout.predicate_codes import Coded, CodedTable, code_table, read_table
from tamis.engine.layout.record_words import DONE, MOST_ROWS, MOST_WORDS, UNIT, range_word, reference_of
from tamis.engine.layout.records import RecordScratch, most_words, record_scratch, write_record
from tamis.engine.layout.runs import Runs, find_runs, sorted_runs
from tamis.engine.layout.scale import scales_of
from tamis.engine.layout.second_filter import choose_second
from tamis.engine.layout.statistics import likelihood_of
from tamis.kernels.background import checkpoint
from tamis.kernels.fields import packed_fields
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U32, U64, UP, Bools, I32s, I64s, U64s
from tamis.kernels.packed import Packed, aligned_zeros
from tamis.kernels.prefetch import prefetch

_NONE = -1
_PADDING = 64
_FAR, _NEAR = 16, 8
"""How many entries ahead the place of a record, and the record itself, are fetched."""
_SHAPE_AT, _SIZE_AT = 40, 48
_PLACE, _SHAPE = (1 << _SHAPE_AT) - 1, (1 << (_SIZE_AT - _SHAPE_AT)) - 1
ENTRY_WORDS = 2
_FILTER, _REFERENCE = range(ENTRY_WORDS)


class SegmentFullError(Exception):
    """There are more records than references can reach: the rows must be divided among segments."""


class Body(NamedTuple):
    """All arrays of a segment that matching reads. From a list to its rows:

    list               0                 1      2           numbered as in `lists`
    directory.begin    0                 3      4  ...      entries of list l: begin[l] .. begin[l + 1], without HAS_RUNS
    entry              w r   w r   w r   w r   ...          two words an entry: filter word, reference
    record             row  predicates ... | row  ...       word 0 has the row, see `record_words`, also for references
    row                row -> conjunction
    """

    lookup: Lookup
    directory: Directory
    entry: Words
    """Filter word and reference of each entry."""
    second: Words
    """The second filter word of each entry; empty if second filters do not pay."""
    guard: Guards
    points: Points
    key_numbers: KeyNumbers
    runs: Runs
    run_entry: Words
    record: Words
    pairs: Pairs
    row: I32s
    """Row -> the conjunction that it was made from; -1: there is no such row."""
    cells: int
    dimensions: int
    entries: int
    """Entries in lists, runs and pairs, without padding."""

    @property
    def guards(self) -> int:
        """How many blocks have a guard."""
        return int(np.count_nonzero(self.guard < min(self.dimensions, RANKED)))


@inlined
def entry_word(entry: Words, place: int) -> np.uint32:
    """The filter word of an entry."""
    return entry[UP(ENTRY_WORDS * place + _FILTER)]


@inlined
def entry_reference(entry: Words, place: int) -> np.uint32:
    """The reference of an entry."""
    return entry[UP(ENTRY_WORDS * place + _REFERENCE)]


class _Listed(NamedTuple):
    """The entries of a segment in lists and runs."""

    in_lists: Entries
    """Entries of lists, perhaps in blocks; the conjunction of padding is -1."""
    guard: Guards
    points: Points
    runs: Runs
    run_conjunctions: I32s
    """The conjunctions of the entries of runs."""
    expected: float
    """How many entries an event is expected to visit."""


class _Written(NamedTuple):
    """Records in the order of the conjunctions."""

    record: Words
    place: U64s
    """Conjunction -> size, shape and place of its record, see `_written_at`."""


class _LaidOut(NamedTuple):
    """Records in the order of the entries."""

    reference: Words
    """Entry -> the reference to its record."""
    record: Words
    number: I64s
    """Conjunction -> its row; -1: it has none yet."""
    final: I64s
    """Conjunction -> the reference to its record; -1: it is not laid out yet."""


def build(
    conjunctions: Conjunctions,
    sample: EventBatch | None,
    numbers: I64s | None = None,
    costs: Costs = USUAL_COSTS,
    limits: LayoutLimits = USUAL_LAYOUT_LIMITS,
) -> tuple[Body, Forecast]:
    """Build a segment over all conjunctions of a table. Also returns what it was planned with.

    `numbers` are the rows of the conjunctions. Without them, rows are numbered in the order of their records. A thread in the
    background may be stopped between any two long steps.
    """
    scales = scales_of(conjunctions.predicates)
    likelihood = likelihood_of(scales, conjunctions.predicates, sample)
    checkpoint()
    table = code_table(conjunctions, scales, likelihood)
    key_numbers = number_keys(table, limits.key_numbers)
    checkpoint()
    plan, list_costs = plan_rows(table)
    plan, pairs, in_pairs = with_pairs(table, plan, sample, costs)
    checkpoint()
    has_second = choose_second(table, plan, costs)
    checkpoint()
    listed = _enter_lists(table, plan, sample, has_second, costs)
    in_lists, in_runs = listed.in_lists.conjunction, listed.run_conjunctions
    checkpoint()
    entered = np.concatenate((in_lists, in_pairs, in_runs))
    before_runs = len(in_lists) + len(in_pairs)
    written, words = _write_records(table, plan, key_numbers, entered[:before_runs], has_second)
    checkpoint()
    complete = np.zeros(len(entered), np.bool_)
    complete[before_runs:] = np.repeat(listed.runs.complete, np.diff(listed.runs.start))
    laid_out = _lay_out_records(entered, complete, written, words, numbers)
    checkpoint()
    of_lists, of_pairs, of_runs = np.split(laid_out.reference, [len(in_lists), before_runs])
    entry = _entries(_filter_words(in_lists, plan.filter, table), of_lists)
    second = np.zeros(len(entry) // ENTRY_WORDS if has_second else 0, np.uint32)
    if has_second:
        second[: len(in_lists)] = _filter_words(in_lists, plan.second, table)
    checkpoint()
    complete_pairs(pairs, _filter_words(in_pairs, plan.second, table), of_pairs)
    lookup, directory = find_lists(table, plan, listed.points, listed.in_lists.list, listed.runs.list, limits.list_size)
    conjunction = np.full(max(len(laid_out.number), int(laid_out.number.max(initial=0)) + 1), _NONE, np.int32)
    conjunction[laid_out.number] = np.arange(len(laid_out.number))
    body = Body(
        lookup,
        directory,
        entry,
        second,
        listed.guard,
        listed.points,
        key_numbers,
        listed.runs,
        run_entry=_entries(_filter_words(in_runs, plan.second, table), of_runs),
        record=laid_out.record,
        pairs=pairs,
        row=conjunction,
        cells=int(scales.cell[-1]),
        dimensions=len(scales.spaces),
        entries=int(np.count_nonzero(entered >= 0)),
    )
    return body, Forecast(scales, likelihood, list_costs, np.array([listed.expected]))


def _enter_lists(table: CodedTable, plan: Plan, sample: EventBatch | None, has_second: bool, costs: Costs) -> _Listed:
    """Enter conjunctions in lists, and sort entries into runs and blocks."""
    entries, points = enter(table, plan)
    upto = first_point_list(table.scales) + len(points.key)
    joined = find_runs(table, plan, entries, sample, has_second, upto, costs)
    in_run = joined != 0
    checkpoint()
    in_lists = Entries(entries.list[~in_run], entries.conjunction[~in_run])
    in_lists, guard = GuardedLists(table, plan, in_lists, sample, costs).in_blocks()
    visited = visited_share(in_lists, guard, table.likelihood, len(table.start) - 1)
    expected = expected_entries(table, plan, visited, entries.conjunction, in_run)
    checkpoint()
    in_runs = Entries(entries.list[in_run], entries.conjunction[in_run])
    runs, run_conjunctions = sorted_runs(in_runs, joined[in_run], plan, table.predicates)
    return _Listed(in_lists, guard, points, runs, run_conjunctions, expected)


def _write_records(
    table: CodedTable, plan: Plan, key_numbers: KeyNumbers, listed: I32s, has_second: bool
) -> tuple[_Written, int]:
    """The records of all conjunctions, and how many words they take; `listed` are the conjunctions of entries outside of runs."""
    count = len(table.start) - 1
    written = _Written(np.empty(most_words(table) + _PADDING, np.uint32), np.empty(count, np.uint64))
    in_lists = np.bincount(listed[listed >= 0], minlength=count) > 0
    words = _write_all(packed_fields(table), plan, key_numbers, in_lists, has_second, record_scratch(table), written)
    if words + UNIT * count >= MOST_WORDS or count >= MOST_ROWS:
        raise SegmentFullError
    return written, words


def _lay_out_records(entered: I32s, complete: Bools, written: _Written, words: int, numbers: I64s | None) -> _LaidOut:
    """Lay out the records, which have `words` words, in the order of the entries, whose conjunctions are `entered`."""
    count = len(written.place)
    record = np.zeros(words + UNIT * count + _PADDING, np.uint32)
    numbers = np.full(count, _NONE, np.int64) if numbers is None else numbers
    out = _LaidOut(np.empty(len(entered), np.uint32), record, numbers, np.full(count, _NONE, np.int64))
    filled = _lay_out(entered, complete, written, out)
    return out._replace(record=record[: filled + _PADDING].copy())


def _entries(words: Words, references: Words) -> Words:
    """Entries of these filter words and references, and padding behind them."""
    entry = aligned_zeros(ENTRY_WORDS * (len(words) + _PADDING), np.uint32)
    lines = entry.reshape(-1, ENTRY_WORDS)[: len(words)]
    lines[:, _FILTER], lines[:, _REFERENCE] = words, references
    return entry


@lean_kernel
def _write_all(
    packed: Packed,
    plan: Plan,
    key_numbers: KeyNumbers,
    in_lists: Bools,
    has_second: bool,
    scratch: RecordScratch,
    written: _Written,
) -> int:
    """Write the records of all conjunctions; returns how many words they take. `in_lists`: some entries are not in runs."""
    table: CodedTable = read_table(packed)
    filled = 0
    for c in range(len(table.start) - 1):
        in_run, way = not in_lists[c], plan.way[c]
        second = plan.second[c] if has_second or in_run or way == PAIRS else _NONE
        choice = Choice(deciding(plan.access[c], table.predicates.mode), way, plan.filter[c], second, in_run)
        shape, size = write_record(c, choice, table, key_numbers, scratch, written.record, filled)
        written.place[c] = _written_at(filled, shape, size)
        filled += size
    return filled


@inlined
def _written_at(place: int, shape: int, size: int) -> np.uint64:
    """size << _SIZE_AT | shape << _SHAPE_AT | place."""
    return (U64(size) << U64(_SIZE_AT)) | (U64(shape) << U64(_SHAPE_AT)) | U64(place)


@inlined
def _place_of(word: np.uint64) -> int:
    return I64(word & U64(_PLACE))


@inlined
def _shape_and_size(word: np.uint64) -> tuple[int, int]:
    return I64((word >> U64(_SHAPE_AT)) & U64(_SHAPE)), I64(word >> U64(_SIZE_AT))


@lean_kernel
def _lay_out(entered: I32s, complete: Bools, written: _Written, out: _LaidOut) -> int:
    """Copy records in the order of the entries, and number rows without a number; returns how many words the records take.

    Entries that are `complete` have their rows as references.
    """
    number, final, place = out.number, out.final, written.place
    numbered, filled = 0, 0
    for i in range(len(entered)):
        if i + _FAR < len(entered):
            prefetch(final, max(entered[i + _FAR], 0))
            prefetch(place, max(entered[i + _FAR], 0))
        if i + _NEAR < len(entered):
            prefetch(written.record, _place_of(place[max(entered[i + _NEAR], 0)]))
        c = entered[i]
        if c < 0:
            out.reference[i] = 0
            continue
        if number[c] == _NONE:
            number[c] = numbered
            numbered += 1
        if complete[i]:
            out.reference[i] = U32(number[c])
            continue
        if final[c] == _NONE:
            at, (shape, size) = _place_of(place[c]), _shape_and_size(place[c])
            if shape == DONE:
                final[c] = reference_of(shape, number[c])
            else:
                for w in range(size):
                    out.record[filled + w] = written.record[at + w]
                out.record[filled] |= U32(number[c])
                final[c] = reference_of(shape, filled // UNIT)
                filled += (size + UNIT - 1) // UNIT * UNIT
        out.reference[i] = final[c]
    return filled


def _filter_words(entered: I32s, filters: I64s, table: CodedTable) -> Words:
    """The filter word of each entry: the hull of the filter predicate of its conjunction."""
    words = np.empty(len(entered), np.uint32)
    _write_filter_words(entered, filters, table.coded, min(len(table.scales.spaces), RANKED), words)
    return words


@lean_kernel
def _write_filter_words(entered: I32s, filters: I64s, coded: Coded, nothing: int, words: Words) -> None:
    for i in range(len(entered)):
        p = filters[max(entered[i], 0)]
        if entered[i] < 0:
            words[i] = padding_word(nothing)
        elif p >= 0:
            words[i] = range_word(I64(coded.dimension[p]), I64(coded.first[p]), I64(coded.last[p]))
        else:
            words[i] = range_word(nothing, 0, 0)
