"""Rules and events at random: the converted expression is TRUE exactly where pySigma's conditions are true."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from sigma.rule import SigmaRule

import tamis
from tamis.language.event import flatten
from tamis.sigma import TamisBackend
from tamis.sigma.derived import AllValues
from tests.sigma.naive import holds

FIELDS = ("a", "b", "c")
TEXTS = ("x", "X", "xy", "yx", "4", "true", "10.1.2.3", "a*b", r"a\*b", "-f x", "/F", "100%", "")
VALUES: tuple[Any, ...] = (*TEXTS, "*", "x*", "?y", "*x*", 4, 0.5, True, False)
KEYS = ("", "|contains", "|startswith", "|endswith", "|contains|all", "|windash|contains", "|cased", "|neq", "|base64")
CONDITIONS = (
    "p",
    "p and q",
    "p or q",
    "not p",
    "p and not q",
    "1 of them",
    "all of them",
    "not (p or not q)",
    "not (p and q)",
)


def random_item(random: Random) -> dict[str, Any]:
    field = random.choice(FIELDS)
    kind = random.randrange(8)
    if kind == 0:
        return {field: None}
    if kind == 1:
        return {f"{field}|exists": random.choice([True, False])}
    if kind == 2:
        return {f"{field}|{random.choice(['lt', 'lte', 'gt', 'gte'])}": random.choice([0, 4, 4.5])}
    if kind == 3:
        return {f"{field}|cidr": random.choice(["10.0.0.0/8", "10.1.2.3/32", "192.168.0.0/16"])}
    key = random.choice(KEYS)
    values = [random.choice(TEXTS[:5] if key else VALUES) for _ in range(random.randint(1, 3))]
    return {field + key: values if len(values) > 1 or random.random() < 0.5 else values[0]}


def random_detection(random: Random) -> Any:
    kind = random.randrange(6)
    if kind == 0:
        return [random.choice(["x", "4", "y*", "true", 4]) for _ in range(2)]
    if kind == 1:
        return [random_item(random), random_item(random)]
    return {**random_item(random), **random_item(random)}


def random_event(random: Random) -> dict[str, Any]:
    def value() -> Any:
        return random.choice([*TEXTS, "xxy", "a 4 b", 4, 4.0, 5, 0.5, True, False, None])

    return {
        field: [value(), value()] if random.random() < 0.2 else value() for field in FIELDS if random.random() < 0.8
    }


@pytest.mark.parametrize("seed", range(3))
def test_conversion_means_what_the_conditions_mean(seed: int, cases: Callable[[int], int]) -> None:
    backend = TamisBackend(derive=True, log_sources="ignore")
    random = Random(seed)
    for _ in range(cases(300)):
        detection = {
            "p": random_detection(random),
            "q": random_detection(random),
            "condition": random.choice(CONDITIONS),
        }
        rule = SigmaRule.from_dict({"title": "r", "logsource": {"product": "x"}, "detection": detection})
        [expression] = backend.convert_rule(rule, "expression")
        condition = rule.detection.parsed_condition[0].parsed
        for _ in range(6):
            event = random_event(random)
            prepared = {**event, AllValues().name: AllValues().value(flatten(event))}
            assert (tamis.evaluate(expression, prepared) is True) == holds(condition, event), (detection, event)
