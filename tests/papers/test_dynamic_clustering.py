"""`dynamic-clustering`: when tables are created and dropped, and which subscriptions move."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.papers.fabret.dynamic_clustering import DynamicClustering, DynamicClusteringOptions
from tamis.papers.fabret.propagation import Propagation
from tests.papers.naive import RandomKeys, batch_of, matching, rows_of

pytestmark = pytest.mark.kernels

A, B, C, D = range(4)


def equal(dimension: int, key: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((key, key),))


def other(number: int) -> Leaf:
    """A predicate that tells subscriptions with the same equalities apart."""
    return Leaf(D, Mode.SOME, ((-1 - number, 2**40),))


class Subscriptions:
    """A table of given conjunctions, and an index over some of them."""

    def __init__(self, clauses: list[list[Leaf]], **options: Any) -> None:
        self.table = ConjunctionTable()
        self.index = DynamicClustering(self.table, DynamicClusteringOptions(**options))
        self.numbers = self.table.intern(rows_of(clauses))

    def insert(self, begin: int, end: int) -> dict[str, Any]:
        self.index.insert(self.numbers[begin:end])
        return self.stats()

    def delete(self, begin: int, end: int) -> dict[str, Any]:
        self.index.delete(self.numbers[begin:end])
        return self.stats()

    def stats(self) -> dict[str, Any]:
        self.index.check()
        stats = self.index.stats()
        return {**stats, "tables": {tuple(each["schema"]): each["subscriptions"] for each in stats["tables"]}}


def pairs(count: int, values: int = 4) -> list[list[Leaf]]:
    """Subscriptions on A and B with independent values."""
    # Neighbours have the same values. If two attributes are equally good, subscriptions take turns.
    return [[equal(A, n // 2 % values), equal(B, n // 2 // values % values), other(n)] for n in range(count)]


def test_a_table_is_created_when_its_power_is_high_enough() -> None:
    """Clusters of 4 values: nu is 1/4, so BM = |c| / 4. The power of {A, B} is a quarter of the waiting subscriptions."""
    # Each of the 8 clusters of A and of B has an eighth of the subscriptions.
    subscriptions = Subscriptions(pairs(160), max_margin=2.5, min_power=30.0)
    few = subscriptions.insert(0, 64)
    assert few["waiting"] == 0  # BM = 8 / 4 = 2
    assert set(few["tables"]) == {(A,), (B,)}
    waiting = subscriptions.insert(64, 96)
    assert waiting["waiting"] == 96  # BM = 12 / 4 = 3, and the power is 96 / 4 = 24
    assert waiting["tables_created"] == 0
    enough = subscriptions.insert(96, 160)
    assert enough["tables"] == {(A, B): 160}
    assert enough["tables_created"] == 1
    assert enough["moves"] == 160


def test_power_adds_up_over_insertions() -> None:
    subscriptions = Subscriptions(pairs(100, values=1), max_margin=0.5, min_power=30.5)
    for number in range(30):
        stats = subscriptions.insert(number, number + 1)
        assert stats["waiting"] == number + 1
        assert stats["tables_created"] == 0
    potential = subscriptions.index.potential
    # With one value, nu is 1 for all subscriptions: P = sum of nu(p) * |{s: has A and B}| = 30.
    assert potential.power[potential.add((A, B))] == pytest.approx(30.0)
    # nu of {A, B} is also 1, so no subscription gains, and no table is created.
    assert subscriptions.insert(30, 31)["tables_created"] == 0
    assert potential.refused[potential.add((A, B))] == pytest.approx(31.0)


def test_a_table_below_its_least_benefit_is_dropped() -> None:
    subscriptions = Subscriptions(pairs(160), max_margin=1.0, min_power=8.0, min_benefit=20)
    full = subscriptions.insert(0, 160)
    assert full["tables"][A, B] == 160
    kept = subscriptions.delete(0, 140)
    assert kept["tables"] == {**kept["tables"], (A, B): 20}
    gone = subscriptions.delete(140, 141)
    assert (A, B) not in gone["tables"]
    assert gone["tables_dropped"] == 1
    assert gone["conjunctions"] == 19
    again = subscriptions.insert(0, 141)
    assert again["tables"][A, B] > 100
    assert again["tables_created"] == 2


def test_new_subscriptions_go_where_their_benefit_is_best() -> None:
    subscriptions = Subscriptions([*pairs(160), *([equal(A, 1), equal(B, 2), other(-n)] for n in range(2, 9))])
    moves = subscriptions.insert(0, 160)["moves"]
    after = subscriptions.insert(160, 167)
    assert after["tables"][A, B] == 167
    assert after["moves"] == moves


def test_the_cluster_of_an_access_predicate_that_becomes_frequent_is_redistributed() -> None:
    clauses = [[equal(A, 1), equal(B, n), other(n)] for n in range(40)]
    subscriptions = Subscriptions([*clauses, [equal(C, 1)]], max_margin=2.0)
    index = subscriptions.index
    seldom_a = [{A: [(7, 7)]}] * 3 + [{B: [(n % 4, n % 4)]} for n in range(97)]
    index.observe(batch_of(seldom_a), 4)
    assert subscriptions.insert(0, 40)["tables"][A,] >= 20
    often_a = [{A: [(1, 1)]}] * 1024
    index.observe(batch_of(often_a), 4)
    stats = subscriptions.insert(40, 41)
    assert stats["tables"] == {(B,): 40, (C,): 1}


def test_events_change_the_powers_of_waiting_subscriptions() -> None:
    """They wait in one cluster: their only equality is a = 1, so no table can take them."""
    clauses = [[equal(A, 1), other(n)] for n in range(40)]
    subscriptions = Subscriptions([*clauses, [equal(C, 1)]], max_margin=0.5)
    index, waiting = subscriptions.index, subscriptions.numbers[:40]
    index.observe(batch_of([{A: [(1, 1)]}] + [{A: [(2, 2)]}] * 9), 4)
    subscriptions.insert(0, 40)
    before = index.potential.waiting.view()[waiting]
    assert before.tolist() == pytest.approx(index.nus(waiting).tolist())
    assert (before > 0).all()
    index.observe(batch_of([{A: [(1, 1)]}] * 1024), 4)
    subscriptions.insert(40, 41)
    after = index.potential.waiting.view()[waiting]
    assert after.tolist() == pytest.approx(index.nus(waiting).tolist())
    assert (after > 2 * before).all()


def test_receivers_of_a_redistribution_are_redistributed_too() -> None:
    """A table {A, B} takes all subscriptions from A. The others wait in clusters that are still excessive."""
    clauses = [[equal(A, n % 2), equal(B, n // 2 % 2), equal(C, n // 4 % 2), other(n)] for n in range(240)]
    subscriptions = Subscriptions(clauses, max_margin=1.0, min_power=4.0, max_schema=3)
    stats = subscriptions.insert(0, 240)
    # All pairs and the triple have the same power. After the first table, others follow as long as they pay.
    assert sum(count for schema, count in stats["tables"].items() if len(schema) > 1) == 240
    assert max(len(schema) for schema in stats["tables"]) == 3


@pytest.mark.parametrize("groups", [10, 20])
def test_a_potential_table_is_tried_on_its_own_subscriptions_only(groups: int) -> None:
    """Each group of 20 has two attributes of its own, with one value each: power 20, and nothing to gain."""
    clauses = [
        [equal(2 * n, 1), equal(2 * n + 1, 1), Leaf(0, Mode.NONE, ((k, k),))] for n in range(groups) for k in range(20)
    ]
    subscriptions = Subscriptions(clauses)
    stats = subscriptions.insert(0, len(clauses))
    assert stats["waiting"] == len(clauses)
    assert stats["tables_created"] == 0
    assert stats["tables_tried"] == groups
    assert stats["subscriptions_tried"] <= 20 * groups


@pytest.mark.compiled
def test_a_workload_like_the_papers_first_one() -> None:
    """W0: 32 attributes with 35 values each. Subscriptions have equalities on two fixed attributes, and other predicates."""
    chance = random.Random(0)
    clauses = [
        [
            *(equal(d, chance.randrange(35)) for d in (A, B)),
            *(Leaf(d, Mode.SOME, ((-1 - n, chance.randrange(35)),)) for d in sorted(chance.sample(range(2, 32), 3))),
        ]
        for n in range(3500)
    ]
    subscriptions = Subscriptions(clauses)
    # Each of the 70 clusters has n / 70 subscriptions. BM = n / 70 / 35 exceeds 1 when n exceeds 2,450.
    assert subscriptions.insert(0, 1500)["tables_created"] == 0
    stats = subscriptions.insert(1500, 3500)
    assert stats["tables_created"] == 1
    assert stats["tables"][A, B] > 2500
    events = [{d: [(v, v)] for d in range(32) for v in [chance.randrange(35)]} for _ in range(50)]
    alone = Propagation(subscriptions.table)
    alone.insert(subscriptions.numbers)
    looked = [index.match(batch_of(events), 32).counters.candidates for index in (subscriptions.index, alone)]
    assert looked[0] < looked[1] / 3
    kept = subscriptions.delete(0, 3450)
    assert kept["tables"][A, B] > 40
    gone = subscriptions.delete(3450, 3497)
    assert gone["tables_dropped"] == 1
    assert all(len(schema) == 1 for schema in gone["tables"])


@pytest.mark.compiled
def test_loading_together_keeps_candidates_few() -> None:
    """Later subscriptions go to the table that earlier ones have caused, as they do one by one."""
    chance = random.Random(1)
    free = range(4, 64)
    clauses = [
        [*(equal(d, chance.randrange(10)) for d in (A, B, *sorted(chance.sample(free, 3)))), other(n)]
        for n in range(3600)
    ]
    events = [{d: [(v, v)] for d in (A, B, *free) for v in [chance.randrange(10)]} for _ in range(50)]
    looked = []
    for size in (1200, 3600):
        subscriptions = Subscriptions(clauses)
        assert subscriptions.insert(0, size)["tables"][A, B] > size / 2
        looked.append(subscriptions.index.match(batch_of(events), 64).counters.candidates / len(events))
    # The table has a cluster for each of 100 pairs of values. Behind a single equality, a tenth are candidates.
    assert looked[1] - looked[0] < (3600 - 1200) / 50


@pytest.mark.parametrize("seed", range(5))
def test_matching_while_tables_are_created_and_dropped(seed: int) -> None:
    """Low thresholds, so that clusters are reorganised all the time, and every kind of event."""
    keys, chance = RandomKeys(seed, dimensions=5, keys=4), random.Random(seed)
    clauses = keys.clauses(150)
    subscriptions = Subscriptions(clauses, max_margin=0.0, min_power=0.5, min_benefit=2, max_schema=seed % 3 + 1)
    index = subscriptions.index
    live: set[int] = set()
    for step in range(12):
        added = set(chance.sample(sorted(set(range(150)) - live), min(150 - len(live), chance.randint(0, 60))))
        index.insert(np.array(sorted(added), np.int32))
        index.check()
        removed = set(chance.sample(sorted(live), chance.randint(0, len(live) * 2 // 3)))
        index.delete(np.array(sorted(removed), np.int32))
        index.check()
        live = (live | added) - removed
        if step % 4 == 3:
            index.observe(batch_of([keys.event() for _ in range(30)]), keys.dimensions)
        events = [keys.event(several=step % 2 == 0, intervals=step % 3 == 0) for _ in range(10)]
        found = index.match(batch_of(events), keys.dimensions)
        expected = matching({number: clauses[number] for number in live}, events)
        got = list(zip(found.event.tolist(), found.conjunction.tolist(), strict=True))
        assert len(set(got)) == len(got)
        assert set(got) == expected
    assert (index.stats()["tables_created"] > 0) == (seed % 3 > 0)
