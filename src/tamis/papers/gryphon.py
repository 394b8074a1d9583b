"""`gryphon`: a static matching tree: one attribute per level, one edge per test, one edge for conjunctions without a test.

M. Aguilera, R. Strom, D. Sturman, M. Astley, T. Chandra: Matching Events in a Content-based Subscription System. PODC 1999. It
is the matching algorithm of the Gryphon system. The paper itself was not at hand. BE-Tree (sections 2 and 7.2), Fabret et al.
(related work) and Tatbul (section 2) describe it.

A conjunction is a sequence of tests, in one order of attributes. A node tests one attribute. Its edges are the tests on this
attribute by conjunctions with the same earlier tests. The edge `*` leads to conjunctions that do not test the attribute. An event
follows `*` and the edges whose tests are true. Every conjunction is in one leaf, at the end of its only path.

    a=1 b<5 | a=1 | b<5 c=2         a? --a=1--> b? --b<5--> [0]
                                     |           *--------> [1]
                                     *---------> b? --b<5--> c? --c=2--> [2]

    node          0     1     2     3     4     5     6          the node behind `*` follows its parent
    attribute     a     b     b     LEAF  LEAF  c     LEAF
    star          1     0     1     0     0     0     0
    edges         0     1     2     3     4     5     6     7    node n has edges[n] to edges[n + 1]
    others        1     1     2     3     4     6     6          edges before others[n] test IS NULL, then `=`
    test          a=1   b<5   b<5   1     0     c=2   2          of an edge; for a leaf, the first of its rows
    child         2     5     4     2     1     6     3          of an edge; for a leaf, the end of its rows

Invariants: tests ascend along a path and within a node; on one attribute, IS NULL comes first, then `=` by operand. The path to
the leaf of a conjunction has exactly its tests. A node is the child of one edge, or follows a node that has `*`, never both.

Departures from the paper:

- The order of attributes is ours. Attributes that most conjunctions test come first, or last, by option.
- A node with `*` alone is left out. Otherwise every path would have a level for each of thousands of attributes.
- The edge of an equality is found by binary search. Other edges of a node are tried one by one, and all edges if the event has
  several values or an interval.
- `equality_only` is the specialised version: only equalities are tests. The other predicates of a conjunction are verified at its
  leaf. In the general version every predicate is a test.
- Each test of a conjunction has its own level, even if several are on one attribute.
- Optimisations that our sources mention but do not describe are not implemented.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.evaluation import predicate_holds
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions, ConjunctionTable
from tamis.encoding.expressions.predicates import Predicates, taken
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import UP, Bools, I32s, I64s
from tamis.kernels.ranges import span_indices
from tamis.kernels.sorting import first_not_below
from tamis.papers.interface import Matches
from tamis.papers.options import Options, option
from tamis.papers.parts.collecting import Output, collect, is_true, note_event
from tamis.papers.parts.records import EventKeys, event_keys, load_keys, unload_keys
from tamis.papers.parts.size import held_bytes
from tamis.papers.parts.static import StaticIndex

LEAF = -1
_SOME, _ABSENT = int(Mode.SOME), int(Mode.ABSENT)


@dataclass(frozen=True, slots=True)
class GryphonOptions(Options):
    """The version of the algorithm, and the order of the levels."""

    equality_only: bool = option(False)
    order: str = option("frequent", choices=("frequent", "rare", "number"))


class Tree(NamedTuple):
    """The tree as kernels read it."""

    attribute: I32s
    star: Bools
    edges: I32s
    others: I32s
    test: I32s
    child: I32s
    rows: I32s
    tests: Predicates
    """The tests by number."""
    operand: I64s
    """The lowest key of each test."""


class Paths(NamedTuple):
    """The tests of rows: those of the i-th are `test[start[i]]` to `test[start[i + 1] - 1]`, ascending."""

    start: I64s
    test: I32s


class _Stack(NamedTuple):
    """Runs of rows with the same tests up to a depth, and the edge that leads to each run."""

    begin: I32s
    end: I32s
    depth: I32s
    parent: I32s


class _Scratch(NamedTuple):
    """Scratch that events reuse, one after another."""

    keys: EventKeys
    stack: I32s
    """Nodes to be visited."""


class Gryphon(StaticIndex):
    """A matching tree."""

    name = "gryphon"
    summary = (
        "a static matching tree: one attribute tested per level, one edge for subscriptions without a predicate on it"
    )
    paper = (
        "Aguilera, Strom, Sturman, Astley, Chandra: Matching Events in a Content-based Subscription System. PODC 1999, "
        "as the BE-Tree paper, sections 2 and 7.2, describes it"
    )
    options_type = GryphonOptions

    def _build(self, rows: I32s) -> None:
        paths = self._paths(rows)
        order = _in_order(paths)
        edges = len(paths.test) + len(rows)
        room = edges + len(rows) + 1
        tree = Tree(
            np.empty(room, np.int32),
            np.zeros(room, np.bool_),
            np.zeros(room + 1, np.int32),
            np.zeros(room, np.int32),
            np.empty(edges, np.int32),
            np.empty(edges, np.int32),
            rows[order],
            self._tests,
            _lowest(self._tests),
        )
        stack = _Stack(*np.empty((4, len(paths.test) + 1), np.int32))
        sorted_paths = _reordered(paths, order)
        nodes, used = _grow(sorted_paths, tree, stack) if len(rows) else (0, 0)
        self.tree = tree._replace(
            attribute=tree.attribute[:nodes].copy(),
            star=tree.star[:nodes].copy(),
            edges=tree.edges[: nodes + 1].copy(),
            others=tree.others[:nodes].copy(),
            test=tree.test[:used].copy(),
            child=tree.child[:used].copy(),
        )

    def _paths(self, rows: I32s) -> Paths:
        """The tests of each row, numbered in the order of levels; sets `_tests`, the predicates of these numbers."""
        start, predicates = self.table.view()
        counts = np.diff(start)[rows]
        chosen = span_indices(start[rows], counts)
        owner = np.repeat(np.arange(len(rows)), counts)
        if self.options.equality_only:
            first, last = predicates.start[chosen], predicates.start[chosen + 1]
            is_test = (last - first == 1) & (predicates.mode[chosen] == _SOME)
            at = first[is_test]
            is_test[is_test] = predicates.lo[at] == predicates.hi[at]
            chosen, owner = chosen[is_test], owner[is_test]
        distinct = ConjunctionTable()
        number = distinct.intern(Conjunctions(np.arange(len(chosen) + 1), taken(predicates, chosen)))
        tests = distinct.view().predicates
        order = self._levels(tests, np.bincount(tests.dimension[number]) if len(number) else np.zeros(0, np.int64))
        self._tests: Predicates = taken(tests, order)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order))
        test = place[number]
        sorting = np.lexsort((test, owner))
        return Paths(np.append(0, np.cumsum(np.bincount(owner, minlength=len(rows)))), test[sorting])

    def _levels(self, tests: Predicates, asked: I64s) -> I64s:
        """The order of the tests: by level of the attribute, IS NULL, `=` and others, then by lowest key."""
        dimensions = np.arange(len(asked))
        keys = {"frequent": -asked, "rare": asked, "number": dimensions}
        level = np.empty(len(asked), np.int64)
        level[np.lexsort((dimensions, keys[self.options.order]))] = dimensions
        return np.lexsort((_lowest(tests), 2 - _is_searched(tests) - (tests.mode == _ABSENT), level[tests.dimension]))

    def _match(self, batch: EventBatch, dimensions: int) -> Matches:
        scratch = _Scratch(event_keys(dimensions), np.empty(len(self.tree.child) + 1, np.int32))
        arguments = self.tree, self.table.view(), self.options.equality_only, batch, scratch
        return collect(batch, partial(_follow, *arguments))

    def _figures(self) -> dict[str, Any]:
        leaves = int(np.count_nonzero(self.tree.attribute == LEAF))
        return {
            "bytes": held_bytes(self.tree),
            "nodes": len(self.tree.attribute),
            "leaves": leaves,
            "edges": len(self.tree.test) - leaves,
            "stars": int(np.count_nonzero(self.tree.star)),
            "tests": len(self._tests.dimension),
        }

    def paths(self) -> dict[int, list[int]]:
        """The tests on the way to the leaf of each row, checked to be ascending. For unit tests."""
        tree, found = self.tree, dict[int, list[int]]()
        pending: list[tuple[int, list[int]]] = [(0, [])] if len(tree.attribute) else []
        visited = 0
        while pending:
            node, path = pending.pop()
            visited += 1
            begin, end = int(tree.edges[node]), int(tree.edges[node + 1])
            if tree.attribute[node] == LEAF:
                assert end == begin + 1
                assert not tree.star[node]
                found |= {int(row): path for row in tree.rows[tree.test[begin] : tree.child[begin]]}
                continue
            tests = tree.test[begin:end].tolist()
            assert tests == sorted(set(tests))
            assert tests
            assert {int(self._tests.dimension[test]) for test in tests} == {int(tree.attribute[node])}
            pending += [(int(tree.child[edge]), [*path, int(tree.test[edge])]) for edge in range(begin, end)]
            if tree.star[node]:
                pending.append((node + 1, path))
        assert visited == len(tree.attribute)
        return found

    def _check(self) -> None:
        found = self.paths()
        assert sorted(found) == self._rows.tolist()
        assert len(self.tree.rows) == len(self._rows)
        expected = self._paths(self._rows)
        for i, row in enumerate(self._rows.tolist()):
            assert found[row] == expected.test[expected.start[i] : expected.start[i + 1]].tolist()


def _lowest(tests: Predicates) -> I64s:
    """The lowest key that each test names; 0 if it names none."""
    filled = np.diff(tests.start) > 0
    lowest = np.zeros(len(tests.dimension), np.int64)
    lowest[filled] = tests.lo[tests.start[:-1][filled]]
    return lowest


def _is_searched(tests: Predicates) -> I64s:
    """1 for equalities and IS NULL, else 0."""
    single = (np.diff(tests.start) == 1) & (tests.mode == _SOME)
    at = tests.start[:-1][single]
    found = (tests.mode == _ABSENT).astype(np.int64)
    found[single] = tests.lo[at] == tests.hi[at]
    return found


def _in_order(paths: Paths) -> I64s:
    """The order of rows by their tests; a row comes after the longer rows that begin with all its tests.

    A stable sort by the last test first: each pass sorts only the rows that are long enough.
    """
    lengths = np.diff(paths.start)
    by_length = np.argsort(lengths, kind="stable")
    bounds = np.searchsorted(lengths[by_length], np.arange(int(lengths.max(initial=0)) + 2))
    order = np.zeros(0, np.int64)
    for length in range(len(bounds) - 2, 0, -1):
        order = np.concatenate([order, by_length[bounds[length] : bounds[length + 1]]])
        order = order[np.argsort(paths.test[paths.start[order] + length - 1], kind="stable")]
    return np.concatenate([order, by_length[: bounds[1] if len(bounds) > 1 else 0]])


def _reordered(paths: Paths, order: I64s) -> Paths:
    counts = np.diff(paths.start)[order]
    return Paths(np.append(0, np.cumsum(counts)), paths.test[span_indices(paths.start[order], counts)])


@lean_kernel
def _grow(paths: Paths, tree: Tree, stack: _Stack) -> tuple[int, int]:
    """Write the tree over ordered rows; returns how many nodes and edges it has."""
    start, test, attribute, dimension = paths.start, paths.test, tree.attribute, tree.tests.dimension
    stack.begin[0], stack.end[0], stack.depth[0], stack.parent[0] = 0, len(start) - 1, 0, -1
    height, nodes, used = 1, 0, 0
    while height > 0:
        height -= 1
        row, end, depth, parent = stack.begin[height], stack.end[height], stack.depth[height], stack.parent[height]
        if parent >= 0:
            tree.child[parent] = nodes
        pushed = height
        while row < end:
            tree.edges[nodes], tree.others[nodes] = used, used
            at = start[row] + depth
            if at == start[row + 1]:  # This and all that follow have no more tests.
                attribute[nodes] = LEAF
                tree.test[used], tree.child[used] = row, end
                used += 1
                row = end
            else:
                attribute[nodes] = dimension[test[at]]
                while row < end and start[row] + depth < start[row + 1]:
                    same = test[start[row] + depth]
                    if dimension[same] != attribute[nodes]:
                        break
                    stack.begin[height], stack.depth[height], stack.parent[height] = row, depth + 1, used
                    tree.test[used] = same
                    tree.others[nodes] += _is_equality(tree.tests, same) or tree.tests.mode[same] == _ABSENT
                    while row < end and start[row] + depth < start[row + 1] and test[start[row] + depth] == same:
                        row += 1
                    stack.end[height] = row
                    height += 1
                    used += 1
                tree.star[nodes] = row < end
            nodes += 1
        # Grow the first edge first: nodes that are visited soon lie near.
        low, high = pushed, height - 1
        while low < high:
            for column in (stack.begin, stack.end, stack.depth, stack.parent):
                column[low], column[high] = column[high], column[low]
            low, high = low + 1, high - 1
    tree.edges[nodes] = used
    return nodes, used


@inlined
def _is_equality(tests: Predicates, t: int) -> bool:
    at = tests.start[t]
    return tests.mode[t] == _SOME and tests.start[t + 1] == at + 1 and tests.lo[at] == tests.hi[at]


@inlined
def _equal_edge(begin: int, end: int, tests: I32s, operands: I64s, key: int) -> int:
    """The edge whose test is for a key, among edges with ascending operands; `end` if there is none."""
    at = first_not_below(tests, operands, begin, end, key)
    return at if at < end and operands[UP(tests[UP(at)])] == key else end


@lean_kernel
def _follow(
    tree: Tree,
    table: Conjunctions,
    equality_only: bool,
    batch: EventBatch,
    scratch: _Scratch,
    event: int,
    output: Output,
) -> int:
    """Follow the edges that are true of each event from one on, and `*`."""
    keys, stack = scratch.keys, scratch.stack
    filled = 0
    for e in range(event, len(batch.start) - 1):
        before = filled
        candidates, tested, nodes = 0, 0, 0
        single_valued = load_keys(batch, e, keys)
        height = 0
        if len(tree.attribute):
            stack[0] = 0
            height = 1
        while height > 0:
            height -= 1
            node = stack[height]
            while True:
                nodes += 1
                d = tree.attribute[UP(node)]
                begin = tree.edges[UP(node)]
                if d == LEAF:
                    candidates += tree.child[begin] - tree.test[begin]
                    filled, more = _report(begin, tree, equality_only, table, batch, keys, output, filled)
                    tested += more
                    break
                height, more = _push_true(node, tree, single_valued, batch, scratch, height)
                tested += more
                if not tree.star[UP(node)]:
                    break
                node += 1
        unload_keys(batch, e, keys)
        if filled > len(output.matches):
            return e
        note_event(e, filled - before, candidates, tested, nodes, output)
    return len(batch.start) - 1


@inlined
def _report(
    leaf: int,
    tree: Tree,
    evaluate: bool,
    table: Conjunctions,
    batch: EventBatch,
    keys: EventKeys,
    output: Output,
    at: int,
) -> tuple[int, int]:
    """Write the rows of a leaf, or only the true ones; returns how many matches there are, and how many tests were made."""
    tested = 0
    for i in range(tree.test[leaf], tree.child[leaf]):
        if evaluate:
            true, more = is_true(tree.rows[i], table, batch, keys.places)
            tested += more
            if not true:
                continue
        if at < len(output.matches):
            output.matches[at] = tree.rows[i]
        at += 1
    return at, tested


@merged
def _push_true(
    node: int, tree: Tree, single_valued: bool, batch: EventBatch, scratch: _Scratch, height: int
) -> tuple[int, int]:
    """Push the children behind the true edges of a node; returns the height of the stack, and how many edges were tested."""
    keys, tests, d = scratch.keys, tree.tests, tree.attribute[UP(node)]
    first, others, tested = tree.edges[UP(node)], tree.others[UP(node)], 0
    if first < others and tests.mode[UP(tree.test[UP(first)])] == _ABSENT:
        tested += 1
        if keys.places.values[UP(d)] == 0:
            scratch.stack[height] = tree.child[first]
            height += 1
        first += 1
    if keys.places.values[UP(d)] == 0:
        return height, tested
    if single_valued and first < others:
        tested += 1
        edge = _equal_edge(first, others, tree.test, tree.operand, keys.key[UP(d)])
        if edge < others:
            scratch.stack[height] = tree.child[edge]
            height += 1
        first = others
    for edge in range(first, tree.edges[UP(node + 1)]):
        t = tree.test[UP(edge)]
        at, mode = tests.start[UP(t)], tests.mode[UP(t)]
        tested += 1
        if single_valued and mode == _SOME and tests.start[UP(t + 1)] - at == 1:
            true = tests.lo[UP(at)] <= keys.key[UP(d)] <= tests.hi[UP(at)]
        else:
            true = predicate_holds(t, tests, batch, keys.places)
        if true:
            scratch.stack[height] = tree.child[edge]
            height += 1
    return height, tested
