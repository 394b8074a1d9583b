"""Tatbul's five indexes on constant predicates: the examples of the paper, and the special features of each index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tamis
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.papers.interface import Counters, Matches
from tamis.papers.registry import find_index
from tamis.papers.tatbul.cluster_index import ClusterIndex
from tamis.papers.tatbul.cluster_tree import LEAF, Ordered, build_clusters, choose_key, endpoints_of, halves, score_of
from tamis.papers.tatbul.elementary import cells_of, vectors_of_cells
from tamis.papers.tatbul.hybrid_index import HybridIndex, HybridOptions
from tamis.papers.tatbul.interval_index import IntervalIndex
from tamis.papers.tatbul.interval_tree import IntervalTree
from tamis.papers.tatbul.profiles import Intervals, profiles_of
from tamis.papers.tatbul.segment_tree import SegmentTree
from tamis.papers.tatbul.vectors import Lists, distinct, members, vectors
from tests.papers.naive import RandomKeys, batch_of, matching, rows_of

pytestmark = pytest.mark.kernels

FIVE = ("cluster-index", "hybrid-index", "interval-index", "interval-tree", "segment-tree")
five = pytest.mark.parametrize("name", FIVE)

EXAMPLE_4 = [(12, 25), (8, 45), (15, 40), (26, 28), (2, 50), (60, 70), (5, 35), (30, 65), (72, 80), (85, 90)]
"""A substitute for the paper's profiles on x, whose figures are lost. It agrees with everything that the text says."""
ANSWER = {0, 1, 2, 4, 6}
"""The profiles that match x = 20."""


def some(dimension: int, *intervals: tuple[int, int]) -> Leaf:
    return Leaf(dimension, Mode.SOME, intervals)


def built(name: str, clauses: list[list[Leaf]], **options: Any) -> Any:
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    assert numbers.tolist() == list(range(len(clauses)))
    kind = find_index(name)
    assert kind is not None
    index = kind(table, kind.options_type(**options))
    index.insert(numbers)
    index.check()
    return index


def of_one_attribute(name: str, intervals: list[tuple[int, int]], **options: Any) -> Any:
    return built(name, [[some(0, interval)] for interval in intervals], **options)


def match_key(index: Any, key: int) -> Matches:
    found: Matches = index.match(batch_of([{0: [(key, key)]}]), 1)
    return found


def laid_out(intervals: list[tuple[int, int]]) -> Intervals:
    lo, hi = np.array(intervals, np.int64).reshape(-1, 2).T
    count = len(intervals)
    return Intervals(np.array([0, count]), np.arange(count, dtype=np.int32), lo.copy(), hi.copy())


# -- the paper's examples


def test_keys_of_the_cluster_index_and_their_scores() -> None:
    lo, hi = np.array([(2, 19), (6, 23), (6, 48), (21, 23), (23, 50)], np.int64).T.copy()
    by_lo, by_hi = (np.argsort(ends, kind="stable").astype(np.int32) for ends in (lo, hi))
    ordered = Ordered(lo, hi, by_lo, by_hi)
    endpoint, tried = np.zeros(10, np.int64), np.full(10, -1, np.int64)
    count = endpoints_of(ordered, 0, 5, endpoint)
    assert endpoint[:count].tolist() == [2, 6, 19, 21, 23, 48, 50]
    chosen = choose_key(ordered, 0, 5, endpoint, count, tried)
    assert endpoint[tried[:3]].tolist() == [21, 48, 23]
    assert tried[3] == -1
    parts = [halves(ordered, 0, 5, key) for key in (21, 48, 23)]
    assert parts == [(3, 4), (5, 2), (4, 4)]
    assert [score_of(*part, 5) for part in parts] == [3, 5, 3]
    assert endpoint[chosen] == 21, "of equal scores the first stays"


def test_elementary_intervals() -> None:
    cells = cells_of(laid_out([(2, 18), (5, 30)]))
    assert list(zip(cells.lo.tolist(), cells.hi.tolist(), strict=True)) == [
        (KEY_MIN, 1), (2, 2), (3, 4), (5, 5), (6, 17), (18, 18), (19, 29), (30, 30), (31, KEY_MAX),
    ]  # fmt: skip
    assert cells.first.tolist() == [1, 3]
    assert cells.last.tolist() == [5, 7]


