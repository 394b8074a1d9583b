"""`segment-tree`: for each attribute, a tree over elementary intervals. A profile is at the nodes that its interval covers.

E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching (2001), section 4.1.4; after M. de Berg et al.,
Computational Geometry.

    level 2    4
    level 1    3           2'                node n of a level is the union of 2n and 2n + 1 below; an odd one is
    level 0    0     1     2                 promoted: 2' is 2. Leaves are elementary intervals
    lo, hi     of leaves                     what a node covers follows from its place
    vector     of nodes; -1: no profile      an attribute's nodes begin at base[a], level by level, with promoted ones twice

A profile is at the nodes that lie within its interval and whose parents do not. A search goes from the root down to a leaf,
and the vectors on its way are ORed. Choosing the next child takes one comparison, with the end of the left child.

Invariants: the leaves of an attribute cover all keys, ascending; only the upper copy of a promoted node has a vector.

Departures from the paper: elementary intervals between neighbouring keys hold no key, so they are not leaves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I32s, I64s
from tamis.papers.tatbul.elementary import Cells, cells_of
from tamis.papers.tatbul.matching import PAPER, Found, ProfileIndex
from tamis.papers.tatbul.profiles import Intervals, Profiles
from tamis.papers.tatbul.vectors import Array, Lists, vectors

_LEVELS = 64
_NOBODY = -1


class _Tree(NamedTuple):
    """The trees of all attributes; attribute a has the leaves ``start[a]`` to ``start[a + 1]``."""

    start: I64s
    lo: I64s
    hi: I64s
    base: I64s
    vector_of: I32s


class _Levels(NamedTuple):
    """Scratch: for each level of a tree, where its nodes begin and how many it has."""

    node: I64s
    size: I64s


class SegmentTree(ProfileIndex):
    """Segment trees over elementary intervals."""

    name = "segment-tree"
    summary = "for each attribute a tree of elementary intervals; bit vectors at the nodes that intervals cover, ORed"
    paper = PAPER + "4.1.4"

    def _plant(self, intervals: Intervals) -> None:
        cells = cells_of(intervals)
        size = np.diff(cells.start)
        nodes = np.zeros(len(size), np.int64)
        while (size > 1).any():
            nodes += np.where(size > 1, size, 0)
            size = np.where(size > 1, (size + 1) // 2, size)
        nodes += size
        base = np.append(0, np.cumsum(nodes))
        owner = np.repeat(np.arange(len(size)), np.diff(intervals.start))
        sizes = np.zeros(int(base[-1]) + 1, np.int64)
        _store(cells, owner, intervals.profile, base, sizes, np.empty(0, np.int32))
        place = np.append(0, np.cumsum(sizes[:-1]))
        data = np.empty(int(place[-1]), np.int32)
        _store(cells, owner, intervals.profile, base, place[:-1].copy(), data)
        held = np.flatnonzero(sizes)
        self.vectors = vectors(Lists(np.append(place[held], place[-1]), data), len(self._built))
        vector_of = np.full(int(base[-1]), _NOBODY, np.int32)
        vector_of[held] = np.arange(len(held))
        self.tree = _Tree(cells.start, cells.lo, cells.hi, base, vector_of)

    def find(self, attributes: Array, keys: Array) -> Found:
        what = np.empty(len(keys) * _LEVELS, np.int64)
        start = np.zeros(len(keys) + 1, np.int64)
        levels = _Levels(*np.empty((2, _LEVELS), np.int64))
        comparisons, nodes = _search(self.tree, attributes, keys, levels, start, what)
        return Found(start, what, comparisons, nodes)

    def _arrays(self) -> list[Array]:
        return list(self.tree)

    def _shape(self) -> dict[str, Any]:
        # A tree of n leaves has n - 1 nodes above them; the promoted are counted once.
        leaves = len(self.tree.lo)
        return {"tree_nodes": 2 * leaves - (len(self.tree.start) - 1), "leaves": leaves}

    def _check_trees(self, profiles: Profiles) -> None:
        tree = self.tree
        assert (self.vectors.counts > 0).all()
        for a, (first, last) in enumerate(zip(tree.start, tree.start[1:], strict=False)):
            assert tree.hi[last - 1] == KEY_MAX
            assert (tree.hi[first:last][:-1] + 1 == tree.lo[first:last][1:]).all()
            size, base = int(last - first), int(tree.base[a])
            while size > 1:
                if size % 2:
                    assert tree.vector_of[base + size - 1] == _NOBODY
                base, size = base + size, (size + 1) // 2
            assert base + 1 == tree.base[a + 1]


@lean_kernel
def _store(cells: Cells, owner: I64s, profile: I32s, base: I64s, place: I64s, data: I32s) -> None:
    """Write each profile to the nodes within its interval whose parents are not; without room for data, only count."""
    for i in range(len(owner)):
        start = cells.start[owner[i]]
        node, size = base[owner[i]], cells.start[owner[i] + 1] - start
        low, high = cells.first[i] - start, cells.last[i] + 1 - start
        while low < high:
            if size == 1 or low & 1:
                if len(data):
                    data[place[node + low]] = profile[i]
                place[node + low] += 1
                low += 1
            if size == 1:
                break
            # The last of an odd number is promoted: it is the same as its parent, which may lie within the interval.
            if low < high and high & 1 and high != size:
                high -= 1
                if len(data):
                    data[place[node + high]] = profile[i]
                place[node + high] += 1
            node += size
            low, high, size = low >> 1, (high + 1) >> 1, (size + 1) >> 1


@lean_kernel
def _search(tree: _Tree, attributes: I64s, keys: I64s, levels: _Levels, start: I64s, what: I64s) -> tuple[int, int]:
    """Write the vectors on the way from the root to the leaf of each key; returns comparisons made and nodes visited."""
    vector_of, count, comparisons, nodes = tree.vector_of, 0, 0, 0
    for i in range(len(keys)):
        a = attributes[i]
        level, size, node = 0, tree.start[a + 1] - tree.start[a], tree.base[a]
        leaves = size
        levels.node[0], levels.size[0] = node, size
        while size > 1:
            node += size
            size = (size + 1) >> 1
            level += 1
            levels.node[level], levels.size[level] = node, size
        at = 0
        nodes += 1
        if vector_of[node] != _NOBODY:
            what[count] = vector_of[node]
            count += 1
        while level > 0:
            level -= 1
            at *= 2
            if at + 1 < levels.size[level]:  # not promoted
                comparisons += 1
                nodes += 1
                if keys[i] > tree.hi[tree.start[a] + min((at + 1) << level, leaves) - 1]:
                    at += 1
                node = levels.node[level] + at
                if vector_of[node] != _NOBODY:
                    what[count] = vector_of[node]
                    count += 1
        start[i + 1] = count
    return comparisons, nodes
