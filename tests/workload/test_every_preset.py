"""What holds for the presets of the papers' experiments: the same blocks anywhere, tables that can be matched, files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.language.evaluate import matches
from tamis.workload import PRESETS, SUBSCRIPTION_BLOCK, PredicateWorkload, generate, preset, read_config, write
from tamis.workload.styles import config_from_json
from tests.workload.satisfaction import event_dicts
from tests.workload.shapes import SHAPES

ALIKE = {
    "ps-tree-dense", "ps-tree-sparse", "fabret-inequalities", "fabret-other-focus", "op-index-wikipedia-counts",
    "be-tree-match-titles",
}  # fmt: skip
"""Presets that differ from another one only in sizes or shares."""
NAMES = [name for name in PRESETS if name not in {*SHAPES, *ALIKE}]
each_preset = pytest.mark.parametrize("name", NAMES)


def made(name: str, **changes: Any) -> PredicateWorkload:
    workload = generate(preset(name, **changes))
    assert isinstance(workload, PredicateWorkload)
    return workload


@cache
def whole(name: str) -> PredicateWorkload:
    return made(name, subscriptions=SUBSCRIPTION_BLOCK + 100)


@cache
def table(name: str) -> pa.Table:
    return whole(name).subscriptions()


@each_preset
def test_the_same_from_any_process(name: str) -> None:
    subscriptions = table(name)
    again = made(name, subscriptions=SUBSCRIPTION_BLOCK + 100)
    assert subscriptions.slice(SUBSCRIPTION_BLOCK).combine_chunks().to_batches()[0].equals(again.subscription_block(1))
    assert made(name, subscriptions=50).subscriptions().equals(subscriptions.slice(0, 50))
    events, others = whole(name).events(30), whole(name).other_events(30)
    assert again.event_block(0, 30).equals(events.combine_chunks().to_batches()[0])
    assert again.other_events(30).slice(0, 5).equals(again.other_events(5))
    assert not events.equals(others)
    other_seed = made(name, subscriptions=50, seed=2)
    assert not other_seed.subscriptions().equals(subscriptions.slice(0, 50))
    assert not other_seed.events(30).equals(events)


@each_preset
def test_tables_are_valid_and_attributes_distinct(name: str) -> None:
    subscriptions = table(name)
    subscriptions.validate(full=True)
    whole(name).events(40).validate(full=True)
    assert subscriptions["id"].to_pylist() == list(range(SUBSCRIPTION_BLOCK + 100))
    names = set(whole(name).attribute_names)
    assert len(names) == len(whole(name).attribute_names)
    for row in subscriptions["predicates"].slice(0, 500).to_pylist():
        attributes = [predicate["attribute"] for predicate in row]
        assert attributes
        assert len(set(attributes)) == len(attributes)
        assert names.issuperset(attributes)
    for event in event_dicts(whole(name).events(40)):
        assert event
        assert names.issuperset(event)


@each_preset
def test_the_matcher_agrees_with_the_evaluator(name: str) -> None:
    subscriptions = table(name).slice(0, 1_000)
    matcher = tamis.Matcher()
    matcher.add_table(subscriptions)
    expressions = [matcher.explain(number, {}).expression for number in range(0, 1_000, 10)]
    for events in (whole(name).events(8), whole(name).other_events(4)):
        for row, event in enumerate(event_dicts(events)):
            found = set(matcher.match(event))
            assert set(matcher.match_batch(events.slice(row, 1))["subscription"].to_pylist()) == found
            expected = {10 * place for place, expression in enumerate(expressions) if matches(expression, event)}
            assert {number for number in found if number % 10 == 0} == expected


@each_preset
def test_a_folder(tmp_path: Path, name: str) -> None:
    config = preset(name, subscriptions=60, events=5, other_events=3)
    assert config_from_json(config.to_json()) == config
    files = write(config, tmp_path)
    assert [pq.read_metadata(path).num_rows for path in files[:3]] == [60, 5, 3]
    assert pq.read_table(files[0]).equals(generate(config).subscriptions())
    assert pq.read_table(files[1]).equals(generate(config).events())
    assert read_config(tmp_path) == config