def test_gaps_without_a_key_are_not_elementary_intervals() -> None:
    cells = cells_of(laid_out([(KEY_MIN, 4), (5, KEY_MAX), (KEY_MIN + 1, KEY_MAX), (KEY_MAX, KEY_MAX)]))
    assert list(zip(cells.lo.tolist(), cells.hi.tolist(), strict=True)) == [
        (KEY_MIN + 1, KEY_MIN + 1), (KEY_MIN + 2, 3), (4, 4), (5, 5), (6, KEY_MAX - 1), (KEY_MAX, KEY_MAX),
    ]  # fmt: skip
    assert cells.first.tolist() == [0, 3, 0, 5]
    assert cells.last.tolist() == [2, 5, 5, 5]
    open_everywhere = cells_of(laid_out([(KEY_MIN, KEY_MAX)]))
    assert (open_everywhere.lo.tolist(), open_everywhere.hi.tolist()) == ([KEY_MIN], [KEY_MAX])


@five
def test_example_4(name: str) -> None:
    index = of_one_attribute(name, EXAMPLE_4)
    assert set(match_key(index, 20).conjunction.tolist()) == ANSWER
    for key in range(95):
        truth = {i for i, (lo, hi) in enumerate(EXAMPLE_4) if lo <= key <= hi}
        assert set(match_key(index, key).conjunction.tolist()) == truth


def test_example_4_in_the_interval_tree() -> None:
    index = of_one_attribute("interval-tree", EXAMPLE_4)
    assert isinstance(index, IntervalTree)

    def node(key: int) -> tuple[list[int], list[int], int | None, int | None]:
        """The left and the right list of a node, and the keys of its children."""
        at = nodes.key.tolist().index(key)
        own = slice(nodes.begin[at], nodes.end[at])
        left, right = (int(nodes.key[link[at]]) if link[at] >= 0 else None for link in (nodes.left, nodes.right))
        return index.lists.by_lo[own].tolist(), index.lists.by_hi[own].tolist(), left, right

    nodes = index.nodes
    assert nodes.key[nodes.root[0]] == 35
    assert node(35) == ([4, 6, 1, 2, 7], [7, 4, 1, 2, 6], 25, 72)
    assert node(25) == ([0], [0], None, 26)
    assert node(26) == ([3], [3], None, None)
    assert node(72) == ([8], [8], 60, 85)
    assert node(60) == ([5], [5], None, None)
    assert node(85) == ([9], [9], None, None)
    found = index.find(np.array([0]), np.array([20]))
    assert found.what.tolist() == [4, 6, 1, 2, 0]
    # Two nodes, the list of one up to profile 7, which fails, and the whole list of the other: profile 0.
    assert (found.nodes, found.comparisons) == (2, 2 + 5 + 1)
    at_a_key = index.find(np.array([0]), np.array([35]))
    assert (at_a_key.what.tolist(), at_a_key.comparisons) == ([4, 6, 1, 2, 7], 1)


def test_example_4_in_the_cluster_index() -> None:
    index = of_one_attribute("cluster-index", EXAMPLE_4)
    assert isinstance(index, ClusterIndex)
    tree = index.tree
    root = tree.root[0]
    assert tree.key[root] == 45
    left = tree.left[root]
    assert tree.key[left] == 26
    leaf = tree.left[left]
    assert tree.left[leaf] == LEAF
    assert set(members(index.vectors, tree.right[leaf]).tolist()) == ANSWER
    matches = match_key(index, 20)
    # Two keys, and one predicate for each of the five profiles that may match.
    assert matches.counters == Counters(5, 2 + 5, 3)
    assert match_key(index, 3).counters.candidates == 5
    assert match_key(index, 3).conjunction.tolist() == [4]


def test_example_4_in_the_interval_index() -> None:
    index = of_one_attribute("interval-index", EXAMPLE_4)
    assert isinstance(index, IntervalIndex)
    # Of 41 elementary intervals, five are left out: both ends, (70, 72) and (80, 85) without profiles, (25, 26) without keys.
    assert index.stats()["tree_nodes"] == 41 - 5
    root = (36 + 1) // 2 - 1
    assert (index.lo[root], index.hi[root]) == (35, 35)
    assert match_key(index, 35).counters == Counters(5, 1, 1)
    assert match_key(index, 1).conjunction.tolist() == []
    assert match_key(index, 1).counters.nodes == 5


def test_example_4_in_the_hybrid_index() -> None:
    index = of_one_attribute("hybrid-index", EXAMPLE_4, min_cluster_size=1)
    assert isinstance(index, HybridIndex)
    assert index.tree.key[index.tree.root[0]] == 45
    cluster = of_one_attribute("cluster-index", EXAMPLE_4)
    assert index.stats()["clusters"] == cluster.stats()["leaves"]
    matches = match_key(index, 20)
    assert matches.counters.candidates == len(ANSWER)
    assert of_one_attribute("hybrid-index", EXAMPLE_4, min_cluster_size=10).stats()["clusters"] == 1
    assert (
        1
        < of_one_attribute("hybrid-index", EXAMPLE_4, min_cluster_size=4).stats()["clusters"]
        < index.stats()["clusters"]
    )
    with pytest.raises(tamis.OptionError, match="at least 1"):
        tamis.Matcher(index="hybrid-index", options={"min_cluster_size": 0})
    assert HybridOptions().min_cluster_size == 10


