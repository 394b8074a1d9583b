"""What readers see when notes are dropped, when subscribers are removed, and when brokers are closed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tamis.broker import Broker, Note
from tamis.broker.limits import BrokerLimits
from tamis.broker.tables import Tables
from tamis.errors import BrokerError, QueueFullError, RetentionError, UnknownIdError
from tests.broker.test_broker import Clock

FEW = BrokerLimits(notes_at_once=3)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(clock: Clock, tmp_path: Path) -> Iterator[Broker]:
    """A broker with a subscriber that wants every price."""
    with Broker(tmp_path / "b", clock=clock, limits=FEW, synchronous="off") as broker:
        broker.subscribe("ann", "all", "price >= 0")
        yield broker


def publish(broker: Broker, count: int, clock: Clock | None = None) -> None:
    """Publish events, one a second if there is a clock."""
    for price in range(count):
        broker.publish({"price": price})
        if clock is not None:
            clock.wait(1)


def numbers(notes: Iterator[Note]) -> list[int]:
    return [note.sequence for note in notes]


def test_an_open_iterator_raises_when_its_next_note_is_too_old(broker: Broker, clock: Clock) -> None:
    publish(broker, 20, clock)
    reading = broker.notifications("ann", 0)
    seen = [next(reading).sequence for _ in range(2)]
    broker.retain(max_age=timedelta(seconds=5))
    broker.compact()
    with pytest.raises(RetentionError) as caught:
        seen.extend(note.sequence for note in reading)
    assert seen == [1, 2, 3]
    assert (caught.value.after, caught.value.first) == (3, 16)


def test_a_follower_raises_when_its_next_note_is_one_too_many(broker: Broker) -> None:
    broker.retain(max_notes=2)
    reading = broker.notifications("ann", follow=True)
    publish(broker, 1)
    assert next(reading).sequence == 1
    publish(broker, 10)
    with pytest.raises(RetentionError) as caught:
        next(reading)
    assert (caught.value.after, caught.value.first) == (1, 10)


def test_the_oldest_note_is_the_oldest_at_the_first_look(broker: Broker) -> None:
    publish(broker, 5)
    reading = broker.notifications("ann", 0)
    broker.retain(max_notes=2)
    assert numbers(reading) == [4, 5]


def test_events_that_leave_while_a_page_is_read_lead_to_an_error(
    broker: Broker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queues give a page of numbers. Then the events leave, before they are looked up."""
    publish(broker, 10, clock)
    reading = broker.notifications("ann", 0)
    lookup = Tables.event_texts

    def late(tables: Tables, sequences: Sequence[int]) -> dict[int, tuple[str, int | None]]:
        broker.retain(max_age=timedelta(seconds=5))
        broker.compact()
        return lookup(tables, sequences)

    monkeypatch.setattr(Tables, "event_texts", late)
    with pytest.raises(RetentionError) as caught:
        next(reading)
    assert (caught.value.after, caught.value.first) == (0, 6)


def test_a_lost_event_is_an_error_and_no_gap(broker: Broker, tmp_path: Path) -> None:
    """Somebody has deleted an event by hand."""
    publish(broker, 5)
    with closing(sqlite3.connect(tmp_path / "b" / "broker.sqlite")) as tables, tables:
        tables.execute("DELETE FROM events WHERE sequence = 2")
    reading = broker.notifications("ann", 0)
    assert next(reading).sequence == 1
    with pytest.raises(BrokerError, match=r"damaged or missing: 2.*Restore a backup"):
        next(reading)
    with pytest.raises(BrokerError, match=r"damaged or missing: 2.*Restore a backup"):
        broker.event(2)
    with pytest.raises(UnknownIdError):
        broker.event(6)


def test_without_a_cursor_reading_starts_at_the_oldest_note(broker: Broker) -> None:
    publish(broker, 5)
    broker.retain(max_notes=2)
    assert numbers(broker.notifications("ann")) == [4, 5]
    broker.acknowledge("ann", 1)
    with pytest.raises(RetentionError) as caught:
        broker.notifications("ann")
    assert (caught.value.after, caught.value.first) == (1, 4)


