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

from typing import Any

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX
from tamis.kernels.kernel import lean_kernel
from tamis.papers.tatbul.elementary import cells_of
from tamis.papers.tatbul.matching import PAPER, Array, Found, ProfileIndex
from tamis.papers.tatbul.profiles import Intervals, Profiles
from tamis.papers.tatbul.vectors import Lists, vectors

_LEVELS = 64
_NOBODY = -1


class SegmentTree(ProfileIndex):
    """Segment trees over elementary intervals."""

    name = "segment-tree"
    summary = "for each attribute a tree of elementary intervals; bit vectors at the nodes that intervals cover, ORed"
    paper = PAPER + "4.1.4"

    def _plant(self, intervals: Intervals) -> None:
        cells = cells_of(intervals)
        self._start, self._lo, self._hi = cells.start, cells.lo, cells.hi
        leaves = np.diff(cells.start)
        nodes = np.zeros(len(leaves), np.int64)
        size = leaves.copy()
        while (size > 1).any():
            nodes += np.where(size > 1, size, 0)
            size = np.where(size > 1, (size + 1) // 2, size)
        nodes += size
        self._base = np.append(0, np.cumsum(nodes))
        owner = np.repeat(np.arange(len(leaves)), np.diff(intervals.start))
        first, last = cells.first - cells.start[owner], cells.last - cells.start[owner]
        sizes = np.zeros(int(self._base[-1]) + 1, np.int64)
        no_data = np.empty(0, np.int32)
        _store(self._base, leaves, owner, first, last, intervals.profile, sizes, no_data)
        place = np.append(0, np.cumsum(sizes[:-1]))
        data = np.empty(int(place[-1]), np.int32)
        _store(self._base, leaves, owner, first, last, intervals.profile, place[:-1].copy(), data)
        held = np.flatnonzero(sizes)
        self._vectors = vectors(Lists(np.append(place[held], place[-1]), data))
        self._vector_of = np.full(int(self._base[-1]), _NOBODY, np.int32)
        self._vector_of[held] = np.arange(len(held))

    def _find(self, attributes: Array, keys: Array) -> Found:
        what = np.empty(len(keys) * _LEVELS, np.int64)
        start = np.zeros(len(keys) + 1, np.int64)
        tree = self._start, self._hi, self._base, self._vector_of
        offsets = np.empty(_LEVELS, np.int64), np.empty(_LEVELS, np.int64)
        comparisons, nodes = _search(tree, attributes, keys, offsets, start, what)
        return Found(start, what, comparisons, nodes)

    def _arrays(self) -> list[Array]:
        return [self._start, self._lo, self._hi, self._base, self._vector_of]

    def _shape(self) -> dict[str, Any]:
        # A tree of n leaves has n - 1 nodes above them; the promoted are counted once.
        return {"tree_nodes": 2 * len(self._lo) - (len(self._start) - 1), "leaves": len(self._lo)}

    def _check_trees(self, profiles: Profiles) -> None:
        assert all(self._vectors)
        for a, (first, last) in enumerate(zip(self._start, self._start[1:], strict=False)):
            assert self._hi[last - 1] == KEY_MAX
            assert (self._hi[first:last][:-1] + 1 == self._lo[first:last][1:]).all()
            size, base = int(last - first), int(self._base[a])
            while size > 1:
                if size % 2:
                    assert self._vector_of[base + size - 1] == _NOBODY
                base, size = base + size, (size + 1) // 2
            assert base + 1 == self._base[a + 1]


@lean_kernel
def _store(base: Any, leaves: Any, owner: Any, first: Any, last: Any, profile: Any, place: Any, data: Any) -> None:
    """Write each profile to the nodes within its interval whose parents are not; without output arrays, only count."""
    for i in range(len(owner)):
        node, size = base[owner[i]], leaves[owner[i]]
        low, high = first[i], last[i] + 1
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
def _search(tree: Any, attributes: Any, keys: Any, offsets: Any, start: Any, what: Any) -> tuple[int, int]:
    """Write the vectors on the way from the root to the leaf of each key; returns comparisons made and nodes visited."""
    cell_start, hi, base, vector_of = tree
    offset, sizes = offsets
    count, comparisons, nodes = 0, 0, 0
    for i in range(len(keys)):
        a = attributes[i]
        level, size, node = 0, cell_start[a + 1] - cell_start[a], base[a]
        leaves = size
        offset[0], sizes[0] = node, size
        while size > 1:
            node += size
            size = (size + 1) >> 1
            level += 1
            offset[level], sizes[level] = node, size
        at = 0
        nodes += 1
        if vector_of[offset[level]] != _NOBODY:
            what[count] = vector_of[offset[level]]
            count += 1
        while level > 0:
            level -= 1
            at *= 2
            if at + 1 < sizes[level]:  # not promoted
                comparisons += 1
                nodes += 1
                if keys[i] > hi[cell_start[a] + min((at + 1) << level, leaves) - 1]:
                    at += 1
                if vector_of[offset[level] + at] != _NOBODY:
                    what[count] = vector_of[offset[level] + at]
                    count += 1
        start[i + 1] = count
    return comparisons, nodes
