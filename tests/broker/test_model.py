"""Any series of calls gives what the plain model gives, also after restarts and crashes. `machine` makes the calls."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import tamis
from tests.broker.machine import HISTORIES, JOINED, TEXTS
from tests.broker.machine_calls import PUBLIC, AllCallsMachine
from tests.broker.model import DAY

TestBroker = AllCallsMachine.TestCase
TestBroker.settings = settings(
    max_examples=settings().max_examples // 4,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


_CALLS = {
    "subscribe": 6, "prolong": 2, "change": 5, "remove_subscriber": 0.3, "publish": 8, "publish_many": 2,
    "acknowledge": 1, "read": 2, "wait": 4, "restart": 1, "crash": 1, "compact": 0.7, "go_on_in_a_backup": 0.5,
    "read_in_another_broker": 3, "would_match": 1, "replay": 0.5, "retain": 0.3,
    "publish_top": 2, "publish_table": 2, "listen": 0.5, "deliver": 1, "explain": 1, "subscribe_many": 1, "follow": 1,
    "acknowledge_many": 0.5, "stats_are_the_same": 2, "changes_are_the_same": 2, "lists_are_the_same": 2,
    "events_are_the_same": 1, "what_is_asked": 0.5, "change_later": 2,
}  # fmt: skip


@pytest.mark.parametrize("place", range(4))
def test_a_long_series_of_calls(place: int, soak: bool) -> None:
    """Series that are far longer than Hypothesis makes. Half of them have a history; a soak run makes all, and longer ones."""
    for seed in (place, place + 4) if soak else [place + 4 * (place % 2)]:
        _run(seed, 2000 if soak else 100)


def _run(seed: int, steps: int) -> None:
    random = Random(seed)
    machine = AllCallsMachine()
    retention = [(None, None, False), (40, 10, False), (10, None, False), (None, 10, True)][seed % 4]
    history = None if seed < 4 else HISTORIES[1 + (seed - 4) % (len(HISTORIES) - 1)]
    machine.begin(*retention, history)
    try:
        chosen = random.choices(list(_CALLS), list(_CALLS.values()), k=steps)
        more = random.choices(list(_CALLS), k=600)
        for turn, call in enumerate([*chosen, *more]):
            if turn >= steps and machine.called >= PUBLIC:
                break
            getattr(machine, call)(**_ARGUMENTS[call](random))
            machine.last_notes_are_the_same()
            if turn % 10 == 0:  # Reading all notes takes most of the time.
                machine.notes_are_the_same()
            machine.subscriptions_are_the_same()
        assert machine.called >= PUBLIC, PUBLIC - machine.called
    finally:
        machine.teardown()


def _pair(random: Random) -> dict[str, Any]:
    return {"subscriber": random.choice(["ann", "bob"]), "name": random.choice("ab")}


def _event(random: Random) -> dict[str, Any]:
    values = {
        "price": random.choice([0, 5, 9.5, 15, 20, 30, 2**60, tamis.Interval(8, 12), "free"]),
        "genre": random.choice(["crime", "classics", "poetry"]),
        "tags": random.choice(["new", ["new", "used"], []]),
        "at": random.choice([*range(0, 20, 2), 3.5, "noon"]),
    }
    return {name: value for name, value in values.items() if random.random() < 0.8}


def _bound(random: Random) -> int | None:
    return random.choice([None, 50, 30, 10, 5, 2, 1, 0, -5])


def _columns(random: Random) -> dict[str, Any]:
    return {"price": random.choice([None, 0.0, 9.5, 25.0]), "genre": random.choice([None, "crime", "poetry"])}


_ARGUMENTS: dict[str, Callable[[Random], dict[str, Any]]] = {
    "subscribe": lambda random: {
        **_pair(random),
        "expression": random.choice([*TEXTS, *JOINED]),
        "weight": random.choice([None, 3]),
        "bounds": random.choice([None, (_bound(random), _bound(random))]),
    },
    "prolong": lambda random: {**_pair(random), "until": _bound(random)},
    "change": lambda random: {**_pair(random), "call": random.choice(["unsubscribe", "pause", "pause", "resume", "resume"])},
    "remove_subscriber": lambda random: {"subscriber": random.choice(["ann", "bob"])},
    "publish": lambda random: {
        "event": _event(random), "until": _bound(random), "key": random.choice([None, None, "k1", "k2"])
    },
    "publish_many": lambda random: {
        "events": [_event(random) for _ in range(random.choice([0, 1, 5, 70]))], "until": _bound(random)
    },
    "acknowledge": lambda random: {"subscriber": random.choice(["ann", "bob"]), "share": random.uniform(0, 1.2)},
    "read": lambda random: {"subscriber": random.choice(["ann", "bob"]), "after": random.choice([None, 0, 1, 5])},
    "wait": lambda random: {"seconds": random.choice([1, 1, 1, 2, 2, 5, 5, 10, 10, 40, 1000, DAY])},
    "compact": lambda random: {},
    "retain": lambda random: {
        "max_age": random.choice([None, 10, 40]),
        "max_notes": random.choice([None, 3, 10]),
        "refuses": random.random() < 0.3,
    },
    "go_on_in_a_backup": lambda random: {},
    "read_in_another_broker": lambda random: {},
    "would_match": lambda random: {"event": _event(random)},
    "replay": lambda random: {"expression": random.choice([*TEXTS, *JOINED])},
    "publish_top": lambda random: {"event": _event(random), "until": _bound(random), "k": random.choice([1, 2, 3])},
    "publish_table": lambda random: {
        "events": [
            (_columns(random), _bound(random), random.choice([None, None, "k1", "k3"]))
            for _ in range(random.choice([0, 1, 5, 70]))
        ],
        "is_table": random.random() < 0.5,
        "k": random.choice([None, 1, 2]),
    },
    "listen": lambda random: {"event": _event(random)},
    "deliver": lambda random: {
        "events": [(_event(random), random.randrange(16)) for _ in range(random.randrange(4))], "later": random.randrange(3)
    },
    "explain": lambda random: {"subscriber": random.choice(["ann", "bob"]), "own": random.choice("ab"), "share": random.random()},
    "subscribe_many": lambda random: {
        "rows": [
            (*pair, random.choice(TEXTS))
            for pair in random.sample([("ann", "a"), ("bob", "a"), ("bob", "b")], random.randrange(4))
        ]
    },
    "follow": lambda random: {
        "subscriber": random.choice(["ann", "bob"]), "most": random.randrange(1, 6), "event": _event(random)
    },
    "acknowledge_many": lambda random: {"shares": {"ann": random.uniform(0, 1.1), "bob": random.uniform(0, 1.1)}},
    "stats_are_the_same": lambda random: {},
    "changes_are_the_same": lambda random: {"after": random.randrange(300), "limit": random.choice([None, 0, 2])},
    "lists_are_the_same": lambda random: {**_pair(random), "search": random.choice(["", "ANN", "genre", "bob"])},
    "events_are_the_same": lambda random: {"number": random.randrange(500)},
    "what_is_asked": lambda random: {},
    "change_later": lambda random: {
        "seconds": random.choice([1, 5, 10]), **_pair(random), "call": random.choice(["unsubscribe", "pause", "resume"])
    },
    "restart": lambda random: {},
    "crash": lambda random: {},
}  # fmt: skip
