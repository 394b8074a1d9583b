"""Calls that look at parts of a broker: pages, figures of queues, one event, listeners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.broker import Broker
from tamis.broker import open as open_broker
from tamis.errors import BrokerError, IdTypeError, OptionError, UnknownIdError


@pytest.fixture(params=["folder", "memory"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    with open_broker(tmp_path / "shop" if request.param == "folder" else ":memory:") as found:
        found.subscribe("ann", "crime", "genre = 'Crime'", weight=2)
        found.subscribe("ann", "cheap", "price < 20")
        found.subscribe("Bob", "all", "TRUE")
        found.subscribe("bob", "none", "genre = 'poetry'")
        yield found


def test_pages_of_subscriptions(broker: Broker) -> None:
    assert [each.subscription for each in broker.find_subscriptions()] == list(broker.subscriptions())
    first = broker.find_subscriptions(limit=3)
    assert [each.number for each in first] == [1, 2, 3]
    assert [each.number for each in broker.find_subscriptions(after=3, limit=3)] == [4]
    broker.unsubscribe("ann", "cheap")
    assert [each.number for each in broker.find_subscriptions(limit=2)] == [1, 3]


@pytest.mark.parametrize(
    ("search", "found"),
    [("CRIME", [1]), ("bob", [3, 4]), ("price < 20", [2]), ("e", [1, 2, 3, 4]), ("%", []), ("_", [])],
)
def test_search(broker: Broker, search: str, found: list[int]) -> None:
    assert [each.number for each in broker.find_subscriptions(search)] == found


def test_search_among_those_of_a_subscriber(broker: Broker) -> None:
    assert [each.number for each in broker.find_subscriptions(subscriber="ann")] == [1, 2]
    assert [each.number for each in broker.find_subscriptions("cheap", subscriber="ann")] == [2]
    with pytest.raises(UnknownIdError):
        broker.find_subscriptions(subscriber="eve")


def test_one_subscription(broker: Broker) -> None:
    assert broker.subscription("ann", "crime") == next(broker.subscriptions("ann"))
    assert broker.numbered("ann", "crime").number == 1
    assert broker.names(1) == ("ann", "crime")
    for number in (0, 5):
        with pytest.raises(UnknownIdError):
            broker.names(number)


def test_figures_of_queues(broker: Broker) -> None:
    for price in range(30):
        broker.publish({"price": price})
    broker.acknowledge("ann", 5)
    ann = broker.subscriber("ann")
    assert (ann.cursor, ann.first, ann.last, ann.waiting) == (5, 1, 20, 15)
    assert [each.name for each in broker.find_subscribers()] == ["ann", "Bob", "bob"]
    assert [each.name for each in broker.find_subscribers("bob", after=2)] == ["bob"]
    assert broker.find_subscribers(limit=1) == [ann]
    total, deepest = broker.deepest(1)
    assert (total, deepest) == (45, [broker.subscriber("Bob")])
    broker.retain(max_notes=10)
    ann = broker.subscriber("ann")
    assert (ann.first, ann.last, ann.waiting) == (11, 20, 10)
    broker.remove_subscriber("ann")
    with pytest.raises(UnknownIdError):
        broker.subscriber("ann")
    assert [each.name for each in broker.find_subscribers()] == ["Bob", "bob"]


def test_one_event(broker: Broker) -> None:
    broker.publish({"genre": "Crime", "price": 3})
    found = broker.event(1)
    assert (found.sequence, found.event, found.matches) == (1, {"genre": "Crime", "price": 3}, 3)
    with pytest.raises(UnknownIdError, match="no event 2"):
        broker.event(2)


def test_listeners_are_told_of_notes(broker: Broker) -> None:
    told: list[tuple[list[int], list[int]]] = []
    leave = broker.listen(lambda subscribers, names: told.append((subscribers.tolist(), sorted(names.tolist()))))
    broker.publish({"price": 3})
    broker.subscribe("eve", "late", "price = 3")
    assert [(sorted(subscribers), names) for subscribers, names in told] == [([1, 2], [2, 3])]
    leave()
    leave()
    broker.publish({"price": 3})
    assert len(told) == 1


def test_an_error_of_a_listener_harms_nobody(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    told: list[int] = []

    def fails(subscribers: object, names: object) -> None:
        raise ZeroDivisionError

    broker.listen(fails)
    broker.listen(lambda subscribers, names: told.append(len(names)))
    receipt = broker.publish({"price": 3})
    assert [len(receipt.matches)] == told
    assert "a listener" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_costs_name_subscriptions_that_are_indexed() -> None:
    with open_broker(":memory:") as broker:
        broker.subscribe_many({"subscriber": "eve", "name": f"n{n}", "expression": f"a = {n}"} for n in range(8_000))
        broker.publish({"a": 1})
        costs = broker.costs(50)
        assert 0 < len(costs) <= 50
        assert costs == sorted(costs, key=lambda pair: -pair[1])
        broker.remove_subscriber("eve")
        assert broker.costs(50) == []


def test_wrong_arguments(broker: Broker) -> None:
    with pytest.raises(OptionError):
        broker.find_subscriptions(limit=10_001)
    with pytest.raises(OptionError):
        broker.find_subscriptions(after=-1)
    with pytest.raises(IdTypeError):
        broker.find_subscriptions("\ud800")


def test_a_closed_broker(tmp_path: Path) -> None:
    broker = open_broker(tmp_path / "shop")
    broker.find_subscriptions()
    broker.close()
    broker.close()
    with pytest.raises(BrokerError, match="closed"):
        broker.find_subscriptions()
