"""The broker: a durable publish/subscribe system around a matcher."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from tamis.broker.compacting import Compacting
from tamis.broker.delivering import Delivering, read_deliveries
from tamis.broker.event_text import read_event
from tamis.broker.folder import TABLES, Folder
from tamis.broker.housekeeping import Housekeeping
from tamis.broker.limits import USUAL_BROKER_LIMITS, BrokerLimits
from tamis.broker.moments import Clock, read_moment, system_clock
from tamis.broker.opening import open_reading, open_state
from tamis.broker.publishing import Line, Offer, Published
from tamis.broker.records import Change, Matches, Note, Receipt, StandingSubscription
from tamis.broker.retention import (
    Retention,
    WhenFull,
    checked_retention,
    read_retention,
    write_retention,
)
from tamis.broker.subscribing import NOT_GIVEN, NotGiven, Subscribing, Wanted, checked_name
from tamis.broker.tables import MEMORY, SubscriberRow, Synchronous, Tables
from tamis.errors import BrokerError, EventError, OptionError, RetentionError, UnknownIdError, shortened
from tamis.kernels.numbers import I64s
from tamis.language.event import is_event
from tamis.language.explain import Explanation, explain
from tamis.language.values import is_iterable
from tamis.matcher.event_input import as_table
from tamis.matcher.expression_reader import ExpressionReader
from tamis.matcher.options import plain_limit, plain_weight

_PATIENCE = 0.05
"""Seconds after which a reader that waits for notes looks at the clock, and at what other processes wrote."""


class Broker:
    """Subscribers, their subscriptions, events, and the notes that tell one about the other. Make one with `tamis.open`.

    Any number of threads may use a broker.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        clock: Clock = system_clock,
        synchronous: Synchronous = "full",
        limits: BrokerLimits = USUAL_BROKER_LIMITS,
    ) -> None:
        in_memory = os.fspath(path) == MEMORY
        if in_memory and read_only:
            raise OptionError("a broker in memory has nothing to read. Hint: name a folder, or leave out read_only")
        self._folder = None if in_memory else Folder(path, read_only=read_only)
        self._limits = limits
        self._read_only = read_only
        self._lock = threading.RLock()
        self._told = threading.Condition(self._lock)
        self._is_closed = False
        try:
            address = MEMORY if self._folder is None else str(self._folder / TABLES)
            self._tables = Tables(address, read_only=read_only, synchronous=synchronous)
            home = None if self._folder is None else self._folder.path
            self._state, saved = open_state(self._tables, home, clock, limits, read_only=read_only)
            self._reading = open_reading(self._tables, self._lock)
        except BaseException:
            if self._folder is not None:
                self._folder.close()
            raise
        self._expressions = ExpressionReader(None)
        self._retention = read_retention(self._tables)
        self._subscribing = Subscribing(self._state)
        self._line = Line(self._state, lambda: self._retention, self._publishing)
        self._delivering = Delivering(self._state, lambda: self._retention)
        self._compacting = Compacting(self._state, self._lock)
        self._housekeeping = Housekeeping(self._state, home, self._lock, limits, saved)

    # Subscriptions

    def subscribe(
        self,
        subscriber: str,
        name: str,
        expression: Any = NOT_GIVEN,
        *,
        weight: float | NotGiven = NOT_GIVEN,
        valid_from: datetime | NotGiven | None = NOT_GIVEN,
        valid_until: datetime | NotGiven | None = NOT_GIVEN,
    ) -> None:
        """Add a subscription, or change the one with this name: what is not given stays.

        The subscription meets the stored events that are still valid, and all later events.

        Parameters
        ----------
        subscriber, name : str
            Who is told, and the name of the subscription among its own.
        expression : str, Expression or list
            As for `Matcher.add`.
        weight : float
            With `k`, only the subscriptions with the largest weights are told. By default 1.
        valid_from, valid_until : datetime, optional
            The subscription is valid from the first moment on, and before the second. Without a zone they are UTC. None: no
            bound.

        Raises
        ------
        ExpressionError, OptionError, IdTypeError
        UnknownIdError
            There is no such subscription, and no expression is given.
        """
        wanted = self._wanted(subscriber, name, expression, weight, valid_from, valid_until)
        self._subscribe([wanted])

    def subscribe_many(self, subscriptions: Iterable[Any]) -> None:
        """Add or change subscriptions in one step: all of them, or none if one is wrong.

        Parameters
        ----------
        subscriptions : list of mappings, or Arrow table
            With ``subscriber``, ``name`` and the other parameters of `subscribe`. What is not given stays. In a table, null
            counts as not given.

        Raises
        ------
        DuplicateIdError
            Two of them have the same subscriber and name.
        ExpressionError, OptionError, IdTypeError, UnknownIdError, TableError
        """
        table = as_table(subscriptions)
        rows = _rows(subscriptions, "subscriptions") if table is None else table_events(table)
        self._subscribe([self._wanted(**wanted_words(row, place)) for place, row in enumerate(rows)])

    def _subscribe(self, wanted: Sequence[Wanted]) -> None:
        with self._writing():
            self._subscribing.put(wanted)
            self._after_change()

    def _after_change(self) -> None:
        """Wake those who wait for notes, and begin what is due in the background. The caller holds the lock."""
        self._told.notify_all()
        self._housekeeping.begin(self._sweep)

    def _wanted(
        self,
        subscriber: Any,
        name: Any,
        expression: Any = NOT_GIVEN,
        weight: Any = NOT_GIVEN,
        valid_from: Any = NOT_GIVEN,
        valid_until: Any = NOT_GIVEN,
    ) -> Wanted:
        """A subscription as it was given, checked."""
        if not isinstance(expression, NotGiven | str):
            expression = str(self._expressions.read(expression))
        return Wanted(
            checked_name(subscriber, "subscriber"),
            checked_name(name, "subscription"),
            expression if isinstance(expression, NotGiven) else str(expression),
            NOT_GIVEN if isinstance(weight, NotGiven) else plain_weight(weight),
            NOT_GIVEN if isinstance(valid_from, NotGiven) else read_moment(valid_from, "valid_from"),
            NOT_GIVEN if isinstance(valid_until, NotGiven) else read_moment(valid_until, "valid_until"),
        )

    def unsubscribe(self, subscriber: str, name: str) -> None:
        """Remove a subscription. Notes that were told stay.

        Raises
        ------
        UnknownIdError
        """
        with self._writing():
            self._subscribing.change([self._subscribing.find(subscriber, name)], removed=1, paused=0)
            self._after_change()

    def pause(self, subscriber: str, name: str) -> None:
        """Let events pass a subscription by, until `resume`.

        Raises
        ------
        UnknownIdError
        """
        with self._writing():
            row = self._subscribing.find(subscriber, name)
            if not row.paused:
                self._subscribing.change([row], paused=1)
                self._after_change()

    def resume(self, subscriber: str, name: str) -> None:
        """Wake a paused subscription. It meets the stored events that are still valid.

        Raises
        ------
        UnknownIdError
        """
        with self._writing():
            row = self._subscribing.find(subscriber, name)
            if row.paused:
                self._subscribing.change([row], paused=0)
                self._after_change()

    def remove_subscriber(self, subscriber: str) -> None:
        """Remove a subscriber with all its subscriptions and notes.

        If the name comes back, its notes count on from the last number.

        Raises
        ------
        UnknownIdError
        """
        with self._writing():
            self._state.now()
            self._subscribing.remove_subscriber(self._subscribing.owner(subscriber))
            self._after_change()

    def subscriptions(self, subscriber: str | None = None) -> Iterator[StandingSubscription]:
        """The subscriptions of a subscriber, or of all, in the order in which they first came.

        Raises
        ------
        UnknownIdError
        """
        with self._looking():
            number = None if subscriber is None else self._subscribing.owner(subscriber).number
        condition, values = ("", ()) if number is None else (" AND subscriber = ?", (number,))
        return map(self._reading.standing, self._reading.rows(f"removed = 0{condition} ORDER BY number", values))

    # Events

    def publish(
        self, event: Any, *, valid_until: datetime | None = None, key: str | None = None, k: int | None = None
    ) -> Receipt:
        """Store an event and tell the subscribers that want it. When this returns, all of it is safe on disk.

        Parameters
        ----------
        event : mapping, dataclass or pandas Series
            Attributes and their values.
        valid_until : datetime, optional
            Until then, new subscriptions meet the event, too. By default it is valid at its own moment only.
        key : str, optional
            A name for this event. If an event with the same key was published within 24 hours, its receipt is returned and
            nothing else happens. So a publisher may try again.
        k : int, optional
            Tell only the `k` subscriptions with the largest weights.

        Raises
        ------
        EventError
            The event cannot be stored, or a subscription asks about a value outside the language. Nothing changes.
        OptionError
        """
        offer = Offer(
            [event], [read_moment(valid_until, "valid_until")], [_key(key)], None if k is None else plain_limit(k)
        )
        return self._published(offer)[0]

    def publish_many(
        self,
        events: Any,
        *,
        valid_until: datetime | Sequence[datetime | None] | None = None,
        keys: Sequence[str | None] | None = None,
        k: int | None = None,
    ) -> list[Receipt]:
        """Publish events in one step: all of them, or none if one is wrong.

        Parameters
        ----------
        events : list of mappings, pyarrow.Table, or anything that `Matcher.match_batch` takes
            The events.
        valid_until : datetime or list of datetimes, optional
            As for `publish`, for all events or one for each.
        keys : list of str, optional
            As `key` of `publish`, one for each event.
        k : int, optional
            As for `publish`.

        Raises
        ------
        EventError, TableError, OptionError
        """
        table = as_table(events)
        rows = _rows(events, "events") if table is None else table_events(table)
        ends = valid_until if isinstance(valid_until, list | tuple) else [valid_until] * len(rows)
        given_keys = [None] * len(rows) if keys is None else list(keys)
        if len(ends) != len(rows) or len(given_keys) != len(rows):
            raise OptionError(
                f"{len(rows)} events need as many keys and moments, not {len(given_keys)} and {len(ends)}"
            )
        moments = [read_moment(each, "valid_until") for each in ends]
        limit = None if k is None else plain_limit(k)
        return self._published(Offer(rows, moments, list(map(_key, given_keys)), limit, table))

    def _published(self, offer: Offer) -> list[Receipt]:
        return list(map(self._receipt, self._line.publish(offer)))

    def deliver(self, matched: Iterable[tuple[Any, Sequence[int] | I64s]], *, source: str, batch: int) -> bool:
        """Store events that were matched elsewhere, and tell their subscribers: all of a batch, and once.

        `tamis.spark.to_broker` calls this for every micro-batch. The events are not matched again. A subscription that was
        removed or paused meanwhile is not told.

        Parameters
        ----------
        matched : list of pairs
            Each an event and the numbers of the subscriptions that it satisfies. `Change.id` is the number of a subscription.
        source : str
            The name of the stream of batches.
        batch : int
            The number of the batch. Batches of a stream count up.

        Returns
        -------
        bool
            False if this batch, or a later one of this stream, was delivered before. Nothing happens then.

        Raises
        ------
        EventError, OptionError, UnknownIdError, QueueFullError
            Nothing changes.
        """
        name, number, deliveries = checked_name(source, "stream"), _number(batch, "batch"), read_deliveries(matched)
        with self._publishing():
            return self._delivering.put(deliveries, name, number)

    def last_batch(self, source: str) -> int | None:
        """The number of the last batch of a stream that was delivered; None if there is none."""
        with self._looking():
            return self._delivering.last_batch(checked_name(source, "stream"))

    @contextmanager
    def _publishing(self) -> Iterator[None]:
        with self._writing():
            yield
            self._after_change()

    def _receipt(self, published: Published) -> Receipt:
        return Receipt(published.sequence, Matches(published.matches, self._reading.names))

    # Notes

    def notifications(self, subscriber: str, after: int | None = None, *, follow: bool = False) -> Iterator[Note]:
        """The notes of a subscriber, in order.

        Parameters
        ----------
        subscriber : str
            Who reads.
        after : int, optional
            Start after this number. 0 starts at the oldest note there is. By default, start after the last note that was
            acknowledged.
        follow : bool
            Wait for more notes at the end.

        Raises
        ------
        UnknownIdError
        RetentionError
            Notes after this number were dropped.
        """
        with self._looking():
            owner = self._subscribing.owner(subscriber)
            start = owner.cursor if after is None else _number(after, "after")
            hidden = self._retention.last_hidden(owner, self._state)
            if 0 < start < hidden:
                raise RetentionError(subscriber, start, hidden + 1)
        return self._read(owner, max(start, hidden), follow)

    def _read(self, owner: SubscriberRow, after: int, follow: bool) -> Iterator[Note]:
        while True:
            with self._told:
                if self._is_closed:
                    return
                self._look()
                queued = self._state.queues.read(owner.number, after, self._limits.notes_at_once)
                if not queued:
                    if not follow:
                        return
                    self._told.wait(_PATIENCE)
                    continue
                moment = self._state.moment
            yield from self._reading.notes(queued, moment)
            after = queued[-1].sequence

    def acknowledge(self, subscriber: str, sequence: int) -> None:
        """Move the cursor of a subscriber: reading starts after this note from now on. An earlier number changes nothing.

        Raises
        ------
        UnknownIdError
        OptionError
            There is no such note yet.
        """
        number = _number(sequence, "sequence")
        with self._writing():
            self._state.now()
            owner = self._subscribing.owner(subscriber)
            total = self._state.queues.total(owner.number)
            if number > total:
                raise OptionError(f"`sequence` is {number}, but the last note of {shortened(subscriber)} is {total}")
            if number > owner.cursor:
                with self._tables.transaction():
                    self._tables.rows("UPDATE subscribers SET cursor = ? WHERE number = ?", (number, owner.number))

    # Looking

    def explain(self, subscriber: str, name: str, event_sequence: int) -> Explanation:
        """Explain why a stored event satisfies a subscription or not.

        Raises
        ------
        UnknownIdError
        """
        number = _number(event_sequence, "event_sequence")
        with self._looking():
            row, stored = self._subscribing.find(subscriber, name), self._tables.event(number)
        if stored is None:
            raise UnknownIdError(event_sequence, "event")
        return explain(row.expression, read_event(stored.event))

    def would_match(self, event: Any) -> bool:
        """Whether anyone wants an event. Publishers may ask this before they make an expensive event.

        Raises
        ------
        EventError
        """
        with self._writing():
            self._state.now()
            return bool(self._state.matcher.match(event, k=1))

    def attributes(self) -> set[str]:
        """The attributes that subscriptions ask about. It may have those of subscriptions that were removed of late."""
        with self._writing():
            self._state.now()
            return set(self._state.store.dimensions.by_attribute)

    def replay(self, expression: Any, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        """The stored events that an expression is true of, with their numbers. Nobody is told.

        Raises
        ------
        ExpressionError
        """
        return self._reading.satisfying(self._expressions.read(expression), _number(after, "after"))

    def changes(self, after: int = 0) -> Iterator[Change]:
        """The subscriptions that have changed after a number, each with its last change, in order of the changes.

        `tamis.spark.update_stream` takes rows with these fields as columns.
        """
        number = _number(after, "after")
        with self._looking():
            pass
        return map(self._reading.change, self._reading.rows("change > ? ORDER BY change", (number,)))

    def stats(self) -> dict[str, Any]:
        """Figures about the contents and the work of the broker."""
        with self._looking():
            counted = "SELECT (SELECT count(*) FROM {}), (SELECT count(*) FROM {}), (SELECT count(*) FROM events)"
            living = ("subscribers WHERE removed = 0", "subscriptions WHERE removed = 0")
            subscribers, subscriptions, events = self._tables.one(counted.format(*living))
            return {
                "subscribers": subscribers,
                "subscriptions": subscriptions,
                "active": len(self._state.matcher),
                "events": events,
                "last_event": self._state.event,
                "last_change": self._state.change,
                "notes": self._state.queues.notes,
                "commits": self._line.commits,
                "refused_values": self._state.refused_values,
                "problem": self._housekeeping.problem,
                "matcher": self._state.matcher.stats(),
            }

    # Keeping

    def retain(
        self,
        *,
        max_age: timedelta | NotGiven | None = NOT_GIVEN,
        max_notes: int | NotGiven | None = NOT_GIVEN,
        when_full: WhenFull | NotGiven = NOT_GIVEN,
    ) -> Retention:
        """Say how long notes are kept. The folder remembers it. What is not given stays. Returns what is set.

        Parameters
        ----------
        max_age : timedelta, optional
            Older notes are dropped, and older events leave the tables when they are not valid any more. None: keep all.
        max_notes : int, optional
            Only this many notes of a subscriber can be read. None: all.
        when_full : "drop oldest" or "refuse publish"
            What happens to a note beyond `max_notes`. With "refuse publish", an event for a subscriber that has so many notes
            it has not acknowledged is a `QueueFullError`.

        Raises
        ------
        OptionError
        """
        words = {"max_age": max_age, "max_notes": max_notes, "when_full": when_full}
        given = {name: value for name, value in words.items() if not isinstance(value, NotGiven)}
        with self._writing() if given else self._looking():
            if given:
                retention = checked_retention(self._retention, given)
                write_retention(self._tables, retention)
                self._retention = retention
            return self._retention

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the broker to a new folder, while it is in use. The copy has the state of one moment.

        Raises
        ------
        BrokerError
        """
        target = Path(os.fspath(path))
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise BrokerError(f"{target} exists. Hint: name a new or an empty folder")
        target.mkdir(parents=True, exist_ok=True)
        with self._looking():
            pass
        self._reading.backup(target / TABLES)

    def compact(self) -> None:
        """Delete what is too old, give free space back to the disk, and write all caches. Others may use the broker meanwhile."""
        with self._writing():
            self._state.now()
        self._housekeeping.finish(self._sweep)
        self._compacting.shrink()

    def _sweep(self) -> bool:
        """Delete what is too old. Returns whether blocks of the queues have changed."""
        max_age = self._retention.max_age
        return max_age is not None and self._compacting.sweep(max_age)

    # Life

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Hold the lock, for a call that changes nothing."""
        with self._told:
            self._look()
            yield

    def _look(self) -> None:
        """Bring what is in memory up to the present. The caller holds the lock."""
        self._check_open()
        if self._read_only:
            self._state.refresh()
        else:
            self._state.now()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the lock, for a call that changes something."""
        with self._told:
            self._check_writing()
            yield

    def _check_writing(self) -> None:
        self._check_open()
        if self._read_only:
            raise BrokerError(
                "the broker was opened with read_only=True. Hint: open it without, or ask the process that writes"
            )

    def _check_open(self) -> None:
        if self._is_closed:
            raise BrokerError("the broker is closed. Hint: open the folder again")

    def close(self) -> None:
        """Close the broker. Iterators that wait for notes end."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._told.notify_all()
        if not self._read_only:
            self._housekeeping.finish()
        with self._lock:
            self._reading.close()
            self._tables.close()
            if self._folder is not None:
                self._folder.close()

    def __enter__(self) -> Broker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _key(key: object) -> str | None:
    if key is not None and not isinstance(key, str):
        raise OptionError(f"`key` must be a str, not {shortened(key)}")
    return key


def _number(given: Any, name: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise OptionError(f"`{name}` must be a number from 0 on, not {shortened(given)}")
    return given


def _rows(given: Any, what: str) -> list[Any]:
    if is_event(given) or not is_iterable(given):
        error = EventError if what == "events" else OptionError
        raise error(f"{what} must be a list of mappings or an Arrow table, not {type(given).__name__}")
    return list(given)


_WORDS = frozenset(("subscriber", "name", "expression", "weight", "valid_from", "valid_until"))


def wanted_words(row: Any, place: int) -> dict[str, Any]:
    """The arguments of `subscribe` in a mapping.

    Raises
    ------
    OptionError
    """
    if not isinstance(row, Mapping):
        raise OptionError(f"subscription {place} must be a mapping, not {shortened(row)}")
    unknown = [name for name in row if name not in _WORDS]
    missing = [name for name in ("subscriber", "name") if name not in row]
    if unknown:
        raise OptionError(
            f"subscription {place} has no field {unknown[0]!r}; the fields are: {', '.join(sorted(_WORDS))}"
        )
    if missing:
        raise OptionError(f"subscription {place} needs {missing[0]!r}")
    return dict(row)


def table_events(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as events. Null is a missing attribute."""
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
