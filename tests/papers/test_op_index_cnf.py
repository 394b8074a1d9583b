"""OpIndex over conjunctive normal forms: distribution, pivots, bitmaps; and matchers that use it."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.encoding.dimensions.intervals import points
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.language.evaluate import matches as is_true
from tamis.language.expression import Expression, all_of, any_of
from tamis.matcher.matcher import matcher_over
from tamis.papers.factor_table import FactorRows, FactorTable
from tamis.papers.op_index.cnf import CnfOpIndex
from tamis.papers.op_index.counting_index import OpIndexOptions
from tamis.papers.op_index.entries import EQ, GE, LE
from tamis.papers.op_index.factors import MOST_FACTORS
from tests.papers.naive import Event, RandomKeys, batch_of, holds, rows_of
from tests.papers.stores import store_over
from tests.papers.test_op_index import TABLE_1, A, B, C, D, E, at_least, at_most, equal, event, within
from tests.random_cases import RandomCases

pytestmark = pytest.mark.kernels

Cnf = list[list[Leaf]]


def built(subscriptions: list[Cnf], **options: Any) -> CnfOpIndex:
    table = FactorTable()
    index = CnfOpIndex(table, OpIndexOptions(cnf=True, **options))
    index.insert(table.intern_factors(FactorRows.of(subscriptions)))
    index.check()
    return index


def found(index: CnfOpIndex, events: list[Event], dimensions: int = 8) -> set[tuple[int, int]]:
    matches = index.match(batch_of(events), dimensions)
    pairs = list(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert matches.counters.candidates >= len(pairs)
    return set(pairs)


def expected(subscriptions: dict[int, Cnf], events: list[Event]) -> set[tuple[int, int]]:
    return {
        (row, number)
        for row, each in enumerate(events)
        for number, factors in subscriptions.items()
        if all(any(holds(leaf, each) for leaf in factor) for factor in factors)
    }


def test_pivots_are_the_attributes_of_the_shortest_factor() -> None:
    index = built([[[equal(A, 1), equal(B, 2), equal(C, 3)], [equal(D, 1), at_most(E, 4)]]])
    assert {pivot: index.counters(pivot) for pivot in (A, B, C, D, E)} == {
        A: {},
        B: {},
        C: {},
        D: {0: 0b11},
        E: {0: 0b11},
    }
    # All five predicates are in the lists of both pivots.
    assert index.stats() == {**index.stats(), "pivots": 2, "entries": 10, "lists": 4}
    assert index.lists.content(D, EQ) != [[]]
    assert index.lists.content(E, LE) != [[]]


def test_ties_go_to_the_least_frequent_attributes() -> None:
    index = built([[[equal(A, 1), equal(B, 2)], [equal(C, 1), equal(D, 4)]], [[equal(A, 5)]]])
    assert index.counters(C) == index.counters(D) == {0: 0b11}
    assert index.counters(A) == {1: 0b1}
    assert index.counters(B) == {}


def test_ties_by_events() -> None:
    index = CnfOpIndex(FactorTable())
    index.observe(batch_of([event(C=1), {C: [(1, 1), (2, 2)]}]), 8)
    index.insert(index.table.intern_factors(FactorRows.of([[[equal(C, 1)], [equal(D, 4)]]])))
    assert index.counters(D) == {0: 0b11}


def test_factors_are_cleared_by_any_of_their_predicates() -> None:
    index = built([[[equal(A, 1), equal(B, 2)], [at_most(C, 3), equal(D, 4), at_least(A, 7)]]])
    assert index.counters(A) == index.counters(B) == {0: 0b11}
    events = [event(A=1), event(A=1, C=3), event(B=2, D=4), event(A=7, B=2), event(C=3, D=4), event(A=1, B=2, C=1)]
    assert found(index, events) == {(1, 0), (2, 0), (3, 0), (5, 0)}
    counters = index.match(batch_of([event(A=1, B=2, C=1)]), 8).counters
    assert counters.candidates == 1  # it is in the lists of both pivots, but is counted once


def test_an_interval_in_a_disjunction_is_distributed() -> None:
    index = built([[[within(E, 3, 9), equal(D, 5)]]])
    assert index.counters(E) == index.counters(D) == {0: 0b11}
    assert [len(each) for each in index.lists.content(D, EQ) if each] == [2]
    assert [len(each) for each in index.lists.content(D, GE) if each] == [1]
    assert found(index, [event(E=3), event(E=2), event(E=2, D=5), event(D=5)]) == {(0, 0), (2, 0), (3, 0)}
    two = built([[[within(E, 3, 9), within(D, 5, 6)]]])
    assert two.counters(E) == {0: 0b1111}


def test_an_in_is_one_factor_of_equalities() -> None:
    index = CnfOpIndex(FactorTable())
    index.insert(index.table.intern(rows_of(TABLE_1)))
    index.check()
    assert index.counters(A) == {0: 0b11, 1: 0b11, 3: 0b1}
    assert index.counters(C) == {2: 0b1111}
    assert index.counters(D) == {4: 0b11, 5: 0b1111}
    assert found(index, [event(A=2, B=6), event(B=6, C=3, E=9)]) == {(0, 0), (0, 3)}


def test_more_factors_than_bits_in_a_word() -> None:
    many = [[equal(A, number)] for number in range(3)] + [[at_least(B, number)] for number in range(150)]
    none = [[Leaf(A, Mode.NONE, ((number, number),))] for number in range(100)]
    index = built([many, none, [[at_least(A, number), equal(B, -1)] for number in range(70)]])
    assert index.counters(A)[1] == (1 << 100) - 1
    assert found(index, [event(A=200, B=200), event(A=2, B=200), event(A=50), event(A=69)]) == {(0, 1), (0, 2), (3, 2)}


def test_a_long_list_is_a_short_factor() -> None:
    index = built([[[equal(A, 1, 2, 3)], [equal(B, 4), equal(C, 5)]]])
    assert index.pivots_of(0) == [A]


def test_expressions_with_too_many_factors_are_verified() -> None:
    wide = [within(number, 3, 9) for number in range(13)]
    index = built([[wide], [wide, [equal(13, 1)]], [wide[:7]]])
    assert index.stats()["rest"] == 1
    assert index.counters(13) == {1: 0b1}
    assert index.counters(0) == {2: (1 << 128) - 1}
    events: list[Event] = [{12: [(3, 3)]}, {12: [(3, 3)], 13: [(1, 1)]}, {13: [(1, 1)]}, {0: [(3, 3)]}, {0: [(2, 2)]}]
    assert found(index, events, 14) == {(0, 0), (1, 0), (1, 1), (3, 0), (3, 2)}
    long = Leaf(B, Mode.NONE, points(range(0, 2000, 2)))
    assert built([[[equal(A, *range(0, 200, 2)), long], [equal(C, 1)]]]).counters(C) == {0: 0b1}
    assert MOST_FACTORS < 2**13


def test_a_row_that_comes_back_has_one_bitmap_per_pivot() -> None:
    rows = [[[equal(A, 1), equal(B, value)], [at_least(C, 3), equal(D, 4)]] for value in range(100)]
    index = built(rows)
    some = np.arange(20, dtype=np.int32)
    for _ in range(3):
        index.delete(some)
        index.check()
        index.insert(some)
        index.check()
    assert found(index, [event(A=1, B=5, C=3, D=4)]) == {(0, number) for number in range(100)}
    matches = index.match(batch_of([event(A=1, B=5, C=3, D=4)]), 8)
    assert matches.counters.candidates == 100


def random_cnf(keys: RandomKeys, chance: random.Random) -> Cnf:
    return [
        [leaf for _ in range(chance.randint(1, 3)) for leaf in keys.clause()[:1]] or [equal(0, 1)]
        for _ in range(chance.randint(0, 4))
    ]


def random_rows(keys: RandomKeys, chance: random.Random, count: int) -> list[Cnf]:
    """Distinct rows."""
    made: dict[frozenset[frozenset[Leaf]], Cnf] = {}
    while len(made) < count:
        row = random_cnf(keys, chance)
        made[frozenset(frozenset(factor) for factor in row)] = row
    return list(made.values())


@pytest.mark.parametrize(
    "options", [{}, {"signatures": False}, {"sort": "always", "segments": 2, "signature_bits": 100}]
)
def test_it_finds_exactly_the_rows_that_match(options: dict[str, Any]) -> None:
    keys, chance = RandomKeys(5), random.Random(5)
    subscriptions = random_rows(keys, chance, 80)
    index = built(subscriptions[:60], **options)
    live = dict(enumerate(subscriptions))
    index.insert(index.table.intern_factors(FactorRows.of(subscriptions[60:])))
    for step in range(3):
        events = [keys.event(several=step > 0, intervals=step > 1) for _ in range(10)]
        assert found(index, events, keys.dimensions) == expected(live, events)
        index.observe(batch_of(events), keys.dimensions)
        gone = sorted(chance.sample(sorted(live), 25))
        index.delete(np.array(gone, np.int32))
        index.check()
        live = {number: each for number, each in live.items() if number not in gone}
        assert found(index, events, keys.dimensions) == expected(live, events)
        assert index.stats()["conjunctions"] == len(live)


def test_deleting_all_returns_the_memory_and_it_can_be_pickled() -> None:
    keys, chance = RandomKeys(6), random.Random(6)
    subscriptions = random_rows(keys, chance, 200)
    table = FactorTable()
    index = CnfOpIndex(table)
    empty = index.stats()["bytes"]
    numbers = table.intern_factors(FactorRows.of(subscriptions))
    index.insert(numbers)
    events = [keys.event() for _ in range(10)]
    copied = pickle.loads(pickle.dumps(index))
    assert found(copied, events, keys.dimensions) == found(index, events, keys.dimensions)
    copied.check()
    index.delete(numbers)
    index.check()
    assert index.stats() == {**index.stats(), "conjunctions": 0, "bytes": empty}


@pytest.mark.compiled
def test_room_for_matches_grows() -> None:
    index = built([[[at_least(A, -number), at_least(B, -number)]] for number in range(1200)])
    assert len(found(index, [event(A=1, B=1)] * 3)) == 3600


# -- the table


def test_rows_with_the_same_factors_in_any_order_are_stored_once() -> None:
    table = FactorTable()
    rows = [
        [[equal(A, 1), equal(B, 2)], [equal(C, 3)]],
        [[equal(C, 3)], [equal(B, 2), equal(A, 1)], [equal(C, 3)]],
        [[equal(A, 1)], [equal(B, 2), equal(C, 3)]],
        [[equal(C, 3)], [equal(A, 1)]],
    ]
    assert table.intern_factors(FactorRows.of(rows)).tolist() == [0, 0, 1, 2]
    assert table.intern(rows_of([[equal(A, 1), equal(C, 3)], []])).tolist() == [2, 3]
    assert len(table.factors) == 4
    swept, numbers = table.swept(np.array([1, 3]), lambda predicates: None)
    assert numbers.tolist() == [0, 1]
    assert len(swept.factors) == 2
    assert swept.nbytes <= table.nbytes


# -- matchers


def random_expression(cases: RandomCases, chance: random.Random) -> Expression:
    """A conjunction of disjunctions, or sometimes any expression."""
    if chance.random() < 0.15:
        return cases.expression()
    return all_of(
        *(any_of(*(cases.predicate() for _ in range(chance.randint(1, 4)))) for _ in range(chance.randint(1, 5)))
    )


@pytest.mark.parametrize("seed", range(3))
def test_matchers_while_subscriptions_are_added_and_removed(seed: int) -> None:
    cases, chance = RandomCases(seed), random.Random(seed)
    store = store_over("op-index", cnf=True)
    matcher = matcher_over(store)
    live: dict[int, Expression] = {}
    for step in range(150):
        action = chance.random()
        if live and action < 0.25:
            number = chance.choice(sorted(live))
            matcher.remove(number)
            del live[number]
        elif live and action < 0.4:
            number = chance.choice(sorted(live))
            live[number] = random_expression(cases, chance)
            matcher.replace(number, live[number])
        else:
            live[step] = random_expression(cases, chance)
            matcher.add(step, live[step])
        if step % 50 == 30:
            matcher.observe([cases.event() for _ in range(20)])
        if step % 3 == 0:
            each = cases.event()
            assert sorted(matcher.match(each)) == sorted(n for n, tree in live.items() if is_true(tree, each)), each
    store.index.check()


def test_a_conjunction_of_disjunctions_is_one_row() -> None:
    text = " AND ".join(f"(a{n} = 1 OR b{n} BETWEEN 3 AND 9 OR c{n} LIKE 'x%')" for n in range(10))
    matcher = tamis.Matcher(index="op-index", options={"cnf": True})
    matcher.add_many(["S", "T"], [text, "a0 = 1 OR a1 = 2"])
    stats = matcher.stats()
    assert stats["conjunctions"] == 3  # A single disjunction is stored as its parts.
    assert stats["index_stats"]["pivots"] == 5
    event = {f"b{n}": 5 for n in range(9)} | {"c9": "xyz"}
    assert matcher.match(event) == ["S"]
    assert matcher.stats()["verified"] == 0
    assert matcher.match({**event, "c9": "yz"}) == []
    plain = tamis.Matcher(index="op-index")
    plain.add("S", text)
    assert plain.match(event) == ["S"]
    assert plain.stats()["conjunctions"] > 1
    assert plain.stats()["verified"] == 1


def test_long_disjunctions_are_multiplied_out_as_usual() -> None:
    parts = (" OR ".join(f"{name}{n} = 1" for n in range(70)) for name in "ab")
    matcher = tamis.Matcher(index="op-index", options={"cnf": True})
    matcher.add("S", " AND ".join(f"({part})" for part in parts))
    assert matcher.stats()["conjunctions"] == 70
    assert matcher.match({"a3": 1, "b60": 1}) == ["S"]
    assert matcher.match({"a3": 1}) == []


@pytest.mark.compiled
def test_sweeping_keeps_rows_with_owners() -> None:
    matcher = tamis.Matcher(index="op-index", options={"cnf": True})
    texts = [f"(a = {n} OR name = 'n{n}') AND (b <= {n} OR c IS NULL)" for n in range(2500)]
    matcher.add_many(list(range(2500)), texts)
    before = matcher.stats()["bytes"]
    for number in range(2490):
        matcher.remove(number)
    assert matcher.stats()["bytes"] < 0.6 * before
    assert sorted(matcher.match({"a": 2495, "name": "n2499", "b": 2499, "c": 1})) == [2499]
    matcher.add(0, texts[0])
    assert matcher.match({"name": "n0"}) == [0]
    for number in [0, *range(2490, 2500)]:
        matcher.remove(number)
    assert matcher.stats()["conjunctions"] == 0
