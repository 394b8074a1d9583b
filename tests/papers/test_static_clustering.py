"""`static-clustering`: which tables are chosen, which subscriptions they have, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.papers.fabret.greedy import Candidates
from tamis.papers.fabret.schemas import Equalities
from tamis.papers.fabret.static_clustering import StaticClustering, StaticClusteringOptions
from tamis.papers.fabret.statistics import EventStatistics
from tests.papers.naive import RandomKeys, batch_of, matching, rows_of

pytestmark = pytest.mark.kernels

A, B, C = range(3)
MANY, VALUES = 54, 3
"""M subscriptions for each set of attributes, with V values each."""


def equal(dimension: int, key: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((key, key),))


def index_of(clauses: list[list[Leaf]], **options: Any) -> StaticClustering:
    table = ConjunctionTable()
    index = StaticClustering(table, StaticClusteringOptions(**options))
    index.insert(np.unique(table.intern(rows_of(clauses))))
    return index


def three_attributes() -> list[list[Leaf]]:
    """The example of section 3: equally many subscriptions for each subset of {A, B, C}, values uniform and independent.

    A range in a fourth dimension makes subscriptions with the same equalities different.
    """
    clauses = []
    for subset in ([A], [B], [C], [A, B], [B, C], [A, C], [A, B, C]):
        for number in range(MANY):
            values = [number // VALUES**place % VALUES for place in range(3)]
            leaves = [equal(attribute, values[place]) for place, attribute in enumerate(subset)]
            clauses.append([*leaves, Leaf(3, Mode.SOME, ((-1 - number, 2**40),))])
    return clauses


def populations(index: StaticClustering) -> dict[tuple[int, ...], int]:
    index.check()
    return {tuple(each["schema"]): each["subscriptions"] for each in index.stats()["tables"]}


def test_the_example_with_single_attributes() -> None:
    """Each table has 7M/3 subscriptions. An event with all three attributes takes 3 look-ups and 7M/V checks."""
    index = index_of(three_attributes(), max_schema=1)
    assert populations(index) == {(A,): 7 * MANY // 3, (B,): 7 * MANY // 3, (C,): 7 * MANY // 3}
    found = index.match(all_events(), 4)
    assert found.counters.candidates == 7 * MANY // VALUES * VALUES**3
    assert index.stats()["last_match"]["phase_2"]["lists"] == 3 * VALUES**3


def test_the_example_with_two_pairs() -> None:
    """Tables of 1.5 M, M, 1.5 M, 1.5 M, 1.5 M subscriptions. An event with all three takes 4M/V + 3M/V^2 checks on average."""
    index = index_of(three_attributes())
    two_pairs(index)
    half = 3 * MANY // 2
    assert populations(index) == {(A,): half, (B,): MANY, (C,): half, (A, B): half, (B, C): half}
    found = index.match(all_events(), 4)
    checked = 4 * MANY / VALUES + 3 * MANY / VALUES**2
    assert found.counters.candidates / VALUES**3 == pytest.approx(checked)
    assert index.stats()["last_match"]["phase_1"]["lookups"] == 2 * VALUES**3


def two_pairs(index: StaticClustering) -> None:
    """Make the index choose the tables {A, B} and {B, C}."""

    def greedy(candidates: Any) -> list[int]:
        return [candidates.groups.add(schema) for schema in ((A, B), (B, C))]

    index.choose_groups = greedy  # type: ignore[method-assign]


def all_events() -> Any:
    values = range(VALUES)
    return batch_of(
        [{A: [(a, a)], B: [(b, b)], C: [(c, c)], 3: [(0, 0)]} for a in values for b in values for c in values]
    )


def test_tables_are_chosen_by_benefit_and_space() -> None:
    """A pair of attributes that many subscriptions have gets a table. A pair that two subscriptions have gets none."""
    often = [[equal(A, n % 5), equal(B, n // 5 % 5), Leaf(3, Mode.SOME, ((-n, 9),))] for n in range(400)]
    seldom = [[equal(B, n), equal(C, n)] for n in range(2)]
    index = index_of(often + seldom)
    assert populations(index)[A, B] == 400
    assert (B, C) not in populations(index)
    # At first, 400 subscriptions with nu 1/5 and two predicates to check cost 160. With the table, nu is 1/25 and one
    # predicate is left: they cost 16, and a look-up costs 20 + 2 * 50.
    alone = index_of(often + seldom, max_schema=1).stats()
    costs = index.stats()
    assert alone["matching_cost"] - costs["matching_cost"] == pytest.approx(160 - 16 - 120, rel=0.02)
    assert costs["space_cost"] - alone["space_cost"] == 64 + 25 * 112 - 400 * 4
    assert costs["static"]


def test_no_table_exceeds_the_bound_of_space() -> None:
    clauses = [[equal(A, n % 5), equal(B, n // 5 % 5), Leaf(3, Mode.SOME, ((-n, 9),))] for n in range(400)]
    free = index_of(clauses)
    assert (A, B) in populations(free)
    space = int(free.stats()["space_cost"])
    assert (A, B) in populations(index_of(clauses, max_bytes=space))
    assert (A, B) not in populations(index_of(clauses, max_bytes=space - 1))


def test_events_decide_which_predicate_is_selective() -> None:
    """The attribute that events seldom have becomes the access attribute."""
    clauses = [[equal(A, n % 4), equal(B, n // 4), Leaf(3, Mode.SOME, ((-n, 9),))] for n in range(16)]
    for frequent, seldom in ((A, B), (B, A)):
        table = ConjunctionTable()
        index = StaticClustering(table, StaticClusteringOptions(max_schema=1))
        index.observe(batch_of([{frequent: [(n % 4, n % 4)]} for n in range(99)] + [{seldom: [(1, 1)]}]), 4)
        index.insert(table.intern(rows_of(clauses)))
        assert populations(index) == {(seldom,): 16}


def test_not_all_groups_of_many_equalities_are_considered() -> None:
    """40 attributes have more than four million groups of at most six attributes."""
    equalities = Equalities(
        np.array([0, 40, 80], np.int64),
        np.arange(80, dtype=np.int32),
        np.tile(np.arange(40, dtype=np.int32), 2),
        np.full(80, 0.5),
    )
    candidates = Candidates(equalities, np.array([40, 40], np.int64), EventStatistics())
    candidates.find_groups(6, lambda schema: 0.0)
    assert 6000 < len(candidates.nodes()) <= 8192
    index = index_of([[equal(d, n * d % 3) for d in range(40)] for n in range(1, 30)], max_schema=6, retrieve_cost=0)
    index.check()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [2, 3])
def test_matching_with_tables_of_several_attributes(seed: int, most: int) -> None:
    """If tables cost nothing, there are many of them. All kinds of events are looked up in them."""
    keys = RandomKeys(seed, dimensions=5, keys=4)
    clauses = keys.clauses(150)
    index = index_of(clauses, max_schema=most, retrieve_cost=0, hash_cost=0)
    index.check()
    assert any(len(schema) > 1 for schema in populations(index))
    rows = dict(enumerate(clauses))
    for several, intervals in ((False, False), (True, False), (False, True), (True, True)):
        events = [keys.event(several=several, intervals=intervals) for _ in range(25)]
        found = index.match(batch_of(events), keys.dimensions)
        pairs = list(zip(found.event.tolist(), found.conjunction.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs)
        assert set(pairs) == matching(rows, events)
    gone = np.arange(0, 150, 2, dtype=np.int32)
    index.delete(gone)
    index.check()
    assert index.stats()["builds"] == 2
    events = [keys.event() for _ in range(25)]
    found = index.match(batch_of(events), keys.dimensions)
    left = {number: clause for number, clause in rows.items() if number % 2}
    assert set(zip(found.event.tolist(), found.conjunction.tolist(), strict=True)) == matching(left, events)
