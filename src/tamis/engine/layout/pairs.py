"""Pairs: conjunctions that are found by two values at once.

If many conjunctions name the same value, its list is long, and every event that has the value scans it. If they name a second
value as well, the list of both values is much shorter. An event tries all pairs of its values. A byte turns most of them down:

    cells of the event      3  17  42  ...             the spaces of its values, in dimensions that pairs are made of
    mixed(3) ^ mixed(17)    bucket . part . rest       is the bit of this part set in mark[bucket]?
    start[bucket] ...       [3 17 word reference] ...  entries of the bucket; the event meets those of the same two cells

The cost of trying grows with the square of the number of an event's values, what pairs save with the number of conjunctions.
Entries and records of pairs lie scattered, while those of a list lie side by side. So there are pairs only if the planner
expects them to save twice what they cost. The planner takes attributes to be independent, so events of the sample must confirm
this. It happens if events have few attributes with few values each. Wide dimensions have no pairs.

If an event has too many values to try their pairs, it visits all entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.engine.layout.aspects import Words
from tamis.engine.layout.costs import COMPARE, ENTRY, MEET_PAIR, RECORD, SPACE, TRY_PAIR, Costs
from tamis.engine.layout.plan import PAIRS, RANKED, SOME, Plan, hull_of, is_raw, most_cells
from tamis.engine.layout.predicate_codes import (
    MASK_WORDS,
    RANGE,
    SET,
    CodedTable,
    Mask,
    fill_mask,
    read_table,
)
from tamis.engine.layout.records import order_of_entries
from tamis.engine.layout.scale import MISSING, Bytes, Scales, locate
from tamis.kernels.bits import first_half, halves, has_bit, second_half
from tamis.kernels.fields import packed_fields
from tamis.kernels.hashing import spread
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import F64, I64, U8, U32, U64, UP, Bools, I32s, I64s, U64s
from tamis.kernels.packed import Packed
from tamis.kernels.prefetch import prefetch

_MOST_CELLS = 4
"""The most spaces of a range that pairs are made of."""
_WORDS = 4
_LOW, _HIGH, _FILTER, _REFERENCE = range(_WORDS)
"""The words of an entry: its two cells, its filter word, and the reference to its record."""
_PADDING = 64
_PART_BITS = 3
_HITS = 1024
"""Pairs that were not turned down and are looked up together."""
_MOST_TRIED = 4
"""If an event has more pairs than this many times the entries, it visits all entries instead."""
_PLANNED, _SAMPLED = 1 << 15, 512
"""Conjunctions, and events of the sample, that are tried to see whether pairs pay."""
_NONE = -1


class Pairs(NamedTuple):
    """The index over pairs of cells. All arrays are empty if there are no pairs."""

    cell: I32s
    """Dimension -> its first cell; -1: no pairs are made of it."""
    start: Words
    """Bucket -> its first entry; one more at the end."""
    mark: Bytes
    """Bucket -> which of its eight parts have entries."""
    entry: Words
    """Two cells, the lower one first, then filter word and reference."""

    @property
    def entries(self) -> int:
        return int(self.start[-1]) if len(self.start) else 0


class PairScratch(NamedTuple):
    """What a thread needs to find the pairs of an event."""

    cell: Words
    """The cells of the event."""
    mixed: U64s
    """The hashes of these cells."""
    hit: I64s
    """Pairs that were not turned down. Halves: the places of their two cells in `cell`."""
    bucket: I64s
    """The bucket of each hit; then halves: the begin and the end of its entries."""
    has: Bools
    """Cell -> whether the event has it, for events that visit all entries."""


class _PairCells(NamedTuple):
    """The entries of pairs before they are put into buckets: two cells, the lower one first, and the conjunction."""

    low: Words
    high: Words
    conjunction: I32s


def _no_pairs() -> Pairs:
    return Pairs(np.zeros(0, np.int32), np.zeros(0, np.uint32), np.zeros(0, np.uint8), np.zeros(0, np.uint32))


def pair_scratch(cells: int, room: int) -> PairScratch:
    """Scratch for events that have at most `room` of the `cells` that pairs are made of; empty if there are none."""
    noted, hits = (room + 1, _HITS + room + 1) if cells else (0, 0)
    return PairScratch(
        np.zeros(noted, np.uint32),
        np.zeros(noted, np.uint64),
        np.zeros(hits, np.int64),
        np.zeros(hits, np.int64),
        np.zeros(cells, np.bool_),
    )


# -- planning


def with_pairs(table: CodedTable, plan: Plan, sample: EventBatch | None, costs: Costs) -> tuple[Plan, Pairs, I32s]:
    """A plan with pairs if they pay, the pairs, and the conjunction of each of their entries."""
    step = max(1, (len(table.start) - 1) // _PLANNED)
    if _are_worth_trying(*plan_pairs(table, plan, step), table, costs):
        paired, saved = plan_pairs(table, plan)
        pairs, rows = enter_pairs(table, paired)
        if _pay(pairs, saved, sample, table.scales, costs):
            return paired, pairs, rows
    return plan, _no_pairs(), np.zeros(0, np.int32)


def plan_pairs(table: CodedTable, plan: Plan, step: int = 1) -> tuple[Plan, float]:
    """The plan of every `step`-th conjunction, with pairs where they are expected to be cheaper.

    Also how many nanoseconds per event that saves for all conjunctions, before the cost of trying.
    """
    rows = np.arange(0, len(table.start) - 1, step)
    paired = Plan._make(column[rows] for column in plan)
    saved = _plan_pairs(rows, packed_fields(table), paired)
    return paired, saved * step


def _are_worth_trying(plan: Plan, saved: float, table: CodedTable, costs: Costs) -> bool:
    """Whether the pairs of a plan, perhaps of some conjunctions only, save more than trying them costs."""
    tried = float(table.likelihood.presence[_members(table, plan)].sum()) ** 2 / 2
    return saved > costs.caution_with_pairs * TRY_PAIR * max(tried, 1.0)


def _members(table: CodedTable, plan: Plan) -> Bools:
    """The dimensions that pairs are made of."""
    members = np.zeros(len(table.scales.spaces), np.bool_)
    chosen = plan.way == PAIRS
    members[table.coded.dimension[plan.access[chosen]]] = True
    members[table.coded.dimension[plan.filter[chosen]]] = True
    return members


@lean_kernel
def _plan_pairs(rows: I64s, packed: Packed, plan: Plan) -> float:
    """Plan pairs for some conjunctions, whose plan is given; returns how many nanoseconds per event that saves."""
    table: CodedTable = read_table(packed)
    coded = table.coded
    saved = 0.0
    for i in range(len(rows)):
        best, second = _least_likely(rows[i], table)
        if second < 0:
            continue
        passing, raw = 1.0, 0
        for p in range(table.start[rows[i]], table.start[rows[i] + 1]):
            raw += is_raw(p, coded)
            if p not in (best, second) and coded.dimension[p] < RANKED:
                passing = min(passing, hull_of(p, table))
        count = most_cells(best, coded) * most_cells(second, coded)
        reach = F64(coded.probability[best]) * coded.probability[second]
        met = ENTRY + passing * (RECORD + (COMPARE if raw > 0 else 0.0))
        price = reach * met + 2 * SPACE * (count - 1)
        if price < plan.cost[i]:
            saved += plan.cost[i] - price
            plan.access[i], plan.filter[i], plan.way[i], plan.lists[i] = best, second, PAIRS, count
            plan.cost[i] = price
    return saved


@merged
def _least_likely(row: int, table: CodedTable) -> tuple[int, int]:
    """The two least likely predicates of a conjunction that a pair can be made of, on two dimensions; -1: there is none."""
    coded = table.coded
    best, second = _NONE, _NONE
    for p in range(table.start[row], table.start[row + 1]):
        d, kind, likely = coded.dimension[p], coded.kind[p], coded.probability[p]
        if (
            d >= RANKED
            or table.scales.shift_at[d] >= 0
            or table.predicates.mode[p] != SOME
            or coded.first[p] == MISSING
        ):
            continue
        if kind != SET and (kind != RANGE or I64(coded.last[p]) - I64(coded.first[p]) >= _MOST_CELLS):
            continue
        if best >= 0 and coded.dimension[best] == d:
            best = p if likely < coded.probability[best] else best
        elif best < 0 or likely < coded.probability[best]:
            best, second = p, best
        elif second < 0 or likely < coded.probability[second]:
            second = p
    return best, second


def _pay(pairs: Pairs, saved: float, sample: EventBatch | None, scales: Scales, costs: Costs) -> bool:
    """Whether pairs that should save `saved` nanoseconds per event do so with the events of a sample."""
    if sample is None or len(sample.start) < 2:
        return True
    events = min(len(sample.start) - 1, _SAMPLED)
    scratch = pair_scratch(int(scales.cell[-1]) if pairs.entries else 0, int(np.diff(sample.start).max()))
    found = np.zeros(pairs.entries, np.uint32)
    tried, met = _met_by_sample(sample, events, scales, pairs, scratch, found)
    cost = TRY_PAIR * tried + MEET_PAIR * min(met, tried) + ENTRY * met
    return saved * events > costs.caution_with_pairs * cost


@lean_kernel
def _met_by_sample(
    sample: EventBatch, events: int, scales: Scales, pairs: Pairs, scratch: PairScratch, found: Words
) -> tuple[int, int]:
    """How many pairs the first `events` of a sample try, and how many entries they meet. Intervals are left out."""
    local = scales.local
    tried, met = 0, 0
    for e in range(events):
        cells = 0
        for v in range(sample.start[e], sample.start[e + 1]):
            dimension, key = sample.dimension[v], sample.lo[v]
            if dimension < len(local) and local[dimension] >= 0 and key == sample.hi[v]:
                d = I64(local[dimension])
                cells = note_cell(pairs, scratch, d, locate(key, d, scales), cells)
        tried += cells * (cells - 1) // 2
        entries, _ = find_pairs(pairs, scratch, cells, found, len(found))
        met += max(entries, 0)
    return tried, met


# -- entering


def enter_pairs(table: CodedTable, plan: Plan) -> tuple[Pairs, I32s]:
    """The pairs of a plan, without filter words and references, and the conjunction of each entry."""
    room = int(plan.lists[plan.way == PAIRS].sum(dtype=np.int64))
    made = _PairCells(np.empty(room, np.uint32), np.empty(room, np.uint32), np.empty(room, np.int32))
    filled = _enter_pairs(packed_fields(table), plan, np.empty((2, MASK_WORDS), np.uint64), made)
    low, high, conjunctions = made.low[:filled], made.high[:filled], made.conjunction[:filled]
    distinct = len(np.unique(halves(low.astype(np.int64), high.astype(np.int64))))
    bits = max(distinct - 1, 1).bit_length()
    bucket, mark = np.empty(filled, np.int64), np.zeros(1 << bits, np.uint8)
    _bucket(low, high, bits, bucket, mark)
    order = order_of_entries(bucket, conjunctions, table, plan)
    begin = np.zeros((1 << bits) + 1, np.uint32)
    begin[1:] = np.cumsum(np.bincount(bucket, minlength=1 << bits))
    entry = np.zeros((filled + _PADDING, _WORDS), np.uint32)
    entry[:filled, _LOW], entry[:filled, _HIGH] = low[order], high[order]
    cell = np.where(_members(table, plan), table.scales.cell[:-1], _NONE).astype(np.int32)
    return Pairs(cell, begin, mark, entry.ravel()), conjunctions[order]


def complete_pairs(pairs: Pairs, words: Words, references: Words) -> None:
    """Write filter words and references."""
    entry = pairs.entry.reshape(-1, _WORDS)[: len(references)]
    entry[:, _FILTER], entry[:, _REFERENCE] = words, references


@lean_kernel
def _enter_pairs(packed: Packed, plan: Plan, masks: U64s, made: _PairCells) -> int:
    """Write an entry for each pair of cells; returns how many. `masks` has room for two masks."""
    table: CodedTable = read_table(packed)
    coded, cell = table.coded, table.scales.cell
    filled = 0
    for c in range(len(table.start) - 1):
        if plan.way[c] != PAIRS:
            continue
        p, q = plan.access[c], plan.filter[c]
        _fill_cells(p, table, masks[0])
        _fill_cells(q, table, masks[1])
        for s in range(I64(coded.first[p]), I64(coded.last[p]) + 1):
            if not has_bit(masks[0], s):
                continue
            for t in range(I64(coded.first[q]), I64(coded.last[q]) + 1):
                if has_bit(masks[1], t):
                    a, b = cell[coded.dimension[p]] + s, cell[coded.dimension[q]] + t
                    made.low[filled], made.high[filled], made.conjunction[filled] = min(a, b), max(a, b), c
                    filled += 1
    return filled


@merged
def _fill_cells(p: int, table: CodedTable, mask: Mask) -> None:
    """Set the bits of the spaces in which a predicate is true. Bits outside of its hull may be set too."""
    if table.coded.kind[p] == SET:
        fill_mask(p, table.coded.dimension[p], table.predicates, table.scales, mask)
    else:
        mask[:] = ~U64(0)


@inlined
def mixed_cell(cell: int) -> np.uint64:
    return spread(U64(cell) + U64(1))


@lean_kernel
def _bucket(low: Words, high: Words, bits: int, bucket: I64s, mark: Bytes) -> None:
    """Write the buckets of pairs, and their marks."""
    for i in range(len(low)):
        mixed = mixed_cell(low[i]) ^ mixed_cell(high[i])
        bucket[i] = bucket_of(mixed, bits)
        mark[bucket[i]] |= part_of(mixed, bits)


@inlined
def bucket_of(mixed: np.uint64, bits: int) -> int:
    """The bucket of a pair: the highest bits of its hash."""
    return I64(mixed >> U64(64 - bits))


@inlined
def part_of(mixed: np.uint64, bits: int) -> np.uint8:
    """The bit of the part of its bucket that a pair belongs to: the next _PART_BITS bits of the hash choose one of eight."""
    return U8(1) << U8((mixed >> U64(64 - _PART_BITS - bits)) & U64((1 << _PART_BITS) - 1))


@inlined
def bits_of(buckets: int) -> int:
    bits = 1
    while 1 << bits < buckets:
        bits += 1
    return bits


def entries_like(pairs: Pairs, others: Pairs) -> tuple[int, int]:
    """How many different pairs of cells `others` has, and how many entries `pairs` has for them."""
    distinct = np.unique(others.entry.reshape(-1, _WORDS)[: others.entries, _LOW : _HIGH + 1], axis=0)
    low, high = np.ascontiguousarray(distinct.T)
    bucket = np.empty(len(distinct), np.int64)
    _bucket(low, high, len(pairs.mark).bit_length() - 1, bucket, np.zeros_like(pairs.mark))
    entries = pairs.entry.reshape(-1, _WORDS)[:, _LOW : _HIGH + 1]
    parts = zip(distinct, pairs.start[bucket].tolist(), pairs.start[bucket + 1].tolist(), strict=True)
    return len(distinct), sum(int((entries[first:last] == pair).all(axis=1).sum()) for pair, first, last in parts)


# -- matching


@inlined
def note_cell(pairs: Pairs, scratch: PairScratch, dimension: int, space: int, count: int) -> int:
    """Note the cell of a value, if pairs are made of its dimension; returns the new number of cells."""
    first = I64(pairs.cell[UP(dimension)])
    cell = max(first, 0) + space
    scratch.cell[UP(count)] = U32(cell)
    scratch.mixed[UP(count)] = mixed_cell(cell)
    return count + I64(first >= 0)


@inlined
def find_pairs(pairs: Pairs, scratch: PairScratch, count: int, found: Words, room: int) -> tuple[int, int]:
    """Write the places of the entries that `count` cells meet, at most `room` of them.

    Returns their number, or minus the room that they may need, and the number of entries visited.
    """
    mark = pairs.mark
    entries = I64(pairs.start[UP(len(pairs.start) - 1)])
    if count * (count - 1) > 2 * _MOST_TRIED * entries:
        return _find_in_all(pairs, scratch, count, entries, found, room)
    mixed, hit, bucket = scratch.mixed, scratch.hit, scratch.bucket
    bits = bits_of(len(mark))
    met, looked, hits = 0, 0, 0
    for i in range(1, count):
        this = mixed[UP(i)]
        for j in range(i):
            pair = this ^ mixed[UP(j)]
            at = bucket_of(pair, bits)
            hit[UP(hits)] = halves(i, j)
            bucket[UP(hits)] = at
            hits += I64((mark[UP(at)] & part_of(pair, bits)) != U8(0))
        if hits >= _HITS or i + 1 == count:
            met, seen = _find_hits(pairs, scratch, hits, found, met, room)
            if met < 0:
                return met, 0
            looked += seen
            hits = 0
    return met, looked


@inlined
def _find_hits(pairs: Pairs, scratch: PairScratch, hits: int, found: Words, met: int, room: int) -> tuple[int, int]:
    """Add the entries of the hits."""
    start, entry = pairs.start, pairs.entry
    cells, hit, bucket = scratch.cell, scratch.hit, scratch.bucket
    for i in range(hits):
        prefetch(start, bucket[UP(i)])
    looked = 0
    for i in range(hits):
        at = bucket[UP(i)]
        begin, end = I64(start[UP(at)]), I64(start[UP(at + 1)])
        prefetch(entry, _WORDS * begin)
        bucket[UP(i)] = halves(begin, end)
        looked += end - begin
    if met + looked > room:
        return -(met + looked), looked
    for i in range(hits):
        one, other = cells[UP(first_half(hit[UP(i)]))], cells[UP(second_half(hit[UP(i)]))]
        low, high = min(one, other), max(one, other)
        for q in range(first_half(bucket[UP(i)]), second_half(bucket[UP(i)])):
            found[UP(met)] = U32(q)
            met += I64(is_of_cells(entry, q, low, high))
    return met, looked


@inlined
def _find_in_all(
    pairs: Pairs, scratch: PairScratch, count: int, entries: int, found: Words, room: int
) -> tuple[int, int]:
    """Visit all entries."""
    entry, cells, has = pairs.entry, scratch.cell, scratch.has
    if entries > room:
        return -entries, 0
    for i in range(count):
        has[UP(cells[UP(i)])] = True
    met = 0
    for q in range(entries):
        found[UP(met)] = U32(q)
        met += I64(has[UP(entry[UP(_WORDS * q + _LOW)])] & has[UP(entry[UP(_WORDS * q + _HIGH)])])
    for i in range(count):
        has[UP(cells[UP(i)])] = False
    return met, entries


@inlined
def is_of_cells(entry: Words, place: int, low: np.uint32, high: np.uint32) -> np.bool_:
    """Whether an entry is of these two cells, the lower one first."""
    return (entry[UP(_WORDS * place + _LOW)] == low) & (entry[UP(_WORDS * place + _HIGH)] == high)


@inlined
def pair_word(entry: Words, place: int) -> np.uint32:
    return entry[UP(_WORDS * place + _FILTER)]


@inlined
def pair_reference(entry: Words, place: int) -> np.uint32:
    return entry[UP(_WORDS * place + _REFERENCE)]
