"""ANY, ALL and EXISTS over history, read from SQL text."""

from __future__ import annotations

import pytest

from tamis.errors import ParseError
from tamis.language.expression import And, Expression, Not, Predicate
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.parser import parse


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize(("word", "quantifier"), [("ANY", "any"), ("some", "any"), ("All", "all")])
def test_quantified(operator: str, word: str, quantifier: str) -> None:
    expected = Quantified("x", operator, quantifier, "y")
    assert parse(f"x {operator} {word} (SELECT y FROM history)") == expected
    assert parse(f"NOT x {operator} {word}(select y from HISTORY)") == Not(expected)


@pytest.mark.parametrize(
    ("subquery", "earlier"),
    [
        ("SELECT history.y FROM history", "y"),
        ("SELECT h.y FROM history h", "y"),
        ("SELECT h.y.z FROM history AS h", "y.z"),
        ("SELECT y.z FROM history AS h", "y.z"),
        ('SELECT "h.y" FROM history h', "h.y"),
        ("SELECT from FROM history", "from"),
        ("SELECT h.in FROM history h", "in"),
        ('SELECT `any name` FROM "history"', "any name"),
    ],
)
def test_attributes_of_a_quantified_subquery(subquery: str, earlier: str) -> None:
    assert parse(f"x < ANY ({subquery})") == Quantified("x", "<", "any", earlier)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EXISTS (SELECT 1 FROM history)", Exists()),
        ("exists(select 1 from history h)", Exists()),
        (
            "EXISTS (SELECT 1 FROM history h WHERE h.author = author AND h.price > price)",
            Exists([Join("author", "=", "author"), Join("price", ">", "price")]),
        ),
        ("EXISTS (SELECT 1 FROM history AS h WHERE price < h.price)", Exists([Join("price", ">", "price")])),
        ("EXISTS (SELECT 1 FROM history WHERE history.x <> y)", Exists([Join("x", "<>", "y")])),
        (
            "EXISTS (SELECT 1 FROM history h WHERE 5 < h.a AND h.b = b AND h.c NOT IN (1, 'x') AND h.d IS NULL)",
            Exists(
                [Join("b", "=", "b")],
                [Predicate("a", ">", [5]), Predicate("c", "not in", [1, "x"]), Predicate("d", "is null")],
            ),
        ),
        (
            "EXISTS (SELECT 1 FROM history h WHERE ((h.a = a) AND (5 < h.b AND (h.c)))  AND h.d = 1)",
            Exists(
                [Join("a", "=", "a")], [Predicate("b", ">", [5]), Predicate("c", "=", [True]), Predicate("d", "=", [1])]
            ),
        ),
        (
            (
                "EXISTS (SELECT 1 FROM history h WHERE NOT h.flag AND NOT h.a LIKE 'x!%' ESCAPE '!' AND NOT (h.b = 5) "
                "AND NOT ((h.c IS NULL)) AND NOT NOT h.d < 3 AND NOT (NOT h.e <> 4) AND NOT h.f NOT IN (1, 2))"
            ),
            Exists(
                [],
                [
                    Predicate("flag", "<>", [True]),
                    Predicate("a", "not like", ["x!%"], escape="!"),
                    Predicate("b", "<>", [5]),
                    Predicate("c", "is not null"),
                    Predicate("d", "<", [3]),
                    Predicate("e", "<>", [4]),
                    Predicate("f", "in", [1, 2]),
                ],
            ),
        ),
        (
            "EXISTS (SELECT 1 FROM history h WHERE NOT (h.a = a) AND NOT b <> h.b)",
            Exists([Join("a", "<>", "a"), Join("b", "=", "b")]),
        ),
        (
            "EXISTS (SELECT 1 FROM history h WHERE h.a LIKE 'x!%' ESCAPE '!' AND h.b AND h.c BETWEEN 1 AND 2 AND h.d = d)",
            Exists(
                [Join("d", "=", "d")],
                [
                    Predicate("a", "like", ["x!%"], escape="!"),
                    Predicate("b", "=", [True]),
                    Predicate("c", "between", [1, 2]),
                ],
            ),
        ),
        (
            "EXISTS (SELECT 1 FROM history h WHERE array_contains(h.tags, 'x'))",
            Exists([], [Predicate("tags", "=", ["x"])]),
        ),
        ('EXISTS (SELECT 1 FROM history h WHERE h.x = "h.x")', Exists([Join("x", "=", "h.x")])),
        ("EXISTS (SELECT 1 FROM history from WHERE from.from = from)", Exists([Join("from", "=", "from")])),
        ("EXISTS (SELECT 1 FROM history h WHERE h.date > date AND h.date > DATE '2026-11-14')", None),
        ("EXISTS (SELECT 1 FROM history h WHERE h.x = history.x)", Exists([Join("x", "=", "history.x")])),
    ],
)
def test_exists(text: str, expected: Expression | None) -> None:
    if expected is not None:
        assert parse(text) == expected
    assert parse(f"NOT {text}") == Not(parse(text))
    assert parse(f"a AND {text} AND a") == And([Predicate("a", "=", [True]), parse(text), Predicate("a", "=", [True])])


