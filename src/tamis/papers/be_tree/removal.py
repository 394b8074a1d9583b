"""Deletion, merging and the removal of whole nodes, whose expressions are then inserted again.

The paper omits deletion: "conceptually similar to matching". Here the node and place of each conjunction are noted,
so deleting needs no search. An l-node underflows if it has fewer than min_size expressions:

- a leaf bucket is merged with its parent, together with the other half, if the parent is open (merge rule) and all of it fits;
- the expressions left in a top bucket are inserted again, and its p-node is removed;
- an empty node with nothing below it is removed, then the nodes above if they are empty too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.kernels.kernel import inlined, kernel, lean_kernel
from tamis.kernels.numbers import I64
from tamis.papers.be_tree.entries import count_gain, mark_path, settle, subsumed, unmark_path, unsettle
from tamis.papers.be_tree.nodes import (
    ABOVE,
    BELOW,
    CAP,
    CHANGES,
    COVERED,
    DATA_END,
    HALF,
    KIDS,
    LEAF,
    LEFT,
    LOSS,
    LOSS_BELOW,
    MIN_SIZE,
    NEXT,
    NODES,
    OWNER,
    PDIR,
    PENDING,
    SETTLED,
    SPLIT,
    SUBSUMED,
    TOP,
    UNSPLIT,
    add_up,
    append,
    close_window,
    free_node,
    free_pnode,
    half,
    parent_of,
    set_half,
)

AWAY = -1
"""The home of a conjunction that is not in the tree."""
WAITING = -2
"""The home of a conjunction that was taken out of the tree to be inserted again."""


@lean_kernel
def delete_rows(tree: Any, pairs: Any, records: Any, path: Any, home: Any, pending: Any, rows: Any, done: int) -> int:
    """Delete rows from one on. Returns the first row still there: it stops when too many rows wait to be inserted again."""
    hot, cold, pnode, data, state, _, due, limits, rates = tree
    rec_at, rec_size, words = records
    for r in range(done, len(rows)):
        c = rows[r]
        if state[PENDING] + limits[MIN_SIZE] > len(pending):
            return r
        x, place = home[c, 0], home[c, 1]
        home[c, 0] = AWAY
        if x == WAITING:
            continue
        used = mark_path(cold, pnode, x, path)
        equal = subsumed(cold, words, rec_at[c], rec_size[c], path)
        unmark_path(cold, pnode, x, path)
        count_gain(cold, pnode, x, -equal, equal - used)
        begin, last = hot[x, LEAF] >> 32, (hot[x, LEAF] & HALF) - 1
        for word in range(3):
            data[begin + place, word] = data[begin + last, word]
        home[data[begin + place, 0] >> 32, 1] = place
        hot[x, LEAF] -= 1
        cold[x, SETTLED] -= 1
        y = I64(x)
        while y >= 0:
            cold[y, BELOW] -= 1
            cold[y, CHANGES] += 1
            hot[y, LEFT] -= 1
            if hot[y, LEFT] <= 0:
                close_window(hot, cold, pnode, state, due, limits, rates, y)
            y = parent_of(cold, pnode, y)
        _underflow(tree, pairs, records, path, home, pending, x)
    return len(rows)


@lean_kernel
def _underflow(tree: Any, pairs: Any, records: Any, path: Any, home: Any, pending: Any, x: int) -> None:
    """Merge, reinsert or remove a node that may have become too small, and then the ones above."""
    hot, cold, pnode, data, state, _, _, limits, rates = tree
    firsts, seconds, values, taken = pairs
    rec_at, rec_size, words = records
    while x > 0 and hot[x, PDIR] == 0:
        if cold[x, BELOW] == 0:
            x = _vanish(hot, cold, pnode, data, state, firsts, seconds, values, taken, x)
        elif hot[x, KIDS] != 0:
            if not _can_merge(hot, cold, data, state, limits, x):
                break
            for upper in (False, True):
                child = half(hot, x, upper)
                if child > 0:
                    unsettle(cold, pnode, child)
                    begin = hot[child, LEAF] >> 32
                    for i in range(begin, begin + (hot[child, LEAF] & HALF)):
                        append(hot, cold, data, state, home, x, data[i, 0] >> 32)
                    hot[child, LEAF] = begin << 32
                    _vanish(hot, cold, pnode, data, state, firsts, seconds, values, taken, child)
            settle(hot, cold, pnode, data, state, limits, rates, rec_at, rec_size, words, path, x)
        else:
            hot[x, SPLIT] = UNSPLIT
            count = hot[x, LEAF] & HALF
            if count >= limits[MIN_SIZE]:
                break
            if cold[x, ABOVE] >= 0:
                x = cold[x, ABOVE]
            elif state[PENDING] + count <= len(pending):
                _take_out(hot, cold, pnode, data, state, home, pending, x)
            else:
                break


@inlined
def _can_merge(hot: Any, cold: Any, data: Any, state: Any, limits: Any, x: int) -> bool:
    """Whether both halves of an open bucket are open leaves, one of them underflows, and the bucket has room for both."""
    underflows = False
    for upper in (False, True):
        child = half(hot, x, upper)
        if child > 0:
            if hot[child, PDIR] != 0 or hot[child, KIDS] != 0:
                return False
            underflows |= hot[child, LEAF] & HALF < limits[MIN_SIZE]
    enough: bool = state[DATA_END] + 4 * cold[x, BELOW] + 8 <= len(data)
    return underflows and enough and cold[x, BELOW] <= cold[x, CAP]


@inlined
def _take_out(hot: Any, cold: Any, pnode: Any, data: Any, state: Any, home: Any, pending: Any, x: int) -> None:
    """Move all entries of an l-node to `pending`, to be inserted again. There must be room for them."""
    unsettle(cold, pnode, x)
    begin, count = hot[x, LEAF] >> 32, hot[x, LEAF] & HALF
    for i in range(begin, begin + count):
        c = data[i, 0] >> 32
        pending[state[PENDING]] = c
        state[PENDING] += 1
        home[c, 0] = WAITING
    hot[x, LEAF] = begin << 32
    add_up(cold, pnode, x, BELOW, -count)


@inlined
def _vanish(
    hot: Any, cold: Any, pnode: Any, data: Any, state: Any, firsts: Any, seconds: Any, values: Any, taken: Any, x: int
) -> Any:
    """Remove an empty node with nothing below it, and with a top bucket also its p-node; returns the node above."""
    above, p = parent_of(cold, pnode, x), cold[x, OWNER]
    add_up(cold, pnode, x, LOSS_BELOW, -cold[x, LOSS])
    if cold[x, ABOVE] >= 0:
        set_half(hot, above, half(hot, above, True) == x, 0)
    else:
        free_pnode(hot, pnode, state, firsts, seconds, values, taken, p)
    free_node(hot, cold, data, state, x)
    return above


@kernel
def uproot(tree: Any, pairs: Any, records: Any, path: Any, home: Any, pending: Any, x: int) -> None:
    """Remove a node and all below it. Their expressions go to `pending`, which must have room, to be inserted again."""
    hot, cold, pnode, data, state, _, _, _, _ = tree
    firsts, seconds, values, taken = pairs
    nodes = np.empty(state[NODES], np.int64)
    nodes[0] = x
    reached, count = 0, 1
    while reached < count:  # all nodes below, parents before children
        y = nodes[reached]
        reached += 1
        for child in (hot[y, KIDS] >> 32, hot[y, KIDS] & HALF):
            if child > 0:
                nodes[count] = child
                count += 1
        p = hot[y, PDIR] & HALF
        while p > 0:
            nodes[count] = pnode[p, TOP]
            count += 1
            p = pnode[p, NEXT]
    above = parent_of(cold, pnode, x)
    add_up(cold, pnode, above, BELOW, -cold[x, BELOW])
    add_up(cold, pnode, above, SUBSUMED, -cold[x, SUBSUMED])
    add_up(cold, pnode, above, COVERED, -cold[x, COVERED])
    add_up(cold, pnode, above, LOSS_BELOW, -cold[x, LOSS_BELOW])
    for reached in range(count - 1, -1, -1):
        y = nodes[reached]
        begin = hot[y, LEAF] >> 32
        for i in range(begin, begin + (hot[y, LEAF] & HALF)):
            c = data[i, 0] >> 32
            pending[state[PENDING]] = c
            state[PENDING] += 1
            home[c, 0] = WAITING
        if cold[y, ABOVE] >= 0:
            set_half(hot, cold[y, ABOVE], half(hot, cold[y, ABOVE], True) == y, 0)
        else:
            free_pnode(hot, pnode, state, firsts, seconds, values, taken, cold[y, OWNER])
        free_node(hot, cold, data, state, y)
    _underflow(tree, pairs, records, path, home, pending, above)
