"""A small script of calls, for a broker and for the model alike, and the comparison of the two."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import tamis
from tamis.broker import Broker
from tamis.broker.limits import BrokerLimits
from tamis.broker.tables import Synchronous
from tests.broker.folders import copy_folder
from tests.broker.model import Model
from tests.earlier.reference import ReferenceHistory

START = datetime(2026, 11, 18, tzinfo=UTC)
LIMITS = BrokerLimits(
    notes_in_tail=4, rows_at_once=3, notes_at_once=3, valid_behind=3, valid_to_save=1, strings_to_know=1
)
"""Tiny limits: blocks of queues are made and merged, tables are read in parts, and valid events are saved."""


def moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else START + timedelta(seconds=seconds)


class Step(NamedTuple):
    """One call. `at` is the second of the call."""

    at: int
    name: str
    broker: Callable[[Broker], object]
    model: Callable[[Model], object]

    def applied(self, model: Model) -> Model:
        """The model after the call. Time has passed until then."""
        after = at_time(model, self.at)
        self.model(after)
        return after


def at_time(model: Model, seconds: int) -> Model:
    """The model at a time."""
    later = model.copied()
    later.pass_time(seconds)
    return later


def subscribe(at: int, subscriber: str, name: str, **given: Any) -> Step:
    words: dict[str, Any] = {
        word: moment(value) if word.startswith("valid") else value for word, value in given.items()
    }
    return Step(
        at,
        "subscribe",
        lambda broker: broker.subscribe(subscriber, name, **words),
        lambda model: model.subscribe(subscriber, name, given),
    )


def publish(at: int, event: dict[str, Any], until: int | None = None, key: str | None = None) -> Step:
    return Step(
        at,
        "publish",
        lambda broker: broker.publish(event, valid_until=moment(until), key=key),
        lambda model: model.publish(event, until, key, None),
    )


def publish_many(at: int, events: list[dict[str, Any]], until: int | None = None) -> Step:
    return Step(
        at,
        "publish_many",
        lambda broker: broker.publish_many(events, valid_until=moment(until)),
        lambda model: [model.publish(event, until, None, None) for event in events],
    )


def acknowledge(at: int, subscriber: str, number: int) -> Step:
    return Step(
        at,
        "acknowledge",
        lambda broker: broker.acknowledge(subscriber, number),
        lambda model: model.cursors.update({subscriber: number}),
    )


def pause(at: int, subscriber: str, name: str) -> Step:
    def paused(model: Model) -> None:
        model.wishes[subscriber, name] = replace(model.wishes[subscriber, name], paused=True)

    return Step(at, "pause", lambda broker: broker.pause(subscriber, name), paused)


def resume(at: int, subscriber: str, name: str) -> Step:
    def resumed(model: Model) -> None:
        model.wishes[subscriber, name] = replace(model.wishes[subscriber, name], paused=False)
        model.meet([(subscriber, name)], model.now)

    return Step(at, "resume", lambda broker: broker.resume(subscriber, name), resumed)


def unsubscribe(at: int, subscriber: str, name: str) -> Step:
    return Step(
        at,
        "unsubscribe",
        lambda broker: broker.unsubscribe(subscriber, name),
        lambda model: model.wishes.pop((subscriber, name)),
    )


def remove_subscriber(at: int, subscriber: str) -> Step:
    return Step(
        at,
        "remove_subscriber",
        lambda broker: broker.remove_subscriber(subscriber),
        lambda model: model.remove_subscriber(subscriber),
    )


def _book(price: int, genre: str = "crime", words: int = 0) -> dict[str, Any]:
    return {"price": price, "genre": genre, "text": "word " * words}


SCRIPT = [
    subscribe(0, "ann", "cheap", expression="price < 20"),
    subscribe(0, "bob", "crime", expression="genre = 'crime'", weight=2.0),
    publish(1, _book(15), until=100),
    publish_many(2, [_book(5, "poetry"), _book(25, words=2000), _book(19)], until=100),
    subscribe(3, "ann", "crime", expression="genre = 'crime'"),  # Meets three stored events.
    acknowledge(4, "ann", 2),
    pause(5, "bob", "crime"),
    publish(6, _book(1, words=1000), until=50, key="once"),
    publish(7, _book(2), key="twice"),
    resume(8, "bob", "crime"),  # Meets the event of second 6, not that of second 7.
    subscribe(9, "ann", "cheap", expression="price < 30"),  # Meets the event of 25.
    subscribe(10, "eve", "later", expression="price > 10", valid_from=15, valid_until=25),
    publish_many(20, [_book(price, "poetry") for price in range(64)], until=90),  # "later" began five seconds ago.
    acknowledge(21, "bob", 3),
    unsubscribe(22, "ann", "crime"),
    subscribe(23, "bob", "dear", expression="price >= 60"),
    remove_subscriber(24, "ann"),
    publish(30, _book(22)),  # "later" ended five seconds ago.
    subscribe(31, "ann", "cheap", expression="price < 3"),
]
"""Each call changes something."""

_FIRST = "genre IS NOT NULL AND NOT EXISTS (SELECT 1 FROM history h WHERE h.genre = genre)"
JOINED = [
    subscribe(0, "ann", "lower", expression="price > 0 AND price < ALL (SELECT price FROM history)"),
    subscribe(0, "bob", "again", expression="genre = ANY (SELECT genre FROM history) AND price < 40", weight=2.0),
    publish(1, _book(15), until=100),
    publish_many(2, [_book(5, "poetry"), _book(25, words=2000), _book(19)], until=100),
    subscribe(3, "eve", "first", expression=_FIRST),
    publish(4, _book(1, words=1000), key="once"),
    subscribe(5, "ann", "lower", expression="price < 20 AND price < ANY (SELECT price FROM history)"),
    publish_many(6, [_book(price, "poetry") for price in range(66)]),
    publish(7, _book(64)),
]
"""As `SCRIPT`, for a broker with a history. The last subscriptions meet stored events, each with its own history."""


class Story(NamedTuple):
    """A script, and the history of its broker."""

    steps: list[Step]
    history: tamis.History | None

    def model(self) -> Model:
        """The model before the script."""
        return Model(retained=None if self.history is None else ReferenceHistory(self.history))


STORIES = {"plain": Story(SCRIPT, None), "joins": Story(JOINED, tamis.History(rows=3, order="price"))}
"""An event without a price is not retained."""


QUIET = LIMITS._replace(notes_in_tail=10**6, valid_behind=10**9, valid_to_save=10**9)
"""No thread writes files in the background. So the tables have the commits of the calls alone, until the broker is closed."""


class Opening:
    """Opens brokers in a folder at the time of a script. `now` is the second of the clock."""

    def __init__(self, path: Path, synchronous: Synchronous = "full") -> None:
        self.path = path
        self.now = 0
        self.synchronous = synchronous
        self.log_pages = 8
        """Pages in the log at which SQLite copies it to the tables. Few, so that this meets faults, too."""
        self.limits = LIMITS
        self.history: tamis.History | None = None
        self._copies = count(1)

    def broker(self) -> Broker:
        limits = self.limits._replace(log_pages=self.log_pages)
        clock = lambda: START + timedelta(seconds=self.now)  # noqa: E731
        return Broker(self.path, clock=clock, synchronous=self.synchronous, history=self.history, limits=limits)

    def elsewhere(self) -> Opening:
        """The same in another folder, which is not made yet."""
        other = Opening(self.path.with_name(f"{self.path.name}-{next(self._copies)}"), self.synchronous)
        other.now, other.log_pages, other.limits = self.now, self.log_pages, self.limits
        return other

    def copied(self) -> Opening:
        """A copy of the folder: what a process that is killed now leaves."""
        other = self.elsewhere()
        copy_folder(self.path, other.path)
        return other


PROBES = [_book(2, "poetry"), _book(25), _book(25, "poetry"), _book(61, "poetry")]
"""Events that nobody publishes. Whether anyone wants them tells which subscriptions new events meet."""


def shown(broker: Broker) -> dict[str, Any]:
    """What a broker shows of its subscriptions, notes and cursors, and what new events would meet."""
    standing = {
        (each.subscriber, each.name): (each.text, each.weight, each.valid_from, each.valid_until, each.paused)
        for each in broker.subscriptions()
    }
    notes, cursors = {}, {}
    for subscriber in sorted({subscriber for subscriber, _ in standing}):
        read = list(broker.notifications(subscriber, after=0))
        notes[subscriber] = [
            (note.sequence, note.event_sequence, note.subscriptions, note.event, note.expired) for note in read
        ]
        later = [note.sequence for note in broker.notifications(subscriber)]
        cursors[subscriber] = later[0] - 1 if later else (read[-1].sequence if read else 0)
    wanted = [broker.would_match(event) for event in PROBES]
    active = broker.stats()["active"]
    return {"subscriptions": standing, "notes": notes, "cursors": cursors, "active": active, "wanted": wanted}


def expected(model: Model) -> dict[str, Any]:
    """What a broker shows that is as the model."""
    standing = {
        name: (wish.expression, wish.weight, moment(wish.valid_from), moment(wish.valid_until), wish.paused)
        for name, wish in model.wishes.items()
    }
    notes, cursors = {}, {}
    for subscriber in sorted({subscriber for subscriber, _ in standing}):
        first = model.first.get(subscriber, 1)
        told = list(enumerate(model.queues.get(subscriber, []), 1))[first - 1 :]
        notes[subscriber] = [(number, *_note(model, note.event, note.names)) for number, note in told]
        cursors[subscriber] = model.cursors.get(subscriber, 0) if told else 0
    active = [name for name, wish in model.wishes.items() if wish.is_active(model.now)]
    wanted = [any(model.wants(name, model.coming(event)) for name in active) for event in PROBES]
    return {"subscriptions": standing, "notes": notes, "cursors": cursors, "active": len(active), "wanted": wanted}


def _note(model: Model, event: int, names: tuple[str, ...]) -> tuple[Any, ...]:
    stored = model.events[event - 1]
    return event, names, stored.event, stored.valid_until is not None and stored.valid_until <= model.now


def stored_events(path: Path) -> list[int]:
    """The numbers of the events in the tables."""
    connection = sqlite3.connect(path / "broker.sqlite")
    try:
        return [number for (number,) in connection.execute("SELECT sequence FROM events ORDER BY sequence")]
    finally:
        connection.close()