def test_an_open_iterator_says_that_the_broker_is_closed(broker: Broker) -> None:
    publish(broker, 5)
    plain, following = broker.notifications("ann"), broker.notifications("ann", follow=True)
    assert next(plain).sequence == next(following).sequence == 1
    broker.close()
    with pytest.raises(BrokerError, match="is closed"):
        next(plain)
    assert list(following) == []


@pytest.mark.parametrize("follow", [False, True])
def test_closing_while_a_page_is_read(broker: Broker, monkeypatch: pytest.MonkeyPatch, follow: bool) -> None:
    publish(broker, 5)
    reading = broker.notifications("ann", follow=follow)
    lookup = Tables.event_texts

    def late(tables: Tables, sequences: Sequence[int]) -> dict[int, tuple[str, int | None]]:
        broker.close()
        return lookup(tables, sequences)

    monkeypatch.setattr(Tables, "event_texts", late)
    if follow:
        assert list(reading) == []
    else:
        with pytest.raises(BrokerError, match="is closed"):
            next(reading)


@pytest.mark.parametrize("follow", [False, True])
def test_an_open_iterator_says_that_its_subscriber_was_removed(broker: Broker, follow: bool) -> None:
    publish(broker, 5)
    reading = broker.notifications("ann", follow=follow)
    assert next(reading).sequence == 1
    broker.remove_subscriber("ann")
    with pytest.raises(UnknownIdError):
        next(reading)


def test_a_subscriber_that_comes_back_does_not_hide_the_loss(broker: Broker) -> None:
    publish(broker, 5)
    reading = broker.notifications("ann")
    assert next(reading).sequence == 1
    broker.remove_subscriber("ann")
    broker.subscribe("ann", "all", "price >= 0")
    with pytest.raises(RetentionError) as caught:
        next(reading)
    assert caught.value.first == 6


def test_dropped_notes_do_not_fill_a_queue(broker: Broker, clock: Clock) -> None:
    broker.retain(max_age=timedelta(hours=1), max_notes=2, when_full="refuse publish")
    publish(broker, 2)
    with pytest.raises(QueueFullError):
        publish(broker, 1)
    clock.wait(7200)
    assert numbers(broker.notifications("ann", 0)) == []
    publish(broker, 2)
    with pytest.raises(QueueFullError):
        publish(broker, 1)
    assert numbers(broker.notifications("ann", 0)) == [3, 4]


def test_readers_see_new_retention(broker: Broker, clock: Clock, tmp_path: Path) -> None:
    publish(broker, 10)
    with Broker(tmp_path / "b", read_only=True, clock=clock) as reader:
        broker.retain(max_notes=2)
        assert numbers(reader.notifications("ann", 0)) == [9, 10]
        with pytest.raises(RetentionError):
            reader.notifications("ann", 1)
        assert reader.stats()["retention"] == broker.stats()["retention"]


def test_readers_count_active_subscriptions(broker: Broker, clock: Clock, tmp_path: Path) -> None:
    soon = clock.now + timedelta(seconds=5)
    broker.subscribe("bob", "paused", "price >= 0")
    broker.pause("bob", "paused")
    broker.subscribe("bob", "removed", "price >= 0")
    broker.unsubscribe("bob", "removed")
    broker.subscribe("bob", "ends", "price >= 0", valid_until=soon)
    broker.subscribe("bob", "begins", "price >= 0", valid_from=soon)
    broker.subscribe("bob", "begins later", "price >= 0", valid_from=soon + timedelta(days=1))
    with Broker(tmp_path / "b", read_only=True, clock=clock) as reader:
        assert (broker.stats()["active"], reader.stats()["active"]) == (2, 2)
        broker.unsubscribe("ann", "all")
        assert (broker.stats()["active"], reader.stats()["active"]) == (1, 1)
        broker.subscribe("ann", "all", "price >= 0")
        clock.wait(5)
        assert (broker.stats()["active"], reader.stats()["active"]) == (2, 2)


