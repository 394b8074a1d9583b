"""Insertion: InsertBETree, InsertCDir, SpacePartitioning and SpaceClustering (algorithms 3 to 6).

The paper uses recursion. Here a stack of tasks lets a kernel stop when room is lacking and go on later. A task is a node whose
l-node may be too full, and a flag: cluster it first or not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.numbers import F64, I64
from tamis.papers.be_tree.domains import behind, middle
from tamis.papers.be_tree.entries import (
    ABSENT,
    following,
    interval_at,
    predicate_on,
    settle,
    unsettle,
)
from tamis.papers.be_tree.nodes import (
    ATTR,
    B_HI,
    B_LO,
    BELOW,
    CAP,
    CHANGES,
    CLUSTER,
    HALF,
    LEAF,
    LEFT,
    MAX_CAP,
    NEXT,
    OWNER,
    PARTITION,
    PDIR,
    SPLIT,
    SPLITS,
    STRANGER,
    T_HI,
    T_LO,
    TASKS,
    TOP,
    UNSPLIT,
    WHOLE,
    append,
    close_window,
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
from tamis.papers.be_tree.partitioning import space_partitioning, update_capacity
from tamis.papers.parts.pair_map import FREE, slot_of


class Scratch(NamedTuple):
    """Arrays by dimension. Kernels leave them in their initial state, except `wanted_lo`, `wanted_hi` and `slot`."""

    score: npt.NDArray[np.float64]
    """The score of an attribute in the l-node that is partitioned."""
    path: npt.NDArray[np.int64]
    """The bucket on the path to a node, 0 where its attribute is not used there."""
    wanted: npt.NDArray[np.int64]
    """Whether the expression in hand has an interval there that is not used yet."""
    wanted_lo: npt.NDArray[np.int64]
    wanted_hi: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    """How many expressions of an l-node have the attribute."""
    seen: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int64]


def scratch_of(dimensions: int) -> Scratch:
    """Scratch for `dimensions` dimensions."""
    columns = [np.zeros(dimensions, np.int64) for _ in Scratch._fields[1:]]
    return Scratch(np.zeros(dimensions, np.float64), *columns)


# -- InsertBETree


@kernel
def insert_rows(
    tree: Any, pairs: Any, records: Any, domains: Any, scratch: Any, home: Any, rows: Any, done: int
) -> int:
    """Insert rows from one on. Returns the first row not inserted: room was lacking, or it is a stranger to its bucket."""
    hot, cold, pnode, data, state, tasks, due, limits, rates = tree
    firsts, seconds, values, taken = pairs
    rec_at, rec_size, words = records
    path, wanted, wanted_lo, wanted_hi = scratch.path, scratch.wanted, scratch.wanted_lo, scratch.wanted_hi
    state[STRANGER] = 0
    if not work_off(tree, pairs, records, domains, scratch, home):
        return done
    for r in range(done, len(rows)):
        c = rows[r]
        at, size = rec_at[c], rec_size[c]
        want(words, at, size, wanted, wanted_lo, wanted_hi)
        x, missing = I64(0), I64(0)
        while missing == 0:
            p = _best_partition(hot, cold, pnode, rates, firsts, seconds, values, words, at, size, wanted, x)
            if p == 0:
                break
            d = pnode[p, ATTR]
            wanted[d] = 0
            x, missing = _insert_cdir(hot, pnode[p, TOP], wanted_lo[d], wanted_hi[d])
            # In a bucket that is partitioned but not split, all expressions have the same interval.
            same = hot[x, T_LO] == wanted_lo[d] and hot[x, T_HI] == wanted_hi[d]
            if hot[x, PDIR] > 0 and hot[x, SPLIT] == UNSPLIT and cold[x, B_LO] < cold[x, B_HI] and not same:
                state[STRANGER] = x
                break
        room = has_room(hot, pnode, data, state, tasks, values, taken, 2 * (hot[x, LEAF] & HALF) + 4)
        if room and state[STRANGER] == 0:
            if missing > 0:
                x = _new_half(hot, cold, pnode, state, domains, limits, x, missing == 2)
            append(hot, cold, data, state, home, x, c)
            _pass_down(hot, cold, pnode, state, due, limits, rates, wanted_lo, wanted_hi, x)
            if hot[x, LEAF] & HALF > cold[x, CAP]:
                tasks[state[TASKS]] = x << 1 | (CLUSTER if x > 0 else PARTITION)
                state[TASKS] += 1
            else:
                settle(hot, cold, pnode, data, state, limits, rates, rec_at, rec_size, words, path, x)
        unwant(words, at, size, wanted)
        if not room or state[STRANGER] > 0:
            return r
        if state[TASKS] > 0 and not work_off(tree, pairs, records, domains, scratch, home):
            return r + 1
    return len(rows)


@kernel
def fill_root(tree: Any, home: Any, rows: Any) -> None:
    """Put all rows into the root's l-node, for which there is room, to be partitioned together (BE-B)."""
    hot, cold, _, data, state, tasks, _, _, _ = tree
    set_room(hot, cold, data, state, 0, room_for(len(rows)))
    for c in rows:
        append(hot, cold, data, state, home, 0, c)
    cold[0, BELOW] += len(rows)
    tasks[state[TASKS]] = PARTITION
    state[TASKS] += 1


