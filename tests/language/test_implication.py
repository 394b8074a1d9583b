"""What is said to follow, follows: for lists, Intervals, missing values and earlier events, too."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.evaluate import evaluate, matches
from tamis.language.expression import Expression, Predicate, TruthTest, all_of
from tamis.language.implication import FORM_LIMIT, Implications
from tamis.language.reading import to_expression
from tests import strategies
from tests.language import close_cases
from tests.language.close_cases import PLACES, PLAIN_DOMAIN, plain_conjunctions, plain_predicates

ANY_EVENT, SCALARS = Implications(), Implications(scalars=None)


def implies(narrow: str, wide: str, implications: Implications = ANY_EVENT) -> bool:
    return implications.implies(*[implications.read(to_expression(text)) for text in (narrow, wide)])


def is_never(text: str, implications: Implications = ANY_EVENT) -> bool:
    return not implications.read(to_expression(text))


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("a = 1", "TRUE"),
        ("a = 1 AND b = 2", "a = 1"),
        ("a < 5", "a < 6"),
        ("a < 5", "a <= 5"),
        ("a > 5", "a IS NOT NULL"),
        ("a = 5", "a BETWEEN 1 AND 9"),
        ("a BETWEEN 2 AND 3", "a BETWEEN 1 AND 3"),
        ("a BETWEEN 2 AND 3", "a >= 2 AND a <= 3"),
        ("a >= 2 AND a <= 3", "a >= 1 AND a <= 4"),
        ("a IN (1, 2)", "a IN (1, 2, 3)"),
        ("a IN (1, 'x')", "a IN (1, 'x', 'y')"),
        ("a IN (1, 2)", "a < 3"),
        ("a = 1 OR a = 2", "a IN (1, 2)"),
        ("a IN (1, 2)", "a = 1 OR a = 2"),
        ("NOT (a < 5)", "a >= 5"),
        ("NOT (a < 5)", "NOT (a < 3)"),
        ("NOT (a < 5)", "a <> 3"),
        ("a <> 5", "a IS NOT NULL"),
        ("a NOT IN (1, 2)", "a <> 1"),
        ("a NOT IN (1, 'x')", "a <> 'x' AND a <> 1"),
        ("a <> 5 AND a IN (4, 5)", "a = 4"),
        ("a IS NULL", "(a < 5) IS UNKNOWN"),
        ("a IS NULL", "a IS NULL AND (a = 'x') IS UNKNOWN"),
        ("a <> 5", "a IS DISTINCT FROM 5"),
        ("a IS NULL", "a IS DISTINCT FROM 5"),
        ("a = 5", "(a < 5) IS NOT UNKNOWN"),
        ("a LIKE 'abc%'", "a LIKE 'ab%'"),
        ("a LIKE 'abc%'", "a >= 'abc'"),
        ("a LIKE 'ab%c'", "a LIKE 'ab%'"),
        ("a LIKE 'abc%'", "a LIKE '%b%'"),
        ("a LIKE '%abc'", "a LIKE '%c'"),
        ("a LIKE '%a_c%'", "a LIKE '%a__%'"),
        ("a LIKE '50!%%' ESCAPE '!'", "a LIKE '%0!%%' ESCAPE '!'"),
        ("a ILIKE '%ABC'", "a ILIKE '%c'"),
        ("a = 'abc'", "a LIKE '%c'"),
        ("a IN ('abc', 'c')", "a RLIKE 'c$'"),
        ("a = 'Abc'", "lower(a) = 'abc'"),
        ("a = '10.1.2.3'", "ip_in(a, '10.0.0.0/8')"),
        ("ip_in(a, '10.1.0.0/16')", "ip_in(a, '192.168.0.0/16', '10.0.0.0/8')"),
        ("lower(a) = 'abc'", "lower(a) IN ('abc', 'x')"),
        ("lower(a) IN ('abc', 'xbc')", "lower(a) LIKE '%bc'"),
        ("a RLIKE 'x' AND b = 1", "a RLIKE 'x'"),
        ("a RLIKE 'x'", "(a = 'y') IS NOT UNKNOWN"),
        ("a = 1 OR b = 2", "a < 2 OR b < 3 OR c = 4"),
        ("(a = 1 OR b = 2) AND c = 3", "a = 1 OR b IN (2, 3)"),
        ("x < ANY (SELECT x FROM history) AND a = 1", "x < ANY (SELECT x FROM history)"),
        ("a = TRUE", "a IN (TRUE, FALSE)"),
        ("t >= DATE '2026-11-14'", "t > TIMESTAMP '2026-11-13 23:59:59'"),
    ],
)
def test_implied(narrow: str, wide: str) -> None:
    assert implies(narrow, wide)
    assert implies(narrow, wide, SCALARS)


@pytest.mark.parametrize(
    ("narrow", "wide", "event"),
    [
        # Two elements of a list satisfy two predicates.
        ("a > 0 AND a < 10", "a BETWEEN 0 AND 10", {"a": [-5, 20]}),
        ("a = 7", "a <> 5", {"a": [5, 7]}),
        ("a >= 5", "NOT (a < 5)", {"a": [1, 9]}),
        ("a < 3 AND a > 5", "FALSE", {"a": [1, 9]}),
        ("a = 'x'", "a NOT LIKE '%y'", {"a": ["x", "y"]}),
        ("a = 1 AND a = 'x'", "FALSE", {"a": [1, "x"]}),
        ("a = 1", "(a = 'x') IS UNKNOWN", {"a": [1, "x"]}),
        ("a NOT IN (1, 'x')", "FALSE", {"a": [2, "y"]}),
    ],
)
def test_implied_for_single_values_only(narrow: str, wide: str, event: dict[str, Any]) -> None:
    assert matches(narrow, event)
    assert not matches(wide, event)
    assert not implies(narrow, wide)
    assert implies(narrow, wide, SCALARS)
    assert implies(narrow, wide, Implications(scalars={"a"}))
    assert not implies(narrow, wide, Implications(scalars={"b"}))


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("a = 1", "a = 1 AND b = 1"),
        ("a < 6", "a < 5"),
        ("a <= 5", "a < 5"),
        ("a IN (1, 2)", "a = 1"),
        ("a IN (1, 'x')", "a = 1"),
        ("a IS NULL", "a <> 1"),
        ("a IS NULL", "a IS NOT NULL"),
        ("a IS DISTINCT FROM 5", "a <> 5"),
        ("a = 1 OR b = 1", "a = 1"),
        ("a LIKE '%b%'", "a LIKE '%b'"),
        ("a LIKE 'a%c'", "a LIKE 'a_c'"),
        ("a LIKE 'ab%'", "a LIKE 'abc%'"),
        ("a NOT LIKE '%x'", "a LIKE '%x'"),
        ("ip_in(a, '10.0.0.0/8')", "ip_in(a, '10.1.0.0/16')"),
        ("TRUE", "a = 1"),
    ],
)
def test_not_implied(narrow: str, wide: str) -> None:
    assert not implies(narrow, wide)
    assert not implies(narrow, wide, SCALARS)


@pytest.mark.parametrize(
    "texts",
    [
        ("a = 1 AND b = 2", "b = 2 AND a = 1", "NOT (a <> 1 OR b <> 2)", "b = 2 AND a = 1.0 AND b = 2"),
        ("a IN (1, 2)", "a = 2 OR a = 1", "a IN (2, 1, 2.0)"),
        ("a LIKE 'ab%'", "a LIKE 'ab%' AND a LIKE 'a%'", "a LIKE 'ab%' AND a IS NOT NULL"),
        ("a = 'x'", "a = 'x' AND a LIKE '%x'", "a LIKE 'x'"),
        ("a = 1", "a = 1 OR (a = 1 AND b = 2)", "(a = 1) IS TRUE"),
        ("a <> 1 AND a <> 2", "a NOT IN (1, 2)"),
        ("t = DATE '2026-11-14'", "t = TIMESTAMP '2026-11-14 00:00:00'"),
        ("a > 1 AND a > 2", "a > 2"),
        ("a IN (TRUE, FALSE)", "(a = TRUE) IS NOT UNKNOWN"),
        ("FALSE", "a BETWEEN 5 AND 1", "a = 1 AND a <> 1", "lower(a) = 'X'", "a IS NULL AND a = 1"),
    ],
)
def test_same_form(texts: tuple[str, ...]) -> None:
    assert len({ANY_EVENT.read(to_expression(text)) for text in texts}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "a < 3 AND NOT (a < 3)",
        "a IS NULL AND a IS NOT NULL",
        "a IN (1, 2) AND a NOT IN (2, 1)",
        "a = 'x' AND a NOT LIKE '%x'",
        "a RLIKE 'x' AND a NOT RLIKE 'x'",
        "a <> TRUE AND a <> FALSE",
        "a <> TRUE AND a = TRUE",
        "a < ''",
        "a IS NOT NULL AND "
        + " AND ".join(f"(a = {each}) IS UNKNOWN" for each in ("1", "'x'", "TRUE", "DATE '2026-11-14'")),
    ],
)
def test_no_event_satisfies_it(text: str) -> None:
    assert is_never(text)


def test_an_expression_with_too_many_clauses_implies_itself_only() -> None:
    text = " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(FORM_LIMIT))
    assert implies(text, text)
    assert not implies(text, "a0 = 1 OR b0 = 1")


HISTORY: list[dict[str, Any]] = [{"a": 1, "b": 2}, {"a": "x"}, {"b": [0, 3]}]

any_expressions = st.one_of(
    close_cases.expressions(max_leaves=5),
    close_cases.expressions(max_leaves=5, history=True),
    close_cases.expressions(max_leaves=3).flatmap(
        lambda inner: st.builds(TruthTest, st.just(inner), st.sampled_from([True, False, None]), st.booleans())
    ),
    strategies.expressions(names=st.sampled_from(close_cases.NAMES), max_leaves=5),
)


@given(st.lists(any_expressions, min_size=1, max_size=4), st.lists(close_cases.events(), min_size=1, max_size=8))
def test_claims_hold_for_all_events(expressions: list[Expression], events: list[dict[str, Any]]) -> None:
    _check_claims(ANY_EVENT, expressions, events)


@given(st.lists(any_expressions, min_size=1, max_size=4), st.lists(close_cases.scalar_events(), min_size=1, max_size=8))
def test_claims_hold_for_scalars(expressions: list[Expression], events: list[dict[str, Any]]) -> None:
    _check_claims(SCALARS, expressions, events)


def _check_claims(implications: Implications, expressions: list[Expression], events: list[dict[str, Any]]) -> None:
    # Parts and combinations of the expressions follow from one another more often than strangers do.
    parts = [part for each in expressions for part in each.walk()][:8]
    pool = [*expressions, *parts, all_of(*expressions), *[one & other for one, other in itertools.pairwise(parts)]]
    forms = [implications.read(each) for each in pool]
    truths = [[evaluate(each, event, HISTORY) is True for event in events] for each in pool]
    for form, found in zip(forms, truths, strict=True):
        assert form or not any(found)
    for (narrow, some), (wide, all_) in itertools.permutations(zip(forms, truths, strict=True), 2):
        if implications.implies(narrow, wide):
            assert all(other for one, other in zip(some, all_, strict=True) if one)


LISTS = [*PLAIN_DOMAIN, *[list(each) for size in (2, 3) for each in itertools.combinations(PLACES, size)]]


@given(plain_conjunctions(4), plain_conjunctions(4))
def test_all_implications_of_conjunctions_are_found_for_scalars(narrow: Expression, wide: Expression) -> None:
    _check_complete(SCALARS, narrow, wide, PLAIN_DOMAIN)


@given(st.lists(plain_predicates(), min_size=1, max_size=3), plain_predicates())
def test_all_implications_of_conjunctions_are_found_for_lists(narrow: list[Predicate], wide: Predicate) -> None:
    # One attribute: with two, there are too many pairs of lists.
    same = all_of(*[Predicate("a", each.operator, each.values) for each in narrow])
    _check_complete(ANY_EVENT, same, Predicate("a", wide.operator, wide.values), LISTS)


def _check_complete(implications: Implications, narrow: Expression, wide: Expression, domain: list[Any]) -> None:
    names = sorted((narrow & wide).attributes())
    events = [dict(zip(names, values, strict=True)) for values in itertools.product(domain, repeat=len(names))]
    satisfied = [event for event in events if matches(narrow, event)]
    assert bool(implications.read(narrow)) is bool(satisfied)
    expected = all(matches(wide, event) for event in satisfied)
    assert implications.implies(implications.read(narrow), implications.read(wide)) is expected
