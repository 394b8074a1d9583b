"""Inner nodes and leaves of PS-Trees in flat arrays, and the operations on them (section 4).

An inner node is an element. The path from the root to a node is a value if a predicate ends there. A leaf is a predicate
space. Byte, with -5..-1 and 1..5 inserted:

                         root
                   -  /        \\  +                children of a node are a chain in ascending order
                     7          0
                11 /  \\ 15   1 /  \\ 5
                  -5   -1      1    5              value   l   e   g
                                                   -5      A   B   B     cut before: >= or the begin of a range
    leaves  A --> B --> C --> D --> E              -1      B   B   C     cut after: <= or the end of a range
    from   -128  -5     0     1     6               1      C   D   D
                                                    5      D   D   E

    node    element | child (the lowest) | sibling (the next) | l e g | before, after: live ends of predicates at each cut
    leaf    next, prev | below: the node whose cut it begins at | root | space id | predicate counter, event counter | lo

The root has the first leaf in g, the last leaf in l, the last assigned space id in `before`, and its dimension in `element`.
`lo` is the lowest key of a leaf, if values are keys. Unused numbers are in a chain, linked by `sibling` or `next`.

Invariants: if a node is a value, its l, e and g are leaves. There is a cut before the value (l is not e), after it (e is not g)
or both. Otherwise they are NONE. Every node but the root is a value or has children. For neighbouring values u < v, u.g is v.l.

Departures from the paper: children are a chain, not an array of all possible elements, so strings have nodes too, and a node
has 32 bytes. GetRNode and GetLNode then need no path. Line 8 of Alg. 3 passes the current node; it must be the right one, as in
Alg. 2. When a cut goes, its leaves merge, whatever their counters (4.4 says that a leaf goes when its counter is 0, and its
example does otherwise). Of two merged leaves the upper one remains, with the events of both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MIN
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I32s, I64s

NONE = -1
BEFORE, AFTER = 0, 1
"""The two cuts of a value."""

USED_NODES, USED_LEAVES, FREE_NODE, FREE_LEAF, LIVE_NODES, LIVE_LEAVES = range(6)
"""Places in `state`."""

_LOWEST_ROOM = 32


class NodeArrays(NamedTuple):
    """Inner nodes."""

    element: I32s
    child: I32s
    sibling: I32s
    l: I32s  # noqa: E741 - the paper's names
    e: I32s
    g: I32s
    before: I32s
    after: I32s


class LeafArrays(NamedTuple):
    """Leaves."""

    next: I32s
    prev: I32s
    below: I32s
    root: I32s
    space: I32s
    predicates: I32s
    events: I64s
    lo: I64s


class TreeArrays(NamedTuple):
    """Nodes, leaves and state as kernels take them."""

    nodes: NodeArrays
    leaves: LeafArrays
    state: I64s


def empty_trees() -> TreeArrays:
    """Arrays without a tree."""
    state = np.zeros(6, np.int64)
    state[FREE_NODE] = state[FREE_LEAF] = NONE
    nodes = NodeArrays(*(np.empty(_LOWEST_ROOM, np.int32) for _ in NodeArrays._fields))
    columns: Any = [np.empty(_LOWEST_ROOM, np.int64 if at >= 6 else np.int32) for at in range(8)]
    leaves = LeafArrays(*columns)
    return TreeArrays(nodes, leaves, state)


def with_room(arrays: TreeArrays, nodes: int, leaves: int) -> TreeArrays:
    """The same arrays with room for `nodes` more nodes and `leaves` more leaves; room at least doubles."""
    return TreeArrays(
        NodeArrays(*_grown(arrays.nodes, int(arrays.state[USED_NODES]), nodes)),
        LeafArrays(*_grown(arrays.leaves, int(arrays.state[USED_LEAVES]), leaves)),
        arrays.state,
    )


def _grown(columns: Any, used: int, more: int) -> Any:
    room = len(columns[0])
    if used + more <= room:
        return columns
    grown = [np.empty(max(used + more, 2 * room), column.dtype) for column in columns]
    for column, old in zip(grown, columns, strict=True):
        column[:used] = old[:used]
    return grown


@inlined
def has_room(arrays: TreeArrays, nodes: int, leaves: int) -> bool:
    """Whether there is room for `nodes` nodes and `leaves` leaves; the chains of free ones are not counted."""
    used, room = arrays.state, len(arrays.nodes.element)
    return used[USED_NODES] + nodes <= room and used[USED_LEAVES] + leaves <= len(arrays.leaves.next)


@inlined
def _new_node(arrays: TreeArrays, element: int, sibling: int) -> int:
    nodes, state = arrays.nodes, arrays.state
    node = state[FREE_NODE]
    if node == NONE:
        node = state[USED_NODES]
        state[USED_NODES] += 1
    else:
        state[FREE_NODE] = nodes.sibling[node]
    state[LIVE_NODES] += 1
    nodes.element[node], nodes.child[node], nodes.sibling[node] = element, NONE, sibling
    nodes.l[node], nodes.e[node], nodes.g[node] = NONE, NONE, NONE
    nodes.before[node], nodes.after[node] = 0, 0
    return int(node)


@inlined
def _new_leaf(arrays: TreeArrays, root: int) -> int:
    leaves, state = arrays.leaves, arrays.state
    leaf = state[FREE_LEAF]
    if leaf == NONE:
        leaf = state[USED_LEAVES]
        state[USED_LEAVES] += 1
    else:
        state[FREE_LEAF] = leaves.next[leaf]
    state[LIVE_LEAVES] += 1
    arrays.nodes.before[root] += 1
    leaves.space[leaf], leaves.root[leaf] = arrays.nodes.before[root], root
    return int(leaf)


@inlined
def plant(arrays: TreeArrays, dimension: int) -> int:
    """Make a tree with one leaf; returns its root."""
    nodes, leaves = arrays.nodes, arrays.leaves
    root = _new_node(arrays, dimension, NONE)
    leaf = _new_leaf(arrays, root)
    leaves.next[leaf], leaves.prev[leaf], leaves.below[leaf] = NONE, NONE, root
    leaves.predicates[leaf], leaves.events[leaf], leaves.lo[leaf] = 0, 0, KEY_MIN
    nodes.l[root], nodes.g[root] = leaf, leaf
    return root


@inlined
def _free_node(arrays: TreeArrays, node: int) -> None:
    arrays.nodes.sibling[node] = arrays.state[FREE_NODE]
    arrays.state[FREE_NODE] = node
    arrays.state[LIVE_NODES] -= 1


@inlined
def _free_leaf(arrays: TreeArrays, leaf: int) -> None:
    arrays.leaves.next[leaf], arrays.leaves.predicates[leaf] = arrays.state[FREE_LEAF], 0
    arrays.state[FREE_LEAF] = leaf
    arrays.state[LIVE_LEAVES] -= 1


@inlined
def _leaf_below(nodes: NodeArrays, root: int, right: int) -> int:
    """The leaf below the smallest value in the branch of a node; the last leaf if there is no node (GetLNode)."""
    if right == NONE:
        return int(nodes.l[root])
    while nodes.e[right] == NONE:
        right = nodes.child[right]
    return int(nodes.l[right])


@inlined
def match_pair(nodes: NodeArrays, root: int, elements: I32s, count: int) -> int:
    """MatchPair (Alg. 3): the leaf that a value lies in."""
    element, child, sibling, e = nodes.element, nodes.child, nodes.sibling, nodes.e
    node, right = root, NONE  # right: the next node behind the path, nearest to its end (GetRNode)
    for i in range(count):
        c = child[node]
        while c != NONE and element[c] < elements[i]:
            c = sibling[c]
        if c == NONE or element[c] != elements[i]:
            return _leaf_below(nodes, root, right if c == NONE else c)
        if sibling[c] != NONE:
            right = sibling[c]
        node = c
    if e[node] != NONE:
        return int(e[node])
    # The string is a prefix of others.
    return _leaf_below(nodes, root, child[node])


@inlined
def partition(arrays: TreeArrays, root: int, elements: I32s, count: int, side: int, lowest: int) -> tuple[int, int]:
    """Partition (Alg. 2): cut before or after a value. `lowest` is the lowest key behind the cut.

    Returns the node of the value and the new leaf, NONE if the cut was there already. There must be room for `count` nodes and a
    leaf.
    """
    nodes = arrays.nodes
    element, child, sibling = nodes.element, nodes.child, nodes.sibling
    node, right = root, NONE
    for i in range(count):
        last, c = NONE, child[node]
        while c != NONE and element[c] < elements[i]:
            last, c = c, sibling[c]
        if c == NONE or element[c] != elements[i]:
            if c != NONE:
                right = c
            c = _new_node(arrays, elements[i], c)
            if last == NONE:
                child[node] = c
            else:
                sibling[last] = c
        elif sibling[c] != NONE:
            right = sibling[c]
        node = c
    if nodes.e[node] == NONE:
        leaf = _leaf_below(nodes, root, right if child[node] == NONE else child[node])
        nodes.l[node], nodes.e[node], nodes.g[node] = leaf, leaf, leaf
    new = NONE
    if side == BEFORE:
        if nodes.before[node] == 0:
            new = _partition_leaf(arrays, root, node, side, lowest)
        nodes.before[node] += 1
    else:
        if nodes.after[node] == 0:
            new = _partition_leaf(arrays, root, node, side, lowest)
        nodes.after[node] += 1
    return node, new


@inlined
def _partition_leaf(arrays: TreeArrays, root: int, node: int, side: int, lowest: int) -> int:
    """PartitionLeafNode: the leaf of a value keeps the part above the cut. A new leaf, with the same counters, gets the rest."""
    nodes, leaves = arrays.nodes, arrays.leaves
    old = nodes.e[node]
    new = _new_leaf(arrays, root)
    leaves.predicates[new], leaves.events[new] = leaves.predicates[old], leaves.events[old]
    leaves.next[new], leaves.prev[new] = old, leaves.prev[old]
    if leaves.prev[old] != NONE:
        leaves.next[leaves.prev[old]] = new
    leaves.prev[old] = new
    leaves.lo[new], leaves.lo[old] = leaves.lo[old], lowest
    below = leaves.below[old]
    leaves.below[new], leaves.below[old] = below, node
    if below != node:
        _relink(nodes, below, old, new)
    if side == BEFORE:
        nodes.l[node] = new
    else:
        if nodes.l[node] == old:
            nodes.l[node] = new
        nodes.e[node] = new
    return new


@inlined
def _relink(nodes: NodeArrays, node: int, old: int, new: int) -> None:
    """Replace the old leaf by the new one at or above a value."""
    if nodes.g[node] == old:
        nodes.g[node] = new
    if nodes.e[node] == old:
        nodes.e[node] = new


@inlined
def let_go(arrays: TreeArrays, node: int, side: int) -> int:
    """Undo one `partition`. If no predicate needs the cut any more, the leaf above it takes the space of the leaf below.

    Returns the leaf that is gone, or NONE. The caller removes a value without cuts by `prune`.
    """
    nodes, leaves = arrays.nodes, arrays.leaves
    users = nodes.before if side == BEFORE else nodes.after
    users[node] -= 1
    if users[node] > 0:
        return NONE
    gone = nodes.l[node] if side == BEFORE else nodes.e[node]
    kept = leaves.next[gone]
    leaves.events[kept] += leaves.events[gone]
    leaves.lo[kept], leaves.prev[kept] = leaves.lo[gone], leaves.prev[gone]
    if leaves.prev[gone] != NONE:
        leaves.next[leaves.prev[gone]] = kept
    below = leaves.below[gone]
    leaves.below[kept] = below
    _relink(nodes, below, gone, kept)
    if nodes.l[node] == gone:
        nodes.l[node] = kept
    if nodes.e[node] == gone:
        nodes.e[node] = kept
    if nodes.before[node] == 0 and nodes.after[node] == 0:
        nodes.l[node], nodes.e[node], nodes.g[node] = NONE, NONE, NONE
    _free_leaf(arrays, gone)
    return int(gone)


@inlined
def prune(arrays: TreeArrays, root: int, elements: I32s, count: int) -> None:
    """Remove the nodes of a former value, from its end up to the first node that other values need."""
    nodes = arrays.nodes
    while count > 0:
        parent, last, node = root, NONE, root
        for i in range(count):
            parent, last, node = node, NONE, nodes.child[node]
            while nodes.element[node] != elements[i]:
                last, node = node, nodes.sibling[node]
        if nodes.child[node] != NONE or nodes.e[node] != NONE:
            return
        if last == NONE:
            nodes.child[parent] = nodes.sibling[node]
        else:
            nodes.sibling[last] = nodes.sibling[node]
        _free_node(arrays, node)
        count -= 1