def test_events_without_readable_notes_leave_the_tables(broker: Broker, clock: Clock, tmp_path: Path) -> None:
    soon = clock.now + timedelta(seconds=5)
    broker.retain(max_notes=10)
    broker.publish({"price": 1}, valid_until=soon)
    broker.publish({"title": "nobody wants this"})
    broker.publish({"price": 1}, key="again")
    before = broker.publish_many([{"price": 1, "text": "x" * 1000}] * 500)[-1].sequence
    broker.compact()
    assert [number for number, _ in broker.replay("TRUE")] == [1, 2, 3, *range(before - 9, before + 1)]
    assert list(broker.publish({"price": 1}, key="again").matches) == [("ann", "all")]
    assert (tmp_path / "b" / "broker.sqlite").stat().st_size < 200_000
    clock.wait(5)
    broker.compact()
    assert [number for number, _ in broker.replay("TRUE")] == [2, 3, *range(before - 9, before + 1)]
    broker.close()
    for path in (tmp_path / "b").glob("*.tamis"):
        path.unlink()
    with Broker(tmp_path / "b", clock=clock) as again:
        assert numbers(again.notifications("ann", 0)) == list(range(493, 503))
        assert again.publish({"price": 1}).sequence == before + 1
        assert numbers(again.notifications("ann", 502)) == [503]


def test_an_event_stays_while_one_subscriber_can_read_it(broker: Broker) -> None:
    broker.retain(max_notes=2)
    broker.subscribe("bob", "first", "price = 0")
    publish(broker, 10)
    broker.compact()
    assert [number for number, _ in broker.replay("TRUE")] == [1, 9, 10]
    assert [note.event for note in broker.notifications("bob")] == [{"price": 0}]


def test_meetings_leave_with_their_events(broker: Broker, clock: Clock, tmp_path: Path) -> None:
    """Bob was told of event 1 by a meeting alone."""
    broker.retain(max_notes=2)
    broker.publish({"price": 1}, valid_until=clock.now + timedelta(seconds=5))
    broker.subscribe("bob", "all", "price >= 0")
    clock.wait(5)
    publish(broker, 3)
    broker.compact()
    broker.close()
    with closing(sqlite3.connect(tmp_path / "b" / "broker.sqlite")) as tables:
        assert tables.execute("SELECT count(*) FROM meetings").fetchone() == (0,)
        assert tables.execute("SELECT sequence FROM events").fetchall() == [(3,), (4,)]
    for path in (tmp_path / "b").glob("*.tamis"):
        path.unlink()
    with Broker(tmp_path / "b", clock=clock) as again:
        assert numbers(again.notifications("bob", 0)) == [3, 4]


def test_dropped_notes_do_not_come_back(broker: Broker, clock: Clock) -> None:
    broker.retain(max_notes=2)
    publish(broker, 5, clock)
    broker.retain(max_notes=None)
    assert numbers(broker.notifications("ann", 0)) == [4, 5]
    broker.retain(max_age=timedelta(seconds=1))
    broker.retain(max_age=None)
    assert numbers(broker.notifications("ann", 0)) == [5]


def test_the_background_thread_deletes_unreadable_events(tmp_path: Path) -> None:
    limits = BrokerLimits(events_between_sweeps=10, events_deleted_at_once=3, rows_at_once=1)
    with Broker(tmp_path / "b", limits=limits, synchronous="off") as broker:
        broker.subscribe("ann", "all", "price >= 0")
        broker.subscribe("bob", "few", "price = 4")
        broker.retain(max_notes=2)
        publish(broker, 50)
    with closing(sqlite3.connect(tmp_path / "b" / "broker.sqlite")) as tables:
        (count,) = tables.execute("SELECT count(*) FROM events").fetchone()
    assert 3 <= count < 50


def test_a_queue_that_refuses_drops_only_acknowledged_notes(broker: Broker) -> None:
    publish(broker, 5)
    broker.acknowledge("ann", 1)
    broker.retain(max_notes=2, when_full="refuse publish")
    broker.compact()
    assert [number for number, _ in broker.replay("TRUE")] == [2, 3, 4, 5]
    broker.retain(max_notes=None)
    assert numbers(broker.notifications("ann", 0)) == [2, 3, 4, 5]
