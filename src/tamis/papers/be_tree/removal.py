"""Deletion, merging and the removal of whole nodes, whose expressions are then inserted again.

The paper omits deletion: "conceptually similar to matching". Here the node and place of each conjunction are noted,
so deleting needs no search. An l-node underflows if it has fewer than min_size expressions:

- a leaf bucket is merged with its parent, together with the other half, if the parent is open (merge rule) and all of it fits;
- the expressions left in a top bucket are inserted again, and its p-node is removed;
- an empty node with nothing below it is removed, then the nodes above if they are empty too.
"""

from __future__ import annotations

from tamis.kernels.bits import first_half, halves, second_half
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, I32s
from tamis.papers.be_tree.entries import count_gain, mark_path, settle, subsumed, unmark_path, unsettle
from tamis.papers.be_tree.nodes import (
    ABOVE,
    BELOW,
    CAP,
    COVERED,
    DATA_END,
    ENTRY,
    KIDS,
    LEAF,
    LOSS,
    LOSS_BELOW,
    NEXT,
    NODE,
    OWNER,
    PDIR,
    PENDING,
    PLACE,
    SETTLED,
    SPLIT,
    SUBSUMED,
    TOP,
    UNSPLIT,
    Home,
    Tree,
    add_up,
    append,
    copy_entry,
    count_change,
    entries_at,
    free_node,
    free_pnode,
    half,
    parent_of,
    set_half,
)
from tamis.papers.parts.records import RecordArrays, Words

AWAY = -1
"""The home of a conjunction that is not in the tree."""
WAITING = -2
"""The home of a conjunction that was taken out of the tree to be inserted again."""


@lean_kernel
def delete_rows(
    tree: Tree, records: RecordArrays, path: Words, home: Home, pending: I32s, rows: I32s, done: int
) -> int:
    """Delete rows from one on. Returns the first row still there: it stops when too many rows wait to be inserted again."""
    hot, cold, data = tree.hot, tree.cold, tree.data
    for r in range(done, len(rows)):
        c = rows[r]
        if tree.state[PENDING] + tree.settings.min_size > len(pending):
            return r
        x, place = home[c, NODE], home[c, PLACE]
        home[c, NODE] = AWAY
        if x == WAITING:
            continue
        used = mark_path(tree, x, path)
        equal = subsumed(cold, records, c, path)
        unmark_path(tree, x, path)
        count_gain(tree, x, -equal, equal - used)
        begin, count = entries_at(hot, x)
        copy_entry(data, begin + count - 1, begin + place)
        home[first_half(data[begin + place, ENTRY]), PLACE] = place
        hot[x, LEAF] -= 1
        cold[x, SETTLED] -= 1
        y = I64(x)
        while y >= 0:
            count_change(tree, y, -1)
            y = parent_of(tree, y)
        _underflow(tree, records, path, home, pending, x)
    return len(rows)


@lean_kernel
def _underflow(tree: Tree, records: RecordArrays, path: Words, home: Home, pending: I32s, x: int) -> None:
    """Merge, reinsert or remove a node that may have become too small, and then the ones above."""
    hot, cold = tree.hot, tree.cold
    while x > 0 and hot[x, PDIR] == 0:
        if cold[x, BELOW] == 0:
            x = _vanish(tree, x)
        elif hot[x, KIDS] != 0:
            if not _can_merge(tree, x):
                break
            for upper in (False, True):
                child = half(hot, x, upper)
                if child > 0:
                    unsettle(tree, child)
                    begin, count = entries_at(hot, child)
                    for i in range(begin, begin + count):
                        append(tree, home, x, first_half(tree.data[i, ENTRY]))
                    hot[child, LEAF] = halves(begin, 0)
                    _vanish(tree, child)
            settle(tree, records, path, x)
        else:
            hot[x, SPLIT] = UNSPLIT
            count = second_half(hot[x, LEAF])
            if count >= tree.settings.min_size:
                break
            if cold[x, ABOVE] >= 0:
                x = cold[x, ABOVE]
            elif tree.state[PENDING] + count <= len(pending):
                unsettle(tree, x)
                _take_out(tree, home, pending, x)
                add_up(tree, x, BELOW, -count)
            else:
                break


@inlined
def _can_merge(tree: Tree, x: int) -> bool:
    """Whether both halves of an open bucket are open leaves, one of them underflows, and the bucket has room for both."""
    hot, below = tree.hot, tree.cold[x, BELOW]
    underflows = False
    for upper in (False, True):
        child = half(hot, x, upper)
        if child > 0:
            if hot[child, PDIR] != 0 or hot[child, KIDS] != 0:
                return False
            underflows |= second_half(hot[child, LEAF]) < tree.settings.min_size
    enough = tree.state[DATA_END] + 4 * below + 8 <= len(tree.data)
    return underflows and enough and below <= tree.cold[x, CAP]


@inlined
def _take_out(tree: Tree, home: Home, pending: I32s, x: int) -> None:
    """Move all entries of an l-node to `pending`, to be inserted again. There must be room for them."""
    begin, count = entries_at(tree.hot, x)
    for i in range(begin, begin + count):
        c = first_half(tree.data[i, ENTRY])
        pending[tree.state[PENDING]] = c
        tree.state[PENDING] += 1
        home[c, NODE] = WAITING
    tree.hot[x, LEAF] = halves(begin, 0)


@inlined
def _vanish(tree: Tree, x: int) -> int:
    """Remove an empty node with nothing below it, and with a top bucket also its p-node; returns the node above."""
    above = parent_of(tree, x)
    add_up(tree, x, LOSS_BELOW, -tree.cold[x, LOSS])
    _remove(tree, x)
    return above


@inlined
def _remove(tree: Tree, x: int) -> None:
    """Free a node, and with a top bucket also its p-node."""
    above = tree.cold[x, ABOVE]
    if above >= 0:
        set_half(tree.hot, above, half(tree.hot, above, True) == x, 0)
    else:
        free_pnode(tree, tree.cold[x, OWNER])
    free_node(tree, x)


@lean_kernel
def uproot(tree: Tree, records: RecordArrays, path: Words, home: Home, pending: I32s, nodes: Words, x: int) -> None:
    """Remove a node and all below it, which are written to `nodes`.

    Their expressions go to `pending`, to be inserted again. Both arrays must have room.
    """
    hot = tree.hot
    nodes[0] = x
    reached, count = 0, 1
    while reached < count:  # all nodes below, parents before children
        y = nodes[reached]
        reached += 1
        for upper in (False, True):
            child = half(hot, y, upper)
            if child > 0:
                nodes[count] = child
                count += 1
        p = second_half(hot[y, PDIR])
        while p > 0:
            nodes[count] = tree.pnode[p, TOP]
            count += 1
            p = tree.pnode[p, NEXT]
    above = parent_of(tree, x)
    for column in (BELOW, SUBSUMED, COVERED, LOSS_BELOW):
        add_up(tree, above, column, -tree.cold[x, column])
    for i in range(count - 1, -1, -1):
        _take_out(tree, home, pending, nodes[i])
        _remove(tree, nodes[i])
    _underflow(tree, records, path, home, pending, above)
