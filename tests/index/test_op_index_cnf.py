"""OpIndex over conjunctive normal forms: distribution, pivots, bitmaps."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.encoding.compile import Compiler
from tamis.encoding.dimensions import Dimensions
from tamis.encoding.events import encode_flat
from tamis.encoding.leaf import Leaf, Mode
from tamis.index.op_index.clauses import MOST_CLAUSES, CnfRows
from tamis.index.op_index.cnf import CnfOpIndex
from tamis.index.op_index.entries import EQ, GE, LE
from tamis.index.op_index.index import OpIndexOptions
from tamis.language.evaluate import matches as is_true
from tamis.language.event import flatten
from tests.index.naive import Event, RandomKeys, batch_of, holds, rows_of
from tests.index.test_op_index import TABLE_1, A, B, C, D, E, at_least, at_most, equal, event, within
from tests.random_cases import RandomCases

pytestmark = pytest.mark.kernels

Cnf = list[list[Leaf]]


def built(subscriptions: list[Cnf], **options: Any) -> CnfOpIndex:
    index = CnfOpIndex(OpIndexOptions(**options))
    assert index.insert(CnfRows.of(subscriptions)).tolist() == list(range(len(subscriptions)))
    index.check()
    return index


def found(index: CnfOpIndex, events: list[Event], dimensions: int = 8) -> set[tuple[int, int]]:
    matches = index.match(batch_of(events), dimensions)
    pairs = list(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    return set(pairs)


def expected(subscriptions: dict[int, Cnf], events: list[Event]) -> set[tuple[int, int]]:
    return {
        (row, number)
        for row, each in enumerate(events)
        for number, clauses in subscriptions.items()
        if all(any(holds(leaf, each) for leaf in clause) for clause in clauses)
    }


def test_pivots_are_the_attributes_of_the_shortest_clause() -> None:
    index = built([[[equal(A, 1), equal(B, 2), equal(C, 3)], [equal(D, 1), at_most(E, 4)]]])
    assert {pivot: index.bitmaps(pivot) for pivot in (A, B, C, D, E)} == {
        A: {},
        B: {},
        C: {},
        D: {0: 0b11},
        E: {0: 0b11},
    }
    # All five predicates are in the lists of both.
    assert index.stats() == {**index.stats(), "pivots": 2, "entries": 10, "lists": 4}
    assert index.lists.content(D, EQ) != [[]]
    assert index.lists.content(E, LE) != [[]]


def test_ties_go_to_the_least_frequent_attributes() -> None:
    index = built([[[equal(A, 1), equal(B, 2)], [equal(C, 1), equal(D, 4)]], [[equal(A, 5)]]])
    assert index.bitmaps(C) == index.bitmaps(D) == {0: 0b11}
    assert index.bitmaps(A) == {1: 0b1}
    assert index.bitmaps(B) == {}


def test_ties_by_events() -> None:
    index = CnfOpIndex()
    index.observe(batch_of([event(C=1), {C: [(1, 1), (2, 2)]}]), 8)
    index.insert(CnfRows.of([[[equal(C, 1)], [equal(D, 4)]]]))
    assert index.bitmaps(D) == {0: 0b11}


def test_clauses_are_cleared_by_any_of_their_predicates() -> None:
    index = built([[[equal(A, 1), equal(B, 2)], [at_most(C, 3), equal(D, 4), at_least(A, 7)]]])
    assert index.bitmaps(A) == index.bitmaps(B) == {0: 0b11}
    events = [event(A=1), event(A=1, C=3), event(B=2, D=4), event(A=7, B=2), event(C=3, D=4), event(A=1, B=2, C=1)]
    assert found(index, events) == {(1, 0), (2, 0), (3, 0), (5, 0)}
    counters = index.match(batch_of([event(A=1, B=2, C=1)]), 8).counters
    assert counters.candidates == 1  # though it is in the lists of both pivots


def test_an_interval_in_a_disjunction_is_distributed() -> None:
    index = built([[[within(E, 3, 9), equal(D, 5)]]])
    assert index.bitmaps(E) == index.bitmaps(D) == {0: 0b11}
    assert [len(each) for each in index.lists.content(D, EQ) if each] == [2]
    assert [len(each) for each in index.lists.content(D, GE) if each] == [1]
    assert found(index, [event(E=3), event(E=2), event(E=2, D=5), event(D=5)]) == {(0, 0), (2, 0), (3, 0)}
    two = built([[[within(E, 3, 9), within(D, 5, 6)]]])
    assert two.bitmaps(E) == {0: 0b1111}


def test_an_in_is_one_clause_of_equalities() -> None:
    table = rows_of(TABLE_1)
    index = CnfOpIndex()
    index.insert(CnfRows.of_conjunctions(table))
    index.check()
    assert index.bitmaps(A) == {0: 0b11, 1: 0b11, 3: 0b1}
    assert index.bitmaps(C) == {2: 0b1111}
    assert index.bitmaps(D) == {4: 0b11, 5: 0b1111}
    assert found(index, [event(A=2, B=6), event(B=6, C=3, E=9)]) == {(0, 0), (0, 3)}


def test_more_clauses_than_bits_in_a_word() -> None:
    many = [[equal(A, number)] for number in range(3)] + [[at_least(B, number)] for number in range(150)]
    none = [[Leaf(A, Mode.NONE, ((number, number),))] for number in range(100)]
    index = built([many, none, [[at_least(A, number), equal(B, -1)] for number in range(70)]])
    assert index.bitmaps(A)[1] == (1 << 100) - 1
    assert found(index, [event(A=200, B=200), event(A=2, B=200), event(A=50), event(A=69)]) == {(0, 1), (0, 2), (3, 2)}


def test_too_many_clauses_are_refused() -> None:
    wide = [within(number, 3, 9) for number in range(13)]
    with pytest.raises(tamis.CapabilityError, match=f"more than {MOST_CLAUSES} clauses"):
        built([[wide]])
    index = built([[wide[:7]]])
    assert index.bitmaps(0) == {0: (1 << 128) - 1}
    assert found(index, [{0: [(3, 3)]}, {0: [(2, 2)]}], 13) == {(0, 0)}


def random_cnf(keys: RandomKeys, chance: random.Random) -> Cnf:
    return [
        [leaf for _ in range(chance.randint(1, 3)) for leaf in keys.clause()[:1]] or [equal(0, 1)]
        for _ in range(chance.randint(0, 4))
    ]


@pytest.mark.parametrize(
    "options", [{}, {"signatures": False}, {"sort": "always", "segments": 2, "signature_bits": 100}]
)
def test_finds_what_is_true_and_nothing_else(options: dict[str, Any]) -> None:
    keys, chance = RandomKeys(5), random.Random(5)
    subscriptions = [random_cnf(keys, chance) for _ in range(80)]
    index = built(subscriptions[:60], **options)
    live = dict(enumerate(subscriptions))
    index.insert(CnfRows.of(subscriptions[60:]))
    for step in range(3):
        events = [keys.event(several=step > 0, intervals=step > 1) for _ in range(10)]
        assert found(index, events, keys.dimensions) == expected(live, events)
        index.observe(batch_of(events), keys.dimensions)
        gone = sorted(chance.sample(sorted(live), 25))
        index.delete(np.array(gone, np.int32))
        index.check()
        live = {number: each for number, each in live.items() if number not in gone}
        assert found(index, events, keys.dimensions) == expected(live, events)
        assert len(index) == len(live)


def test_more_matches_than_fit_in_a_first_guess() -> None:
    index = built([[[at_least(A, -number), at_least(B, -number)]] for number in range(1200)])
    assert len(found(index, [event(A=1, B=1)] * 3)) == 3600


@pytest.mark.parametrize("seed", range(2))
def test_expressions_are_multiplied_out_to_clauses(seed: int) -> None:
    cases, dimensions = RandomCases(seed), Dimensions()
    # All are compiled together, so no label that is stored moves.
    compiler = Compiler(dimensions, lambda number, relabelling: relabelling.carry_out())
    expressions = [cases.expression() for _ in range(60)]
    index = CnfOpIndex()
    index.insert(CnfRows.of_trees(compiler.trees(expressions)))
    index.check()
    for _ in range(15):
        each = cases.event()
        matches = index.match(encode_flat([flatten(each)], dimensions).batch, len(dimensions))
        assert sorted(matches.conjunction.tolist()) == [n for n, tree in enumerate(expressions) if is_true(tree, each)]


def test_an_expression_with_too_many_clauses_is_refused() -> None:
    compiler = Compiler(Dimensions(), lambda number, relabelling: relabelling.carry_out())
    text = " OR ".join(f"(a{number} = 1 AND b{number} = 1)" for number in range(13))
    with pytest.raises(tamis.CapabilityError, match="clauses"):
        CnfRows.of_trees(compiler.trees([tamis.parse(text)]))
