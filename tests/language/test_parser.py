"""Every form on the language's page, read from SQL text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pytest

from tamis.errors import ExpressionError, NestingError
from tamis.language.expression import FALSE, MAX_DEPTH, TRUE, And, Expression, Not, Or, Predicate
from tamis.language.parser import parse, parse_afresh
from tamis.language.values import INT64_MIN
from tamis.language.words import KEYWORDS, RESERVED
from tests.test_imports import loaded_by


def p(attribute: str, operator: str, *values: Any, escape: str | None = None) -> Predicate:
    return Predicate(attribute, operator, values, escape=escape)


A, B, C = (p(name, "=", True) for name in "abc")

PREDICATES = [
    ("a = 5", p("a", "=", 5)),
    ("a <> 5", p("a", "<>", 5)),
    ("a != 5", p("a", "<>", 5)),
    ("a < 5", p("a", "<", 5)),
    ("a <= 5", p("a", "<=", 5)),
    ("a > 5", p("a", ">", 5)),
    ("a >= 5", p("a", ">=", 5)),
    ("5 = a", p("a", "=", 5)),
    ("5 <> a", p("a", "<>", 5)),
    ("5 < a", p("a", ">", 5)),
    ("5 <= a", p("a", ">=", 5)),
    ("5 > a", p("a", "<", 5)),
    ("5 >= a", p("a", "<=", 5)),
    ("'x' = a", p("a", "=", "x")),
    ("TRUE = a", p("a", "=", True)),
    ("DATE '2026-11-14' < a", p("a", ">", date(2026, 11, 14))),
    ("a IN (1)", p("a", "in", 1)),
    ("a in(1,'x' , TRUE,1.0, 1)", p("a", "in", 1, "x", True, 1.0)),
    ("a NOT IN ('x', 'y')", p("a", "not in", "x", "y")),
    ("a BETWEEN 1 AND 2.5", p("a", "between", 1, 2.5)),
    ("a NOT BETWEEN 'a' AND 'b'", p("a", "not between", "a", "b")),
    (
        "a between date '2026-01-01' and timestamp '2026-02-01 00:00:00'",
        p("a", "between", date(2026, 1, 1), datetime(2026, 2, 1)),
    ),
    ("a LIKE 'x%'", p("a", "like", "x%")),
    ("a NOT LIKE '%x'", p("a", "not like", "%x")),
    ("a ILIKE '%x%'", p("a", "ilike", "%x%")),
    ("a NOT ILIKE 'x_y'", p("a", "not ilike", "x_y")),
    ("a LIKE '50!%' ESCAPE '!'", p("a", "like", "50!%", escape="!")),
    (r"a LIKE '50\%' ESCAPE '\'", p("a", "like", r"50\%", escape="\\")),
    ("a NOT ILIKE '''%' ESCAPE ''''", p("a", "not ilike", "'%", escape="'")),
    (r"a LIKE 'C:\%'", p("a", "like", r"C:\%")),
    (r"a RLIKE '^\d+$'", p("a", "rlike", r"^\d+$")),
    ("a NOT RLIKE 'x'", p("a", "not rlike", "x")),
    ("a IS NULL", p("a", "is null")),
    ("a IS NOT NULL", p("a", "is not null")),
    ("a", A),
    ("array_contains(a, 'x')", p("a", "=", "x")),
    ("ARRAY_CONTAINS ( a.b , -1 )", p("a.b", "=", -1)),
]


@pytest.mark.parametrize(("text", "expected"), PREDICATES)
def test_predicates(text: str, expected: Predicate) -> None:
    assert parse(text) == expected
    assert parse_afresh(text) == expected
    assert parse(f"NOT {text}") == Not(expected)
    assert parse(f"({text})") == expected
    assert parse(f"x AND {text} OR\n{text} -- the end") == Or([And([p("x", "=", True), expected]), expected])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRUE", TRUE),
        ("false", FALSE),
        ("NOT TRUE", Not(TRUE)),
        ("NOT a", Not(A)),
        ("NOT NOT a", Not(Not(A))),
        ("not (not (a))", Not(Not(A))),
        ("a AND b AND c", And([A, B, C])),
        ("a OR b OR c", Or([A, B, C])),
        ("a OR b AND c", Or([A, And([B, C])])),
        ("a AND b OR c", Or([And([A, B]), C])),
        ("a AND (b OR c)", And([A, Or([B, C])])),
        ("(a OR b) AND c", And([Or([A, B]), C])),
        ("(a AND b) AND c", And([A, B, C])),
        ("a OR (b OR c)", Or([A, B, C])),
        ("NOT a AND b", And([Not(A), B])),
        ("NOT (a AND b) OR c", Or([Not(And([A, B])), C])),
        ("NOT a = TRUE", Not(A)),
        ("NOT a <> TRUE", Not(p("a", "<>", True))),
        ("NOT a IN (1)", Not(p("a", "in", 1))),
        ("NOT a NOT IN (1)", Not(p("a", "not in", 1))),
        ("NOT a IS NOT NULL", Not(p("a", "is not null"))),
        ("a BETWEEN 1 AND 2 AND b", And([p("a", "between", 1, 2), B])),
        ("((((a))))", A),
        ("a AND TRUE OR FALSE", Or([And([A, TRUE]), FALSE])),
        ("TRUE = a AND a = FALSE", And([A, p("a", "=", False)])),
    ],
)
def test_expressions(text: str, expected: Expression) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-5", -5),
        ("- 5", -5),
        ("-0", 0),
        ("-9223372036854775808", INT64_MIN),
        ("1.0", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("1e5", 100000.0),
        ("-1.5E-3", -0.0015),
        ("0.1", 0.1),
        ("''", ""),
        ("'it''s'", "it's"),
        ("'--'", "--"),
        ("'/*'", "/*"),
        ("'\"'", '"'),
        ("TRUE", True),
        ("DATE '2026-11-14'", date(2026, 11, 14)),
        ("timestamp '2026-11-14 10:00:00+01:00'", datetime(2026, 11, 14, 9)),
        ("TIMESTAMP'2026-11-14'", datetime(2026, 11, 14)),
        ("DATE /* a day */ '2026-11-14'", date(2026, 11, 14)),
    ],
)
def test_literals(text: str, value: Any) -> None:
    expected = p("a", "=", value)
    assert parse(f"a={text}") == expected
    assert parse(f"a = {text}") == expected
    assert parse(f"{text}=a") == expected


EVERYDAY = """
    date user type level order timestamp end group limit table value key desc start row interval time year case when if
    then else cast union join on with by having history index default set values null_ array_contains uuid json x1 _
