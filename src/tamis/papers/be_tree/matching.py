"""Matching: MatchBETree and SearchCDir (algorithms 1 and 2), first for all nodes that an event reaches, then for their l-nodes.

An event may have several values or intervals on an attribute: it enters a bucket if some value meets the boundary. The one value
of a single-valued event leads down one path of a c-directory.

The recursion of the paper becomes three passes: nodes, entries of their l-nodes, records of the entries that pass their test. The
reads of a pass do not depend on each other, so the processor overlaps them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.bits import first_half, second_half
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I64, UP, I32s, I64s
from tamis.papers.be_tree.entries import SOME
from tamis.papers.be_tree.nodes import (
    ATTR,
    E_HI,
    E_LO,
    ENTRY,
    KIDS,
    LEAF,
    LEFT,
    LOST,
    NEXT,
    PDIR,
    SPLIT,
    T_HI,
    T_LO,
    TOP,
    Columns,
    Tree,
    close_window,
)
from tamis.papers.parts.collecting import Output, note_event
from tamis.papers.parts.pair_map import value_of
from tamis.papers.parts.records import EventKeys, RecordArrays, event_keys, failing, load_keys, mode_in, unload_keys

_BLOCK = 128
"""Records verified at a time: few enough to stay in the cache."""
# Columns of `passed`: place and size of the record, conjunction, node.
_AT, _SIZE, _ROW, _FROM = range(4)


class MatchScratch(NamedTuple):
    """Scratch that events reuse, one after another."""

    keys: EventKeys
    reached: I32s
    """The nodes that the event reaches and that have entries or p-nodes."""
    buckets: I32s
    """Buckets to be searched."""
    passed: I64s
    """Entries of a block that passed their tests."""


def match_scratch(dimensions: int, nodes: int) -> MatchScratch:
    """Scratch for `dimensions` dimensions and a tree of `nodes` nodes."""
    reached, buckets = np.empty((2, nodes + 1), np.int32)
    return MatchScratch(event_keys(dimensions), reached, buckets, np.empty((_BLOCK, 4), np.int64))


@lean_kernel
def match_events(
    tree: Tree, records: RecordArrays, batch: EventBatch, scratch: MatchScratch, event: int, output: Output
) -> int:
    """Match events from one on: a kernel for `collecting`."""
    written = 0
    while event < len(batch.start) - 1:
        single_valued = load_keys(batch, event, scratch.keys)
        reached, visited = _search(tree, batch, scratch, event, single_valued)
        matched, candidates, evaluated = _check_subs(
            tree, records, batch, scratch, reached, single_valued, output, written
        )
        unload_keys(batch, event, scratch.keys)
        if written + matched > len(output.matches):
            break
        note_event(event, matched, candidates, evaluated, visited, output)
        written += matched
        event += 1
    return event


@lean_kernel
def _search(tree: Tree, batch: EventBatch, scratch: MatchScratch, event: int, single_valued: bool) -> tuple[int, int]:
    """MatchBETree without its first line: find the nodes that the event reaches; how many are useful, and how many in all."""
    pnode, places = tree.pnode, scratch.keys.places
    begin, end = batch.start[event], batch.start[event + 1]
    attributes = 0
    for v in range(begin, end):
        attributes += places.first[batch.dimension[v]] == v
    _count_event(tree, 0)
    scratch.reached[0] = 0
    at, reached, visited = 0, 1, 1
    while at < reached:
        x = scratch.reached[at]
        at += 1
        # Search the p-directory the shorter way: along its p-nodes, or along the event's attributes.
        directory, v = tree.hot[UP(x), PDIR], begin
        p, listed = second_half(directory), first_half(directory) <= attributes
        while p > 0 and (listed or v < end):
            if listed:
                d, y = pnode[UP(p), ATTR], pnode[UP(p), TOP]
                p = pnode[UP(p), NEXT]
            else:
                d, y = I64(batch.dimension[v]), I64(0)
                if places.first[d] == v:
                    y = pnode[max(value_of(tree.pairs, x, d), 0), TOP]
                v += 1
            if y == 0 or places.values[UP(d)] == 0:
                continue
            if single_valued:
                reached, visited = _search_cdir(tree, scratch, d, y, reached, visited)
            else:
                reached, visited = _search_several(tree, batch, scratch, d, y, reached, visited)
    return reached, visited


@inlined
def _count_event(tree: Tree, x: int) -> None:
    """Count an event that comes to a node: it is an operation of the window."""
    if tree.hot[UP(x), LEFT] <= 0:
        close_window(tree, x)
    tree.hot[UP(x), LEFT] -= 1


@merged
def _search_cdir(tree: Tree, scratch: MatchScratch, d: int, y: int, reached: int, visited: int) -> tuple[int, int]:
    """SearchCDir for a single-valued event; returns how many nodes are useful, and how many there are in all."""
    hot, value = tree.hot, scratch.keys.key[UP(d)]
    while y > 0:
        visited += 1
        _count_event(tree, y)
        if not hot[UP(y), T_LO] <= value <= hot[UP(y), T_HI]:
            hot[UP(y), LOST] += 1
            break
        scratch.reached[UP(reached)] = y
        reached += (second_half(hot[UP(y), LEAF]) | hot[UP(y), PDIR]) != 0
        kids = hot[UP(y), KIDS]
        y = first_half(kids) if value <= hot[UP(y), SPLIT] else second_half(kids)
    return reached, visited


@merged
def _search_several(
    tree: Tree, batch: EventBatch, scratch: MatchScratch, d: int, top: int, reached: int, visited: int
) -> tuple[int, int]:
    """SearchCDir for any other event."""
    hot, buckets = tree.hot, scratch.buckets
    buckets[0] = top
    left = 1
    while left > 0:
        left -= 1
        bucket = buckets[left]
        visited += 1
        _count_event(tree, bucket)
        if not _meets(batch, scratch.keys, d, hot[bucket, T_LO], hot[bucket, T_HI]):
            hot[bucket, LOST] += 1
            continue
        scratch.reached[reached] = bucket
        reached += 1
        for child in (first_half(hot[bucket, KIDS]), second_half(hot[bucket, KIDS])):
            if child > 0:
                buckets[left] = child
                left += 1
    return reached, visited


@lean_kernel
def _check_subs(
    tree: Tree,
    records: RecordArrays,
    batch: EventBatch,
    scratch: MatchScratch,
    reached: int,
    single_valued: bool,
    output: Output,
    written: int,
) -> tuple[int, int, int]:
    """CheckSub of all nodes that were reached; returns the numbers of matches, candidates and evaluated predicates."""
    hot, data = tree.hot, tree.data
    passed, key = scratch.passed, scratch.keys.key
    candidates, evaluated, matched, filled = I64(0), I64(0), I64(0), 0
    for n in range(reached):
        x = scratch.reached[n]
        i, lost = first_half(hot[UP(x), LEAF]), 0
        last = i + second_half(hot[UP(x), LEAF])
        candidates += last - i
        while i < last:
            d = second_half(data[UP(i), ENTRY]) - 1
            passes = True
            if d >= 0:
                evaluated += 1
                if single_valued:
                    passes = data[UP(i), E_LO] <= key[UP(d)] <= data[UP(i), E_HI]
                else:
                    passes = _meets(batch, scratch.keys, d, data[i, E_LO], data[i, E_HI])
            if passes:
                passed[filled, _ROW], passed[filled, _FROM] = first_half(data[UP(i), ENTRY]), x
                filled += 1
                if filled == _BLOCK:
                    more, tests = _verify(
                        hot, records, batch, scratch, filled, single_valued, output, written + matched
                    )
                    matched, evaluated, filled = matched + more, evaluated + tests, 0
            else:
                lost += 1
            i += 1
        hot[UP(x), LOST] += lost
    more, tests = _verify(hot, records, batch, scratch, filled, single_valued, output, written + matched)
    return matched + more, candidates, evaluated + tests


@lean_kernel
def _verify(
    hot: Columns,
    records: RecordArrays,
    batch: EventBatch,
    scratch: MatchScratch,
    filled: int,
    single_valued: bool,
    output: Output,
    written: int,
) -> tuple[int, int]:
    """Verify a block of candidates by their records; returns the numbers of matches and of evaluated predicates."""
    words, passed, matches = records.words, scratch.passed, output.matches
    for i in range(filled):
        c = passed[UP(i), _ROW]
        passed[UP(i), _AT], passed[UP(i), _SIZE] = records.at[UP(c)], records.size[UP(c)]
    matched, tests, touched = I64(0), I64(0), I64(0)
    for i in range(filled):  # loads the first words of all records together
        if passed[UP(i), _SIZE] > 0:
            touched |= words[UP(passed[UP(i), _AT])]
    if touched == -1:  # never true: the compiler must not drop the reads
        return matched, tests
    for i in range(filled):
        size = passed[UP(i), _SIZE]
        held = failing(words, passed[UP(i), _AT], size, single_valued, scratch.keys, batch)
        tests += min(held + 1, size)
        if held == size:
            if written + matched < len(matches):
                matches[written + matched] = passed[UP(i), _ROW]
            matched += 1
        else:
            tested = mode_in(words[UP(passed[UP(i), _AT])]) == SOME
            hot[UP(passed[UP(i), _FROM]), LOST] += held + 1 + tested
    return matched, tests


@inlined
def _meets(batch: EventBatch, keys: EventKeys, d: int, low: int, high: int) -> bool:
    """Whether some value of an event in a dimension meets an interval."""
    first = keys.places.first[d]
    for v in range(first, first + keys.places.values[d]):  # noqa: SIM110 - kernels know no generators
        if batch.lo[v] <= high and low <= batch.hi[v]:
            return True
    return False
