"""Inner nodes and leaves of PS-Trees in flat arrays, and the operations on them (section 4).

An inner node is a run of elements. The path from the root to a node is a value if a predicate ends there. A leaf is a predicate
space. Byte, with -5..-1 and 1..5 inserted:

                        root
                 - 7  /      \\  + 0
                   .          .                     children of a node are a chain in ascending order
              11 /  \\ 15   1 /  \\ 5
               -5    -1      1    5                 value   l   e   g
                                                    -5      A   B   B     cut before: >= or the begin of a range
    leaves  A --> B --> C --> D --> E               -1      B   B   C     cut after: <= or the end of a range
    from   -128  -5     0     1     6                1      C   D   D
                                                     5      D   D   E

    node    path, depth: its first `depth` elements lead here | child (the lowest) | sibling (the next) | l e g
            before, after: live ends of predicates at each cut
    leaf    next, prev | below: the node whose cut it begins at | root | space id | predicate counter, event counter | lo
    text    elements of values, if values are no keys

A path is a key, of INT64_ELEMENTS elements. In a tree whose values are no keys, a path is a place in `text`, where the elements
of a value are. Paths are compressed: a node may be several elements below its parent, and has the path of some value behind it.

The root has the first leaf in g, the last leaf in l, the last assigned space id in `before`, and its dimension in `path`.
`lo` is the lowest key of a leaf, if values are keys. Unused numbers are in a chain, linked by `sibling` or `next`.

Invariants: if a node is a value, its l, e and g are leaves. There is a cut before the value (l is not e), after it (e is not g)
or both. Otherwise they are NONE. Every node but the root is a value or has at least two children. So there are fewer than two
nodes for each value. For neighbouring values u < v, u.g is v.l.

Departures from the paper: children are a chain, not an array of all possible elements, so strings have nodes too. A node is a run
of elements, not a single one: most elements of most values are on a path without branches. A node has 40 bytes. GetRNode and
GetLNode need no path. Line 8 of Alg. 3 passes the current node; it must be the right one, as in Alg. 2. When a cut goes, its
leaves merge, whatever their counters (4.4 says that a leaf goes when its counter is 0, and its example does otherwise). Of two
merged leaves the upper one remains, with the events of both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MIN
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I32s, I64s
from tamis.papers.ps_tree.elements import elements_up_to

NONE = -1
BEFORE, AFTER = 0, 1
"""The two cuts of a value."""

USED_NODES, USED_LEAVES, FREE_NODE, FREE_LEAF, LIVE_NODES, LIVE_LEAVES = range(6)
"""Places in `state`."""

NODES_EACH = 2
"""Most nodes that a new value needs: its own, and one where its path leaves another."""

_LOWEST_ROOM = 32
_SPARE = 16
"""The part of the room in use that remains free after `fitted`: one in so many."""


class NodeArrays(NamedTuple):
    """Inner nodes."""

    path: I64s
    depth: I32s
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
    events: I32s
    lo: I64s


class TreeArrays(NamedTuple):
    """Nodes, leaves and state as kernels take them."""

    nodes: NodeArrays
    leaves: LeafArrays
    state: I64s
    text: I32s


def empty_trees() -> TreeArrays:
    """Arrays without a tree."""
    state = np.zeros(6, np.int64)
    state[FREE_NODE] = state[FREE_LEAF] = NONE
    nodes: Any = [np.empty(_LOWEST_ROOM, np.int64 if name == "path" else np.int32) for name in NodeArrays._fields]
    leaves: Any = [np.empty(_LOWEST_ROOM, np.int64 if name == "lo" else np.int32) for name in LeafArrays._fields]
    return TreeArrays(NodeArrays(*nodes), LeafArrays(*leaves), state, np.zeros(0, np.int32))


def with_room(arrays: TreeArrays, nodes: int, leaves: int) -> TreeArrays:
    """The same arrays with room for `nodes` more nodes and `leaves` more leaves; room at least doubles."""
    return arrays._replace(
        nodes=NodeArrays(*_grown(arrays.nodes, int(arrays.state[USED_NODES]), nodes)),
        leaves=LeafArrays(*_grown(arrays.leaves, int(arrays.state[USED_LEAVES]), leaves)),
    )


def _grown(columns: Any, used: int, more: int) -> Any:
    room = len(columns[0])
    return columns if used + more <= room else _moved(columns, used, max(used + more, 2 * room))


def _moved(columns: Any, used: int, room: int) -> Any:
    moved = [np.empty(room, column.dtype) for column in columns]
    for column, old in zip(moved, columns, strict=True):
        column[:used] = old[:used]
    return moved


def fitted(arrays: TreeArrays) -> TreeArrays:
    """The same arrays without most of their room, if they have much."""
    used = [int(arrays.state[at]) for at in (USED_NODES, USED_LEAVES)]
    rooms = [max(_LOWEST_ROOM, each + each // _SPARE) for each in used]
    return arrays._replace(
        nodes=NodeArrays(*_moved(arrays.nodes, used[0], min(rooms[0], len(arrays.nodes.path)))),
        leaves=LeafArrays(*_moved(arrays.leaves, used[1], min(rooms[1], len(arrays.leaves.next)))),
    )


@inlined
def has_room(arrays: TreeArrays, nodes: int, leaves: int) -> bool:
    """Whether there is room for `nodes` nodes and `leaves` leaves; the chains of free ones are not counted."""
    used, room = arrays.state, len(arrays.nodes.path)
    return used[USED_NODES] + nodes <= room and used[USED_LEAVES] + leaves <= len(arrays.leaves.next)


@inlined
def _new_node(arrays: TreeArrays, path: int, depth: int, sibling: int) -> int:
    nodes, state = arrays.nodes, arrays.state
    node = state[FREE_NODE]
    if node == NONE:
        node = state[USED_NODES]
        state[USED_NODES] += 1
    else:
        state[FREE_NODE] = nodes.sibling[node]
    state[LIVE_NODES] += 1
    nodes.path[node], nodes.depth[node] = path, depth
    nodes.child[node], nodes.sibling[node] = NONE, sibling
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
    root = _new_node(arrays, dimension, 0, NONE)
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
def _element(arrays: TreeArrays, path: int, at: int) -> int:
    """A number that orders paths by the element at some place, if they share all elements before it."""
    return int(arrays.text[path + at]) if len(arrays.text) else elements_up_to(path, at)


@inlined
def _shared(arrays: TreeArrays, path: int, other: int, begin: int, end: int) -> int:
    """How many elements two paths share, of the first `end`; they share the first `begin`."""
    if len(arrays.text) == 0 and elements_up_to(path, end - 1) == elements_up_to(other, end - 1):
        return end
    while begin < end and _element(arrays, path, begin) == _element(arrays, other, begin):
        begin += 1
    return begin


@inlined
def _descend(arrays: TreeArrays, root: int, path: int, count: int) -> tuple[int, int, int, int, int]:
    """Walk down a path of `count` elements as far as it is in the tree.

    Returns the node where the path ends or leaves the tree; of its children the last one below the path, and the next one; how
    many elements the path shares with the latter; and the node that is right of this node and its parents (GetRNode).
    """
    nodes, node, right = arrays.nodes, root, NONE
    while True:
        depth, last, c = nodes.depth[node], NONE, nodes.child[node]
        if depth == count:
            return node, last, c, depth, right
        element = _element(arrays, path, depth)
        while c != NONE and _element(arrays, nodes.path[c], depth) < element:
            last, c = c, nodes.sibling[c]
        if c == NONE:
            return node, last, c, depth, right
        end = nodes.depth[c]
        shared = _shared(arrays, path, nodes.path[c], depth, min(end, count))
        if shared < end:
            return node, last, c, shared, right
        if nodes.sibling[c] != NONE:
            right = nodes.sibling[c]
        node = c


@inlined
def _is_beyond(arrays: TreeArrays, path: int, count: int, shared: int, node: int) -> bool:
    """Whether a path, which shares some elements with a node's path, is larger than all values of the node's branch."""
    if node == NONE or shared == count:
        return False
    return _element(arrays, path, shared) > _element(arrays, arrays.nodes.path[node], shared)


@inlined
def match_pair(arrays: TreeArrays, root: int, path: int, count: int) -> int:
    """MatchPair (Alg. 3): the leaf that a value lies in."""
    nodes = arrays.nodes
    node, _, c, shared, right = _descend(arrays, root, path, count)
    if nodes.depth[node] == count and nodes.e[node] != NONE:
        return int(nodes.e[node])
    if _is_beyond(arrays, path, count, shared, c):
        c = nodes.sibling[c]
    # If the path is complete, the value is a string that others begin with.
    return _leaf_below(nodes, root, right if c == NONE else c)


@inlined
def partition(arrays: TreeArrays, root: int, path: int, count: int, side: int, lowest: int) -> tuple[int, int]:
    """Partition (Alg. 2): cut before or after a value. `lowest` is the lowest key behind the cut.

    Returns the node of the value and the new leaf, NONE if the cut was there already. There must be room for NODES_EACH nodes and
    a leaf.
    """
    nodes = arrays.nodes
    node, last, c, shared, right = _descend(arrays, root, path, count)
    if nodes.depth[node] < count:
        parent, depth = node, nodes.depth[node]
        if c != NONE and shared > depth:
            # The path leaves the run of a node: another node takes its place, and has its path up to there.
            branch = _new_node(arrays, nodes.path[c], shared, nodes.sibling[c])
            if nodes.sibling[c] != NONE:
                right = nodes.sibling[c]
            _hang(nodes, parent, last, branch)
            nodes.child[branch], nodes.sibling[c] = c, NONE
            parent, last = branch, NONE
            if _is_beyond(arrays, path, count, shared, c):
                last, c = c, NONE
        node = parent
        if shared < count:
            node = _new_node(arrays, path, count, c)
            _hang(nodes, parent, last, node)
            if c != NONE:
                right = c
    if nodes.e[node] == NONE:
        leaf = _leaf_below(nodes, root, right if nodes.child[node] == NONE else nodes.child[node])
        nodes.l[node], nodes.e[node], nodes.g[node] = leaf, leaf, leaf
    users, new = nodes.before if side == BEFORE else nodes.after, NONE
    if users[node] == 0:
        new = _partition_leaf(arrays, root, node, side, lowest)
    users[node] += 1
    return node, new


@inlined
def _hang(nodes: NodeArrays, parent: int, last: int, node: int) -> None:
    """Put a node into the chain of children: behind the child `last`, or first if there is none."""
    if last == NONE:
        nodes.child[parent] = node
    else:
        nodes.sibling[last] = node


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
def prune(arrays: TreeArrays, root: int, gone: int) -> None:
    """Remove the node of a former value, and its parent, unless other values need them."""
    nodes, path = arrays.nodes, arrays.nodes.path[gone]
    above, before, parent, last, node = NONE, NONE, NONE, NONE, root
    while node != gone:
        above, before, parent, last, node = parent, last, node, NONE, nodes.child[node]
        depth = nodes.depth[parent]
        element = _element(arrays, path, depth)
        while _element(arrays, nodes.path[node], depth) != element:
            last, node = node, nodes.sibling[node]
    if _is_bypassed(arrays, parent, last, node) and parent != root and nodes.e[parent] == NONE:
        _is_bypassed(arrays, above, before, parent)


@inlined
def _is_bypassed(arrays: TreeArrays, parent: int, last: int, node: int) -> bool:
    """Remove a node that has at most one child, which then takes its place; returns whether that is so."""
    nodes, child = arrays.nodes, arrays.nodes.child[node]
    if child == NONE:
        _hang(nodes, parent, last, nodes.sibling[node])
    elif nodes.sibling[child] == NONE:
        _hang(nodes, parent, last, child)
        nodes.sibling[child] = nodes.sibling[node]
    else:
        return False
    _free_node(arrays, node)
    return True


def compact_text(arrays: TreeArrays, live: list[int]) -> TreeArrays:
    """The same arrays with only the elements that live nodes need."""
    nodes = arrays.nodes
    kept = [arrays.text[nodes.path[node] : nodes.path[node] + nodes.depth[node]] for node in live]
    nodes.path[live] = np.append(0, np.cumsum([len(each) for each in kept]))[:-1]
    return arrays._replace(text=np.concatenate([*kept, np.zeros(0, np.int32)]).astype(np.int32))
