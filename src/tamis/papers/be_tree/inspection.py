"""A BE-Tree as text, and its invariants, in plain Python over the same arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.leaf import Mode
from tamis.kernels.bits import first_half, second_half
from tamis.papers.be_tree import nodes as n
from tamis.papers.be_tree.domains import DomainArrays
from tamis.papers.be_tree.nodes import UNSPLIT, Home, Nodes, Tree
from tamis.papers.parts.records import RecordArrays, dimension_in, intervals_in, mode_in

_EVERYTHING = (-(2**63) + 1, 2**63 - 1)
Interval = tuple[int, int]


def entries_of(tree: Tree, x: int) -> list[int]:
    """The conjunctions of an l-node."""
    begin, count = first_half(int(tree.hot[x, n.LEAF])), second_half(int(tree.hot[x, n.LEAF]))
    found: list[int] = first_half(tree.data[begin : begin + count, n.ENTRY]).tolist()
    return found


def p_nodes_of(tree: Tree, x: int) -> Iterator[int]:
    """The p-nodes of a c-node."""
    p = second_half(int(tree.hot[x, n.PDIR]))
    while p:
        yield p
        p = int(tree.pnode[p, n.NEXT])


def halves_of(tree: Tree, x: int) -> list[int]:
    """The halves of a bucket that have a node, the lower one first."""
    kids = int(tree.hot[x, n.KIDS])
    return [child for child in (first_half(kids), second_half(kids)) if child]


def draw(nodes: Nodes) -> str:
    """A line for every l-node and p-node, lower ones further to the right; conjunctions and p-nodes in ascending order."""
    return "\n".join(_lines(nodes.view(), 0, "root", ""))


def _lines(tree: Tree, x: int, what: str, indent: str) -> Iterator[str]:
    yield f"{indent}{what} {sorted(entries_of(tree, x))}"
    for p in sorted(p_nodes_of(tree, x), key=lambda p: int(tree.pnode[p, n.ATTR])):
        yield f"{indent}  p-node {tree.pnode[p, n.ATTR]}"
        yield from _bucket_lines(tree, int(tree.pnode[p, n.TOP]), indent + "    ")


def _bucket_lines(tree: Tree, x: int, indent: str) -> Iterator[str]:
    yield from _lines(tree, x, f"[{tree.cold[x, n.B_LO]}, {tree.cold[x, n.B_HI]}]", indent)
    for child in halves_of(tree, x):
        yield from _bucket_lines(tree, child, indent + "    ")


class _Sums(NamedTuple):
    """Sums over a node and all nodes below it."""

    conjunctions: list[int]
    subsumed: int
    covered: int
    loss: int
    nodes: int
    p_nodes: int


def check(nodes: Nodes, records: RecordArrays, home: Home, count: int, domains: DomainArrays) -> None:
    """Raise an AssertionError if an invariant does not hold."""
    tree = nodes.view()
    checker = _Checker(nodes, records)
    sums = checker.node(0, {})
    assert len(set(sums.conjunctions)) == len(sums.conjunctions) == count
    assert np.count_nonzero(home[:, n.NODE] >= 0) == count
    for c in sums.conjunctions:
        x, place = home[c]
        assert entries_of(tree, x)[place] == c
    assert sums.nodes == tree.state[n.NODES]
    assert sums.p_nodes == tree.state[n.PNODES] == len(nodes.pairs)
    assert tree.state[n.TASKS] == tree.state[n.PENDING] == 0
    checker.chunks()
    assert len(domains.kind) == 0 or domains.kind.min() >= -1


class _Checker:
    """Walks through a tree."""

    def __init__(self, nodes: Nodes, records: RecordArrays) -> None:
        self._nodes = nodes
        self._tree = nodes.view()
        self._records = records
        self._intervals: dict[int, dict[int, Interval]] = {}
        self._used: list[tuple[int, int]] = []

    def intervals(self, c: int) -> dict[int, Interval]:
        """Attribute -> the interval of its first usable predicate."""
        if c not in self._intervals:
            found: dict[int, Interval] = {}
            for d, mode, ends in self._predicates(c):
                if mode != Mode.ABSENT:
                    found.setdefault(d, (ends[0], ends[-1]) if mode == Mode.SOME else _EVERYTHING)
            self._intervals[c] = found
        return self._intervals[c]

    def _predicates(self, c: int) -> Iterator[tuple[int, int, list[int]]]:
        """Dimension, mode and ends of intervals of each predicate."""
        at = int(self._records.at[c])
        for _ in range(self._records.size[c]):
            head = int(self._records.words[at])
            number = intervals_in(head)
            yield dimension_in(head), mode_in(head), self._records.words[at + 1 : at + 1 + 2 * number].tolist()
            at += 1 + 2 * number

    def node(self, x: int, path: dict[int, int]) -> _Sums:
        """Check a node and all below it; `path` has the bucket of each attribute that was used."""
        hot, cold = self._tree.hot[x].tolist(), self._tree.cold[x].tolist()
        own = entries_of(self._tree, x)
        assert len(own) <= cold[n.CAP]
        assert cold[n.CAP] % self._tree.settings.max_cap == 0
        assert cold[n.SETTLED] == len(own)
        self._room(x, len(own))
        attributes = {int(self._tree.pnode[p, n.ATTR]) for p in p_nodes_of(self._tree, x)}
        assert len(attributes) == first_half(hot[n.PDIR])
        assert not attributes & path.keys(), "no attribute is used twice on a path"
        for c in own:
            assert not attributes & self.intervals(c).keys(), "an expression goes to a p-node where there is one"
        equal = sum(self._is_subsumed(c, d, bucket) for c in own for d, bucket in path.items())
        assert (cold[n.OWN_SUBSUMED], cold[n.OWN_COVERED]) == (equal, len(own) * len(path) - equal)
        below = [self.partition(p, path) for p in p_nodes_of(self._tree, x)]
        below += [self.bucket(child, path, x) for child in halves_of(self._tree, x)]
        sums = _Sums(
            own + [c for part in below for c in part.conjunctions],
            equal + sum(part.subsumed for part in below),
            cold[n.OWN_COVERED] + sum(part.covered for part in below),
            cold[n.LOSS] + sum(part.loss for part in below),
            1 + sum(part.nodes for part in below),
            sum(part.p_nodes for part in below),
        )
        found = len(sums.conjunctions), sums.subsumed, sums.covered, sums.loss
        assert (cold[n.BELOW], cold[n.SUBSUMED], cold[n.COVERED], cold[n.LOSS_BELOW]) == found
        assert x == 0 or sums.conjunctions, "empty nodes vanish"
        return sums

    def _is_subsumed(self, c: int, d: int, bucket: int) -> bool:
        ends = self._tree.cold[bucket, [n.B_LO, n.B_HI]].tolist()
        return (d, int(Mode.SOME), ends) in self._predicates(c)

    def partition(self, p: int, path: dict[int, int]) -> _Sums:
        """Check a p-node."""
        x, attribute = int(self._tree.pnode[p, n.CNODE]), int(self._tree.pnode[p, n.ATTR])
        assert self._nodes.pairs.get(x, attribute) == p
        top = int(self._tree.pnode[p, n.TOP])
        assert self._tree.cold[top, n.OWNER] == p
        assert self._tree.cold[top, n.ABOVE] == -1
        sums = self.bucket(top, {**path, attribute: top}, -1)
        return sums._replace(p_nodes=sums.p_nodes + 1)

    def bucket(self, x: int, path: dict[int, int], above: int) -> _Sums:
        """Check a bucket: which expressions are in it, and whether it may be partitioned."""
        hot, cold = self._tree.hot[x].tolist(), self._tree.cold[x].tolist()
        d = int(self._tree.pnode[cold[n.OWNER], n.ATTR])
        assert cold[n.ABOVE] == above
        split = hot[n.SPLIT] != UNSPLIT
        assert split or not hot[n.KIDS]
        assert not split or cold[n.B_LO] <= hot[n.SPLIT] < cold[n.B_HI]
        sums = self.node(x, {**path, d: x})
        inside = {self.intervals(c)[d] for c in sums.conjunctions}
        assert min(lo for lo, _ in inside) >= hot[n.T_LO]
        assert max(hi for _, hi in inside) <= hot[n.T_HI]
        if split:
            for c in entries_of(self._tree, x):
                lo, hi = self.intervals(c)[d]
                assert lo <= hot[n.SPLIT] < hi, "it lies in the smallest bucket that encloses it"
        elif hot[n.PDIR]:
            assert len(inside) == 1 or cold[n.B_LO] >= cold[n.B_HI], "only atomic leaf buckets are partitioned"
        if above >= 0:
            self._enclosed(x, above, inside)
        return sums

    def _enclosed(self, x: int, above: int, inside: set[Interval]) -> None:
        cut = int(self._tree.hot[above, n.SPLIT])
        if second_half(int(self._tree.hot[above, n.KIDS])) == x:
            assert all(lo > cut for lo, _ in inside)
        else:
            assert all(hi <= cut for _, hi in inside)

    # -- chunks of entries

    def _room(self, x: int, count: int) -> None:
        room = int(self._tree.cold[x, n.ROOM])
        assert count <= (1 << room if room >= 0 else 0)
        if room >= 0:
            self._used.append((first_half(int(self._tree.hot[x, n.LEAF])), 1 << room))

    def chunks(self) -> None:
        """Check that the chunks of l-nodes and the free chunks together fill `data` without gaps."""
        chunks = list(self._used)
        for room in range(32):
            begin = int(self._tree.state[n.HEADS + room])
            while begin:
                chunks.append((begin - 1, 1 << room))
                begin = int(self._tree.data[begin - 1, n.ENTRY])
        end = 0
        for begin, size in sorted(chunks):
            assert begin == end
            end += size
        assert end == self._tree.state[n.DATA_END]
