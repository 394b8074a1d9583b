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

from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.bits import with_flag
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I32s, I64s
from tamis.papers.parts.parting import Waiting, hang, part_at, room_for, wait
from tamis.papers.tatbul.matching import PAPER, Found, ProfileIndex
from tamis.papers.tatbul.profiles import Intervals, Profiles
from tamis.papers.tatbul.vectors import Array

_NOBODY = -1
_LOWEST_ROOM = 1 << 12
_COMPARISONS, _VISITED = range(2)
"""Places in the work of a search: comparisons, and nodes visited."""


class _Nodes(NamedTuple):
    """The nodes of all trees."""

    root: I32s
    key: I64s
    left: I32s
    right: I32s
    begin: I32s
    end: I32s


class _Lists(NamedTuple):
    """The intervals, and the lists of all nodes."""

    by_lo: I32s
    by_hi: I32s
    profile: I32s
    lo: I64s
    hi: I64s


class IntervalTree(ProfileIndex):
    """Interval trees."""

    name = "interval-tree"
    summary = "for each attribute a tree of keys; every interval at one of them, in two sorted lists"
    paper = PAPER + "4.1.4"
    finds_profiles = True

    def _plant(self, intervals: Intervals) -> None:
        count = len(intervals.lo)
        owner = np.repeat(np.arange(len(intervals.start) - 1), np.diff(intervals.start))
        by_lo = np.lexsort((intervals.lo, owner)).astype(np.int32)
        by_hi = np.lexsort((~intervals.hi, owner)).astype(np.int32)
        self.lists = _Lists(by_lo, by_hi, intervals.profile, intervals.lo, intervals.hi)
        root = np.full(len(intervals.start) - 1, _NOBODY, np.int32)
        nodes = _Nodes(root, np.empty(count, np.int64), *np.empty((4, count), np.int32))
        made = _build(intervals.start, self.lists, nodes, room_for(count))
        links = (nodes.left, nodes.right, nodes.begin, nodes.end)
        self.nodes = _Nodes(root, nodes.key[:made].copy(), *(link[:made].copy() for link in links))

    def find(self, attributes: Array, keys: Array) -> Found:
        start, work = np.zeros(len(keys) + 1, np.int64), np.zeros(2, np.int64)
        parts: list[Array] = [np.zeros(0, np.int32)]
        at, room = 0, _LOWEST_ROOM
        while at < len(keys):
            what = np.empty(room, np.int32)
            reached = _search(self.nodes, self.lists, attributes, keys, at, start, what, work)
            parts.append(what[: start[reached] - start[at]])
            at, room = reached, 2 * room
        return Found(start, np.concatenate(parts), *work.tolist())

    def _arrays(self) -> list[Array]:
        return [*self.nodes, *self.lists]

    def _shape(self) -> dict[str, Any]:
        return {"tree_nodes": len(self.nodes.key), "intervals": len(self.lists.lo)}

    def _check_trees(self, profiles: Profiles) -> None:
        nodes, lists = self.nodes, self.lists
        lo, hi = lists.lo, lists.hi
        seen = np.zeros(len(lo), np.bool_)
        waiting = [(int(root), KEY_MIN, KEY_MAX) for root in nodes.root if root != _NOBODY]
        while waiting:
            node, above, below = waiting.pop()
            key, own = int(nodes.key[node]), slice(nodes.begin[node], nodes.end[node])
            by_lo, by_hi = lists.by_lo[own], lists.by_hi[own]
            assert len(by_lo) > 0
            assert sorted(by_lo.tolist()) == sorted(by_hi.tolist())
            assert not seen[by_lo].any()
            seen[by_lo] = True
            assert (lo[by_lo[1:]] >= lo[by_lo[:-1]]).all()
            assert (hi[by_hi[1:]] <= hi[by_hi[:-1]]).all()
            assert (lo[by_lo] <= key).all()
            assert (hi[by_lo] >= key).all()
            assert (lo[by_lo] >= above).all()
            assert (hi[by_lo] <= below).all()
            if nodes.left[node] != _NOBODY:
                waiting.append((int(nodes.left[node]), above, key - 1))
            if nodes.right[node] != _NOBODY:
                waiting.append((int(nodes.right[node]), key + 1, below))
        assert seen.all()


@inlined
def _middle_endpoint(lists: _Lists, begin: int, end: int) -> int:
    """The ceil(n / 2)-th of the n distinct endpoints of some intervals; 0 if they have none."""
    by_lo, by_hi, lo, hi = lists.by_lo, lists.by_hi, lists.lo, lists.hi
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


@lean_kernel
def _build(start: I64s, lists: _Lists, nodes: _Nodes, waiting: Waiting) -> int:
    """Build the trees of all attributes; returns how many nodes they have."""
    lo, hi, made = lists.lo, lists.hi, 0
    for a in range(len(nodes.root)):
        if start[a] == start[a + 1]:
            continue
        wait(waiting, 0, start[a], start[a + 1], -1)
        depth = 1
        while depth > 0:
            depth -= 1
            begin, end, parent = waiting.begin[depth], waiting.end[depth], waiting.parent[depth]
            if parent < 0:
                nodes.root[a] = made
            else:
                hang(nodes.left, nodes.right, parent, made)
            key = _middle_endpoint(lists, begin, end)
            part_at(key, lists.by_hi, begin, end, lo, hi, waiting.spare)
            first, last = part_at(key, lists.by_lo, begin, end, lo, hi, waiting.spare)
            nodes.key[made], nodes.begin[made], nodes.end[made] = key, first, last
            nodes.left[made], nodes.right[made] = _NOBODY, _NOBODY
            if last < end:
                wait(waiting, depth, last, end, with_flag(made, 1))
                depth += 1
            if begin < first:
                wait(waiting, depth, begin, first, with_flag(made, 0))
                depth += 1
            made += 1
    return made


@lean_kernel
def _search(
    nodes: _Nodes,
    lists: _Lists,
    attributes: I64s,
    keys: I64s,
    at: int,
    start: I64s,
    what: I32s,
    work: I64s,
) -> int:
    """Write the profiles of the intervals around each key, from key `at` on; returns the first for which there was no room."""
    by_lo, by_hi, profile = lists.by_lo, lists.by_hi, lists.profile
    shift = start[at]
    for i in range(at, len(keys)):
        key, node = keys[i], nodes.root[attributes[i]]
        count, comparisons, visited = start[i], 0, 0
        while node != _NOBODY:
            begin, end = nodes.begin[node], nodes.end[node]
            visited += 1
            comparisons += 1
            if count - shift + (end - begin) > len(what):
                return i
            if key == nodes.key[node]:
                for j in range(begin, end):
                    what[count - shift] = profile[by_lo[j]]
                    count += 1
                break
            if key < nodes.key[node]:
                for j in range(begin, end):
                    comparisons += 1
                    if lists.lo[by_lo[j]] > key:
                        break
                    what[count - shift] = profile[by_lo[j]]
                    count += 1
                node = nodes.left[node]
            else:
                for j in range(begin, end):
                    comparisons += 1
                    if lists.hi[by_hi[j]] < key:
                        break
                    what[count - shift] = profile[by_hi[j]]
                    count += 1
                node = nodes.right[node]
        start[i + 1] = count
        work[_COMPARISONS] += comparisons
        work[_VISITED] += visited
    return len(keys)
