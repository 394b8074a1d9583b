"""The k-index: its lists, their contents, and how events use them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

import tamis
from tamis.encoding.dimensions.intervals import EVERYTHING, Intervals, points
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN, KeyKind, double_code
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.kernels.numbers import I64
from tamis.matcher.matcher import matcher_over
from tamis.papers.interface import KindOf, all_integers
from tamis.papers.k_index.enumeration import floored
from tamis.papers.k_index.index import KIndex, KIndexOptions
from tests.papers.naive import Event, batch_of, matching, rows_of
from tests.papers.stores import store_over

pytestmark = pytest.mark.kernels

A, B, C, D, E = range(5)
_NUMBER = list(KeyKind).index(KeyKind.NUMBER)


def some(dimension: int, *intervals: tuple[int, int]) -> Leaf:
    return Leaf(dimension, Mode.SOME, intervals)


def some_of(dimension: int, *values: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, points(values))


def at_most(dimension: int, value: int) -> Leaf:
    return some(dimension, (KEY_MIN, value))


def at_least(dimension: int, value: int) -> Leaf:
    return some(dimension, (value, KEY_MAX))


# Table 1 of the OpIndex paper: S1 is number 0, and so on.
TABLE_1 = [
    [some_of(A, 2), some_of(B, 3, 6, 9)],
    [at_most(A, 8), at_least(C, 2)],
    [some_of(C, 6), at_most(B, 4), some(E, (3, 12))],
    [some_of(A, 2)],
    [at_least(D, 12), at_most(E, 9)],
    [some_of(B, 3, 6), at_most(C, 4), at_least(D, 10), at_most(E, 7)],
]


def numbers(dimension: int) -> KeyKind:
    return KeyKind.NUMBER


def names(dimension: int) -> KeyKind:
    return KeyKind.NAME


def built(clauses: list[list[Leaf]], kind_of: KindOf = all_integers, **options: Any) -> KIndex:
    table = ConjunctionTable()
    rows = table.intern(rows_of(clauses))
    assert rows.tolist() == list(range(len(clauses)))
    index = KIndex(table, KIndexOptions.read(options, "k-index"), kind_of)
    index.refuse(rows)
    index.insert(rows)
    index.check()
    return index


def matched(index: KIndex, clauses: list[list[Leaf]], *events: Event) -> list[list[int]]:
    """The matches of each event, after checking them."""
    found = index.match(batch_of(list(events)), 8)
    pairs = list(zip(found.event.tolist(), found.conjunction.tolist(), strict=True))
    assert sorted(pairs) == sorted(matching(dict(enumerate(clauses)), list(events)))
    return [sorted(c for row, c in pairs if row == number) for number in range(len(events))]


def plain(*values: tuple[int, int]) -> Event:
    return {dimension: [(key, key)] for dimension, key in values}


def lists_of(index: KIndex) -> dict[int, dict[tuple[int, float], list[int]]]:
    """K -> (dimension, value) -> conjunctions. The gap above a value is written as value + 0.5."""
    found: dict[int, dict[tuple[int, float], list[int]]] = defaultdict(dict)
    for size, dimension, value, gap, conjunctions in index.posting_lists():
        found[size][dimension, value + gap / 2] = conjunctions
    return dict(found)


def spread(dimension: int, first: int, last: int, *conjunctions: int) -> dict[tuple[int, float], list[int]]:
    return {(dimension, value): list(conjunctions) for value in range(first, last + 1)}


def test_figure_2_of_the_opindex_paper() -> None:
    """With values from 1 to 20. 0 and 21 stand for values outside this domain."""
    index = built(TABLE_1, domain=(1, 20))
    lists = lists_of(index)
    assert list(lists) == [1, 2, 3, 4]
    assert lists[1] == {(A, 2): [3]}
    assert lists[2] == {
        **spread(A, 0, 8, 1),
        (A, 2): [0, 1],
        **spread(B, 3, 3, 0),
        **spread(B, 6, 6, 0),
        **spread(B, 9, 9, 0),
        **spread(C, 2, 21, 1),
        **spread(D, 12, 21, 4),
        **spread(E, 0, 9, 4),
    }
    assert lists[3] == {(C, 6): [2], **spread(B, 0, 4, 2), **spread(E, 3, 12, 2)}
    assert lists[4] == {
        **spread(B, 3, 3, 5),
        **spread(B, 6, 6, 5),
        **spread(C, 0, 4, 5),
        **spread(D, 10, 21, 5),
        **spread(E, 0, 7, 5),
    }
    figures = index.stats()
    assert (figures["sizes"], figures["lists"], figures["always"], figures["verified"]) == (4, 96, 0, 0)
    assert figures["entries"] == figures["lists"] + 1  # S1 and S2 share (2, A, 2).


def test_events_of_the_opindex_paper() -> None:
    index = built(TABLE_1)
    assert matched(index, TABLE_1, plain((A, 2), (B, 6))) == [[0, 3]]
    # The lists of B = 6, C = 3, E = 9 contain S1, S2, S3 and S5. S6 is too large for three values.
    event = plain((B, 6), (C, 3), (E, 9))
    touched = {
        c
        for size, dimension, value, _, conjunctions in index.posting_lists()
        if size <= 3 and (value, value) in event.get(dimension, [])
        for c in conjunctions
    }
    assert touched == {0, 1, 2, 4}
    found = index.match(batch_of([event]), 5)
    assert len(found.event) == 0
    # Three lists in K = 2, and one in K = 3, which is too few to match.
    assert found.counters.nodes == 4


def test_bounds_come_from_the_constants() -> None:
    index = built(TABLE_1)
    lists = lists_of(index)
    # Predicates name C with 2, 4 and 6. 1 stands for lower values, 7 for higher ones.
    assert [value for dimension, value in lists[2] if dimension == C] == [2, 3, 4, 5, 6, 7]
    assert [value for dimension, value in lists[4] if dimension == C] == [1, 2, 3, 4]
    assert matched(index, TABLE_1, plain((A, 1000), (C, 1000)), plain((A, -1000), (C, 1000))) == [[], [1]]


def test_lists_skip_forward_to_the_kth() -> None:
    """In a long list, only conjunctions that are also in the short list are visited."""
    clauses = [[some_of(0, 1), some_of(1, number)] for number in range(1000)] + [[some_of(0, 1), some_of(2, 7)]]
    index = built(clauses)
    found = index.match(batch_of([plain((0, 1), (1, 500), (2, 7))]), 3)
    assert found.conjunction.tolist() == [500, 1000]
    # Before each of the two matches, the current entry of the long list is visited, too.
    assert found.counters.candidates == 4
    assert found.counters.nodes == 3


def test_only_sizes_up_to_that_of_the_event() -> None:
    clauses = [[some_of(d, 1) for d in range(size)] for size in range(1, 7)]
    index = built(clauses)
    for size in range(8):
        event = plain(*((d, 1) for d in range(size)))
        assert matched(index, clauses, event) == [list(range(min(size, 6)))]
        assert index.match(batch_of([event]), 8).counters.candidates == min(size, 6)


def test_predicates_that_cannot_be_enumerated_are_verified() -> None:
    clauses = [
        [Leaf(0, Mode.NONE, points([3]))],
        [Leaf(0, Mode.ABSENT, ())],
        [],
        [some_of(1, 5), Leaf(0, Mode.NONE, ((2, 4),))],
        [some_of(1, 5), Leaf(2, Mode.ABSENT, ())],
        [some_of(1, 5), some(1, (5, 9))],
        [some(0, *EVERYTHING)],
    ]
    index = built(clauses)
    figures = index.stats()
    assert (figures["always"], figures["verified"]) == (3, 5)
    assert {size for size, *_ in index.posting_lists()} == {1}
    assert matched(
        index,
        clauses,
        plain((0, 3), (1, 5)),
        plain((0, 9), (1, 5)),
        plain((1, 5), (2, 1)),
        {},
        {1: [(5, 5), (9, 9)]},
    ) == [[2, 4, 5, 6], [0, 2, 3, 4, 5, 6], [1, 2, 5], [1, 2], [1, 2, 4, 5]]


def test_of_several_conditions_the_one_with_the_fewest_values_is_enumerated() -> None:
    clauses = [[at_least(0, 3), some(0, (4, 5)), at_most(0, 90)]]
    index = built(clauses)
    assert [(value, gap) for _, _, value, gap, _ in index.posting_lists()] == [(4, False), (5, False)]
    assert matched(index, clauses, plain((0, 4)), {0: [(4, 4), (100, 100)]}, {0: [(2, 2), (95, 95)]}) == [[0], [0], []]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, (0, True)),
        (5e-324, (0, False)),
        (-5e-324, (-1, False)),
        (0.5, (0, False)),
        (-0.5, (-1, False)),
        (1.0, (1, True)),
        (-1.0, (-1, True)),
        (2.5, (2, False)),
        (-2.5, (-3, False)),
        (2.0**52, (2**52, True)),
        (2.0**52 + 1, (2**52 + 1, True)),
        (2.0**52 - 0.5, (2**52 - 1, False)),
        (-(2.0**53) + 1, (-(2**53) + 1, True)),
        (2.0**53, (2**53, False)),
        (-(2.0**53), (-(2**53) - 1, False)),
        (1e300, (2**53, False)),
        (-float("inf"), (-(2**53) - 1, False)),
    ],
)
def test_whole_numbers_of_keys(value: float, expected: tuple[int, bool]) -> None:
    assert floored(_NUMBER, I64(double_code(value))) == expected


def test_the_key_below_zero_is_not_zero() -> None:
    assert floored(_NUMBER, I64(double_code(0.0) - 1)) == (-1, False)


def test_numbers_between_whole_ones() -> None:
    def key(value: float) -> int:
        return double_code(value)

    clauses = [
        [some(0, (key(2), key(4)))],
        [some(0, (key(2) + 1, key(4) - 1))],
        [some(0, (key(3) + 1, key(4) - 1))],
        [some(0, (key(4), KEY_MAX))],
        [some(0, (KEY_MIN, key(2) - 1))],
        [some_of(0, key(3.5), key(3.25), key(9.5), key(9.75))],
        [some_of(0, key(3))],
        [some(0, (key(-1), key(0) - 1))],
    ]
    index = built(clauses, numbers)
    lists = lists_of(index)[1]
    assert lists[0, 3.5] == [2, 5]
    assert lists[0, 2.5] == [1]
    assert lists[0, 3] == [0, 1, 6]
    assert lists[0, 5] == [3, 5]  # beyond 4
    assert lists[0, -2] == [4]  # below -1
    values = [-7, -1, -0.5, -5e-324, 0, 0.5, 1.999, 2, 2.5, 3, 3.25, 3.5, 3.75, 4, 4.5, 9.5, 1e300]
    found = matched(index, clauses, *(plain((0, key(value))) for value in values))
    expected: list[tuple[list[float], list[int]]] = [
        ([-7, 0, 0.5, 1.999], [4]),
        ([-1, -0.5, -5e-324], [4, 7]),
        ([2], [0]),
        ([2.5], [0, 1]),
        ([3], [0, 1, 6]),
        ([3.25, 3.5], [0, 1, 2, 5]),
        ([3.75], [0, 1, 2]),
        ([4], [0, 3]),
        ([4.5, 1e300], [3]),
        ([9.5], [3, 5]),
    ]
    assert dict(zip(values, found, strict=True)) == {value: each for some, each in expected for value in some}
    assert matched(
        index,
        clauses,
        {0: [(key(3.6), key(3.9))]},
        {0: [(key(-9), key(-8)), (key(8), key(9))]},
        {0: [(key(0.5), key(1.5)), (key(3), key(3))]},
    ) == [[0, 1, 2], [3, 4], [0, 1, 4, 6]]


@pytest.mark.parametrize(
    ("kind_of", "intervals", "reason"),
    [
        (numbers, ((double_code(2.5), KEY_MAX),), "a range ends at 2.5, which is not a whole number"),
        (numbers, ((KEY_MIN, double_code(-0.5)),), "a range ends at -0.5"),
        (
            numbers,
            ((KEY_MIN, double_code(2.0**60)),),
            "a range ends at 1.15292150460685e+18, which is not a whole number below",
        ),
        (numbers, ((double_code(0), double_code(10_000)),), "a range within 0 .. 10,000 has more than 10,000 values"),
        (all_integers, ((-(2**62), 2**62),), "a range within -4,611,686"),
        (names, ((10, KEY_MAX),), "a range of strings has no list of values"),
        (names, ((10, 10**6),), "a range of strings"),
    ],
)
def test_predicates_that_have_too_many_values_are_refused(kind_of: KindOf, intervals: Intervals, reason: str) -> None:
    with pytest.raises(tamis.CapabilityError, match="the index 'k-index' enumerates") as raised:
        built([[Leaf(3, Mode.SOME, intervals)]], kind_of)
    assert f"dimension 3: {reason}" in str(raised.value)
    assert "Hint: " in str(raised.value)


def test_a_constant_may_make_another_range_too_wide() -> None:
    matcher = tamis.Matcher(index="k-index", options={"max_values": 100})
    matcher.add("up", "x >= 5")
    matcher.add("down", "x < 90 AND y = 1.5")
    with pytest.raises(tamis.CapabilityError, match=r"a range within 5 \.\. 1,000 has more than 100 values"):
        matcher.add("far", "x = 1000")
    assert "far" not in matcher
    assert matcher.match({"x": 1000, "y": 1.5}) == ["up"]
    matcher.remove("up")
    matcher.remove("down")
    matcher.add("far", "x = 1000")
    assert matcher.match({"x": 1000}) == ["far"]
    assert not tamis.indexes()["k-index"].every_predicate


def test_ranges_that_become_too_wide_are_verified() -> None:
    """A range may become too wide because of another row. It then has no lists."""
    table = ConjunctionTable()
    clauses = [[at_least(0, 5), some_of(1, 1)], [some_of(0, 10**9)]]
    index = KIndex(table)
    index.insert(table.intern(rows_of(clauses)))
    index.check()
    assert {(size, dimension) for size, dimension, *_ in index.posting_lists()} == {(1, 0), (1, 1)}
    assert matched(index, clauses, plain((0, 6), (1, 1)), plain((0, 10**9), (1, 1))) == [[0], [0, 1]]


def test_cells_far_apart_need_no_lists_between() -> None:
    clauses = [[some(0, (0, 3))], [some(0, (10**12, 10**12 + 2))], [some_of(0, 5)]]
    index = built(clauses)
    assert index.stats()["bytes"] < 2000
    assert matched(index, clauses, plain((0, 2)), {0: [(1, 10**12)]}, {0: [(4, 5)]}) == [[0], [0, 1, 2], [2]]


def test_options() -> None:
    assert KIndexOptions.read({"domain": (1, 5)}, "k-index") == KIndexOptions(domain=(1, 5))
    for wrong in ((5, 1), 3, (1, 2, 3), (1.5, 2), "ab"):
        with pytest.raises(tamis.OptionError, match="two whole numbers, the lower one first or None"):
            tamis.Matcher(index="k-index", options={"domain": wrong})
    with pytest.raises(tamis.OptionError, match="a whole number of at least 1"):
        tamis.Matcher(index="k-index", options={"max_values": 0})
    # Values outside the domain have one list on each side, and are verified.
    clauses = [[at_least(0, 3)], [at_least(0, 30)], [at_most(0, -30)], [some_of(0, 40)]]
    index = built(clauses, domain=(1, 5))
    assert lists_of(index)[1] == {(0, 0): [2], **spread(0, 3, 5, 0), (0, 6): [0, 1, 3]}
    assert matched(index, clauses, *(plain((0, value)) for value in (3, 6, 35, 40, -40))) == [
        [0],
        [0],
        [0, 1],
        [0, 1, 3],
        [2],
    ]


def test_it_is_correct_after_a_subscription_was_refused() -> None:
    store = store_over("k-index")
    matcher = matcher_over(store)
    matcher.add(1, "x = 1")
    assert matcher.match({"x": 1}) == [1]
    with pytest.raises(tamis.CapabilityError):
        matcher.add(2, "x > 1.5")
    store.index.check()
    assert matcher.match({"x": 1}) == [1]