@inlined
def want(words: Any, at: int, size: int, wanted: Any, wanted_lo: Any, wanted_hi: Any) -> None:
    """Lay out the intervals of a record by dimension. Of several predicates on a dimension, the first counts."""
    for _ in range(size):
        head = words[at]
        d = head >> 32
        if head & 3 != ABSENT and wanted[d] == 0:
            wanted[d] = 1
            wanted_lo[d], wanted_hi[d] = interval_at(words, at)
        at = following(words, at)


@inlined
def unwant(words: Any, at: int, size: int, wanted: Any) -> None:
    for _ in range(size):
        wanted[words[at] >> 32] = 0
        at = following(words, at)


@inlined
def _best_partition(
    hot: Any,
    cold: Any,
    pnode: Any,
    rates: Any,
    firsts: Any,
    seconds: Any,
    values: Any,
    words: Any,
    at: int,
    size: int,
    wanted: Any,
    x: int,
) -> Any:
    """The p-node of a c-node with the highest score whose attribute the expression has and has not used; 0 if there is none."""
    number, p = hot[x, PDIR] >> 32, hot[x, PDIR] & HALF
    best, highest = I64(0), F64(-np.inf)
    if number <= 2 * size:
        while p > 0:
            if wanted[pnode[p, ATTR]]:
                rank = rank_of(cold, rates, pnode[p, TOP])
                if rank > highest or (rank == highest and pnode[p, ATTR] < pnode[best, ATTR]):
                    best, highest = p, rank
            p = pnode[p, NEXT]
        return best
    for _ in range(size):
        d = words[at] >> 32
        if wanted[d]:
            p = values[slot_of(firsts, seconds, values, x, d)]
            if p != FREE:
                rank = rank_of(cold, rates, pnode[p, TOP])
                if rank > highest or (rank == highest and d < pnode[best, ATTR]):
                    best, highest = p, rank
        at = following(words, at)
    return best


@inlined
def _insert_cdir(hot: Any, x: int, lo: int, hi: int) -> tuple[Any, Any]:
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
def _new_half(hot: Any, cold: Any, pnode: Any, state: Any, domains: Any, limits: Any, x: int, upper: bool) -> Any:
    """Make the node of a half."""
    p = cold[x, OWNER]
    cut = hot[x, SPLIT]
    lo, hi = cold[x, B_LO], cut
    if upper:
        lo, hi = behind(domains.kind[pnode[p, ATTR]], pnode[p, WHOLE], cut, cold[x, B_HI]), cold[x, B_HI]
    child = new_node(hot, cold, state, lo, hi, x, p, limits[MAX_CAP])
    set_half(hot, x, upper, child)
    return child


@inlined
def _pass_down(
    hot: Any,
    cold: Any,
    pnode: Any,
    state: Any,
    due: Any,
    limits: Any,
    rates: Any,
    wanted_lo: Any,
    wanted_hi: Any,
    x: int,
) -> None:
    """Count an expression in all nodes on its way, and widen their boundaries."""
    while x >= 0:
        p = cold[x, OWNER]
        if p > 0:
            d = pnode[p, ATTR]
            widen(hot, x, wanted_lo[d], wanted_hi[d])
        cold[x, BELOW] += 1
        cold[x, CHANGES] += 1
        hot[x, LEFT] -= 1
        if hot[x, LEFT] <= 0:
            close_window(hot, cold, pnode, state, due, limits, rates, x)
        x = parent_of(cold, pnode, x)


# -- the two phases


