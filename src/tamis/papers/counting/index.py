"""`counting`: count, for each subscription, how many of its predicates an event satisfies; enough is a match.

The counting algorithm of the related work in F. Fabret, H. A. Jacobsen, F. Llirbat, J. Pereira, K. Ross, D. Shasha, Filtering
Algorithms and Implementation for Very Fast Publish/Subscribe Systems (SIGMOD 2001), and of SIFT (T. Yan, H. Garcia-Molina
1994) as E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching (2001), section 2, describes it.
Two phases: the *predicate index* finds the satisfied predicates; the *association* leads from each predicate to the
subscriptions whose hit counters go up.

    predicate index     hash  (7, =, 10) -> 0     orders   (7, <=)  2 1      numbers of predicates, ascending by bound:
                              (7, <=, 5) -> 2              (7, >=)  3        all from the first bound that is not below
                              (7, <=, 9) -> 1              (7, =)   0        the value, or up to the last not above it
    association         lists    0: c1 c4 | 1: c2 | 2: c1 c3 | 3: c2
    subscriptions       need     c1: 2   c2: 2   c3: 1   c4: 1                hits that make a match; DEAD: not here

A predicate here is a comparison with one bound. An interval is two such predicates. A value in one of k disjoint intervals
satisfies k + 1 of their ends, and any other value satisfies k, so k + 1 hits are needed. Open ends always hold and are not
entered. The values of IN are k predicates, and a value satisfies at most one. NONE is the complement: `<> 5` is `<= 4` or
`>= 6`. Presence of a dimension is a predicate too. A dimension that must be absent kills the counter if the event has it.
Conjunctions that need nothing are in the list ALWAYS.

Invariants: a conjunction is in one list for each of its predicates. Every list but ALWAYS has an element. Its predicate is in the
hash table and, if it has a bound, in its order. Orders ascend. Between events all hit counters are 0.

Departures from the paper: the paper does not mention negation, missing attributes, several values or intervals. If an event has
several values of an attribute, or an interval, hits are counted for its lowest and highest key. These hits are necessary but not
sufficient, so conjunctions with enough hits are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.evaluation import event_places
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I64, I32s, I64s
from tamis.papers.counting.hit_counting import (
    ABSENT,
    ALWAYS,
    AT_LEAST,
    AT_MOST,
    EQUAL,
    KINDS,
    ORDERED,
    PRESENT,
    HitCounters,
    PredicateIndex,
    match_by_hits,
)
from tamis.papers.counting.sift import EnumerationMethod, KeyMethod, SiftIndex, TreeMethod
from tamis.papers.interface import Capabilities, Index, Matches
from tamis.papers.options import Options, option
from tamis.papers.parts.collecting import collect
from tamis.papers.parts.pair_map import FREE, PairArrays, PairMap, enter, pair_place, vacate, value_of
from tamis.papers.parts.slabs import SlabArrays, Slabs

Bounds = I64s
Counts = I32s

_DEAD = -1
_SOME, _NONE = int(Mode.SOME), int(Mode.NONE)
_CHUNK = 1 << 14
"""Conjunctions entered at once. The hash table reserves room for all their predicates, though most are already known."""
_MOST_VALUES = 1_000_000
"""Most values of a domain for SIFT's methods. They have a list for each value; more would take minutes and gigabytes."""


@dataclass(frozen=True, slots=True)
class CountingOptions(Options):
    method: str = option("counting", choices=("counting", "enumeration", "key", "tree"))
    """The method: counters of predicates, or SIFT's counters of terms, key method or tree method."""
    lowest: int = option(0)
    """Lowest whole number of the domain for the SIFT methods. Lower values count as this number."""
    highest: int = option(999)
    """Highest whole number of the domain for the SIFT methods. Higher values count as this number."""

    def problem(self) -> str:
        if self.lowest > self.highest:
            return f"'lowest', {self.lowest}, is above 'highest', {self.highest}"
        if self.method != "counting" and self.highest - self.lowest >= _MOST_VALUES:
            return (
                f"the SIFT methods enumerate at most {_MOST_VALUES:,} values, but from {self.lowest} to {self.highest} there are "
                f"{self.highest - self.lowest + 1:,}"
            )
        return ""


