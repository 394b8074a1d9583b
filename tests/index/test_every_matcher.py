"""Matchers over every index against the reference evaluator: all kinds of values, all operators, all workloads."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.index.registry import all_indexes
from tamis.language.evaluate import matches
from tamis.language.expression import Expression
from tamis.workload import PRESETS, generate, preset
from tests.random_cases import RandomCases

pytestmark = pytest.mark.parametrize("name", sorted(all_indexes()))

SUBSCRIPTIONS = 100


def added(matcher: tamis.Matcher, number: int, expression: Expression) -> bool:
    """Add a subscription; False if the index refuses it, of which nothing stays behind then."""
    try:
        matcher.add(number, expression)
    except tamis.CapabilityError:
        assert number not in matcher
        return False
    return True


def matched(matcher: tamis.Matcher, event: dict[str, Any]) -> list[Any] | None:
    """The ids, in order; None where the index cannot match such an event."""
    try:
        return sorted(matcher.match(event))
    except tamis.CapabilityError:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_matches_what_the_evaluator_says(name: str, seed: int) -> None:
    cases = RandomCases(seed)
    matcher = tamis.Matcher(index=name)
    expressions = [cases.expression() for _ in range(SUBSCRIPTIONS)]
    taken = {number: each for number, each in enumerate(expressions) if added(matcher, number, each)}
    assert len(taken) >= SUBSCRIPTIONS // 5
    answered = 0
    for _ in range(30):
        event = cases.event()
        found = matched(matcher, event)
        if found is not None:
            answered += 1
            assert found == [number for number, each in taken.items() if matches(each, event)], event
    assert answered >= 10 or not all_of(name)


def all_of(name: str) -> bool:
    """Whether an index can match every event."""
    capabilities = all_indexes()[name].capabilities
    return capabilities.several_values and capabilities.interval_values


def test_while_subscriptions_come_and_go(name: str) -> None:
    cases, chance = RandomCases(50), random.Random(50)
    matcher = tamis.Matcher(index=name)
    live: dict[int, Expression] = {}
    for step in range(120):
        if live and chance.random() < 0.4:
            number = chance.choice(sorted(live))
            matcher.remove(number)
            del live[number]
        else:
            expression = cases.expression()
            if added(matcher, step, expression):
                live[step] = expression
        if step % 40 == 30:
            matcher.observe([cases.event() for _ in range(20)])
        if step % 40 == 39:
            matcher.optimize()
        event = cases.event()
        found = matched(matcher, event)
        if found is not None:
            assert found == sorted(number for number, each in live.items() if matches(each, event)), event


@cache
def work(workload: str) -> tuple[pa.Table, list[tuple[pa.Table, set[tuple[int, int]]]]]:
    """The subscriptions of a workload, and two batches of events with what a scan finds."""
    changes: dict[str, Any] = {"subscriptions": 600, "events": 20, "other_events": 10}
    if PRESETS[workload].style == "be-gen":
        changes["match_probability"] = 0.02
    made = generate(preset(workload, **changes))
    truth = tamis.Matcher(index="scan")
    truth.add_table(made.subscriptions())
    batches = [made.events(), made.other_events()]
    return made.subscriptions(), [(events, pairs(truth.match_batch(events))) for events in batches]


# The presets of the PS-Tree paper are dense and sparse once more.
@pytest.mark.parametrize("workload", sorted(set(PRESETS) - {"ps-tree-dense", "ps-tree-sparse"}))
def test_the_workloads_of_the_papers(name: str, workload: str) -> None:
    subscriptions, batches = work(workload)
    matcher = tamis.Matcher(index=name)
    try:
        matcher.add_table(subscriptions)
    except tamis.CapabilityError:
        assert not all_indexes()[name].capabilities.every_predicate
        return
    for events, expected in batches:
        try:
            found = matcher.match_batch(events)
        except tamis.CapabilityError:
            assert not all_of(name)
            continue
        assert pairs(found) == expected


def pairs(table: Any) -> set[tuple[int, int]]:
    return set(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))
