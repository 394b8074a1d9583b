"""Cluster trees (4.1.1): for each attribute, profiles are split by keys into clusters whose intervals all have a point in common.

    node      0         1         2    3    4
    key       45        26                           a value below the key goes left, any other right
    left      1         3         -1   -1   -1       -1: a leaf, and `right` is its number
    right     2         4         0    1    2
    leaf      0: {...}  1: {...}  2: {...}           numbers of the intervals that a value in this leaf may lie in

A key is one of the endpoints. Intervals that begin below the key go left, intervals that do not end below it go right, and
intervals that span it go both ways. *Score* = |nL - nR| + (nL + nR - n), the smallest wins: the tree should be balanced, and few
intervals should be in both halves. Keys are tried by binary search over the endpoints: the ceil(n / 2)-th, then the half on the
side with more intervals, until no endpoint is left. A cluster is not split if it has one interval, or if every endpoint leaves
the whole cluster in one half. The latter is true if all its intervals have a point in common.

Readings: if both sides have equally many, the search goes on to the left. Of keys with equal scores the first stays. A key that
does not split is never chosen. If the search finds no key that splits, all endpoints are tried.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.papers.tatbul.profiles import Intervals

LEAF = -1
_LOWEST_ROOM = 1 << 12
_MOST_TRIES = 64
"""Most keys that a search tries: after this many halvings no endpoint is left."""

Array = npt.NDArray[Any]


class ClusterTree(NamedTuple):
    """The trees of all attributes, as kernels search them."""

    root: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]


class Clusters(NamedTuple):
    """The leaves: intervals ``start[i]`` to ``start[i + 1]``, ascending, and the lowest and highest key that lead there."""

    start: npt.NDArray[np.int64]
    interval: npt.NDArray[np.int32]
    lowest: npt.NDArray[np.int64]
    highest: npt.NDArray[np.int64]


class _Room(NamedTuple):
    """The output of a kernel, and how much of it is used: nodes, leaves, and intervals of leaves."""

    key: Array
    left: Array
    right: Array
    start: Array
    lowest: Array
    highest: Array
    interval: Array
    by_lo: Array
    by_hi: Array
    waiting: Array
    endpoint: Array
    tried: Array
    used: Array


def _room(size: int, endpoints: int) -> _Room:
    int64, int32 = (np.empty((4, size), np.int64), np.empty((2, size), np.int32))
    return _Room(
        int64[0], int32[0], int32[1], int64[1], int64[2], int64[3], np.empty(4 * size, np.int32),
        np.empty(4 * size, np.int32), np.empty(4 * size, np.int32), np.empty((5, size), np.int64),
        np.empty(endpoints, np.int64), np.empty(_MOST_TRIES, np.int64), np.zeros(3, np.int64),
    )  # fmt: skip


def build_clusters(intervals: Intervals, smallest: int) -> tuple[ClusterTree, Clusters]:
    """Build the trees of all attributes. Clusters of `smallest` intervals or fewer are not split."""
    attributes = len(intervals.start) - 1
    owner = np.repeat(np.arange(attributes), np.diff(intervals.start))
    by_lo = np.lexsort((intervals.lo, owner)).astype(np.int32)
    by_hi = np.lexsort((intervals.hi, owner)).astype(np.int32)
    root = np.zeros(attributes, np.int64)
    trees: list[tuple[Array, ...]] = []
    leaves: list[tuple[Array, ...]] = []
    longest = 2 * int(np.diff(intervals.start).max(initial=0))
    at, size = 0, max(_LOWEST_ROOM, longest)
    nodes, clusters = 0, 0
    while at < attributes:
        room = _room(size, longest)
        reached = _build(intervals.start, (intervals.lo, intervals.hi), by_lo, by_hi, smallest, at, root, room)
        used_nodes, used_leaves, used = room.used.tolist()
        root[at:reached] += nodes
        # So far, nodes and leaves are numbered within this part.
        left, right = room.left[:used_nodes], room.right[:used_nodes]
        is_leaf = left == LEAF
        trees.append(
            (
                room.key[:used_nodes].copy(),
                left + np.where(is_leaf, 0, nodes),
                right + np.where(is_leaf, clusters, nodes),
            )
        )
        leaves.append(
            (
                np.diff(np.append(room.start[:used_leaves], used)),
                room.interval[:used].copy(),
                room.lowest[:used_leaves].copy(),
                room.highest[:used_leaves].copy(),
            )
        )
        nodes, clusters = nodes + used_nodes, clusters + used_leaves
        at, size = reached, 2 * size
    key, left, right = _joined(trees, (np.int64, np.int32, np.int32))
    sizes, interval, lowest, highest = _joined(leaves, (np.int64, np.int32, np.int64, np.int64))
    start = np.append(0, np.cumsum(sizes))
    _let_ascend(start, interval, np.zeros(len(intervals.lo) + 1, np.int64), np.empty(len(interval), np.int32))
    return ClusterTree(root, key, left, right), Clusters(start, interval, lowest, highest)


def _joined(parts: list[tuple[Array, ...]], dtypes: tuple[Any, ...]) -> list[Array]:
    return [
        np.concatenate([np.zeros(0, dtype), *(part[column] for part in parts)]).astype(dtype)
        for column, dtype in enumerate(dtypes)
    ]


@lean_kernel
def _let_ascend(start: Any, interval: Any, place: Any, leaf_of: Any) -> None:
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
def _first_not_below(those: Any, ends: Any, begin: int, end: int, key: int) -> int:
    """The first place whose end is not below a key, among intervals in the order of their ends."""
    while begin < end:
        middle = (begin + end) // 2
        if ends[those[middle]] < key:
            begin = middle + 1
        else:
            end = middle
    return begin


@inlined
def endpoints_of(by_lo: Any, by_hi: Any, begin: int, end: int, lo: Any, hi: Any, endpoint: Any) -> int:
    """Write the distinct endpoints of a cluster, ascending; returns how many. Open ends are not endpoints."""
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
def halves(by_lo: Any, by_hi: Any, begin: int, end: int, lo: Any, hi: Any, key: int) -> tuple[int, int]:
    """How many intervals of a cluster go left and right of a key."""
    n_left = _first_not_below(by_lo, lo, begin, end, key) - begin
    n_right = end - _first_not_below(by_hi, hi, begin, end, key)
    return n_left, n_right


@inlined
def score_of(n_left: int, n_right: int, size: int) -> int:
    """The score of a key: the imbalance of its halves plus the number of intervals in both. Less is better."""
    return abs(n_left - n_right) + (n_left + n_right - size)


@inlined
def choose_key(
    by_lo: Any, by_hi: Any, begin: int, end: int, lo: Any, hi: Any, endpoint: Any, count: int, tried: Any
) -> int:
    """The place of the best key among the endpoints of a cluster; -1 if none splits it. `tried` receives the tried ones."""
    best, least, size, tries = -1, 0, end - begin, 0
    low, high = 0, count
    while low < high:
        at = low + (high - low + 1) // 2 - 1
        n_left, n_right = halves(by_lo, by_hi, begin, end, lo, hi, endpoint[at])
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
            n_left, n_right = halves(by_lo, by_hi, begin, end, lo, hi, endpoint[at])
            score = score_of(n_left, n_right, size)
            if n_left < size and n_right < size and (best < 0 or score < least):
                best, least = at, score
    return best


@lean_kernel
def _build(
    start: Any, ends: Any, all_by_lo: Any, all_by_hi: Any, smallest: int, first: int, root: Any, room: Any
) -> int:
    """Build the trees of attributes from `first` on; returns the attribute for which there was no room."""
    lo, hi = ends
    key, left, right, leaf_start, lowest, highest, interval, by_lo, by_hi, waiting, endpoint, tried, used = room
    w_begin, w_node, w_end, w_low, w_high = waiting
    nodes, leaves, held = 0, 0, 0
    for a in range(first, len(root)):
        size = start[a + 1] - start[a]
        if nodes == len(key) or size > len(by_lo):
            return a
        for i in range(size):
            by_lo[i], by_hi[i] = all_by_lo[start[a] + i], all_by_hi[start[a] + i]
        root[a] = nodes
        w_begin[0], w_end[0], w_node[0], w_low[0], w_high[0] = 0, size, nodes, KEY_MIN, KEY_MAX
        nodes += 1
        depth = 1
        while depth > 0:  # the next cluster lies behind the waiting ones
            depth -= 1
            begin, end, node = w_begin[depth], w_end[depth], w_node[depth]
            low, high = w_low[depth], w_high[depth]
            chosen = -1
            if end - begin > smallest and hi[by_hi[begin]] < lo[by_lo[end - 1]]:
                count = endpoints_of(by_lo, by_hi, begin, end, lo, hi, endpoint)
                chosen = choose_key(by_lo, by_hi, begin, end, lo, hi, endpoint, count, tried)
            if chosen < 0:
                if leaves == len(leaf_start) or held + end - begin > len(interval):
                    return a
                left[node], right[node] = LEAF, leaves
                leaf_start[leaves], lowest[leaves], highest[leaves] = held, low, high
                leaves += 1
                for i in range(begin, end):
                    interval[held] = by_lo[i]
                    held += 1
                continue
            k = endpoint[chosen]
            n_left, n_right = halves(by_lo, by_hi, begin, end, lo, hi, k)
            if nodes + 2 > len(key) or depth + 2 > len(w_begin) or end + n_left + n_right > len(by_lo):
                return a
            # Both halves are written behind the cluster, the right one first, and then take its place.
            at_lo, at_hi = end, end
            for i in range(begin, end):
                if hi[by_lo[i]] >= k:
                    by_lo[at_lo] = by_lo[i]
                    at_lo += 1
            for i in range(end - n_right, end):
                by_hi[at_hi] = by_hi[i]
                at_hi += 1
            for i in range(begin, begin + n_left):
                by_lo[at_lo] = by_lo[i]
                at_lo += 1
            for i in range(begin, end):
                if lo[by_hi[i]] < k:
                    by_hi[at_hi] = by_hi[i]
                    at_hi += 1
            for i in range(n_left + n_right):
                by_lo[begin + i], by_hi[begin + i] = by_lo[end + i], by_hi[end + i]
            key[node], left[node], right[node] = k, nodes, nodes + 1
            w_begin[depth], w_end[depth], w_node[depth] = begin, begin + n_right, nodes + 1
            w_low[depth], w_high[depth] = k, high
            depth += 1
            w_begin[depth], w_end[depth], w_node[depth] = begin + n_right, begin + n_right + n_left, nodes
            w_low[depth], w_high[depth] = low, k - 1
            depth += 1
            nodes += 2
        used[0], used[1], used[2] = nodes, leaves, held
    return len(root)


@lean_kernel
def search_clusters(tree: Any, attributes: Any, keys: Any, leaves: Any) -> int:
    """Write the leaf that each key leads to; returns how many nodes with keys were visited."""
    root, key, left, right = tree
    visited = 0
    for i in range(len(keys)):
        node = root[attributes[i]]
        while left[node] != LEAF:
            visited += 1
            node = left[node] if keys[i] < key[node] else right[node]
        leaves[i] = right[node]
    return visited
