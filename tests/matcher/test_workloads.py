"""The papers' workloads in a matcher: it finds planted subscriptions, and agrees with the evaluator."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.language.evaluate import matches
from tamis.workload import PRESETS, Workload, generate, preset
from tests.workload.shapes import SHAPES

pytestmark = pytest.mark.usefixtures("each_index")

CHANGES: dict[str, Any] = {"subscriptions": 3000, "events": 50, "other_events": 20}


def workload(name: str, **changes: Any) -> Workload:
    if PRESETS[name].style == "be-gen":
        changes = {"match_probability": 0.02, **changes}
    return generate(preset(name, **CHANGES, **changes))


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape(name: str) -> None:
    check(workload(name))


@pytest.mark.parametrize(
    "changes",
    [
        {"string_share": 0.5, "prefix_share": 0.5},
        {"string_share": 1.0, "prefix_share": 0.2},
        {"operator_class": "high", "numbers": "float"},
        {"cardinality": 1_000_000, "equality_ratio": 0.1},
        {"dimensions": 60, "event_size": 20, "subscription_size": 3, "equality_ratio": 0.0},
    ],
)
def test_strings_floats_and_wide_domains(changes: dict[str, Any]) -> None:
    check(workload("dense", **changes))


def check(made: Workload) -> None:
    table = made.subscriptions()
    matcher = tamis.Matcher()
    matcher.add_table(table)
    listed = made.events()
    counts = matcher.count_batch(listed)
    if made.config.style == "be-gen":
        planted = len(table) // made.config.base_events
        assert counts.min() >= planted
    others = made.other_events()
    # Compare a sample of all pairs, and some pairs that match, with the evaluator.
    chance = random.Random(5)
    for events in (listed, others):
        found: dict[int, set[int]] = {row: set() for row in range(events.num_rows)}
        result = matcher.match_batch(events)
        for row, subscription in zip(result["event"].to_pylist(), result["subscription"].to_pylist(), strict=True):
            found[row].add(subscription)
        assert np.array_equal(matcher.count_batch(events), [len(found[row]) for row in range(events.num_rows)])
        rows = events.column(0).to_pylist()
        for row in chance.sample(range(events.num_rows), 5):
            event = {entry["attribute"]: plain(entry["value"]) for entry in rows[row]}
            assert set(matcher.match(event)) == found[row]
            for subscription in {*chance.sample(range(len(table)), 60), *list(found[row])[:20]}:
                expression = matcher.explain(subscription, {}).expression
                assert matches(expression, event) is (subscription in found[row])


def plain(value: Any) -> Any:
    """A value that may be a struct with one field set."""
    return next(field for field in value.values() if field is not None) if isinstance(value, dict) else value
