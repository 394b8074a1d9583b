"""Joins with earlier events: ANY, ALL and EXISTS, as in SQL."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import EventError
from tamis.language.evaluate import evaluate, matches, negation
from tamis.language.expression import Expression, Not, Predicate
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import MIRRORED, Operator
from tamis.language.values import Interval
from tests.language.close_cases import events, history_leaves

UNKNOWN = None

OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


def quantified(operator: str, quantifier: str, value: Any, earlier: list[Any]) -> bool | None:
    """The truth of `x OPERATOR ANY|ALL (SELECT y FROM history)`."""
    return evaluate(Quantified("x", operator, quantifier, "y"), {"x": value}, [{"y": one} for one in earlier])


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("value", [5, None, "x", []])
def test_an_empty_history(operator: str, value: Any) -> None:
    assert quantified(operator, "any", value, []) is False
    assert quantified(operator, "all", value, []) is True


@pytest.mark.parametrize(
    ("operator", "earlier", "any_of_them", "all_of_them"),
    [
        ("<", [1, 9], True, False),
        ("<", [9, 8], True, True),
        ("<", [1, 5], False, False),
        ("<=", [5, 9], True, True),
        (">", [1, 9], True, False),
        (">=", [5, 1], True, True),
        ("=", [5, 1], True, False),
        ("=", [5, 5.0], True, True),
        ("<>", [5, 1], True, False),
        ("<>", [1, 2], True, True),
        ("<>", [5, 5], False, False),
        # NULLs decide nothing.
        ("<", [None, 9], True, UNKNOWN),
        ("<", [None, 1], UNKNOWN, False),
        ("<", [None], UNKNOWN, UNKNOWN),
        ("<>", [None, 1], True, UNKNOWN),
        ("<>", [None, 5], UNKNOWN, False),
        ("=", [None, 5], True, UNKNOWN),
        # Values of another kind decide nothing, either.
        ("=", ["5", 5], True, UNKNOWN),
        ("<>", ["5"], UNKNOWN, UNKNOWN),
        ("=", [True], UNKNOWN, UNKNOWN),
    ],
)
def test_any_and_all(operator: str, earlier: list[Any], any_of_them: bool | None, all_of_them: bool | None) -> None:
    assert quantified(operator, "any", 5, earlier) is any_of_them
    assert quantified(operator, "all", 5, earlier) is all_of_them


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_missing_attribute_against_some_history(operator: str) -> None:
    assert quantified(operator, "any", None, [1]) is UNKNOWN
    assert quantified(operator, "all", None, [1]) is UNKNOWN


@pytest.mark.parametrize(
    ("value", "operator", "earlier", "expected"),
    [
        # Some pair of elements.
        ([1, 9], "<", 5, True),
        ([1, 9], ">", 5, True),
        ([1, 9], "=", 5, False),
        ([1, 9], "<>", 5, True),
        ([1, 5], "<>", 5, False),
        ([1, 5], "<>", [5, 6], False),
        ([1, 2], "<>", [5, 6], True),
        (5, "<", [1, 9], True),
        (5, "<", [1, 2], False),
        ([7, 8], "<", [1, 2], False),
        # Values of a common kind.
        ([1, "x"], "=", ["x", 2], True),
        ([1, "x"], "=", ["y", 2], False),
        ([1, "x"], "=", ["y", True], False),
        ([1, "x"], "=", True, UNKNOWN),
        ([1, "x"], "<>", True, UNKNOWN),
        ("a", "<", "b", True),
        (date(2026, 11, 14), "=", datetime(2026, 11, 14), True),
        (2**53 + 1, "=", 2.0**53, False),
        (-0.0, "=", 0, True),
        # Booleans have no order.
        (True, "=", True, True),
        (True, "<>", False, True),
        (False, "<", True, UNKNOWN),
        (True, ">=", True, UNKNOWN),
        ([True, 1], "<", [True, 2], True),
        # Intervals are sets of points.
        (Interval(5, 10), "=", 7, True),
        (Interval(5, 10), "=", 4, False),
        (Interval(5, 10), "<>", 4, True),
        (Interval(5, 10), "<>", 7, False),
        (Interval(5, 10), "<", 5, False),
        (Interval(5, 10), "<", 6, True),
        (Interval(5, 10), ">", 9, True),
        (Interval(5, 10), ">=", 10, True),
        (Interval(5, 10), ">", 10, False),
        (7, "=", Interval(5, 10), True),
        (10, "<", Interval(5, 10), False),
        (9, "<", Interval(5, 10), True),
        (10, "<=", Interval(5, 10), True),
        (Interval(1, 5), "=", Interval(5, 9), True),
        (Interval(1, 4), "=", Interval(5, 9), False),
        (Interval(1, 5), ">", Interval(5, 9), False),
        (Interval(1, 5), ">=", Interval(5, 9), True),
        (Interval(1, 6), ">", Interval(5, 9), True),
        (Interval(5, 9), "<", Interval(1, 6), True),
        (Interval(1, 4), "<>", Interval(5, 9), True),
        (Interval(1, 4), "=", "x", UNKNOWN),
        (Interval(1, 4), "=", date(2026, 1, 1), UNKNOWN),
        (None, "=", 5, UNKNOWN),
        (5, "=", None, UNKNOWN),
    ],
)
def test_comparing_two_attributes(value: Any, operator: str, earlier: Any, expected: bool | None) -> None:
    assert quantified(operator, "any", value, [earlier]) is expected
    assert quantified(operator, "all", value, [earlier]) is expected
    mirrored = MIRRORED[Operator(operator)]
    assert quantified(mirrored, "any", earlier, [value]) is expected
    assert evaluate(Exists([Join("y", mirrored, "x")]), {"x": value}, [{"y": earlier}]) is (expected is True)


AUTHOR = Join("author", "=", "author")
CHEAPER = Join("price", ">", "price")
CRIME = Predicate("genre", "=", ["crime"])


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], False),
        ([{"author": "Smith", "price": 30}], True),
        ([{"author": "Smith", "price": 10}], False),
        # One earlier event must satisfy all.
        ([{"author": "Smith", "price": 10}, {"author": "Jones", "price": 30}], False),
        ([{"author": "Jones"}, {"author": "Smith", "price": 21}], True),
        # UNKNOWN is not TRUE, and EXISTS is never UNKNOWN.
        ([{"author": "Smith"}], False),
        ([{"price": 30}], False),
        ([{"author": 5, "price": 30}], False),
    ],
)
def test_exists(history: list[dict[str, Any]], expected: bool) -> None:
    expression = Exists([AUTHOR, CHEAPER])
    event = {"author": "Smith", "price": 20}
    assert evaluate(expression, event, history) is expected
    assert evaluate(Not(expression), event, history) is (not expected)


def test_exists_with_conditions_on_the_earlier_event() -> None:
    expression = Exists([AUTHOR], [CRIME, Predicate("price", "between", [1, 9])])
    event = {"author": "Smith", "genre": "poetry", "price": 100}
    assert matches(expression, event, [{"author": "Smith", "genre": "crime", "price": 5}])
    assert not matches(expression, event, [{"author": "Smith", "genre": "crime", "price": 50}])
    assert not matches(expression, event, [{"author": "Smith", "genre": "poetry", "price": 5}])
    assert matches(Exists([], [Predicate("author", "is null")]), event, [{"genre": "x"}])


def test_exists_on_a_missing_attribute_is_false() -> None:
    assert evaluate(Exists([AUTHOR]), {}, [{"author": "Smith"}]) is False
    assert evaluate(Not(Exists([AUTHOR])), {}, [{"author": "Smith"}]) is True


def test_the_example_of_tatbul() -> None:
    """Section 4.2, example 5: documents D1 and D2, three profiles, one new document."""
    history: list[dict[str, Any]] = [{"price": 10, "year": 2000, "author": "Smith"}, {"price": 25, "year": 1999}]
    new = {"price": 30, "year": 2001, "author": "Smith"}
    profiles = [
        Quantified("price", "<", "any", "price"),
        Quantified("year", ">", "all", "year"),
        Quantified("author", "=", "any", "author"),
    ]
    assert [matches(profile, new, history) for profile in profiles] == [False, True, True]


def test_the_event_is_not_part_of_the_history() -> None:
    assert not matches(Quantified("x", "=", "any", "x"), {"x": 1}, [])


def test_a_history_may_be_any_iterable_and_its_events_nested() -> None:
    expression = Quantified("user.age", "<", "any", "user.age")
    assert matches(expression, {"user": {"age": 3}}, ({"user": {"age": age}} for age in (1, 5)))


def test_a_wrong_earlier_event_is_named() -> None:
    with pytest.raises(EventError, match="event 1, attribute 'y': bytes"):
        quantified("=", "any", 1, [1, b"x"])


@given(history_leaves(), events(), st.lists(events(), max_size=3))
def test_exists_is_two_valued_and_unequal_is_not_equal(
    leaf: Expression, event: dict[str, Any], history: list[dict[str, Any]]
) -> None:
    truth = evaluate(leaf, event, history)
    if isinstance(leaf, Exists):
        assert truth is not UNKNOWN
    elif isinstance(leaf, Quantified) and leaf.operator is Operator.NE:
        other = Quantified(leaf.attribute, "=", "all" if leaf.quantifier == "any" else "any", leaf.earlier)
        assert truth is negation(evaluate(other, event, history))
