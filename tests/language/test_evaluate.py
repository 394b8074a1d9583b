"""What "match" means: all rules of the language for one event."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given

from tamis.errors import EventError, ExpressionError
from tamis.language.builder import attr
from tamis.language.evaluate import conjunction, disjunction, evaluate, evaluate_flat, matches, negation
from tamis.language.event import flatten
from tamis.language.explain import explain
from tamis.language.expression import FALSE, TRUE, Expression, Not, Predicate, all_of, any_of
from tamis.language.operators import NEGATION, NULL_TESTS
from tamis.language.parser import parse
from tamis.language.values import Interval
from tests.language.close_cases import events, expressions, predicates

UNKNOWN = None
NAN = float("nan")
INFINITY = float("inf")


def truth(operator: str, literals: Any, value: Any) -> bool | None:
    """The truth of a predicate on attribute `a` for the event {"a": value}."""
    values = literals if isinstance(literals, list) else [literals]
    return evaluate(Predicate("a", operator, values), {"a": value})


# Three-valued logic


@pytest.mark.parametrize(("operand", "result"), [(True, False), (False, True), (UNKNOWN, UNKNOWN)])
def test_not(operand: bool | None, result: bool | None) -> None:
    assert negation(operand) is result


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (True, UNKNOWN, UNKNOWN, True),
        (False, False, False, False),
        (False, UNKNOWN, False, UNKNOWN),
        (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    ],
)
def test_and_or(left: bool | None, right: bool | None, both: bool | None, either: bool | None) -> None:
    for pair in ([left, right], [right, left]):
        assert conjunction(pair) is both
        assert disjunction(pair) is either


def test_nothing_to_combine() -> None:
    assert conjunction([]) is True
    assert disjunction([]) is False


UNKNOWN_LEAF = Predicate("missing", "=", [1])
LEAVES: dict[bool | None, Expression] = {True: TRUE, False: FALSE, UNKNOWN: UNKNOWN_LEAF}


@pytest.mark.parametrize("left", [True, False, UNKNOWN])
@pytest.mark.parametrize("right", [True, False, UNKNOWN])
def test_the_tree_follows_the_same_tables(left: bool | None, right: bool | None) -> None:
    assert evaluate(LEAVES[left] & LEAVES[right], {}) is conjunction([left, right])
    assert evaluate(LEAVES[left] | LEAVES[right], {}) is disjunction([left, right])
    assert evaluate(~LEAVES[left], {}) is negation(left)


def test_only_true_is_a_match() -> None:
    assert matches(TRUE, {})
    assert not matches(FALSE, {})
    assert not matches(UNKNOWN_LEAF, {})
    assert not matches(~UNKNOWN_LEAF, {})


# A missing attribute


@pytest.mark.parametrize("event", [{}, {"a": None}, {"a": NAN}, {"a": []}, {"a": [None, NAN]}, {"b": 1}, {"a": {}}])
@given(predicate=predicates(["a"]))
def test_a_predicate_on_a_missing_attribute_is_unknown(event: dict[str, Any], predicate: Predicate) -> None:
    if predicate.operator not in NULL_TESTS:
        assert evaluate(predicate, event) is UNKNOWN
        assert evaluate(Not(predicate), event) is UNKNOWN


@pytest.mark.parametrize(
    ("event", "missing"),
    [
        ({}, True),
        ({"a": None}, True),
        ({"a": NAN}, True),
        ({"a": []}, True),
        ({"a": {"b": 1}}, True),
        ({"a": 0}, False),
        ({"a": ""}, False),
        ({"a": False}, False),
        ({"a": [None, 1]}, False),
        ({"a": Interval(1, 2)}, False),
        ({"a": INFINITY}, False),
    ],
)
def test_is_null_is_missing(event: dict[str, Any], missing: bool) -> None:
    assert evaluate(Predicate("a", "is null"), event) is missing
    assert evaluate(Predicate("a", "is not null"), event) is (not missing)
    assert evaluate(Not(Predicate("a", "is null")), event) is (not missing)


# Comparisons of one scalar


@pytest.mark.parametrize(
    ("operator", "below", "equal", "above"),
    [
        ("=", False, True, False),
        ("<>", True, False, True),
        ("!=", True, False, True),
        ("<", True, False, False),
        ("<=", True, True, False),
        (">", False, False, True),
        (">=", False, True, True),
    ],
)
@pytest.mark.parametrize(
    ("lower", "literal", "upper"),
    [
        (1, 2, 3),
        (1.5, 2, 2.5),
        (-1, -0.0, 1e-300),
        (-INFINITY, -1.7e308, INFINITY),
        ("a", "ab", "b"),
        ("", "a", "é"),
        ("Z", "a", "z"),
        ("\uffff", "\U00010000", "\U0010ffff"),
        (date(2026, 11, 13), date(2026, 11, 14), date(2026, 11, 15)),
        (datetime(2026, 11, 14, 9, 59, 59, 999999), datetime(2026, 11, 14, 10), datetime(2026, 11, 14, 10, 0, 0, 1)),
    ],
)
def test_comparisons(
    operator: str, below: bool, equal: bool, above: bool, lower: Any, literal: Any, upper: Any
) -> None:
    assert truth(operator, literal, lower) is below
    assert truth(operator, literal, literal) is equal
    assert truth(operator, literal, upper) is above


@pytest.mark.parametrize(
    ("value", "inside"), [(0, False), (1, True), (1.5, True), (2, True), (2.0000001, False), (INFINITY, False)]
)
def test_between_is_inclusive(value: float, inside: bool) -> None:
    assert truth("between", [1, 2], value) is inside
    assert truth("not between", [1, 2], value) is (not inside)


@pytest.mark.parametrize("value", [0, 5, 7, 10, 20, [0, 20], Interval(0, 20), Interval(6, 7)])
def test_between_in_the_wrong_order_is_never_true(value: Any) -> None:
    assert truth("between", [10, 5], value) is False
    assert truth("not between", [10, 5], value) is True


@pytest.mark.parametrize(("value", "found"), [(1, True), (2.0, True), (3, False), ([7, 2], True), ([7, 8], False)])
def test_in(value: Any, found: bool) -> None:
    assert truth("in", [1, 2], value) is found
    assert truth("not in", [1, 2], value) is (not found)


def test_booleans() -> None:
    assert truth("=", True, True) is True
    assert truth("=", True, False) is False
    assert truth("<>", True, False) is True
    assert truth("in", [True, False], False) is True
    assert truth("not in", [True], False) is True


# Kinds


KINDS: dict[str, Any] = {"number": 1, "string": "1", "boolean": True, "timestamp": date(2026, 11, 14)}


@pytest.mark.parametrize("literal", KINDS)
@pytest.mark.parametrize("value", KINDS)
def test_a_literal_meets_only_values_of_its_own_kind(literal: str, value: str) -> None:
    same = literal == value
    assert truth("=", KINDS[literal], KINDS[value]) is (True if same else UNKNOWN)
    assert truth("<>", KINDS[literal], KINDS[value]) is (False if same else UNKNOWN)
    assert truth("in", [KINDS[literal]], KINDS[value]) is (True if same else UNKNOWN)
    assert evaluate(Not(Predicate("a", "=", [KINDS[literal]])), {"a": KINDS[value]}) is (False if same else UNKNOWN)
    if literal != "boolean":
        assert truth("<=", KINDS[literal], KINDS[value]) is (True if same else UNKNOWN)
        assert truth("not between", [KINDS[literal]] * 2, KINDS[value]) is (False if same else UNKNOWN)


@pytest.mark.parametrize("operator", ["like", "not like", "ilike", "not ilike", "rlike", "not rlike"])
@pytest.mark.parametrize("value", [1, 1.5, True, date(2026, 1, 1), Interval(1, 2), [1, True]])
def test_patterns_apply_to_strings_only(operator: str, value: Any) -> None:
    assert truth(operator, "1", value) is UNKNOWN


@pytest.mark.parametrize(
    ("literals", "value", "isin", "not_in"),
    [
        ([1, "x"], 1, True, False),
        ([1, "x"], "x", True, False),
        # The other kind is UNKNOWN, and FALSE OR UNKNOWN is UNKNOWN.
        ([1, "x"], 2, UNKNOWN, UNKNOWN),
        ([1, "x"], "y", UNKNOWN, UNKNOWN),
        ([1, "x"], True, UNKNOWN, UNKNOWN),
        ([1, True], True, True, False),
        ([1, "x"], [2, "y"], False, True),
        ([1, "x"], [2, "x"], True, False),
        ([1, "x"], [2, 3], UNKNOWN, UNKNOWN),
    ],
)
def test_in_of_several_kinds_is_an_or_over_the_kinds(
    literals: list[Any], value: Any, isin: bool | None, not_in: bool | None
) -> None:
    assert truth("in", literals, value) is isin
    assert truth("not in", literals, value) is not_in


# Several values


@pytest.mark.parametrize(
    ("operator", "literals", "value", "expected"),
    [
        ("=", 1, [1, 2], True),
        ("=", 3, [1, 2], False),
        ("<", 2, [1, 9], True),
        ("<", 1, [1, 9], False),
        (">", 5, [1, 9], True),
        ("between", [3, 5], [1, 9], False),
        ("between", [3, 5], [1, 4, 9], True),
        ("in", [2, 9], [1, 9], True),
        ("like", "a%", ["xa", "ax"], True),
        ("like", "a%", ["xa"], False),
        ("rlike", "^a", ["xa", "ax"], True),
        # NONE, not "some other element".
        ("<>", 1, [1, 2], False),
        ("<>", 3, [1, 2], True),
        ("not in", [1, 7], [1, 2], False),
        ("not in", [7], [1, 2], True),
        ("not between", [1, 5], [3, 9], False),
        ("not between", [4, 5], [3, 9], True),
        ("not like", "a%", ["ax", "b"], False),
        ("not like", "a%", ["xa", "b"], True),
        ("not rlike", "^a", ["xa", "b"], True),
        # Only elements of the literal's kind count.
        ("=", 1, ["x", 1], True),
        ("=", 1, ["x", 2], False),
        ("=", 1, ["x", True], UNKNOWN),
        ("<>", 1, ["x", 2], True),
        ("<>", 1, ["x"], UNKNOWN),
        ("<", 5, ["x", 3, None], True),
        ("=", 1, [], UNKNOWN),
        ("<>", 1, [None], UNKNOWN),
    ],
)
def test_lists(operator: str, literals: Any, value: list[Any], expected: bool | None) -> None:
    assert truth(operator, literals, value) is expected
    assert truth(operator, literals, tuple(value)) is expected


def test_not_below_is_not_at_least_on_a_list() -> None:
    event = {"a": [1, 9]}
    assert evaluate(Not(Predicate("a", "<", [3])), event) is False
    assert evaluate(Predicate("a", ">=", [3]), event) is True


def test_predicates_on_a_list_are_independent() -> None:
    a = {"a": [-5, 50]}
    assert matches(Predicate("a", ">", [0]) & Predicate("a", "<", [10]), a)
    assert not matches(Predicate("a", "between", [0, 10]), a)
    assert matches(Predicate("a", "=", [1]) & Predicate("a", "=", [2]), {"a": [1, 2]})


@given(predicates(), events())
def test_a_negative_predicate_is_the_negation_of_its_positive_form(predicate: Predicate, event: dict[str, Any]) -> None:
    negative = NEGATION.get(predicate.operator)
    if negative is not None:
        opposite = Predicate(predicate.attribute, negative, predicate.values, escape=predicate.escape)
        assert evaluate(opposite, event) is negation(evaluate(predicate, event))
        assert evaluate(opposite, event) is evaluate(Not(predicate), event)


# Intervals


@pytest.mark.parametrize(
    ("operator", "literals", "expected"),
    [
        ("=", 4, False),
        ("=", 5, True),
        ("=", 7.5, True),
        ("=", 10, True),
        ("=", 11, False),
        ("<>", 4, True),
        ("<>", 7, False),
        ("<", 5, False),
        ("<", 5.001, True),
        ("<", 100, True),
        ("<=", 5, True),
        ("<=", 4.999, False),
        (">", 10, False),
        (">", 9.999, True),
        (">=", 10, True),
        (">=", 10.001, False),
        ("between", [0, 4], False),
        ("between", [0, 5], True),
        ("between", [6, 7], True),
        ("between", [10, 20], True),
        ("between", [11, 20], False),
        ("not between", [11, 20], True),
        ("not between", [6, 7], False),
        ("in", [1, 2], False),
        ("in", [1, 7], True),
        ("not in", [1, 2], True),
        ("=", "x", UNKNOWN),
        ("<>", "x", UNKNOWN),
        ("=", date(2026, 1, 1), UNKNOWN),
    ],
)
def test_an_interval_is_the_set_of_its_points(operator: str, literals: Any, expected: bool | None) -> None:
    assert truth(operator, literals, Interval(5, 10)) is expected
    assert truth(operator, literals, [Interval(5, 10), "y"]) is (expected if literals != "x" else operator == "<>")


def test_an_interval_of_one_point_is_that_point() -> None:
    for operator, expected in {"=": True, "<>": False, "<": False, "<=": True, ">": False, ">=": True}.items():
        assert truth(operator, 5, Interval(5, 5)) is expected


def test_an_interval_may_satisfy_two_predicates_that_no_scalar_can() -> None:
    assert matches(Predicate("a", "<", [3]) & Predicate("a", ">", [5]), {"a": Interval(0, 10)})


def test_an_interval_of_time() -> None:
    november = Interval(date(2026, 11, 1), datetime(2026, 11, 30, 23, 59, 59))
    assert truth("=", datetime(2026, 11, 14, 10), november) is True
    assert truth(">=", date(2026, 12, 1), november) is False
    assert truth("between", [date(2026, 10, 1), date(2026, 11, 1)], november) is True
    assert truth("=", 5, november) is UNKNOWN


# Where engines differ or surprise


def test_nan_is_a_missing_value() -> None:
    for operator in ("=", "<>", "<", "<=", ">", ">="):
        assert truth(operator, 1, NAN) is UNKNOWN
    assert truth("is null", [], NAN) is True
    assert truth("=", 1, [NAN, 1]) is True


def test_negative_zero_is_zero() -> None:
    for literal in (0, 0.0, -0.0):
        for value in (0, 0.0, -0.0):
            assert truth("=", literal, value) is True
            assert truth("<", literal, value) is False
            assert truth("in", [literal], value) is True


def test_int_and_float_are_compared_exactly() -> None:
    odd = 2**53 + 1
    assert float(odd) == 2.0**53
    assert truth("=", odd, 2.0**53) is False
    assert truth(">", 2.0**53, odd) is True
    assert truth("=", 2.0**53, odd) is False
    assert truth("in", [2.0**53], odd) is False
    assert truth("between", [2.0**53, 2.0**53], odd) is False
    assert truth("<", 2**63 - 1, float(2**63)) is False
    assert truth("=", 2, 2.0) is True


def test_decimal_literals_are_the_nearest_double() -> None:
    assert truth("=", 0.3, 0.1 + 0.2) is False
    assert truth("=", 0.1, 0.1) is True


def test_booleans_are_not_numbers() -> None:
    assert truth("=", 1, True) is UNKNOWN
    assert truth("=", True, 1) is UNKNOWN
    assert truth("in", [0, 1], False) is UNKNOWN


def test_a_date_is_its_midnight_in_utc() -> None:
    day = date(2026, 11, 14)
    midnight = datetime(2026, 11, 14)
    assert truth("=", day, midnight) is True
    assert truth("=", midnight, day) is True
    assert truth("<", midnight + timedelta(microseconds=1), day) is True
    assert truth("between", [day, day], midnight + timedelta(hours=1)) is False
    assert truth("in", [day], midnight) is True


def test_times_are_compared_in_utc() -> None:
    ten = datetime(2026, 11, 14, 10)
    assert truth("=", ten, ten.replace(tzinfo=UTC)) is True
    assert truth("=", ten, datetime(2026, 11, 14, 12, tzinfo=timezone(timedelta(hours=2)))) is True
    assert truth("=", ten.replace(tzinfo=UTC), ten) is True
    assert truth("<", ten, datetime(2026, 11, 14, 10, tzinfo=timezone(timedelta(hours=2)))) is True


# The tree


def test_nested_names_and_dotted_names_are_the_same() -> None:
    predicate = Predicate("user.geo.country", "=", ["fr"])
    assert matches(predicate, {"user": {"geo": {"country": "fr"}}})
    assert matches(predicate, {"user.geo.country": "fr"})


def test_attribute_names_are_case_sensitive() -> None:
    assert not matches(Predicate("Price", "=", [1]), {"price": 1})


def test_long_chains() -> None:
    chain = [Predicate("a", "<>", [number]) for number in range(5_000)]
    assert matches(all_of(*chain), {"a": 5_000})
    assert not matches(all_of(*chain), {"a": 4_999})
    assert not matches(any_of(*[~leaf for leaf in chain]), {"a": 5_000})


def test_a_value_outside_the_language_is_refused_if_a_predicate_uses_it() -> None:
    event: dict[str, Any] = {"a": b"x", "b": 1}
    assert evaluate(TRUE, event) is True
    assert evaluate(parse("b = 1"), event) is True
    for text in (
        "a = 1",
        "b = 2 AND a = 1",
        "a IS NULL",
        "b = 1 OR a IS NOT NULL",
        "NOT (a < ANY (SELECT b FROM history))",
    ):
        with pytest.raises(EventError, match=r"^attribute 'a': bytes is not a value"):
            evaluate(parse(text), event)
        with pytest.raises(EventError, match=r"^attribute 'a': bytes is not a value"):
            explain(parse(text), event)
    history = [{"b": 1}, event]
    assert evaluate(parse("b <= ALL (SELECT b FROM history)"), {"b": 1}, history) is True
    for text in ("b < ANY (SELECT a FROM history)", "EXISTS (SELECT 1 FROM history h WHERE h.b = b AND h.a = 2)"):
        with pytest.raises(EventError, match=r"^event 1, attribute 'a': bytes"):
            evaluate(parse(text), {"b": 1}, history)


def test_lists_of_objects() -> None:
    event = {"connections": [{"port": 22, "host": "a"}, {"port": 80, "host": "b"}, {}]}
    for text, truth in (
        ("connections.port = 22", True),
        ("connections.port <> 22", False),
        ("connections.port <> 23", True),
        ("connections.port = 22 AND connections.host = 'b'", True),
        ("connections IS NULL", True),
        ("connections = 1", None),
        ("connections.port IS NULL", False),
        ("connections.user IS NULL", True),
    ):
        assert evaluate(parse(text), event) is truth
    assert str(explain(parse("connections.port = 22"), event)) == (
        "TRUE     connections.port = 22   (connections.port is [22, 80])"
    )


def test_objects_that_are_not_expressions_are_refused() -> None:
    with pytest.raises(ExpressionError, match="5 \\(int\\) is not an expression"):
        evaluate(5, {})


@pytest.mark.parametrize("source", ["a < 2", attr("a") < 2, ["a", "<", 2], [["a", "<", 2], ["a", ">", 0]]])
def test_an_expression_is_given_in_any_form(source: Any) -> None:
    assert evaluate(source, {"a": 1}) is True
    assert matches(source, {"a": 1})
    assert explain(source, {"a": 3}).truth is False


@given(expressions(), events())
def test_flat_events_give_the_same(expression: Expression, event: dict[str, Any]) -> None:
    assert evaluate_flat(expression, flatten(event)) is evaluate(expression, event)
