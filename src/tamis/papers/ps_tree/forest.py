"""A PS-Tree for each dimension, over keys. All trees share the arrays of `nodes`.

    roots   dimension -> root of its tree, NONE where it has none
    cuts    (dimension, lowest key behind the cut) -> 2 * node + side
    flat    start[d] .. start[d + 1] -> lo, leaf: the leaves of a tree, ascending

`cuts` finds the cut at an end of a predicate, and the leaf that begins there, without a walk down the tree. The cut behind v is
the same as the cut before v + 1. `flat` is a copy of the leaf chains for binary search: MatchPair takes 17 steps down the tree,
each at a different place in memory. After a change of leaves, the copy is made again when enough events have come to pay for
it. Until then events walk down the tree.

Splits and merges of leaves are logged, in order, for structures that keep data for each leaf: (old, new) for every split,
(gone, kept) for every merge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.bits import flag_in, number_in, with_flag
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import UP, I32s, I64s
from tamis.papers.parts.pair_map import FREE, PairArrays, PairMap, enter, pair_place, vacate, value_of
from tamis.papers.parts.past_events import History, HistoryArrays, count_between
from tamis.papers.ps_tree import nodes
from tamis.papers.ps_tree.checking import chain_of, check_all
from tamis.papers.ps_tree.elements import INT64_ELEMENTS, write_elements
from tamis.papers.ps_tree.nodes import AFTER, BEFORE, LIVE_LEAVES, NONE, USED_LEAVES, TreeArrays

_NONE = int(Mode.NONE)


class Flat(NamedTuple):
    """The leaf chains as arrays; if there are no dimensions, the arrays are out of date."""

    start: I64s
    lo: I64s
    leaf: I32s


class ForestArrays(NamedTuple):
    """The trees as kernels take them."""

    trees: TreeArrays
    roots: I32s
    cuts: PairArrays
    flat: Flat


class Log(NamedTuple):
    """Splits: the old leaf and the new one. Merges: the leaf that is gone and the leaf that has its space."""

    first: I32s
    second: I32s


_NO_FLAT = Flat(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))


class Forest:
    """The trees. Up to `few` leaves are copied to arrays for a single event; more leaves wait for `leaves_per_event`.

    With `walk`, leaves are never copied, and events walk down the trees.
    """

    def __init__(self, *, walk: bool = False, few: int = 1 << 14, leaves_per_event: int = 256) -> None:
        self._walk, self._few, self._leaves_per_event = walk, few, leaves_per_event
        self._trees = nodes.empty_trees()
        self._roots = GrowingArray(np.int32)
        self._cuts = PairMap()
        self._flat = _NO_FLAT
        self._waited = 0

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return int(self._trees.state[LIVE_LEAVES])

    @property
    def leaf_numbers(self) -> int:
        """Leaves have numbers below this."""
        return int(self._trees.state[USED_LEAVES])

    def view(self) -> ForestArrays:
        return ForestArrays(self._trees, self._roots.view(), self._cuts.view(), self._flat)

    def chain(self, dimension: int) -> list[int]:
        """The leaves of a dimension, ascending."""
        roots = self._roots.view()
        has_tree = dimension < len(roots) and roots[dimension] != NONE
        return chain_of(self._trees, int(roots[dimension])) if has_tree else []

    # -- changing

    def cut(self, predicates: Predicates, chosen: I64s, history: History) -> Log:
        """Make all cuts that predicates need."""
        if not len(chosen):
            return Log(np.zeros(0, np.int32), np.zeros(0, np.int32))
        missing = int(predicates.dimension[chosen].max()) + 1 - len(self._roots)
        if missing > 0:
            self._roots.grow(missing, fill=NONE)
        log, filled, done, leaves = _log(64), 0, 0, self.leaves
        elements = np.empty(INT64_ELEMENTS, np.int32)
        while True:
            done, filled = _cut(self.view(), predicates, chosen, done, history.view(), elements, log, filled)
            if done == len(chosen):
                break
            ends = 2 * int(predicates.start[chosen[done] + 1] - predicates.start[chosen[done]])
            self._trees = nodes.with_room(self._trees, ends * INT64_ELEMENTS + 1, ends + 1)
            self._cuts.reserve(ends)
            if filled + ends > len(log.first):
                log = _longer(log, filled, ends)
        if self.leaves > leaves or missing > 0:  # also for a new tree without cuts
            self._outdate()
        return _filled(log, filled)

    def release(self, predicates: Predicates, chosen: I64s) -> Log:
        """Undo `cut`: remove cuts that no predicate needs any more, and merge their leaves."""
        log = _log(2 * int((predicates.start[chosen + 1] - predicates.start[chosen]).sum()))
        filled = _release(self.view(), predicates, chosen, np.empty(INT64_ELEMENTS, np.int32), log)
        if filled:
            self._outdate()
        return _filled(log, filled)

    def recount(self, leaves: I32s, history: History) -> None:
        """Set the event counters of some leaves."""
        _recount(self._trees, leaves, history.view())

    def count_anew(self, history: History) -> None:
        """Set the event counters of all leaves."""
        for dimension in range(len(self._roots)):
            self.recount(np.array(self.chain(dimension), np.int32), history)

    def _outdate(self) -> None:
        self._flat, self._waited = _NO_FLAT, 0

    # -- reading

    def flatten(self, events: int) -> None:
        """Copy the leaf chains to arrays, if the arrays are out of date and `events` more events pay for the copy."""
        if not self._walk and not len(self._flat.start) and len(self._roots):
            self._waited += events
            if self.leaves <= max(self._few, self._leaves_per_event * self._waited):
                start = np.zeros(len(self._roots) + 1, np.int64)
                self._flat = Flat(start, np.empty(self.leaves, np.int64), np.empty(self.leaves, np.int32))
                _flatten(self.view())

    def covering(self, predicates: Predicates, chosen: I64s, most: int | I64s = KEY_MAX) -> I64s:
        """How many leaves each of some predicates covers; `most` + 1 if it covers more than `most`."""
        counts = np.empty(len(chosen), np.int64)
        counts[:] = most
        _count_covered(self.view(), predicates, chosen, counts)
        return counts

    def count_predicates(self, predicates: Predicates, chosen: I64s, change: int) -> None:
        """Add to the predicate counters of all leaves that some predicates cover."""
        _count_predicates(self.view(), predicates, chosen, change)

    def covered(self, predicates: Predicates, chosen: I64s, counts: I64s) -> tuple[I64s, I64s]:
        """The leaves that each predicate covers, `counts[i]` for the i-th, in a row; and where those of each begin."""
        start = np.append(0, np.cumsum(counts)).astype(np.int64)
        leaves = np.empty(int(start[-1]), np.int64)
        _write_covered(self.view(), predicates, chosen, leaves)
        return leaves, start

    def check(self, history: History) -> None:
        """Raise an AssertionError if an invariant does not hold."""
        roots = [int(root) for root in self._roots.view() if root != NONE]
        if len(self._flat.start):
            assert len(self._flat.start) == len(self._roots) + 1
            assert len(self._flat.leaf) == self.leaves
        check_all(self._trees, roots)
        leaves = self._trees.leaves
        seen = 0
        for dimension in range(len(self._roots)):
            chain = self.chain(dimension)
            ends = [*(int(leaves.lo[leaf]) for leaf in chain), KEY_MAX + 1]
            assert ends[:1] == [KEY_MIN] or not chain
            assert ends == sorted(set(ends)), "spaces ascend, and none is empty"
            for leaf, lo, end in zip(chain, ends, ends[1:], strict=False):
                assert count_between(history.view(), dimension, lo, end - 1) == leaves.events[leaf]
                if lo != KEY_MIN:
                    cut = self._cuts.get(dimension, lo)
                    node, side = _node_and_side(cut)
                    inner = self._trees.nodes
                    assert leaf == (inner.e[node] if side == BEFORE else inner.g[node])
                    seen += 1
                if len(self._flat.start):
                    place = int(self._flat.start[dimension]) + chain.index(leaf)
                    assert (self._flat.lo[place], self._flat.leaf[place]) == (lo, leaf)
        assert seen == len(self._cuts)


def _log(room: int) -> Log:
    return Log(np.empty(room, np.int32), np.empty(room, np.int32))


def _longer(log: Log, filled: int, more: int) -> Log:
    longer = _log(2 * (filled + more))
    for column, old in zip(longer, log, strict=True):
        column[:filled] = old[:filled]
    return longer


def _filled(log: Log, filled: int) -> Log:
    return Log(log.first[:filled], log.second[:filled])


@lean_kernel
def _cut(
    forest: ForestArrays,
    predicates: Predicates,
    chosen: I64s,
    done: int,
    history: HistoryArrays,
    elements: I32s,
    log: Log,
    filled: int,
) -> tuple[int, int]:
    """Cut until there is no room for the next predicate; returns this predicate, and how many splits there were."""
    trees, roots, cuts = forest.trees, forest.roots, forest.cuts
    while done < len(chosen):
        p = chosen[done]
        first, last = predicates.start[p], predicates.start[p + 1]
        ends, d = 2 * (last - first), predicates.dimension[p]
        room = nodes.has_room(trees, ends * INT64_ELEMENTS + 1, ends + 1)
        if not room or 2 * (cuts.size[0] + ends) > len(cuts.value) or filled + ends > len(log.first):
            break
        if roots[d] == NONE:
            roots[d] = nodes.plant(trees, d)
            trees.leaves.events[trees.nodes.g[roots[d]]] = count_between(history, d, KEY_MIN, KEY_MAX)
        for i in range(first, last):
            lo, hi = predicates.lo[i], predicates.hi[i]
            for turn in range(2):
                # Cut a point above first: this gives the paper's space ids.
                side = (BEFORE if turn == 0 else AFTER) if lo != hi else (AFTER if turn == 0 else BEFORE)
                if lo <= KEY_MIN + 1 if side == BEFORE else hi == KEY_MAX:
                    continue
                lowest = lo if side == BEFORE else hi + 1
                at = pair_place(cuts, d, lowest)
                if cuts.value[at] != FREE:
                    node, side = _node_and_side(cuts.value[at])
                    users = trees.nodes.before if side == BEFORE else trees.nodes.after
                    users[node] += 1
                    continue
                write_elements(lo if side == BEFORE else hi, elements)
                node, new = nodes.partition(trees, roots[d], elements, INT64_ELEMENTS, side, lowest)
                enter(cuts, at, d, lowest, with_flag(node, side))
                log.first[filled], log.second[filled] = trees.leaves.next[new], new
                filled += 1
        done += 1
    return done, filled


@lean_kernel
def _release(forest: ForestArrays, predicates: Predicates, chosen: I64s, elements: I32s, log: Log) -> int:
    """Undo the cuts of some predicates; returns how many merges there were."""
    trees, cuts, filled = forest.trees, forest.cuts, 0
    for p in chosen:
        d = predicates.dimension[p]
        for i in range(predicates.start[p], predicates.start[p + 1]):
            for end in range(2):
                if predicates.lo[i] <= KEY_MIN + 1 if end == 0 else predicates.hi[i] == KEY_MAX:
                    continue
                lowest = predicates.lo[i] if end == 0 else predicates.hi[i] + 1
                at = pair_place(cuts, d, lowest)
                node, side = _node_and_side(cuts.value[at])
                kept = trees.nodes.e[node] if side == BEFORE else trees.nodes.g[node]
                gone = nodes.let_go(trees, node, side)
                if gone == NONE:
                    continue
                vacate(cuts, at)
                log.first[filled], log.second[filled] = gone, kept
                filled += 1
                if trees.nodes.e[node] == NONE:
                    write_elements(lowest - side, elements)
                    nodes.prune(trees, forest.roots[d], elements, INT64_ELEMENTS)
    return filled


@lean_kernel
def _recount(trees: TreeArrays, chosen: I32s, history: HistoryArrays) -> None:
    leaves = trees.leaves
    for leaf in chosen:
        d, after = trees.nodes.element[leaves.root[leaf]], leaves.next[leaf]
        end = KEY_MAX if after == NONE else leaves.lo[after] - 1
        leaves.events[leaf] = count_between(history, d, leaves.lo[leaf], end)


@lean_kernel
def _flatten(forest: ForestArrays) -> None:
    trees, roots, flat, at = forest.trees, forest.roots, forest.flat, 0
    for d in range(len(roots)):
        flat.start[d] = at
        if roots[d] != NONE:
            leaf = trees.nodes.g[roots[d]]
            while leaf != NONE:
                flat.lo[at], flat.leaf[at] = trees.leaves.lo[leaf], leaf
                at += 1
                leaf = trees.leaves.next[leaf]
    flat.start[len(roots)] = at


# -- what a predicate covers


@inlined
def _ranges_of(predicates: Predicates, p: int) -> int:
    """How many ranges of keys a predicate covers; some of them may be empty."""
    intervals = predicates.start[p + 1] - predicates.start[p]
    return int(intervals + (1 if predicates.mode[p] == _NONE else 0))


@inlined
def _range_of(predicates: Predicates, p: int, number: int) -> tuple[int, int]:
    """One of the ranges: an interval, or the keys below, between or above intervals. An empty range has lo > hi."""
    at = predicates.start[p] + number
    if predicates.mode[p] != _NONE:
        return predicates.lo[at], predicates.hi[at]
    lo, hi = KEY_MIN + 1, KEY_MAX
    if number > 0:
        if predicates.hi[at - 1] == KEY_MAX:
            return 1, 0
        lo = predicates.hi[at - 1] + 1
    if at < predicates.start[p + 1]:
        if predicates.lo[at] == KEY_MIN:
            return 1, 0
        hi = predicates.lo[at] - 1
    return lo, hi


@inlined
def _first_leaf(forest: ForestArrays, dimension: int, lo: int) -> int:
    """The leaf that begins at a key at which there is a cut."""
    inner = forest.trees.nodes
    if lo <= KEY_MIN + 1:
        return int(inner.g[forest.roots[dimension]])
    node, side = _node_and_side(value_of(forest.cuts, dimension, lo))
    return int(inner.e[node] if side == BEFORE else inner.g[node])


@inlined
def _node_and_side(cut: int) -> tuple[int, int]:
    """The node of a cut, and BEFORE or AFTER."""
    return number_in(cut), flag_in(cut)


@lean_kernel
def _count_covered(forest: ForestArrays, predicates: Predicates, chosen: I64s, counts: I64s) -> None:
    """Count the leaves of each predicate, up to one more than the limit in `counts`."""
    leaves = forest.trees.leaves
    for i in range(len(chosen)):
        p, covered, most = chosen[i], 0, counts[i]
        for number in range(_ranges_of(predicates, p)):
            lo, hi = _range_of(predicates, p, number)
            if lo <= hi and covered <= most:
                leaf = _first_leaf(forest, predicates.dimension[p], lo)
                while leaf != NONE and leaves.lo[leaf] <= hi and covered <= most:
                    covered += 1
                    leaf = leaves.next[leaf]
        counts[i] = covered


@lean_kernel
def _count_predicates(forest: ForestArrays, predicates: Predicates, chosen: I64s, change: int) -> None:
    leaves = forest.trees.leaves
    for p in chosen:
        for number in range(_ranges_of(predicates, p)):
            lo, hi = _range_of(predicates, p, number)
            if lo <= hi:
                leaf = _first_leaf(forest, predicates.dimension[p], lo)
                while leaf != NONE and leaves.lo[leaf] <= hi:
                    leaves.predicates[leaf] += change
                    leaf = leaves.next[leaf]


@lean_kernel
def _write_covered(forest: ForestArrays, predicates: Predicates, chosen: I64s, out: I64s) -> None:
    leaves = forest.trees.leaves
    at = 0
    for p in chosen:
        for number in range(_ranges_of(predicates, p)):
            lo, hi = _range_of(predicates, p, number)
            if lo <= hi:
                leaf = _first_leaf(forest, predicates.dimension[p], lo)
                while leaf != NONE and leaves.lo[leaf] <= hi:
                    out[at] = leaf
                    at += 1
                    leaf = leaves.next[leaf]


@merged
def leaf_of_key(forest: ForestArrays, dimension: int, key: int, elements: I32s) -> int:
    """The leaf of a key, from the flat arrays or else down the tree; NONE if the dimension has no tree."""
    if dimension >= len(forest.roots) or forest.roots[dimension] == NONE:
        return NONE
    flat = forest.flat
    if len(flat.start) == 0:
        write_elements(key, elements)
        return nodes.match_pair(forest.trees.nodes, forest.roots[dimension], elements, INT64_ELEMENTS)
    first, size = flat.start[UP(dimension)], flat.start[UP(dimension + 1)] - flat.start[UP(dimension)]
    while size > 1:  # find the last leaf that begins at or below the key; the first begins below all keys
        half = size // 2
        first += half if flat.lo[UP(first + half)] <= key else 0
        size -= half
    return int(flat.leaf[UP(first)])
