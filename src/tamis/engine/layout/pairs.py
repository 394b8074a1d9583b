"""Pairs: conjunctions that are found by two values at once.

Where many conjunctions ask for the same value, its list is long, and every event that has the value scans it. Where they ask
for another one as well, the list of both is shorter by as much as that is rare. An event tries all pairs of its values, most of
which are turned down by a byte:

    cells of the event      3  17  42  ...             the spaces of its values, in dimensions that pairs are made of
    mixed(3) ^ mixed(17)    bucket . part . rest       is the bit of this part set in mark[bucket]?
    start[bucket] ...       [3 17 word reference] ...  entries of the bucket; those of the same two cells are met

Trying takes time in proportion to the square of the number of an event's values, and saves some in proportion to the
conjunctions. Entries and records of pairs lie scattered, where those of a list lie side by side. So there are pairs only where
the planner expects them to save twice what they cost, as where events have few attributes with few values each, and where events
of the sample agree: the planner takes attributes to be independent. Wide dimensions have none.

An event with so many values that it would take longer to try their pairs goes through all entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.costs import CAUTION_WITH_PAIRS, COMPARE, ENTRY, MEET_PAIR, RECORD, SPACE, TRY_PAIR
from tamis.engine.layout.plan import PAIRS, RANKED, SOME, Plan, hull_of
from tamis.engine.layout.predicate_codes import MASK_WORDS, RANGE, RAW, SET, SET_SIZE, Coded, fill_mask, has_space
from tamis.engine.layout.records import order_in_lists
from tamis.engine.layout.scale import MISSING, Scales, locate
from tamis.engine.layout.statistics import Likelihood
from tamis.kernels.hashing import spread
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import F64, I64, U8, U32, U64, UP
from tamis.kernels.prefetch import prefetch

_MOST_CELLS = 4
"""Ranges over more spaces are not made pairs of."""
_WORDS = 4
_PADDING = 64
_PART_BITS = 3
_HITS = 1024
"""So many pairs that were not turned down are looked up together."""
_MOST_TRIED = 4
"""All entries are gone through where an event has so many times as many pairs."""
_PLANNED, _SAMPLED = 1 << 15, 512
"""So many conjunctions, and events, tell whether pairs pay."""
_NONE = -1


class Pairs(NamedTuple):
    """The index over pairs of cells; all arrays are empty where there are none."""

    cell: npt.NDArray[np.int32]
    """Dimension -> its first cell, -1: no pair is made of it."""
    start: npt.NDArray[np.uint32]
    """Bucket -> its first entry; one more at the end."""
    mark: npt.NDArray[np.uint8]
    """Bucket -> which of its eight parts have entries."""
    entry: npt.NDArray[np.uint32]
    """Two cells, the lower first, then filter word and reference."""

    @property
    def entries(self) -> int:
        return int(self.start[-1]) if len(self.start) else 0


class PairScratch(NamedTuple):
    """What a thread needs to find the pairs of an event."""

    cell: npt.NDArray[np.uint32]
    """The cells of the event; and the same mixed."""
    mixed: npt.NDArray[np.uint64]
    hit: npt.NDArray[np.int64]
    """Pairs that were not turned down: the places of their cells above, 32 bits each; and their buckets."""
    bucket: npt.NDArray[np.int64]
    has: npt.NDArray[np.bool_]
    """Whether the event has a cell: for those that go through all entries."""


def _no_pairs() -> Pairs:
    return Pairs(np.zeros(0, np.int32), np.zeros(0, np.uint32), np.zeros(0, np.uint8), np.zeros(0, np.uint32))


def pair_scratch(cells: int, room: int) -> PairScratch:
    """Scratch for events that have at most `room` cells, of so many that pairs are made of; empty where there are none."""
    noted, hits = (room + 1, _HITS + room + 1) if cells else (0, 0)
    return PairScratch(
        np.zeros(noted, np.uint32),
        np.zeros(noted, np.uint64),
        np.zeros(hits, np.int64),
        np.zeros(hits, np.int64),
        np.zeros(cells, np.bool_),
    )


# -- planning


def with_pairs(
    start: npt.NDArray[np.int64],
    plan: Plan,
    predicates: Predicates,
    coded: Coded,
    scales: Scales,
    likelihood: Likelihood,
    sample: EventBatch | None,
) -> tuple[Plan, Pairs, npt.NDArray[np.int32]]:
    """A plan with pairs if these pay, the pairs, and the conjunction of each of their entries."""
    planned = start, plan, predicates, coded, scales, likelihood
    step = max(1, (len(start) - 1) // _PLANNED)
    if are_worth_trying(*plan_pairs(*planned, step), coded, likelihood):
        paired, saved = plan_pairs(*planned)
        pairs, rows = enter_pairs(start, paired, predicates, coded, scales)
        if pay(pairs, saved, sample, scales):
            return paired, pairs, rows
    return plan, _no_pairs(), np.zeros(0, np.int32)


def plan_pairs(
    start: npt.NDArray[np.int64],
    plan: Plan,
    predicates: Predicates,
    coded: Coded,
    scales: Scales,
    likelihood: Likelihood,
    step: int = 1,
) -> tuple[Plan, float]:
    """The plan of every `step`-th conjunction, with pairs for those that these are expected to be cheaper for; and how many
    nanoseconds of an event that saves for all conjunctions, trying left out."""
    rows = np.arange(0, len(start) - 1, step)
    columns: list[Any] = [column[rows] for column in plan]
    paired = Plan(*columns)
    saved = _plan_pairs(rows, start, predicates, coded, scales, likelihood, paired)
    return paired, saved * step


def are_worth_trying(plan: Plan, saved: float, coded: Coded, likelihood: Likelihood) -> bool:
    """Whether the pairs of a plan, perhaps of some conjunctions only, save more than trying them costs."""
    members = _members(plan, coded, len(likelihood.presence))
    tried = float(likelihood.presence[members].sum()) ** 2 / 2
    return saved > CAUTION_WITH_PAIRS * TRY_PAIR * max(tried, 1.0)


def _members(plan: Plan, coded: Coded, dimensions: int) -> npt.NDArray[np.bool_]:
    """The dimensions that pairs are made of."""
    members = np.zeros(dimensions, np.bool_)
    chosen = plan.way == PAIRS
    members[coded.dimension[plan.access[chosen]]] = True
    members[coded.dimension[plan.filter[chosen]]] = True
    return members


@lean_kernel
def _plan_pairs(rows: Any, start: Any, predicates: Any, coded: Any, scales: Any, likelihood: Any, plan: Any) -> float:
    """Choose the two least likely predicates of some conjunctions, whose plan is given; returns what that saves."""
    mode = predicates.mode
    dimension, first, last, kind, _, probability = coded[:6]
    shift_at, cell = scales.shift_at, scales.cell
    cumulative, presence = likelihood
    access, way, filters, _, lists, cost = plan
    saved = 0.0
    for i in range(len(rows)):
        best, second, raw = _NONE, _NONE, 0
        begin, end = start[rows[i]], start[rows[i] + 1]
        for p in range(begin, end):
            d = dimension[p]
            raw += kind[p] == RAW or d >= RANKED
            if d >= RANKED or shift_at[d] >= 0 or mode[p] != SOME or first[p] == MISSING:
                continue
            if kind[p] != SET and (kind[p] != RANGE or I64(last[p]) - I64(first[p]) >= _MOST_CELLS):
                continue
            if best >= 0 and dimension[best] == d:
                best = p if probability[p] < probability[best] else best
            elif best < 0 or probability[p] < probability[best]:
                best, second = p, best
            elif second < 0 or probability[p] < probability[second]:
                second = p
        if second < 0:
            continue
        passing = 1.0
        for p in range(begin, end):
            if p not in (best, second) and dimension[p] < RANKED:
                passing = min(passing, hull_of(p, dimension[p], first, last, cell, cumulative, presence))
        count = _most_cells(best, first, last, kind) * _most_cells(second, first, last, kind)
        reach = F64(probability[best]) * probability[second]
        met = ENTRY + passing * (RECORD + (COMPARE if raw > 0 else 0.0))
        price = reach * met + 2 * SPACE * (count - 1)
        if price < cost[i]:
            saved += cost[i] - price
            access[i], filters[i], way[i], lists[i], cost[i] = best, second, PAIRS, count, price
    return saved


@inlined
def _most_cells(p: int, first: Any, last: Any, kind: Any) -> int:
    """How many cells a predicate covers, at most."""
    count = I64(last[p]) - I64(first[p]) + 1
    return min(count, SET_SIZE) if kind[p] == SET else count


def pay(pairs: Pairs, saved: float, sample: EventBatch | None, scales: Scales) -> bool:
    """Whether pairs that should save so many nanoseconds of an event do so with the events of a sample."""
    if sample is None or len(sample.start) < 2:
        return True
    events = min(len(sample.start) - 1, _SAMPLED)
    scratch = pair_scratch(int(scales.cell[-1]) if pairs.entries else 0, int(np.diff(sample.start).max()))
    found = np.zeros(pairs.entries, np.uint32)
    tried, met = _met_by_sample(sample, events, scales, pairs, scratch, found)
    return saved * events > CAUTION_WITH_PAIRS * (TRY_PAIR * tried + MEET_PAIR * min(met, tried) + ENTRY * met)


@lean_kernel
def _met_by_sample(sample: Any, events: int, scales: Any, pairs: Any, scratch: Any, found: Any) -> tuple[int, int]:
    """How many pairs so many events of a sample try, and how many entries they meet; intervals are left aside."""
    start, dimension, lo, hi = sample
    local = scales.local
    tried, met = 0, 0
    for e in range(events):
        cells = 0
        for v in range(start[e], start[e + 1]):
            if dimension[v] < len(local) and local[dimension[v]] >= 0 and lo[v] == hi[v]:
                d = I64(local[dimension[v]])
                cells = note_cell(pairs, scratch, d, locate(lo[v], d, scales), cells)
        tried += cells * (cells - 1) // 2
        met += max(find_pairs(pairs, scratch, cells, found, len(found))[0], 0)
    return tried, met


# -- entering


def enter_pairs(
    start: npt.NDArray[np.int64], plan: Plan, predicates: Predicates, coded: Coded, scales: Scales
) -> tuple[Pairs, npt.NDArray[np.int32]]:
    """The pairs of a plan, words and references left open, and the conjunction of each entry."""
    room = int(plan.lists[plan.way == PAIRS].sum(dtype=np.int64))
    low, high = np.empty((2, room), np.uint32)
    rows = np.empty(room, np.int32)
    masks = np.empty((2, MASK_WORDS), np.uint64)
    filled = _enter_pairs(start, plan, predicates, coded, scales, masks, low, high, rows)
    low, high, rows = low[:filled], high[:filled], rows[:filled]
    distinct = len(np.unique((low.astype(np.uint64) << U64(32)) | high))
    bits = max(distinct - 1, 1).bit_length()
    bucket, mark = np.empty(filled, np.int64), np.zeros(1 << bits, np.uint8)
    _bucket(low, high, bits, bucket, mark)
    minor = order_in_lists(start, plan, predicates, coded, scales)
    order = np.argsort((bucket.astype(np.uint64) << U64(24)) | minor[rows])
    begin = np.zeros((1 << bits) + 1, np.uint32)
    begin[1:] = np.cumsum(np.bincount(bucket, minlength=1 << bits))
    entry = np.zeros((filled + _PADDING, _WORDS), np.uint32)
    entry[:filled, 0], entry[:filled, 1] = low[order], high[order]
    members = _members(plan, coded, len(scales.spaces))
    return Pairs(np.where(members, scales.cell[:-1], _NONE).astype(np.int32), begin, mark, entry.ravel()), rows[order]


def complete_pairs(pairs: Pairs, words: npt.NDArray[np.uint32], references: npt.NDArray[np.uint32]) -> None:
    """Write filter words and references."""
    entry = pairs.entry.reshape(-1, _WORDS)[: len(references)]
    entry[:, 2], entry[:, 3] = words, references


@lean_kernel
def _enter_pairs(
    start: Any, plan: Any, predicates: Any, coded: Any, scales: Any, masks: Any, low: Any, high: Any, rows: Any
) -> int:
    access, way, filters = plan.access, plan.way, plan.filter
    dimension, first, last = coded.dimension, coded.first, coded.last
    cell = scales.cell
    filled = 0
    for row in range(len(start) - 1):
        if way[row] != PAIRS:
            continue
        p, q = access[row], filters[row]
        _fill_cells(p, predicates, coded, scales, masks[0])
        _fill_cells(q, predicates, coded, scales, masks[1])
        for s in range(I64(first[p]), I64(last[p]) + 1):
            if not has_space(masks[0], s):
                continue
            for t in range(I64(first[q]), I64(last[q]) + 1):
                if has_space(masks[1], t):
                    a, b = cell[dimension[p]] + s, cell[dimension[q]] + t
                    low[filled], high[filled], rows[filled] = min(a, b), max(a, b), row
                    filled += 1
    return filled


@inlined
def _fill_cells(p: int, predicates: Any, coded: Any, scales: Any, mask: Any) -> None:
    """The spaces of its hull in which a predicate is true, as bits; what lies outside of the hull may be set too."""
    _, mode, start, lo, hi = predicates
    if coded.kind[p] == SET:
        fill_mask(mode[p], lo, hi, start[p], start[p + 1], coded.dimension[p], scales, mask)
    else:
        mask[:] = ~U64(0)


@inlined
def _mixed(cell: Any) -> Any:
    return spread(U64(cell) + U64(1))


@lean_kernel
def _bucket(low: Any, high: Any, bits: int, bucket: Any, mark: Any) -> None:
    """The buckets of pairs, and their marks."""
    for i in range(len(low)):
        mixed = _mixed(low[i]) ^ _mixed(high[i])
        bucket[i] = I64(mixed >> U64(64 - bits))
        mark[bucket[i]] |= _part(mixed, bits)


@inlined
def _part(mixed: Any, bits: int) -> Any:
    """The part of its bucket that a pair belongs to, as a bit."""
    return U8(1) << U8((mixed >> U64(64 - _PART_BITS - bits)) & U64((1 << _PART_BITS) - 1))


@inlined
def _bits_of(buckets: int) -> int:
    bits = 1
    while 1 << bits < buckets:
        bits += 1
    return bits


def entries_like(pairs: Pairs, others: Pairs) -> tuple[int, int]:
    """How many different pairs others are of, and how many entries these have here."""
    distinct = np.unique(others.entry.reshape(-1, _WORDS)[: others.entries, :2], axis=0)
    low, high = np.ascontiguousarray(distinct.T)
    bucket = np.empty(len(distinct), np.int64)
    _bucket(low, high, len(pairs.mark).bit_length() - 1, bucket, np.zeros_like(pairs.mark))
    entries = pairs.entry.reshape(-1, _WORDS)[:, :2]
    parts = zip(distinct, pairs.start[bucket].tolist(), pairs.start[bucket + 1].tolist(), strict=True)
    return len(distinct), sum(int((entries[first:last] == pair).all(axis=1).sum()) for pair, first, last in parts)


# -- matching


@inlined
def note_cell(pairs: Pairs, scratch: PairScratch, dimension: int, space: int, count: int) -> int:
    """Note the cell of a value, if pairs are made of its dimension; returns how many there are then."""
    first = I64(pairs.cell[UP(dimension)])
    cell = max(first, 0) + space
    scratch.cell[UP(count)] = U32(cell)
    scratch.mixed[UP(count)] = _mixed(cell)
    return count + I64(first >= 0)


@inlined
def find_pairs(pairs: Pairs, scratch: PairScratch, count: int, found: Any, room: int) -> tuple[int, int]:
    """Write the places of the entries that `count` cells meet, at most `room` of them.

    Returns how many there are, or minus the room that they may need, and how many entries were visited.
    """
    mark = pairs.mark
    entries = I64(pairs.start[UP(len(pairs.start) - 1)])
    if count * (count - 1) > 2 * _MOST_TRIED * entries:
        return _find_in_all(pairs, scratch, count, entries, found, room)
    mixed, hit, bucket = scratch.mixed, scratch.hit, scratch.bucket
    bits = _bits_of(len(mark))
    met, looked, hits = 0, 0, 0
    for i in range(1, count):
        this = mixed[UP(i)]
        for j in range(i):
            pair = this ^ mixed[UP(j)]
            at = pair >> U64(64 - bits)
            hit[UP(hits)] = (i << 32) | j
            bucket[UP(hits)] = I64(at)
            hits += I64((mark[UP(at)] & _part(pair, bits)) != U8(0))
        if hits >= _HITS or i + 1 == count:
            met, seen = _find_hits(pairs, scratch, hits, found, met, room)
            if met < 0:
                return met, 0
            looked += seen
            hits = 0
    return met, looked


@inlined
def _find_hits(pairs: Pairs, scratch: PairScratch, hits: int, found: Any, met: int, room: int) -> tuple[int, int]:
    """Add the entries of some pairs that were not turned down."""
    start, entry = pairs.start, pairs.entry
    cells, hit, bucket = scratch.cell, scratch.hit, scratch.bucket
    for i in range(hits):
        prefetch(start, bucket[UP(i)])
    looked = 0
    for i in range(hits):
        at = bucket[UP(i)]
        begin, end = I64(start[UP(at)]), I64(start[UP(at + 1)])
        prefetch(entry, _WORDS * begin)
        bucket[UP(i)] = (begin << 32) | end
        looked += end - begin
    if met + looked > room:
        return -(met + looked), looked
    for i in range(hits):
        one, other = cells[UP(hit[UP(i)] >> 32)], cells[UP(hit[UP(i)] & 0xFFFFFFFF)]
        low, high = min(one, other), max(one, other)
        for q in range(bucket[UP(i)] >> 32, bucket[UP(i)] & 0xFFFFFFFF):
            found[UP(met)] = U32(q)
            met += I64((entry[UP(_WORDS * q)] == low) & (entry[UP(_WORDS * q + 1)] == high))
    return met, looked


@inlined
def _find_in_all(
    pairs: Pairs, scratch: PairScratch, count: int, entries: int, found: Any, room: int
) -> tuple[int, int]:
    """Go through all entries."""
    entry, cells, has = pairs.entry, scratch.cell, scratch.has
    if entries > room:
        return -entries, 0
    for i in range(count):
        has[UP(cells[UP(i)])] = True
    met = 0
    for q in range(entries):
        found[UP(met)] = U32(q)
        met += I64(has[UP(entry[UP(_WORDS * q)])] & has[UP(entry[UP(_WORDS * q + 1)])])
    for i in range(count):
        has[UP(cells[UP(i)])] = False
    return met, entries


@inlined
def pair_word(entry: Any, place: int) -> Any:
    return entry[UP(_WORDS * place + 2)]


@inlined
def pair_reference(entry: Any, place: int) -> Any:
    return entry[UP(_WORDS * place + 3)]