@kernel
def work_off(tree: Any, pairs: Any, records: Any, domains: Any, scratch: Any, home: Any) -> bool:
    """Do all tasks; False if there is not enough room."""
    hot, cold, pnode, data, state, tasks, _, limits, rates = tree
    rec_at, rec_size, words = records
    while state[TASKS] > 0:
        state[TASKS] -= 1
        task = tasks[state[TASKS]]
        x = task >> 1
        if hot[x, LEAF] & HALF > cold[x, CAP]:
            unsettle(cold, pnode, x)
            if (
                task & 1 == CLUSTER
                and hot[x, SPLIT] == UNSPLIT
                and not _is_atomic(hot, cold, pnode, data, rec_at, rec_size, words, x)
            ):
                enough = _split(tree, pairs, records, domains, home, x)
            else:
                enough = space_partitioning(tree, pairs, records, domains, scratch, home, x)
            if not enough:
                tasks[state[TASKS]] = task
                state[TASKS] += 1
                return False
        elif task & 1 == PARTITION:
            update_capacity(cold, limits, x, hot[x, LEAF] & HALF, True)  # What a split has left needs no partition.
        if hot[x, LEAF] & HALF <= cold[x, CAP]:
            settle(hot, cold, pnode, data, state, limits, rates, rec_at, rec_size, words, scratch.path, x)
    return True


@inlined
def _is_atomic(hot: Any, cold: Any, pnode: Any, data: Any, rec_at: Any, rec_size: Any, words: Any, x: int) -> bool:
    """Whether a bucket cannot be split, or no cut can separate its expressions: all have the same interval."""
    if cold[x, B_LO] >= cold[x, B_HI]:
        return True
    d = pnode[cold[x, OWNER], ATTR]
    begin, count = hot[x, LEAF] >> 32, hot[x, LEAF] & HALF
    low, high = I64(0), I64(0)
    for i in range(count):
        c = data[begin + i, 0] >> 32
        lo, hi = interval_at(words, predicate_on(words, rec_at[c], rec_size[c], d))
        if i == 0:
            low, high = lo, hi
        elif lo != low or hi != high:
            return False
    hot[x, T_LO], hot[x, T_HI] = low, high  # expressions with another interval are strangers
    return True


@kernel
def _split(tree: Any, pairs: Any, records: Any, domains: Any, home: Any, x: int) -> bool:
    """SpaceClustering, lines 7 to 16: cut a bucket in halves, move the expressions that they enclose, partition the rest."""
    hot, cold, pnode, data, state, tasks, _, limits, _ = tree
    rec_at, rec_size, words = records
    begin, count = hot[x, LEAF] >> 32, hot[x, LEAF] & HALF
    if not has_room(hot, pnode, data, state, tasks, pairs.value, pairs.pairs, 2 * count + 16):
        return False
    p = cold[x, OWNER]
    d = pnode[p, ATTR]
    cut = middle(domains.kind[d], pnode[p, WHOLE], cold[x, B_LO], cold[x, B_HI])
    hot[x, SPLIT] = cut
    state[SPLITS] += 1
    numbers = np.zeros(2, np.int64)
    for i in range(begin, begin + count):
        c = data[i, 0] >> 32
        lo, hi = interval_at(words, predicate_on(words, rec_at[c], rec_size[c], d))
        if hi <= cut:
            numbers[0] += 1
        elif lo > cut:
            numbers[1] += 1
    tasks[state[TASKS]] = x << 1 | PARTITION
    state[TASKS] += 1
    for upper in range(2):
        if numbers[upper] > 0:
            child = _new_half(hot, cold, pnode, state, domains, limits, x, upper == 1)
            set_room(hot, cold, data, state, child, room_for(numbers[upper]))
            tasks[state[TASKS]] = child << 1 | CLUSTER
            state[TASKS] += 1
    kept = I64(0)
    for i in range(begin, begin + count):
        c = data[i, 0] >> 32
        lo, hi = interval_at(words, predicate_on(words, rec_at[c], rec_size[c], d))
        if hi <= cut or lo > cut:
            child = half(hot, x, lo > cut)
            append(hot, cold, data, state, home, child, c)
            widen(hot, child, lo, hi)
            cold[child, BELOW] += 1
        else:
            data[begin + kept, 0] = I64(c) << 32
            home[c, 1] = kept
            kept += 1
    hot[x, LEAF] = begin << 32 | kept
    return True
