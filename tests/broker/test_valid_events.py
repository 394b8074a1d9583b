"""Subscriptions meet the stored events that the reference evaluator says they do."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.broker import valid_events
from tamis.broker.valid_events import ValidEvents
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import flatten
from tamis.language.expression import Expression
from tests.random_cases import RandomCases

END = 100


def _stored(events: list[dict[str, Any]], ends: list[int] | None = None, **sizes: int) -> ValidEvents:
    valid = ValidEvents(**sizes)
    for number, event in enumerate(events, 1):
        valid.add(number, flatten(event), END if ends is None else ends[number - 1])
    return valid


def _met(valid: ValidEvents, text: str, moment: int = 0) -> list[int]:
    found: list[int] = valid.meet({7: tamis.parse(text)}, moment)[7].tolist()
    return found


def _expected(expression: Expression, events: list[dict[str, Any]]) -> list[int]:
    return [number for number, event in enumerate(events, 1) if evaluate_flat(expression, flatten(event)) is True]


@pytest.mark.parametrize("seed", range(4))
def test_columns_agree_with_the_evaluator(seed: int, soak: bool) -> None:
    random = RandomCases(seed, attributes=["a", "b", "user.name"])
    events = [flatten(random.event()) for _ in range(120)]
    valid = ValidEvents()
    for number, event in enumerate(events, 1):
        valid.add(number, event, END)
    for _ in range(1000 if soak else 200):
        expression = random.expression()
        expected = [number for number, event in enumerate(events, 1) if evaluate_flat(expression, event) is True]
        assert valid.meet({1: expression}, 0)[1].tolist() == expected, str(expression)


_ODD: dict[str, Callable[[int], Any]] = {
    "a number": lambda n: n % 9,
    "lists": lambda n: [n % 3, n % 9, "x"],
    "lists of objects": lambda n: [{"b": n % 9}, {"b": [n % 3]}],
    "large integers": lambda n: 2**60 + n % 9,
    "intervals": lambda n: tamis.Interval(n % 9, n % 9 + 1),
    "several kinds": lambda n: [n % 9, f"n{n % 7}", n % 2 == 0, datetime(2026, 1, 1 + n % 9)][n % 4],
    "values outside the language": lambda n: b"x" if n % 9 else 1,
    "strings outside of ASCII": lambda n: f"é{n % 9}",
}


@pytest.mark.parametrize("kind", list(_ODD))
@pytest.mark.parametrize(
    "text",
    [
        "a = 1", "a.b > 3", "NOT a < 5", "a IS DISTINCT FROM 5", "NOT (a > 3 AND c = 1)", "a IN (1, 'n2', 1152921504606846977)",
        "a > 1152921504606846976 AND c = 1", "a RLIKE '(?i)É[1-3]' AND c = 0", "a LIKE '_7' OR c = 1", "c = 1",
    ],
)  # fmt: skip
def test_the_work_in_python_does_not_grow_with_the_events(kind: str, text: str) -> None:
    """Columns decide on all events, whatever their values are."""
    made: list[int] = []
    for count in (400, 1200):
        events = [{"a": _ODD[kind](n), "c": n % 2} for n in range(count)]
        valid = _stored(events)
        expected = _expected(tamis.parse(text), events)
        assert _met(valid, text) == expected  # Arrays that grow and kernels that are loaded are made now.
        made.append(_calls(partial(_met, valid, text)))
    assert abs(made[1] - made[0]) <= 10


def _calls(work: Callable[[], object]) -> int:
    """How many functions are called."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(
    "text",
    [
        "ip_in(a, '10.0.0.0/8')", "NOT ip_in(a, '10.0.0.0/8')", "NOT (ip_in(a, '10.0.0.0/8', '::1') OR b > 1)",
        "ip_in(a, '::/0') AND b = 1", "NOT ip_in(a, '::/0') AND NOT ip_in(missing, '::/0')", "NOT ip_in(a, '::/0') OR a IS NULL",
        "ip_in(a, '10.0.0.0/8') IS NOT TRUE", "(NOT ip_in(a, '10.0.0.0/8')) IS UNKNOWN",
    ],
)  # fmt: skip
def test_addresses_are_decided_by_columns(text: str) -> None:
    values: list[Any] = ["10.0.0.1", "11.0.0.1", "::1", "::2", "::ffff:10.9.9.9", "no", "", 10, True, None, b"x"]
    values += [["10.0.0.1", "no"], ["::2", 3]]
    events = [{"a": value, "b": b} for value in values for b in (1, 2)]
    valid = _stored(events)
    assert _met(valid, text) == _expected(tamis.parse(text), events)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("few_subscriptions", [0, 1000])
