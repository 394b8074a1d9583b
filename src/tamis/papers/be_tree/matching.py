"""Matching: MatchBETree and SearchCDir (algorithms 1 and 2), first for all nodes that an event reaches, then for their l-nodes.

An event may have several values or intervals on an attribute: it enters a bucket if some value meets the boundary. The one value
of a plain event leads down one path of a c-directory.

The recursion of the paper becomes three passes: nodes, entries of their l-nodes, records of the entries that pass their test. The
reads of a pass do not depend on each other, so the processor overlaps them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, UP
from tamis.papers.be_tree.entries import SOME
from tamis.papers.be_tree.nodes import (
    ATTR,
    HALF,
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
    close_window,
)
from tamis.papers.parts.collecting import CANDIDATES, NODES, PREDICATES
from tamis.papers.parts.pair_map import slot_of
from tamis.papers.parts.records import EventScratch, event_scratch, failing, load_event, unload_event

_BLOCK = 128
"""Records verified at a time: few enough to stay in the cache."""


class MatchScratch(NamedTuple):
    """Scratch that events reuse, one after another."""

    event: EventScratch
    reached: npt.NDArray[np.int32]
    """The nodes that the event reaches and that have entries or p-nodes."""
    buckets: npt.NDArray[np.int32]
    passed: npt.NDArray[np.int64]
    """Entries of a block that passed their tests: place and size of the record, conjunction, node."""


def match_scratch(dimensions: int, nodes: int) -> MatchScratch:
    """Scratch for `dimensions` dimensions and a tree of `nodes` nodes."""
    reached, buckets = np.empty((2, nodes + 1), np.int32)
    return MatchScratch(event_scratch(dimensions), reached, buckets, np.empty((_BLOCK, 4), np.int64))


@lean_kernel
def match_events(
    tree: Any, pairs: Any, records: Any, batch: Any, scratch: Any, event: int, counts: Any, out: Any, work: Any
) -> int:
    """Match events from one on: a kernel for `collecting`."""
    v_start, v_dimension, v_lo, v_hi = batch
    key, first, count = scratch.event
    written = 0
    numbers = (I64(0), I64(0), I64(0))
    while event < len(v_start) - 1:
        begin, end = v_start[event], v_start[event + 1]
        plain = load_event(begin, end, v_dimension, v_lo, v_hi, key, first, count)
        reached, visited = _search(tree, pairs, batch, scratch, begin, end, plain)
        numbers = _check_subs(tree, records, batch, scratch, reached, plain, out, written)
        unload_event(begin, end, v_dimension, key, count)
        matched, candidates, evaluated = numbers
        if written + matched > len(out):
            break
        counts[event] = matched
        written += matched
        work[CANDIDATES] += candidates
        work[PREDICATES] += evaluated
        work[NODES] += visited
        event += 1
    return event


@lean_kernel
def _search(tree: Any, pairs: Any, batch: Any, scratch: Any, begin: int, end: int, plain: bool) -> tuple[Any, Any]:
    """MatchBETree without its first line: find the nodes that the event reaches; how many are useful, and how many in all."""
    hot, cold, pnode, _, state, _, due, limits, rates = tree
    firsts, seconds, values, _ = pairs
    _, v_dimension, v_lo, v_hi = batch
    key, first, count = scratch.event
    nodes, buckets = scratch.reached, scratch.buckets
    attributes = 0
    for v in range(begin, end):
        attributes += first[v_dimension[v]] == v
    if hot[0, LEFT] <= 0:
        close_window(hot, cold, pnode, state, due, limits, rates, 0)
    hot[0, LEFT] -= 1
    nodes[0] = 0
    at, reached, visited = 0, 1, 1
    while at < reached:
        x = nodes[at]
        at += 1
        # Search the p-directory the shorter way: along its p-nodes, or along the event's attributes.
        directory, v = hot[UP(x), PDIR], begin
        p, listed = directory & HALF, directory >> 32 <= attributes
        while p > 0 and (listed or v < end):
            if listed:
                d, y = pnode[UP(p), ATTR], pnode[UP(p), TOP]
                p = pnode[UP(p), NEXT]
            else:
                d, y = I64(v_dimension[v]), I64(0)
                if first[d] == v:
                    y = pnode[max(values[slot_of(firsts, seconds, values, x, d)], 0), TOP]
                v += 1
            if y == 0 or count[UP(d)] == 0:
                continue
            # SearchCDir
            if plain:
                value = key[UP(d)]
                while y > 0:
                    visited += 1
                    if hot[UP(y), LEFT] <= 0:
                        close_window(hot, cold, pnode, state, due, limits, rates, y)
                    hot[UP(y), LEFT] -= 1
                    if not hot[UP(y), T_LO] <= value <= hot[UP(y), T_HI]:
                        hot[UP(y), LOST] += 1
                        break
                    nodes[UP(reached)] = y
                    reached += (hot[UP(y), LEAF] & HALF | hot[UP(y), PDIR]) != 0
                    kids = hot[UP(y), KIDS]
                    y = kids >> 32 if value <= hot[UP(y), SPLIT] else kids & HALF
                continue
            buckets[0] = y
            left = 1
            while left > 0:
                left -= 1
                y = buckets[left]
                visited += 1
                if hot[y, LEFT] <= 0:
                    close_window(hot, cold, pnode, state, due, limits, rates, y)
                hot[y, LEFT] -= 1
                if not _meets(v_lo, v_hi, first[d], count[d], hot[y, T_LO], hot[y, T_HI]):
                    hot[y, LOST] += 1
                    continue
                nodes[reached] = y
                reached += 1
                for child in (hot[y, KIDS] >> 32, hot[y, KIDS] & HALF):
                    if child > 0:
                        buckets[left] = child
                        left += 1
    return reached, visited


@lean_kernel
def _check_subs(
    tree: Any, records: Any, batch: Any, scratch: Any, reached: int, plain: bool, out: Any, written: int
) -> tuple[Any, Any, Any]:
    """CheckSub of all nodes that were reached; returns the numbers of matches, candidates and evaluated predicates."""
    hot, data = tree.hot, tree.data
    _, _, v_lo, v_hi = batch
    key, first, count = scratch.event
    nodes, passed = scratch.reached, scratch.passed
    candidates, evaluated, matched, filled = I64(0), I64(0), I64(0), 0
    for n in range(reached):
        x = nodes[n]
        i, lost = hot[UP(x), LEAF] >> 32, 0
        last = i + (hot[UP(x), LEAF] & HALF)
        candidates += last - i
        while i < last:
            d = (data[UP(i), 0] & HALF) - 1
            passes = True
            if d >= 0:
                evaluated += 1
                if plain:
                    passes = data[UP(i), 1] <= key[UP(d)] <= data[UP(i), 2]
                else:
                    passes = _meets(v_lo, v_hi, first[d], count[d], data[i, 1], data[i, 2])
            if passes:
                passed[filled, 2], passed[filled, 3] = data[UP(i), 0] >> 32, x
                filled += 1
                if filled == _BLOCK:
                    more, tests = _verify(hot, records, batch, scratch, filled, plain, out, written + matched)
                    matched, evaluated, filled = matched + more, evaluated + tests, 0
            else:
                lost += 1
            i += 1
        hot[UP(x), LOST] += lost
    more, tests = _verify(hot, records, batch, scratch, filled, plain, out, written + matched)
    return matched + more, candidates, evaluated + tests


@lean_kernel
def _verify(
    hot: Any, records: Any, batch: Any, scratch: Any, filled: int, plain: bool, out: Any, written: int
) -> tuple[Any, Any]:
    """Verify a block of candidates by their records; returns the numbers of matches and of evaluated predicates."""
    rec_at, rec_size, words = records
    _, _, v_lo, v_hi = batch
    key, first, count = scratch.event
    passed = scratch.passed
    for i in range(filled):
        c = passed[UP(i), 2]
        passed[UP(i), 0], passed[UP(i), 1] = rec_at[UP(c)], rec_size[UP(c)]
    matched, tests, touched = I64(0), I64(0), I64(0)
    for i in range(filled):  # loads the first words of all records together
        if passed[UP(i), 1] > 0:
            touched |= words[UP(passed[UP(i), 0])]
    if touched == -1:  # never true: the compiler must not drop the reads
        return matched, tests
    for i in range(filled):
        size = passed[UP(i), 1]
        held = failing(words, passed[UP(i), 0], size, plain, key, first, count, v_lo, v_hi)
        tests += min(held + 1, size)
        if held == size:
            if written + matched < len(out):
                out[written + matched] = passed[UP(i), 2]
            matched += 1
        else:
            tested = words[UP(passed[UP(i), 0])] & 3 == SOME
            hot[UP(passed[UP(i), 3]), LOST] += held + 1 + tested
    return matched, tests


@inlined
def _meets(lo: Any, hi: Any, first: int, count: int, low: int, high: int) -> bool:
    """Whether some value of an event meets an interval."""
    for v in range(first, first + count):  # noqa: SIM110 - kernels know no generators
        if lo[v] <= high and low <= hi[v]:
            return True
    return False
