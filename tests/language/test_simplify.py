"""Simplification keeps the matches of scalar values, and finds contradictions."""

from __future__ import annotations

import itertools
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.evaluate import matches
from tamis.language.expression import FALSE, MAX_DEPTH, TRUE, And, Expression, Not, Or, Predicate, all_of, any_of
from tamis.language.joins import Quantified
from tamis.language.simplify import Finding, simplify
from tests.language.close_cases import VALUES, events, expressions, scalar_events


def a(operator: str, *values: Any, escape: str | None = None) -> Predicate:
    return Predicate("a", operator, values, escape=escape)


def b(operator: str, *values: Any) -> Predicate:
    return Predicate("b", operator, values)


def remarks(expression: Expression) -> list[str]:
    return [str(remark) for remark in simplify(expression).remarks]


DAY, LATER = date(2026, 11, 14), date(2026, 12, 1)
NOON = datetime(2026, 11, 14, 12)
SUFFIX = a("like", "%x")
IS_NULL, IS_NOT_NULL = a("is null"), a("is not null")
ANY = Quantified("a", "<", "any", "a")


@pytest.mark.parametrize(
    ("expression", "simple"),
    [
        # Conjunctions are intersected.
        (a(">", 0) & a(">", 5), a(">", 5)),
        (a(">", 5) & a(">=", 5), a(">", 5)),
        (a(">=", 0) & a("<=", 10), a("between", 0, 10)),
        (a(">", 0) & a("<", 10), a(">", 0) & a("<", 10)),
        (a(">", 0) & a("<", 10) & a("<", 20), a(">", 0) & a("<", 10)),
        (a("between", 0, 10) & a("between", 5, 15), a("between", 5, 10)),
        (a(">", 0) & a("=", 5), a("=", 5)),
        (a("in", 1, 2, 3) & a(">", 1), a("in", 2, 3)),
        (a("in", 1, 2, 3) & a("<>", 2), a("in", 1, 3)),
        (a("in", 1, "x") & a("in", "x", "y"), a("=", "x")),
        (a(">", 0) & a("<>", 5) & a("<>", 7), a(">", 0) & a("not in", 5, 7)),
        (a("<>", 5) & a("<>", 7), a("not in", 5, 7)),
        (a("<>", 5) & a("not in", 5, 7), a("not in", 5, 7)),
        (Not(a("<", 5)) & a(">", 0), a(">=", 5)),
        (Not(a("<", 5)) & Not(a(">", 9)), a("between", 5, 9)),
        (a("<=", 5) & a(">=", 5), a("=", 5)),
        (IS_NOT_NULL & a("<>", 5), a("<>", 5)),
        (a("<", DAY) & a("<", LATER), a("<", DAY)),
        (a(">=", NOON) & a("<=", LATER), a("between", NOON, LATER)),
        (a(">", "a") & a(">", "b"), a(">", "b")),
        (a("<>", True) & a("<>", True), a("<>", True)),
        (a("in", True, False) & a("<>", True), a("=", False)),
        # Prefixes are spans. Other patterns tell only that the value is a string.
        (a("like", "ab%") & a("like", "abc%"), a("like", "abc%")),
        (a("like", "abc") & a("like", "a%"), a("=", "abc")),
        (a(">=", "ab") & a("<", "ac"), a("like", "ab%")),
        (a(">=", "a%") & a("<", "a&"), a("like", "a!%%", escape="!")),
        (SUFFIX & IS_NOT_NULL, SUFFIX),
        (SUFFIX & a("like", "%"), SUFFIX),
        (SUFFIX & a("in", "ax", "b", "cx"), a("in", "ax", "cx")),
        (SUFFIX & a("<>", "ax"), SUFFIX & a("<>", "ax")),
        (SUFFIX & a(">", "b") & a(">", "c"), SUFFIX & a(">", "c")),
        # Disjunctions are united.
        (a("=", 1) | a("=", 2), a("in", 1, 2)),
        (a("=", 1) | a("=", "x"), a("in", 1, "x")),
        (a("in", 1, 2) | a("=", 3), a("in", 1, 2, 3)),
        (a("between", 0, 5) | a("between", 3, 9), a("between", 0, 9)),
        (a("<", 5) | a("<", 7), a("<", 7)),
        (a("<", 5) | a("=", 5), a("<=", 5)),
        (a("<", 5) | a(">", 5), a("<>", 5)),
        (a("<", 5) | a(">", 9), a("not between", 5, 9)),
        (a("<", "b") | a(">", "c"), a("not between", "b", "c")),
        (a(">", 5) | a(">", 5), a(">", 5)),
        (a("=", 5) | a("<>", 5) | IS_NOT_NULL, IS_NOT_NULL),
        (a("like", "%") | a(">", "x"), a("like", "%")),
        (SUFFIX | a("like", "%"), a("like", "%")),
        (SUFFIX | IS_NOT_NULL, IS_NOT_NULL),
        (SUFFIX | SUFFIX, SUFFIX),
        (IS_NULL | a("=", 1) | a("=", 2), IS_NULL | a("in", 1, 2)),
        # Conjunctions and disjunctions, on one attribute and on several.
        ((a("=", 1) | a("=", 2)) & a(">", 1), a("=", 2)),
        ((a("<", 1) | a(">", 5)) & a("in", 0, 3, 9), a("in", 0, 9)),
        ((SUFFIX | a("=", 5)) & a("in", 5, 6, "x", "y"), a("in", 5, "x")),
        (a(">", 0) & b("=", 1) & a(">", 5), a(">", 5) & b("=", 1)),
        ((a(">", 0) & a(">", 5)) | b("=", 1), a(">", 5) | b("=", 1)),
        (b("=", 1) | (a("=", 1) & a("=", 2)), b("=", 1)),
        # Tautologies
        (IS_NULL | IS_NOT_NULL, TRUE),
        (TRUE | a("=", 1), TRUE),
        (IS_NULL | IS_NOT_NULL | b("=", 1), TRUE),
        ((IS_NULL | IS_NOT_NULL) & b("=", 1), b("=", 1)),
        (Not(IS_NULL & IS_NOT_NULL), TRUE),
        # "Is a number": not TRUE, since the attribute may be missing.
        (a("<", 5) | a(">=", 5), a("<", 5) | a(">=", 5)),
        (a("<", 5) | a("between", 5, 9) | a(">", 9), a("<", 0) | a(">=", 0)),
        (a("<", DAY) | a("=", DAY) | a(">", DAY), a("<", date(1970, 1, 1)) | a(">=", date(1970, 1, 1))),
        (a("=", True) | a("=", False), a("in", False, True)),
        # Nothing to do
        (a("=", 1), a("=", 1)),
        (a("=", 1) & b("=", 1), a("=", 1) & b("=", 1)),
        (ANY & a("=", 1), ANY & a("=", 1)),
        (ANY & ANY, ANY),
        (Not(a("<", 5)), Not(a("<", 5))),
    ],
)
def test_simplified(expression: Expression, simple: Expression) -> None:
    assert simplify(expression).expression == simple


