"""Matching: MatchBETree and SearchCDir (algorithms 1 and 2), with a stack in place of the recursion.

An event's values may be several, or intervals: a bucket is entered if some value meets its boundary. Of a plain event one value
leads down one path of a c-directory, the nodes of which are put on the stack if they have entries or p-nodes.
"""

from __future__ import annotations

from typing import Any

from tamis.encoding.kernel import inlined, lean_kernel
from tamis.encoding.numbers import UP
from tamis.index.be_tree.nodes import (
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
from tamis.index.collecting import CANDIDATES, NODES, PREDICATES
from tamis.index.pair_map import slot_of
from tamis.index.records import failing, load_event, unload_event


@lean_kernel
def match_events(
    tree: Any,
    pairs: Any,
    records: Any,
    batch: Any,
    scratch: Any,
    stack: Any,
    event: int,
    counts: Any,
    out: Any,
    work: Any,
) -> int:
    """Match events from one on, as `collecting` wants it. `stack` has two rows, each as long as there are nodes."""
    hot, cold, pnode, data, state, _, due, limits, rates = tree
    firsts, seconds, values, _ = pairs
    rec_at, rec_size, words = records
    v_start, v_dimension, v_lo, v_hi = batch
    key, first, count = scratch
    nodes, buckets = stack
    written = 0
    while event < len(v_start) - 1:
        begin, end = v_start[event], v_start[event + 1]
        plain = load_event(begin, end, v_dimension, v_lo, v_hi, key, first, count)
        attributes = 0
        for v in range(begin, end):
            attributes += first[v_dimension[v]] == v
        candidates, evaluated, visited, matched = 0, 0, 1, 0
        nodes[0] = 0
        height = 1
        if hot[0, LEFT] <= 0:
            close_window(hot, cold, pnode, state, due, limits, rates, 0)
        hot[0, LEFT] -= 1
        while height > 0:
            height -= 1
            x = nodes[height]
            leaf, directory = hot[UP(x), LEAF], hot[UP(x), PDIR]
            # CheckSub
            lost, i = 0, leaf >> 32
            last = i + (leaf & HALF)
            candidates += last - i
            while i < last:
                c, d = data[UP(i), 0] >> 32, (data[UP(i), 0] & HALF) - 1
                tests = 0
                passed = True
                if d >= 0:
                    tests = 1
                    if plain:
                        passed = data[UP(i), 1] <= key[UP(d)] <= data[UP(i), 2]
                    else:
                        passed = _meets(v_lo, v_hi, first[d], count[d], data[i, 1], data[i, 2])
                if passed:
                    size = rec_size[UP(c)]
                    held = failing(words, rec_at[UP(c)], size, plain, key, first, count, v_lo, v_hi)
                    tests += min(held + 1, size)
                    passed = held == size
                if passed:
                    if written + matched < len(out):
                        out[written + matched] = c
                    matched += 1
                else:
                    lost += tests
                evaluated += tests
                i += 1
            hot[UP(x), LOST] += lost
            # The p-directory, by the shorter way: along its p-nodes, or along the event's attributes.
            p, v = directory & HALF, begin
            listed = directory >> 32 <= attributes
            while p > 0 and (listed or v < end):
                if listed:
                    d, entered = pnode[UP(p), ATTR], p
                    p = pnode[UP(p), NEXT]
                else:
                    d, entered = v_dimension[v], 0
                    if first[d] == v:
                        entered = max(values[slot_of(firsts, seconds, values, x, d)], 0)
                    v += 1
                if entered == 0 or count[UP(d)] == 0:
                    continue
                # SearchCDir
                y = pnode[UP(entered), TOP]
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
                        if hot[UP(y), LEAF] & HALF or hot[UP(y), PDIR]:
                            nodes[height] = y
                            height += 1
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
                    nodes[height] = y
                    height += 1
                    for child in (hot[y, KIDS] >> 32, hot[y, KIDS] & HALF):
                        if child > 0:
                            buckets[left] = child
                            left += 1
        unload_event(begin, end, v_dimension, key, count)
        if written + matched > len(out):
            break
        counts[event] = matched
        written += matched
        work[CANDIDATES] += candidates
        work[PREDICATES] += evaluated
        work[NODES] += visited
        event += 1
    return event


@inlined
def _meets(lo: Any, hi: Any, first: int, count: int, low: int, high: int) -> bool:
    """Whether some value of an event meets an interval."""
    for v in range(first, first + count):  # noqa: SIM110 - kernels know no generators
        if lo[v] <= high and low <= hi[v]:
            return True
    return False
