"""Events that were matched elsewhere: each batch is stored and told once, and survives reopening."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.broker import Broker, open
from tamis.broker.delivering import StoredText


class Watch:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 18, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def broker(tmp_path: Path, watch: Watch) -> Iterator[Broker]:
    """Two subscribers. Subscriptions have the numbers 1, 2 and 3."""
    with open(tmp_path / "shop", clock=watch) as shop:
        shop.subscribe("ann", "crime", "genre = 'crime'")
        shop.subscribe("ann", "cheap", "price < 20")
        shop.subscribe("bob", "all", "price > 0")
        yield shop


def told(broker: Broker, subscriber: str) -> list[tuple[int, Any, tuple[str, ...]]]:
    return [(note.sequence, note.event, note.subscriptions) for note in broker.notifications(subscriber, after=0)]


def test_a_batch_is_told_as_the_stream_found_it(broker: Broker) -> None:
    # Nobody matches these events again: ann's `cheap` is told though the price is not below 20.
    assert broker.deliver([({"price": 30}, [2, 1, 2]), ({"price": 5}, [3])], source="spark", batch=0)
    assert told(broker, "ann") == [(1, {"price": 30}, ("cheap", "crime"))]
    assert told(broker, "bob") == [(1, {"price": 5}, ("all",))]
    receipt = broker.publish({"price": 10})
    assert receipt.sequence == 3
    assert told(broker, "bob")[1:] == [(2, {"price": 10}, ("all",))]


def test_a_repeated_batch_is_not_told_again(broker: Broker) -> None:
    matched = [({"price": 5}, [3])]
    assert broker.last_batch("spark") is None
    assert broker.deliver(matched, source="spark", batch=4)
    assert not broker.deliver(matched, source="spark", batch=4)
    assert not broker.deliver(matched, source="spark", batch=3)
    assert broker.last_batch("spark") == 4
    assert broker.deliver(matched, source="another", batch=0)
    assert broker.deliver([], source="spark", batch=5)
    assert not broker.deliver(matched, source="spark", batch=5)
    assert [sequence for sequence, _, _ in told(broker, "bob")] == [1, 2]


def test_batches_survive_reopening(broker: Broker, tmp_path: Path, watch: Watch) -> None:
    broker.deliver([({"price": 5}, [2, 3]), ({"price": 6}, [3])], source="spark", batch=0)
    before = told(broker, "ann"), told(broker, "bob")
    with open(tmp_path / "shop", read_only=True, clock=watch) as reader:
        assert (told(reader, "ann"), told(reader, "bob")) == before
        assert reader.last_batch("spark") == 0
        broker.deliver([({"price": 7}, [3])], source="spark", batch=1)
        assert told(reader, "bob")[2:] == [(3, {"price": 7}, ("all",))]
    broker.close()
    with open(tmp_path / "shop", clock=watch) as again:
        assert told(again, "ann") == before[0]
        assert not again.deliver([({"price": 7}, [3])], source="spark", batch=1)
        assert again.stats()["notes"] == 4


def test_a_removed_or_paused_subscription_is_left_out(broker: Broker) -> None:
    broker.unsubscribe("ann", "crime")
    broker.pause("bob", "all")
    broker.deliver([({"n": 1}, [1, 2, 3]), ({"n": 2}, [1, 3])], source="spark", batch=0)
    assert told(broker, "ann") == [(1, {"n": 1}, ("cheap",))]
    assert told(broker, "bob") == []
    broker.resume("bob", "all")
    broker.subscribe("ann", "crime", "n = 3")
    broker.deliver([({"n": 3}, [1, 3])], source="spark", batch=1)
    assert told(broker, "ann")[1:] == [(2, {"n": 3}, ("crime",))]
    assert told(broker, "bob") == [(1, {"n": 3}, ("all",))]


def test_a_subscription_that_has_ended_meanwhile_is_told(broker: Broker, watch: Watch) -> None:
    broker.subscribe("ann", "cheap", valid_until=watch.time + timedelta(hours=1))
    watch.time += timedelta(hours=2)
    broker.deliver([({"n": 1}, [2])], source="spark", batch=0)
    assert told(broker, "ann") == [(1, {"n": 1}, ("cheap",))]


def test_a_wrong_batch_changes_nothing(broker: Broker) -> None:
    right = ({"n": 1}, [3])
    wrong: list[tuple[Any, type[Exception], str]] = [
        (({"n": 1}, [3, 4]), tamis.UnknownIdError, "no subscription with the number 4"),
        (({"n": 1}, [0]), tamis.UnknownIdError, "no subscription with the number 0"),
        (({"n": 1}, ["ann"]), tamis.OptionError, "delivery 1 must have a list of numbers"),
        (({"n": 1}, 3), tamis.OptionError, "delivery 1 must have a list of numbers"),
        (({"n": object()}, [3]), tamis.EventError, "event 1, attribute 'n': object cannot be stored"),
        (({"n": 1},), tamis.OptionError, "delivery 1 must be a pair"),
    ]
    for pair, error, message in wrong:
        with pytest.raises(error, match=message):
            broker.deliver([right, pair], source="spark", batch=0)
    with pytest.raises(tamis.IdTypeError, match="the name of a stream"):
        broker.deliver([right], source="", batch=0)
    with pytest.raises(tamis.OptionError, match="`batch` must be a number from 0 on"):
        broker.deliver([right], source="spark", batch=-1)
    assert broker.last_batch("spark") is None
    assert broker.stats()["last_event"] == 0


def test_a_full_queue_refuses_a_batch(broker: Broker) -> None:
    broker.retain(max_notes=2, when_full="refuse publish")
    three = [({"n": n}, [3]) for n in range(3)]
    with pytest.raises(tamis.errors.QueueFullError, match="'bob' has 2 notes"):
        broker.deliver(three, source="spark", batch=0)
    assert told(broker, "bob") == []
    assert broker.deliver(three[:2], source="spark", batch=0)
    broker.acknowledge("bob", 2)
    assert broker.deliver(three[2:], source="spark", batch=1)


def test_an_event_that_is_text_already_is_stored_as_it_is(broker: Broker) -> None:
    broker.deliver([(StoredText('{"at":{"$date":"2026-11-18"}}'), [3])], source="spark", batch=0)
    ((_, event, _),) = told(broker, "bob")
    assert event == {"at": datetime(2026, 11, 18).date()}


def test_a_subscription_that_begins_later_is_not_told(tmp_path: Path) -> None:
    with open(tmp_path / "shop") as broker:
        broker.subscribe("ann", "later", "price > 0", valid_from=datetime(2999, 1, 1, tzinfo=UTC))
        (change,) = broker.changes()
        broker.deliver([({"price": 1}, [change.id])], source="spark", batch=0)
        assert list(broker.notifications("ann")) == []
