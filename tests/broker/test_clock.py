"""A clock that is set back: time stands still, numbers go on, and nobody is told twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tamis
from tamis.broker import Broker
from tests.broker.folders import copy_folder

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def going_on(broker: Broker, path: Path, clock: Clock) -> Broker:
    return broker


def closed(broker: Broker, path: Path, clock: Clock) -> Broker:
    broker.close()
    return tamis.open(path, clock=clock)


def killed(broker: Broker, path: Path, clock: Clock) -> Broker:
    copy = copy_folder(path, path.with_name("copy"))
    broker.close()
    return tamis.open(copy, clock=clock)


@pytest.mark.parametrize("restarted", [going_on, closed, killed])
@pytest.mark.parametrize("last", ["event", "change", "beginning"])
def test_a_clock_that_is_set_back(tmp_path: Path, restarted: Callable[..., Broker], last: str) -> None:
    clock = Clock()
    broker = tamis.open(tmp_path / "shop", clock=clock)
    broker.subscribe("ann", "ended", "price > 0", valid_until=at(10))
    broker.subscribe("ann", "begun", "price > 0", valid_from=at(15 if last == "beginning" else 5))
    broker.publish({"price": 1}, valid_until=at(12), key="once")
    clock.seconds = 20
    if last == "event":
        broker.publish({"price": 2})
    elif last == "change":
        broker.subscribe("bob", "none", "price < 0")
    else:
        assert broker.stats()["active"] == 1
    told = [(note.event_sequence, note.subscriptions) for note in broker.notifications("ann", 0)]

    clock.seconds = -3600
    broker = restarted(broker, tmp_path / "shop", clock)
    assert broker.stats()["active"] == 1 + (last == "change")
    assert [(note.event_sequence, note.subscriptions) for note in broker.notifications("ann", 0)] == told
    count = broker.stats()["last_event"]
    receipt = broker.publish({"price": 3})
    assert (receipt.sequence, list(receipt.matches)) == (count + 1, [("ann", "begun")])
    assert broker.event(count + 1).published == at(20)
    assert broker.publish({"price": 1}, key="once").sequence == 1
    # The first event ended at 12.
    broker.subscribe("eve", "new", "price > 0")
    assert list(broker.notifications("eve", 0)) == []
    # Time goes on when the clock has caught up.
    broker.subscribe("eve", "later", "price > 0", valid_from=at(30))
    clock.seconds = 25
    assert list(broker.publish({"price": 4}, valid_until=at(40)).matches) == [("ann", "begun"), ("eve", "new")]
    clock.seconds = 31
    assert [note.subscriptions for note in broker.notifications("eve", 0)] == [("new",), ("later",)]
    assert [note.sequence for note in broker.notifications("ann", 0)] == list(range(1, len(told) + 3))
    broker.close()


def test_what_has_ended_stays_so_after_closing(tmp_path: Path) -> None:
    """Nothing was stored after the end. The broker has only looked."""
    clock = Clock()
    with tamis.open(tmp_path / "shop", clock=clock) as broker:
        broker.subscribe("ann", "ended", "price > 0", valid_until=at(10))
        broker.publish({"price": 1}, valid_until=at(10))
        clock.seconds = 20
        assert [note.expired for note in broker.notifications("ann")] == [True]
    clock.seconds = 5
    for read_only in (True, False):
        with tamis.open(tmp_path / "shop", clock=clock, read_only=read_only) as broker:
            assert [note.expired for note in broker.notifications("ann")] == [True]
            assert broker.stats()["active"] == 0
    with tamis.open(tmp_path / "shop", clock=clock) as broker:
        assert not broker.publish({"price": 2}).matches


def test_a_clock_that_was_far_ahead_is_a_problem(tmp_path: Path) -> None:
    clock = Clock()
    clock.seconds = 73 * 365 * 86400
    with tamis.open(tmp_path / "shop", clock=clock) as broker:
        broker.publish({"price": 1})
        assert broker.stats()["problem"] is None
    clock.seconds = 0
    for read_only in (True, False):
        with tamis.open(tmp_path / "shop", clock=clock, read_only=read_only) as broker:
            assert "is 2099-10-31 12:00:00+00:00, which is 26645 days, 0:00:00 ahead of" in broker.stats()["problem"]


def test_notes_that_retention_has_hidden_stay_hidden(tmp_path: Path) -> None:
    clock = Clock()
    with tamis.open(tmp_path / "shop", clock=clock) as broker:
        broker.retain(max_age=timedelta(seconds=10))
        broker.subscribe("ann", "all", "price > 0")
        broker.publish({"price": 1})
        clock.seconds = 20
        broker.publish({"price": 2})
        assert [note.sequence for note in broker.notifications("ann", 0)] == [2]
    clock.seconds = 0
    with tamis.open(tmp_path / "shop", clock=clock) as broker:
        assert [note.sequence for note in broker.notifications("ann", 0)] == [2]


@pytest.mark.parametrize("call", ["pause", "resume"])
def test_a_change_right_after_a_subscription_began(tmp_path: Path, call: str) -> None:
    """Nobody has called the broker in between, so that the change is the first to notice."""
    clock = Clock()
    with tamis.open(tmp_path / "shop", clock=clock) as broker:
        broker.publish({"price": 1}, valid_until=at(100))
        broker.subscribe("ann", "low", "price < 10", valid_from=at(5))
        if call == "resume":
            broker.pause("ann", "low")
        clock.seconds = 6
        getattr(broker, call)("ann", "low")
        broker.publish({"price": 2})
        expected = [1] if call == "pause" else [1, 2]
        assert [note.event_sequence for note in broker.notifications("ann", 0)] == expected
        broker.resume("ann", "low")
        broker.publish({"price": 3})
        assert [note.event_sequence for note in broker.notifications("ann", 0)] == [*expected, 3]
