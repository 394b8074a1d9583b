"""Insertion: InsertBETree, InsertCDir, SpacePartitioning and SpaceClustering (algorithms 3 to 6).

The paper uses recursion. Here a stack of tasks lets a kernel stop when room is lacking and go on later. A task is a node whose
l-node may be too full, and a flag: cluster it first or not.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.bits import first_half, flag_in, halves, number_in, second_half
from tamis.kernels.kernel import inlined, kernel, lean_kernel
from tamis.kernels.numbers import F64, I64, I32s
from tamis.papers.be_tree.domains import DomainArrays, behind, middle
from tamis.papers.be_tree.entries import ABSENT, interval_at, interval_on, settle, unsettle
from tamis.papers.be_tree.nodes import (
    ATTR,
    B_HI,
    B_LO,
    BELOW,
    CAP,
    CLUSTER,
    ENTRY,
    LEAF,
    NEXT,
    OWNER,
    PARTITION,
    PDIR,
    PLACE,
    SPLIT,
    SPLITS,
    STRANGER,
    T_HI,
    T_LO,
    TASKS,
    TOP,
    UNSPLIT,
    WHOLE,
    Columns,
    Home,
    Tree,
    add_task,
    append,
    count_change,
    entries_at,
    half,
    has_room,
    new_node,
    parent_of,
    rank_of,
    room_for,
    set_half,
    set_room,
    widen,
)
from tamis.papers.be_tree.partitioning import Scratch, space_partitioning, update_capacity
from tamis.papers.parts.pair_map import FREE, value_of
from tamis.papers.parts.records import RecordArrays, Words, dimension_in, following, mode_in

# -- InsertBETree


@kernel
def insert_rows(
    tree: Tree, records: RecordArrays, domains: DomainArrays, scratch: Scratch, home: Home, rows: I32s, done: int
) -> int:
    """Insert rows from one on. Returns the first row not inserted: room was lacking, or it is a stranger to its bucket."""
    state = tree.state
    state[STRANGER] = 0
    if not work_off(tree, records, domains, scratch, home):
        return done
    for r in range(done, len(rows)):
        if not _insert(tree, records, domains, scratch, home, rows[r]):
            return r
        if state[TASKS] > 0 and not work_off(tree, records, domains, scratch, home):
            return r + 1
    return len(rows)


@lean_kernel
def _insert(tree: Tree, records: RecordArrays, domains: DomainArrays, scratch: Scratch, home: Home, c: int) -> bool:
    """Insert a conjunction, and note a task if its l-node is too full then. False if room is lacking or it is a stranger."""
    hot = tree.hot
    _want(records, c, scratch)
    x, missing = _find_place(tree, records, c, scratch)
    enough = has_room(tree, 2 * second_half(hot[x, LEAF]) + 4) and tree.state[STRANGER] == 0
    if enough:
        if missing > 0:
            x = _new_half(tree, domains, x, missing == 2)
        append(tree, home, x, c)
        _pass_down(tree, scratch, x)
        if second_half(hot[x, LEAF]) > tree.cold[x, CAP]:
            add_task(tree, x, CLUSTER if x > 0 else PARTITION)
        else:
            settle(tree, records, scratch.path, x)
    _unwant(records, c, scratch.wanted)
    return enough


@lean_kernel
def fill_root(tree: Tree, home: Home, rows: I32s) -> None:
    """Put all rows into the root's l-node, for which there is room, to be partitioned together (BE-B)."""
    set_room(tree, 0, room_for(len(rows)))
    for c in rows:
        append(tree, home, 0, c)
    tree.cold[0, BELOW] += len(rows)
    add_task(tree, 0, PARTITION)


@inlined
def _want(records: RecordArrays, c: int, scratch: Scratch) -> None:
    """Lay out the intervals of a conjunction by dimension. Of several predicates on a dimension, the first counts."""
    words, at = records.words, records.at[c]
    for _ in range(records.size[c]):
        d = dimension_in(words[at])
        if mode_in(words[at]) != ABSENT and scratch.wanted[d] == 0:
            scratch.wanted[d] = 1
            scratch.wanted_lo[d], scratch.wanted_hi[d] = interval_at(words, at)
        at = following(words, at)


