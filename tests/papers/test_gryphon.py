"""The matching tree: its levels, edges and leaves, and which nodes an event visits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tamis
from tamis.encoding.dimensions.keys import KEY_MIN
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.papers.gryphon import LEAF, Gryphon, GryphonOptions
from tests.papers.naive import Event, RandomKeys, batch_of, matching, rows_of

pytestmark = pytest.mark.kernels

A, B, C = 0, 1, 2


def equal(attribute: int, value: int) -> Leaf:
    return Leaf(attribute, Mode.SOME, ((value, value),))


def below(attribute: int, value: int) -> Leaf:
    return Leaf(attribute, Mode.SOME, ((KEY_MIN, value - 1),))


def built(clauses: list[list[Leaf]], **options: Any) -> Gryphon:
    table = ConjunctionTable()
    index = Gryphon(table, GryphonOptions(**options))
    index.insert(table.intern(rows_of(clauses)))
    index.check()
    return index


def found(index: Gryphon, *events: Event) -> set[tuple[int, int]]:
    matches = index.match(batch_of(list(events)), 8)
    return set(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True))


DRAWN = [[equal(A, 1), below(B, 5)], [equal(A, 1)], [below(B, 5), equal(C, 2)]]


def test_the_tree_of_the_drawing() -> None:
    index = built(DRAWN, order="number")
    tree = index.tree
    assert tree.attribute.tolist() == [A, B, B, LEAF, LEAF, C, LEAF]
    assert tree.star.tolist() == [True, False, True, False, False, False, False]
    assert tree.edges.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert tree.child[[0, 1, 2, 5]].tolist() == [2, 5, 4, 6]
    assert index.stats() == {**index.stats(), "nodes": 7, "leaves": 3, "edges": 4, "stars": 2, "tests": 3}
    # a = 1, b < 5, c = 2 are tests 0, 1, 2
    assert index.paths() == {0: [0, 1], 1: [0], 2: [1, 2]}


def test_an_event_follows_true_tests_and_the_star() -> None:
    index = built(DRAWN, order="number")
    event: Event = {A: [(1, 1)], B: [(3, 3)]}
    matches = index.match(batch_of([event]), 8)
    assert sorted(matches.conjunction.tolist()) == [0, 1]
    assert matches.counters.candidates == 2
    # Nodes: a; behind a = 1, b and two leaves; behind the star, b and c.
    assert matches.counters.nodes == 6
    # One for a, one for b in each of two nodes; the event has no c to test.
    assert matches.counters.predicates == 3
    assert found(index, {A: [(2, 2)], B: [(3, 3)], C: [(2, 2)]}, {}) == {(0, 2)}


def test_conjunctions_with_the_same_tests_share_a_leaf() -> None:
    clauses = [[equal(A, 1), below(B, value)] for value in range(5)] + [[equal(A, 1), equal(B, 9)], [equal(A, 1)], []]
    index = built(clauses)
    figures = index.stats()
    assert figures["leaves"] == len(clauses)
    assert len(index.paths()) == len(clauses)


@pytest.mark.parametrize(("order", "level"), [("frequent", [B, C, A]), ("rare", [A, C, B]), ("number", [A, B, C])])
def test_the_order_of_levels(order: str, level: list[int]) -> None:
    index = built([[equal(A, 1), equal(B, 1), equal(C, 1)], [equal(B, 2), equal(C, 3)], [equal(B, 4)]], order=order)
    tests = index.paths()[0]
    assert [int(index.tree.tests.dimension[test]) for test in tests] == level


def test_nodes_without_tests_are_left_out() -> None:
    index = built([[equal(A, 1), equal(100, 1)], [equal(50, 1)]], order="number")
    assert index.stats()["nodes"] == 5  # a, 100, a leaf; 50, a leaf


def test_the_edge_of_an_equality_is_searched_among_many() -> None:
    """One search for the 500 equalities of a node, and a test for each of its three other edges."""
    clauses = [[equal(A, value)] for value in range(500)]
    clauses += [[below(A, 9)], [Leaf(A, Mode.NONE, ((4, 4),))], [Leaf(A, Mode.SOME, ((3, 3), (7, 7)))]]
    clauses += [[Leaf(A, Mode.ABSENT, ())]]
    index = built(clauses)
    assert found(index, {A: [(7, 7)]}) == {(0, 7), (0, 500), (0, 501), (0, 502)}
    # IS NULL is the fifth test.
    assert index.match(batch_of([{A: [(7, 7)]}]), 8).counters.predicates == 5
    assert index.match(batch_of([{}]), 8).counters.predicates == 1
    events: list[Event] = [{A: [(4, 4), (7, 7)]}, {A: [(3, 5)]}, {B: [(1, 1)]}, {A: [(-1, -1)]}, {A: [(900, 900)]}]
    assert found(index, *events) == matching(dict(enumerate(clauses)), events)


def test_equality_only_finds_one_edge_and_verifies_the_rest_at_leaves() -> None:
    clauses = [[equal(A, value)] for value in range(20)] + [[equal(A, 7), below(B, 5)], [below(B, 3)]]
    general, special = built(clauses), built(clauses, equality_only=True)
    events: list[Event] = [{A: [(7, 7)], B: [(4, 4)]}]
    assert found(general, *events) == found(special, *events) == {(0, 7), (0, 20)}
    assert special.stats()["tests"] == 20
    assert general.stats()["tests"] == 22
    # Conjunctions 7 and 20 are behind a = 7, and 21 is behind the star.
    assert special.match(batch_of(events), 8).counters.candidates == 3
    assert general.match(batch_of(events), 8).counters.candidates == 2
    # One search of a = 7 and one test of b < 5 behind it, and one of b < 3 behind the star. At leaves: one predicate, two, one.
    assert general.match(batch_of(events), 8).counters.predicates == 3
    assert special.match(batch_of(events), 8).counters.predicates == 1 + 1 + 2 + 1


@pytest.mark.parametrize(
    "options", [{"equality_only": True}, {"order": "rare"}, {"order": "number", "equality_only": True}]
)
def test_options_change_no_answer(options: dict[str, Any]) -> None:
    keys = RandomKeys(21)
    clauses = keys.clauses(60)
    index = built(clauses, **options)
    events = [keys.event() for _ in range(12)] + [keys.event(several=False, intervals=False) for _ in range(12)]
    assert found(index, *events) == matching(dict(enumerate(clauses)), events)
    index.delete(np.arange(0, 60, 3, dtype=np.int32))
    index.check()
    assert index.stats()["builds"] == 2


def test_a_matcher_takes_its_options() -> None:
    matcher = tamis.Matcher(index="gryphon", options={"equality_only": True})
    matcher.add_many(["a", "b", "c"], ["x = 1 AND y <= 5", "x = 1 AND name LIKE 'ab%'", "x = 2 OR z IS NULL"])
    assert sorted(matcher.match({"x": 1, "y": 3, "name": "abc", "z": 1})) == ["a", "b"]
    assert sorted(matcher.match({"x": 2})) == ["c"]
