"""Invariants of a tree, for tests."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.papers.ps_tree.nodes import FREE_LEAF, FREE_NODE, LIVE_LEAVES, LIVE_NODES, NONE, TreeArrays


def chain_of(arrays: TreeArrays, root: int) -> list[int]:
    """The leaves of a tree, ascending."""
    leaf, chain = int(arrays.nodes.g[root]), []
    while leaf != NONE:
        chain.append(leaf)
        leaf = int(arrays.leaves.next[leaf])
    return chain


def values_of(arrays: TreeArrays, root: int) -> list[tuple[int, tuple[int, ...]]]:
    """The nodes that are values, ascending, with their elements."""
    return [(node, path) for node, path in _below(arrays, root, ()) if arrays.nodes.e[node] != NONE]


def _below(arrays: TreeArrays, node: int, path: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    child, last = int(arrays.nodes.child[node]), NONE
    while child != NONE:
        element = int(arrays.nodes.element[child])
        assert element > last, "children ascend"
        yield child, (*path, element)
        yield from _below(arrays, child, (*path, element))
        last, child = element, int(arrays.nodes.sibling[child])


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
    every = [node for node, _ in _below(arrays, root, ())]
    values = [node for node, _ in values_of(arrays, root)]
    for node in every:
        is_value = node in values
        assert is_value or nodes.child[node] != NONE, "a node is a value or has children"
        assert is_value == (nodes.before[node] > 0 or nodes.after[node] > 0)
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
