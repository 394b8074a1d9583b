"""SpacePartitioning (algorithm 5): p-nodes for the best attributes of an l-node that is too full.

Each expression is visited once, not once for each p-node. Every attribute has a list of its entries, and a heap orders attributes
by score. A score only falls, when another attribute takes entries away. So one call partitions a root with a million expressions
over thousands of attributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.bits import first_half, halves, second_half
from tamis.kernels.kernel import inlined, kernel, lean_kernel
from tamis.kernels.numbers import I64, F64s, I64s
from tamis.papers.be_tree.domains import DomainArrays, cells
from tamis.papers.be_tree.entries import ABSENT, interval_at, mark_path, settle, unmark_path
from tamis.papers.be_tree.nodes import (
    BELOW,
    CAP,
    CLUSTER,
    ENTRY,
    LEAF,
    PARTITIONS,
    PLACE,
    TOP,
    WHOLE,
    Home,
    Settings,
    Tree,
    add_task,
    append,
    entries_at,
    has_room,
    new_node,
    new_pnode,
    room_for,
    set_room,
    widen,
)
from tamis.papers.parts.records import RecordArrays, Words, dimension_in, following, mode_in

_LARGE = 80
"""An l-node of more than so many entries is large."""
_MOVED = 2**32 - 1
"""Marks an entry that has moved to a p-node; it stands in place of the entry's test."""


class Scratch(NamedTuple):
    """Arrays by dimension. Kernels leave them in their initial state, except `wanted_lo`, `wanted_hi` and `candidate`."""

    score: F64s
    """The score of an attribute in the l-node that is partitioned."""
    path: I64s
    """The bucket on the path to a node, 0 where its attribute is not used there."""
    wanted: I64s
    """Whether the expression in hand has an interval there that is not used yet."""
    wanted_lo: I64s
    wanted_hi: I64s
    number: I64s
    """How many expressions of an l-node have the attribute."""
    seen: I64s
    """The last entry that was found to have the attribute."""
    candidate: I64s
    """The place of the attribute in `Lists`."""


def scratch_of(dimensions: int) -> Scratch:
    """Scratch for `dimensions` dimensions."""
    columns = [np.zeros(dimensions, np.int64) for _ in Scratch._fields[1:]]
    return Scratch(np.zeros(dimensions, np.float64), *columns)


class Lists(NamedTuple):
    """The unused attributes of an l-node and their entries, if these are enough for a p-node.

    attribute   7      3    12
    begin       0      5    5        the entries of attribute a: entry[begin[a]] .. entry[end[a]]
    end         5      5    8
    heap        0   2                the best attribute is on top
    key         5.0         3.0      its score when it was last put into the heap
    """

    attribute: I64s
    begin: I64s
    end: I64s
    heap: I64s
    key: F64s
    entry: I64s


@kernel
def space_partitioning(
    tree: Tree, records: RecordArrays, domains: DomainArrays, scratch: Scratch, home: Home, x: int
) -> bool:
    """While the l-node of a c-node is too full: make a p-node for the best attribute, and move all its entries there.

    False if there is not enough room; part of the work is then done.
    """
    total = _predicates_in(tree, records, x)
    most = min(total, len(scratch.number))
    attribute, begin, end = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    heap, key, entry = np.empty(most, np.int64), np.empty(most, np.float64), np.empty(total, np.int64)
    lists = Lists(attribute, begin, end, heap, key, entry)
    return _partition(tree, records, domains, scratch, home, lists, x)


@inlined
def _predicates_in(tree: Tree, records: RecordArrays, x: int) -> int:
    """How many predicates the entries of an l-node have."""
    begin, count = entries_at(tree.hot, x)
    total = I64(0)
    for i in range(begin, begin + count):
        total += records.size[first_half(tree.data[i, ENTRY])]
    return total


