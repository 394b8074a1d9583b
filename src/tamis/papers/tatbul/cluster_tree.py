"""Cluster trees (4.1.1): for each attribute, profiles are split by keys into clusters whose intervals all have a point in common.

    node      0         1         2    3    4
    key       45        26                           a value below the key goes left, any other right
    left      1         3         -1   -1   -1       -1: a leaf, and `right` is its number
    right     2         4         0    1    2
    leaf      0: {...}  1: {...}  2: {...}           numbers of the intervals that a value in this leaf may lie in

A key is one of the endpoints. Intervals that begin below the key go left. Intervals that do not end below it go right. Intervals
that span it go both ways. The key with the smallest *score* = |nL - nR| + (nL + nR - n) wins: the tree should be balanced, and
few intervals should be in both halves. A binary search over the endpoints tries keys: first the ceil(n / 2)-th, then the half on
the side with more intervals, until no endpoint is left. A cluster is not split if it has one interval, or if every endpoint
leaves the whole cluster in one half. The latter is true if all its intervals have a point in common.

Readings: if both sides have equally many, the search goes on to the left. Of keys with equal scores the first stays. A key that
does not split is never chosen. If the search finds no key that splits, all endpoints are tried.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I32s, I64s
from tamis.kernels.sorting import first_not_below
from tamis.papers.tatbul.profiles import Intervals
from tamis.papers.tatbul.vectors import Array

LEAF = -1
_NODES, _LEAVES, _HELD = range(3)
"""Places in `_Room.used`: nodes, leaves, and intervals of leaves."""
_MOST_TRIES = 64
"""Most keys that a search tries: after this many halvings no endpoint is left."""


class ClusterTree(NamedTuple):
    """The trees of all attributes, as kernels search them."""

    root: I64s
    key: I64s
    left: I32s
    right: I32s


class Clusters(NamedTuple):
    """The leaves: intervals ``start[i]`` to ``start[i + 1]``, ascending, and the lowest and highest key that lead there."""

    start: I64s
    interval: I32s
    lowest: I64s
    highest: I64s


class Ordered(NamedTuple):
    """Intervals in the order of both ends. A cluster lies at the same places of `by_lo` and `by_hi`."""

    lo: I64s
    hi: I64s
    by_lo: I32s
    by_hi: I32s


class _Waiting(NamedTuple):
    """Clusters that wait: their places, the node that each becomes, and the lowest and highest key that lead there."""

    begin: I64s
    end: I64s
    node: I64s
    lowest: I64s
    highest: I64s


class _Room(NamedTuple):
    """The output of a kernel, and its scratch."""

    tree: ClusterTree
    leaves: Clusters
    clusters: Ordered
    waiting: _Waiting
    endpoint: I64s
    tried: I64s
    used: I64s
    """How much of the output is used."""


def _room(intervals: Intervals, root: I64s, size: int, endpoints: int) -> _Room:
    key, start, lowest, highest = np.empty((4, size), np.int64)
    left, right = np.empty((2, size), np.int32)
    interval, by_lo, by_hi = np.empty((3, 4 * size), np.int32)
    return _Room(
        ClusterTree(root, key, left, right),
        Clusters(start, interval, lowest, highest),
        Ordered(intervals.lo, intervals.hi, by_lo, by_hi),
        _Waiting(*np.empty((5, size), np.int64)),
        np.empty(endpoints, np.int64),
        np.empty(_MOST_TRIES, np.int64),
        np.zeros(_HELD + 1, np.int64),
    )


def build_clusters(intervals: Intervals, smallest: int, least_room: int = 1 << 12) -> tuple[ClusterTree, Clusters]:
    """Build the trees of all attributes, at first with this room. Clusters of `smallest` intervals or fewer are not split."""
    attributes = len(intervals.start) - 1
    owner = np.repeat(np.arange(attributes), np.diff(intervals.start))
    by_lo, by_hi = (np.lexsort((ends, owner)).astype(np.int32) for ends in (intervals.lo, intervals.hi))
    ordered = Ordered(intervals.lo, intervals.hi, by_lo, by_hi)
    root = np.zeros(attributes, np.int64)
    trees: list[tuple[Array, ...]] = []
    leaves: list[tuple[Array, ...]] = []
    longest = 2 * int(np.diff(intervals.start).max(initial=0))
    at, size = 0, max(least_room, longest)
    nodes, clusters = 0, 0
    while at < attributes:
        room = _room(intervals, root, size, longest)
        reached = _build(intervals.start, ordered, smallest, at, room)
        used_nodes, used_leaves, used = room.used.tolist()
        root[at:reached] += nodes
        # So far, nodes and leaves are numbered within this part.
        left, right = room.tree.left[:used_nodes], room.tree.right[:used_nodes]
        left, right = left + np.where(left == LEAF, 0, nodes), right + np.where(left == LEAF, clusters, nodes)
        trees.append((room.tree.key[:used_nodes].copy(), left, right))
        sizes = np.diff(np.append(room.leaves.start[:used_leaves], used))
        lowest, highest = room.leaves.lowest[:used_leaves].copy(), room.leaves.highest[:used_leaves].copy()
        leaves.append((sizes, room.leaves.interval[:used].copy(), lowest, highest))
        nodes, clusters = nodes + used_nodes, clusters + used_leaves
        at, size = reached, 2 * size
    key, left, right = _joined(trees, (np.int64, np.int32, np.int32))
    sizes, interval, lowest, highest = _joined(leaves, (np.int64, np.int32, np.int64, np.int64))
    start = np.append(0, np.cumsum(sizes))
    _let_ascend(start, interval, np.zeros(len(intervals.lo) + 1, np.int64), np.empty(len(interval), np.int32))
    return ClusterTree(root, key, left, right), Clusters(start, interval, lowest, highest)


def _joined(parts: list[tuple[Array, ...]], dtypes: tuple[npt.DTypeLike, ...]) -> list[Array]:
    return [
        np.concatenate([np.zeros(0, dtype), *(part[column] for part in parts)]).astype(dtype)
        for column, dtype in enumerate(dtypes)
    ]


@lean_kernel
def _let_ascend(start: I64s, interval: I32s, place: I64s, leaf_of: I32s) -> None:
    """Sort the intervals of each leaf, and with them profiles: go through all intervals in order, and through their leaves."""
    for i in range(len(interval)):
        place[interval[i] + 1] += 1
    for i in range(1, len(place)):
        place[i] += place[i - 1]
    for leaf in range(len(start) - 1):
        for i in range(start[leaf], start[leaf + 1]):
            leaf_of[place[interval[i]]] = leaf
            place[interval[i]] += 1
    # The leaves of an interval begin where those of the last one end. `start` is the place in each leaf until it is restored.
    at = 0
    for i in range(len(place) - 1):
        while at < place[i]:
            leaf = leaf_of[at]
            interval[start[leaf]] = i
            start[leaf] += 1
            at += 1
    for leaf in range(len(start) - 2, -1, -1):
        start[leaf + 1] = start[leaf]
    start[0] = 0


@inlined
def endpoints_of(ordered: Ordered, begin: int, end: int, endpoint: I64s) -> int:
    """Write the distinct endpoints of a cluster, ascending; returns how many. Open ends are not endpoints."""
    lo, hi, by_lo, by_hi = ordered.lo, ordered.hi, ordered.by_lo, ordered.by_hi
    i, j, count = begin, begin, 0
    while i < end or j < end:
        if j == end or (i < end and lo[by_lo[i]] <= hi[by_hi[j]]):
            next_one, is_open = lo[by_lo[i]], lo[by_lo[i]] == KEY_MIN
            i += 1
        else:
            next_one, is_open = hi[by_hi[j]], hi[by_hi[j]] == KEY_MAX
            j += 1
        if not is_open and (count == 0 or endpoint[count - 1] != next_one):
            endpoint[count] = next_one
            count += 1
    return count


@inlined
def halves(ordered: Ordered, begin: int, end: int, key: int) -> tuple[int, int]:
    """How many intervals of a cluster go left and right of a key."""
    n_left = first_not_below(ordered.by_lo, ordered.lo, begin, end, key) - begin
    n_right = end - first_not_below(ordered.by_hi, ordered.hi, begin, end, key)
    return n_left, n_right


@inlined
def score_of(n_left: int, n_right: int, size: int) -> int:
    """The score of a key: the imbalance of its halves plus the number of intervals in both. Less is better."""
    return abs(n_left - n_right) + (n_left + n_right - size)


@inlined
def choose_key(ordered: Ordered, begin: int, end: int, endpoint: I64s, count: int, tried: I64s) -> int:
    """The place of the best key among the endpoints of a cluster; -1 if none splits it. `tried` receives the tried ones."""
    best, least, size, tries = -1, 0, end - begin, 0
    low, high = 0, count
    while low < high:
        at = low + (high - low + 1) // 2 - 1
        n_left, n_right = halves(ordered, begin, end, endpoint[at])
        score = score_of(n_left, n_right, size)
        tried[tries] = at
        tries += 1
        if n_left < size and n_right < size and (best < 0 or score < least):
            best, least = at, score
        if n_right > n_left:
            low = at + 1
        else:
            high = at
    if best < 0:
        for at in range(count):
            n_left, n_right = halves(ordered, begin, end, endpoint[at])
            score = score_of(n_left, n_right, size)
            if n_left < size and n_right < size and (best < 0 or score < least):
                best, least = at, score
    return best


@merged
def _split(ordered: Ordered, begin: int, end: int, key: int, n_left: int, n_right: int) -> None:
    """Put the halves of a cluster in its place, the right one first."""
    lo, hi, by_lo, by_hi = ordered.lo, ordered.hi, ordered.by_lo, ordered.by_hi
    at_lo, at_hi = end, end  # both are written behind the cluster first
    for i in range(begin, end):
        if hi[by_lo[i]] >= key:
            by_lo[at_lo] = by_lo[i]
            at_lo += 1
    for i in range(end - n_right, end):
        by_hi[at_hi] = by_hi[i]
        at_hi += 1
    for i in range(begin, begin + n_left):
        by_lo[at_lo] = by_lo[i]
        at_lo += 1
    for i in range(begin, end):
        if lo[by_hi[i]] < key:
            by_hi[at_hi] = by_hi[i]
            at_hi += 1
    for i in range(n_left + n_right):
        by_lo[begin + i], by_hi[begin + i] = by_lo[end + i], by_hi[end + i]


@inlined
def _wait(waiting: _Waiting, at: int, begin: int, end: int, node: int, lowest: int, highest: int) -> None:
    """Let a cluster wait."""
    waiting.begin[at], waiting.end[at], waiting.node[at] = begin, end, node
    waiting.lowest[at], waiting.highest[at] = lowest, highest


@lean_kernel
def _build(start: I64s, ordered: Ordered, smallest: int, first: int, room: _Room) -> int:
    """Build the trees of attributes from `first` on; returns the attribute for which there was no room."""
    tree, found, clusters, waiting = room.tree, room.leaves, room.clusters, room.waiting
    nodes, leaves, held = 0, 0, 0
    for a in range(first, len(tree.root)):
        size = start[a + 1] - start[a]
        if nodes == len(tree.key) or size > len(clusters.by_lo):
            return a
        for i in range(size):
            clusters.by_lo[i], clusters.by_hi[i] = ordered.by_lo[start[a] + i], ordered.by_hi[start[a] + i]
        tree.root[a] = nodes
        _wait(waiting, 0, 0, size, nodes, KEY_MIN, KEY_MAX)
        nodes += 1
        depth = 1
        while depth > 0:  # the next cluster lies behind the waiting ones
            depth -= 1
            begin, end, node = waiting.begin[depth], waiting.end[depth], waiting.node[depth]
            lowest, highest = waiting.lowest[depth], waiting.highest[depth]
            chosen = -1
            if end - begin > smallest and clusters.hi[clusters.by_hi[begin]] < clusters.lo[clusters.by_lo[end - 1]]:
                count = endpoints_of(clusters, begin, end, room.endpoint)
                chosen = choose_key(clusters, begin, end, room.endpoint, count, room.tried)
            if chosen < 0:
                if leaves == len(found.start) or held + end - begin > len(found.interval):
                    return a
                tree.left[node], tree.right[node] = LEAF, leaves
                found.start[leaves], found.lowest[leaves], found.highest[leaves] = held, lowest, highest
                leaves += 1
                for i in range(begin, end):
                    found.interval[held] = clusters.by_lo[i]
                    held += 1
                continue
            key = room.endpoint[chosen]
            n_left, n_right = halves(clusters, begin, end, key)
            no_place = end + n_left + n_right > len(clusters.by_lo)
            if nodes + 2 > len(tree.key) or depth + 2 > len(waiting.begin) or no_place:
                return a
            _split(clusters, begin, end, key, n_left, n_right)
            tree.key[node], tree.left[node], tree.right[node] = key, nodes, nodes + 1
            _wait(waiting, depth, begin, begin + n_right, nodes + 1, key, highest)
            _wait(waiting, depth + 1, begin + n_right, begin + n_right + n_left, nodes, lowest, key - 1)
            depth += 2
            nodes += 2
        room.used[_NODES], room.used[_LEAVES], room.used[_HELD] = nodes, leaves, held
    return len(tree.root)


@lean_kernel
def search_clusters(tree: ClusterTree, attributes: I64s, keys: I64s, leaves: I64s) -> int:
    """Write the leaf that each key leads to; returns how many nodes with keys were visited."""
    visited = 0
    for i in range(len(keys)):
        node = tree.root[attributes[i]]
        while tree.left[node] != LEAF:
            visited += 1
            node = tree.left[node] if keys[i] < tree.key[node] else tree.right[node]
        leaves[i] = tree.right[node]
    return visited
