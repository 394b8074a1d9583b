"""Explanations: the truth of every node, and a readable tree."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.evaluate import evaluate, matches
from tamis.language.explain import OPERANDS_SHOWN, Explanation, explain
from tamis.language.expression import TRUE, Expression, Not, Predicate, all_of, any_of
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.values import Interval
from tests.language.close_cases import events, expressions

PRICE = Predicate("price", "<=", [40])
GENRE = Predicate("genre", "=", ["classics"])
STOCK = Predicate("stock", ">", [0])


def check(explanation: Explanation, event: dict[str, Any], history: list[dict[str, Any]]) -> None:
    assert explanation.truth is evaluate(explanation.expression, event, history)
    assert [child.expression for child in explanation.children] == list(explanation.expression.operands)
    for child in explanation.children:
        check(child, event, history)


@given(expressions(history=True), events(), st.lists(events(), max_size=3))
def test_every_node_has_the_truth_that_evaluate_gives(
    expression: Expression, event: dict[str, Any], history: list[dict[str, Any]]
) -> None:
    explanation = explain(expression, event, history)
    check(explanation, event, history)
    assert explanation.matched is matches(expression, event, history)
    text = explanation.to_text(limit=None)
    assert text.count("\n") + 1 == len(list(expression.walk()))
    assert json.loads(json.dumps(explanation.to_dict(), allow_nan=False))["truth"] is explanation.truth


def test_the_tree_is_drawn() -> None:
    expression = PRICE & (GENRE | STOCK) & Not(Predicate("tags", "=", ["sold"]))
    explanation = explain(expression, {"price": 25, "genre": "crime", "tags": ["new", "sold"]})
    assert str(explanation).splitlines() == [
        "FALSE    AND",
        "├─ TRUE     price <= 40   (price is 25)",
        "├─ UNKNOWN  OR",
        "│  ├─ FALSE    genre = 'classics'   (genre is 'crime')",
        "│  └─ UNKNOWN  stock > 0   (stock is missing)",
        "└─ FALSE    NOT",
        "   └─ TRUE     tags = 'sold'   (tags is ['new', 'sold'])",
    ]
    assert not explanation.matched


def test_a_leaf_alone() -> None:
    explanation = explain(PRICE, {"price": 25})
    assert str(explanation) == "TRUE     price <= 40   (price is 25)"
    assert explanation.matched
    assert explanation.values == {"price": (25,)}
    assert explanation.children == ()
    assert str(explain(TRUE, {})) == "TRUE     TRUE"


@pytest.mark.parametrize(
    ("leaf", "event", "note"),
    [
        (PRICE, {}, "price is missing"),
        (PRICE, {"price": None}, "price is missing"),
        (PRICE, {"price": float("nan")}, "price is missing"),
        (PRICE, {"price": "25"}, "a string, compared with a number"),
        (PRICE, {"price": True}, "a boolean, compared with a number"),
        (PRICE, {"price": ["x", date(2026, 1, 1), "y"]}, "a string and a timestamp, compared with a number"),
        (GENRE, {"genre": Interval(1, 2)}, "a number, compared with a string"),
        (Predicate("a", "in", [1, "x"]), {"a": True}, "a boolean, compared with a number and a string"),
        (Predicate("a", "not in", [1, "x"]), {"a": 2}, "a number, compared with a number and a string"),
        (PRICE, {"price": 25}, ""),
        (PRICE, {"price": 50}, ""),
        (Predicate("price", "is null"), {}, "price is missing"),
        (Predicate("price", "is not null"), {"price": 1}, ""),
    ],
)
def test_notes(leaf: Predicate, event: dict[str, Any], note: str) -> None:
    assert explain(leaf, event).note == note


BELOW_ANY = Quantified("x", "<", "any", "x")
BELOW_ALL = Quantified("x", "<", "all", "x")
SAME = Exists([Join("x", "=", "x")], [Predicate("y", "=", [1])])


@pytest.mark.parametrize(
    ("leaf", "event", "earlier", "note"),
    [
        (BELOW_ANY, {"x": 5}, [1, 9], "decided by earlier event 1"),
        (BELOW_ANY, {"x": 5}, [1], ""),
        (BELOW_ANY, {"x": 5}, [1, None], "none of 2 earlier events decides it"),
        (BELOW_ANY, {"x": 5}, [], "there are no earlier events"),
        (BELOW_ANY, {}, [1], "x is missing, none of 1 earlier events decides it"),
        (BELOW_ALL, {"x": 5}, [9, 1], "decided by earlier event 1"),
        (BELOW_ALL, {"x": 5}, [9, 8], ""),
        (BELOW_ALL, {"x": 5}, [], "there are no earlier events"),
        (SAME, {"x": 5}, [4, 5], "decided by earlier event 1"),
        (SAME, {"x": 5}, [4], ""),
        (SAME, {}, [4], "x is missing"),
    ],
)
def test_notes_on_the_history(leaf: Expression, event: dict[str, Any], earlier: list[Any], note: str) -> None:
    history = [{"x": value, "y": 1} for value in earlier]
    assert explain(leaf, event, history).note == note


def test_a_long_chain_shows_what_decided_it() -> None:
    chain = [Predicate("a", "<>", [number]) for number in range(4_400)]
    explanation = explain(all_of(*chain, PRICE), {"a": 4_100})
    lines = str(explanation).splitlines()
    assert lines[1] == "├─ FALSE    a <> 4100   (a is 4100)"
    assert lines[2] == "├─ TRUE     a <> 0   (a is 4100)"
    assert lines[-1] == "└─ ... 4,381 more: 4,380 TRUE, 1 UNKNOWN"
    assert len(lines) == 1 + OPERANDS_SHOWN + 1
    assert len(explanation.to_text(limit=None).splitlines()) == 1 + 4_401
    assert len(explanation.to_text(limit=3).splitlines()) == 1 + 3 + 1


def test_a_long_chain_of_or() -> None:
    chain = [Predicate("a", "=", [number]) for number in range(4_400)]
    lines = str(explain(any_of(*chain), {"a": 4_100})).splitlines()
    assert lines[1] == "├─ TRUE     a = 4100   (a is 4100)"
    assert lines[-1] == "└─ ... 4,380 more: 4,380 FALSE"


def test_few_operands_keep_their_order() -> None:
    explanation = explain(PRICE & GENRE & STOCK, {"price": 25, "genre": "crime", "stock": 1})
    assert [line[3:8] for line in str(explanation).splitlines()[1:]] == ["TRUE ", "FALSE", "TRUE "]


def test_long_leaves_are_shortened() -> None:
    long_list = explain(Predicate("a", "in", range(5_000)), {"a": list(range(3_000)), "b": "x" * 5_000})
    assert len(str(long_list)) < 300
    assert "... 2,980 more]" in str(long_list)
    assert len(str(explain(Predicate("b", "=", ["y"]), {"b": "x" * 5_000}))) < 200


def test_values_are_written_plainly() -> None:
    event = {"a": [Interval(1, 2), date(2026, 11, 14), datetime(2026, 11, 14, 10), True, float("inf")]}
    explanation = explain(Predicate("a", "=", [1]), event)
    assert str(explanation).endswith("(a is [in 1 to 2, 2026-11-14, 2026-11-14 10:00:00, True, inf])")
    assert explanation.to_dict() == {
        "truth": True,
        "expression": "a = 1",
        "values": {"a": [{"lo": 1, "hi": 2}, "2026-11-14", "2026-11-14T10:00:00", True, "inf"]},
    }


def test_to_dict() -> None:
    assert explain(PRICE & Not(GENRE), {"price": 25}).to_dict() == {
        "truth": None,
        "operator": "AND",
        "operands": [
            {"truth": True, "expression": "price <= 40", "values": {"price": [25]}},
            {
                "truth": None,
                "operator": "NOT",
                "operands": [
                    {
                        "truth": None,
                        "expression": "genre = 'classics'",
                        "values": {"genre": []},
                        "note": "genre is missing",
                    }
                ],
            },
        ],
    }
