"""The nodes of a BE-Tree in flat arrays, and functions that make, free, link and rank them.

A bucket of a c-directory has exactly one c-node, and a c-node has exactly one l-node: the three are one row here, a *node*.

    hot    T_LO T_HI SPLIT KIDS PDIR LEAF LEFT LOST      read by matching, 64 bytes
    cold   B_LO B_HI ABOVE OWNER ROOM CAP BELOW ...      read by changes only
    pnode  ATTR TOP CNODE NEXT BEFORE WHOLE              a p-node: its attribute and the top bucket of its c-directory
    data   | c 7  lo hi | c' 12 lo hi | . | . |          the entries of l-nodes, in chunks of 2, 4, 8, ... entries

Node 0 is the root. The root is never below another node, so 0 also stands for no node; p-node 0 is not used. KIDS has the node of
the lower half in its upper 32 bits and the node of the upper half in its lower 32. PDIR has the number of p-nodes and the first
one, LEAF the place and the number of entries. The p-directory is a list of p-nodes from PDIR on, and a hash table from (node,
attribute).

An entry is a conjunction with the bounds of one predicate, which is tested before the record is looked up. It is the most
selective predicate about which the path to the node says nothing. Five entries of an l-node take two cache lines, five records
ten or more.

Freed nodes and p-nodes are linked by ABOVE and NEXT, freed chunks of one size by the first word of each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.bits import first_half, halves, second_half, with_flag
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import F64, I64, I32s, I64s
from tamis.papers.parts.pair_map import FREE, PairArrays, PairMap, enter, pair_place, vacate
from tamis.papers.parts.records import Words
from tamis.papers.parts.size import held_bytes

Columns = I64s
"""An array with a row for each thing, and a column for each of its figures."""
Home = I32s
"""Conjunction -> its node and its place there."""

# Columns of `hot`.
T_LO, T_HI, SPLIT, KIDS, PDIR, LEAF, LEFT, LOST = range(8)
"""T_LO, T_HI: bounds of all intervals below, on the attribute of the bucket. SPLIT: the highest key of the lower half, KEY_MAX
while the bucket is not split. LEFT: operations to the end of the window. LOST: evaluations in vain in the window."""
# Columns of `cold`.
(
    B_LO,  # the bucket; the outermost ones of a c-directory are open to their side
    B_HI,
    ABOVE,  # the bucket that it is a half of, or -1
    OWNER,  # the p-node of its c-directory; 0 for the root
    ROOM,  # its entries have a chunk of 1 << ROOM, or none if -1
    CAP,  # the capacity of its l-node
    BELOW,  # the expressions in it and all nodes below it
    SUBSUMED,  # predicates of these expressions that are equal to a bucket on the path
    COVERED,  # predicates of these expressions that a bucket on the path only encloses
    OWN_SUBSUMED,  # SUBSUMED of its own l-node alone
    OWN_COVERED,
    LOSS,  # of its last window, per event, in units of 1 / LOSS_UNIT
    LOSS_BELOW,  # the sum of LOSS over all nodes below it
    OPENED,  # how many operations its window has
    CHANGES,  # insertions and deletions among the operations of the window so far
    SETTLED,  # how many of its entries have their test and are counted in the gain
    DUE,  # it is to be recycled
    COLD,
) = range(18)
ATTR, TOP, CNODE, NEXT, BEFORE, WHOLE, PNODE = range(7)
# Columns of `data`: the conjunction and, behind it, the dimension of its test plus one, 0 without a test; the bounds of the test.
ENTRY, E_LO, E_HI = range(3)
# Columns of `home`.
NODE, PLACE = range(2)
# The state of the tree. From HEADS on: the first free chunk of 1 << i entries, plus one.
NODE_END, NODE_FREE, NODES, P_END, P_FREE, PNODES, DATA_END = range(7)
TASKS, PENDING, DUES, NEED, STRANGER, SPLITS, PARTITIONS, CREDIT = range(7, 15)
HEADS = 16
_STATE = HEADS + 40

# Tasks for a node whose l-node may be too full: see `insertion`.
PARTITION, CLUSTER = 0, 1

LOSS_UNIT = 1024
UNSPLIT = KEY_MAX
_FEWEST_NODES = 16
_FEWEST_DATA = 64
_LEAST_ROOM = 1


class Settings(NamedTuple):
    """The options that kernels read: see `BETreeOptions`."""

    max_cap: int
    min_size: int
    least_window: int
    histogram: bool
    recycling: bool
    beta: float
    gamma: float
    alpha_s: float
    alpha_c: float
    theta: float
    rank_window: float


class Tree(NamedTuple):
    """The tree as kernels take it."""

    hot: Columns
    cold: Columns
    pnode: Columns
    data: Columns
    state: Words
    tasks: Words
    """Nodes to be split or partitioned."""
    due: I32s
    """Nodes to be recycled."""
    pairs: PairArrays
    """(node, attribute) -> p-node."""
    settings: Settings


class Nodes:
    """The arrays of a tree. Kernels stop when room is lacking, and `reserve` makes room."""

    def __init__(self, settings: Settings) -> None:
        self.pairs = PairMap()
        self._arrays = Tree(
            np.zeros((_FEWEST_NODES, 8), np.int64),
            np.zeros((_FEWEST_NODES, COLD), np.int64),
            np.zeros((_FEWEST_NODES, PNODE), np.int64),
            np.zeros((_FEWEST_DATA, 3), np.int64),
            np.zeros(_STATE, np.int64),
            np.zeros(_FEWEST_NODES, np.int64),
            np.zeros(_FEWEST_NODES, np.int32),
            self.pairs.view(),
            settings,
        )
        self._arrays.state[P_END] = 1
        _make_root(self._arrays)

    @property
    def nbytes(self) -> int:
        return held_bytes(self._arrays)

    def view(self) -> Tree:
        return self._arrays

    def reserve(self) -> None:
        """Make the room that a kernel asked for by NEED, and enlarge every array that is nearly full."""
        arrays, state = self._arrays, self._arrays.state
        need = int(state[NEED])
        nodes = _grown(len(arrays.hot), int(state[NODES]), 8)
        pnodes = _grown(len(arrays.pnode), int(state[PNODES]) + 1, 8)
        data = max(len(arrays.data), int(state[DATA_END]) + need)
        if data > len(arrays.data):
            data = max(data, len(arrays.data) + len(arrays.data) // 2)
        tasks = _grown(len(arrays.tasks), int(state[TASKS]), 8)
        self.pairs.reserve(max(8, len(self.pairs) // 4))
        self._arrays = arrays._replace(
            hot=_longer(arrays.hot, nodes),
            cold=_longer(arrays.cold, nodes),
            pnode=_longer(arrays.pnode, pnodes),
            data=_longer(arrays.data, data),
            tasks=_longer(arrays.tasks, tasks),
            pairs=self.pairs.view(),
        )


def _grown(length: int, used: int, spare: int) -> int:
    """A length with spare room behind the used part."""
    return length if used + max(spare, length // 8) < length else 2 * length


def _longer(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    if length == len(array):
        return array
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


# -- room


@inlined
def has_room(tree: Tree, entries: int) -> bool:
    """Whether there is room for a step that makes at most two nodes, one p-node and lists of `entries` entries."""
    state = tree.state
    state[NEED] = entries
    return (
        state[NODES] + 2 <= len(tree.hot)
        and state[PNODES] + 2 <= len(tree.pnode)
        and state[DATA_END] + entries <= len(tree.data)
        and state[TASKS] + 4 <= len(tree.tasks)
        and 2 * tree.pairs.size[0] + 2 <= len(tree.pairs.value)
    )


@inlined
def add_task(tree: Tree, x: int, task: int) -> None:
    """Note that a node is to be split or partitioned. There must be room."""
    tree.tasks[tree.state[TASKS]] = with_flag(I64(x), task)
    tree.state[TASKS] += 1


@inlined
def room_for(count: int) -> int:
    """The binary logarithm of the size of the chunk that `count` entries need."""
    room = _LEAST_ROOM
    while 1 << room < count:
        room += 1
    return room


@inlined
def take_chunk(data: Columns, state: Words, room: int) -> int:
    """Where a chunk of 1 << room entries begins: a free one, a part of a larger free one, or one at the end."""
    larger = room
    while larger < 32 and state[HEADS + larger] == 0:
        larger += 1
    if larger == 32:
        begin = state[DATA_END]
        state[DATA_END] += 1 << room
        return begin
    begin = state[HEADS + larger] - 1
    state[HEADS + larger] = data[begin, ENTRY]
    while larger > room:
        larger -= 1
        give_chunk(data, state, begin + (1 << larger), larger)
    return begin


@inlined
def give_chunk(data: Columns, state: Words, begin: int, room: int) -> None:
    """Free a chunk."""
    data[begin, ENTRY] = state[HEADS + room]
    state[HEADS + room] = begin + 1


@inlined
def set_room(tree: Tree, x: int, room: int) -> None:
    """Move the entries of an l-node to a chunk of another size; -1: free the chunk."""
    data, old = tree.data, tree.cold[x, ROOM]
    begin, count = entries_at(tree.hot, x)
    to = I64(0)
    if room >= 0:
        to = take_chunk(data, tree.state, room)
        for i in range(count):
            copy_entry(data, begin + i, to + i)
    if old >= 0:
        give_chunk(data, tree.state, begin, old)
    tree.hot[x, LEAF] = halves(to, count)
    tree.cold[x, ROOM] = room


@inlined
def entries_at(hot: Columns, x: int) -> tuple[int, int]:
    """Where the entries of an l-node begin, and how many there are."""
    return first_half(hot[x, LEAF]), second_half(hot[x, LEAF])


@inlined
def copy_entry(data: Columns, at: int, to: int) -> None:
    for word in range(3):
        data[to, word] = data[at, word]


@inlined
def append(tree: Tree, home: Home, x: int, c: int) -> None:
    """Append a conjunction to an l-node, without its test. There must be room for a chunk of twice the size."""
    count = second_half(tree.hot[x, LEAF])
    if tree.cold[x, ROOM] < 0 or count == 1 << tree.cold[x, ROOM]:
        set_room(tree, x, room_for(count + 1))
    at = first_half(tree.hot[x, LEAF]) + count
    tree.data[at, ENTRY] = halves(I64(c), 0)
    tree.hot[x, LEAF] += 1
    home[c, NODE], home[c, PLACE] = x, count


# -- nodes


@inlined
def new_node(tree: Tree, lo: int, hi: int, above: int, owner: int) -> int:
    """An empty node."""
    hot, cold, state = tree.hot, tree.cold, tree.state
    x = state[NODE_FREE]
    if x > 0:
        state[NODE_FREE] = cold[x, ABOVE]
    else:
        x = state[NODE_END]
        state[NODE_END] += 1
    state[NODES] += 1
    for column in range(8):
        hot[x, column] = 0
    for column in range(COLD):
        cold[x, column] = 0
    hot[x, T_LO], hot[x, T_HI], hot[x, SPLIT] = KEY_MAX, KEY_MIN, UNSPLIT
    cold[x, B_LO], cold[x, B_HI], cold[x, ABOVE], cold[x, OWNER] = lo, hi, above, owner
    cold[x, ROOM], cold[x, CAP] = -1, tree.settings.max_cap
    return x


@lean_kernel
def _make_root(tree: Tree) -> None:
    open_window(tree, new_node(tree, 0, 0, -1, 0))


@inlined
def free_node(tree: Tree, x: int) -> None:
    """Free a node. The caller removes all references to it."""
    hot, cold, state = tree.hot, tree.cold, tree.state
    if cold[x, ROOM] >= 0:
        give_chunk(tree.data, state, first_half(hot[x, LEAF]), cold[x, ROOM])
    cold[x, ABOVE], cold[x, ROOM], cold[x, DUE], cold[x, OWNER] = state[NODE_FREE], -1, 0, -1
    hot[x, LEAF] = 0
    state[NODE_FREE] = x
    state[NODES] -= 1


@inlined
def parent_of(tree: Tree, x: int) -> int:
    """The node above: the bucket that it is a half of, or the c-node of its p-node; -1 for the root."""
    above, owner = tree.cold[x, ABOVE], tree.cold[x, OWNER]
    if above >= 0:
        return above
    return tree.pnode[owner, CNODE] if owner > 0 else I64(-1)


@inlined
def half(hot: Columns, x: int, upper: bool) -> int:
    """One half of a bucket, 0 if it has no node."""
    return second_half(hot[x, KIDS]) if upper else first_half(hot[x, KIDS])


@inlined
def set_half(hot: Columns, x: int, upper: bool, child: int) -> None:
    other = half(hot, x, not upper)
    hot[x, KIDS] = halves(other, child) if upper else halves(I64(child), other)


@inlined
def new_pnode(tree: Tree, x: int, attribute: int) -> int:
    """Add a p-node to the p-directory of a c-node (CreatePDir). The caller makes its top bucket."""
    hot, pnode, state = tree.hot, tree.pnode, tree.state
    p = state[P_FREE]
    if p > 0:
        state[P_FREE] = pnode[p, NEXT]
    else:
        p = state[P_END]
        state[P_END] += 1
    state[PNODES] += 1
    first = second_half(hot[x, PDIR])
    pnode[p, ATTR], pnode[p, TOP], pnode[p, CNODE], pnode[p, NEXT], pnode[p, BEFORE] = attribute, 0, x, first, 0
    if first > 0:
        pnode[first, BEFORE] = p
    hot[x, PDIR] = halves(first_half(hot[x, PDIR]) + 1, p)
    enter(tree.pairs, pair_place(tree.pairs, x, attribute), x, attribute, p)
    return p


@inlined
def free_pnode(tree: Tree, p: int) -> None:
    """Take a p-node out of its p-directory."""
    hot, pnode, state = tree.hot, tree.pnode, tree.state
    x, following, before = pnode[p, CNODE], pnode[p, NEXT], pnode[p, BEFORE]
    number, first = first_half(hot[x, PDIR]), second_half(hot[x, PDIR])
    if before > 0:
        pnode[before, NEXT] = following
    else:
        first = following
    if following > 0:
        pnode[following, BEFORE] = before
    hot[x, PDIR] = halves(number - 1, first)
    at = pair_place(tree.pairs, x, pnode[p, ATTR])
    if tree.pairs.value[at] != FREE:
        vacate(tree.pairs, at)
    pnode[p, TOP], pnode[p, NEXT] = 0, state[P_FREE]
    state[P_FREE] = p
    state[PNODES] -= 1


@inlined
def widen(hot: Columns, x: int, lo: int, hi: int) -> None:
    """Let a bucket enclose one more interval."""
    hot[x, T_LO], hot[x, T_HI] = min(hot[x, T_LO], lo), max(hot[x, T_HI], hi)


# -- ranks (section 5)


@inlined
def rank_of(cold: Columns, settings: Settings, x: int) -> float:
    """Rank(n): the gain of all l-nodes below less the loss of all nodes below. A p-node has the rank of its top bucket."""
    gain = settings.alpha_s * cold[x, SUBSUMED] + settings.alpha_c * cold[x, COVERED]
    return settings.beta * gain - settings.gamma * (F64(cold[x, LOSS_BELOW]) / LOSS_UNIT)


@inlined
def open_window(tree: Tree, x: int) -> None:
    """Begin a window of rank_window operations."""
    length = max(I64(tree.settings.least_window), I64(tree.settings.rank_window * tree.cold[x, BELOW]))
    tree.hot[x, LEFT], tree.hot[x, LOST] = length, 0
    tree.cold[x, OPENED], tree.cold[x, CHANGES] = length, 0


@inlined
def close_window(tree: Tree, x: int) -> None:
    """End a window: set the loss of the node to the mean loss of its events, and mark it for recycling if its rank is low."""
    hot, cold, state, settings = tree.hot, tree.cold, tree.state, tree.settings
    events = cold[x, OPENED] - cold[x, CHANGES] - hot[x, LEFT]
    if events > 0:
        change = hot[x, LOST] * LOSS_UNIT // events - cold[x, LOSS]
        cold[x, LOSS] += change
        add_up(tree, x, LOSS_BELOW, change)
        low = x != 0 and cold[x, BELOW] > 0 and rank_of(cold, settings, x) < settings.theta
        if low and settings.recycling and not cold[x, DUE] and state[DUES] < len(tree.due):
            tree.due[state[DUES]] = x
            state[DUES] += 1
            cold[x, DUE] = 1
    open_window(tree, x)


@inlined
def add_up(tree: Tree, x: int, column: int, change: int) -> None:
    """Add to a figure of a node and of all above it."""
    while x >= 0:
        tree.cold[x, column] += change
        x = parent_of(tree, x)


@inlined
def count_change(tree: Tree, x: int, change: int) -> None:
    """Count an insertion or a deletion in a node: it is an operation of the window."""
    tree.cold[x, BELOW] += change
    tree.cold[x, CHANGES] += 1
    tree.hot[x, LEFT] -= 1
    if tree.hot[x, LEFT] <= 0:
        close_window(tree, x)
