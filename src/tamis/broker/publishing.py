"""Publishing: events are matched, stored with their matches, and told.

Threads that publish at the same time share a commit. Each puts its events into a line. The first one leads: it stores all events
of the line in one transaction, wakes their threads, and hands the lead to the first thread that came to the line meanwhile. A
thread whose events are stored needs no lock, so it is soon back with the next event.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.broker.event_text import event_text
from tamis.broker.retention import Retention
from tamis.broker.state import State, numbers_text
from tamis.errors import BrokerError, EventError, TamisError

KEY_LIFE = 24 * 60 * 60 * 1_000_000
"""Microseconds for which the key of an event is remembered."""
_INTERRUPTED = "a call that stored this event with others was interrupted. Hint: publish it again, with the same `key`"
_FEW = 64
"""Events that are matched faster one by one than as a batch."""


class Published(NamedTuple):
    """An event that is stored: its number, and the numbers of the subscriptions that were told."""

    sequence: int
    matches: Sequence[int]


class Offer:
    """Events that one call publishes."""

    __slots__ = ("done", "error", "events", "k", "keys", "leads", "table", "texts", "valid_until", "wake")

    def __init__(
        self,
        events: Sequence[Any],
        valid_until: Sequence[int | None],
        keys: Sequence[str | None],
        k: int | None,
        table: pa.Table | None = None,
    ) -> None:
        self.events = events
        self.table = table
        """The events as a table, if they came as one."""
        self.texts = texts_of(events)
        self.valid_until = valid_until
        self.keys = keys
        self.k = k
        self.done: list[Published] | None = None
        self.error: TamisError | None = None
        self.leads = False
        self.wake = threading.Lock()
        """Free when the thread of this offer may go on: its events are done, or it leads."""
        self.wake.acquire()


def texts_of(events: Sequence[Any]) -> list[str]:
    """The JSON texts of events.

    Raises
    ------
    EventError
        The error names the row if there are several events.
    """
    if len(events) == 1:
        return [event_text(events[0])]
    texts = []
    for row, event in enumerate(events):
        try:
            texts.append(event_text(event))
        except EventError as error:
            raise EventError(error.reason, row=row, attribute=error.attribute) from None
    return texts


class Line:
    """The events that wait for a commit. `writing` holds the lock of the broker."""

    def __init__(
        self,
        state: State,
        retention: Callable[[], Retention],
        writing: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._state = state
        self._retention = retention
        self._writing = writing
        self._waiting: deque[Offer] = deque()
        self._door = threading.Lock()
        """Held while the line changes."""
        self._has_leader = False
        self.commits = 0

    def publish(self, offer: Offer) -> list[Published]:
        """Store events, together with those of other threads.

        Raises
        ------
        EventError, QueueFullError, BrokerError
            Nothing of the offer is stored.
        """
        with self._door:
            self._waiting.append(offer)
            offer.leads = not self._has_leader
            self._has_leader = True
        try:
            if not offer.leads:
                offer.wake.acquire()
            if offer.leads:
                self._commit_waiting()
        finally:
            self._leave(offer)
        if offer.error is not None:
            raise offer.error
        if offer.done is None:  # An interrupt came while another thread took it out of the line.
            raise BrokerError(_INTERRUPTED)
        return offer.done

    def _leave(self, offer: Offer) -> None:
        """Hand the lead on. An interrupt may come while a thread waits: its events are then taken out of the line."""
        with self._door:
            if offer in self._waiting:
                self._waiting.remove(offer)
            if offer.leads:
                self._has_leader = bool(self._waiting)
                if self._waiting:
                    self._waiting[0].leads = True
                    self._waiting[0].wake.release()

    def _commit_waiting(self) -> None:
        with self._writing():
            with self._door:
                offers = list(self._waiting)
                self._waiting.clear()
            try:
                self._commit(offers)
            except BaseException as error:
                failed = error if isinstance(error, TamisError) else BrokerError(_INTERRUPTED)
                for offer in offers:
                    if offer.done is None and offer.error is None:
                        offer.error = failed
                if failed is not error:
                    raise
            finally:
                for offer in offers:
                    if not offer.leads:
                        offer.wake.release()

    def _commit(self, offers: Sequence[Offer]) -> None:
        """Store events in one transaction."""
        now = self._state.now()
        batch = _Batch(self._state, now, self._retention())
        for offer in offers:
            try:
                batch.add(offer)
            except TamisError as error:
                offer.error = error
        taken = [offer for offer in offers if offer.error is None]
        with self._state.changing():
            batch.store()
            batch.tell()
        self.commits += batch.has_rows
        for offer, published in zip(taken, batch.published, strict=True):
            offer.done = published


class _Batch:
    """The events of one commit."""

    def __init__(self, state: State, now: int, retention: Retention) -> None:
        self._state = state
        self._now = now
        self._retention = retention
        self._notes: Counter[int] = Counter()
        """Notes by subscriber, if queues may be full."""
        self._rows: list[tuple[int, int, int | None, str, str]] = []
        self._keys: dict[str, Published] = {}
        self._names: list[Any] = []
        self._counts: list[int] = []
        self._valid: list[tuple[int, Any, int]] = []
        self.published: list[list[Published]] = []

    def add(self, offer: Offer) -> None:
        """Match the events of an offer.

        Raises
        ------
        EventError, QueueFullError
            Nothing of the offer is stored then.
        """
        known = [self._known(key) for key in offer.keys]
        matches = self._matches(offer, known)
        if self._retention.refuses:
            counted = self._notes.copy()
            for found in matches:
                self._retention.refuse(np.asarray(found, np.int32), counted, self._state)
            self._notes = counted
        published = []
        for place, found in enumerate(matches):
            first = known[place] or self._keys.get(offer.keys[place] or "")
            published.append(self._take(offer, place, found) if first is None else first)
        self.published.append(published)

    def _matches(self, offer: Offer, known: list[Published | None]) -> list[Any]:
        """The subscriptions that each event satisfies. An event with a known key, or one that is over, needs none."""
        idle = [
            each is not None or _is_over(until, self._now) for each, until in zip(known, offer.valid_until, strict=True)
        ]
        if len(idle) < _FEW:
            matcher = self._state.matcher
            return [
                () if skip else matcher.match(event, offer.k) for skip, event in zip(idle, offer.events, strict=True)
            ]
        given = offer.events if offer.table is None else offer.table
        found = self._state.matcher.match_batch(given, k=offer.k)
        names = found["subscription"].to_numpy() if len(found) else np.empty(0, np.int64)
        ends = np.searchsorted(found["event"].to_numpy(), np.arange(len(idle) + 1))
        return [() if idle[row] else names[ends[row] : ends[row + 1]] for row in range(len(idle))]

    def _known(self, key: str | None) -> Published | None:
        """The event that was stored under a key within the last day."""
        if key is None:
            return None
        if key in self._keys:
            return self._keys[key]
        tables = self._state.tables
        row = tables.one("SELECT sequence FROM keys WHERE key = ? AND published > ?", (key, self._now - KEY_LIFE))
        return None if row is None else stored_receipt(self._state, row[0])

    def _take(self, offer: Offer, place: int, found: Any) -> Published:
        sequence = self._state.event + len(self._rows) + 1
        numbers = found if isinstance(found, list | tuple) else found.tolist()
        valid_until = offer.valid_until[place]
        self._rows.append((sequence, self._now, valid_until, offer.texts[place], numbers_text(numbers)))
        self._names.append(found)
        self._counts.append(len(found))
        if valid_until is not None and valid_until > self._now:
            self._valid.append((sequence, offer.events[place], valid_until))
        published = Published(sequence, found)
        if key := offer.keys[place]:
            self._keys[key] = published
        return published

    @property
    def has_rows(self) -> bool:
        """Whether there is anything to store."""
        return bool(self._rows)

    def store(self) -> None:
        """Write all to the tables, in one transaction."""
        if not self._rows:
            return
        tables = self._state.tables
        with tables.transaction():
            tables.put_events(self._rows)
            if self._keys:
                tables.rows("DELETE FROM keys WHERE published <= ?", (self._now - KEY_LIFE,))
                rows = [(key, self._now, published.sequence) for key, published in self._keys.items()]
                tables.many("REPLACE INTO keys (key, published, sequence) VALUES (?, ?, ?)", rows)

    def tell(self) -> None:
        """Put the notes into the queues."""
        if not self._rows:
            return
        names = np.concatenate([np.asarray(each, np.int32) for each in self._names])
        moments = np.full(len(self._rows), self._now)
        self._state.tell_events(self._rows[0][0], self._counts, names, moments)
        for sequence, event, valid_until in self._valid:
            self._state.add_valid(sequence, event, valid_until)


def stored_receipt(state: State, sequence: int) -> Published:
    """An event that was published before."""
    row = state.tables.event(sequence)
    return Published(sequence, () if row is None else row.match_numbers())


def _is_over(valid_until: int | None, now: int) -> bool:
    return valid_until is not None and valid_until <= now
