"""The matcher against the reference evaluator, on random expressions and events."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tamis.language.evaluate import matches
from tamis.matcher.matcher import Matcher
from tests.matcher.small import small_matcher
from tests.random_cases import RandomCases

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("each_index")]

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


def test_segments_match_what_the_evaluator_says(cases: Callable[[int], int]) -> None:
    """Small deltas are built into segments, and segments are merged, so the test covers all of these."""
    for seed in range(cases(5)):
        random = RandomCases(100 + seed)
        expressions = [random.expression() for _ in range(SUBSCRIPTIONS)]
        events = [random.event() for _ in range(30)]
        matcher = small_matcher()
        matcher.add_many(range(100), expressions[:100])
        for number in range(100, SUBSCRIPTIONS):
            matcher.add(number, expressions[number])
            if number % 10 == 0:
                matcher.match({})
        removed = set(range(0, SUBSCRIPTIONS, 7))
        for number in sorted(removed):
            matcher.remove(number)
        truth = [[number for number, each in enumerate(expressions) if matches(each, event)] for event in events]
        expected = [(row, number) for row, numbers in enumerate(truth) for number in numbers if number not in removed]
        table = matcher.match_batch(events)
        assert sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True)) == expected
        for row, event in enumerate(events):
            assert sorted(matcher.match(event)) == [number for number in truth[row] if number not in removed]