@inlined
def _unwant(records: RecordArrays, c: int, wanted: Words) -> None:
    at = records.at[c]
    for _ in range(records.size[c]):
        wanted[dimension_in(records.words[at])] = 0
        at = following(records.words, at)


@inlined
def _find_place(tree: Tree, records: RecordArrays, c: int, scratch: Scratch) -> tuple[int, int]:
    """The node for a conjunction, and the half of it to be made, as in `_insert_cdir`.

    STRANGER becomes the bucket to which the conjunction is a stranger, if there is one.
    """
    hot, cold = tree.hot, tree.cold
    x, missing = I64(0), I64(0)
    while missing == 0:
        p = _best_partition(tree, records, c, scratch.wanted, x)
        if p == 0:
            break
        d = tree.pnode[p, ATTR]
        scratch.wanted[d] = 0
        lo, hi = scratch.wanted_lo[d], scratch.wanted_hi[d]
        x, missing = _insert_cdir(hot, tree.pnode[p, TOP], lo, hi)
        # In a bucket that is partitioned but not split, all expressions have the same interval.
        same = hot[x, T_LO] == lo and hot[x, T_HI] == hi
        if hot[x, PDIR] > 0 and hot[x, SPLIT] == UNSPLIT and cold[x, B_LO] < cold[x, B_HI] and not same:
            tree.state[STRANGER] = x
            break
    return x, missing


@inlined
def _best_partition(tree: Tree, records: RecordArrays, c: int, wanted: Words, x: int) -> int:
    """The p-node of a c-node with the highest score whose attribute the expression has and has not used; 0 if there is none."""
    pnode, size = tree.pnode, records.size[c]
    number, p = first_half(tree.hot[x, PDIR]), second_half(tree.hot[x, PDIR])
    best, highest = I64(0), F64(-np.inf)
    if number <= 2 * size:
        while p > 0:
            if wanted[pnode[p, ATTR]]:
                rank = rank_of(tree.cold, tree.settings, pnode[p, TOP])
                if rank > highest or (rank == highest and pnode[p, ATTR] < pnode[best, ATTR]):
                    best, highest = p, rank
            p = pnode[p, NEXT]
        return best
    at = records.at[c]
    for _ in range(size):
        d = dimension_in(records.words[at])
        if wanted[d]:
            p = value_of(tree.pairs, x, d)
            if p != FREE:
                rank = rank_of(tree.cold, tree.settings, pnode[p, TOP])
                if rank > highest or (rank == highest and d < pnode[best, ATTR]):
                    best, highest = p, rank
        at = following(records.words, at)
    return best


@inlined
def _insert_cdir(hot: Columns, x: int, lo: int, hi: int) -> tuple[int, int]:
    """InsertCDir: the smallest bucket that encloses an interval, and 1 or 2 if a half of it without a node does, else 0."""
    while hot[x, SPLIT] != UNSPLIT:
        upper = lo > hot[x, SPLIT]
        if not upper and hi > hot[x, SPLIT]:
            break
        child = half(hot, x, upper)
        if child == 0:
            return x, I64(2 if upper else 1)
        x = child
    return x, I64(0)


@inlined
def _new_half(tree: Tree, domains: DomainArrays, x: int, upper: bool) -> int:
    """Make the node of a half."""
    pnode, p = tree.pnode, tree.cold[x, OWNER]
    lo, cut, hi = tree.cold[x, B_LO], tree.hot[x, SPLIT], tree.cold[x, B_HI]
    if upper:
        lo = behind(domains.kind[pnode[p, ATTR]], pnode[p, WHOLE], cut, hi)
    child = new_node(tree, lo, hi if upper else cut, x, p)
    set_half(tree.hot, x, upper, child)
    return child


@inlined
def _pass_down(tree: Tree, scratch: Scratch, x: int) -> None:
    """Count an expression in all nodes on its way, and widen their boundaries."""
    while x >= 0:
        p = tree.cold[x, OWNER]
        if p > 0:
            d = tree.pnode[p, ATTR]
            widen(tree.hot, x, scratch.wanted_lo[d], scratch.wanted_hi[d])
        count_change(tree, x, 1)
        x = parent_of(tree, x)


# -- the two phases


