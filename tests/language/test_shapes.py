"""Reading by shape gives the same expressions and errors as reading word by word."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import ParseError, TamisError
from tamis.language import shapes
from tamis.language.engine_sql import to_sql
from tamis.language.expression import Expression, Predicate
from tamis.language.parser import parse, parse_afresh
from tamis.language.shapes import parse_by_shape
from tests.strategies import expressions

STRINGS = [
    "''",
    "'x'",
    "'it''s'",
    "''''",
    "'2026-01-01'",
    "'2026-02-30'",
    "'2026-01-01 10:00'",
    "'('",
    "'!'",
    "'a!'",
    "'a!%'",
]
STRINGS += ["'--'", "'/*'", "'\"'", "'`'", "'é'", "'\n'", r"'x\'", "'5'", "'\0'", "'\ud800'"]
INTEGERS = ["0", "1", "2", "007", "9223372036854775807", "9223372036854775808", "9" * 30, "9" * 5000]
DECIMALS = ["1.5", "5.", ".5", "1e5", "1E-5", "1e+3", "1.e5", "1e999", "0.0", "00.10"]


@pytest.fixture(autouse=True)
def no_shapes() -> Iterator[None]:
    shapes.forget_shapes()
    yield
    shapes.forget_shapes()


def outcome(text: str, *, afresh: bool = False) -> object:
    """The expression, or all attributes of the error."""
    try:
        return parse_afresh(text) if afresh else parse(text)
    except TamisError as error:
        return type(error), str(error), error.position if isinstance(error, ParseError) else None


def known() -> int:
    return len(shapes.known_shapes())


def assert_same(text: str) -> None:
    assert outcome(text) == outcome(text, afresh=True)


FAMILIES = [
    [
        f"EXISTS (SELECT 1 FROM history h WHERE NOT (h.a = {a}) AND (h.b = b AND NOT h.c RLIKE {b}) AND NOT h.d IN ({a}, 7))"
        for a, b in [("1", "'x'"), ("2", "'y'"), ("3", "'('"), ("4", "'z'")]
    ],
    [
        "a = 5",
        "a = 6",
        "a = 0005",
        "a = 9223372036854775807",
        "a = 9223372036854775808",
        "a = 5.0",
        "a = '5'",
        "a = 5x",
        "a = 5_0",
    ],
    ["a > -5", "a > -9223372036854775808", "a > -9223372036854775809", "a > - 5", "a > --5", "a > -5.5", "a>-5"],
    [
        "a = 1e5",
        "a = 1e6",
        "a = 1e999",
        "a = .5",
        "a = 5.",
        "a = 1.5.5",
        "a = 1e",
        "a = 1e+5",
        "a = 1e-5",
        "a = 1-5",
        "a = .5e",
    ],
    ["a1 = 1", "a1 = 2", "a2 = 1", "a.b2 = 1", "a.5 = 1", "a1.2 = 3", "é5 = 1", "é5 = 2"],
    [
        "a = 'x'",
        "a = 'it''s'",
        "a = ''",
        "a = ''''",
        "a = '''",
        "a = 'x'''",
        "a = 'x' 'y'",
        "a = 'x''y'",
        "a = 'x",
        "a = '\ud800'",
    ],
    [
        "a = 'x' -- 'y'",
        "a = 'x' -- 'z'",
        "a = 'x' /* 'y' */",
        "a = '--'",
        "a = '/*'",
        "a = 5 -- 6",
        "a = 5 --6",
        "a = 5/*6*/",
    ],
    ["\"a\" = 'x'", "\"b\" = 'x'", "\"it's\" = 'x'", "\"it's\" = 'y'", '"a 1" = 1', '"a 1" = 2', '"a"" = 1', '"a = 1'],
    [
        "`a'b` = 'c'",
        "`a'b` = 'd'",
        "`a\"b` = '\"'",
        "`a` = '`'",
        "\"a\" = '\"' AND b = '\"'",
        "\"a\" = 'x' AND b = 'y'",
    ],
    ["d = DATE '2026-11-14'", "d = DATE '2026-11-15'", "d = DATE '2026-13-14'", "d = DATE 'x'", "d = DATE'2026-11-14'"],
    [
        "d = TIMESTAMP '2026-11-14 10:00'",
        "d = TIMESTAMP '2026-11-14 10:00+01'",
        "d = TIMESTAMP 'x'",
        "d = timestamp '2026-11-14'",
    ],
    [
        "a IN (1, 2)",
        "a IN (2, 2)",
        "a IN (1)",
        "a IN (1, 2, 3)",
        "a IN (1, 2.0)",
        "a IN (1,2)",
        "a IN ()",
        "a IN (1, 'x')",
    ],
    [
        "a IN (TRUE, 1)",
        "a IN (TRUE, 2)",
        "a IN (1, TRUE, 2)",
        "a IN (1, TRUE, 3)",
        "a IN (TRUE, FALSE)",
        "a IN (TRUE, TRUE)",
    ],
    [
        "a LIKE 'x%'",
        "a LIKE '%'",
        "a LIKE 'x!%' ESCAPE '!'",
        "a LIKE 'x!y' ESCAPE '!'",
        "a LIKE 'x!%' ESCAPE 'ab'",
        "a LIKE 'xa%' ESCAPE 'a'",
    ],
    ["a RLIKE 'x'", "a RLIKE 'y+'", "a RLIKE '('", "a RLIKE '(?=x)'", "a RLIKE ''"],
    ["a BETWEEN 1 AND 2", "a BETWEEN 2 AND 1", "a BETWEEN 1 AND 2.5", "a BETWEEN 1 AND 'x'", "a BETWEEN 'x' AND 'y'"],
    ["5 < a", "6 < a", "5 < a1", "(5)<a", "5<a", "(a<5)", "(a<6)", "a<5)", "a<>5", "a!=5", "5!=a", "6!=a"],
    ["EXISTS (SELECT 1 FROM history h WHERE h.a = 5)", "EXISTS (SELECT 1 FROM history h WHERE h.a = 6)"],
    [
        "EXISTS (SELECT 2 FROM history h WHERE h.a = 5)",
        "EXISTS (SELECT 01 FROM history h WHERE h.a = 5)",
        "EXISTS (SELECT 1 FROM history)",
    ],
    [
        "x < ANY (SELECT y FROM history) AND NOT (a = 1 OR b = 'x')",
        "x < ANY (SELECT y FROM history) AND NOT (a = 2 OR b = 'y')",
    ],
    ["a AND TRUE", "a AND FALSE", "a", "TRUE", "NOT a = 1", "NOT a = 2", "5", "'x'", "a = 1 AND 5", "a = 1 AND 6"],
    [
        "a = 5;",
        "a = 6;",
        "a = 5 + 6",
        "a = +5",
        "a = (5)",
        "array_contains(a, 5)",
        "array_contains(a, 6)",
        "lower(a) = 'x'",
        "lower(a) = 'y'",
    ],
    [
        "a\0 = 5",
        "a = '\0'",
        "a = '\0s'",
        "a = 'x\0'",
        "\ufeffa = 5",
        "\ufeffa = 6",
        "a\u00a0=\u00a05",
        "a\u00a0=\u00a06",
    ],
]


@pytest.mark.parametrize("texts", FAMILIES)
def test_texts_of_similar_shapes(texts: list[str]) -> None:
    """Read each text after each other text, so that each is compared with the template of every other."""
    for first in texts:
        shapes.forget_shapes()
        for _ in range(2):
            outcome(first)
        for text in texts:
            assert_same(text)
            assert_same(text)


@given(expressions(history=True), st.randoms(use_true_random=False))
def test_other_literals_in_the_same_shape(expression: Expression, random: Random) -> None:
    text = to_sql(expression)
    assert parse(text) == parse(text) == expression

    def other(piece: str) -> str:
        if piece[0] in '"`' or random.random() < 0.4:
            return piece
        return random.choice(STRINGS if piece[0] == "'" else INTEGERS if piece.isdigit() else DECIMALS)

    for _ in range(3):
        assert_same(shapes.PIECE.sub(lambda match: other(match[0]), text))


def test_a_known_shape_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        parse("a = 5 AND b IN ('x', 'y') OR NOT c LIKE 'z%'")
    monkeypatch.setattr("tamis.language.grammar.read", None)
    text = "a = 7 AND b IN ('v', 'w') OR NOT c LIKE 'u%'"
    assert str(parse(text)) == text
    assert parse(text).depth == 3


def test_bound_expressions_share_nothing_that_changes() -> None:
    for _ in range(2):
        parse("a = 0 AND b = 1")
    first, second = parse("a = 1 AND b = 1"), parse("a = 2 AND b = 1")
    assert first.operands[0] == Predicate("a", "=", [1])
    assert second.operands[0] == Predicate("a", "=", [2])
    assert first.operands[1] == second.operands[1]
    assert hash(first) != hash(second)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 -- x",
        "a = 1 /* x */",
        "a = 1\0",
        "a IN (TRUE, 1)",
        "a = 1 AND " * (shapes.MAX_LENGTH // 8) + "b = 2",
        "a = 5 /**/ AND b",
    ],
)
def test_odd_texts_leave_no_template(text: str) -> None:
    for _ in range(3):
        outcome(text)
    assert known() == 0


LISTS = [
    "a IN ({})",
    "NOT a in({})",
    "a NOT IN (\n{} ) AND b = 5",
    "lower(a) IN ({}) OR c LIKE 'x'",
    "a IN ({}) AND b IN ('y', 'z')",
]


@pytest.mark.parametrize("text", LISTS)
def test_lists_of_any_length_share_a_template(text: str) -> None:
    strings = "lower" in text
    for count in (1, 3, 2, 700):
        literals = ", ".join(f"'it''s {i % 600}'" if strings else str(i % 600) for i in range(count))
        assert_same(text.format(literals))
    assert known() == 1


@pytest.mark.parametrize(
    "literals",
    [
        "1, -2,+3 , .5, 5., 1e3, 007",
        "1, 1.0, 1, -0.0, 0",
        "'a', 'it''s', '', ''''",
        "1, 9223372036854775808",
        "1, 1e999",
        "1, - 2",
        "1,",
        ", 1",
        "1 2",
        "1, 'x'",
        "TRUE, 1",
        "DATE '2026-01-01', DATE '2026-01-02'",
        "1, NULL",
        "'a' 'b'",
        "1, b",
        "1, 2) AND (c",
        "1 /* x */, 2",
        "1\u00a0, 2",
        "",
        "'\ud800'",
    ],
)
@pytest.mark.parametrize("text", ["a IN ({})", "a.IN ({})", "main ({})", "x = 'IN (' AND a NOT IN({})", "ip_in(a, {})"])
def test_odd_lists(text: str, literals: str) -> None:
    for each in (literals, "1, 2", literals, "'x'", literals):
        assert_same(text.format(each))


def test_a_long_list_leaves_a_template_at_once() -> None:
    for name, expected in (("a", 1), ("b", 2)):
        assert_same(f"{name} IN ({', '.join(map(str, range(1000)))})")
        assert known() == expected


PAIRS = [("'x'", "'y'"), ("'10%'", "'!%'"), ("'::1'", "'10.0.0.0/8'"), ("'2026-01-01'", "''"), ("1", "+2")]


@pytest.mark.parametrize(
    "text",
    [
        "starts_with(a, {0}) AND b = {1}",
        "contains(lower(a), {0})",
        "ends_with(a, {0})",
        "upper(a) = {0} OR lower(a) NOT LIKE {1}",
        "ip_in(a, {0}, {1})",
        "{0} <> ANY (a) AND {1} <= ALL (b)",
        "a LIKE ANY ({0}, {1}) ESCAPE '!'",
        "a IS DISTINCT FROM {0}",
        "(a = {0} OR b = {1}) IS NOT UNKNOWN",
        "a > TIMESTAMPTZ {0}",
        "a REGEXP {0}",
    ],
)
def test_new_literals_in_every_form(text: str) -> None:
    for first, second in PAIRS:
        for _ in range(2):
            assert_same(text.format(first, second))
            assert_same(text.format(second, first))


def test_errors_leave_no_template() -> None:
    for text in ("a = 1 AND", "a RLIKE '('") * 3:
        outcome(text)
    assert known() == 0


def test_the_oldest_templates_go_first() -> None:
    for name in "abcde":
        parse_by_shape(f"{name} = 1", max_shapes=3)
        parse_by_shape(f"{name} = 2", max_shapes=3)
    assert known() == 3
    assert [shape[0] for shape in shapes.known_shapes()] == ["c", "d", "e"]


def test_many_threads() -> None:
    texts = [f"a{i % 17} = {i} AND b IN ('{i}', 'x')" for i in range(2000)]
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(partial(parse_by_shape, max_shapes=5), texts))
    assert [str(expression) for expression in read] == texts
    assert known() == 5
