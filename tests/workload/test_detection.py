"""Detection rules: their figures, that each can be read and planted, and that events look like those of a machine."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.language.expression import And, Expression, Not, Or, Predicate
from tamis.language.like import LikePattern
from tamis.language.operators import Operator
from tamis.workload import RuleWorkload, generate, preset
from tamis.workload.detection import events, texts
from tamis.workload.detection.draw import draw_rule
from tamis.workload.detection.fields import FIELDS, LOG_SOURCE, SOURCES
from tamis.workload.detection.texts import Shape
from tamis.workload.detection.words import FAMILIAR, ODD
from tests.workload.satisfaction import event_dicts


def small(**changes: Any) -> RuleWorkload:
    return generate(preset("detection", **{"subscriptions": 300, **changes}))


@cache
def rules() -> list[Expression]:
    """All rules of the preset, read from their texts."""
    return [tamis.parse(text) for text in generate(preset("detection")).subscriptions()["expression"].to_pylist()]


def predicates(rule: Expression) -> list[Predicate]:
    return [node for node in rule.walk() if isinstance(node, Predicate)]


def conditions(rule: Expression) -> list[Predicate]:
    """The predicates that are not about the log source."""
    return [predicate for predicate in predicates(rule) if not predicate.attribute.startswith(LOG_SOURCE)]


def kind(predicate: Predicate) -> str:
    if predicate.operator is Operator.ILIKE:
        return str(LikePattern.read(str(predicate.values[0]), predicate.escape).shape)
    return str(predicate.operator)


def test_same_config_same_workload() -> None:
    one, two, other = small(), small(), small(seed=2)
    assert one.subscriptions().equals(two.subscriptions())
    assert one.events(20).equals(two.events(20))
    assert one.other_events(20).equals(two.other_events(20))
    assert not one.events(20).equals(one.other_events(20))
    assert not one.subscriptions().equals(other.subscriptions())
    assert not one.events(20).equals(other.events(20))
    assert not one.other_events(20).equals(other.other_events(20))


def test_a_smaller_workload_is_the_beginning_of_a_larger_one() -> None:
    assert small().subscriptions().slice(0, 120).equals(small(subscriptions=120).subscriptions())
    assert small().other_events(1_100).slice(0, 1_005).equals(small().other_events(1_005))
    assert small().events(50).slice(0, 7).equals(small().events(7))


def test_a_workload_travels_as_its_config() -> None:
    workload = small(subscriptions=20)
    workload.events(3)
    again = pickle.loads(pickle.dumps(workload))
    assert again.config == workload.config
    assert again.subscription_block(0).equals(workload.subscription_block(0))


def test_forms() -> None:
    workload = small()
    subscriptions = workload.subscriptions()
    assert subscriptions.schema == pa.schema([("id", pa.int64()), ("expression", pa.string())])
    assert subscriptions["id"].to_pylist() == list(range(300))
    pair = pa.struct([("attribute", pa.string()), ("value", pa.string())])
    listed, wide = workload.events(30), workload.events(30, wide=True)
    assert listed.schema == pa.schema([("event", pa.list_(pair))])
    assert wide.column_names == workload.attribute_names
    rows = [{name: value for name, value in row.items() if value is not None} for row in wide.to_pylist()]
    assert rows == event_dicts(listed)
    for table in (subscriptions, listed, wide):
        table.validate(full=True)


def test_every_rule_can_be_read_and_printed() -> None:
    assert len(rules()) == 4_000
    for number in range(0, 4_000, 40):
        assert rules()[number] == draw_rule(1, number).expression()


def test_sizes_of_rules() -> None:
    sizes = np.array([len(predicates(rule)) for rule in rules()])
    assert np.median(sizes) == 7
    assert sizes.mean() == pytest.approx(58_419 / 3_945, rel=0.08)
    assert sizes.min() == 2
    assert 4 <= np.count_nonzero(sizes > 300) <= 8
    assert sizes.max() > 2_000


def test_mix_of_predicates() -> None:
    counts = Counter(kind(predicate) for rule in rules() for predicate in conditions(rule))
    shares = {name: 100 * count / counts.total() for name, count in counts.items()}
    assert shares.pop("=") + shares.pop("in") == pytest.approx(1.5, abs=0.3)
    assert shares.pop("general") == pytest.approx(1, abs=0.2)
    assert shares.pop("rlike") == pytest.approx(0.5, abs=0.15)
    assert shares == pytest.approx({"contains": 60, "suffix": 21, "exact": 10, "prefix": 6}, abs=2.5)


def test_some_needles_hold_wildcards() -> None:
    escaped = [predicate for rule in rules() for predicate in predicates(rule) if predicate.escape is not None]
    assert 0.01 < len(escaped) / sum(len(predicates(rule)) for rule in rules()) < 0.08


def test_rules_with_not() -> None:
    negated = [rule for rule in rules() if any(isinstance(node, Not) for node in rule.walk())]
    assert len(negated) / len(rules()) == pytest.approx(837 / 3_945, abs=0.015)
    operators = {predicate.operator for rule in rules() for predicate in predicates(rule)}
    assert operators == {Operator.ILIKE, Operator.RLIKE, Operator.EQ, Operator.IN}


def test_structure_of_rules() -> None:
    """AND of selections, each an OR of predicates or one; NOT once, of filters that are ORs of ANDs of ORs."""
    fields = Counter[int]()
    for rule in rules():
        terms = rule.operands if isinstance(rule, And) else (rule,)
        for term in terms:
            if isinstance(term, Not):
                assert term is terms[-1]
                continue
            assert isinstance(term, Predicate) or all(isinstance(each, Predicate) for each in term.operands)
            fields[len(term.attributes())] += 1
    assert fields[1] > fields[2] > 200
    assert any(isinstance(node.operands[0], Or) for rule in rules() for node in rule.walk() if isinstance(node, Not))


def test_fields_are_many_and_few_of_them_dominate() -> None:
    assert len(FIELDS) == len(set(FIELDS)) == 411
    counts = Counter(predicate.attribute for rule in rules() for predicate in conditions(rule))
    assert set(counts) <= set(FIELDS)
    assert len(counts) > 370
    common = [name for name, _ in counts.most_common(8)]
    assert {"Image", "CommandLine"} == set(common[:2])
    assert {"ParentImage", "TargetFilename", "TargetObject"} <= set(common)
    assert sum(counts[name] for name in common) / counts.total() > 0.6


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.fields[0].name)
def test_every_source_has_a_field_for_every_shape(source: Any) -> None:
    assert all(source.weights[shape] for shape in Shape)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_planted_events_satisfy_their_rules(seed: int) -> None:
    workload = small(seed=seed, subscriptions=500)
    read = [tamis.parse(text) for text in workload.subscriptions()["expression"].to_pylist()]
    for number, event in enumerate(event_dicts(workload.events(1_000))):
        assert tamis.evaluate(read[number % 500], event) is True


@pytest.mark.parametrize(("share", "first"), [(1, [0, 1, 2, 3]), (0.5, [1, 3, 5, 7]), (0.01, [99, 199, 299]), (0, [])])
def test_planted_events_are_spread_evenly(share: float, first: list[int]) -> None:
    planted = small(planted_share=share)
    natural = small(planted_share=0)
    changed = [
        row
        for row, pair in enumerate(zip(event_dicts(planted.events(300)), event_dicts(natural.events(300)), strict=True))
        if pair[0] != pair[1]
    ]
    assert changed[: len(first)] == first
    assert len(changed) == 300 * share


def test_other_events_satisfy_a_few_rules() -> None:
    workload = generate(preset("detection"))
    matcher = tamis.Matcher(index="scan")
    matcher.add_many(range(len(rules())), rules())
    counts = matcher.count_batch(workload.other_events(2_000))
    assert 0.001 < counts.mean() < 0.05
    assert 0.001 < np.mean(counts > 0) < 0.03
    planted = matcher.match_batch(workload.events(200)).to_pylist()
    assert {(number, number) for number in range(200)} <= {(row["event"], row["subscription"]) for row in planted}


def test_events_look_like_those_of_a_machine() -> None:
    workload = small()
    others = event_dicts(workload.other_events(300))
    sizes = [len(json.dumps(event)) for event in others]
    assert np.mean(sizes) == pytest.approx(2_660, rel=0.05)
    assert np.mean([len(event) for event in others]) == pytest.approx(30, rel=0.1)
    for event in others:
        if "CommandLine" in event:
            assert re.fullmatch(r"[CD]:\\.*\\[\w.]+", event["Image"])
            assert event["CommandLine"].startswith(f'"{event["Image"]}" ')
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", event["UtcTime"])
    planted = event_dicts(workload.events(300))
    assert np.mean([len(json.dumps(event)) for event in planted]) == pytest.approx(2_800, rel=0.15)


def test_log_sources_rule_out_most_rules() -> None:
    """As in a sample of real ones: most events are from sources of few rules, and a few from a source of none."""
    asked = [
        {
            predicate.attribute: predicate.values[0]
            for predicate in predicates(rule)
            if predicate not in conditions(rule)
        }
        for rule in rules()
    ]
    assert all(asked)
    others = event_dicts(generate(preset("detection")).other_events(500))
    possible = np.array([sum(wanted.items() <= event.items() for wanted in asked) for event in others])
    assert 0.03 < np.mean(possible == 0) < 0.12
    assert possible.mean() / len(asked) == pytest.approx(0.06, abs=0.03)


def test_conditions_and_values_repeat() -> None:
    every = [(each.attribute, each.operator, each.values) for rule in rules()[:400] for each in predicates(rule)]
    assert 0.65 < len(set(every)) / len(every) < 0.85
    used = {predicate.attribute for rule in rules()[:400] for predicate in predicates(rule)}
    values = [
        (name, value)
        for event in event_dicts(small().other_events(3_000))
        for name, value in event.items()
        if name in used and name != "Message"
    ]
    assert len(set(values)) / len(values) < 0.3


def test_words_are_found_in_words_only() -> None:
    """What `plant` relies on: a word that is looked for is never part of another, nor of the texts around words."""
    familiar, odd = ({word.plain for word in words.words} for words in (FAMILIAR, ODD))
    assert not familiar & odd
    assert {len(word) for word in familiar | odd} == {6}
    assert (len(familiar), len(odd)) == (400, 2_050)
    for template in templates():
        fixed = re.sub(r"{\w}", "", template).lower()
        assert not re.search(r"{[aAbB]}{[aAbB]}|[a-z]{[aAbB]}|{[aAbB]}[a-z]", template)
        assert not [word for word in familiar | odd if word in fixed]


def templates() -> list[str]:
    """All that texts are made of, those in the code of events as well."""
    fragments = [text for shapes in texts.FRAGMENTS.values() for several in shapes.values() for text in several]
    patterns = [
        text
        for table in (texts.GENERAL, texts.REGEX)
        for several in table.values()
        for pattern in several
        for text in (pattern.sample,)
    ]
    around = ["".join(pair) for pair in texts.AROUND.values()]
    return [
        *fragments,
        *patterns,
        *around,
        *events.ARGUMENTS,
        *events.FOLDERS,
        *events.KEYS,
        *events.NAMES,
        events.MACHINES,
    ]
