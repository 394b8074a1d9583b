"""Text with Spark's literals."""

from __future__ import annotations

import pytest
from hypothesis import given

from tamis.errors import ParseError
from tamis.language.engine_sql import to_sql
from tamis.language.expression import Expression, Predicate
from tamis.language.operators import Operator
from tamis.language.parser import parse
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
        ("a == 1", Predicate("a", "=", [1])),
        ("5L=a", Predicate("a", "=", [5])),
        ("a IN (5L, -128Y, 32767s, 9223372036854775807l)", Predicate("a", "in", [5, -128, 32767, 2**63 - 1])),
        ("a IN (5D, .5d, 1e3D, -1.5BD, 0.1bd)", Predicate("a", "in", [5.0, 0.5, 1000.0, -1.5, 0.1])),
        ("a IN (0.1F, 5f)", Predicate("a", "in", [0.10000000149011612, 5.0])),
        ("a = 'x' 'y'\"z\" AND b LIKE 'a' '%'", parse("a = 'xyz' AND b LIKE 'a%'")),
        ("a = DATE '2026-11-14'", parse("a = DATE '2026-11-14'")),
    ],
)
def test_spark(text: str, expected: Expression) -> None:
    assert parse(text, dialect="spark") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a <=> 5", "this operator is not supported: <=>"),
        ("a = 1.5L", "1.5L is not an integer"),
        ("a = 1e3S", "1e3S is not an integer"),
        ("a = 128Y", "128Y does not fit into the 8 bits"),
        ("a = -32769S", "-32769S does not fit into the 16 bits"),
        ("a = 9223372036854775808L", "beyond 64 bits"),
        ("a = 1e40F", "beyond the largest float"),
        ("a = 1e400D", "beyond the largest double"),
        ("a = 5X", "this is not a number"),
        ("a = 5 L", "AND, OR or another operator is missing before L"),
        ("a = `5`L", "comparing two attributes"),
        (r"a = '\ud800'", "lone surrogate"),
        (r"a = 'x\udc00y'", "lone surrogate"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as error:
        parse(text, dialect="spark")
    str(error.value).encode()


@pytest.mark.parametrize("text", ["a = 5L", "a = 1.5BD", "a = 'x' 'y'"])
def test_only_in_text_for_spark(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_a_default_escape_at_a_wrong_place_is_an_error() -> None:
    with pytest.raises(ParseError, match=r"must come before %, _ or itself"):
        parse(r"a LIKE 'C:\\x'", dialect="spark")


def test_the_same_text_in_two_dialects() -> None:
    text = r"a = '\n'"
    for _ in range(2):
        assert parse(text) == Predicate("a", "=", ["\\n"])
        assert parse(text, dialect="spark") == Predicate("a", "=", ["\n"])


@given(expressions())
def test_text_written_for_spark_can_be_read(expression: Expression) -> None:
    """Except LIKE, which is written in another form, and ip_in, which Spark does not have."""
    others = LIKES | {Operator.IP_IN}
    if not any(isinstance(node, Predicate) and node.operator in others for node in expression.walk()):
        assert parse(to_sql(expression, "spark"), dialect="spark") == expression