def test_canonical_nodes_of_the_segment_tree() -> None:
    index = of_one_attribute("segment-tree", [(2, 18), (30, KEY_MAX), (KEY_MIN, KEY_MAX), (5, 5), (KEY_MIN, 30)])
    assert isinstance(index, SegmentTree)
    # Nine leaves; levels of 9, 5, 3, 2 and 1 begin at 0, 9, 14, 17 and 19.
    tree = index.tree
    assert len(tree.lo) == 9
    assert tree.base.tolist() == [0, 20]
    held = {
        node: set(members(index.vectors, number).tolist())
        for node, number in enumerate(tree.vector_of.tolist())
        if number >= 0
    }
    assert held == {
        1: {0},  # [2, 2]
        9 + 1: {0},  # (2, 5) and [5, 5]
        9 + 2: {0},  # (5, 18) and [18, 18]
        7: {1},  # [30, 30]
        17 + 1: {1},  # (30, inf), promoted three times
        19: {2},  # the root
        3: {3},
        17 + 0: {4},  # all before (30, inf)
    }
    matches = match_key(index, 18)
    assert sorted(matches.conjunction.tolist()) == [0, 2, 4]
    assert (matches.counters.nodes, matches.counters.predicates) == (5, 4)
    assert match_key(index, 31).counters.nodes == 2, "the promoted leaf is the root's child"


# -- common to all five


def test_a_vector_is_a_list_or_bits_whatever_takes_less() -> None:
    """200 profiles take four words of bits, as much as eight profiles in a list."""
    lists = [[3, 1, 3, 199], [], list(range(0, 160, 20)), [*range(0, 180, 20), 64, 63, 0]]
    laid = Lists(
        np.append(0, np.cumsum(list(map(len, lists)))),
        np.array([profile for each in lists for profile in each], np.int32),
    )
    made = vectors(distinct(laid, 200), 200)
    assert [members(made, number).tolist() for number in range(4)] == [sorted(set(each)) for each in lists]
    assert made.counts.tolist() == [3, 0, 8, 11]
    assert len(made.profiles) == 3 + 8
    assert len(made.words) == made.width == 4


@five
@pytest.mark.parametrize("profiles", [1, 63, 64, 65, 300])
def test_bits_of_many_profiles(name: str, profiles: int) -> None:
    """Half of the profiles are true of a value, so that vectors are bits; the last ones need an attribute that is rare."""
    clauses = [[some(0, (number % 7, number % 7 + 3 + number))] for number in range(profiles)]
    clauses += [[some(0, (0, 5)), some(1, (number, number))] for number in range(3)]
    index = built(name, clauses)
    events: list[Any] = [{0: [(key, key)], 1: [(key % 4, key % 4)]} for key in range(9)] + [{0: [(5, 5)]}, {}]
    found = index.match(batch_of(events), 2)
    expected = matching(dict(enumerate(clauses)), events)
    assert set(zip(found.event.tolist(), found.conjunction.tolist(), strict=True)) == expected
    if name != "cluster-index":
        # An event lacks an attribute in one case: three profiles support attribute 0 and lack attribute 1.
        assert found.counters.candidates == len(expected) + 3


@five
def test_vectors_of_attributes_are_anded(name: str) -> None:
    clauses = [[some(0, (1, 5)), some(1, (1, 5))], [some(0, (3, 9))], [some(1, (4, 4)), some(2, (0, 9))], []]
    index = built(name, clauses)
    events: list[Any] = [
        {0: [(4, 4)], 1: [(4, 4)]},
        {0: [(4, 4)]},
        {1: [(4, 4)], 2: [(0, 0)]},
        {},
        {0: [(7, 7)], 3: [(1, 1)]},
    ]
    found = index.match(batch_of(events), 4)
    assert set(zip(found.event.tolist(), found.conjunction.tolist(), strict=True)) == matching(
        dict(enumerate(clauses)), events
    )


