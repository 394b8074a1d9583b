"""Guards: parts of a list that events skip.

All conjunctions of a list share one condition. Most of them fail because the event lacks another attribute that they ask about.
So a long list of a space or a dimension is laid out in blocks of eight entries, a cache line. If all eight ask about one more
dimension, this dimension is the *guard* of the block. An event that lacks it skips the block and does not even fetch it.

    list      [ . . . . . . . . ] [ . . . . . . . . ] [ . . . . . x x x ] [ . . . . . . . . ]      x: padding, never true
    guard     city                shoes               size                none: always visited

Blocks are filled greedily: each time for the dimension whose next block saves most. With a million subscriptions on 100
attributes, of which events have 30, an event visits 1,480 entries instead of 3,390, in two thirds of the time. With 20 of 122
attributes it visits 2,450 instead of 6,010, in 55 %.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.engine.layout.costs import GUARD, LEAST_SAVED_BY_GUARD, Costs
from tamis.engine.layout.lists import Entries
from tamis.engine.layout.plan import RANKED, Plan
from tamis.engine.layout.predicate_codes import CodedTable
from tamis.engine.layout.record_words import range_word
from tamis.engine.layout.scale import MISSING, Bytes, Dimensions
from tamis.engine.layout.statistics import Likelihood
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I64, UP, Bools, F64s, I32s, I64s, U16s, U32s
from tamis.kernels.prefetch import prefetch
from tamis.kernels.ranges import span_indices

BLOCK = 8
"""Entries of a block: two words each, together a cache line."""
GUARDED = 32
"""Entries, padding included, from which on a list of a space or dimension has blocks with guards."""
_FEWEST = GUARDED - BLOCK + 1
"""The fewest entries of such a list before padding. Shorter lists stay below GUARDED even with padding."""
_UNKNOWN = 0.5
"""Without a sample: the assumed share of events that have the most frequent dimension of predicates."""
_TRIED = 64
"""About how many lists of spaces, and how many lists of dimensions, are tried to see whether guards pay."""
_AT_ONCE = 256
"""Entries of a list that are divided into blocks together."""
_NEEDS = 16
"""Only the first predicates of a conjunction, up to this number, offer their dimensions as guards."""
_NONE = -1
_WITH, _WITHOUT = range(2)
"""Places in a cost: entries that an event is expected to visit with guards, and without."""

Guards = U16s
"""The guard of each block from the first entry on. A block without a guard has the number behind the last dimension, which all
events have. The guards of short lists, which are not in blocks, mean nothing. Empty if guards do not pay."""


@inlined
def padding_word(nothing: int) -> np.uint32:
    """The filter word of padding, which no event passes. `nothing` is the number behind the last dimension."""
    return range_word(nothing, 1, 1)


def count_entries(words: U32s, dimensions: int) -> int:
    """How many of these filter words are not padding, in a segment with this number of dimensions."""
    return int(np.count_nonzero(words != padding_word(min(dimensions, RANKED))))


class Outlook(NamedTuple):
    """The share of their entries that events are expected to visit in the first `lists` that have at least `size` entries."""

    lists: int
    size: int
    share: float


class _Asked(NamedTuple):
    """What conjunctions ask about, and how likely events have it."""

    start: I64s
    """Conjunction -> its first predicate; one more element at the end."""
    dimension: Dimensions
    """Predicate -> its dimension."""
    first: Bytes
    """Predicate -> its first space. MISSING: it asks for the absence of the dimension."""
    access: I64s
    """Conjunction -> its access predicate."""
    presence: F64s
    """Dimension -> how likely an event has it."""
    met: F64s
    """List -> how likely an event meets it."""


class _Scratch(NamedTuple):
    """What is noted while entries of a list are divided into blocks.

    An entry *needs* a dimension if it asks about it, besides the dimension of its list.
    """

    needed: I32s
    """Dimension -> how many entries that are in no block yet need it; 0 between lists."""
    begin: I32s
    """Dimension -> where the entries that need it begin in `user`."""
    seen: Dimensions
    """The dimensions that may become guards."""
    need: Dimensions
    """The dimensions that each entry needs, one entry after another."""
    need_at: I32s
    """Entry -> where its dimensions begin in `need`."""
    user: I32s
    """The entries that need each dimension, one dimension after another."""
    done: Bools
    """Entry -> whether it is in a block."""


class _Blocks(NamedTuple):
    """Entries in blocks, the conjunction of padding is -1, and the guards of the blocks."""

    list: I64s
    conjunction: I32s
    guard: Guards


class GuardedLists:
    """The lists that may have guards, those of spaces and dimensions, and what decides about the guards."""

    def __init__(
        self, table: CodedTable, plan: Plan, entries: Entries, sample: EventBatch | None, costs: Costs
    ) -> None:
        scales, likelihood, coded = table.scales, table.likelihood, table.coded
        self._cells = int(scales.cell[-1])
        self._lists = self._cells + len(scales.spaces)
        self._entries = entries
        self._most = costs.most_with_guards
        self._listed = int(np.searchsorted(entries.list, self._lists))
        """How many entries are in these lists."""
        self._sizes = np.bincount(entries.list[: self._listed], minlength=1)
        self._long = np.flatnonzero(self._sizes >= _FEWEST)
        known = sample is not None and len(sample.start) > 1
        presence = likelihood.presence if known else likelihood.presence * _UNKNOWN
        met = np.concatenate((np.diff(likelihood.cumulative[: self._cells + 1]), likelihood.presence))
        self._asked = _Asked(table.start, coded.dimension, coded.first, plan.access, presence, met)

    def outlook(self) -> Outlook:
        """What guards would spare events if all these entries stay in lists."""
        return Outlook(self._lists, _FEWEST, self._share())

    def in_blocks(self) -> tuple[Entries, Guards]:
        """Entries in blocks, the conjunction of padding is -1, and their guards. If guards do not pay, entries as they are."""
        if self._share() == 1.0:
            return self._entries, np.zeros(0, np.uint16)
        blocks, _ = _in_blocks(self._entries, self._listed, self._sizes[self._long], self._asked)
        return Entries(blocks.list, blocks.conjunction), blocks.guard

    def _share(self) -> float:
        """The cost of long lists with guards, divided by the cost without, estimated from some lists; 1.0: guards do not pay."""
        cost = np.zeros(2)
        # Lists of dimensions are few, and most events visit them. So they are sampled apart from the lists of spaces.
        for long in np.split(self._long, [np.searchsorted(self._long, self._cells)]):
            if len(long):
                tried = long[:: max(1, len(long) // _TRIED)]
                some = span_indices((np.cumsum(self._sizes) - self._sizes)[tried], self._sizes[tried])
                few = Entries(self._entries.list[some], self._entries.conjunction[some])
                _, costs = _in_blocks(few, len(some), self._sizes[tried], self._asked)
                cost += costs * len(long) / len(tried)
        return float(cost[_WITH] / cost[_WITHOUT]) if cost[_WITH] < self._most * cost[_WITHOUT] else 1.0


def visited_share(entries: Entries, guard: Guards, likelihood: Likelihood, conjunctions: int) -> F64s:
    """The share of the entries of each conjunction that events visit if they meet the lists. Padding counts as visited."""
    share = np.ones(conjunctions)
    blocks = len(guard)
    if blocks == 0:
        return share
    lists, conjunction = entries.list[: BLOCK * blocks], entries.conjunction[: BLOCK * blocks]
    guarded = np.bincount(lists)[lists] >= GUARDED
    block = np.arange(len(conjunction)) // BLOCK
    real = conjunction >= 0
    filled = np.maximum(np.bincount(block[real], minlength=blocks), 1)
    weight = np.append(likelihood.presence[:RANKED], 1.0)[guard] * BLOCK / filled
    entered = np.where(guarded, weight[block], 1.0)[real]
    times = np.bincount(conjunction[real], minlength=conjunctions)
    there = times > 0
    share[there] = np.bincount(conjunction[real], entered, conjunctions)[there] / times[there]
    return share


def _in_blocks(entries: Entries, listed: int, sizes: I64s, asked: _Asked) -> tuple[_Blocks, F64s]:
    """Divide the long lists among the first `listed` entries into blocks; `sizes` are the sizes of these lists.

    Also how many entries of long lists an event is expected to visit, with guards and without.
    """
    dimensions = len(asked.presence)
    # A block with a guard has at least two entries. A part of a list may end with a shorter block. Padding lies around a list.
    room = len(entries.conjunction) + BLOCK * int((sizes // 2 + sizes // _AT_ONCE + 6).sum()) + BLOCK
    guard = np.full(room // BLOCK + 1, min(dimensions, RANKED), np.uint16)
    out = _Blocks(np.empty(room, np.int64), np.empty(room, np.int32), guard)
    cost, needs = np.zeros(2), _AT_ONCE * _NEEDS
    scratch = _Scratch(
        needed=np.zeros(dimensions, np.int32),
        begin=np.empty(dimensions, np.int32),
        seen=np.empty(needs + 1, np.int32),
        need=np.empty(needs, np.int32),
        need_at=np.empty(_AT_ONCE + 1, np.int32),
        user=np.empty(needs, np.int32),
        done=np.empty(_AT_ONCE, np.bool_),
    )
    filled, upto = _guard(entries, listed, asked, scratch, out, cost)
    return _Blocks(out.list[:filled], out.conjunction[:filled], guard[: upto // BLOCK].copy()), cost


@lean_kernel
def _guard(
    entries: Entries, listed: int, asked: _Asked, scratch: _Scratch, out: _Blocks, cost: F64s
) -> tuple[int, int]:
    """Divide lists into blocks; returns how many entries there are then, and how many of them come from the first `listed`."""
    lists = entries.list
    filled, at = 0, 0
    while at < listed:
        end = at
        while end < listed and lists[end] == lists[at]:
            end += 1
        if end - at < _FEWEST:
            filled = _copy(entries, at, end, out, filled)
        else:
            filled = _pad(filled, lists[max(at - 1, 0)], out)
            visited, met = 0.0, asked.met[lists[at]]
            for begin in range(at, end, _AT_ONCE):
                filled, more = _divide(entries, begin, min(begin + _AT_ONCE, end), asked, scratch, out, filled)
                visited += more
            cost[_WITH] += met * visited
            cost[_WITHOUT] += met * (end - at)
        at = end
    filled = _pad(filled, lists[max(listed - 1, 0)], out)
    return _copy(entries, listed, len(lists), out, filled), filled


@inlined
def _copy(entries: Entries, begin: int, end: int, out: _Blocks, filled: int) -> int:
    """Append entries as they are."""
    for i in range(begin, end):
        out.list[filled], out.conjunction[filled] = entries.list[i], entries.conjunction[i]
        filled += 1
    return filled


@inlined
def _pad(filled: int, number: int, out: _Blocks) -> int:
    """Fill up the last block of a list."""
    while filled % BLOCK != 0:
        out.list[filled], out.conjunction[filled] = number, _NONE
        filled += 1
    return filled


@inlined
def _divide(
    entries: Entries, at: int, end: int, asked: _Asked, scratch: _Scratch, out: _Blocks, filled: int
) -> tuple[int, float]:
    """Divide some entries of a list into blocks.

    Returns how many entries there are then, and how many of these an event that meets the list is expected to visit.
    """
    count, done, number = scratch.needed, scratch.done, entries.list[at]
    dimensions = _note_needs(entries.conjunction, at, end, asked, scratch)
    visited, left = 0.0, end - at
    while left > 0:
        best, dimensions = _best_guard(dimensions, asked.presence, scratch)
        if best < 0:
            break
        many = I64(count[UP(best)])
        upto, first, k = filled + max(many // BLOCK * BLOCK, min(many, BLOCK)), filled, I64(scratch.begin[UP(best)])
        while filled < upto:
            i = scratch.user[UP(k)]
            k += 1
            if not done[UP(i)]:
                done[UP(i)] = True
                for j in range(scratch.need_at[UP(i)], scratch.need_at[UP(i + 1)]):
                    count[UP(scratch.need[UP(j)])] -= 1
                out.list[UP(filled)], out.conjunction[UP(filled)] = number, entries.conjunction[UP(at + i)]
                filled += 1
        left -= filled - first
        filled = _pad(filled, number, out)
        for block in range(first // BLOCK, filled // BLOCK):
            out.guard[UP(block)] = best
        visited += (filled - first) * (asked.presence[UP(best)] + GUARD / BLOCK)
    for k in range(scratch.need_at[UP(end - at)]):
        count[UP(scratch.need[UP(k)])] = 0
    for i in range(end - at):
        if not done[UP(i)]:
            out.list[UP(filled)], out.conjunction[UP(filled)] = number, entries.conjunction[UP(at + i)]
            filled += 1
    filled = _pad(filled, number, out)
    return filled, visited + left * (1.0 + GUARD / BLOCK)


@merged
def _best_guard(dimensions: int, presence: F64s, scratch: _Scratch) -> tuple[int, int]:
    """The guard whose next block saves most, -1 if none saves enough; and how many dimensions may still become guards."""
    count, seen = scratch.needed, scratch.seen
    best, most, kept = _NONE, LEAST_SAVED_BY_GUARD, 0
    for i in range(dimensions):
        d = seen[UP(i)]
        saved = min(count[UP(d)], BLOCK) - BLOCK * presence[UP(d)]
        seen[UP(kept)] = d
        kept += I64(saved > LEAST_SAVED_BY_GUARD)  # It will not save more later.
        if saved > most or (best >= 0 and saved == most and count[UP(d)] > count[UP(best)]):
            best, most = I64(d), saved
    return best, kept


@inlined
def _note_needs(conjunction: I32s, at: int, end: int, asked: _Asked, scratch: _Scratch) -> int:
    """Note which dimensions entries need, and which entries need a dimension; returns how many dimensions there are."""
    start, dimension, count, begin = asked.start, asked.dimension, scratch.needed, scratch.begin
    for i in range(at, end):
        prefetch(start, conjunction[UP(i)])
        prefetch(asked.access, conjunction[UP(i)])
    for i in range(at, end):
        prefetch(dimension, start[UP(conjunction[UP(i)])])
        prefetch(asked.first, start[UP(conjunction[UP(i)])])
        prefetch(dimension, asked.access[UP(conjunction[UP(i)])])
    filled, dimensions = 0, 0
    for i in range(end - at):
        c = conjunction[UP(at + i)]
        # Predicates on one dimension are neighbours.
        own, before = I64(dimension[UP(asked.access[UP(c)])]), _NONE
        scratch.need_at[UP(i)], scratch.done[UP(i)] = filled, False
        for p in range(start[UP(c)], min(start[UP(c + 1)], start[UP(c)] + _NEEDS)):
            d = I64(dimension[UP(p)])
            if d in (own, before) or d >= RANKED or asked.first[UP(p)] == MISSING:
                continue
            before = d
            scratch.seen[UP(dimensions)] = d
            dimensions += I64(count[UP(d)] == 0)
            count[UP(d)] += 1
            scratch.need[UP(filled)] = d
            filled += 1
    scratch.need_at[UP(end - at)] = filled
    place = 0
    for i in range(dimensions):
        d = scratch.seen[UP(i)]
        place += I64(count[UP(d)])
        begin[UP(d)] = place
    for i in range(end - at - 1, -1, -1):
        for k in range(scratch.need_at[UP(i)], scratch.need_at[UP(i + 1)]):
            d = scratch.need[UP(k)]
            begin[UP(d)] -= 1
            scratch.user[UP(begin[UP(d)])] = i
    return dimensions