@pytest.mark.parametrize(
    "expression",
    [
        a("<", 3) & a(">", 5),
        a("<", 3) & a(">=", 3),
        a("=", 1) & a("=", 2),
        a("=", 1) & a("<>", 1),
        a("=", 1) & a("=", "x"),
        a("<", 1) & a("<", "x"),
        a("=", 1) & a("=", True),
        a("=", 1) & a(">", DAY),
        IS_NULL & a("=", 1),
        IS_NULL & a("<>", 1),
        IS_NULL & IS_NOT_NULL,
        IS_NULL & SUFFIX,
        a("=", True) & a("=", False),
        a("<>", True) & a("<>", False),
        a("not in", True, False),
        a("in", 1, 2) & a("in", 3, 4),
        a("in", 1, 2) & a("between", 3, 4),
        a("between", 5, 1),
        a("<", ""),
        Not(a(">=", "")),
        a("not in", 1, "x"),
        a("like", "a%") & a("like", "b%"),
        a("like", "a%") & a("=", "b"),
        a("like", "a%") & a("not like", "a%"),
        a("=", "b") & a("ilike", "A%"),
        a("=", "b") & a("rlike", "^a"),
        SUFFIX & a("=", 5),
        SUFFIX & a("not like", "%x"),
        a("rlike", "x") & a("not rlike", "x") & b("=", 1),
        (a("=", 1) | a("=", 2)) & a(">", 5),
        (a("=", 1) & a("=", 2)) | (b("=", 1) & b("=", 2)),
        ANY & Not(ANY),
        Not(IS_NULL | IS_NOT_NULL),
        FALSE & a("=", 1),
        a("=", NOON) & a("=", DAY),
    ],
)
def test_never(expression: Expression) -> None:
    simplified = simplify(expression)
    assert simplified.expression == FALSE
    assert simplified.remarks[-1].finding is Finding.NEVER
    assert remarks(expression)[-1] == "never matches"


@pytest.mark.parametrize(
    "expression",
    [
        TRUE,
        Not(FALSE),
        IS_NULL | IS_NOT_NULL,
        IS_NULL | IS_NOT_NULL | a("=", 1),
        TRUE | a("=", 1),
        (IS_NULL | IS_NOT_NULL) & (b("is null") | b("is not null")),
        Not(IS_NULL & b("=", 1) & IS_NOT_NULL),
    ],
)
def test_always(expression: Expression) -> None:
    simplified = simplify(expression)
    assert simplified.expression == TRUE
    assert [remark.finding for remark in simplified.remarks] == [Finding.ALWAYS]


NUMBER = Not(a("<", 5)) | Not(a(">=", 5))
ANY_SCALAR = NUMBER | a("like", "%") | a("in", True, False) | a("<", DAY) | Not(a("<", DAY)) | IS_NULL


