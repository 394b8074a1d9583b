"""The matcher against the reference evaluator, on random expressions and events."""

from __future__ import annotations

import pytest

from tamis.language.evaluate import matches
from tamis.matcher.matcher import Matcher
from tests.random_cases import RandomCases

pytestmark = pytest.mark.kernels

SUBSCRIPTIONS = 150
EVENTS = 60


@pytest.mark.parametrize("seed", range(12))
def test_matches_what_the_evaluator_says(seed: int) -> None:
    cases = RandomCases(seed)
    expressions = [cases.expression() for _ in range(SUBSCRIPTIONS)]
    matcher = Matcher()
    matcher.add_many(range(len(expressions)), expressions)
    for _ in range(EVENTS):
        event = cases.event()
        expected = [number for number, expression in enumerate(expressions) if matches(expression, event)]
        assert sorted(matcher.match(event)) == expected, event
