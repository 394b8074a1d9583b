"""A broker that only reads says whether anyone wants an event."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tamis
from tamis.broker import Broker
from tamis.broker.limits import BrokerLimits
from tamis.errors import BrokerError, EventError

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
SEEN = "author = ANY (SELECT author FROM history)"


class Watch:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def after(self, seconds: float) -> datetime:
        return NOON + timedelta(seconds=seconds)


@pytest.fixture
def watch() -> Watch:
    return Watch()


def wanted(reader: Broker) -> list[int]:
    """The prices that somebody wants."""
    return [price for price in range(10) if reader.would_match({"price": price})]


@pytest.mark.parametrize("changes_to_save", [1, 1000], ids=["a saved matcher", "tables alone"])
def test_it_follows_what_another_broker_changes(tmp_path: Path, watch: Watch, changes_to_save: int) -> None:
    limits = BrokerLimits(changes_to_save=changes_to_save)
    with Broker(tmp_path, clock=watch, limits=limits) as broker:
        broker.subscribe("ann", "low", "price < 2")
        broker.subscribe("ann", "high", "price > 7")
    assert bool(list(tmp_path.glob("matcher-*"))) == (changes_to_save == 1)
    with Broker(tmp_path, clock=watch) as broker, Broker(tmp_path, clock=watch, read_only=True) as reader:
        assert wanted(reader) == [0, 1, 8, 9]
        assert reader.attributes() == {"price"}
        broker.subscribe("bob", "one", "price = 5")
        broker.pause("ann", "high")
        assert wanted(reader) == [0, 1, 5]
        broker.resume("ann", "high")
        broker.subscribe("ann", "low", "price = 3 AND shop IS NULL")
        assert wanted(reader) == [3, 5, 8, 9]
        assert reader.attributes() == {"price", "shop"}
        broker.remove_subscriber("ann")
        assert wanted(reader) == [5]
        assert reader.attributes() == {"price"}
        broker.unsubscribe("bob", "one")
        assert wanted(reader) == []
        assert reader.attributes() == set()
        with pytest.raises(BrokerError, match="read_only"):
            reader.publish({"price": 1})


def test_subscriptions_begin_and_end_though_nobody_writes(tmp_path: Path, watch: Watch) -> None:
    with Broker(tmp_path, clock=watch) as broker:
        broker.subscribe("ann", "later", "price = 1", valid_from=watch.after(10), valid_until=watch.after(20))
        broker.subscribe("ann", "now", "price = 2", valid_until=watch.after(15))
        broker.subscribe("ann", "asleep", "price = 3", valid_from=watch.after(10))
        broker.pause("ann", "asleep")
    with Broker(tmp_path, clock=watch, read_only=True) as reader:
        for seconds, prices in ((0, [2]), (9, [2]), (10, [1, 2]), (15, [1]), (20, [])):
            watch.now = watch.after(seconds)
            assert wanted(reader) == prices
    with Broker(tmp_path, clock=watch, read_only=True) as reader:
        assert wanted(reader) == []


def test_it_knows_the_earlier_events(tmp_path: Path, watch: Watch) -> None:
    with Broker(tmp_path, clock=watch) as broker, Broker(tmp_path, clock=watch, read_only=True) as reader:
        broker.subscribe("ann", "any", "price = 1")
        assert wanted(reader) == [1]
    with Broker(tmp_path, clock=watch, read_only=True) as reader:
        assert wanted(reader) == [1]
        with Broker(tmp_path, clock=watch, history=tamis.History(rows=2)) as broker:
            broker.subscribe("ann", "seen", SEEN)
            assert not reader.would_match({"author": "Verne"})
            broker.publish({"author": "Verne"})
            assert reader.would_match({"author": "Verne"})
            broker.publish_many([{"author": "Woolf"}, {"author": "Austen"}])
            assert not reader.would_match({"author": "Verne"})
            assert reader.would_match({"author": "Austen"})
            assert [broker.would_match({"author": name}) for name in ("Verne", "Austen")] == [False, True]


def test_a_wrong_event_is_an_error(tmp_path: Path, watch: Watch) -> None:
    with Broker(tmp_path, clock=watch) as broker:
        broker.subscribe("ann", "any", "price = 1")
    with Broker(tmp_path, clock=watch, read_only=True) as reader:
        with pytest.raises(EventError, match="price"):
            reader.would_match({"price": 2**70})
        assert wanted(reader) == [1]
    with pytest.raises(BrokerError, match="closed"):
        reader.would_match({"price": 1})
