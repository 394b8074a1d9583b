"""Text with Spark's own literals."""

from __future__ import annotations

import pytest
from hypothesis import given

from tamis.errors import ParseError
from tamis.language.expression import Expression, Predicate
from tamis.language.operators import Operator
from tamis.language.parser import parse
from tamis.language.printer import to_sql
from tests.strategies import expressions

LIKES = {Operator.LIKE, Operator.NOT_LIKE, Operator.ILIKE, Operator.NOT_ILIKE}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a = 'it\'s'", Predicate("a", "=", ["it's"])),
        ('a = "x"', Predicate("a", "=", ["x"])),
        ("`a b`.c = 1", Predicate("a b.c", "=", [1])),
        (r"a IN ('\\', '\n')", Predicate("a", "in", ["\\", "\n"])),
        (r"a RLIKE '^\\d+$'", Predicate("a", "rlike", [r"^\d+$"])),
        (r"a RLIKE r'^\d+$'", Predicate("a", "rlike", [r"^\d+$"])),
        ("a LIKE 'x%'", Predicate("a", "like", ["x%"])),
        (r"a LIKE '50\%'", Predicate("a", "like", [r"50\%"], escape="\\")),
        (r"a NOT ILIKE 'x\\_'", Predicate("a", "not ilike", [r"x\_"], escape="\\")),
        (r"a LIKE 'C:\\\\%'", Predicate("a", "like", [r"C:\\%"], escape="\\")),
        (r"a LIKE 'C:\\!%' ESCAPE '!'", Predicate("a", "like", [r"C:\!%"], escape="!")),
        ("a = DATE '2026-11-14'", parse("a = DATE '2026-11-14'")),
    ],
)
def test_spark(text: str, expected: Expression) -> None:
    assert parse(text, dialect="spark") == expected


def test_a_default_escape_at_a_wrong_place_is_an_error() -> None:
    with pytest.raises(ParseError, match=r"must stand before %, _ or itself"):
        parse(r"a LIKE 'C:\\x'", dialect="spark")


def test_the_same_text_in_two_dialects() -> None:
    text = r"a = '\n'"
    for _ in range(2):
        assert parse(text) == Predicate("a", "=", ["\\n"])
        assert parse(text, dialect="spark") == Predicate("a", "=", ["\n"])


@given(expressions())
def test_what_is_written_for_spark_is_read_again(expression: Expression) -> None:
    """All but LIKE, which is written in other words."""
    if not any(isinstance(node, Predicate) and node.operator in LIKES for node in expression.walk()):
        assert parse(to_sql(expression, "spark"), dialect="spark") == expression