@lean_kernel
def _partition(
    tree: Tree, records: RecordArrays, domains: DomainArrays, scratch: Scratch, home: Home, lists: Lists, x: int
) -> bool:
    number, score, least = scratch.number, scratch.score, tree.settings.min_size
    begin, count = entries_at(tree.hot, x)
    mark_path(tree, x, scratch.path)
    candidates = _count_attributes(tree, records, domains, scratch, lists, x)
    size = _list_entries(tree, records, scratch, lists, candidates, x)
    for start in range(size // 2 - 1, -1, -1):
        _sift_down(lists, size, start)
    left, enough = count, True
    goal = tree.cold[x, CAP] - _spare(tree.cold[x, CAP])
    while left > goal and size > 0:
        a = lists.heap[0]
        d = lists.attribute[a]
        if number[d] < least:
            size -= 1
            lists.heap[0] = lists.heap[size]
        elif lists.key[a] != score[d]:
            lists.key[a] = score[d]
        else:
            enough = has_room(tree, 2 * number[d] + 8)
            if not enough:
                break
            left -= number[d]
            _partition_by(tree, records, domains, scratch, home, lists, a, x)
        _sift_down(lists, size, 0)
    for a in range(candidates):
        d = lists.attribute[a]
        number[d], scratch.seen[d], score[d] = 0, 0, 0.0
    unmark_path(tree, x, scratch.path)
    kept = I64(0)
    for i in range(begin, begin + count):
        entry = tree.data[i, ENTRY]
        if second_half(entry) != _MOVED:
            tree.data[begin + kept, ENTRY] = entry
            home[first_half(entry), PLACE] = kept
            kept += 1
    tree.hot[x, LEAF] = halves(begin, kept)
    if enough:
        update_capacity(tree, x, kept, kept < count)
        settle(tree, records, scratch.path, x)
    return enough


@inlined
def update_capacity(tree: Tree, x: int, count: int, partitioned: bool) -> None:
    """UpdateClusterCapacity. If no attribute was left, the capacity grows until all entries fit."""
    cold, step = tree.cold, tree.settings.max_cap
    count += _spare(count)
    if partitioned or cold[x, CAP] < count:
        cold[x, CAP] = step * max(1, (count + step - 1) // step)


@inlined
def _spare(count: int) -> int:
    """How much room a large l-node of `count` entries keeps free when it was partitioned: an eighth.

    Without spare room, nearly every insertion into one of n entries would look for attributes among all of them.
    """
    return count // 8 if count > _LARGE else 0


@inlined
def _worth(domains: DomainArrays, settings: Settings, words: Words, at: int, d: int) -> float:
    """What one expression adds to the score of an attribute: one to the gain, its share of a histogram to the loss."""
    if not settings.histogram:
        return settings.beta
    lo, hi = interval_at(words, at)
    part = cells(domains.kind[d], domains.lo[d], domains.hi[d], lo, hi)
    return settings.beta - settings.gamma * part


@lean_kernel
def _count_attributes(
    tree: Tree, records: RecordArrays, domains: DomainArrays, scratch: Scratch, lists: Lists, x: int
) -> int:
    """Find the unused attributes of an l-node's entries, in how many they occur, and their scores."""
    number, seen, words = scratch.number, scratch.seen, records.words
    begin, count = entries_at(tree.hot, x)
    candidates = 0
    for i in range(count):
        c = first_half(tree.data[begin + i, ENTRY])
        at = records.at[c]
        for _ in range(records.size[c]):
            d = dimension_in(words[at])
            if mode_in(words[at]) != ABSENT and scratch.path[d] == 0 and seen[d] != i + 1:
                if number[d] == 0:
                    lists.attribute[candidates] = d
                    candidates += 1
                seen[d] = i + 1
                number[d] += 1
                scratch.score[d] += _worth(domains, tree.settings, words, at, d)
            at = following(words, at)
    return candidates


@lean_kernel
def _list_entries(tree: Tree, records: RecordArrays, scratch: Scratch, lists: Lists, candidates: int, x: int) -> int:
    """Write the entries of each attribute that enough entries have, and these attributes into the heap; returns its size."""
    number, seen, candidate, least = scratch.number, scratch.seen, scratch.candidate, tree.settings.min_size
    size, places = 0, I64(0)
    for a in range(candidates):
        d = lists.attribute[a]
        candidate[d], lists.begin[a], lists.end[a] = a, places, places
        if number[d] >= least:
            lists.heap[size], lists.key[a] = a, scratch.score[d]
            size += 1
            places += number[d]
    begin, count = entries_at(tree.hot, x)
    for i in range(count):
        c = first_half(tree.data[begin + i, ENTRY])
        at = records.at[c]
        for _ in range(records.size[c]):
            head = records.words[at]
            d = dimension_in(head)
            if mode_in(head) != ABSENT and scratch.path[d] == 0 and number[d] >= least and seen[d] != -i - 1:
                seen[d] = -i - 1
                lists.entry[lists.end[candidate[d]]] = i
                lists.end[candidate[d]] += 1
            at = following(records.words, at)
    return size


@lean_kernel
def _partition_by(
    tree: Tree, records: RecordArrays, domains: DomainArrays, scratch: Scratch, home: Home, lists: Lists, a: int, x: int
) -> None:
    """Make a p-node for an attribute, and move all entries with it that have not moved yet to its top bucket."""
    number, seen, words = scratch.number, scratch.seen, records.words
    d = lists.attribute[a]
    p = new_pnode(tree, x, d)
    top = new_node(tree, min(domains.lo[d], domains.hi[d]), domains.hi[d], -1, p)
    tree.pnode[p, TOP], tree.pnode[p, WHOLE] = top, domains.whole[d]
    set_room(tree, top, room_for(number[d]))
    begin, count = entries_at(tree.hot, x)
    for i in lists.entry[lists.begin[a] : lists.end[a]]:
        if second_half(tree.data[begin + i, ENTRY]) == _MOVED:
            continue
        c = first_half(tree.data[begin + i, ENTRY])
        at = records.at[c]
        stamp = count + 1 + i
        for _ in range(records.size[c]):
            other = dimension_in(words[at])
            if mode_in(words[at]) != ABSENT and scratch.path[other] == 0 and seen[other] != stamp:
                seen[other] = stamp
                if other == d:
                    lo, hi = interval_at(words, at)
                    widen(tree.hot, top, lo, hi)
                number[other] -= 1
                scratch.score[other] -= _worth(domains, tree.settings, words, at, other)
            at = following(words, at)
        tree.data[begin + i, ENTRY] = halves(I64(c), _MOVED)
        append(tree, home, top, c)
    tree.cold[top, BELOW] = second_half(tree.hot[top, LEAF])
    tree.state[PARTITIONS] += 1
    add_task(tree, top, CLUSTER)


@inlined
def _sift_down(lists: Lists, size: int, at: int) -> None:
    """Let an element that may be too high in a heap sink: the highest key, then the lowest attribute, is on top."""
    heap = lists.heap
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(lists, heap[child + 1], heap[child]):
            child += 1
        if not _before(lists, heap[child], heap[at]):
            break
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@inlined
def _before(lists: Lists, a: int, b: int) -> bool:
    return lists.key[a] > lists.key[b] or (lists.key[a] == lists.key[b] and lists.attribute[a] < lists.attribute[b])
