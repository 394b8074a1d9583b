"""The BE-Tree's ranks, and nodes that are recycled because of them."""

from __future__ import annotations

import pytest

from tamis.encoding.dimensions.leaf import Leaf
from tamis.papers.be_tree import BETree
from tamis.papers.be_tree.inspection import entries_of
from tamis.papers.be_tree.nodes import BELOW, COVERED, LOSS, LOSS_UNIT, SUBSUMED, rank_of
from tests.papers.naive import Event, batch_of
from tests.papers.test_be_tree import PAPER, SMALL, A, B, agrees, drawn, pairs, some, tree_of

pytestmark = pytest.mark.kernels


def test_gain_counts_subsumed_and_covered_predicates() -> None:
    tree = tree_of(PAPER, **SMALL, alpha_s=1, alpha_c=1)
    arrays = tree.nodes.view()
    top = next(x for x in range(1, 9) if sorted(entries_of(arrays, x)) == [3])
    # Below a's top bucket: S4 and S8 have a; S1, S7, S9 have a and b. S1 is equal to a's [1, 8].
    assert arrays.cold[top, [BELOW, SUBSUMED, COVERED]].tolist() == [5, 1, 7]
    assert rank_of(arrays.cold, arrays.settings, top) == 8
    assert arrays.cold[0, [SUBSUMED, COVERED]].tolist() == [1, 10]


def test_loss_counts_false_candidates() -> None:
    tree = tree_of(
        [[some(A, number, 50)] for number in range(1, 5)], max_cap=3, least_window=4, theta=-100.0, alpha_s=1, alpha_c=1
    )
    arrays = tree.nodes.view()
    top = next(x for x in range(1, 3) if arrays.cold[x, BELOW] == 4)
    pairs(tree, [{A: [(2, 2)]}] * 9)
    # The two intervals that begin at 3 and 4 are false candidates, each after one test.
    buckets = [x for x in range(1, int(arrays.state[0])) if len(entries_of(tree.nodes.view(), x))]
    assert sum(int(arrays.cold[x, LOSS]) for x in buckets) == 2 * LOSS_UNIT
    assert rank_of(arrays.cold, arrays.settings, top) == 4 - 2


def test_a_node_whose_rank_falls_is_recycled() -> None:
    clauses = [[some(A, number, 50), some(B, number)] for number in range(1, 30)]
    tree = tree_of(clauses, least_window=5, theta=1e9)
    before = tree.draw()
    events: list[Event] = [{A: [(20, 20)], B: [(3, 3)]}] * 12
    agrees(tree, clauses, events)
    assert tree.stats()["recycled"] > 0
    tree.check()
    agrees(tree, clauses, events)
    still = tree_of(clauses, least_window=5, theta=1e9, recycling=False)
    pairs(still, events)
    assert still.stats()["recycled"] == 0
    assert still.draw() == before


RARE = range(1, 31)
COMMON = 0
CROWDED: list[list[Leaf]] = [[some(COMMON, 1, 90), some(rare, number)] for number in range(2) for rare in RARE]
"""Every event has the common attribute. Too few expressions have each of the others for a p-node of it."""
ROOMY: list[list[Leaf]] = [[some(rare, number)] for rare in RARE for number in range(3)]
"""With these, all attributes but the common one get p-nodes."""
COMMON_EVENTS: list[Event] = [{COMMON: [(5, 5)], RARE[i % 30]: [(1, 1)]} for i in range(360)]


def candidates_per_event(tree: BETree) -> float:
    return tree.match(batch_of(COMMON_EVENTS), 31).counters.candidates / len(COMMON_EVENTS)


def test_expressions_move_to_better_nodes_by_default() -> None:
    tree = tree_of(CROWDED + ROOMY)
    still = tree_of(CROWDED + ROOMY, recycling=False)
    for each in (tree, still):
        assert candidates_per_event(each) > len(CROWDED)  # all below the common attribute are candidates of all events
    assert tree.stats()["recycled"] == 1
    tree.check()
    assert candidates_per_event(tree) <= 10
    assert candidates_per_event(still) > len(CROWDED)
    agrees(tree, CROWDED + ROOMY, COMMON_EVENTS)


def test_nodes_without_a_better_place_are_not_recycled_for_ever() -> None:
    tree = tree_of(CROWDED)
    for _ in range(20):
        assert candidates_per_event(tree) >= len(CROWDED)
    tree.check()
    # Some 24 windows of the common attribute's node end. Insertions pay for recycling it once, candidates for once more.
    assert 1 <= tree.stats()["recycled"] <= 3


def test_a_histogram_prefers_attributes_that_tell_apart() -> None:
    # All have a, but in wide intervals. Fewer have b, each with another value.
    clauses = [[some(A, 1, 90 + number), some(B, number)] for number in range(1, 10)] + [[some(A, 1, 90)]]
    popular = tree_of(clauses, one_by_one=False)
    selective = tree_of(clauses, one_by_one=False, loss="histogram")
    assert drawn(popular)[1] == "  p-node 0"
    assert drawn(selective)[1] == "  p-node 1"
    for tree in (popular, selective):
        agrees(tree, clauses, [{A: [(95, 95)], B: [(7, 7)]}, {A: [(50, 50)]}])
