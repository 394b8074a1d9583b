"""IS TRUE, IS FALSE and IS UNKNOWN: their meaning, their place in normal forms, and how deep they may be nested."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given

from tamis.errors import ExpressionError, NestingError
from tamis.language.evaluate import evaluate
from tamis.language.explain import explain
from tamis.language.expression import Expression, Not, Predicate, TruthTest
from tamis.language.joins import Quantified
from tamis.language.json_form import from_json
from tamis.language.json_writer import to_json
from tamis.language.normal import negated_literal, to_dnf, to_nnf
from tamis.language.parser import parse
from tamis.language.simplify import simplify
from tests.language.close_cases import events, expressions

TESTS = ["IS TRUE", "IS FALSE", "IS UNKNOWN", "IS NOT TRUE", "IS NOT FALSE", "IS NOT UNKNOWN"]


@pytest.mark.parametrize(
    ("event", "truths"),
    [
        ({"x": 1}, "TFFFTT"),
        ({"x": 2}, "FTFTFT"),
        ({"x": "a"}, "FFTTTF"),
        ({}, "FFTTTF"),
        ({"x": [2, "a", 1]}, "TFFFTT"),
        ({"x": [2, "a"]}, "FTFTFT"),
    ],
)
def test_the_three_truths(event: dict[str, object], truths: str) -> None:
    found = [evaluate(f"(x = 1) {test}", event) for test in TESTS]
    assert found == [truth == "T" for truth in truths]
    assert evaluate("x IS DISTINCT FROM 1", event) is (truths[3] == "T")
    assert evaluate("x IS NOT DISTINCT FROM 1", event) is (truths[0] == "T")


@given(expressions(), events())
def test_a_test_asks_for_the_truth_of_its_operand(expression: Expression, event: dict[str, object]) -> None:
    truth = evaluate(expression, event)
    for accepted in (True, False, None):
        for negated in (False, True):
            test = TruthTest(expression, accepted, negated)
            wanted = (truth is accepted) is not negated
            again = pickle.loads(pickle.dumps(test))
            for form in (test, to_nnf(test), Not(to_nnf(Not(test))), parse(str(test)), again):
                assert evaluate(form, event) is wanted


def test_tests_are_leaves_of_normal_forms() -> None:
    expression = parse("NOT (a = 1 AND (b < 2 OR c IS NULL) IS TRUE) IS UNKNOWN")
    for node in to_nnf(expression).walk():
        assert not isinstance(node, TruthTest) or isinstance(node.operand, Predicate)
    assert str(to_nnf(parse("(a NOT IN (1, 'x')) IS FALSE"))) == "(a IN (1)) IS TRUE OR (a IN ('x')) IS TRUE"
    assert str(to_nnf(parse("(a IS NULL) IS FALSE"))) == "a IS NOT NULL"
    assert to_dnf(parse("(a IS NULL) IS UNKNOWN")) == []
    assert to_dnf(parse("TRUE IS TRUE")) == [()]


def test_the_negation_of_a_test_is_a_test() -> None:
    test = TruthTest(Predicate("a", "=", [1]), True)
    assert negated_literal(test) == TruthTest(Predicate("a", "=", [1]), True, negated=True)
    quantified = TruthTest(Quantified("a", "<", "any", "a"), None)
    assert to_nnf(Not(quantified)) == TruthTest(quantified.operand, None, negated=True)


def test_nesting_of_tests_is_limited() -> None:
    text = "a = 1"
    for _ in range(8):
        text = f"({text} OR b = 2) IS UNKNOWN"
    assert to_nnf(parse(text)).depth <= 101
    with pytest.raises(NestingError, match="more than 8 tests"):
        parse(f"({text}) IS TRUE")
    form: object = ["a", "=", 1]
    for _ in range(9):
        form = [{"is true": form}]
    with pytest.raises(NestingError, match="more than 8 tests"):
        from_json(form)


def test_the_deepest_expression_has_a_normal_form() -> None:
    expression = parse("a IN (1, 'x')")
    for place in range(200):
        try:
            inner = Not(expression & parse("b")) if place % 2 else expression | parse("c")
            expression = TruthTest(inner, None) if place % 12 == 3 else inner
        except NestingError:
            break
    assert expression.depth >= 95
    assert to_nnf(expression).depth <= 101


@pytest.mark.parametrize("truth", [1, 0, "TRUE", 2])
def test_a_truth_is_one_of_three(truth: object) -> None:
    with pytest.raises(ExpressionError, match="a truth value must be True, False or None"):
        TruthTest(Predicate("a", "=", [1]), truth)  # type: ignore[arg-type]


def test_json() -> None:
    expression = parse("(a = 1) IS NOT TRUE AND (b LIKE 'x%') IS UNKNOWN")
    form = [{"is not true": ["a", "=", 1]}, {"is unknown": ["b", "like", "x%"]}]
    assert to_json(expression) == form
    assert from_json(form) == expression
    assert from_json([{"is false": [[["a", "=", 1], ["b", "=", 2]], [["c", "<", 3]]]}]) == parse(
        "(a = 1 AND b = 2 OR c < 3) IS FALSE"
    )
    wrongs: list[Any] = [{"is maybe": ["a", "=", 1]}, {"is true": 5}, {"is true": []}, {"is true": [["a"]]}]
    for wrong in wrongs:
        with pytest.raises(ExpressionError, match="at "):
            from_json([["b", "=", 1], wrong])


def test_explain() -> None:
    explanation = explain("(price < 20) IS NOT TRUE", {"price": "9"})
    assert str(explanation) == (
        "TRUE     IS NOT TRUE\n└─ UNKNOWN  price < 20   (price is '9', a string, compared with a number)"
    )
    assert explanation.to_dict()["operator"] == "IS NOT TRUE"
    assert explain("ip_in(a, '::/0')", {"a": "x"}).note == "not an address"


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("(a < 3) IS TRUE AND a > 5", "FALSE"),
        ("(a < 3) IS NOT TRUE AND (a >= 3) IS NOT TRUE AND a > 0", "FALSE"),
        ("(a < 3) IS UNKNOWN AND a = 5", "FALSE"),
        ("(a < 3) IS UNKNOWN AND a = 'x'", "a = 'x'"),
        ("(a RLIKE 'x') IS NOT UNKNOWN AND a = 5", "FALSE"),
        ("(a RLIKE 'x') IS NOT TRUE AND a IN ('x', 'y', 5)", "a IN (5, 'y')"),
        ("ip_in(a, '10.0.0.0/8') IS UNKNOWN AND a IN ('x', '10.0.0.1', 5)", "a IN (5, 'x')"),
    ],
)
def test_simplified_for_scalars(text: str, simple: str) -> None:
    assert str(simplify(parse(text)).expression) == simple
