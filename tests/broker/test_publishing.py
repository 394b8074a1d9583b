"""Events are matched before they wait for a commit, and again if subscriptions have changed since."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import tamis
from tamis.broker.limits import BrokerLimits
from tamis.broker.opening import open_state
from tamis.broker.publishing import Offer
from tamis.broker.state import State
from tamis.broker.subscribing import Subscribing, Wanted
from tamis.broker.tables import MEMORY, Tables
from tamis.errors import EventError

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


class Shop:
    """A state with two subscriptions, numbers 1 and 2, of which the second begins in an hour. The third one ends in an hour."""

    def __init__(self) -> None:
        self.time = NOON
        hour = int((NOON + timedelta(hours=1)).timestamp() * 1e6)
        tables = Tables(MEMORY)
        self.state: State = open_state(tables, None, lambda: self.time, BrokerLimits(), read_only=False).state
        self.subscribing = Subscribing(self.state)
        self.subscribing.put(
            [
                Wanted("ann", "cheap", "price < 20"),
                Wanted("ann", "later", "price < 30", valid_from=hour),
                Wanted("ann", "soon over", "price < 40", valid_until=hour),
            ]
        )

    def wait(self) -> None:
        self.time += timedelta(hours=1)
        self.state.now()


CHANGES: dict[str, tuple[Callable[[Shop], None], list[int]]] = {
    "nothing": (lambda shop: None, [1, 3]),
    "added": (lambda shop: shop.subscribing.put([Wanted("bob", "new", "price > 1")]), [1, 3, 4]),
    "altered": (lambda shop: shop.subscribing.put([Wanted("ann", "cheap", "price < 2")]), [3]),
    "removed": (lambda shop: shop.subscribing.change([shop.subscribing.find("ann", "cheap")], removed=1), [3]),
    "paused": (lambda shop: shop.subscribing.change([shop.subscribing.find("ann", "cheap")], paused=1), [3]),
    "begun and ended": (Shop.wait, [1, 2]),
}


@pytest.mark.parametrize("many", [1, 100])
@pytest.mark.parametrize("change", CHANGES)
def test_an_event_meets_the_subscriptions_of_its_commit(change: str, many: int) -> None:
    shop = Shop()
    offer = Offer([{"price": 15}] * many, [None] * many, [None] * many, None)
    offer.match(shop.state)
    act, expected = CHANGES[change]
    act(shop)
    found = offer.matches(shop.state, [False] * many)
    assert [sorted(map(int, each)) for each in found] == [expected] * many


def test_matches_are_found_once_if_nothing_changes() -> None:
    shop = Shop()
    offer = Offer([{"price": 15}, {"price": 25}], [None] * 2, [None] * 2, None)
    offer.match(shop.state)
    assert offer.matches(shop.state, [False, False]) is offer.found
    assert offer.matches(shop.state, [True, False]) == [(), [3]]


def test_a_wrong_event_is_told_by_the_leader() -> None:
    shop = Shop()
    offer = Offer([{"price": 15}, {"price": b"15"}], [None] * 2, [None] * 2, None)
    offer.match(shop.state)
    with pytest.raises(EventError, match="event 1"):
        offer.matches(shop.state, [False, False])


@pytest.mark.parametrize("many", [2, 100])
@pytest.mark.parametrize("table", [False, True])
def test_events_that_are_known_or_over_are_not_matched(many: int, table: bool) -> None:
    shop = Shop()
    prices = [b"15", *range(many)]
    events = [{"price": price} for price in prices]
    given = pa.table({"price": pa.array([float(place) for place in range(many + 1)])}) if table else None
    offer = Offer(events, [None] * (many + 1), [None] * (many + 1), None, given)
    found = offer.matches(shop.state, [True, *[False] * many])
    assert len(found[0]) == 0
    assert [1 in each for each in found[1:]] == [price < (19 if table else 20) for price in range(many)]
    wrong = Offer([*events[1:], {"price": b"1"}], [None] * (many + 1), [None] * (many + 1), None)
    with pytest.raises(EventError, match=f"event {many}"):
        wrong.matches(shop.state, [True, *[False] * many])


def test_a_key_twice_in_one_call_fills_a_queue_once() -> None:
    with tamis.open(":memory:") as broker:
        broker.subscribe("ann", "all", "price > 0")
        broker.retain(max_notes=1, when_full="refuse publish")
        first, again = broker.publish_many([{"price": 1}, {"price": 1}], keys=["a", "a"])
        assert (first.sequence, again.sequence, len(again.matches)) == (1, 1, 1)


def test_any_stored_event_is_explained() -> None:
    with tamis.open(":memory:") as broker:
        broker.publish({"year": b"1", "price": 5}, valid_until=datetime(2999, 1, 1))
        broker.subscribe("ann", "a", "year = 1 OR price = 5")
        assert [note.event_sequence for note in broker.notifications("ann")] == [1]
        explanation = broker.explain("ann", "a", 1)
        assert explanation.truth is True
        assert "UNKNOWN" in str(explanation)
