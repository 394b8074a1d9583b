"""Matchers with every index agree with the reference evaluator: all kinds of values, all operators, all workloads."""

from __future__ import annotations

import pickle
import random
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.language.evaluate import matches
from tamis.language.expression import Expression
from tamis.language.parser import parse
from tamis.matcher.limits import USUAL_STORE_LIMITS
from tamis.papers.interface import Capabilities
from tamis.papers.registry import all_indexes
from tamis.workload import PRESETS, generate, preset
from tests.random_cases import RandomCases
from tests.workload.satisfaction import event_dicts, plain
from tests.workload.shapes import SHAPES

VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {"index": name} for name in all_indexes()},
    "op-index, cnf": {"index": "op-index", "options": {"cnf": True}},
}
"""The arguments for each matcher."""
pytestmark = pytest.mark.parametrize("name", sorted(VARIANTS))

SUBSCRIPTIONS = 100


def added(matcher: tamis.Matcher, number: int, expression: Expression) -> bool:
    """Add a subscription. Returns False if the index refuses it; the matcher must then not have it."""
    try:
        matcher.add(number, expression)
    except tamis.CapabilityError:
        assert number not in matcher
        return False
    return True


def matched(matcher: tamis.Matcher, event: dict[str, Any]) -> list[Any] | None:
    """The ids in order. None if the index cannot match such an event."""
    try:
        return sorted(matcher.match(event))
    except tamis.CapabilityError:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_matches_what_the_evaluator_says(name: str, seed: int) -> None:
    cases = RandomCases(seed)
    matcher = tamis.Matcher(**VARIANTS[name])
    expressions = [cases.expression() for _ in range(SUBSCRIPTIONS)]
    taken = {number: each for number, each in enumerate(expressions) if added(matcher, number, each)}
    assert len(taken) >= (SUBSCRIPTIONS if capabilities(name).every_predicate else SUBSCRIPTIONS // 5)
    answered = 0
    for _ in range(30):
        event = cases.event()
        found = matched(matcher, event)
        if found is not None:
            answered += 1
            assert found == [number for number, each in taken.items() if matches(each, event)], event
    assert answered == 30 or not all_of(name)


def all_of(name: str) -> bool:
    """Whether an index can match every event."""
    return capabilities(name).several_values and capabilities(name).interval_values


def capabilities(name: str) -> Capabilities:
    return tamis.indexes()[VARIANTS[name]["index"]]


def test_memory_shrinks_with_the_number_of_subscriptions(name: str) -> None:
    """Also if some are left: a store sweeps when more subscriptions are dead than alive, unless there are only a few."""
    subscriptions = generate(preset("dense", subscriptions=1_500)).subscriptions()
    events = generate(preset("dense", subscriptions=1_500)).other_events(2)

    def held(count: int, removed: int) -> int:
        matcher = tamis.Matcher(**VARIANTS[name])
        matcher.add_table(subscriptions.slice(0, count))
        for identifier in subscriptions["id"].to_pylist()[count - removed : count]:
            matcher.remove(identifier)
        matcher.match_batch(events)
        held: int = matcher.stats()["index_stats"]["bytes"]
        return held

    assert held(1_500, 1_470) <= 1.5 * held(2 * USUAL_STORE_LIMITS.fewest_to_sweep, 0)


def test_matching_while_subscriptions_are_added_and_removed(name: str) -> None:
    cases, chance = RandomCases(50), random.Random(50)
    matcher = tamis.Matcher(**VARIANTS[name])
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


def test_it_is_read_and_changed_like_a_dictionary(name: str) -> None:
    cases = RandomCases(7)
    matcher = tamis.Matcher(**VARIANTS[name])
    model: dict[int, tuple[Expression, float]] = {}
    while len(model) < 40:
        expressions = [cases.expression() for _ in range(20)]
        ids = range(len(model), len(model) + 20)
        rejected = matcher.add_many(ids, expressions, weights=ids, on_error="collect")
        assert all(isinstance(each.error, tamis.CapabilityError) for each in rejected)
        refused = {each.id for each in rejected}
        model.update((each, (expressions[each - ids[0]], each)) for each in ids if each not in refused)
        model = dict(enumerate(model.values()))
        matcher.clear()
        matcher.add_many(model, [each for each, _ in model.values()], [weight for _, weight in model.values()])
    odd = [number for number in model if number % 2]
    swapped = [model[number - 1][0] for number in odd]
    matcher.replace_many(odd, swapped)
    model.update((number, (each, model[number][1])) for number, each in zip(odd, swapped, strict=True))
    matcher.remove_many(range(8))
    model = {number: each for number, each in model.items() if number >= 8}
    matcher.upsert(9, model[10][0])
    model[9] = model[10][0], model[9][1]
    assert matcher.discard(11)
    assert not matcher.discard(11)
    del model[11]
    for each in (matcher, pickle.loads(pickle.dumps(matcher))):
        assert {identifier: (each[identifier].expression, each[identifier].weight) for identifier in each} == model
        assert each.ids() == list(model)
        assert each.stats()["index"] == matcher.stats()["index"]
        event = cases.event()
        found = matched(each, event)
        assert found in (None, sorted(number for number, (held, _) in model.items() if matches(held, event)))


REFUSED = {"k-index": {"alerts", "detection", "wide-dense", "wide-range", "wide-12", "wide-12-range"}}
"""Index -> workloads with subscriptions that the index cannot hold: ranges of strings, fractions, or too many numbers."""
SEVERAL = {"detection"}
"""Workloads with events in which one value may have several patterns. Not every index can match such events."""

SIZES = {"alerts": (300, 150), "detection": (40, 6)}
"""Workload -> its numbers of subscriptions and events, if the default gives no matches or takes too long."""


@cache
def work(workload: str) -> tuple[pa.Table, list[tuple[pa.Table, set[tuple[int, int]]]]]:
    """The subscriptions of a workload, and two batches of events with the evaluator's answers."""
    subscriptions, events = SIZES.get(workload, (300, 12))
    changes: dict[str, Any] = {"subscriptions": subscriptions, "events": events, "other_events": events // 2}
    if PRESETS[workload].style == "be-gen":
        changes["match_probability"] = 0.02
    made = generate(preset(workload, **changes))
    expressions = {row["id"]: expression_of(row) for row in made.subscriptions().to_pylist()}
    return made.subscriptions(), [
        (events, truth(expressions, events)) for events in (made.events(), made.other_events())
    ]


def truth(expressions: dict[int, Expression], events: pa.Table) -> set[tuple[int, int]]:
    return {
        (row, number)
        for row, event in enumerate(event_dicts(events))
        for number, expression in expressions.items()
        if matches(expression, event)
    }


def expression_of(row: dict[str, Any]) -> Expression:
    """The expression of a row of subscriptions, in a table of any form."""
    return parse(row["expression"] if "expression" in row else " AND ".join(map(text_of, row["predicates"])))


def text_of(predicate: dict[str, Any]) -> str:
    operator, values = predicate["operator"], [repr(plain(value)) for value in predicate["values"]]
    operands = {"in": f"({', '.join(values)})", "not in": f"({', '.join(values)})", "between": " AND ".join(values)}
    return f"{predicate['attribute']} {operator.upper()} {operands.get(operator, values[0])}"


def test_the_workloads_of_the_papers(name: str, soak: bool) -> None:
    """Every index has a third of the workloads, every workload a third of the indexes. A soak run tries all."""
    for workload in SHAPES if soak else SHAPES[sorted(VARIANTS).index(name) % 3 :: 3]:
        check_workload(name, workload)


def check_workload(name: str, workload: str) -> None:
    subscriptions, batches = work(workload)
    assert any(expected for _, expected in batches)
    matcher = tamis.Matcher(**VARIANTS[name])
    if workload in REFUSED.get(name, ()):
        with pytest.raises(tamis.CapabilityError, match="enumerates the whole numbers"):
            matcher.add_table(subscriptions)
        assert len(matcher) == 0
        return
    matcher.add_table(subscriptions)
    for events, expected in batches:
        if workload in SEVERAL and not capabilities(name).several_values:
            with pytest.raises(tamis.CapabilityError, match="several"):
                matcher.match_batch(events)
        else:
            assert pairs(matcher.match_batch(events)) == expected, workload


def pairs(table: Any) -> set[tuple[int, int]]:
    return set(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))
