"""A PS-Tree for each dimension, over keys. All trees share the arrays of `nodes`.

    roots   dimension -> root of its tree, NONE where it has none
    flat    a copy of the leaf chains for binary search, see `covering`

MatchPair takes a step for each node on its way, each at a different place in memory. After a change of leaves, the copy is made
again when enough events have come, or enough predicates at once, to pay for it. Until then they walk down the tree.

The cut at an end of a predicate is found by the leaf that begins there: it has the node whose cut it begins at. The cut behind v
is the same as the cut before v + 1.

Splits and merges of leaves are logged, in order, for structures that keep data for each leaf: (old, new) for every split,
(gone, kept) for every merge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I32s, I64s
from tamis.papers.parts.past_events import History, HistoryArrays, count_between
from tamis.papers.ps_tree import covering, nodes
from tamis.papers.ps_tree.checking import chain_of, check_all
from tamis.papers.ps_tree.covering import NO_FLAT, Flat, ForestArrays
from tamis.papers.ps_tree.elements import INT64_ELEMENTS
from tamis.papers.ps_tree.nodes import AFTER, BEFORE, LIVE_LEAVES, NODES_EACH, NONE, USED_LEAVES, TreeArrays

_LEAVES_PER_PREDICATE = 4
"""Leaves that one predicate, inserted with others, pays for in the copy of the leaf chains."""


class Log(NamedTuple):
    """Splits: the old leaf and the new one. Merges: the leaf that is gone and the leaf that has its space."""

    first: I32s
    second: I32s


class Forest:
    """The trees. Up to `few` leaves are copied to arrays for a single event; more leaves wait for `leaves_per_event`.

    With `walk`, events walk down the trees, even if leaves are copied.
    """

    def __init__(self, *, walk: bool = False, few: int = 1 << 14, leaves_per_event: int = 256) -> None:
        self._walk, self._few, self._leaves_per_event = walk, few, leaves_per_event
        self._trees = nodes.empty_trees()
        self._roots = GrowingArray(np.int32)
        self._flat = NO_FLAT
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
        """The trees as events meet them."""
        return self.whole() if not self._walk else self.whole()._replace(flat=NO_FLAT)

    def whole(self) -> ForestArrays:
        """The trees as predicates meet them."""
        return ForestArrays(self._trees, self._roots.view(), self._flat)

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
        while True:
            done, filled = _cut(self.whole(), predicates, chosen, done, history.view(), log, filled)
            if done == len(chosen):
                break
            ends = 2 * int(predicates.start[chosen[done] + 1] - predicates.start[chosen[done]])
            self._trees = nodes.with_room(self._trees, ends * NODES_EACH + 1, ends + 1)
            if filled + ends > len(log.first):
                log = _longer(log, filled, ends)
        if self.leaves > leaves or missing > 0:  # also for a new tree without cuts
            self._outdate()
        return _filled(log, filled)

    def release(self, predicates: Predicates, chosen: I64s) -> Log:
        """Undo `cut`: remove cuts that no predicate needs any more, and merge their leaves."""
        log = _log(2 * int((predicates.start[chosen + 1] - predicates.start[chosen]).sum()))
        filled = _release(self.whole()._replace(flat=NO_FLAT), predicates, chosen, log)
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

    def fit(self) -> None:
        """Free most of the room for more nodes and leaves."""
        self._trees = nodes.fitted(self._trees)

    def _outdate(self) -> None:
        self._flat, self._waited = NO_FLAT, 0

    def copy_chains(self, predicates: int | None = None) -> None:
        """Copy the leaf chains to arrays, if they are out of date, and `predicates` more predicates pay for it."""
        if predicates is not None and self.leaves > _LEAVES_PER_PREDICATE * predicates:
            return
        if not len(self._flat.start) and len(self._roots):
            start = np.zeros(len(self._roots) + 1, np.int64)
            self._flat = Flat(start, np.empty(self.leaves, np.int64), np.empty(self.leaves, np.int32))
            covering.flatten(self.whole())

    # -- reading

    def flatten(self, events: int) -> None:
        """Copy the leaf chains to arrays, if the arrays are out of date and `events` more events pay for the copy."""
        if not self._walk and not len(self._flat.start):
            self._waited += events
            if self.leaves <= max(self._few, self._leaves_per_event * self._waited):
                self.copy_chains()

    def covering(self, predicates: Predicates, chosen: I64s, most: int | I64s = KEY_MAX - 1) -> I64s:
        """How many leaves each of some predicates covers; `most` + 1 if it covers more than `most`."""
        counts = np.empty(len(chosen), np.int64)
        counts[:] = most
        covering.count_covered(self.whole(), predicates, chosen, counts)
        return counts

    def count_predicates(self, predicates: Predicates, chosen: I64s, change: int) -> None:
        """Add to the predicate counters of all leaves that some predicates cover."""
        forest = self.whole()
        if self.leaves > _LEAVES_PER_PREDICATE * len(chosen):  # Adding along the chains costs less.
            forest = forest._replace(flat=NO_FLAT)
        difference = np.zeros(len(forest.flat.leaf) + 1, np.int32)
        covering.count_predicates(forest, predicates, chosen, change, difference)

    def covered(self, predicates: Predicates, chosen: I64s, counts: I64s) -> tuple[I64s, I64s]:
        """The leaves that each predicate covers, `counts[i]` for the i-th, in a row; and where those of each begin."""
        start = np.append(0, np.cumsum(counts)).astype(np.int64)
        leaves = np.empty(int(start[-1]), np.int64)
        covering.write_covered(self.whole(), predicates, chosen, leaves)
        return leaves, start

    def check(self, history: History) -> None:
        """Raise an AssertionError if an invariant does not hold."""
        roots_of = self._roots.view().tolist()
        if len(self._flat.start):
            assert len(self._flat.start) == len(self._roots) + 1
            assert len(self._flat.leaf) == self.leaves
        check_all(self._trees, [root for root in roots_of if root != NONE])
        leaves = self._trees.leaves
        for dimension in range(len(self._roots)):
            chain = self.chain(dimension)
            ends = [*(int(leaves.lo[leaf]) for leaf in chain), KEY_MAX + 1]
            assert ends[:1] == [KEY_MIN] or not chain
            assert ends == sorted(set(ends)), "spaces ascend, and none is empty"
            for leaf, lo, end in zip(chain, ends, ends[1:], strict=False):
                assert count_between(history.view(), dimension, lo, end - 1) == leaves.events[leaf]
                assert leaf == _leaf_of(self._trees, roots_of[dimension], max(lo, KEY_MIN + 1))
                if lo != KEY_MIN:
                    node, side = _cut_below(self._trees, leaf)
                    inner = self._trees.nodes
                    assert leaf == (inner.e[node] if side == BEFORE else inner.g[node])
                    assert lo == inner.path[node] + side
                if len(self._flat.start):
                    place = int(self._flat.start[dimension]) + chain.index(leaf)
                    assert (self._flat.lo[place], self._flat.leaf[place]) == (lo, leaf)


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
    log: Log,
    filled: int,
) -> tuple[int, int]:
    """Cut until there is no room for the next predicate; returns this predicate, and how many splits there were."""
    trees, roots = forest.trees, forest.roots
    while done < len(chosen):
        p = chosen[done]
        first, last = predicates.start[p], predicates.start[p + 1]
        ends, d = 2 * (last - first), predicates.dimension[p]
        if not nodes.has_room(trees, ends * NODES_EACH + 1, ends + 1) or filled + ends > len(log.first):
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
                leaf = nodes.match_pair(trees, roots[d], lowest, INT64_ELEMENTS)
                if trees.leaves.lo[leaf] == lowest:
                    node, side = _cut_below(trees, leaf)
                    users = trees.nodes.before if side == BEFORE else trees.nodes.after
                    users[node] += 1
                    continue
                _, new = nodes.partition(trees, roots[d], lowest - side, INT64_ELEMENTS, side, lowest)
                log.first[filled], log.second[filled] = trees.leaves.next[new], new
                filled += 1
        done += 1
    return done, filled


@inlined
def _cut_below(trees: TreeArrays, leaf: int) -> tuple[int, int]:
    """The node and the side of the cut at which a leaf begins; not for the first leaf."""
    node = trees.leaves.below[leaf]
    return node, BEFORE if trees.nodes.e[node] == leaf else AFTER


@lean_kernel
def _leaf_of(trees: TreeArrays, root: int, key: int) -> int:
    return nodes.match_pair(trees, root, key, INT64_ELEMENTS)


@lean_kernel
def _release(forest: ForestArrays, predicates: Predicates, chosen: I64s, log: Log) -> int:
    """Undo the cuts of some predicates; returns how many merges there were."""
    trees, filled = forest.trees, 0
    for p in chosen:
        d = predicates.dimension[p]
        for i in range(predicates.start[p], predicates.start[p + 1]):
            for end in range(2):
                if predicates.lo[i] <= KEY_MIN + 1 if end == 0 else predicates.hi[i] == KEY_MAX:
                    continue
                lowest = predicates.lo[i] if end == 0 else predicates.hi[i] + 1
                kept = nodes.match_pair(trees, forest.roots[d], lowest, INT64_ELEMENTS)
                node, side = _cut_below(trees, kept)
                gone = nodes.let_go(trees, node, side)
                if gone == NONE:
                    continue
                log.first[filled], log.second[filled] = gone, kept
                filled += 1
                if trees.nodes.e[node] == NONE:
                    nodes.prune(trees, forest.roots[d], node)
    return filled


@lean_kernel
def _recount(trees: TreeArrays, chosen: I32s, history: HistoryArrays) -> None:
    leaves = trees.leaves
    for leaf in chosen:
        d, after = trees.nodes.path[leaves.root[leaf]], leaves.next[leaf]
        end = KEY_MAX if after == NONE else leaves.lo[after] - 1
        leaves.events[leaf] = count_between(history, d, leaves.lo[leaf], end)
