"""Millions of decisions, each compared with NumPy's decision for the same subscription and event.

A sample of NumPy's decisions is compared with the reference evaluator.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tamis
from tamis.language.evaluate import matches
from tamis.workload import PRESETS, generate, preset
from tamis.workload.predicate_workload import PredicateWorkload
from tests.parameters import few_of
from tests.workload.columns import WorkloadColumns
from tests.workload.satisfaction import event_dicts

SUBSCRIPTIONS = 12_000
EVENTS = 100
FEWEST = 1_800_000
"""The number of decisions for each preset, in the shortest run."""

# `test_workloads` compares patterns with the reference evaluator.
NAMES = ["dense", "sparse", "zipf", "range", "ads", "op-index", "wide-dense", "wide-range", "wide-12-range", "alerts"]


def workload(name: str, seed: int) -> PredicateWorkload:
    size: dict[str, Any] = {"subscriptions": SUBSCRIPTIONS, "other_events": EVENTS, "seed": seed}
    if PRESETS[name].style == "be-gen":
        size["match_probability"] = 0.02
    made = generate(preset(name, **size))
    assert isinstance(made, PredicateWorkload)
    return made


def changed(matcher: tamis.Matcher, made: PredicateWorkload, chance: random.Random) -> npt.NDArray[np.bool_]:
    """Add most subscriptions to segments and some to the delta, and remove some of both. Returns which ones remain."""
    table = made.subscriptions()
    matcher.add_table(table.slice(0, 9000))
    matcher.add_table(table.slice(9000, 2200))
    matcher.add_table(table.slice(11_200))
    there = np.ones(len(table), np.bool_)
    for number in chance.sample(range(len(table)), 300):
        matcher.remove(number)
        there[number] = False
    return there


@pytest.mark.parametrize("name", few_of(NAMES, ["dense", "zipf", "ads", "wide-12-range", "alerts"]))
def test_every_decision(name: str, cases: Callable[[int], int], record_property: Callable[[str, object], None]) -> None:
    decisions = 0
    for seed in range(cases(1)):
        made, chance = workload(name, seed), random.Random(seed)
        matcher = tamis.Matcher()
        there = changed(matcher, made, chance)
        columns = WorkloadColumns(made.arrays(), len(made.attribute_names))
        sides = (
            (made.events(EVENTS), made.event_arrays(EVENTS)),
            (made.other_events(EVENTS), made.other_event_arrays(EVENTS)),
        )
        for events, (attributes, values) in sides:
            result = matcher.match_batch(events, threads=1 + seed % 2)
            subscription, counts = result["subscription"].to_numpy(), np.bincount(result["event"], minlength=EVENTS)
            found = np.split(subscription, np.cumsum(counts)[:-1])
            for row in range(EVENTS):
                expected = columns.true_of(attributes[row], values[row]) & there
                assert np.array_equal(np.sort(found[row]), np.flatnonzero(expected)), (seed, row)
                if row % 10 == 0:
                    check_sample(matcher, event_dicts(events.slice(row, 1))[0], expected, chance)
            decisions += EVENTS * int(there.sum())
    record_property("decisions", decisions)
    assert decisions >= FEWEST


def check_sample(
    matcher: tamis.Matcher, event: dict[str, Any], expected: npt.NDArray[np.bool_], chance: random.Random
) -> None:
    """Compare with the reference evaluator, for some subscriptions that match and some that do not."""
    there = [number for number in chance.sample(range(len(expected)), 40) if number in matcher]
    for number in {*there, *np.flatnonzero(expected)[:10].tolist()}:
        expression = matcher.explain(number, {}).expression
        assert matches(expression, event) is bool(expected[number])
