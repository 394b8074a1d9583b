"""The broker: a durable publish/subscribe system around a matcher."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

import pyarrow as pa

from tamis.broker.event_text import read_event
from tamis.broker.folder import TABLES, Folder
from tamis.broker.limits import USUAL_BROKER_LIMITS, BrokerLimits
from tamis.broker.moments import Clock, as_datetime, read_moment, system_clock
from tamis.broker.publishing import INTERRUPTED, Line, Offer, Published
from tamis.broker.queues import Queues
from tamis.broker.records import Change, Matches, Note, Receipt, StandingSubscription
from tamis.broker.state import State
from tamis.broker.subscribing import NOT_GIVEN, NotGiven, Subscribing, Wanted, checked_name
from tamis.broker.tables import MEMORY, Synchronous, Tables
from tamis.errors import BrokerError, EventError, OptionError, RetentionError, UnknownIdError, shortened
from tamis.language.event import is_event
from tamis.language.explain import Explanation, explain
from tamis.language.values import is_iterable
from tamis.matcher.event_input import as_table
from tamis.matcher.expression_reader import ExpressionReader, kept
from tamis.matcher.options import plain_limit, plain_weight


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
        self._folder = None if in_memory else Folder(path, read_only=read_only)
        address = MEMORY if self._folder is None else str(self._folder / TABLES)
        self._limits = limits
        try:
            self._tables = Tables(address, read_only=read_only, synchronous=synchronous)
            self._state = State(self._tables, clock, Queues(most_in_tail=limits.notes_in_tail), limits)
            self._state.catch_up()
            self._state.load_matcher()
        except BaseException:
            if self._folder is not None:
                self._folder.close()
            raise
        self._reader = ExpressionReader(None)
        self._subscribing = Subscribing(self._state)
        self._line = Line(self._state, lambda names: None)
        self._lock = threading.RLock()
        self._told = threading.Condition(self._lock)
        self._is_closed = False

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
        with self._changing():
            self._subscribing.put([wanted])
            self._told.notify_all()

    def _wanted(
        self, subscriber: Any, name: Any, expression: Any, weight: Any, valid_from: Any, valid_until: Any
    ) -> Wanted:
        """A subscription as it was given, checked."""
        text: Any = NOT_GIVEN
        if not isinstance(expression, NotGiven):
            read = self._reader.read(expression)
            given = kept(expression, read)
            text = given if isinstance(given, str) else str(read)
        return Wanted(
            checked_name(subscriber, "subscriber"),
            checked_name(name, "subscription"),
            text,
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
        with self._changing():
            self._subscribing.change([self._subscribing.find(subscriber, name)], removed=1, paused=0)

    def pause(self, subscriber: str, name: str) -> None:
        """Let events pass a subscription by, until `resume`.

        Raises
        ------
        UnknownIdError
        """
        with self._changing():
            row = self._subscribing.find(subscriber, name)
            if not row.paused:
                self._subscribing.change([row], paused=1)

    def resume(self, subscriber: str, name: str) -> None:
        """Wake a paused subscription. It meets the stored events that are still valid.

        Raises
        ------
        UnknownIdError
        """
        with self._changing():
            row = self._subscribing.find(subscriber, name)
            if row.paused:
                self._subscribing.change([row], paused=0)
                self._told.notify_all()

    def remove_subscriber(self, subscriber: str) -> None:
        """Remove a subscriber with all its subscriptions and notes.

        If the name comes back, its notes count on from the last number.

        Raises
        ------
        UnknownIdError
        """
        with self._changing():
            self._subscribing.remove(subscriber)

    def subscriptions(self, subscriber: str | None = None) -> Iterator[StandingSubscription]:
        """The subscriptions of a subscriber, or of all, in the order in which they first came.

        Raises
        ------
        UnknownIdError
        """
        with self._changing():
            if subscriber is None:
                rows = list(self._tables.subscriptions("removed = 0 ORDER BY number"))
            else:
                owner = self._subscribing.owner(subscriber)
                rows = list(
                    self._tables.subscriptions("removed = 0 AND subscriber = ? ORDER BY number", (owner.number,))
                )
        return map(self._standing, rows)

    def _standing(self, row: Any) -> StandingSubscription:
        subscriber, name = self._names(row.number)
        return StandingSubscription(
            subscriber,
            name,
            row.expression,
            row.weight,
            as_datetime(row.valid_from),
            as_datetime(row.valid_until),
            bool(row.paused),
        )

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
        rows = _rows(events) if table is None else table_events(table)
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
        self._line.put(offer)
        with self._changing():
            if offer.done is None and offer.error is None:
                self._line.commit()
                self._told.notify_all()
        if offer.error is not None:
            raise offer.error
        if offer.done is None:  # An interrupt came while another thread took it out of the line.
            raise BrokerError(INTERRUPTED)
        return list(map(self._receipt, offer.done))

    def _receipt(self, published: Published) -> Receipt:
        return Receipt(published.sequence, Matches(published.matches, self._names))

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
        with self._changing():
            self._state.now()
            owner = self._subscribing.owner(subscriber)
            start = owner.cursor if after is None else _number(after, "after")
            first = self._first(owner)
            if 0 < start < first - 1:
                raise RetentionError(subscriber, start, first)
        return self._read(owner.number, max(start, first - 1), follow)

    def _first(self, owner: Any) -> int:
        """The number of the first note that can be read."""
        return int(owner.dropped) + 1

    def _read(self, subscriber: int, after: int, follow: bool) -> Iterator[Note]:
        while True:
            with self._changing():
                self._state.now()
                notes = [
                    self._note(each) for each in self._state.queues.read(subscriber, after, self._limits.notes_at_once)
                ]
                if not notes:
                    if not follow:
                        return
                    self._told.wait(0.05)
            yield from notes
            after = notes[-1].sequence if notes else after

    def _note(self, queued: Any) -> Note:
        row = self._tables.event(queued.event)
        assert row is not None
        expired = row.valid_until is not None and row.valid_until <= self._state.moment
        names = tuple(sorted(self._names(number)[1] for number in queued.subscriptions))
        return Note(queued.sequence, read_event(row.event), queued.event, names, expired)

    def _names(self, number: int) -> tuple[str, str]:
        with self._changing():
            return self._tables.names_of(number)

    def acknowledge(self, subscriber: str, sequence: int) -> None:
        """Move the cursor of a subscriber: reading starts after this note from now on. An earlier number changes nothing.

        Raises
        ------
        UnknownIdError
        OptionError
            There is no such note yet.
        """
        number = _number(sequence, "sequence")
        with self._changing():
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
        with self._changing():
            row = self._subscribing.find(subscriber, name)
            stored = self._tables.event(_number(event_sequence, "event_sequence"))
        if stored is None:
            raise UnknownIdError(event_sequence, "event")
        return explain(row.expression, read_event(stored.event))

    def changes(self, after: int = 0) -> Iterator[Change]:
        """The subscriptions that have changed after a number, each with its last change, in order of the changes."""
        number = _number(after, "after")
        with self._changing():
            rows = list(self._tables.subscriptions("change > ? ORDER BY change", (number,)))
        return map(self._change, rows)

    def _change(self, row: Any) -> Change:
        subscriber, name = self._names(row.number)
        return Change(
            row.change,
            "removed" if row.removed or row.paused else "added",
            row.number,
            subscriber,
            name,
            row.expression,
            row.weight,
            as_datetime(row.valid_from),
            as_datetime(row.valid_until),
        )

    # Life

    def _changing(self) -> threading.Condition:
        if self._is_closed:
            raise BrokerError("the broker is closed. Hint: open the folder again")
        if self._state.is_doubtful:
            raise BrokerError("a call was interrupted halfway. Hint: close this broker and open the folder again")
        return self._told

    def close(self) -> None:
        """Close the broker. Iterators that wait for notes end."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._told.notify_all()
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


def _rows(events: Any) -> list[Any]:
    if is_event(events) or not is_iterable(events):
        raise EventError(f"events must be a list of mappings or an Arrow table, not {type(events).__name__}")
    return list(events)


def table_events(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as events. Null is a missing attribute."""
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
