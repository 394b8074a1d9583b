"""The canonical SQL text. Reading it gives the same expression."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given

from tamis.errors import ExpressionError
from tamis.language.engine_sql import to_sql
from tamis.language.expression import FALSE, MAX_DEPTH, TRUE, And, Expression, Not, Or, Predicate
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import CALLED, Operator
from tamis.language.parser import parse, parse_afresh
from tests.strategies import expressions

A, B, C = (Predicate(name, "=", [1]) for name in "abc")


@given(expressions(history=True))
def test_written_and_read_again(expression: Expression) -> None:
    text = to_sql(expression)
    assert parse_afresh(text) == expression
    assert parse(text) == expression
    assert to_sql(parse(text)) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (TRUE, "TRUE"),
        (FALSE, "FALSE"),
        (A, "a = 1"),
        (Not(A), "NOT a = 1"),
        (Not(Not(A)), "NOT NOT a = 1"),
        (Predicate("a", "<>", [1]), "a <> 1"),
        (Predicate("a", "in", [1, "x"]), "a IN (1, 'x')"),
        (Predicate("a", "not in", [True]), "a NOT IN (TRUE)"),
        (Predicate("a", "between", [1, 2.5]), "a BETWEEN 1 AND 2.5"),
        (Predicate("a", "not between", ["x", "y"]), "a NOT BETWEEN 'x' AND 'y'"),
        (Predicate("a", "like", ["x%"]), "a LIKE 'x%'"),
        (Predicate("a", "not ilike", ["x!%"], escape="!"), "a NOT ILIKE 'x!%' ESCAPE '!'"),
        (Predicate("a", "rlike", [r"\d"]), r"a RLIKE '\d'"),
        (Predicate("a", "is null"), "a IS NULL"),
        (Predicate("a", "is not null"), "a IS NOT NULL"),
        (And([A, B, C]), "a = 1 AND b = 1 AND c = 1"),
        (Or([A, And([B, C])]), "a = 1 OR b = 1 AND c = 1"),
        (And([A, Or([B, C])]), "a = 1 AND (b = 1 OR c = 1)"),
        (Not(And([A, B])), "NOT (a = 1 AND b = 1)"),
        (And([Not(Or([A, B])), C]), "NOT (a = 1 OR b = 1) AND c = 1"),
        (Quantified("x", "<", "any", "y"), "x < ANY (SELECT y FROM history)"),
        (Quantified("x", "<>", "all", "history.y"), 'x <> ALL (SELECT "history.y" FROM history)'),
        (Exists(), "EXISTS (SELECT 1 FROM history h)"),
        (
            Not(Exists([Join("x", ">", "h.y")], [Predicate("a b", "in", [1])])),
            'NOT EXISTS (SELECT 1 FROM history h WHERE h.x > "h.y" AND h."a b" IN (1))',
        ),
    ],
)
def test_text(expression: Expression, text: str) -> None:
    assert to_sql(expression) == str(expression) == text
    assert parse(text) == expression


@pytest.mark.parametrize("operator", Operator)
def test_every_operator(operator: Operator) -> None:
    known: dict[str, list[Any]] = {
        "is null": [],
        "is not null": [],
        "between": [1, 2],
        "not between": [1, 2],
        "ip_in": ["10.0.0.0/8"],
    }
    values = known.get(operator, ["x"])
    predicate = Predicate("a", operator, values)
    assert to_sql(predicate).startswith(f"{operator}(a" if operator in CALLED else f"a {operator.upper()}")
    assert parse(to_sql(predicate)) == predicate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1.0"),
        (True, "TRUE"),
        (-9223372036854775808, "-9223372036854775808"),
        (1e22, "1e+22"),
        (5e-324, "5e-324"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        ("it's", "'it''s'"),
        ("\\", "'\\'"),
        (date(2026, 11, 14), "DATE '2026-11-14'"),
        (date(1, 1, 1), "DATE '0001-01-01'"),
        (datetime(2026, 11, 14, 10), "TIMESTAMP '2026-11-14 10:00:00'"),
        (datetime(2026, 11, 14, 10, 0, 0, 5), "TIMESTAMP '2026-11-14 10:00:00.000005'"),
    ],
)
def test_literals(value: Any, text: str) -> None:
    predicate = Predicate("a", "=", [value])
    assert to_sql(predicate) == f"a = {text}"
    read = parse(to_sql(predicate))
    assert isinstance(read, Predicate)
    assert [(type(value), repr(value)) for value in read.values] == [(type(value), repr(value))]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("price", "price"),
        ("user.geo.country", "user.geo.country"),
        ("date", "date"),
        ("from", "from"),
        ("any", "any"),
        ("größe", "größe"),
        ("a.in", "a.in"),
        ("in", '"in"'),
        ("Null", '"Null"'),
        ("not.a", '"not.a"'),
        ("a b", '"a b"'),
        ("5", '"5"'),
        ("a.5", '"a.5"'),
        ("a..b", '"a..b"'),
        (".", '"."'),
        ('a"b', '"a""b"'),
        ("`", '"`"'),
        ("h.x", "h.x"),
        ("history.x", "history.x"),
    ],
)
def test_names_are_quoted_if_necessary(name: str, text: str) -> None:
    predicate = Predicate(name, "is null")
    assert to_sql(predicate) == f"{text} IS NULL"
    assert parse(to_sql(predicate)) == predicate


def test_the_deepest_expression_is_written_and_read_again() -> None:
    expression: Expression = Predicate("a", "in", [1])
    for level in range(MAX_DEPTH - 1):
        expression = Not(expression) if level % 2 else And([expression, Predicate("a", "in", [1])])
    assert expression.depth == MAX_DEPTH
    assert parse(to_sql(expression)) == expression


@pytest.mark.parametrize("dialect", ["mysql", "", None, []])
def test_unknown_dialect(dialect: Any) -> None:
    with pytest.raises(ExpressionError, match=r"unknown dialect.*the dialects are: tamis, duckdb, spark"):
        to_sql(A, dialect)
