"""Invariants of a tree, for tests."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.papers.ps_tree.elements import element_of
from tamis.papers.ps_tree.nodes import FREE_LEAF, FREE_NODE, LIVE_LEAVES, LIVE_NODES, NONE, TreeArrays


def chain_of(arrays: TreeArrays, root: int) -> list[int]:
    """The leaves of a tree, ascending."""
    leaf, chain = int(arrays.nodes.g[root]), []
    while leaf != NONE:
        chain.append(leaf)
        leaf = int(arrays.leaves.next[leaf])
    return chain


def nodes_of(arrays: TreeArrays, root: int) -> list[int]:
    """The nodes of a tree below the root; a node comes before its children, and children ascend."""
    return list(_below(arrays, root))


def values_of(arrays: TreeArrays, root: int) -> list[int]:
    """The nodes that are values, ascending."""
    return [node for node in _below(arrays, root) if arrays.nodes.e[node] != NONE]


def elements_to(arrays: TreeArrays, node: int) -> list[int]:
    """The elements on the way from the root to a node."""
    path, depth = int(arrays.nodes.path[node]), int(arrays.nodes.depth[node])
    return (
        arrays.text[path : path + depth].tolist() if len(arrays.text) else [element_of(path, i) for i in range(depth)]
    )


def _below(arrays: TreeArrays, parent: int) -> Iterator[int]:
    nodes = arrays.nodes
    child = int(nodes.child[parent])
    while child != NONE:
        yield child
        yield from _below(arrays, child)
        child = int(nodes.sibling[child])


def _check_children(arrays: TreeArrays, parent: int, prefix: list[int]) -> None:
    """Check the paths of the nodes below a node whose own path is `prefix`."""
    child, last, many = int(arrays.nodes.child[parent]), NONE, 0
    while child != NONE:
        elements = elements_to(arrays, child)
        assert elements[: len(prefix)] == prefix, "a node's path goes through its parent"
        assert elements[len(prefix)] > last, "children ascend and differ in their first element"
        _check_children(arrays, child, elements)
        last, child, many = elements[len(prefix)], int(arrays.nodes.sibling[child]), many + 1
    is_value = arrays.nodes.e[parent] != NONE
    assert is_value or many > 1 or not prefix, "a node is a value or branches"


def check_tree(arrays: TreeArrays, root: int) -> tuple[int, int]:
    """Raise an AssertionError if an invariant of a tree does not hold; returns how many nodes and leaves it has."""
    nodes, leaves = arrays.nodes, arrays.leaves
    chain = chain_of(arrays, root)
    assert nodes.l[root] == chain[-1]
    assert nodes.e[root] == NONE
    assert [int(leaves.prev[leaf]) for leaf in chain] == [NONE, *chain[:-1]]
    spaces = [int(leaves.space[leaf]) for leaf in chain]
    assert len(set(spaces)) == len(spaces)
    assert min(spaces) >= 1
    assert max(spaces) <= nodes.before[root]
    _check_children(arrays, root, [])
    every, values = nodes_of(arrays, root), values_of(arrays, root)
    for node in every:
        assert (nodes.e[node] != NONE) == (nodes.before[node] > 0 or nodes.after[node] > 0)
    expected, below = [chain[0]], [root]
    for node in values:
        low, at, high = int(nodes.l[node]), int(nodes.e[node]), int(nodes.g[node])
        assert low == expected[-1], "the leaf below a value is the one above its neighbour"
        assert (low != at) == (nodes.before[node] > 0)
        assert (at != high) == (nodes.after[node] > 0)
        for leaf in (at, high):
            if leaf != expected[-1]:
                expected.append(leaf)
                below.append(node)
    assert expected == chain
    assert below == [int(leaves.below[leaf]) for leaf in chain]
    return 1 + len(every), len(chain)


def check_all(arrays: TreeArrays, roots: list[int]) -> None:
    """Check all trees in the arrays; `roots` must be complete."""
    sizes = [check_tree(arrays, root) for root in roots]
    assert sum(nodes for nodes, _ in sizes) == arrays.state[LIVE_NODES]
    assert sum(leaves for _, leaves in sizes) == arrays.state[LIVE_LEAVES]
    for at, links in ((FREE_NODE, arrays.nodes.sibling), (FREE_LEAF, arrays.leaves.next)):
        free, seen = int(arrays.state[at]), set[int]()
        while free != NONE:
            assert free not in seen, "free ones are a chain without a circle"
            seen.add(free)
            free = int(links[free])