class Counting(Index):
    """Counts satisfied predicates."""

    name = "counting"
    summary = "a predicate index, and for each subscription a counter of satisfied predicates"
    paper = (
        "F. Fabret et al., Filtering Algorithms and Implementation for Very Fast Publish/Subscribe Systems, 2001 "
        "(counting); E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching, 2001, section 2 (SIFT)"
    )
    options_type = CountingOptions

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sift: SiftIndex | None = None
        """The index of SIFT's method, if the options ask for one. It then does everything."""
        if self.options.method != "counting":
            methods: dict[str, Callable[..., SiftIndex]]
            methods = {"enumeration": EnumerationMethod, "key": KeyMethod, "tree": TreeMethod}
            self.sift = methods[self.options.method](
                self.table, self.kind_of, self.options.lowest, self.options.highest
            )
            self.capabilities = Capabilities(dynamic=False, interval_values=False, every_predicate=False)
        self._clear()

    def _clear(self) -> None:
        self._hash = PairMap()
        self._lists = Slabs()
        self._orders = Slabs()
        self._group = GrowingArray(np.int64)
        self._bound = GrowingArray(np.int64)
        self.free = GrowingArray(np.int64)
        """Numbers of predicates that are not in use."""
        self.need = GrowingArray(np.int32)
        """Conjunction -> hits that make a match."""
        self._hits = np.zeros(0, np.int32)
        self._count = 0

    def refuse(self, conjunctions: I32s) -> None:
        if self.sift is not None:
            self.sift.refuse(conjunctions)

    # -- inserting and deleting

    def insert(self, conjunctions: I32s) -> None:
        if self.sift is not None:
            self.sift.insert(conjunctions)
            return
        missing = len(self.table) - len(self.need)
        if missing > 0:
            self.need.grow(missing, fill=_DEAD)
            if len(self._hits) < len(self.need):
                self._hits = np.zeros(len(self.need.data), np.int32)
        for first in range(0, len(conjunctions), _CHUNK):
            self._enter(conjunctions[first : first + _CHUNK])
        if len(conjunctions) > _CHUNK:
            self._hash.shrink()
        self._count += len(conjunctions)

    def _enter(self, conjunctions: I32s) -> None:
        groups, bounds, owners = self._predicates(conjunctions, self.need.view())
        self._hash.reserve(len(groups))
        numbers, fresh = np.empty(len(groups), np.int64), np.empty(len(groups), np.int64)
        old, free = len(self._group), len(self.free)
        added = _number(self._hash.view(), groups, bounds, self.free.view(), old, numbers, fresh)
        new = numbers[fresh[:added]]
        beyond = max(added - free, 0)
        self._lists.add(beyond)
        self._group.grow(beyond)
        self._bound.grow(beyond)
        self.free = _shortened(self.free, free - (added - beyond))
        self._group.view()[new], self._bound.view()[new] = groups[fresh[:added]], bounds[fresh[:added]]
        self._lists.extend(numbers, owners)
        ordered = new[(self._group.view()[new] % KINDS < ORDERED) & (self._group.view()[new] >= 0)]
        orders = _order_of(self._group.view()[ordered])
        if len(orders):
            self._orders.add(max(0, int(orders.max()) + 1 - len(self._orders)))
            changed = np.unique(orders)
            sorted_before = self._orders.view().size[changed]
            self._orders.extend(orders, ordered.astype(np.int32))
            _sort(self._orders.view(), self._bound.view(), changed, sorted_before)

    def delete(self, conjunctions: I32s) -> None:
        if self.sift is not None:
            self.sift.delete(conjunctions)
            return
        if not len(conjunctions):
            return
        self._count -= len(conjunctions)
        if self._count == 0:
            self._clear()
            return
        groups, bounds, _ = self._predicates(conjunctions, np.empty(len(self.need), np.int32))
        self.need.view()[conjunctions] = _DEAD
        numbers = np.empty(len(groups), np.int64)
        _find_numbers(self._hash.view(), groups, bounds, numbers)
        numbers = np.unique(numbers)
        _drop(self._lists.view(), numbers, self.need.view(), _DEAD)
        empty = numbers[self._lists.view().size[numbers] == 0]
        groups = self._group.view()[empty]
        _vacate(self._hash.view(), groups, self._bound.view()[empty])
        orders = np.unique(_order_of(groups[(groups % KINDS < ORDERED) & (groups >= 0)]))
        _drop(self._orders.view(), orders, self._lists.view().size, 0)
        self.free.extend(empty)

    def _predicates(self, conjunctions: I32s, need: Counts) -> tuple[Bounds, Bounds, I32s]:
        """Group, bound and conjunction of each predicate of some conjunctions. Notes how many hits each conjunction needs."""
        table = self.table.view()
        count = _most_predicates(table, conjunctions)
        groups, bounds, owners = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int32)
        found = _split(table, conjunctions, need, groups, bounds, owners)
        return groups[:found], bounds[:found], owners[:found]

    # -- matching

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        if self.sift is not None:
            return self.sift.match(batch, dimensions)
        # An event visits a predicate once, unless the event has several intervals.
        visited = np.empty(len(self._group) + 1, np.int32)
        counters = HitCounters(self.need.view(), self._hits, visited)
        table, pairs = self.table.view(), self._hash.view()
        index = PredicateIndex(table, pairs, self._lists.view(), self._orders.view(), self._bound.view())
        return collect(batch, partial(match_by_hits, index, counters, batch, event_places(dimensions)))

    # -- figures and checks

    def conjunctions_with(self, group: int, bound: int = 0) -> list[int] | None:
        """The conjunctions of a predicate, whose group is its dimension times KINDS plus its kind; None if it is not here."""
        number = self._hash.get(group, bound)
        return None if number == FREE else sorted(self._lists.values(number).tolist())

    def bounds(self, dimension: int, kind: int) -> list[int]:
        """The bounds of all predicates of a dimension and an ordered kind, in the order that events search."""
        ordered: list[int] = self._bound.view()[self._orders.values(dimension * ORDERED + kind)].tolist()
        return ordered

    def stats(self) -> dict[str, Any]:
        if self.sift is not None:
            return {"method": self.options.method, **self.sift.stats()}
        arrays = (self._group, self._bound, self.free, self.need, self._hits)
        return {
            "method": self.options.method,
            "conjunctions": self._count,
            "bytes": self._hash.nbytes
            + self._lists.nbytes
            + self._orders.nbytes
            + sum(array.nbytes for array in arrays),
            "distinct_predicates": len(self._hash),
            "associations": int(self._lists.view().size.sum(dtype=np.int64)),
        }

    def check(self) -> None:
        if self.sift is not None:
            self.sift.check()
            return
        need, group, bound = self.need.view(), self._group.view(), self._bound.view()
        assert not self._hits.any()
        live = np.flatnonzero(need != _DEAD).astype(np.int32)
        assert len(live) == self._count
        needed = np.full(len(need), _DEAD, np.int32)
        groups, bounds, owners = self._predicates(live, needed)
        assert (needed == need).all()
        expected: dict[tuple[int, int], list[int]] = {}
        for first, second, owner in zip(groups.tolist(), bounds.tolist(), owners.tolist(), strict=True):
            expected.setdefault((first, second), []).append(owner)
        assert len(self._hash) == len(expected)
        for (first, second), those in expected.items():
            number = self._hash.get(first, second)
            assert number != FREE
            assert (group[number], bound[number]) == (first, second)
            assert self.conjunctions_with(first, second) == sorted(those)
        free = set(self.free.view().tolist())
        assert len(free) == len(self.free)
        assert len(free) + len(expected) == len(group)
        ordered = 0
        for order in range(len(self._orders)):
            numbers = self._orders.values(order)
            assert (bound[numbers[1:]] > bound[numbers[:-1]]).all()
            assert (_order_of(group[numbers]) == order).all()
            ordered += len(numbers)
        assert ordered == sum(first >= 0 and first % KINDS < ORDERED for first, _ in expected)


