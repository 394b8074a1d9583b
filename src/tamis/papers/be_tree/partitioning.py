"""SpacePartitioning (algorithm 5): p-nodes for the best attributes of an l-node that is too full.

Each expression is visited once, not once for each p-node. Every attribute has a list of its entries, and a heap orders attributes
by score. A score only falls, when another attribute takes entries away. So one call partitions a root with a million expressions
over thousands of attributes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.numbers import I64
from tamis.papers.be_tree.domains import cells
from tamis.papers.be_tree.entries import ABSENT, following, interval_at, mark_path, unmark_path
from tamis.papers.be_tree.nodes import (
    BELOW,
    BETA,
    CAP,
    CLUSTER,
    GAMMA,
    HALF,
    HISTOGRAM,
    LEAF,
    MAX_CAP,
    MIN_SIZE,
    PARTITIONS,
    TASKS,
    TOP,
    WHOLE,
    append,
    has_room,
    new_node,
    new_pnode,
    room_for,
    set_room,
    widen,
)

_MOVED = HALF
"""Marks an entry that has moved to a p-node; it stands in place of the entry's test."""


@kernel
def space_partitioning(tree: Any, pairs: Any, records: Any, domains: Any, scratch: Any, home: Any, x: int) -> bool:
    """While the l-node of a c-node is too full: make a p-node for the best attribute, and move all its entries there.

    False if there is not enough room; part of the work is then done.
    """
    hot, cold, pnode, data, state, tasks, _, limits, _ = tree
    number, score = scratch.number, scratch.score
    begin, count = hot[x, LEAF] >> 32, hot[x, LEAF] & HALF
    mark_path(cold, pnode, x, scratch.path)
    total = I64(0)
    for i in range(begin, begin + count):
        total += records.size[data[i, 0] >> 32]
    attributes = np.empty(min(total, len(number)), np.int64)
    candidates = _count_attributes(data[begin : begin + count], records, domains, scratch, tree, attributes)
    list_begin, list_end = np.empty(candidates, np.int64), np.empty(candidates, np.int64)
    heap, key = np.empty(candidates, np.int64), np.empty(candidates, np.float64)
    size, places = I64(0), I64(0)
    for a in range(candidates):
        d = attributes[a]
        scratch.slot[d], list_begin[a], list_end[a] = a, places, places
        if number[d] >= limits[MIN_SIZE]:
            heap[size], key[a] = a, score[d]
            size += 1
            places += number[d]
    lists = np.empty(places, np.int64)
    _list_entries(data[begin : begin + count], records, scratch, limits, list_end, lists)
    for start in range(size // 2 - 1, -1, -1):
        _sift_down(heap, size, start, key, attributes)
    left, enough = count, True
    while left > cold[x, CAP] and size > 0:
        a = heap[0]
        d = attributes[a]
        if number[d] < limits[MIN_SIZE]:
            size -= 1
            heap[0] = heap[size]
        elif key[a] != score[d]:
            key[a] = score[d]
        else:
            enough = has_room(hot, pnode, data, state, tasks, pairs.value, pairs.pairs, 2 * number[d] + 8)
            if not enough:
                break
            left -= number[d]
            _partition_by(tree, pairs, records, domains, scratch, home, x, d, lists[list_begin[a] : list_end[a]])
        _sift_down(heap, size, 0, key, attributes)
    for a in range(candidates):
        d = attributes[a]
        number[d], scratch.seen[d], score[d] = 0, 0, 0.0
    unmark_path(cold, pnode, x, scratch.path)
    kept = I64(0)
    for i in range(begin, begin + count):
        if data[i, 0] & HALF != _MOVED:
            data[begin + kept, 0] = data[i, 0]
            home[data[i, 0] >> 32, 1] = kept
            kept += 1
    hot[x, LEAF] = begin << 32 | kept
    if enough:
        update_capacity(cold, limits, x, kept, kept < count)
    return enough


@inlined
def update_capacity(cold: Any, limits: Any, x: int, count: int, partitioned: bool) -> None:
    """UpdateClusterCapacity. If no attribute was left, the capacity grows until all entries fit."""
    while cold[x, CAP] < count:
        cold[x, CAP] += limits[MAX_CAP]
    if partitioned:
        cold[x, CAP] = limits[MAX_CAP] * max(1, (count + limits[MAX_CAP] - 1) // limits[MAX_CAP])


@inlined
def _worth(domains: Any, limits: Any, rates: Any, words: Any, at: int, d: int) -> Any:
    """What one expression adds to the score of an attribute: one to the gain, its share of a histogram to the loss."""
    if not limits[HISTOGRAM]:
        return rates[BETA]
    lo, hi = interval_at(words, at)
    return rates[BETA] - rates[GAMMA] * cells(domains.kind[d], domains.whole[d], domains.lo[d], domains.hi[d], lo, hi)


@kernel
def _count_attributes(entries: Any, records: Any, domains: Any, scratch: Any, tree: Any, attributes: Any) -> int:
    """Find the unused attributes of an l-node's entries, in how many they occur, and their scores."""
    path, number, seen, score = scratch.path, scratch.number, scratch.seen, scratch.score
    rec_at, rec_size, words = records
    limits, rates = tree.limits, tree.rates
    candidates = 0
    for i in range(len(entries)):
        c = entries[i, 0] >> 32
        at = rec_at[c]
        for _ in range(rec_size[c]):
            d = words[at] >> 32
            if words[at] & 3 != ABSENT and path[d] == 0 and seen[d] != i + 1:
                if number[d] == 0:
                    attributes[candidates] = d
                    candidates += 1
                seen[d] = i + 1
                number[d] += 1
                score[d] += _worth(domains, limits, rates, words, at, d)
            at = following(words, at)
    return candidates


@kernel
def _list_entries(entries: Any, records: Any, scratch: Any, limits: Any, list_end: Any, lists: Any) -> None:
    """Write the list of entries of each attribute that enough entries have."""
    path, number, seen, slot = scratch.path, scratch.number, scratch.seen, scratch.slot
    rec_at, rec_size, words = records
    for i in range(len(entries)):
        c = entries[i, 0] >> 32
        at = rec_at[c]
        for _ in range(rec_size[c]):
            d = words[at] >> 32
            usable = words[at] & 3 != ABSENT and path[d] == 0 and number[d] >= limits[MIN_SIZE]
            if usable and seen[d] != -i - 1:
                seen[d] = -i - 1
                lists[list_end[slot[d]]] = i
                list_end[slot[d]] += 1
            at = following(words, at)


@kernel
def _partition_by(
    tree: Any, pairs: Any, records: Any, domains: Any, scratch: Any, home: Any, x: int, d: int, entries: Any
) -> None:
    """Make a p-node for an attribute, and move all entries with it that have not moved yet to its top bucket."""
    hot, cold, pnode, data, state, tasks, _, limits, rates = tree
    firsts, seconds, values, taken = pairs
    rec_at, rec_size, words = records
    path, number, seen, score = scratch.path, scratch.number, scratch.seen, scratch.score
    p = new_pnode(hot, pnode, state, firsts, seconds, values, taken, x, d)
    hi = domains.hi[d]
    top = new_node(hot, cold, state, min(domains.lo[d], hi), hi, -1, p, limits[MAX_CAP])
    pnode[p, TOP], pnode[p, WHOLE] = top, domains.whole[d]
    set_room(hot, cold, data, state, top, room_for(number[d]))
    begin, count = hot[x, LEAF] >> 32, hot[x, LEAF] & HALF
    for i in entries:
        if data[begin + i, 0] & HALF == _MOVED:
            continue
        c = data[begin + i, 0] >> 32
        at = rec_at[c]
        stamp = count + 1 + i
        for _ in range(rec_size[c]):
            other = words[at] >> 32
            if words[at] & 3 != ABSENT and path[other] == 0 and seen[other] != stamp:
                seen[other] = stamp
                if other == d:
                    lo, hi = interval_at(words, at)
                    widen(hot, top, lo, hi)
                number[other] -= 1
                score[other] -= _worth(domains, limits, rates, words, at, other)
            at = following(words, at)
        data[begin + i, 0] = I64(c) << 32 | _MOVED
        append(hot, cold, data, state, home, top, c)
    cold[top, BELOW] = hot[top, LEAF] & HALF
    state[PARTITIONS] += 1
    tasks[state[TASKS]] = top << 1 | CLUSTER
    state[TASKS] += 1


@inlined
def _sift_down(heap: Any, size: int, at: int, key: Any, attributes: Any) -> None:
    """Let an element that may be too high in a heap sink: the highest key, then the lowest attribute, is on top."""
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(key, attributes, heap[child + 1], heap[child]):
            child += 1
        if not _before(key, attributes, heap[child], heap[at]):
            break
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@inlined
def _before(key: Any, attributes: Any, a: int, b: int) -> Any:
    return key[a] > key[b] or (key[a] == key[b] and attributes[a] < attributes[b])
