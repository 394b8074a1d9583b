"""Sets of scalars as unions of spans. Operations are compared with the membership of single values."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.value_set import (
    AFTER,
    BEFORE,
    EVERYTHING,
    NOTHING,
    Span,
    ValueSet,
    above,
    at_least,
    below,
    between,
    complement,
    intersection,
    is_within,
    key_of,
    literal_at,
    points,
    prefix_of,
    starting_with,
    string_after,
    union,
)
from tamis.language.values import Kind, Scalar

LINE = [-1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4]


def holds(one: ValueSet, value: Scalar) -> bool:
    """Membership, by counting the cuts below the value."""
    key = key_of(value)
    return one.below ^ (sum(cut <= (key, BEFORE) for cut in one.cuts) % 2 == 1)


numbers = st.sampled_from([0, 1, 2, 3, 1.0])
basic = st.one_of(
    st.builds(lambda value, side: below(value, side, Kind.NUMBER), numbers, st.booleans()),
    st.builds(above, numbers, st.booleans()),
    st.builds(between, numbers, numbers),
    st.lists(numbers, max_size=3).map(points),
    st.sampled_from([NOTHING, EVERYTHING[Kind.NUMBER]]),
)


@given(st.lists(basic, min_size=1, max_size=3), st.lists(basic, min_size=1, max_size=3))
def test_within_is_an_intersection_that_takes_nothing_away(some: list[ValueSet], others: list[ValueSet]) -> None:
    one, other = at_least(1, some), at_least(1, others)
    assert is_within(one, other) is (intersection([one, other]) == one)
    assert is_within(intersection([one, other]), other)
    assert is_within(one, union([one, other]))


@pytest.mark.parametrize("prefix", ["", "a", "ab", "\ud7ff", "\U0010ffff"])
def test_the_prefix_of_a_span(prefix: str) -> None:
    [span] = starting_with(prefix).spans()
    assert prefix_of(span) == prefix
    assert prefix_of(Span((prefix, AFTER), span.hi)) is None
    assert prefix_of(Span(span.lo, (prefix + "x", BEFORE))) is None


@given(st.lists(basic, min_size=1, max_size=5), st.integers(1, 5))
def test_at_least_counts_membership(sets: list[ValueSet], needed: int) -> None:
    result = at_least(needed, sets)
    for value in LINE:
        assert holds(result, value) is (sum(holds(one, value) for one in sets) >= needed)
    assert list(result.cuts) == sorted(set(result.cuts))


@given(st.lists(basic, min_size=1, max_size=4))
def test_the_laws_of_sets(sets: list[ValueSet]) -> None:
    others = [complement(one, Kind.NUMBER) for one in sets]
    assert complement(union(sets), Kind.NUMBER) == intersection(others)
    assert complement(intersection(sets), Kind.NUMBER) == union(others)
    for one, other in zip(sets, others, strict=True):
        assert not intersection([one, other])
        assert union([one, other]) == EVERYTHING[Kind.NUMBER]


@given(basic)
def test_the_spans_are_the_set(one: ValueSet) -> None:
    rebuilt = union(
        [
            intersection(
                [
                    ValueSet(True, ()) if span.lo is None else ValueSet(False, (span.lo,)),
                    ValueSet(True, ()) if span.hi is None else ValueSet(True, (span.hi,)),
                ]
            )
            for span in one.spans()
        ]
        or [NOTHING]
    )
    assert rebuilt == one
    assert bool(one) is bool(list(one.spans()))


@pytest.mark.parametrize(
    ("one", "spans"),
    [
        (below(3, BEFORE, Kind.NUMBER), [(None, (3, BEFORE))]),
        (below(3, AFTER, Kind.NUMBER), [(None, (3, AFTER))]),
        (above(3, AFTER), [((3, AFTER), None)]),
        (between(1, 2), [((1, BEFORE), (2, AFTER))]),
        (between(2, 1), []),
        (between(1, 1), [((1, BEFORE), (1, AFTER))]),
        (points([2, 1, 2.0]), [((1, BEFORE), (1, AFTER)), ((2, BEFORE), (2, AFTER))]),
        (complement(points([1]), Kind.NUMBER), [(None, (1, BEFORE)), ((1, AFTER), None)]),
        # No string is below the empty one.
        (below("b", BEFORE, Kind.STRING), [(("", BEFORE), ("b", BEFORE))]),
        (below("", BEFORE, Kind.STRING), []),
        (below("", AFTER, Kind.STRING), [(("", BEFORE), ("", AFTER))]),
        (complement(NOTHING, Kind.STRING), [(("", BEFORE), None)]),
        # There are two booleans.
        (complement(points([True]), Kind.BOOLEAN), [((False, BEFORE), (False, AFTER))]),
        (complement(points([True, False]), Kind.BOOLEAN), []),
    ],
)
def test_spans(one: ValueSet, spans: list[Any]) -> None:
    assert list(one.spans()) == spans
    assert bool(one) is bool(spans)


def test_points() -> None:
    assert Span((1, BEFORE), (1, AFTER)).is_point
    assert not Span((1, BEFORE), (2, AFTER)).is_point
    assert not Span((1, AFTER), (2, BEFORE)).is_point
    assert not Span(None, (1, AFTER)).is_point


@pytest.mark.parametrize(
    ("prefix", "after"),
    [
        ("a", "b"),
        ("ab", "ac"),
        ("az", "a{"),
        ("", None),
        ("\U0010ffff", None),
        ("a\U0010ffff", "b"),
        ("\ud7ff", "\ue000"),
        ("a\ud7ff\U0010ffff", "a\ue000"),
    ],
)
def test_the_strings_with_a_prefix_end_before(prefix: str, after: str | None) -> None:
    assert string_after(prefix) == after


@given(st.text(max_size=3), st.text(max_size=4))
def test_a_prefix_is_a_span(prefix: str, text: str) -> None:
    assert holds(starting_with(prefix), text) is text.startswith(prefix)
    assert holds(starting_with(prefix), prefix + text)


@pytest.mark.parametrize(
    "value",
    [5, 1.5, "x", True, date(2026, 11, 14), datetime(2026, 11, 14, 10, 0, 0, 1), date(1, 1, 1), date(9999, 12, 31)],
)
def test_a_key_leads_back_to_its_literal(value: Scalar) -> None:
    kind = next(kind for kind, kinds in KIND_TYPES.items() if isinstance(value, kinds))
    assert literal_at(key_of(value), kind) == value
    assert type(literal_at(key_of(value), kind)) is type(value)


KIND_TYPES: dict[Kind, tuple[type, ...]] = {
    Kind.BOOLEAN: (bool,),
    Kind.NUMBER: (int, float),
    Kind.STRING: (str,),
    Kind.TIMESTAMP: (date,),
}


def test_a_midnight_is_written_as_a_date() -> None:
    assert literal_at(key_of(datetime(2026, 11, 14)), Kind.TIMESTAMP) == date(2026, 11, 14)
