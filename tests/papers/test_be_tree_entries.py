"""Entries of a BE-Tree: which predicates a candidate needs no evaluation of."""

from __future__ import annotations

import pytest

from tests.papers.be_trees import SMALL, A, B, C, agrees, some, tree_of
from tests.papers.naive import Event, batch_of

pytestmark = pytest.mark.kernels


def test_predicates_that_the_path_and_the_test_decide_are_not_evaluated_again() -> None:
    """All have a = 5, which the path decides. Of b and c, one is the test, so at most one is left in the record."""
    clauses = [[some(A, 5), some(B, 0, number), some(C, 0, number)] for number in range(12)]
    clauses += [[some(A, number)] for number in (1, 2, 3, 4, 6, 7, 8)]
    tree = tree_of(clauses, **SMALL)
    matches = tree.match(batch_of([{A: [(5, 5)], B: [(0, 0)], C: [(0, 0)]}]), 6)
    assert sorted(matches.conjunction.tolist()) == list(range(12))
    assert matches.counters.predicates <= 2 * 12
    agrees(tree, clauses, [{A: [(4, 4), (6, 6)], B: [(0, 0)], C: [(0, 0)]}, {A: [(4, 6)], B: [(0, 20)], C: [(3, 3)]}])


def test_a_bucket_of_one_value_may_get_another_one() -> None:
    """9 lies outside of the domain, in the last bucket, where entries rely on a = 8."""
    clauses = [[some(A, 8), some(B, number), some(C, 0, number)] for number in range(12)]
    clauses += [[some(A, number)] for number in range(1, 8)]
    clauses += [[some(A, 9), some(B, number)] for number in (3, 4)] + [[some(A, 9)]]
    tree = tree_of(clauses[:-3], **SMALL)
    events: list[Event] = [
        {A: [(a, a)], B: [(b, b)], C: [(c, c)]} for a in (7, 8, 9) for b in (3, 4, 5) for c in (0, 5)
    ]
    agrees(tree, clauses, events, range(len(clauses) - 3))
    tree = tree_of(clauses, **SMALL)
    agrees(tree, clauses, events)
