"""Predicates in keys, written again in the language."""

from __future__ import annotations

import pytest

import tamis
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.leaf import Leaf
from tamis.encoding.expressions.compile import Compiler
from tamis.encoding.expressions.phrases import phrase
from tamis.language.expression import Constant, Not, Predicate
from tamis.language.normal import to_nnf
from tests.random_cases import RandomCases

SAME = [
    "a = 1",
    "a <> 1",
    "a < 3",
    "a <= 3",
    "a > -0.5",
    "a >= 0",
    "a < 0",
    "a > 0",
    "a = 1e+300",
    "a IN (1, 2.5, 3)",
    "a NOT IN (1, 2)",
    "a BETWEEN 1 AND 2",
    "a NOT BETWEEN 1 AND 2",
    "n = 9007199254740993",
    "n > 9007199254740993",
    "n <= -9007199254740995",
    "n < 9.223372036854776e+18",
    "n >= 9007199254740992",
    "n > -9.223372036854776e+18",
    "n <= -9007199254740992",
    "s = 'm'",
    "s <> 'm'",
    "s > 'm'",
    "s <= 'm'",
    "s BETWEEN 'a' AND 'c'",
    "s IN ('a', 'it''s')",
    "s LIKE 'ab%'",
    "s LIKE '%ab'",
    "s LIKE '%ab%'",
    "s NOT LIKE 'ab%'",
    "s NOT LIKE '%a!%%' ESCAPE '!'",
    "s ILIKE 'ab%'",
    "s ILIKE '%ab'",
    "s ILIKE '%ab%'",
    "s ILIKE 'ab'",
    "s NOT ILIKE 'ab'",
    "s RLIKE '^a+'",
    "s NOT RLIKE '^a+'",
    "lower(s) LIKE 'AB%'",
    "lower(s) NOT LIKE '%AB'",
    "upper(s) LIKE 'AB%'",
    "upper(s) NOT LIKE '%AB%'",
    "upper(s) LIKE '%AB'",
    "ip_in(s, '10.0.0.0/8')",
    "NOT ip_in(s, '10.0.0.0/8', '::/0')",
    "x IS NULL",
    "x IS NOT NULL",
    "b = TRUE",
    "b <> FALSE",
    "t > TIMESTAMP '2024-01-01 00:00:00'",
    "t BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2024-02-01 12:30:00'",
    '"odd name" = 3',
]
OTHERWISE = [
    ("s LIKE 'a_b'", r"s RLIKE '(?s)\Aa.b\z'"),
    ("s ILIKE 'a_b'", r"lower(s) RLIKE '(?s)\Aa.b\z'"),
    ("s LIKE '%'", "s is a string"),
    ("lower(s) = 'ab'", "s ILIKE 'ab'"),
    ("lower(s) IN ('SS', 'x')", "lower(s) LIKE 'SS' OR s ILIKE 'x'"),
    ("upper(s) IN ('AB', 'C')", "upper(s) LIKE 'AB' OR upper(s) LIKE 'C'"),
    ("upper(s) LIKE 'A_B'", r"upper(s) RLIKE '(?s)\AA.B\z'"),
    ("(a < 3) IS TRUE", "a < 3"),
    ("(a < 3) IS UNKNOWN", "a is not a number"),
    ("(s LIKE '%x%') IS UNKNOWN", "s is not a string"),
    ("ip_in(s, '::1') IS UNKNOWN", "s is not an address"),
    ("ip_in(s, '::1') IS NOT UNKNOWN", "s is an address"),
    ("ip_in(s, '10.0.0.0/9', '10.128.0.0/9')", "ip_in(s, '10.0.0.0/8')"),
    ("ip_in(s, '0.0.0.0/0', '::/0')", "ip_in(s, '0.0.0.0/0', '::/0')"),
    ("b IN (TRUE, FALSE)", "b is a boolean"),
    ("a IN (1, 2, 3, 4, 5, 6, 7)", "a IN (1, 2, 3, 4, 5, ... 2 more)"),
    ("a < 1 OR a > 5", "a < 1 OR a > 5"),
    ("a < 1 OR a BETWEEN 2 AND 3 OR a = 7", "a < 1 OR a BETWEEN 2 AND 3 OR a BETWEEN 7 AND 7"),
    ("s LIKE '%x%' OR s LIKE '%y%'", "s LIKE '%x%' OR s LIKE '%y%'"),
    (
        " OR ".join(f"s LIKE '%{i}%'" for i in range(7)),
        " OR ".join(f"s LIKE '%{i}%'" for i in range(5)) + " OR ... 2 more",
    ),
    ("NOT (a < 3)", "NOT (a < 3)"),
    ("t = DATE '2024-01-01'", "t = TIMESTAMP '2024-01-01 00:00:00'"),
]