"""


@pytest.mark.parametrize(
    "name", [*EVERYDAY.split(), *sorted(KEYWORDS - RESERVED), "größe", "名前", "i\u017f", "\u0131s"]
)
def test_everyday_names_need_no_quotes(name: str) -> None:
    for word in (name, name.upper() if name.isascii() else name):
        equal = p(word, "=", 1)
        assert parse(f"{word} = 1") == equal
        assert parse(f"1 = {word}") == equal
        assert parse(f"{word}=1 AND ({word} = 1 OR NOT {word} = 1)") == And([equal, Or([equal, Not(equal)])])
        assert parse(word) == p(word, "=", True)
        assert parse(f"x AND {word}") == And([p("x", "=", True), p(word, "=", True)])
        assert parse(f"({word}) OR {word}") == Or([p(word, "=", True)] * 2)
        assert parse(f"{word} IN (1) AND {word} IS NULL") == And([p(word, "in", 1), p(word, "is null")])
        assert parse(f"{word} LIKE 'x' AND {word} NOT LIKE 'x'") == And(
            [p(word, "like", "x"), p(word, "not like", "x")]
        )
        assert parse(f"array_contains({word}, 1)") == equal


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_reserved_words_need_quotes_unless_a_dot_is_next_to_them(name: str) -> None:
    assert parse(f'"{name}" = 1') == p(name, "=", 1)
    assert parse(f"a.{name} = 1") == p(f"a.{name}", "=", 1)
    assert parse(f"{name}.a = 1 AND 1 = {name}.a") == And([p(f"{name}.a", "=", 1)] * 2)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("user.geo.country", "user.geo.country"),
        ("user . geo", "user.geo"),
        ('"user.geo".country', "user.geo.country"),
        ('user."geo country"', "user.geo country"),
        ("`any name`", "any name"),
        ('"it\'s"', "it's"),
        ('"a""b"', 'a"b'),
        ('"--"', "--"),
        ('a.""', "a."),
        ('"\0"', "\0"),
        ("Price", "Price"),
        ('a."5"', "a.5"),
    ],
)
def test_names(text: str, name: str) -> None:
    assert parse(f"{text} = 1") == p(name, "=", 1)


def test_keywords_in_any_case() -> None:
    assert parse("a iN (1) aNd Not b bEtween 1 And 2 oR c Is nOt Null") == parse(
        "a IN (1) AND NOT b BETWEEN 1 AND 2 OR c IS NOT NULL"
    )


def test_spaces_and_comments_have_no_meaning() -> None:
    expected = parse("a = 1 AND b IN (1, 2)")
    assert parse("\ufeff\n a=1\tAND--x\nb/**/IN\r\n(1,2)\u00a0") == expected


class Text(str):
    def __str__(self) -> str:
        return "other"


def test_subclasses_of_str_are_taken_by_their_content() -> None:
    assert parse(Text("a = 1")) == p("a", "=", 1)


@pytest.mark.parametrize("text", [None, 5, b"a = 1", ["a = 1"], object()])
def test_only_str_is_text(text: Any) -> None:
    with pytest.raises(ExpressionError, match="must be a str, not"):
        parse(text)


@pytest.mark.parametrize("word", ["AND", "OR"])
@pytest.mark.parametrize("read", [parse, parse_afresh])
def test_long_chains(word: str, read: Callable[[str], Expression]) -> None:
    text = f" {word} ".join(
        f"attribute_{i} = 'a value of rather usual length, and its number is {i}'" for i in range(4400)
    )
    assert len(text) > 300_000
    expression = read(text)
    assert len(expression.operands) == 4400
    assert expression.depth == 2


def called_at_depth(depth: int, call: Callable[[], Expression]) -> Expression:
    return call() if depth == 0 else called_at_depth(depth - 1, call)


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH, 1),
        ("NOT " * (MAX_DEPTH - 1) + "a", MAX_DEPTH),
        ("NOT (" * (MAX_DEPTH // 2) + "a" + ")" * (MAX_DEPTH // 2), MAX_DEPTH // 2 + 1),
        ("(a OR " * (MAX_DEPTH // 2) + "b" + ") AND b" * (MAX_DEPTH // 2 - 1) + ")", MAX_DEPTH),
        ("(" * MAX_DEPTH + "a IN (1)" + ")" * MAX_DEPTH, 1),
        ("(" * MAX_DEPTH + "EXISTS (SELECT 1 FROM history h WHERE h.a IN (1))" + ")" * MAX_DEPTH, 1),
    ],
)
@pytest.mark.parametrize("read", [parse, parse_afresh])
def test_nesting_up_to_the_limit(text: str, depth: int, read: Callable[[str], Expression]) -> None:
    """Also if the caller has nearly used up the stack."""
    assert read(text).depth == depth
    used = sys.getrecursionlimit() // 2
    assert called_at_depth(used, lambda: read(text)).depth == depth


@pytest.mark.parametrize(
    "text",
    [
        "(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1),
        "NOT " * (MAX_DEPTH + 1) + "a",
        "NOT " * 100_000 + "a",
        "(" * 100_000,
        "NOT (" * 60 + "a" + ")" * 60,
        "(a OR b AND " * 60 + "c" + ")" * 60,
    ],
)
def test_nesting_beyond_the_limit(text: str) -> None:
    with pytest.raises(NestingError, match=f"nested deeper than {MAX_DEPTH} levels"):
        parse(text)


def test_the_place_of_too_deep_nesting_is_named() -> None:
    with pytest.raises(NestingError, match=r"line 2, column 101"):
        parse("a AND\n" + "(" * (MAX_DEPTH + 1))


@pytest.mark.parametrize("module", ["parser", "shapes", "printer", "template", "words", "engine_sql"])
def test_sqlglot_is_loaded_by_the_first_text(module: str) -> None:
    assert "sqlglot" not in loaded_by(f"import tamis.language.{module}")
