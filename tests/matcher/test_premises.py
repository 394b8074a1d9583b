"""Events that lack a premise of an attribute do not need its values. Nothing else changes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis import EventError, Matcher
from tamis.encoding.dimensions.premises import MOST_PREMISES
from tamis.encoding.events.needed_strings import not_needed
from tamis.language.evaluate import matches
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.limits import USUAL_STORE_LIMITS
from tamis.matcher.matcher import matcher_over, new_store

pytestmark = pytest.mark.kernels

KINDS = ("start", "load", "write", "x")
HOSTS = ("a", "b", "c")
TEXTS = ("cmd.exe -enc", "C:\\x.dll", "powershell IEX", "", "ä", "start")
CONDITIONS = (
    "cmd LIKE '%enc%'",
    "cmd ILIKE '%IEX%'",
    "NOT cmd LIKE '%x%'",
    "cmd IS NULL",
    "path ILIKE '%.dll'",
    "path RLIKE 'x.*e'",
    "size > 5",
    "size IS NOT NULL",
    "path <> 'start'",
    "(cmd = 'start' OR path LIKE '%x%' OR size = 3)",
    "NOT (path LIKE 'C%' AND size = 3)",
)
PREMISES = (
    "kind = '{kind}'",
    "kind = '{kind}' AND host = '{host}'",
    "kind IN ('{kind}', 'load')",
    "host = '{host}'",
    "kind LIKE '{kind}%'",
    "kind <> '{kind}'",
    "(kind = '{kind}' OR host = '{host}')",
)


def rule(rng: random.Random, without: float = 0.1) -> str:
    parts = rng.sample(CONDITIONS, rng.randrange(1, 4))
    if rng.random() >= without:
        premise = rng.choice(PREMISES[:4] if without == 0 else PREMISES)
        parts.insert(0, premise.format(kind=rng.choice(KINDS), host=rng.choice(HOSTS)))
    if rng.random() < 0.2:  # too large for clauses alone: its tree is kept
        many = " AND ".join(f"({' OR '.join(rng.sample(CONDITIONS, 5))})" for _ in range(4))
        parts.append(many)
    if rng.random() < 0.1:
        return f"({' AND '.join(parts)}) OR ({rule(rng, without)})"
    return " AND ".join(parts)


def event(rng: random.Random) -> dict[str, Any]:
    every = {
        "kind": rng.choice((*KINDS, ["start", "load"], 5)),
        "host": rng.choice(HOSTS),
        "cmd": rng.choice((*TEXTS, 7, ["cmd.exe", "x"])),
        "path": rng.choice(TEXTS),
        "size": rng.choice((3, 9, "9")),
    }
    return {name: value for name, value in every.items() if rng.random() < 0.8}


def store_of(**limits: Any) -> EngineStore:
    store = new_store(limits=USUAL_STORE_LIMITS._replace(few_mappings=0, **limits))
    assert isinstance(store, EngineStore)
    return store


def matcher_of() -> Matcher[int]:
    return matcher_over(store_of())


def check(matcher: Matcher[int], living: dict[int, str], events: list[dict[str, Any]]) -> int:
    """Compare all ways of matching with the reference evaluator; returns the number of decisions."""
    rules = {number: tamis.parse(text) for number, text in living.items()}
    expected = sorted(
        (row, number) for row, each in enumerate(events) for number in rules if matches(rules[number], each)
    )
    lines = "\n".join(map(json.dumps, events))
    simple = [row for row, each in enumerate(events) if all(type(value) is str for value in each.values())]
    table = pa.table(
        {name: [events[row].get(name) for row in simple] for name in ("kind", "host", "cmd", "path", "size")}
    )
    for found in (matcher.match_batch(events, 2), matcher.match_json_batch(lines, 1)):
        assert sorted(zip(*found.to_pydict().values(), strict=True)) == expected
    found = [
        (simple[row], number) for row, number in zip(*matcher.match_batch(table, 1).to_pydict().values(), strict=True)
    ]
    assert sorted(found) == [pair for pair in expected if pair[0] in set(simple)]
    one = [(row, number) for row, each in enumerate(events) for number in matcher.match(each)]
    assert sorted(one) == expected
    return len(events) * len(rules)


def premises(store: EngineStore) -> dict[str, Any]:
    return dict(store.dimensions.premises.of)


@pytest.mark.parametrize("without", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(3))
def test_rules_that_come_and_go(seed: int, without: float) -> None:
    rng = random.Random(f"{seed} {without}")
    store = store_of(gone_per_look=8)
    matcher: Matcher[int] = matcher_over(store)
    living: dict[int, str] = {}
    decisions = guarded = 0
    for turn in range(12):
        added = {100 * turn + place: rule(rng, without) for place in range(rng.choice((1, 1, 2, 12)))}
        if rng.random() < 0.5:
            matcher.add_many(list(added), list(added.values()))
        else:
            for number, text in added.items():
                matcher.add(number, text)
        living |= added
        for number in rng.sample(sorted(living), len(living) // 4):
            matcher.remove(number)
            del living[number]
        decisions += check(matcher, living, [event(rng) for _ in range(30)])
        guarded += any(each is not None for each in premises(store).values())
    assert decisions > 2_000
    assert guarded or without


def test_what_a_premise_is() -> None:
    store = store_of()
    matcher: Matcher[int] = matcher_over(store)
    matcher.add_many(
        [1, 2, 3, 4],
        [
            "kind = 'start' AND cmd LIKE '%x%'",
            "kind IN ('load', 'write') AND host = 'a' AND path LIKE '%x%' AND NOT cmd LIKE '%y%'",
            "size > 5",
            "(kind = 'x' AND note LIKE '%x%') OR (kind = 'start' AND note LIKE '%y%')",
        ],
    )
    matcher.match({})
    start, load, write, other = (("kind", each) for each in ("start", "load", "write", "x"))
    assert premises(store) == {
        "kind": None,
        "size": None,
        "host": {start, load, write}.symmetric_difference({start}),
        "path": {load, write},
        "cmd": {start, load, write},
        "note": {other, start},
    }
    matcher.add(5, "cmd LIKE '%z%'")
    matcher.match({})
    assert premises(store)["cmd"] is None
    assert matcher.match_batch([{"cmd": "z"}], 1)["subscription"].to_pylist() == [5]


def test_a_plain_subscription_without_a_premise_counts() -> None:
    matcher = matcher_of()
    matcher.add_many([1, 2], ["kind = 'start' AND size > 5", "kind = 'load' AND size > 7"])
    matcher.add(3, "size > 5")
    assert matcher.match_batch([{"size": 6}, {"size": 6, "kind": "start"}], 1)["subscription"].to_pylist() == [3, 1, 3]


def test_a_failed_call_leaves_no_premises() -> None:
    matcher = matcher_of()
    with pytest.raises(tamis.TamisError):
        matcher.add_many([1, 1], ["kind = 'start' AND size > 5", "kind = 'start' AND size > 6"])
    matcher.add(3, "size > 5")
    matcher.add_many([4], ["kind = 'start' AND size > 5"])
    assert matcher.match_batch([{"size": 6}], 1)["subscription"].to_pylist() == [3]


def test_many_premises_are_none() -> None:
    store = store_of()
    matcher: Matcher[int] = matcher_over(store)
    texts = [f"kind = 'k{number}' AND cmd LIKE '%x{number}%'" for number in range(MOST_PREMISES + 1)]
    matcher.add_many(range(MOST_PREMISES), texts[:-1])
    assert len(premises(store)["cmd"]) == MOST_PREMISES
    matcher.add_many([MOST_PREMISES], texts[-1:])
    assert premises(store)["cmd"] is None


def test_a_matcher_from_a_file_needs_all_attributes(tmp_path: Path) -> None:
    matcher = matcher_of()
    matcher.add_many([1, 2], ["kind = 'start' AND cmd LIKE '%x%'", "kind = 'load' AND cmd LIKE '%y%'"])
    matcher.save(tmp_path / "rules.tamis")
    loaded: Matcher[int] = tamis.load(tmp_path / "rules.tamis")
    loaded.add_many([3], ["kind = 'write' AND cmd LIKE '%z%'"])
    events = [{"kind": kind, "cmd": "xyz"} for kind in ("start", "load", "write", "x")] * 50
    found = loaded.match_batch(events, 1).to_pydict()
    assert found["subscription"] == [1, 2, 3] * 50


def test_values_that_no_event_needs_are_still_checked() -> None:
    matcher = matcher_of()
    matcher.add_many([1], ["kind = 'start' AND cmd LIKE '%x%'"])
    for wrong in ("\ud800", 2**64):
        with pytest.raises(EventError) as caught:
            matcher.match_batch([{"kind": "x", "cmd": "x"}, {"kind": "x", "cmd": wrong}], 1)
        assert (caught.value.row, caught.value.attribute) == (1, "cmd")
    bad = pa.array([b"x", b"\xff"]).view(pa.string())
    with pytest.raises(EventError) as caught:
        matcher.match_batch(pa.table({"kind": ["x", "x"], "cmd": bad}), 1)
    assert (caught.value.row, caught.value.attribute) == (1, "cmd")


def test_mismatched_attributes_are_counted_as_before() -> None:
    one, many = matcher_of(), matcher_of()
    for each in (one, many):
        each.add_many([1], ["kind = 'start' AND cmd LIKE '%x%' AND size > 5"])
    events = [{"kind": kind, "cmd": value, "size": "9"} for kind in ("start", "x") for value in (5, "x")] * 10
    for each_event in events:
        one.match(each_event)
    many.match_batch(events, 1)
    assert one.stats()["mismatched"] == many.stats()["mismatched"] > 0


def test_single_events_leave_out_what_they_do_not_need() -> None:
    store = store_of()
    matcher: Matcher[int] = matcher_over(store)
    matcher.add_many(
        [1, 2, 3, 4],
        [
            "source.kind = 'start' AND cmd LIKE '%x%'",
            "source.kind IN ('load', 'write') AND cmd = 'xy' AND size IS NULL",
            "source.kind = 'load' AND ip_in(cmd, '10.0.0.0/8')",
            "source.kind = 'start' AND note = 'x' AND size > 7",
        ],
    )
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({"source.kind": "start", "cmd": "xy", "note": "x", "size": 9}, [1, 4]),
        ({"source.kind": "load", "cmd": "xy", "note": "x"}, [2]),
        ({"source.kind": "load", "cmd": "10.1.2.3", "size": "x"}, [3]),
        ({"source.kind": "other", "cmd": "xy", "note": "x"}, []),
        ({"source": {"kind": "start"}, "cmd": "xy"}, [1]),
        ({"source.kind": ["write", "start"], "cmd": "xy"}, [1, 2]),
        ({"source": [{"kind": "write"}], "source.kind": None, "cmd": "xy"}, [2]),
        ({"source.kind": 5, "cmd": "xy"}, []),
        ({"cmd": "xy", "note": "x"}, []),
    ]
    for given, expected in cases * 2:
        assert sorted(matcher.match(given)) == expected
    lacking = not_needed({"source.kind": "other"}, store.dimensions)
    assert set(lacking) == {"note", "size"}  # Strings of `cmd` may be addresses, which are counted.
    assert set(not_needed({"source.kind": "start"}, store.dimensions)) == set()
    assert set(not_needed({"source.kind": "load"}, store.dimensions)) == {"note"}
    assert not not_needed({"source": {}}, store.dimensions)


def test_strings_that_a_single_event_does_not_need_are_still_checked() -> None:
    matcher = matcher_of()
    matcher.add_many([1], ["kind = 'start' AND cmd LIKE '%x%'"])
    with pytest.raises(EventError) as caught:
        matcher.match({"kind": "x", "cmd": "\ud800"})
    assert caught.value.attribute == "cmd"