@kernel
def work_off(tree: Tree, records: RecordArrays, domains: DomainArrays, scratch: Scratch, home: Home) -> bool:
    """Do all tasks; False if there is not enough room."""
    while tree.state[TASKS] > 0:
        task, enough, is_dense = _space_clustering(tree, records, domains, scratch, home)
        if is_dense:
            enough = space_partitioning(tree, records, domains, scratch, home, number_in(task))
        if not enough:
            add_task(tree, number_in(task), flag_in(task))
            return False
    return True


@lean_kernel
def _space_clustering(
    tree: Tree, records: RecordArrays, domains: DomainArrays, scratch: Scratch, home: Home
) -> tuple[int, bool, bool]:
    """SpaceClustering: take a task, and split its bucket if that can be split.

    Returns the task, whether there was room, and whether the l-node is still to be partitioned.
    """
    hot, cold = tree.hot, tree.cold
    tree.state[TASKS] -= 1
    task = tree.tasks[tree.state[TASKS]]
    x, enough = number_in(task), True
    if second_half(hot[x, LEAF]) > cold[x, CAP]:
        unsettle(tree, x)
        if flag_in(task) == PARTITION or hot[x, SPLIT] != UNSPLIT or _is_atomic(tree, records, x):
            return task, True, True
        enough = _split(tree, records, domains, home, x)
    elif flag_in(task) == PARTITION:
        update_capacity(tree, x, second_half(hot[x, LEAF]), True)  # What a split has left needs no partition.
    if enough and second_half(hot[x, LEAF]) <= cold[x, CAP]:
        settle(tree, records, scratch.path, x)
    return task, enough, False


@kernel
def split_bucket(tree: Tree, records: RecordArrays, domains: DomainArrays, home: Home, x: int) -> bool:
    """Split a bucket that is partitioned; what lies below its p-nodes stays there. False if there is not enough room."""
    unsettle(tree, x)
    return _split(tree, records, domains, home, x)


@inlined
def _is_atomic(tree: Tree, records: RecordArrays, x: int) -> bool:
    """Whether a bucket cannot be split, or no cut can separate its expressions: all have the same interval."""
    hot, cold = tree.hot, tree.cold
    if cold[x, B_LO] >= cold[x, B_HI]:
        return True
    d = tree.pnode[cold[x, OWNER], ATTR]
    begin, count = entries_at(hot, x)
    low, high = I64(0), I64(0)
    for i in range(count):
        lo, hi = interval_on(records, first_half(tree.data[begin + i, ENTRY]), d)
        if i == 0:
            low, high = lo, hi
        elif lo != low or hi != high:
            return False
    hot[x, T_LO], hot[x, T_HI] = low, high  # expressions with another interval are strangers
    return True


@lean_kernel
def _split(tree: Tree, records: RecordArrays, domains: DomainArrays, home: Home, x: int) -> bool:
    """SpaceClustering, lines 7 to 16: cut a bucket in halves, move the expressions that they enclose, partition the rest."""
    hot, cold, data = tree.hot, tree.cold, tree.data
    begin, count = entries_at(hot, x)
    if not has_room(tree, 2 * count + 16):
        return False
    p = cold[x, OWNER]
    d = tree.pnode[p, ATTR]
    cut = middle(domains.kind[d], tree.pnode[p, WHOLE], cold[x, B_LO], cold[x, B_HI])
    hot[x, SPLIT] = cut
    tree.state[SPLITS] += 1
    lower, upper = I64(0), I64(0)
    for i in range(begin, begin + count):
        lo, hi = interval_on(records, first_half(data[i, ENTRY]), d)
        if hi <= cut:
            lower += 1
        elif lo > cut:
            upper += 1
    add_task(tree, x, PARTITION)
    for is_upper in (False, True):
        number = upper if is_upper else lower
        if number > 0:
            child = _new_half(tree, domains, x, is_upper)
            set_room(tree, child, room_for(number))
            add_task(tree, child, CLUSTER)
    kept = I64(0)
    for i in range(begin, begin + count):
        c = first_half(data[i, ENTRY])
        lo, hi = interval_on(records, c, d)
        if hi <= cut or lo > cut:
            child = half(hot, x, lo > cut)
            append(tree, home, child, c)
            widen(hot, child, lo, hi)
            cold[child, BELOW] += 1
        else:
            data[begin + kept, ENTRY] = halves(I64(c), 0)
            home[c, PLACE] = kept
            kept += 1
    hot[x, LEAF] = halves(begin, kept)
    return True