REFUSED = [
    ("x < ^ANY (1, 2)", "after an attribute and a comparison, ANY needs a subquery on history"),
    ("lower(x) = ^ANY (SELECT y FROM history)", "lower(x) must be compared with a string, not with a subquery"),
    ("x < ANY (SELECT ^1 FROM history)", "SELECT must be followed by one attribute of the earlier events"),
    ("x < ANY (SELECT y^, z FROM history)", "FROM history is expected here"),
    ("x < ANY (SELECT y FROM ^orders)", "subqueries on tables other than history are not supported: orders"),
    ("x < ANY (SELECT y FROM ^5)", "FROM must be followed by history"),
    ("x < ANY (SELECT y FROM history ^WHERE z = 1)", "WHERE is supported only in EXISTS"),
    ("x < ANY (SELECT y FROM history^, other)", "the closing parenthesis of the subquery is missing"),
    ("x < ANY (SELECT y FROM history h ^JOIN z)", "the closing parenthesis of the subquery is missing"),
    ("x < ANY (SELECT y FROM history^", "the closing parenthesis of the subquery is missing"),
    ("x < ANY (SELECT y FROM history AS ^)", "the alias of history must be one word"),
    ("x < ANY (SELECT y FROM history ^a.b)", "the alias of history must be one word"),
    ("^ANY (SELECT y FROM history) > x", "ANY is allowed only after a comparison"),
    ("EXISTS (^a)", "a subquery is expected here"),
    ("EXISTS (SELECT ^x FROM history)", "the subquery of EXISTS must begin with SELECT 1 or SELECT *"),
    ("EXISTS (SELECT ^2 FROM history)", "the subquery of EXISTS must begin with SELECT 1 or SELECT *"),
    ("EXISTS (SELECT 1 FROM ^orders)", "subqueries on tables other than history are not supported: orders"),
    (
        "EXISTS (SELECT 1 FROM history h WHERE h.a = a ^OR h.b = b)",
        "inside EXISTS, join predicates with AND only",
    ),
    ("EXISTS (SELECT 1 FROM history h WHERE ^NOT h.a < a)", "inside EXISTS, NOT before < is not supported"),
    ("EXISTS (SELECT 1 FROM history h WHERE h.b AND ^NOT (h.a >= 5))", "inside EXISTS, NOT before >= is not supported"),
    (
        "EXISTS (SELECT 1 FROM history h WHERE ^NOT (h.a = a AND h.b))",
        "inside EXISTS, NOT applies to one predicate only",
    ),
    (
        "EXISTS (SELECT 1 FROM history h WHERE (h.a = a ^OR h.b))",
        "inside EXISTS, join predicates with AND only",
    ),
    ("EXISTS (SELECT 1 FROM history h WHERE ^((h.a = a)", "this parenthesis is never closed"),
    ("EXISTS (SELECT 1 FROM history h WHERE (^))", "there is nothing between these parentheses"),
    (
        "EXISTS (SELECT 1 FROM history h WHERE (^TRUE))",
        "inside EXISTS, every condition must be about the earlier event",
    ),
    ("EXISTS (SELECT 1 FROM history h WHERE (h.a = 5 ^h.b))", "AND, OR or another operator is missing before h"),
    ("EXISTS (SELECT 1 FROM history h WHERE ^TRUE)", "inside EXISTS, every condition must be about the earlier event"),
    ("EXISTS (SELECT 1 FROM history h WHERE ^price > 5)", "price is not an attribute of the earlier event"),
    ("EXISTS (SELECT 1 FROM history h WHERE 5 < ^price)", "price is not an attribute of the earlier event"),
    (
        "EXISTS (SELECT 1 FROM history h WHERE ^a = b)",
        "a join compares two events, but both attributes belong to the new one",
    ),
    (
        "EXISTS (SELECT 1 FROM history h WHERE ^h.a = h.b)",
        "a join compares two events, but both attributes belong to the earlier one",
    ),
    ("EXISTS (SELECT 1 FROM history h WHERE h.a = ^lower(b))", "lower(...) is not allowed here"),
    (
        "EXISTS (SELECT 1 FROM history h WHERE ^EXISTS (SELECT 1 FROM history))",
        "a subquery inside a subquery is not supported",
    ),
    (
        "EXISTS (SELECT 1 FROM history h WHERE h.a = ^ANY (SELECT b FROM history))",
        "a subquery inside a subquery is not supported",
    ),
    ("EXISTS (SELECT 1 FROM history h WHERE ^)", "an attribute or a literal is missing before )"),
    ("EXISTS (SELECT 1 FROM history h WHERE h.a = a ^b)", "AND, OR or another operator is missing before b"),
]


@pytest.mark.parametrize(("marked", "reason"), REFUSED)
def test_refused(marked: str, reason: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(marked.replace("^", "", 1))
    assert error.value.reason == reason
    assert error.value.position == marked.index("^")


def test_a_star_means_the_same() -> None:
    assert parse("EXISTS (SELECT * FROM history h WHERE h.a = a)") == parse(
        "EXISTS (SELECT 1 FROM history h WHERE h.a = a)"
    )