def said(text: str, scalars: tuple[str, ...] = ()) -> str:
    dimensions = Dimensions()
    compiler = Compiler(dimensions, lambda *_: None, scalars)
    ((leaf,),) = compiler.compile(tamis.parse(text)).clauses
    return of_leaf(leaf, dimensions, bool(scalars))


def of_leaf(leaf: Leaf, dimensions: Dimensions, scalar: bool = False) -> str:
    return phrase(dimensions[leaf.dimension], leaf.mode, leaf.intervals, scalar=scalar)


@pytest.mark.parametrize("text", SAME)
def test_phrases_that_are_the_text_itself(text: str) -> None:
    assert said(text) == text


@pytest.mark.parametrize(("text", "expected"), OTHERWISE)
def test_other_words_with_the_same_meaning(text: str, expected: str) -> None:
    assert said(text) == expected


def test_phrases_of_scalars_may_name_what_is_excluded() -> None:
    assert said("a <> 3", ("a",)) == "a <> 3"
    assert said("NOT ip_in(a, '10.0.0.0/8')", ("a",)) == "NOT ip_in(a, '10.0.0.0/8')"
    both = "ip_in(a, '10.0.0.0/8') AND NOT ip_in(a, '10.0.0.0/9')"
    assert said(both, ("a",)) == "ip_in(a, '10.128.0.0/9')"
    assert said("a <> 3 AND a <> 5", ("a",)) == "a NOT IN (3, 5)"
    assert said("a < 1 OR a > 5", ("a",)) == "a NOT BETWEEN 1 AND 5"


def test_later_labels_change_nothing() -> None:
    dimensions = Dimensions()
    compiler = Compiler(dimensions, lambda *_: None)
    ((leaf,),) = compiler.compile(tamis.parse("s > 'm'")).clauses
    compiler.compile(tamis.parse("s IN ('a', 'mm', 'z')"))
    assert of_leaf(leaf, dimensions) == "s > 'm'"


@pytest.mark.parametrize("seed", range(20))
def test_phrases_have_the_same_meaning(seed: int) -> None:
    cases = RandomCases(seed)
    told = 0
    for _ in range(200):
        expression = to_nnf(cases.expression())
        if isinstance(expression, Constant) or not isinstance(expression, Predicate | Not):
            expression = next(
                node for node in [*expression.walk(), tamis.parse("a = 1")] if isinstance(node, Predicate)
            )
        dimensions = Dimensions()
        clauses = Compiler(dimensions, lambda *_: None).compile(expression).clauses
        if len(clauses) != 1 or len(clauses[0]) != 1:
            continue
        text = of_leaf(clauses[0][0], dimensions)
        if any(word in text for word in (" is a ", "...", "lower(", "reverse(", r"\z", "inf")):
            continue
        again = tamis.parse(text)
        told += 1
        for _ in range(10):
            event = cases.event()
            assert tamis.evaluate(again, event) == tamis.evaluate(expression, event), (text, str(expression), event)
    assert told > 100