def _order_of(group: Bounds) -> Bounds:
    """The order in which the predicates of groups stand."""
    return group // KINDS * ORDERED + group % KINDS


def _shortened(array: GrowingArray, length: int) -> GrowingArray:
    """The first elements of an array, if there are more."""
    if length == len(array):
        return array
    kept = GrowingArray(array.view().dtype)
    kept.extend(array.view()[:length])
    return kept


# -- from conjunctions to predicates


@lean_kernel
def _most_predicates(table: Conjunctions, conjunctions: I32s) -> int:
    """An upper bound on the number of one-bound predicates of some conjunctions."""
    count = 0
    for c in conjunctions:
        first, last = table.start[c], table.start[c + 1]
        count += 1 + (last - first) + 2 * (table.predicates.start[last] - table.predicates.start[first])
    return count


@lean_kernel
def _split(table: Conjunctions, conjunctions: I32s, need: Counts, groups: Bounds, bounds: Bounds, owners: I32s) -> int:
    """Split the predicates of conjunctions into those with one bound; returns how many there are."""
    mode, start, lo, hi = table.predicates.mode, table.predicates.start, table.predicates.lo, table.predicates.hi
    at = 0
    for c in conjunctions:
        before, needed = at, 0
        for p in range(table.start[c], table.start[c + 1]):
            group, first, last = I64(table.predicates.dimension[p]) * KINDS, start[p], start[p + 1]
            before_p = at
            only_points = mode[p] == _SOME
            for i in range(first, last):
                only_points &= lo[i] == hi[i]
            if mode[p] == _SOME and only_points:
                for i in range(first, last):
                    groups[at], bounds[at] = group + EQUAL, lo[i]
                    at += 1
                needed += 1
            elif mode[p] == _SOME:
                for i in range(first, last):
                    if lo[i] != KEY_MIN:
                        groups[at], bounds[at] = group + AT_LEAST, lo[i]
                        at += 1
                    if hi[i] != KEY_MAX:
                        groups[at], bounds[at] = group + AT_MOST, hi[i]
                        at += 1
                needed += (at - before_p) - (last - first) + 1
            elif mode[p] == _NONE:
                intervals = 1  # of the complement: one more than there are gaps, less the empty ones
                for i in range(first, last):
                    if lo[i] == KEY_MIN or hi[i] == KEY_MAX:
                        intervals -= 1
                    intervals += 1
                    if lo[i] != KEY_MIN:
                        groups[at], bounds[at] = group + AT_MOST, lo[i] - 1
                        at += 1
                    if hi[i] != KEY_MAX:
                        groups[at], bounds[at] = group + AT_LEAST, hi[i] + 1
                        at += 1
                needed += (at - before_p) - intervals + 1
            else:
                groups[at], bounds[at] = group + ABSENT, 0
                at += 1
            if at == before_p:  # everything
                groups[at], bounds[at] = group + PRESENT, 0
                at += 1
                needed += 1
        if needed == 0:
            groups[at], bounds[at] = ALWAYS, 0
            at += 1
        need[c] = needed
        for i in range(before, at):
            owners[i] = c
    return at


