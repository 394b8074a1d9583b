"""The counting algorithm: predicates with one bound and hit counters; SIFT's key method and tree method."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.encoding.dimensions.intervals import EVERYTHING
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.language.evaluate import matches
from tamis.papers.counting.hit_counting import ABSENT, ALWAYS, AT_LEAST, AT_MOST, EQUAL, KINDS
from tamis.papers.counting.index import Counting, CountingOptions
from tamis.papers.counting.sift import KeyMethod, TreeMethod
from tamis.papers.interface import Counters
from tests.papers.naive import RandomKeys, batch_of, matching, rows_of
from tests.random_cases import RandomCases

pytestmark = pytest.mark.kernels

SIFT = ("enumeration", "key", "tree")


def some(dimension: int, *intervals: tuple[int, int]) -> Leaf:
    return Leaf(dimension, Mode.SOME, intervals)


def none(dimension: int, *intervals: tuple[int, int]) -> Leaf:
    return Leaf(dimension, Mode.NONE, intervals)


def absent(dimension: int) -> Leaf:
    return Leaf(dimension, Mode.ABSENT, ())


def built(clauses: list[list[Leaf]], **options: Any) -> Counting:
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    assert numbers.tolist() == list(range(len(clauses)))
    index = Counting(table, CountingOptions(**options))
    index.refuse(numbers)
    index.insert(numbers)
    index.check()
    return index


def listed(index: Counting, dimension: int, kind: int, bound: int = 0) -> list[int] | None:
    """The conjunctions that have a predicate."""
    return index.conjunctions_with(KINDS * dimension + kind, bound)


def pairs(index: Counting, events: list[Any], dimensions: int) -> set[tuple[int, int]]:
    found = index.match(batch_of(events), dimensions)
    assert len(set(zip(found.event.tolist(), found.conjunction.tolist(), strict=True))) == len(found.event)
    return set(zip(found.event.tolist(), found.conjunction.tolist(), strict=True))


def test_equal_predicates_are_stored_once() -> None:
    index = built([[some(0, (10, 10))], [some(0, (10, 10)), some(1, (KEY_MIN, 5))], [some(1, (3, 5))]])
    assert listed(index, 0, EQUAL, 10) == [0, 1]
    assert listed(index, 1, AT_MOST, 5) == [1, 2]
    assert listed(index, 1, AT_LEAST, 3) == [2]
    assert index.need.view().tolist() == [1, 2, 2]
    assert index.stats()["distinct_predicates"] == 3
    assert index.stats()["associations"] == 5


def test_hits_are_counted() -> None:
    index = built([[some(0, (10, 10))], [some(0, (10, 10)), some(1, (KEY_MIN, 5))], [some(1, (3, 5))]])
    found = index.match(batch_of([{0: [(10, 10)], 1: [(2, 2)]}]), 2)
    assert sorted(found.conjunction.tolist()) == [0, 1]
    # `= 10` hits 0 and 1, `<= 5` hits 1 and 2. Four predicates are evaluated: `=` twice, `<= 5`, and `>= 3`, which fails.
    assert found.counters == Counters(3, 4, 2)


@pytest.mark.parametrize(
    ("leaf", "need"),
    [
        (some(0, (4, 4), (6, 6), (9, 9)), 1),
        (some(0, (2, 4), (6, 6), (8, 9)), 4),
        (some(0, (KEY_MIN, 1), (3, 5), (8, KEY_MAX)), 2),
        (none(0, (4, 4), (6, 6)), 2),
        (none(0, (KEY_MIN, 3), (6, 7)), 2),
        (none(0, (KEY_MIN, 3), (6, KEY_MAX)), 2),
        (none(0, (5, 5)), 1),
        (Leaf(0, Mode.SOME, EVERYTHING), 1),
    ],
)
def test_the_number_of_hits_that_a_predicate_needs(leaf: Leaf, need: int) -> None:
    index = built([[leaf]])
    assert index.need.view().tolist() == [need]
    events: list[Any] = [{0: [(key, key)]} for key in (KEY_MIN + 1, *range(12), KEY_MAX)] + [{}]
    assert pairs(index, events, 1) == matching({0: [leaf]}, events)


def test_a_present_attribute_excludes_conjunctions_that_need_it_absent() -> None:
    clauses = [[absent(0)], [absent(0), some(1, (3, 3))], [absent(0), absent(1)], []]
    index = built(clauses)
    assert listed(index, 0, ABSENT) == [0, 1, 2]
    assert index.conjunctions_with(ALWAYS) == [0, 2, 3]
    events: list[Any] = [{}, {0: [(1, 1)]}, {1: [(3, 3)]}, {0: [(1, 1)], 1: [(3, 3)]}]
    assert pairs(index, events, 2) == matching(dict(enumerate(clauses)), events)


def test_numbers_of_unused_predicates_are_reused() -> None:
    index = built([[some(0, (key, key))] for key in range(10)] + [[some(0, (3, 8))]])
    index.delete(np.arange(4, dtype=np.int32))
    assert len(index.free) == 4
    assert listed(index, 0, EQUAL, 3) is None
    index.check()
    index.insert(index.table.intern(rows_of([[some(1, (2, 20))], [some(1, (4, KEY_MAX))]])))
    index.check()
    assert len(index.free) == 1
    assert pairs(index, [{0: [(5, 5)], 1: [(4, 4)]}], 2) == {(0, 5), (0, 10), (0, 11), (0, 12)}


def test_many_new_bounds_are_sorted_at_once() -> None:
    bounds = random.Random(3).sample(range(1000), 300)
    index = built([[some(0, (KEY_MIN, bound))] for bound in bounds[:10]])
    index.insert(index.table.intern(rows_of([[some(0, (KEY_MIN, bound))] for bound in bounds[10:]])))
    index.check()
    assert index.bounds(0, AT_MOST) == sorted(bounds)


# -- SIFT


@pytest.mark.parametrize("method", SIFT)
@pytest.mark.parametrize("seed", range(3))
def test_sift_finds_all_matches(method: str, seed: int) -> None:
    keys, chance = RandomKeys(seed), random.Random(seed)
    clauses = keys.clauses(60)
    index = built(clauses[:50], method=method, lowest=0, highest=12)
    index.insert(index.table.intern(rows_of(clauses[50:])))
    gone = chance.sample(range(60), 15)
    index.delete(np.array(gone, np.int32))
    index.check()
    live = {number: clause for number, clause in enumerate(clauses) if number not in gone}
    events = [keys.event(intervals=False) for _ in range(20)]
    assert pairs(index, events, keys.dimensions) == matching(live, events)
    assert index.stats()["conjunctions"] == len(live)


def test_a_profile_is_in_the_lists_of_its_rarest_terms() -> None:
    common, rare = some(0, (1, 1)), some(1, (5, 5))
    index = built([[common], [common, some(2, (3, 4))], [common, rare]], method="key", highest=9)
    sift = index.sift
    assert isinstance(sift, KeyMethod)
    lists = {term: sift.profiles_of(*term) for term in [(0, 1), (1, 5), (2, 3), (2, 4)]}
    # The two terms of the range occur once each. The word occurs in three profiles.
    assert lists == {(0, 1): [0], (1, 5): [2], (2, 3): [1], (2, 4): [1]}
    found = index.match(batch_of([{0: [(1, 1)], 1: [(5, 5)], 2: [(9, 9)]}]), 3)
    assert sorted(found.conjunction.tolist()) == [0, 2]
    assert found.counters.candidates == 2
    assert found.counters.nodes == 2


def test_enumeration_counts_the_terms_of_an_event() -> None:
    """SIFT in the BE-Tree paper: every value of a range is a term, and a profile matches when all its predicates have a hit."""
    clauses = [
        [some(0, (3, 5))],
        [some(0, (4, 9)), some(1, (1, 1))],
        [some(0, (4, 4)), some(1, (2, 2)), some(2, (0, 9))],
        [],
    ]
    index = built(clauses, method="enumeration", highest=9)
    assert index.stats()["postings"] == 3 + (6 + 1) + (1 + 1 + 10)
    # Of four profiles, three have a hit and one needs none. Two are complete and are evaluated: one predicate, two, none.
    found = index.match(batch_of([{0: [(4, 4)], 1: [(1, 1)]}]), 3)
    assert sorted(found.conjunction.tolist()) == [0, 1, 3]
    assert found.counters == Counters(4, 1 + 2, 2)
    # Every event begins with counters of 0. Two values of an attribute may complete a counter, so profiles are evaluated.
    events: list[Any] = [{0: [(4, 4)]}, {0: [(4, 4), (5, 5)], 1: [(2, 2)]}, {0: [(4, 4)], 1: [(2, 2)], 2: [(7, 7)]}, {}]
    assert pairs(index, events, 3) == matching(dict(enumerate(clauses)), events)
    index.check()


def test_profiles_are_kept_at_their_shortest_identifying_prefix() -> None:
    a, b, c = (some(dimension, (1, 1)) for dimension in range(3))
    index = built([[a, b, c], [a, c], [b]], method="tree", highest=9)
    tree = index.sift
    assert isinstance(tree, TreeMethod)

    def at(*path: int) -> list[int]:
        return tree.profiles_at(*((dimension, 1) for dimension in path))

    assert at() == []
    assert at(0) == []
    assert at(0, 1) == [0], "its last term is checked, not followed"
    assert at(0, 2) == [1]
    assert at(1) == [2]
    assert index.stats()["tree_nodes"] == 5
    found = index.match(batch_of([{0: [(1, 1)], 1: [(1, 1)]}]), 3)
    assert found.conjunction.tolist() == [2]
    assert found.counters.nodes == 4


def test_ranges_are_enumerated_value_by_value() -> None:
    narrow = built([[some(0, (3, 5))], [some(0, (4, KEY_MAX))]], method="key", highest=9)
    assert narrow.stats()["postings"] == 3 + 6
    assert built([[some(0, (4, KEY_MAX))]], method="key", highest=999).stats()["postings"] == 996
    assert built([[some(0, (3, 5)), some(1, (0, 7))]], method="tree", highest=9).stats()["tree_nodes"] == 1 + 3


@pytest.mark.parametrize("method", SIFT)
def test_values_outside_the_domain_are_refused(method: str) -> None:
    matcher = tamis.Matcher(index="counting", options={"method": method, "lowest": 0, "highest": 99})
    with pytest.raises(tamis.CapabilityError, match="whole numbers from 0 to 99, but 100 is not one of them"):
        matcher.add(1, "a BETWEEN 5 AND 100")
    with pytest.raises(tamis.CapabilityError, match="which strings do not have"):
        matcher.add(2, "a LIKE 'x%'")
    assert len(matcher) == 0
    matcher.add_many([3, 4, 5, 6, 7], ["a < 0", "a > 99", "a = 7 AND s = 'x'", "a <> 7 AND s <> 'x'", "a > 2.5"])
    assert matcher.match({"a": -1}) == [3]
    assert sorted(matcher.match({"a": 99.5})) == [4, 7]
    assert sorted(matcher.match({"a": 7, "s": "x"})) == [5, 7]
    assert sorted(matcher.match({"a": 2.7, "s": "y"})) == [6, 7]
    with pytest.raises(tamis.CapabilityError, match="Interval"):
        matcher.match({"a": tamis.Interval(1, 2)})
    assert tamis.indexes()["counting"].every_predicate


@pytest.mark.parametrize("method", SIFT)
def test_sift_agrees_with_the_evaluator(method: str) -> None:
    cases = RandomCases(11)
    matcher = tamis.Matcher(index="counting", options={"method": method, "lowest": -3, "highest": 7})
    taken = {}
    for number in range(150):
        expression = cases.expression(1)
        try:
            matcher.add(number, expression)
        except tamis.CapabilityError:
            continue
        taken[number] = expression
    assert len(taken) > 20
    answered = 0
    for _ in range(40):
        event = cases.event()
        try:
            found = sorted(matcher.match(event))
        except tamis.CapabilityError:
            continue
        answered += 1
        assert found == [number for number, each in taken.items() if matches(each, event)], event
    assert answered > 10
