"""When subscriptions begin and end: what is noted of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tamis.broker.limits import USUAL_BROKER_LIMITS
from tamis.broker.moments import moment_of
from tamis.broker.queues import Queues
from tamis.broker.state import State
from tamis.broker.subscribing import Subscribing, Wanted
from tamis.broker.tables import MEMORY, Tables
from tamis.matcher.engine_store import EngineStore

START = datetime(2026, 1, 1, tzinfo=UTC)
SOON, LATE = (moment_of(START + timedelta(hours=hours)) for hours in (1, 2))


def test_a_change_that_leaves_the_bounds_notes_nothing() -> None:
    """Thresholds may change a million times before a subscription ends."""
    now = START
    state = State(Tables(MEMORY), lambda: now, Queues(USUAL_BROKER_LIMITS), EngineStore(None), USUAL_BROKER_LIMITS)
    subscribing = Subscribing(state)
    subscribing.put([Wanted("ann", "cheap", "price < 1", valid_from=SOON, valid_until=LATE)])
    assert len(state.schedule) == 2
    for price in range(10):
        subscribing.put([Wanted("ann", "cheap", f"price < {price}")])
        subscribing.change([subscribing.find("ann", "cheap")], paused=price % 2)
    assert len(state.schedule) == 2
    now += timedelta(hours=1)
    state.now()
    assert len(state.schedule) == 1
    assert 1 in state.matcher or subscribing.find("ann", "cheap").paused
    subscribing.put([Wanted("ann", "cheap", valid_until=LATE + 1)])
    subscribing.change([subscribing.find("ann", "cheap")], removed=1)
    subscribing.put([Wanted("ann", "cheap", "price < 1", valid_until=LATE)])
    subscribing.change([subscribing.find("ann", "cheap")], paused=0)
    assert 1 in state.matcher
    now += timedelta(hours=1)
    state.now()
    assert 1 not in state.matcher
