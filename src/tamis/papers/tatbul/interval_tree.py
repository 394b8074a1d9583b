"""`interval-tree`: for each attribute, a tree of keys. Every interval is in two sorted lists of the first key it contains.

E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching (2001), section 4.1.4; after M. de Berg et al.,
Computational Geometry.

    node      key 35, left 1, right 2, begin 0, end 5
    by_lo     4  6  1  2  7 | ...            its intervals by ascending left end: places among all intervals
    by_hi     7  4  1  2  6 | ...            the same by descending right end

The key is the ceil(n / 2)-th of the n distinct endpoints of a node's intervals. Intervals that contain the key stay at the node,
lower ones go left, higher ones right. A value below the key satisfies the first intervals of `by_lo`, before the first that
begins above the value, and goes left. A value above the key satisfies the first intervals of `by_hi` in the same way, and goes
right. The key itself satisfies all.

Invariants: every interval is at one node, in both lists; it contains the key of its node and no key above.

Departures from the paper: none in the tree. The paper's tree has no bit vectors; the profiles found for a value become one, to be
ANDed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pyroaring import BitMap

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.papers.tatbul.matching import PAPER, Array, Found, ProfileIndex
from tamis.papers.tatbul.profiles import Intervals, Profiles
from tamis.papers.tatbul.vectors import vector

_NOBODY = -1
_MOST_WAITING = 256
"""Room for nodes that wait while others are built: keys are in the middle, so there are two for each level."""
_LOWEST_ROOM = 1 << 12


class IntervalTree(ProfileIndex):
    """Interval trees."""

    name = "interval-tree"
    summary = "for each attribute a tree of keys; every interval at one of them, in two sorted lists"
    paper = PAPER + "4.1.4"

    def _plant(self, intervals: Intervals) -> None:
        count = len(intervals.lo)
        owner = np.repeat(np.arange(len(intervals.start) - 1), np.diff(intervals.start))
        self._profile, self._lo, self._hi = intervals.profile, intervals.lo, intervals.hi
        self._by_lo = np.lexsort((intervals.lo, owner)).astype(np.int32)
        self._by_hi = np.lexsort((~intervals.hi, owner)).astype(np.int32)
        self._root = np.full(len(intervals.start) - 1, _NOBODY, np.int32)
        key = np.empty(count, np.int64)
        links = tuple(np.empty(count, np.int32) for _ in range(4))
        scratch = np.empty(count, np.int32), np.empty((3, _MOST_WAITING), np.int64)
        ends = self._lo, self._hi
        nodes = _build(intervals.start, ends, self._by_lo, self._by_hi, self._root, key, links, scratch)
        self._key = key[:nodes].copy()
        self._left, self._right, self._begin, self._end = (link[:nodes].copy() for link in links)

    def _find(self, attributes: Array, keys: Array) -> Found:
        tree = self._root, self._key, self._left, self._right, self._begin, self._end
        lists = self._by_lo, self._by_hi, self._lo, self._hi, self._profile
        start, work = np.zeros(len(keys) + 1, np.int64), np.zeros(2, np.int64)
        parts: list[Array] = [np.zeros(0, np.int32)]
        at, room = 0, _LOWEST_ROOM
        while at < len(keys):
            what = np.empty(room, np.int32)
            reached = _search(tree, lists, attributes, keys, at, start, what, work)
            parts.append(what[: start[reached] - start[at]])
            at, room = reached, 2 * room
        return Found(start, np.concatenate(parts), int(work[0]), int(work[1]))

    def _vector(self, found: Array) -> BitMap:
        # Making a vector from ascending numbers is eight times faster.
        return vector(np.sort(found))

    def _arrays(self) -> list[Array]:
        links = [self._left, self._right, self._begin, self._end]
        return [self._root, self._key, *links, self._by_lo, self._by_hi, self._profile, self._lo, self._hi]

    def _shape(self) -> dict[str, Any]:
        return {"tree_nodes": len(self._key), "intervals": len(self._lo)}

    def _check_trees(self, profiles: Profiles) -> None:
        seen = np.zeros(len(self._lo), np.bool_)
        waiting = [(int(root), KEY_MIN, KEY_MAX) for root in self._root if root != _NOBODY]
        while waiting:
            node, above, below = waiting.pop()
            key = int(self._key[node])
            by_lo = self._by_lo[self._begin[node] : self._end[node]]
            by_hi = self._by_hi[self._begin[node] : self._end[node]]
            assert len(by_lo) > 0
            assert sorted(by_lo.tolist()) == sorted(by_hi.tolist())
            assert not seen[by_lo].any()
            seen[by_lo] = True
            assert (self._lo[by_lo[1:]] >= self._lo[by_lo[:-1]]).all()
            assert (self._hi[by_hi[1:]] <= self._hi[by_hi[:-1]]).all()
            assert (self._lo[by_lo] <= key).all()
            assert (self._hi[by_lo] >= key).all()
            assert (self._lo[by_lo] >= above).all()
            assert (self._hi[by_lo] <= below).all()
            if self._left[node] != _NOBODY:
                waiting.append((int(self._left[node]), above, key - 1))
            if self._right[node] != _NOBODY:
                waiting.append((int(self._right[node]), key + 1, below))
        assert seen.all()


@inlined
def _middle_endpoint(by_lo: Any, by_hi: Any, begin: int, end: int, lo: Any, hi: Any) -> int:
    """The ceil(n / 2)-th of the n distinct endpoints of some intervals; 0 if they have none."""
    count, middle, chosen = 0, 0, 0
    for find in range(2):
        i, j, seen, before = begin, end - 1, 0, KEY_MIN
        while i < end or j >= begin:
            # Both lists ascend, `by_hi` from its end; open ends are not endpoints.
            if j < begin or (i < end and lo[by_lo[i]] <= hi[by_hi[j]]):
                endpoint = lo[by_lo[i]]
                i += 1
                if endpoint == KEY_MIN:
                    continue
            else:
                endpoint = hi[by_hi[j]]
                j -= 1
                if endpoint == KEY_MAX:
                    continue
            if endpoint != before:
                before = endpoint
                seen += 1
                if find and seen == middle:
                    chosen = endpoint
                    break
        if not find:
            count = seen
            middle = (count + 1) // 2
    return chosen


@inlined
def _part(those: Any, begin: int, end: int, lo: Any, hi: Any, key: int, other: Any) -> tuple[int, int]:
    """Put lower intervals first, then those that contain a key, then higher ones, each in their order; returns both borders."""
    first, last = begin, end
    for i in range(begin, end):
        other[i] = those[i]
        first += hi[those[i]] < key
        last -= lo[those[i]] > key
    smaller, middle, larger = begin, first, last
    for i in range(begin, end):
        if hi[other[i]] < key:
            those[smaller] = other[i]
            smaller += 1
        elif lo[other[i]] > key:
            those[larger] = other[i]
            larger += 1
        else:
            those[middle] = other[i]
            middle += 1
    return first, last


@lean_kernel
def _build(start: Any, ends: Any, by_lo: Any, by_hi: Any, root: Any, key: Any, links: Any, scratch: Any) -> int:
    """Build the trees of all attributes; returns how many nodes they have."""
    lo, hi = ends
    left, right, node_begin, node_end = links
    other, (w_begin, w_end, w_parent) = scratch[0], scratch[1]
    nodes = 0
    for a in range(len(root)):
        if start[a] == start[a + 1]:
            continue
        # A parent is twice a node, plus one for its right child.
        w_begin[0], w_end[0], w_parent[0] = start[a], start[a + 1], -1
        waiting = 1
        while waiting > 0:
            waiting -= 1
            begin, end, parent = w_begin[waiting], w_end[waiting], w_parent[waiting]
            if parent < 0:
                root[a] = nodes
            elif parent & 1:
                right[parent >> 1] = nodes
            else:
                left[parent >> 1] = nodes
            key[nodes] = _middle_endpoint(by_lo, by_hi, begin, end, lo, hi)
            _part(by_hi, begin, end, lo, hi, key[nodes], other)
            first, last = _part(by_lo, begin, end, lo, hi, key[nodes], other)
            left[nodes], right[nodes], node_begin[nodes], node_end[nodes] = _NOBODY, _NOBODY, first, last
            if last < end:
                w_begin[waiting], w_end[waiting], w_parent[waiting] = last, end, 2 * nodes + 1
                waiting += 1
            if begin < first:
                w_begin[waiting], w_end[waiting], w_parent[waiting] = begin, first, 2 * nodes
                waiting += 1
            nodes += 1
    return nodes


@lean_kernel
def _search(tree: Any, lists: Any, attributes: Any, keys: Any, at: int, start: Any, what: Any, work: Any) -> int:
    """Write the profiles of the intervals around each key, from key `at` on; returns the first for which there was no room."""
    root, node_key, left, right, begin, end = tree
    by_lo, by_hi, lo, hi, profile = lists
    shift = start[at]
    for i in range(at, len(keys)):
        key, node = keys[i], root[attributes[i]]
        count, comparisons, nodes = start[i], 0, 0
        while node != _NOBODY:
            nodes += 1
            comparisons += 1
            if count - shift + (end[node] - begin[node]) > len(what):
                return i
            if key == node_key[node]:
                for j in range(begin[node], end[node]):
                    what[count - shift] = profile[by_lo[j]]
                    count += 1
                break
            if key < node_key[node]:
                for j in range(begin[node], end[node]):
                    comparisons += 1
                    if lo[by_lo[j]] > key:
                        break
                    what[count - shift] = profile[by_lo[j]]
                    count += 1
                node = left[node]
            else:
                for j in range(begin[node], end[node]):
                    comparisons += 1
                    if hi[by_hi[j]] < key:
                        break
                    what[count - shift] = profile[by_hi[j]]
                    count += 1
                node = right[node]
        start[i + 1] = count
        work[0] += comparisons
        work[1] += nodes
    return len(keys)