def test_many_subscriptions_meet_events_together(seed: int, few_subscriptions: int) -> None:
    """A matcher decides for many, columns decide for few."""
    cases = RandomCases(seed, attributes=["a", "b"])
    events = [cases.event() for _ in range(60)]
    if seed % 2:  # All values of an attribute fit into one column of Arrow.
        events = [{"a": [n % 5] * (n % 3), "b": 2**60 + n % 7} for n in range(60)]
    valid = _stored(events, [END - (number == 60) for number in range(1, 61)], few_subscriptions=few_subscriptions)
    wanted = {number: cases.expression(2) for number in range(10, 40)}
    found = valid.meet(wanted, END - 1)
    assert {number: each.tolist() for number, each in found.items()} == {
        number: _expected(expression, events[:-1]) for number, expression in wanted.items()
    }


@pytest.mark.parametrize("seed", range(6))
def test_events_that_come_together_are_those_that_come_alone(seed: int) -> None:
    cases = RandomCases(seed, attributes=["a", "b", "c"])
    batches: list[list[Any]] = [
        [{"a": n, "b": f"b{n % 3}", "c": n % 2 == 0} for n in range(20)],
        [{"a": [1, n / 2, None, "x"][n % 4], "b": [n, [], [n % 3, "é"], None][n % 4]} for n in range(20)],
        [{"a": [1.5, math.nan, math.inf, -math.inf, 2**53, 1e300][n % 6], "c": ["x", math.nan]} for n in range(20)],
        [{"a": math.nan, "b": None, "c": []} for n in range(20)],
        [{"a": [2**60 + n, 10**400, n][seed % 3], "b": n} for n in range(20)],
        [{"a": n, ["", "b\ud800", "\u00e9"][seed % 3]: n, "b": ["x", "\ud800", "\u00e9"][seed % 3]} for n in range(20)],
        [{"a": {"b": n % 3}, "a.b": n % 2, "c": b"x"} for n in range(20)],
        [cases.event() for _ in range(40)],
        [{}] * 20,
        [MappingProxyType({"a": n}) for n in range(20)],
    ]
    alone, together = ValidEvents(), ValidEvents()
    events: list[Any] = []
    np.random.default_rng(seed).shuffle(batches)
    for batch in batches:
        first = len(events) + 1
        numbers = range(first, first + len(batch))
        together.add_many(numbers, batch, [END] * len(batch))
        for number, event in zip(numbers, batch, strict=True):
            alone.add(number, flatten(event), END)
        events += batch
    for expression in [cases.expression(2) for _ in range(100)] + list(map(tamis.parse, _ASKED)):
        expected = _expected(expression, events)
        assert alone.meet({1: expression}, 0)[1].tolist() == expected, str(expression)
        assert together.meet({1: expression}, 0)[1].tolist() == expected, str(expression)
    assert together.refused == alone.refused


_ASKED = [
    "a > 0",
    "a.b = 1",
    "b = 'é'",
    "b IS NULL",
    "c = TRUE",
    "a > 1e300",
    "é > 3",
    "c = 'x'",
    "a IS NULL",
    "NOT b = 1",
]


def test_events_end() -> None:
    valid = _stored([{"a": 1}, {"a": 2}, {"a": 3}], [10, 20, 30])
    assert _met(valid, "a > 0", 9) == [1, 2, 3]
    assert _met(valid, "a > 0", 10) == [2, 3]
    assert _met(valid, "a > 0", 30) == []


def test_events_that_are_over_leave_the_memory() -> None:
    valid = ValidEvents(look_again=8)
    for number in range(1, 101):
        valid.add(number, flatten({"a": number, "b": f"b{number}", "c": [1, number], "d": b"x"}), number)
        valid.forget(number - 4)
    assert len(valid) < 20
    assert _met(valid, "b = 'b99'", 96) == [99]
    assert _met(valid, "c = 98 OR a = 100", 96) == [98, 100]
    assert _met(valid, "b LIKE 'b%'", 96) == [97, 98, 99, 100]


def test_a_value_outside_the_language_is_unknown_and_counted() -> None:
    valid = _stored([{"a": b"x"}, {"a": 1}, {"b": 2}])
    assert _met(valid, "a = 1") == [2]
    assert valid.refused == 1
    assert _met(valid, "a IS NULL") == [1, 3]
    assert _met(valid, "b = 2") == [3]
    assert valid.refused == 2


def test_the_limits_of_exact_columns_are_those_of_doubles() -> None:
    values = [2**53 - 1, 2**53, 2**53 + 1, float(2**53), -(2**63), 2**63 - 1]
    valid = _stored([{"a": value} for value in values])
    for literal in values:
        for operator in ("=", "<>", "<", "<=", ">", ">="):
            expression = tamis.parse(f"a {operator} {literal}")
            expected = _expected(expression, [{"a": value} for value in values])
            assert valid.meet({1: expression}, 0)[1].tolist() == expected, str(expression)


def test_no_events() -> None:
    assert _met(ValidEvents(), "a = 1") == []
    assert valid_events.ValidEvents().meet({}, 0) == {}
    assert np.array_equal(_stored([{}]).meet({1: tamis.parse("TRUE")}, 0)[1], [1])
