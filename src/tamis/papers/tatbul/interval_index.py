"""`interval-index`: for each attribute a binary search tree of elementary intervals with the profiles that do match.

E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching (2001), section 4.1.2.

    node      0          1        2        3          elementary intervals that profiles cover, ascending; attribute a has
    lo        10         11       15       16         nodes start[a] to start[a + 1]
    hi        10         14       15       20
    vector    {0}        {0}      {0, 2}   {2}        the profiles that match if the value lies there

The order of nodes implies the tree: its root is the ceil(m / 2)-th of m nodes, and so on in both halves. A search stops at
the node that contains the value; if there is none, no profile matches.

Invariants: nodes of an attribute are disjoint, ascend and have profiles; a vector has the profiles with an interval around
its node.

Departures from the paper: elementary intervals between neighbouring keys hold no key, so they get no node. Reading: intervals
without profiles are left out first, then the tree is balanced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I64s
from tamis.papers.tatbul.elementary import cells_of, vectors_of_cells
from tamis.papers.tatbul.matching import PAPER, Found, ProfileIndex
from tamis.papers.tatbul.profiles import Intervals, Profiles
from tamis.papers.tatbul.vectors import Array


class IntervalIndex(ProfileIndex):
    """Binary search trees of elementary intervals."""

    name = "interval-index"
    summary = "for each attribute a search tree of elementary intervals with bit vectors of the profiles that match"
    paper = PAPER + "4.1.2"

    def _plant(self, intervals: Intervals) -> None:
        cells = cells_of(intervals)
        self.vectors, covered = vectors_of_cells(intervals, cells, len(self._built))
        self.lo, self.hi = cells.lo[covered], cells.hi[covered]
        self._start = np.searchsorted(covered, cells.start)

    def find(self, attributes: Array, keys: Array) -> Found:
        what = np.empty(len(keys), np.int64)
        visited = _search(self._start, self.lo, self.hi, attributes, keys, what)
        return Found(np.append(0, np.cumsum(what >= 0)), what[what >= 0], visited, visited)

    def _arrays(self) -> list[Array]:
        return [self._start, self.lo, self.hi]

    def _shape(self) -> dict[str, Any]:
        return {"tree_nodes": len(self.lo)}

    def _check_trees(self, profiles: Profiles) -> None:
        assert len(self.lo) == len(self.vectors.counts)
        assert (self.lo <= self.hi).all()
        assert (self.vectors.counts > 0).all()
        for first, last in zip(self._start, self._start[1:], strict=False):
            assert (self.hi[first:last][:-1] < self.lo[first:last][1:]).all()


@lean_kernel
def _search(start: I64s, lo: I64s, hi: I64s, attributes: I64s, keys: I64s, what: I64s) -> int:
    """Write the node that contains each key, -1 if there is none; returns how many nodes were visited."""
    visited = 0
    for i in range(len(keys)):
        low, high = start[attributes[i]], start[attributes[i] + 1]
        what[i] = -1
        while low < high:
            root = low + (high - low + 1) // 2 - 1
            visited += 1
            if keys[i] < lo[root]:
                high = root
            elif keys[i] > hi[root]:
                low = root + 1
            else:
                what[i] = root
                break
    return visited