def test_a_list_may_not_match_what_every_scalar_matches() -> None:
    assert simplify(ANY_SCALAR).expression == TRUE
    assert not matches(ANY_SCALAR, {"a": [1, 9]})


def test_contradictions_are_named() -> None:
    assert remarks((a("<", 3) & a(">", 5)) | b("=", 1)) == [
        "contradiction: a < 3 AND a > 5: no single value of a satisfies it"
    ]
    assert remarks(ANY & Not(ANY))[0].endswith("it contradicts itself")
    assert remarks(a("=", 1)) == []


def test_the_message_about_a_long_contradiction_is_short() -> None:
    [text, _] = remarks(all_of(*[a("=", number) for number in range(4_400)]))
    assert len(text) < 300
    assert " ... " in text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (
            a("<", 5) | a(">=", 5) | b("=", 1),
            "a < 5 OR a >= 5 is true for every value of this kind: it only tests the kind",
        ),
        (
            a("=", True) | a("=", False),
            "a = TRUE OR a = FALSE is true for every value of this kind: it only tests the kind",
        ),
    ],
)
def test_any_value_of_a_kind_is_reported(expression: Expression, text: str) -> None:
    assert remarks(expression) == [text]


def test_only_scalar_attributes_are_touched() -> None:
    expression = a("=", 1) & a("=", 2) & b("=", 1) & b("=", 1)
    assert simplify(expression, scalars={"b"}).expression == a("=", 1) & a("=", 2) & b("=", 1)
    assert simplify(expression, scalars=set()).expression == And([a("=", 1), a("=", 2), b("=", 1)])
    assert simplify(expression, scalars={"a"}).expression == FALSE


def test_long_chains() -> None:
    numbers = range(4_400)
    assert simplify(any_of(*[a("=", number) for number in numbers])).expression == a("in", *numbers)
    assert simplify(all_of(*[a("<>", number) for number in numbers])).expression == a("not in", *numbers)
    several = [Predicate(f"a{number}", "=", [number]) for number in numbers]
    assert simplify(any_of(*several)).expression == Or(several)


def test_the_deepest_expressions() -> None:
    # An OR of an AND would have fewer leaves, but would be one level deeper.
    expression = all_of(*[a("not between", low, low + 1) for low in (1, 5, 5)], a("<>", 1), a("<>", 2))
    for level in range(MAX_DEPTH - expression.depth):
        leaf = Predicate(f"b{level}", "=", [level])
        expression = any_of(leaf, expression) if level % 2 == 0 else all_of(leaf, expression)
    assert expression.depth == MAX_DEPTH
    assert simplify(expression).expression.depth <= MAX_DEPTH


@given(expressions(["a", "b"]), st.lists(scalar_events(["a", "b"]), min_size=1, max_size=12))
def test_simplified_matches_the_same_scalar_events(expression: Expression, some: list[dict[str, Any]]) -> None:
    simple = simplify(expression).expression
    for event in some:
        assert matches(simple, event) is matches(expression, event)


@given(expressions(["a"], max_leaves=6))
def test_simplified_matches_the_same_values_of_one_attribute(expression: Expression) -> None:
    simple = simplify(expression).expression
    for value in (None, *VALUES):
        assert matches(simple, {"a": value}) is matches(expression, {"a": value})
    assert len(list(simple.walk())) <= len(list(expression.walk())) or isinstance(expression, Not)


@given(
    expressions(["a", "b"], history=True), events(["a"]), scalar_events(["b"]), st.lists(events(["a", "b"]), max_size=2)
)
def test_attributes_that_are_not_scalar_keep_their_meaning(
    expression: Expression, some: dict[str, Any], scalar: dict[str, Any], history: list[dict[str, Any]]
) -> None:
    simple = simplify(expression, scalars={"b"}).expression
    event = some | scalar
    assert matches(simple, event, history) is matches(expression, event, history)


LEAVES = [
    a("<", 1), a("<=", 1), a(">", 1), a(">=", 1), a("=", 1), a("<>", 1), a("between", 0, 2), a("not between", 1, 2),
    a("in", 0, 1.5), a("not in", 0, 1), a("=", "a"), a("<>", "ab"), a("like", "a%"), a("not like", "ab%"), a("like", "%b"),
    a("ilike", "A%"), a("<", "b"), a(">=", ""), a("=", True), a("<>", True), a("<", DAY), a("=", NOON), a("not in", DAY),
    IS_NULL, IS_NOT_NULL, Not(a("<", 1)), Not(a(">", "a")), a("in", 1, "a"), a("not in", 1, "a"),
]  # fmt: skip


@pytest.mark.parametrize("combine", [all_of, any_of])
def test_every_pair_of_leaves(combine: Any) -> None:
    for pair in itertools.combinations_with_replacement(LEAVES, 2):
        expression = combine(*pair)
        simple = simplify(expression).expression
        for value in (None, *VALUES):
            assert matches(simple, {"a": value}) is matches(expression, {"a": value}), (str(expression), value)