@five
def test_several_predicates_on_one_attribute_are_one_set(name: str) -> None:
    clauses = [
        [some(0, (1, 9)), Leaf(0, Mode.NONE, ((3, 3), (5, 6))), some(0, (2, 20))],
        [some(0, (1, 2)), some(0, (4, 5))],
        [some(0, (1, 2)), Leaf(0, Mode.ABSENT, ())],
        [Leaf(0, Mode.NONE, ((KEY_MIN + 1, KEY_MAX - 1),))],
    ]
    index = built(name, clauses)
    profiles = profiles_of(index.table.view(), np.arange(4, dtype=np.int32))
    ends = list(zip(*(column.tolist() for column in profiles.intervals[1:]), strict=True))
    assert ends == [(0, 2, 2), (0, 4, 4), (0, 7, 9), (3, KEY_MAX, KEY_MAX)]
    assert profiles.several.data.tolist() == [0, 1, 2]
    events: list[Any] = [{0: [(key, key)]} for key in (*range(12), KEY_MIN + 1, KEY_MAX)]
    # Two values together satisfy what neither satisfies alone.
    events += [{0: [(1, 1), (4, 4)]}, {0: [(2, 5)]}, {0: [(2, 2), (3, 3)]}, {}]
    found = index.match(batch_of(events), 1)
    assert set(zip(found.event.tolist(), found.conjunction.tolist(), strict=True)) == matching(
        dict(enumerate(clauses)), events
    )


def test_an_index_that_does_not_fit_at_once_is_built_in_parts() -> None:
    table = ConjunctionTable()
    numbers = table.intern(rows_of(RandomKeys(3).clauses(150)))
    intervals = profiles_of(table.view(), numbers).intervals
    (tree, whole), (other, parts) = build_clusters(intervals, 1), build_clusters(intervals, 1, least_room=4)
    assert [each.tolist() for each in parts] == [each.tolist() for each in whole]
    has_key = tree.left != LEAF
    assert [each.tolist() for each in (other.root, other.key[has_key], other.left, other.right)] == [
        each.tolist() for each in (tree.root, tree.key[has_key], tree.left, tree.right)
    ]
    cells = cells_of(intervals)
    (vectors, covered), in_parts = (vectors_of_cells(intervals, cells, 150, most) for most in (1 << 25, 50))
    assert [np.array(each).tolist() for each in vectors] == [np.array(each).tolist() for each in in_parts[0]]
    assert np.array_equal(covered, in_parts[1])


def test_an_interval_tree_finds_more_than_it_has_room_for_at_first() -> None:
    index = of_one_attribute("interval-tree", [(number % 7, 100 + number) for number in range(200)])
    found = index.match(batch_of([{0: [(key, key)]} for key in range(10, 60)]), 1)
    assert sorted(zip(found.event.tolist(), found.conjunction.tolist(), strict=True)) == [
        (event, profile) for event in range(50) for profile in range(200)
    ]


def comparisons(name: str, width: int, count: int = 200) -> float:
    """The number of evaluations for a document. Profiles have two attributes with intervals of a given width, below 2,000."""
    chance = np.random.default_rng(5)
    at = chance.integers(0, 2000, (count, 2)).tolist()
    clauses = [[some(d, (lo, lo + width)) for d, lo in enumerate(each)] for each in at]
    events: list[Any] = [
        {d: [(key, key)] for d, key in enumerate(each)} for each in chance.integers(0, 2000, (50, 2)).tolist()
    ]
    found = built(name, clauses).match(batch_of(events), 2)
    return float(found.counters.predicates / 50)


@pytest.mark.compiled
def test_evaluations_as_in_the_papers_figures() -> None:
    few = {name: comparisons(name, 10) for name in FIVE}
    # Every index needs far fewer than 400 evaluations. Figure 7: the interval and the cluster index are best.
    assert all(value < 40 for value in few.values())
    assert min(few, key=lambda name: few[name]) in ("cluster-index", "interval-index")
    many = {name: comparisons(name, 1500) for name in FIVE}
    # Figure 8: overlap has no effect on interval index and segment tree, and a large effect on cluster index and interval tree.
    for name in ("interval-index", "segment-tree"):
        assert many[name] < 1.3 * few[name]
    for name in ("cluster-index", "interval-tree"):
        assert many[name] > 3 * few[name]
    assert many["hybrid-index"] < many["cluster-index"]


@five
def test_a_matcher_with_the_index(name: str) -> None:
    matcher = tamis.Matcher(index=name)
    matcher.add_many(["a", "b", "c"], ["x BETWEEN 2 AND 50 AND y > 3", "x IS NULL", "s LIKE '%oo%' AND x <> 7"])
    assert matcher.match({"x": 20, "y": 4}) == ["a"]
    assert matcher.match({"y": 4}) == ["b"]
    assert sorted(matcher.match({"x": [7, 8], "y": 4, "s": "foo"})) == ["a"]
    assert sorted(matcher.match({"x": 8, "s": "foo"})) == ["c"]
    figures = matcher.stats()["index_stats"]
    assert figures["static"]
    assert figures["attributes"] >= 3