# -- the predicate index


@lean_kernel
def _number(
    pairs: PairArrays, groups: Bounds, bounds: Bounds, free: Bounds, old: int, numbers: Bounds, fresh: Bounds
) -> int:
    """The number of each predicate. A new one gets the last free number or the next; `fresh` receives the places of new ones."""
    added = 0
    for i in range(len(groups)):
        at = pair_place(pairs, groups[i], bounds[i])
        if pairs.value[at] == FREE:
            number = free[len(free) - 1 - added] if added < len(free) else old + added - len(free)
            enter(pairs, at, groups[i], bounds[i], number)
            fresh[added] = i
            added += 1
        numbers[i] = pairs.value[at]
    return added


@lean_kernel
def _find_numbers(pairs: PairArrays, groups: Bounds, bounds: Bounds, numbers: Bounds) -> None:
    for i in range(len(groups)):
        numbers[i] = value_of(pairs, groups[i], bounds[i])


@lean_kernel
def _vacate(pairs: PairArrays, groups: Bounds, bounds: Bounds) -> None:
    for i in range(len(groups)):
        vacate(pairs, pair_place(pairs, groups[i], bounds[i]))


@lean_kernel
def _sort(orders: SlabArrays, bound: Bounds, changed: Bounds, sorted_before: Counts) -> None:
    """Sort orders whose first `sorted_before` numbers already ascend."""
    data = orders.data
    for i in range(len(changed)):
        first, size = orders.begin[changed[i]], orders.size[changed[i]]
        gap = 1
        if size - sorted_before[i] > 16:  # Shell sort; few new ones are moved to their place one by one
            while 9 * gap < size:
                gap = 3 * gap + 1
        while gap > 0:
            for j in range(first + gap, first + size):
                moving, at = data[j], j
                while at >= first + gap and bound[data[at - gap]] > bound[moving]:
                    data[at] = data[at - gap]
                    at -= gap
                data[at] = moving
            gap //= 3


@lean_kernel
def _drop(lists: SlabArrays, numbers: Bounds, figure: Counts, gone: int) -> None:
    """Remove from some lists the values whose figure says that they are gone."""
    for number in numbers:
        begin, kept = lists.begin[number], 0
        for i in range(begin, begin + lists.size[number]):
            if figure[lists.data[i]] != gone:
                lists.data[begin + kept] = lists.data[i]
                kept += 1
        lists.size[number] = kept
