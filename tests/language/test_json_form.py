"""The JSON form of expressions."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import ExpressionError, LiteralError, TamisError
from tamis.language.evaluate import evaluate
from tamis.language.expression import FALSE, TRUE, And, Expression, Not, Or, Predicate, all_of, any_of
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.json_form import from_json
from tamis.language.json_writer import to_json
from tamis.language.normal import dnf_size
from tests.language.close_cases import events, expressions

A, B, C = (Predicate(name, "=", [1]) for name in "abc")


@pytest.mark.parametrize(
    ("item", "literal"),
    [
        (["a", "=", 1], A),
        (["a", "<>", 1], Predicate("a", "<>", [1])),
        (["a", "<", 1.5], Predicate("a", "<", [1.5])),
        (["a", "<=", "x"], Predicate("a", "<=", ["x"])),
        (["a", ">", 1], Predicate("a", ">", [1])),
        (["a", ">=", 1], Predicate("a", ">=", [1])),
        (["a", "=", True], Predicate("a", "=", [True])),
        (["a", "in", [1, "x"]], Predicate("a", "in", [1, "x"])),
        (["a", "not in", [1]], Predicate("a", "not in", [1])),
        (["a", "between", [20, 40]], Predicate("a", "between", [20, 40])),
        (["a", "not between", [20, 40]], Predicate("a", "not between", [20, 40])),
        (["a", "like", "x%"], Predicate("a", "like", ["x%"])),
        (["a", "not like", "x!%", "!"], Predicate("a", "not like", ["x!%"], escape="!")),
        (["a", "ilike", "x!%", "!"], Predicate("a", "ilike", ["x!%"], escape="!")),
        (["a", "not ilike", "x"], Predicate("a", "not ilike", ["x"])),
        (["a", "rlike", "^x"], Predicate("a", "rlike", ["^x"])),
        (["a", "not rlike", "^x"], Predicate("a", "not rlike", ["^x"])),
        (["a", "is null"], Predicate("a", "is null")),
        (["a", "is not null"], Predicate("a", "is not null")),
        (["a", "not <", 5], Not(Predicate("a", "<", [5]))),
        (["a", "not >=", 5], Not(Predicate("a", ">=", [5]))),
        (["a", "=", {"date": "2026-11-14"}], Predicate("a", "=", [date(2026, 11, 14)])),
        (
            ["a", "=", {"timestamp": "2026-11-14 10:00:00.000001"}],
            Predicate("a", "=", [datetime(2026, 11, 14, 10, 0, 0, 1)]),
        ),
        (
            ["a", "between", [{"date": "2026-11-14"}, {"timestamp": "2026-11-14 10:00:00"}]],
            Predicate("a", "between", [date(2026, 11, 14), datetime(2026, 11, 14, 10)]),
        ),
        (["a", "<", {"any": "b"}], Quantified("a", "<", "any", "b")),
        (["a", "<>", {"all": "b"}], Quantified("a", "<>", "all", "b")),
        (["a", "not =", {"any": "b"}], Not(Quantified("a", "=", "any", "b"))),
        (
            {"exists": [["x", "=", {"attribute": "y"}], ["z", "like", "a!%", "!"], ["w", "is null"]]},
            Exists(
                [Join("x", "=", "y")],
                [Predicate("z", "like", ["a!%"], escape="!"), Predicate("w", "is null")],
            ),
        ),
        ({"not exists": [["x", ">", {"attribute": "y"}]]}, Not(Exists([Join("x", ">", "y")]))),
        ({"exists": []}, Exists()),
        (True, TRUE),
        (False, FALSE),
    ],
)
def test_items_both_ways(item: Any, literal: Expression) -> None:
    assert from_json([item]) == literal
    assert to_json(literal) == [item]
    assert from_json([[item], [["z", "=", 1]]]) == any_of(literal, Predicate("z", "=", [1]))


@pytest.mark.parametrize(
    ("item", "literal"),
    [
        (["a", "!=", 1], Predicate("a", "<>", [1])),
        (["a", "IN", [1]], Predicate("a", "in", [1])),
        (["a", "Is  Not  Null"], Predicate("a", "is not null")),
        (["a", "NOT  <", 5], Not(Predicate("a", "<", [5]))),
        (["a", "not !=", 5], Not(Predicate("a", "<>", [5]))),
        (["a", "like", "x", None], Predicate("a", "like", ["x"])),
        (["a", "=", {"timestamp": "2026-11-14T10:00:00Z"}], Predicate("a", "=", [datetime(2026, 11, 14, 10)])),
        (["a", "=", {"timestamp": "2026-11-14T12:00:00+02:00"}], Predicate("a", "=", [datetime(2026, 11, 14, 10)])),
        (["a", "=", date(2026, 11, 14)], Predicate("a", "=", [date(2026, 11, 14)])),
        (("a", "in", (1, 2)), Predicate("a", "in", [1, 2])),
    ],
)
def test_other_spellings_are_read(item: Any, literal: Expression) -> None:
    assert from_json([item]) == literal
    assert from_json((item,)) == literal


@pytest.mark.parametrize(
    ("form", "expression"),
    [
        ([["a", "=", 1]], A),
        (["a", "=", 1], A),
        (["a", "is null"], Predicate("a", "is null")),
        ([["a", "=", 1], ["b", "=", 1]], And([A, B])),
        ([[["a", "=", 1], ["b", "=", 1]]], And([A, B])),
        ([[["a", "=", 1], ["b", "=", 1]], [["c", "=", 1]]], Or([And([A, B]), C])),
        ([[["a", "=", 1]], [["b", "=", 1]]], Or([A, B])),
        ([["a", "=", 1], {"exists": [["b", "=", 1]]}], And([A, Exists([], [B])])),
        ([[{"exists": [["b", "=", 1]]}], [["a", "=", 1]]], Or([Exists([], [B]), A])),
        ([True, ["a", "=", 1]], And([TRUE, A])),
        ([[True], [["a", "=", 1]]], Or([TRUE, A])),
        (
            [["price", "between", [20, 40]], ["genre", "=", "classics"]],
            And([Predicate("price", "between", [20, 40]), Predicate("genre", "=", ["classics"])]),
        ),
    ],
)
def test_conjunctions_and_disjunctions(form: list[Any], expression: Expression) -> None:
    assert from_json(form) == expression


@pytest.mark.parametrize(
    ("expression", "form"),
    [
        (A, [["a", "=", 1]]),
        (And([A, B]), [["a", "=", 1], ["b", "=", 1]]),
        (Or([A, B]), [[["a", "=", 1]], [["b", "=", 1]]]),
        (And([A, Or([B, C])]), [[["a", "=", 1], ["b", "=", 1]], [["a", "=", 1], ["c", "=", 1]]]),
        (Not(And([A, Predicate("b", "<", [2])])), [[["a", "<>", 1]], [["b", "not <", 2]]]),
        (TRUE, [True]),
        (FALSE, [False]),
        (And([A, FALSE]), [False]),
        (Or([A, TRUE]), [True]),
    ],
)
def test_the_form_is_the_dnf(expression: Expression, form: list[Any]) -> None:
    assert to_json(expression) == form
    assert json.loads(json.dumps(form)) == form


@given(expressions(history=True, max_leaves=8), st.lists(events(), max_size=3), st.lists(events(), max_size=2))
def test_through_json_and_back(
    expression: Expression, some: list[dict[str, Any]], history: list[dict[str, Any]]
) -> None:
    form = to_json(expression)
    again = from_json(json.loads(json.dumps(form, allow_nan=False)))
    for event in some:
        assert evaluate(again, event, history) is evaluate(expression, event, history)
    assert to_json(again) == form


def test_a_flat_chain_of_thousands() -> None:
    chain = [Predicate(f"a{number}", "=", [number]) for number in range(4_400)]
    assert from_json(to_json(any_of(*chain))) == any_of(*chain)
    assert from_json(to_json(all_of(*chain))) == all_of(*chain)


@pytest.mark.parametrize(
    ("count", "words"), [(14, "would have 16,384 clauses"), (4_400, r"would have more than 10\^1320 clauses")]
)
def test_a_form_that_would_be_too_large_is_refused(count: int, words: str) -> None:
    pairs = all_of(*[any_of(Predicate(f"a{i}", "=", [1]), Predicate(f"b{i}", "=", [1])) for i in range(count)])
    assert dnf_size(pairs) == 2**count
    with pytest.raises(ExpressionError, match=words):
        to_json(pairs)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (None, "must be a list, not None"),
        ("a = 1", "must be a list, not 'a = 1'"),
        ({"a": 1}, "must be a list"),
        ([], "an empty list is not an expression"),
        ([[]], r"^at \[0\]: an empty list of predicates"),
        ([[["a", "=", 1]], []], r"^at \[1\]: an empty list"),
        ([1], r"^at \[0\]: a list of predicates is needed here"),
        ([["a", "=", 1], 5], r"^at \[1\]: a predicate must be a list"),
        ([["a", "=", 1], []], r"^at \[1\]: a predicate must be \[attribute, operator, value\]"),
        ([["a", "=", 1], [["b", "=", 1]]], r"^at \[1\]: a predicate must be \[attribute, operator, value\]"),
        ([[["b", "=", 1]], ["a", "=", 1]], r"^at \[1\]: a list of predicates is needed here"),
        ([[["a", "=", 1], 5]], r"^at \[0\]\[1\]: a predicate must be a list"),
        ([[["a", "=", 1], [["b", "=", 1]]]], r"^at \[0\]\[1\]: a predicate must be \[attribute, operator, value\]"),
        ([["a"]], r"^at \[0\]: a predicate must be \[attribute, operator, value\]"),
        ([["a", 5, 1]], r"^at \[0\]: a predicate must be"),
        ([["b", "=", 1], ["", "=", 1]], r"^at \[1\]\[0\]: .*empty"),
        ([["a", "~", 1]], r"^at \[0\]\[1\]: unknown operator '~'"),
        ([["a", "not ~", 1]], r"^at \[0\]\[1\]: unknown operator 'not ~'"),
        ([["a", "="]], r"^at \[0\]: = takes a value"),
        ([["a", "=", 1, 2, 3]], r"^at \[0\]: = takes a value"),
        ([["a", "=", 1, "!"]], r"^at \[0\]: only LIKE and ILIKE take an escape"),
        ([["a", "like", "x", 5]], r"^at \[0\]\[3\]: an escape must be a string"),
        ([["a", "like", "x", "!!"]], r"^at \[0\]: ESCAPE takes one character"),
        ([["a", "=", None]], r"^at \[0\]: NULL is not a literal"),
        ([["a", "=", [1]]], r"^at \[0\]\[2\]: one value is needed, not the list \[1\]"),
        ([["a", "in", 5]], r"^at \[0\]\[2\]: IN takes a list, not 5"),
        ([["a", "in", []]], r"^at \[0\]: IN takes at least one literal"),
        ([["a", "in", [1, [2]]]], r"^at \[0\]\[2\]\[1\]: one value"),
        ([["a", "in", [1, None]]], r"^at \[0\]: NULL"),
        ([["a", "between", [1]]], r"^at \[0\]: BETWEEN takes two literals"),
        ([["a", "between", [1, "x"]]], r"^at \[0\]: the ends of BETWEEN"),
        ([["a", "is null", 1]], r"^at \[0\]: IS NULL takes no literal"),
        ([["a", "<", True]], r"^at \[0\]: booleans have no order"),
        ([["a", "rlike", "("]], r"^at \[0\]: RLIKE cannot read"),
        ([["a", "=", float("nan")]], r"^at \[0\]: .*finite"),
        ([["a", "=", 2**64]], r"^at \[0\]: .*64 bits"),
        ([["a", "=", {"date": "14.11.2026"}]], r"^at \[0\]\[2\]: '14.11.2026' is not a date"),
        ([["a", "in", [{"timestamp": "x"}]]], r"^at \[0\]\[2\]\[0\]: 'x' is not a timestamp"),
        ([["a", "=", {"date": 5}]], r"^at \[0\]\[2\]: an object here must be"),
        ([["a", "=", {"day": "2026-11-14"}]], r"^at \[0\]\[2\]: an object here must be"),
        ([["a", "=", {"any": 5}]], r"^at \[0\]\[2\]: an object here must be"),
        ([["a", "=", {"any": ""}]], r"^at \[0\]: .*empty"),
        ([["a", "=", {"any": "b", "all": "c"}]], r"^at \[0\]\[2\]: an object here must be"),
        ([["a", "in", {"any": "b"}]], r"^at \[0\]: earlier events can be compared with"),
        ([["a", "=", {"attribute": "b"}]], r"^at \[0\]\[2\]: an object here must be"),
        ([{"exists": 5}], r'^at \[0\]\["exists"\]: a list of predicates on an earlier event'),
        ([{"exists": [5]}], r'^at \[0\]\["exists"\]\[0\]: a predicate must be a list'),
        ([{"exists": [["a", "not <", 5]]}], r'^at \[0\]\["exists"\]\[0\]\[1\]: "not <" is not allowed inside "exists"'),
        (
            [{"exists": [["a", "in", {"attribute": "b"}]]}],
            r'^at \[0\]\["exists"\]\[0\]: earlier events can be compared',
        ),
        ([{"exists": [["a", "=", {"attribute": ""}]]}], r'^at \[0\]\["exists"\]\[0\]: .*empty'),
        ([{"exists": [["a", "=", {"any": "b"}]]}], r'^at \[0\]\["exists"\]\[0\]\[2\]: an object here must be'),
        ([{"not exists": [["a", "=", None]]}], r'^at \[0\]\["not exists"\]\[0\]: NULL'),
        ([{"if": []}], r"^at \[0\]: an object here must be"),
        ([{}], r"^at \[0\]: an object here must be"),
        ([{"exists": [], "x": 1}], r"^at \[0\]: an object here must be"),
    ],
)
def test_refused(form: Any, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        from_json(form)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (["a", "<", {"any": "b"}, "x"], "{'any': 'b'} must come last, but 'x' follows"),
        (["a", "=", 5, None], "only LIKE and ILIKE take an escape"),
        (["a", "in", [5], None], "only LIKE and ILIKE take an escape"),
        (["a", "=", {"date": "2026-W01-1"}], "'2026-W01-1' is not a date"),
        (["a", "=", {"date": "20261114"}], "'20261114' is not a date"),
        (["a", "=", {"timestamp": "20261114T100000"}], "is not a timestamp"),
        (["a", "=", {"timestamp": "2026-11-14 10"}], "is not a timestamp"),
    ],
)
def test_nothing_is_dropped_or_guessed(form: Any, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        from_json(form)


def test_the_error_keeps_its_class() -> None:
    with pytest.raises(LiteralError):
        from_json([["a", "=", None]])
    with pytest.raises(LiteralError):
        from_json([["a", "=", {"date": "x"}]])


WORDS = st.sampled_from(
    ["a", "=", "in", "not <", "between", "is null", "like", "exists", "date", "any", "attribute", ""]
)
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=2)),
    max_leaves=12,
)


@given(JUNK)
def test_only_errors_of_tamis_are_raised(form: Any) -> None:
    try:
        expression = from_json(form)
    except TamisError:
        return
    assert isinstance(expression, Expression)
