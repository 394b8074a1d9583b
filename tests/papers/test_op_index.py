"""OpIndex compared with the paper: pivots, operator lists, segments, signatures, counters; and what the paper leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tamis
from tamis.encoding.dimensions.intervals import EVERYTHING, between, complement, points
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.papers.op_index.counting_index import OpIndexOptions
from tamis.papers.op_index.entries import EQ, GE, LE, NE, Operator, entries_of
from tamis.papers.op_index.index import OpIndex
from tamis.papers.op_index.lists import signature_bit
from tests.papers.naive import Event, RandomKeys, batch_of, matching, rows_of

pytestmark = pytest.mark.kernels

# The numbers follow the order of S3, C before B before E, and put {A, C, E} and {B, D} in two segments.
A, C, B, E, D = 0, 2, 3, 4, 5
S1, S2, S3, S4, S5, S6 = range(6)


def equal(attribute: int, *operands: int) -> Leaf:
    return Leaf(attribute, Mode.SOME, points(operands))


def at_most(attribute: int, operand: int) -> Leaf:
    return Leaf(attribute, Mode.SOME, between(KEY_MIN, operand))


def at_least(attribute: int, operand: int) -> Leaf:
    return Leaf(attribute, Mode.SOME, between(operand, KEY_MAX))


def within(attribute: int, lo: int, hi: int) -> Leaf:
    return Leaf(attribute, Mode.SOME, between(lo, hi))


TABLE_1 = [
    [equal(A, 2), equal(B, 3, 6, 9)],
    [at_most(A, 8), at_least(C, 2)],
    [equal(C, 6), at_most(B, 4), within(E, 3, 12)],
    [equal(A, 2)],
    [at_least(D, 12), at_most(E, 9)],
    [equal(B, 3, 6), at_most(C, 4), at_least(D, 10), at_most(E, 7)],
]


def built(clauses: list[list[Leaf]], events: list[Event] | None = None, **options: Any) -> OpIndex:
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    index = OpIndex(table, OpIndexOptions(**options))
    if events is not None:
        index.observe(batch_of(events), 8)
    index.insert(numbers)
    index.check()
    return index


def event(**values: int) -> Event:
    return {
        number: [(values[name], values[name])]
        for name, number in zip("ACBED", (A, C, B, E, D), strict=True)
        if name in values
    }


def found(index: OpIndex, *events: Event) -> list[set[int]]:
    matches = index.match(batch_of(list(events)), 8)
    return [set(matches.conjunction[matches.event == row].tolist()) for row in range(len(events))]


def listed(index: OpIndex, pivot: int, operator: Operator) -> list[list[tuple[int, int, int]]]:
    """A list as (attribute, operand, subscription), segment by segment."""
    rows = list(index.counters(pivot))
    return [
        sorted((attribute, operand, rows[place]) for attribute, operand, place in segment)
        for segment in index.lists.content(pivot, operator)
    ]


# -- the paper


def test_example_2_pivot_attributes() -> None:
    index = built(TABLE_1)
    assert list(index.counters(A)) == [S1, S2, S4]
    assert list(index.counters(C)) == [S3]
    assert list(index.counters(D)) == [S5, S6]
    assert index.stats()["pivots"] == 3


def test_figure_5_lists_segments_and_counters() -> None:
    index = built(TABLE_1, segments=2, signature_bits=4)
    assert {pivot: index.counters(pivot) for pivot in (A, C, D)} == {
        A: {S1: 2, S2: 2, S4: 1},
        C: {S3: 4},
        D: {S5: 2, S6: 4},
    }
    expected = {
        (A, EQ): [[(A, 2, S1), (A, 2, S4)], [(B, 3, S1), (B, 6, S1), (B, 9, S1)]],
        (A, LE): [[(A, 8, S2)], []],
        (A, GE): [[(C, 2, S2)], []],
        (C, EQ): [[(C, 6, S3)], []],
        (C, LE): [[(E, 12, S3)], [(B, 4, S3)]],
        (C, GE): [[(E, 3, S3)], []],
        (D, EQ): [[], [(B, 3, S6), (B, 6, S6)]],
        (D, LE): [[(C, 4, S6), (E, 7, S6), (E, 9, S5)], []],
        (D, GE): [[], [(D, 10, S6), (D, 12, S5)]],
    }
    for (pivot, operator), segments in expected.items():
        assert listed(index, pivot, Operator(operator)) == segments
    assert {key: figure for key, figure in index.stats().items() if key in ("lists", "entries", "segments")} == {
        "lists": 9,
        "entries": 18,
        "segments": 11,
    }


@pytest.mark.parametrize("bits", [4, 64, 130])
def test_signatures_have_the_bits_of_their_segments_and_no_others(bits: int) -> None:
    index = built(TABLE_1, segments=2, signature_bits=bits)
    for pivot in (A, C, D):
        for operator in (EQ, LE, GE):
            for entries, signature in zip(
                index.lists.content(pivot, operator), index.lists.signature(pivot, operator), strict=True
            ):
                assert signature == sum({1 << int(signature_bit(operator, a, o, bits)) for a, o, _ in entries})


def test_the_hash_has_the_operand_for_equality_only() -> None:
    bits = [{int(signature_bit(operator, A, operand, 64)) for operand in range(40)} for operator in (EQ, LE, GE, NE)]
    assert len(bits[0]) > 20
    assert [len(each) for each in bits[1:]] == [1, 1, 1]
    assert len({int(signature_bit(LE, attribute, 0, 64)) for attribute in range(40)}) > 20


def test_an_event_visits_only_lists_of_its_attributes() -> None:
    index = built(TABLE_1, segments=2)
    matches = index.match(batch_of([event(A=2, B=6)]), 8)
    assert set(matches.conjunction.tolist()) == {S1, S4}
    # L(A, =) with A and with B, and L(A, <=) with A. L(A, >=) has no entries on A or B.
    assert matches.counters.nodes == 3
    assert matches.counters.candidates == 3  # S1, S2, S4


def test_example_5_counts_down_one_subscription() -> None:
    index = built(TABLE_1, segments=2)
    matches = index.match(batch_of([event(B=6, C=3, E=9)]), 8)
    assert len(matches.conjunction) == 0
    assert matches.counters.candidates == 1  # only S3: its counter goes from 4 to 2
    assert matches.counters.predicates == 2  # E >= 3 and E <= 12


def test_pivots_by_events() -> None:
    events = [event(A=1, D=1, C=1), event(A=1, D=2, E=1), event(D=1, C=1)]
    index = built(TABLE_1, events)
    # A 2, B 0, C 2, D 3, E 1
    assert {number: list(index.counters(number)) for number in (A, B, C, D, E)} == {
        A: [S2, S4],
        B: [S1, S3, S6],
        C: [],
        D: [],
        E: [S5],
    }
    assert list(built(TABLE_1, events, pivot="subscriptions").counters(D)) == [S5, S6]


def test_an_attribute_counts_once_per_event() -> None:
    several: list[Event] = [{A: [(1, 1), (2, 2), (3, 3)], B: [(1, 1)]}, {B: [(1, 1)]}]
    index = built([[equal(A, 1), equal(B, 1)]], several)
    assert index.counters(A) == {0: 2}


# -- entries


@pytest.mark.parametrize(
    ("leaf", "factors"),
    [
        (equal(1, 3), [[(EQ, 3)]]),
        (equal(1, 3, 6, 9), [[(EQ, 3), (EQ, 6), (EQ, 9)]]),
        (at_most(1, 8), [[(LE, 8)]]),
        (at_least(1, 2), [[(GE, 2)]]),
        (within(1, 3, 12), [[(GE, 3)], [(LE, 12)]]),
        (Leaf(1, Mode.NONE, points([3])), [[(NE, 3)]]),
        (Leaf(1, Mode.NONE, points([3, 6])), [[(NE, 3)], [(NE, 6)]]),
        (Leaf(1, Mode.NONE, between(3, 12)), [[(LE, 2), (GE, 13)]]),
        (Leaf(1, Mode.SOME, complement(between(3, 12))), [[(LE, 2), (GE, 13)]]),
        (Leaf(1, Mode.NONE, between(KEY_MIN, 7)), [[(GE, 8)]]),
        (Leaf(1, Mode.SOME, EVERYTHING), [[(GE, KEY_MIN)]]),
        (Leaf(1, Mode.SOME, ((1, 3), (7, 9))), [[(GE, 1)], [(LE, 3), (GE, 7)], [(LE, 9)]]),
        (Leaf(1, Mode.SOME, ((KEY_MIN, 3), (7, 9), (20, KEY_MAX))), [[(LE, 3), (GE, 7)], [(LE, 9), (GE, 20)]]),
        (Leaf(1, Mode.SOME, ((KEY_MIN, 3), (7, 7))), [[(LE, 3), (EQ, 7)]]),
        (Leaf(1, Mode.ABSENT, ()), []),
    ],
)
def test_predicates_become_factors_of_entries(leaf: Leaf, factors: list[list[tuple[int, int]]]) -> None:
    entries = entries_of(rows_of([[leaf]]), np.zeros(1, np.int32))
    made: list[list[tuple[int, int]]] = [[] for _ in range(int(entries.factors[0]))]
    for operator, attribute, operand, factor in zip(*(column.tolist() for column in entries[3:]), strict=True):
        assert attribute == 1
        made[factor].append((operator, operand))
    assert made == factors
    assert bool(entries.verified[0]) is (leaf.mode is Mode.ABSENT)


def test_not_equal_visits_the_attribute_without_the_equal_run() -> None:
    index = built([[Leaf(A, Mode.NONE, points([value]))] for value in (3, 5, 7)] + [[Leaf(B, Mode.NONE, points([5]))]])
    matches = index.match(batch_of([event(A=5)]), 8)
    assert matches.conjunction.tolist() == [0, 2]
    assert matches.counters.candidates == 2
    assert matches.counters.predicates == 3


def test_every_event_visits_conjunctions_without_a_pivot() -> None:
    clauses = [[], [Leaf(A, Mode.ABSENT, ())], [Leaf(A, Mode.ABSENT, ()), equal(B, 1)]]
    index = built(clauses)
    assert index.stats()["rest"] == 2
    assert index.counters(B) == {2: 1}
    assert found(index, {}, event(A=1, B=1), event(B=1)) == [{0, 1}, {0}, {0, 1, 2}]
    index.delete(np.array([1], np.int32))
    index.check()
    assert found(index, {}, event(B=1)) == [{0}, {0, 2}]


def test_several_values_and_intervals_are_verified() -> None:
    # 9 is at least 3 and 1 is at most 5, but neither is between. Both are in the list (1, 9).
    index = built(
        [[within(A, 3, 5)], [equal(A, 1, 9)], [Leaf(A, Mode.NONE, points([9]))], [equal(A, 1, 9), equal(B, 1)]]
    )
    assert found(index, {A: [(1, 1), (9, 9)]}) == [{1}]
    assert found(index, {A: [(2, 8)]}) == [{0, 2}]
    assert found(index, {A: [(1, 1), (9, 9)], B: [(1, 1)]}) == [{1, 3}]


# -- options


@pytest.mark.parametrize(
    "options",
    [
        {"segments": 1},
        {"segments": 3, "signature_bits": 2},
        {"signature_bits": 200},
        {"signatures": False},
        {"sort": "always"},
        {"sort": "always", "signatures": False},
        {"pivot": "subscriptions"},
    ],
)
def test_options_change_no_answer(options: dict[str, Any]) -> None:
    keys = RandomKeys(11)
    clauses = keys.clauses(60)
    events = [keys.event() for _ in range(10)]
    index = built(clauses, events, **options)
    matches = index.match(batch_of(events), keys.dimensions)
    assert set(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True)) == matching(
        dict(enumerate(clauses)), events
    )
    index.delete(np.arange(0, 60, 2, dtype=np.int32))
    index.check()


def test_without_signatures_lists_are_searched_as_a_whole() -> None:
    index = built(TABLE_1, signatures=False)
    assert index.lists.content(A, EQ) == [[(A, 2, 0), (A, 2, 2), (B, 3, 0), (B, 6, 0), (B, 9, 0)]]
    matches = index.match(batch_of([event(A=2, B=6)]), 8)
    assert set(matches.conjunction.tolist()) == {S1, S4}
    assert matches.counters.nodes == 6  # three lists, two attributes
    assert index.stats()["bytes"] < built(TABLE_1).stats()["bytes"]


def test_signatures_save_searches_and_change_nothing_else() -> None:
    keys = RandomKeys(3, dimensions=8, keys=40)
    clauses = keys.clauses(200)
    events = batch_of([keys.event(several=False, intervals=False) for _ in range(20)])
    one, none, few = (
        built(clauses, **options).match(events, 8).counters
        for options in ({}, {"signatures": False}, {"signature_bits": 1})
    )
    assert one.candidates == none.candidates == few.candidates
    assert one.predicates == none.predicates == few.predicates
    assert one.nodes < few.nodes < none.nodes


@pytest.mark.parametrize("seed", range(2))
def test_sorting_once_or_always_gives_the_same_lists(seed: int) -> None:
    clauses = RandomKeys(seed).clauses(80)
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    once, always = OpIndex(table), OpIndex(table, OpIndexOptions(sort="always"))
    for part in np.array_split(numbers, 9):
        once.insert(part)
        always.insert(part)
    for index in (once, always):
        index.check()
    for pivot in range(6):
        assert once.counters(pivot) == always.counters(pivot)
        for operator in Operator:
            lists = [[sorted(segment) for segment in index.lists.content(pivot, operator)] for index in (once, always)]
            assert lists[0] == lists[1]


def test_many_entries_are_sorted_by_counting() -> None:
    generator = np.random.default_rng(1)
    values = generator.integers(0, 1000, (1500, 2)).tolist()
    clauses = [[equal(40, number), at_most(3, x), at_least(35, y)] for number, (x, y) in enumerate(values)]
    index = built(clauses, pivot="subscriptions")
    assert index.stats()["entries"] == 4500
    assert [operand for _, operand, _ in index.lists.content(3, LE)[3]] == sorted(x for x, _ in values)


# -- changing


def test_deleting_kills_counters_and_rebuilding_drops_entries() -> None:
    clauses = [[equal(A, value), at_least(B, value)] for value in range(300)]
    index = built(clauses)
    index.delete(np.arange(100, dtype=np.int32))
    index.check()
    assert index.stats() == {**index.stats(), "conjunctions": 200, "dead": 100, "entries": 600}
    assert found(index, event(A=50, B=400), event(A=150, B=400)) == [set(), {150}]
    assert index.match(batch_of([event(A=50, B=-1)]), 8).counters.candidates == 0
    index.delete(np.arange(100, 160, dtype=np.int32))
    index.check()
    assert index.stats() == {**index.stats(), "conjunctions": 140, "dead": 0, "entries": 280}
    assert found(index, event(A=150, B=400), event(A=200, B=400)) == [set(), {200}]


def test_pivots_are_chosen_again_when_the_index_is_built_again() -> None:
    clauses = [[equal(A, value), equal(B, value)] for value in range(200)]
    index = built(clauses)
    assert len(index.counters(A)) == 200
    index.observe(batch_of([event(A=1), event(A=2)]), 8)
    index.delete(np.arange(101, dtype=np.int32))
    index.check()
    assert len(index.counters(A)) == 0
    assert len(index.counters(B)) == 99


def test_a_matcher_takes_its_options() -> None:
    matcher = tamis.Matcher(index="op-index", options={"segments": 4, "signature_bits": 8})
    matcher.add_many(
        list("abcd"), ["x = 1 AND y <= 5", "name LIKE 'ab%'", "x IN (1, 2) AND z IS NULL", "x <> 1 OR y > 7"]
    )
    assert sorted(matcher.match({"x": 1, "y": 3, "name": "abc"})) == ["a", "b", "c"]
    assert sorted(matcher.match({"x": 2, "y": 9, "z": 1})) == ["d"]
    with pytest.raises(tamis.OptionError, match="at least 1"):
        tamis.Matcher(index="op-index", options={"segments": 0})
