"""Correlations over batches of events."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tamis.errors import OptionError
from tamis.sigma import Correlation, Finding, RuleSet
from tamis.sigma.detector import Detector
from tamis.sigma.windows import Occurrence, correlate
from tests.sigma.reading import read, rule

LOGIN = rule("selection: {what: fail}", title="fail", more="name: fail\nlogsource: {product: p}")
SUCCESS = rule("selection: {what: ok}", title="ok", more="name: ok\nlogsource: {product: p}")
RESET = rule("selection: {what: reset}", title="reset", more="name: reset\nlogsource: {product: p}")


def correlation(
    kind: str, rules: str, condition: str | None = None, *, name: str = "c", more: str = "", timespan: str = "1m"
) -> str:
    last = "" if condition is None else f"  condition: {condition}\n"
    return (
        f"title: {name}\nname: {name}\nlevel: high\ncorrelation:\n  type: {kind}\n  rules: {rules}\n  group-by: [user]\n"
        f"  timespan: {timespan}\n{last}{more}"
    )


def found(rules: RuleSet, events: list[tuple[float, str, str] | dict[str, Any]]) -> list[Finding]:
    """What correlations find; an event is its second, user and kind."""
    assert not rules.refused, rules.refused
    given: list[dict[str, Any]] = [
        each if isinstance(each, dict) else {"at": each[0], "user": each[1], "what": each[2]} for each in events
    ]
    occurrences = []
    for order, event in enumerate(given):
        for each in rules.rules:
            if event["what"] == each.title:
                fields = {name: (value,) for name, value in event.items()}
                occurrences.append(Occurrence(round(event["at"] * 1e6), order, each.id, order, fields))
    return correlate(rules.correlations, occurrences)


def places(findings: list[Finding]) -> list[int]:
    return [finding.occurrence.place for finding in findings]


def times(what: str, *seconds: float, user: str = "bob") -> list[tuple[float, str, str] | dict[str, Any]]:
    return [(second, user, what) for second in seconds]


def test_event_count(tmp_path: Path) -> None:
    rules = read(tmp_path, LOGIN, correlation("event_count", "[fail]", "{gte: 3}"))
    assert places(found(rules, times("fail", 0, 30, 59))) == [2]
    assert places(found(rules, times("fail", 0, 30, 60))) == [2]
    assert places(found(rules, times("fail", 0, 30, 61))) == []
    assert places(found(rules, times("fail", 0, 1, 2, 3, 4))) == [2]  # once, while it goes on
    assert places(found(rules, times("fail", 0, 1, 2, 200, 201, 202))) == [2, 5]
    assert places(found(rules, [*times("fail", 0, 1), *times("fail", 2, user="eve"), *times("ok", 3)])) == []
    assert places(found(rules, times("fail", 40, 0, 20))) == [0]  # in the order of their times


def test_what_is_found(tmp_path: Path) -> None:
    rules = read(tmp_path, LOGIN, correlation("event_count", "fail", "{gt: 1}"))
    [finding] = found(rules, times("fail", 5, 6))
    assert (finding.correlation.title, finding.correlation.level) == ("c", "high")
    assert (finding.group, finding.number, finding.since) == ({"user": "bob"}, 2, 5_000_000)


def test_an_event_without_the_field_is_in_no_group(tmp_path: Path) -> None:
    rules = read(tmp_path, LOGIN, correlation("event_count", "fail", "{gte: 2}"))
    assert found(rules, [{"at": 0, "what": "fail"}, {"at": 1, "what": "fail"}]) == []
    everything = read(
        tmp_path, LOGIN, correlation("event_count", "fail", "{gte: 2}").replace("  group-by: [user]\n", "")
    )
    assert places(found(everything, [{"at": 0, "what": "fail"}, {"at": 1, "what": "fail"}])) == [1]


def test_rules_that_serve_a_correlation_are_not_reported(tmp_path: Path) -> None:
    counting = correlation("event_count", "[fail]", "{gte: 3}")
    assert [(each.title, each.reported) for each in read(tmp_path, LOGIN, SUCCESS, counting).rules] == [
        ("fail", False),
        ("ok", True),
    ]
    generating = read(tmp_path, LOGIN, counting + "  generate: true\n")
    assert [each.reported for each in generating.rules] == [True]
    high = read(tmp_path, LOGIN, SUCCESS, counting, level="high")
    assert ([each.title for each in high.rules], high.left_out) == (["fail"], 1)
    assert len(read(tmp_path, LOGIN, SUCCESS, counting, level="critical")) == 0


def test_value_count(tmp_path: Path) -> None:
    rules = read(tmp_path, LOGIN, correlation("value_count", "[fail]", "{gte: 2, field: host}"))
    events = [{"at": at, "user": "bob", "what": "fail", "host": host} for at, host in enumerate("aab")]
    assert places(found(rules, list(events))) == [2]
    assert places(found(rules, [events[0], events[1], {**events[2], "at": 100}])) == []
    both = read(tmp_path, LOGIN, correlation("value_count", "[fail]", "{gte: 2, field: [host, port]}"))
    assert places(found(both, [{**events[0], "port": 1}, {**events[1], "port": 2}])) == [1]


@pytest.mark.parametrize(("kind", "expected"), [("value_sum", [1]), ("value_avg", [2])])
def test_sums_and_averages(kind: str, expected: list[int], tmp_path: Path) -> None:
    rules = read(tmp_path, LOGIN, correlation(kind, "[fail]", "{gt: 10, field: size}"))
    sizes = [10, "0.5", 100, True, "many"]
    events = [{"at": at, "user": "bob", "what": "fail", "size": size} for at, size in enumerate(sizes)]
    assert places(found(rules, list(events))) == expected


def test_temporal(tmp_path: Path) -> None:
    rules = read(tmp_path, LOGIN, SUCCESS, correlation("temporal", "[fail, ok]"))
    assert places(found(rules, [*times("ok", 0), *times("fail", 30)])) == [1]
    assert places(found(rules, [*times("fail", 0), *times("ok", 61)])) == []
    assert places(found(rules, [*times("fail", 0), *times("ok", 1, user="eve")])) == []
    assert places(found(rules, times("fail", 0, 1, 2))) == []


def test_temporal_conditions(tmp_path: Path) -> None:
    two = read(tmp_path, LOGIN, SUCCESS, RESET, correlation("temporal", "[fail, ok, reset]", "{gte: 2}"))
    assert places(found(two, [*times("fail", 0), *times("reset", 1)])) == [1]
    words = read(
        tmp_path, LOGIN, SUCCESS, RESET, correlation("temporal", "[fail, ok, reset]", "fail and (ok or reset)")
    )
    assert places(found(words, [*times("ok", 0), *times("reset", 1), *times("fail", 2)])) == [2]


def test_temporal_ordered(tmp_path: Path) -> None:
    rules = read(tmp_path, LOGIN, SUCCESS, correlation("temporal_ordered", "[fail, ok]"))
    assert places(found(rules, [*times("fail", 0), *times("ok", 30)])) == [1]
    assert places(found(rules, [*times("ok", 0), *times("fail", 30)])) == []
    assert places(found(rules, [*times("fail", 0), *times("ok", 61)])) == []
    assert places(found(rules, [*times("fail", 0, 50), *times("ok", 90)])) == [2]
    assert places(found(rules, [*times("fail", 0), *times("ok", 1, 2), *times("fail", 3), *times("ok", 4)])) == [1, 4]
    assert places(found(rules, [*times("fail", 5), *times("ok", 5)])) == [1]  # in the order of the lines
    twice = read(tmp_path, LOGIN, SUCCESS, correlation("temporal_ordered", "[fail, fail, ok]"))
    assert places(found(twice, [*times("fail", 0), *times("ok", 1)])) == []
    assert places(found(twice, [*times("fail", 0, 1), *times("ok", 2)])) == [2]


def test_an_event_is_one_step_of_a_chain(tmp_path: Path) -> None:
    other = rule("selection: {what: fail}", title="fail", more="name: again\nlogsource: {product: p}")
    rules = read(tmp_path, LOGIN, other, correlation("temporal_ordered", "[fail, again]"))
    assert places(found(rules, times("fail", 0))) == []
    assert places(found(rules, times("fail", 0, 1))) == [1]
    both = read(tmp_path, LOGIN, other, correlation("event_count", "[fail, again]", "{gte: 2}"))
    assert places(found(both, times("fail", 0))) == []
    assert places(found(both, times("fail", 0, 1))) == [1]


def test_correlations_of_correlations(tmp_path: Path) -> None:
    many = correlation("event_count", "[fail]", "{gte: 3}", name="many")
    then = correlation("temporal_ordered", "[many, ok]", name="then")
    for texts in ([then, many], [many, then]):
        rules = read(tmp_path, *texts, LOGIN, SUCCESS)
        assert [(each.title, each.reported) for each in rules.correlations] == [("many", False), ("then", True)]
        assert places(found(rules, [*times("fail", 0, 1, 2), *times("ok", 30)])) == [3]
        assert places(found(rules, [*times("fail", 0, 1), *times("ok", 30)])) == []
        # The first one goes on to hold, so the second one may begin later.
        assert places(found(rules, [*times("fail", 0, 1, 2, 50), *times("ok", 100)])) == [4]


def test_aliases(tmp_path: Path) -> None:
    more = "  aliases:\n    address: {fail: source, ok: target}\n"
    text = correlation("temporal", "[fail, ok]", more=more).replace("[user]", "[address]")
    rules = read(tmp_path, LOGIN, SUCCESS, text)
    events = [
        {"at": 0, "what": "fail", "source": "x", "target": "y"},
        {"at": 1, "what": "ok", "source": "y", "target": "x"},
    ]
    [finding] = found(rules, list(events))
    assert finding.group == {"address": "x"}
    assert found(rules, [events[0], {**events[1], "target": "y"}]) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (correlation("event_count", "[fail]", "{lt: 3}"), "'c': the condition lt is not decided by the events up to now; only gte and gt"),
        (correlation("event_count", "[fail]", "{eq: 3}"), "'c': the condition eq is not decided"),
        (correlation("value_median", "[fail]", "{gte: 3, field: x}"), "'c': value_median is not supported"),
        (correlation("temporal", "[fail, ok]", "fail and not ok"), "'c': `not` asks for rules without events"),
        (correlation("temporal_ordered", "[fail, ok]", "{gte: 1}"), "'c': temporal_ordered needs all of its rules"),
        (correlation("temporal_ordered", "[fail, ok]", "fail or ok"), "'c': a condition of temporal_ordered must be"),
        (correlation("event_count", "[none]", "{gte: 3}"), "'c': Rule 'none' not found in rule collection"),
        (correlation("event_count", "[c]", "{gte: 3}"), "'c': the correlation refers to itself"),
        (correlation("event_count", "[bad]", "{gte: 3}"), "'c': it refers to 'bad', which is refused itself"),
        (correlation("event_count", "[fail]", "{gte: 3}", timespan="1x"), "'c': Timespan '1x' is invalid."),
        (correlation("event_count", "[fail]", "{gte: many}"), "'c': 'many' is no valid Sigma correlation condition count"),
        (correlation("event_count", "[fail]"), "'c': Non-temporal Sigma correlation rule without condition"),
        (correlation("value_count", "[fail]", "{gte: 3}"), "'c': Value count correlation rule without field reference"),
        (correlation("temporal", "[fail, ok]", more="  aliases: {user: {fail: x}}\n"), "'c': the alias user has no field for the rule ok"),
    ],
    ids=range(14),
)  # fmt: skip
def test_what_is_refused(text: str, message: str, tmp_path: Path) -> None:
    bad = rule("selection: {u|expand: '%x%'}", title="bad", more="name: bad\nlogsource: {product: p}")
    found = read(tmp_path, LOGIN, SUCCESS, bad, text)
    assert message in str(found.refused[-1])
    assert not found.correlations


def naive_counts(occurrences: list[Occurrence], each: Correlation) -> list[int]:
    """The events at which a window of all earlier ones is enough and was not before, looked up one by one."""
    ordered = sorted(occurrences, key=lambda one: (one.moment, one.order))
    reported: list[int] = []
    held: dict[Any, bool] = {}
    for place, one in enumerate(ordered):
        user = one.fields["user"]
        window = [
            other
            for other in ordered[: place + 1]
            if other.fields["user"] == user and one.moment - other.moment <= each.microseconds
        ]
        if each.kind == "temporal":
            enough = {other.rule for other in window} == set(each.rules)
        else:
            enough = len({other.order for other in window}) >= each.bound
        if enough and not held.get(user):
            reported.append(one.order)
        held[user] = enough
    return reported


@pytest.mark.parametrize("kind", ["event_count", "temporal"])
def test_windows_of_random_events(kind: str, tmp_path: Path, cases: Callable[[int], int]) -> None:
    condition = "{gte: 3}" if kind == "event_count" else None
    rules = read(tmp_path, LOGIN, SUCCESS, correlation(kind, "[fail, ok]", condition))
    random = Random(5)
    for _ in range(cases(100)):
        occurrences = [
            Occurrence(
                random.randrange(600) * 1_000_000,
                order,
                random.choice(["fail", "ok"]),
                order,
                {"user": (random.choice("ab"),)},
            )
            for order in range(random.randrange(30))
        ]
        own = [one._replace(rule=each.id) for one in occurrences for each in rules.rules if each.title == one.rule]
        found = correlate(rules.correlations, own)
        assert [one.occurrence.order for one in found] == naive_counts(own, rules.correlations[0])


TIMES = ["2026-11-14T10:00:00Z", "2026-11-14 10:00:01", 1794650402, 1794650403000, 1794650404000000]


@pytest.mark.compiled
def test_times_of_events(tmp_path: Path) -> None:
    rules = read(tmp_path, LOGIN, correlation("event_count", "[fail]", "{gte: 5}"))
    detector = Detector(rules, time="at.time")
    events = [{"at": {"time": time}, "user": "bob", "what": "fail"} for time in TIMES]
    assert detector.match(events) == []
    assert (
        detector.match(
            [{"user": "bob", "what": "fail"}, {"at.time": "noon", "user": "bob", "what": "FAIL"}], ["p", "q"]
        )
        == []
    )
    assert [each.place for each in detector.untimed] == ["p", "q"]
    assert detector.untimed[1].reason == "'at.time' is 'noon', which is no time: correlations leave the event out"
    [finding] = detector.correlated()
    assert (finding.occurrence.place, finding.number) == (4, 5)
    assert finding.occurrence.moment - finding.since == 4_000_000


def test_correlations_need_a_time(tmp_path: Path) -> None:
    rules = read(tmp_path, LOGIN, correlation("event_count", "[fail]", "{gte: 5}"))
    with pytest.raises(OptionError, match="'c' is about several events, and needs their time"):
        Detector(rules)
