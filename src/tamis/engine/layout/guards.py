"""Guards: parts of a list that events pass over.

All conjunctions of a list share one condition, and most of them fail because the event lacks some other attribute they ask
about. So a long list of a space or a dimension is laid out in blocks of eight entries, a cache line, and where all eight ask
about one more dimension, that is the *guard* of the block: an event that lacks it passes over the block, and does not even
fetch it.

    list      [ . . . . . . . . ] [ . . . . . . . . ] [ . . . . . x x x ] [ . . . . . . . . ]      x: padding, never true
    guard     city                shoes               size                none: always looked at

Which entries share a block is chosen greedily: again and again the dimension whose next block saves most. With a million
subscriptions on 100 attributes, of which events have 30, an event looks at 1,480 entries instead of 3,390, in two thirds of the
time; with 20 of 122 at 2,450 instead of 6,010, in 55 %.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import EventBatch
from tamis.engine.layout.costs import GUARD, LEAST_SAVED_BY_GUARD, MOST_WITH_GUARDS
from tamis.engine.layout.lists import Entries
from tamis.engine.layout.plan import RANKED, Plan
from tamis.engine.layout.predicate_codes import Coded
from tamis.engine.layout.scale import MISSING, Scales
from tamis.engine.layout.statistics import Likelihood
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U32, UP
from tamis.kernels.prefetch import prefetch
from tamis.kernels.ranges import run_indices

BLOCK = 8
"""Entries, of two words: a cache line."""
GUARDED = 32
"""Lists of spaces and dimensions are laid out in blocks, and guarded, if they have so many entries, padding included."""
_FEWEST = GUARDED - BLOCK + 1
"""Lists of so many entries take so many blocks. Others stay below, even with the padding up to the next block."""
_UNKNOWN = 0.5
"""Where there is no sample, the dimension that most conjunctions ask about is taken to be in so many events."""
_TRIED = 64
"""About so many lists of spaces, and of dimensions, tell whether they do."""
_AT_ONCE = 256
"""So many entries of a list are parted into blocks together."""
_NEEDS = 16
"""Guards are chosen among the dimensions of so many predicates of a conjunction."""
_NONE = -1

Guards = npt.NDArray[np.uint16]
"""The guard of each block from the first entry on; where there is none, the number behind the last dimension, which all events
have. Those of short lists, which are not in blocks, mean nothing. Empty where guards do not pay."""


@inlined
def padding_word(nothing: int) -> Any:
    """The filter word of padding: what all events have there is not in its range. `nothing` is behind the last dimension."""
    return U32((nothing << 16) | (1 << 8))


def count_entries(words: npt.NDArray[np.uint32], dimensions: int) -> int:
    """How many entries of a segment of so many dimensions have these filter words, padding left out."""
    return int(np.count_nonzero(words != padding_word(min(dimensions, RANKED))))


class Outlook(NamedTuple):
    """How much of the first `lists`, where they have at least `size` entries, events are expected to look at."""

    lists: int
    size: int
    share: float


def outlook_of(
    start: npt.NDArray[np.int64],
    entries: Entries,
    plan: Plan,
    coded: Coded,
    scales: Scales,
    likelihood: Likelihood,
    sample: EventBatch | None,
) -> Outlook:
    """What guards would spare, if all these entries stay in lists."""
    guarded = _Guarded(start, entries, plan, coded, scales, likelihood, sample)
    return Outlook(guarded.lists, _FEWEST, guarded.share())


def with_guards(
    start: npt.NDArray[np.int64],
    entries: Entries,
    plan: Plan,
    coded: Coded,
    scales: Scales,
    likelihood: Likelihood,
    sample: EventBatch | None,
) -> tuple[Entries, Guards]:
    """Entries in blocks, with -1 for the rows of padding, and their guards; where these do not pay, entries as they are."""
    guarded = _Guarded(start, entries, plan, coded, scales, likelihood, sample)
    if guarded.share() == 1.0:
        return entries, np.zeros(0, np.uint16)
    in_blocks, guard, _ = _in_blocks(entries, guarded.plain, guarded.sizes[guarded.long], guarded.told)
    return in_blocks, guard


class _Guarded:
    """The lists that may have guards, those of spaces and dimensions, and what decides about them."""

    def __init__(
        self,
        start: npt.NDArray[np.int64],
        entries: Entries,
        plan: Plan,
        coded: Coded,
        scales: Scales,
        likelihood: Likelihood,
        sample: EventBatch | None,
    ) -> None:
        cells = int(scales.cell[-1])
        self.cells, self.lists = cells, cells + len(scales.spaces)
        self.entries = entries
        self.plain = int(np.searchsorted(entries.list, self.lists))
        self.sizes = np.bincount(entries.list[: self.plain], minlength=1)
        self.long = np.flatnonzero(self.sizes >= _FEWEST)
        known = sample is not None and len(sample.start) > 1
        presence = likelihood.presence if known else likelihood.presence * _UNKNOWN
        met = np.concatenate((np.diff(likelihood.cumulative[: cells + 1]), likelihood.presence))
        self.told = start, coded.dimension, coded.first, plan.access, presence, met

    def share(self) -> float:
        """What long lists would cost with guards by what they cost without, as some of them tell; 1.0 where guards do not pay."""
        cost = np.zeros(2)
        # Those of dimensions, which are few and met often, would else be left out, or decide alone.
        for long in np.split(self.long, [np.searchsorted(self.long, self.cells)]):
            if len(long):
                tried = long[:: max(1, len(long) // _TRIED)]
                some = run_indices((np.cumsum(self.sizes) - self.sizes)[tried], self.sizes[tried])
                few = Entries(self.entries.list[some], self.entries.row[some])
                *_, costs = _in_blocks(few, len(some), self.sizes[tried], self.told)
                cost += costs * len(long) / len(tried)
        return float(cost[0] / cost[1]) if cost[0] < MOST_WITH_GUARDS * cost[1] else 1.0


def looked_at(entries: Entries, guard: Guards, likelihood: Likelihood, rows: int) -> npt.NDArray[np.float64]:
    """What share of the entries of each row, padding beside it counted as its own, events that meet their lists look at."""
    share = np.ones(rows)
    blocks = len(guard)
    if blocks == 0:
        return share
    lists, row = entries.list[: BLOCK * blocks], entries.row[: BLOCK * blocks]
    guarded = np.bincount(lists)[lists] >= GUARDED
    block = np.arange(len(row)) // BLOCK
    real = row >= 0
    filled = np.maximum(np.bincount(block[real], minlength=blocks), 1)
    weight = np.append(likelihood.presence[:RANKED], 1.0)[guard] * BLOCK / filled
    entered = np.where(guarded, weight[block], 1.0)[real]
    times = np.bincount(row[real], minlength=rows)
    there = times > 0
    share[there] = np.bincount(row[real], entered, rows)[there] / times[there]
    return share


def _in_blocks(
    entries: Entries, plain: int, sizes: npt.NDArray[np.int64], told: Any
) -> tuple[Entries, Guards, npt.NDArray[np.float64]]:
    """Part long lists, which have these sizes, among the first lists, which have so many entries; and what events look at,
    then and before."""
    dimensions = len(told[4])
    # A block that is not full has two entries at least; besides, there is one at the end of each part, and around a list.
    room = len(entries.row) + BLOCK * int((sizes // 2 + sizes // _AT_ONCE + 6).sum()) + BLOCK
    lists, rows = np.empty(room, np.int64), np.empty(room, np.int32)
    guard = np.full(room // BLOCK + 1, min(dimensions, RANKED), np.uint16)
    cost, needs = np.zeros(2), _AT_ONCE * _NEEDS
    scratch = (
        np.zeros(dimensions, np.int32),
        np.empty(dimensions, np.int32),
        np.empty(needs + 1, np.int32),
        np.empty(needs, np.int32),
        np.empty(_AT_ONCE + 1, np.int32),
        np.empty(needs, np.int32),
        np.empty(_AT_ONCE, np.bool_),
    )
    filled, upto = _guard(entries, plain, told, scratch, lists, rows, guard, cost)
    return Entries(lists[:filled], rows[:filled]), guard[: upto // BLOCK].copy(), cost


@lean_kernel
def _guard(
    entries: Any, plain: int, told: Any, scratch: Any, lists: Any, rows: Any, guard: Any, cost: Any
) -> tuple[int, int]:
    """Part the first lists, which have so many entries, into blocks; returns how many entries there are then, and how many
    of them are of these lists."""
    given, row = entries
    met = told[5]
    filled, at = 0, 0
    while at < plain:
        end = at
        while end < plain and given[end] == given[at]:
            end += 1
        if end - at < _FEWEST:
            for i in range(at, end):
                lists[filled], rows[filled] = given[i], row[i]
                filled += 1
        else:
            filled = _pad(filled, given[max(at - 1, 0)], lists, rows)
            looked, size = 0.0, end - at
            while at < end:
                upto = min(at + _AT_ONCE, end)
                filled, more = _part(row, at, upto, given[at], told, scratch, filled, lists, rows, guard)
                looked += more
                at = upto
            cost[0] += met[given[end - 1]] * looked
            cost[1] += met[given[end - 1]] * size
        at = end
    filled = _pad(filled, given[max(plain - 1, 0)], lists, rows)
    upto = filled
    for i in range(plain, len(given)):
        lists[filled], rows[filled] = given[i], row[i]
        filled += 1
    return filled, upto


@inlined
def _pad(filled: int, number: int, lists: Any, rows: Any) -> int:
    """Fill up the last block of a list."""
    while filled % BLOCK != 0:
        lists[filled], rows[filled] = number, _NONE
        filled += 1
    return filled


@inlined
def _part(
    row: Any, at: int, end: int, number: int, told: Any, scratch: Any, filled: int, lists: Any, rows: Any, guard: Any
) -> tuple[int, float]:
    """Part some entries of a list into blocks; returns how many entries there are then, and how many of these an event that meets
    the list is expected to look at."""
    presence = told[4]
    count, begin, seen, need, need_at, user, done = scratch
    dimensions = _needs(row, at, end, told, scratch)
    looked, left = 0.0, end - at
    while left > 0:
        best, most, kept = _NONE, LEAST_SAVED_BY_GUARD, 0
        for i in range(dimensions):
            d = seen[UP(i)]
            saved = min(count[UP(d)], BLOCK) - BLOCK * presence[UP(d)]
            seen[UP(kept)] = d
            kept += I64(saved > LEAST_SAVED_BY_GUARD)  # It will not become more.
            if saved > most or (best >= 0 and saved == most and count[UP(d)] > count[UP(best)]):
                best, most = I64(d), saved
        dimensions = kept
        if best < 0:
            break
        many = I64(count[UP(best)])
        upto, first, k = filled + max(many // BLOCK * BLOCK, min(many, BLOCK)), filled, I64(begin[UP(best)])
        while filled < upto:
            i = user[UP(k)]
            k += 1
            if not done[UP(i)]:
                done[UP(i)] = True
                for j in range(need_at[UP(i)], need_at[UP(i + 1)]):
                    count[UP(need[UP(j)])] -= 1
                lists[UP(filled)], rows[UP(filled)] = number, row[UP(at + i)]
                filled += 1
        left -= filled - first
        filled = _pad(filled, number, lists, rows)
        for block in range(first // BLOCK, filled // BLOCK):
            guard[UP(block)] = best
        looked += (filled - first) * (presence[UP(best)] + GUARD / BLOCK)
    for k in range(need_at[UP(end - at)]):
        count[UP(need[UP(k)])] = 0
    for i in range(end - at):
        if not done[UP(i)]:
            lists[UP(filled)], rows[UP(filled)] = number, row[UP(at + i)]
            filled += 1
    filled = _pad(filled, number, lists, rows)
    return filled, looked + left * (1.0 + GUARD / BLOCK)


@inlined
def _needs(row: Any, at: int, end: int, told: Any, scratch: Any) -> int:
    """Note which dimensions events must have to satisfy some entries, and the other way round; returns how many they are."""
    start, dimension, first, access = told[:4]
    count, begin, seen, need, need_at, user, done = scratch
    for i in range(at, end):
        prefetch(start, row[UP(i)])
        prefetch(access, row[UP(i)])
    for i in range(at, end):
        prefetch(dimension, start[UP(row[UP(i)])])
        prefetch(first, start[UP(row[UP(i)])])
        prefetch(dimension, access[UP(row[UP(i)])])
    filled, dimensions = 0, 0
    for i in range(end - at):
        r = row[UP(at + i)]
        # Predicates on one dimension are neighbours.
        own, before = I64(dimension[UP(access[UP(r)])]), _NONE
        need_at[UP(i)], done[UP(i)] = filled, False
        for p in range(start[UP(r)], min(start[UP(r + 1)], start[UP(r)] + _NEEDS)):
            d = I64(dimension[UP(p)])
            if d in (own, before) or d >= RANKED or first[UP(p)] == MISSING:
                continue
            before = d
            seen[UP(dimensions)] = d
            dimensions += I64(count[UP(d)] == 0)
            count[UP(d)] += 1
            need[UP(filled)] = d
            filled += 1
    need_at[UP(end - at)] = filled
    place = 0
    for i in range(dimensions):
        place += I64(count[UP(seen[UP(i)])])
        begin[UP(seen[UP(i)])] = place
    for i in range(end - at - 1, -1, -1):
        for k in range(need_at[UP(i)], need_at[UP(i + 1)]):
            d = need[UP(k)]
            begin[UP(d)] -= 1
            user[UP(begin[UP(d)])] = i
    return dimensions
