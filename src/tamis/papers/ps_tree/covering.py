"""The leaves of trees, in arrays: which leaf a key lies in, and which leaves a predicate covers.

    flat    start[d] .. start[d + 1] -> lo, leaf: the leaves of a tree, ascending

`flat` is a copy of the leaf chains for binary search. If it is out of date, it is empty: keys then walk down the trees, and
predicates walk along the chains.

Many predicates at once are *gathered* first: a copy of them, ordered by dimension. All that they read of the trees is then in the
processor's caches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import UP, I32s, I64s
from tamis.kernels.ranges import grouped
from tamis.papers.ps_tree import nodes
from tamis.papers.ps_tree.elements import INT64_ELEMENTS
from tamis.papers.ps_tree.nodes import NONE, TreeArrays

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
    flat: Flat


NO_FLAT = Flat(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))


class Gathered(NamedTuple):
    """Predicates of a table, ordered by dimension."""

    predicates: Predicates
    """A copy of them, and of nothing else."""
    source: I64s
    """Their numbers in the table."""
    owner: I32s
    """Their conjunctions."""

    @property
    def every(self) -> I64s:
        """The numbers of all predicates of the copy."""
        return np.arange(len(self.source))


def gathered(predicates: Predicates, chosen: I64s, owner: I32s) -> Gathered:
    """Gather some predicates of a table; `owner` has the conjunction of each."""
    order = grouped(predicates.dimension[chosen])
    source = chosen[order]
    start = np.zeros(len(source) + 1, np.int64)
    np.cumsum(predicates.start[source + 1] - predicates.start[source], out=start[1:])
    lo, hi = np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
    copy = Predicates(predicates.dimension[source], predicates.mode[source], start, lo, hi)
    _copy_intervals(predicates, source, copy)
    return Gathered(copy, source, owner[order])


@lean_kernel
def _copy_intervals(predicates: Predicates, source: I64s, copy: Predicates) -> None:
    for i in range(len(source)):
        first = predicates.start[source[i]]
        for j in range(copy.start[i + 1] - copy.start[i]):
            copy.lo[copy.start[i] + j], copy.hi[copy.start[i] + j] = predicates.lo[first + j], predicates.hi[first + j]


# -- keys


@inlined
def _position(flat: Flat, dimension: int, key: int) -> int:
    """Where in `flat` the leaf of a key is: the last leaf that begins at or below the key. The first begins below all keys."""
    first, size = flat.start[UP(dimension)], flat.start[UP(dimension + 1)] - flat.start[UP(dimension)]
    while size > 1:
        half = size // 2
        first += half if flat.lo[UP(first + half)] <= key else 0
        size -= half
    return int(first)


@merged
def leaf_of_key(forest: ForestArrays, dimension: int, key: int) -> int:
    """The leaf of a key, from the flat arrays or else down the tree; NONE if the dimension has no tree."""
    if dimension >= len(forest.roots) or forest.roots[dimension] == NONE:
        return NONE
    if len(forest.flat.start) == 0:
        return nodes.match_pair(forest.trees, forest.roots[dimension], key, INT64_ELEMENTS)
    return int(forest.flat.leaf[UP(_position(forest.flat, dimension, key))])


@lean_kernel
def flatten(forest: ForestArrays) -> None:
    """Write the leaf chains to `flat`."""
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
def ranges_of(predicates: Predicates, p: int) -> int:
    """How many ranges of keys a predicate covers; some of them may be empty."""
    intervals = predicates.start[p + 1] - predicates.start[p]
    return int(intervals + (1 if predicates.mode[p] == _NONE else 0))


@inlined
def range_of(predicates: Predicates, p: int, number: int) -> tuple[int, int]:
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
def first_leaf(forest: ForestArrays, dimension: int, lo: int) -> int:
    """The leaf that begins at a key at which there is a cut."""
    if lo <= KEY_MIN + 1:
        return int(forest.trees.nodes.g[forest.roots[dimension]])
    return leaf_of_key(forest, dimension, lo)


@inlined
def _span_of(flat: Flat, dimension: int, lo: int, hi: int) -> tuple[int, int]:
    """The places in `flat` of the leaves that a range covers: from the first on, without the last."""
    first = flat.start[dimension] if lo <= KEY_MIN + 1 else _position(flat, dimension, lo)
    return first, flat.start[dimension + 1] if hi == KEY_MAX else _position(flat, dimension, hi) + 1


@lean_kernel
def count_covered(forest: ForestArrays, predicates: Predicates, chosen: I64s, counts: I64s) -> None:
    """Count the leaves of each predicate, up to one more than the limit in `counts`."""
    leaves, flat = forest.trees.leaves, forest.flat
    for i in range(len(chosen)):
        p, covered, most = chosen[i], 0, counts[i]
        for number in range(ranges_of(predicates, p)):
            lo, hi = range_of(predicates, p, number)
            if lo > hi or covered > most:
                continue
            if len(flat.start):
                first, last = _span_of(flat, predicates.dimension[p], lo, hi)
                covered = min(covered + last - first, most + 1)
                continue
            leaf = first_leaf(forest, predicates.dimension[p], lo)
            while leaf != NONE and leaves.lo[leaf] <= hi and covered <= most:
                covered += 1
                leaf = leaves.next[leaf]
        counts[i] = covered


@lean_kernel
def count_predicates(forest: ForestArrays, predicates: Predicates, chosen: I64s, change: int, difference: I32s) -> None:
    """Add to the predicate counters of all leaves that predicates cover. `difference` is zero for each place in `flat`."""
    leaves, flat = forest.trees.leaves, forest.flat
    for p in chosen:
        for number in range(ranges_of(predicates, p)):
            lo, hi = range_of(predicates, p, number)
            if lo > hi:
                continue
            if len(flat.start):
                first, last = _span_of(flat, predicates.dimension[p], lo, hi)
                difference[first] += change
                difference[last] -= change
                continue
            leaf = first_leaf(forest, predicates.dimension[p], lo)
            while leaf != NONE and leaves.lo[leaf] <= hi:
                leaves.predicates[leaf] += change
                leaf = leaves.next[leaf]
    added = 0
    for i in range(len(flat.leaf)):
        added += difference[i]
        leaves.predicates[flat.leaf[i]] += added


@lean_kernel
def write_covered(forest: ForestArrays, predicates: Predicates, chosen: I64s, out: I64s) -> None:
    """Write the leaves of each predicate, in a row."""
    leaves = forest.trees.leaves
    at = 0
    for p in chosen:
        for number in range(ranges_of(predicates, p)):
            lo, hi = range_of(predicates, p, number)
            if lo <= hi:
                leaf = first_leaf(forest, predicates.dimension[p], lo)
                while leaf != NONE and leaves.lo[leaf] <= hi:
                    out[at] = leaf
                    at += 1
                    leaf = leaves.next[leaf]
