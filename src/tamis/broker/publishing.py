"""Publishing: events are matched, stored with their matches, and told.

Threads that publish at the same time share a commit. Each puts its events into a line. The first one leads: it stores all events
of the line in one transaction, and wakes their threads. Then the first thread that came to the line meanwhile leads. A
thread whose events are stored needs no lock, so it is soon back with the next event. It matches its events before it goes to the
line, while others write. The leader matches again only if subscriptions have changed since.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.broker.event_text import event_text
from tamis.broker.live_history import LiveHistory
from tamis.broker.number_lists import numbers_text
from tamis.broker.retention import Retention
from tamis.broker.state import State
from tamis.broker.tables import FEW_EVENTS
from tamis.errors import BrokerError, EventError, TamisError
from tamis.language.event import FlatEvent, flatten

KEY_LIFE = 24 * 60 * 60 * 1_000_000
"""Microseconds for which the key of an event is remembered."""
_INTERRUPTED = "a call that stored this event with others was interrupted. Hint: publish it again, with the same `key`"
_FEW = 64
"""Events that are matched faster one by one than as a batch, and notes that are told faster without arrays."""

_FEW_MATCHES = 16
"""Matches of an event that are handled faster as a list than as an array."""


class Published(NamedTuple):
    """An event that is stored: its number, and the numbers of the subscriptions that were told."""

    sequence: int
    matches: Sequence[int]


class Offer:
    """Events that one call publishes."""

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
        self.is_plain = len(events) == 1 and keys[0] is None and valid_until[0] is None
        """Whether it is one event, without a key, that later subscriptions do not meet."""
        self.found: Sequence[Any] | None = None
        """The matches of each event, found when the matcher had changed `changes` times."""
        self.changes = 0
        self.flat: Sequence[FlatEvent] = ()
        """The events in their normal form, if the broker has a history."""
        self.done: list[Published] | None = None
        self.error: Exception | None = None
        self.leads = False
        self.wake = threading.Lock()
        """Free when the thread of this offer may go on: its events are done, or it leads."""
        self.wake.acquire()

    @property
    def is_over(self) -> bool:
        """Whether its events are stored, or will never be."""
        return self.done is not None or self.error is not None

    def match(self, state: State) -> None:
        """Match the events before the lock is held. If one of them is wrong, the leader finds it again and says so."""
        if state.history is not None:  # The history of an event is known when the event has a number.
            self.flat = list(map(flatten, self.events))
            return
        self.changes = state.matcher_changes
        with suppress(TamisError):
            self.found = self._matches(state, [False] * len(self.events))

    def matches(self, state: State, idle: Sequence[bool]) -> Sequence[Any]:
        """The subscriptions that each event satisfies. The caller holds the lock. Events that are `idle` meet nobody.

        Raises
        ------
        EventError
        """
        if not self.is_current(state):
            return self._matches(state, idle)
        assert self.found is not None
        return (
            [() if skip else found for found, skip in zip(self.found, idle, strict=True)] if any(idle) else self.found
        )

    def is_current(self, state: State) -> bool:
        """Whether the matches were found, and no subscription has changed since."""
        return self.found is not None and self.changes == state.matcher_changes

    def _matches(self, state: State, idle: Sequence[bool]) -> list[Any]:
        rows = [row for row, skip in enumerate(idle) if not skip]
        if len(rows) < _FEW:
            return [() if skip else self._match(state, row) for row, skip in enumerate(idle)]
        given: Any = self.events if self.table is None else self.table
        if len(rows) < len(idle):
            given = [given[row] for row in rows] if self.table is None else given.take(rows)
        try:
            found = state.matcher.match_batch(given, k=self.k)
        except EventError as error:
            row = None if error.row is None else rows[error.row]
            raise error.at(row) from None
        names: Any = found["subscription"].to_numpy() if len(found) else np.empty(0, np.int64)
        ends = np.searchsorted(found["event"].to_numpy(), np.arange(len(rows) + 1)).tolist()
        if len(names) <= _FEW_MATCHES * len(rows):
            names = names.tolist()
        matches: list[Any] = [()] * len(idle)
        for place, row in enumerate(rows):
            matches[row] = names[ends[place] : ends[place + 1]]
        return matches

    def _match(self, state: State, row: int) -> list[int]:
        try:
            return state.matcher.match(self.events[row], self.k)
        except EventError as error:
            if len(self.events) == 1:
                raise
            raise error.at(row) from None


def texts_of(events: Sequence[Any]) -> list[str]:
    """The JSON texts of events.

    Raises
    ------
    EventError
        The error names the row if there are several events.
    """
    if len(events) == 1:
        return [event_text(events[0])]
    return [event_text(event, row=row) for row, event in enumerate(events)]


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

    @property
    def waiting(self) -> int:
        """Calls whose events wait for a commit."""
        return len(self._waiting)

    def publish(self, offer: Offer) -> list[Published]:
        """Store events, together with those of other threads.

        Raises
        ------
        EventError, QueueFullError, BrokerError
            Nothing of the offer is stored.
        """
        offer.match(self._state)
        try:
            with self._door:
                self._waiting.append(offer)
                offer.leads = not self._has_leader
                self._has_leader = True
            if not offer.leads:
                offer.wake.acquire()
            if offer.leads:
                self._commit_waiting()
            # An offer that another thread has stored has left the line. Waiting for the door again takes a tenth of all time.
            if offer.leads or not offer.is_over:
                self._leave(offer)
        except BaseException:  # Even an interrupt: what stays in the line would be stored later, or hold up all others.
            self._leave(offer)
            raise
        if offer.error is not None:
            raise offer.error
        if offer.done is None:  # An interrupt came while another thread took it out of the line.
            raise BrokerError(_INTERRUPTED)
        return offer.done

    def _leave(self, offer: Offer) -> None:
        """Hand the lead on. An interrupt may come while a thread waits: its events are then taken out of the line.

        A second call changes nothing.
        """
        with self._door:
            if offer in self._waiting:
                self._waiting.remove(offer)
            if offer.leads:
                self._has_leader = bool(self._waiting)
                if self._waiting:
                    self._waiting[0].leads = True
                    if self._waiting[0].wake.locked():
                        self._waiting[0].wake.release()
                offer.leads = False

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
                    if not offer.is_over:
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
        if self._state.history is not None:
            self._state.history.begin()
        batch = _Batch(self._state, now, self._retention())
        for offer in offers:
            try:
                batch.add(offer)
            except Exception as error:
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
        """Numbers of valid events, the events, and their ends."""
        self.published: list[list[Published]] = []

    def add(self, offer: Offer) -> None:
        """Match the events of an offer.

        Raises
        ------
        EventError, QueueFullError
            Nothing of the offer is stored then.
        """
        if offer.is_plain and offer.is_current(self._state) and not self._retention.refuses:
            self.published.append([self._take(offer, 0, offer.found[0])])  # type: ignore[index]
            return
        known = self._known(offer.keys)
        is_again = _repeated(offer.keys)
        idle = [
            first is not None or again or _is_over(until, self._now)
            for first, again, until in zip(known, is_again, offer.valid_until, strict=True)
        ]
        counted = self._notes.copy() if self._retention.refuses else self._notes
        if self._state.history is not None:
            is_new = [first is None and not again for first, again in zip(known, is_again, strict=True)]
            matches = self._decided(self._state.history, offer, is_new, counted)
        else:
            matches = offer.matches(self._state, idle)
            for found in matches:
                self._refuse(found, counted)
        self._notes = counted
        published = []
        for place, found in enumerate(matches):
            first = known[place] or self._keys.get(offer.keys[place] or "")
            published.append(self._take(offer, place, found) if first is None else first)
        self.published.append(published)

    def _refuse(self, found: Any, counted: Counter[int]) -> None:
        """Refuse an event if a queue is full and refuses."""
        if self._retention.refuses:
            self._retention.refuse(np.asarray(found, np.int32), counted, self._state)

    def _decided(
        self, history: LiveHistory, offer: Offer, is_new: Sequence[bool], counted: Counter[int]
    ) -> Sequence[Any]:
        """The subscriptions that the new events of an offer satisfy. They become earlier events."""
        rows = [row for row, new in enumerate(is_new) if new]
        idle = [_is_over(offer.valid_until[row], self._now) for row in rows]
        first = self._state.event + len(self._rows) + 1
        try:
            flat = [offer.flat[row] for row in rows]
            found = iter(history.decide(flat, idle, first, offer.k, lambda ids: self._refuse(ids, counted)))
        except EventError as error:
            row = None if error.row is None or len(offer.events) == 1 else rows[error.row]
            raise error.at(row) from None
        return [next(found) if new else () for new in is_new]

    def _known(self, keys: Sequence[str | None]) -> list[Published | None]:
        """The events that were stored under keys within the last day."""
        asked = [key for key in keys if key is not None and key not in self._keys]
        if not asked and not self._keys:
            return [None] * len(keys)
        found = self._state.tables.keyed(asked, self._now - KEY_LIFE)
        stored = {key: stored_receipt(self._state, sequence) for key, sequence in found}
        return [None if key is None else self._keys.get(key) or stored.get(key) for key in keys]

    def _take(self, offer: Offer, place: int, found: Any) -> Published:
        sequence = self._state.event + len(self._rows) + 1
        valid_until = offer.valid_until[place]
        self._rows.append((sequence, self._now, valid_until, offer.texts[place], numbers_text(found)))
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
        history = self._state.history
        if history is None and not self._keys and len(self._rows) <= FEW_EVENTS:
            tables.put_few_events(self._rows)
            return
        with tables.transaction():
            tables.put_events(self._rows)
            if history is not None:
                history.put()
            if self._keys:
                tables.rows("DELETE FROM keys WHERE published <= ?", (self._now - KEY_LIFE,))
                # In their order, a page of the table takes many of them.
                tables.put_keys((key, self._now, self._keys[key].sequence) for key in sorted(self._keys))

    def tell(self) -> None:
        """Put the notes into the queues."""
        if self._state.history is not None:
            self._state.history.settle()
        if not self._rows:
            return
        first = self._rows[0][0]
        if len(self._rows) <= FEW_EVENTS and sum(self._counts) <= _FEW:
            self._state.tell_few_events(first, list(map(_plain_numbers, self._names)), self._now)
        else:
            if sum(self._counts) <= _FEW_MATCHES * len(self._rows):
                names = np.fromiter(chain.from_iterable(self._names), np.int32)
            else:
                names = np.concatenate([np.asarray(each, np.int32) for each in self._names])
            self._state.tell_events(first, self._counts, names, np.full(len(self._rows), self._now))
        if self._valid:
            self._state.add_valid(*zip(*self._valid, strict=True))


def _plain_numbers(found: Any) -> Sequence[int]:
    """The matches of an event as numbers of Python."""
    return found if isinstance(found, list | tuple) else found.tolist()


def stored_receipt(state: State, sequence: int) -> Published:
    """An event that was published before."""
    row = state.tables.event(sequence)
    return Published(sequence, () if row is None else row.match_numbers())


def _repeated(keys: Sequence[str | None]) -> list[bool]:
    """Which keys were there before in the same call."""
    if len(keys) == 1:
        return [False]
    first = {key: place for place, key in reversed(list(enumerate(keys))) if key is not None}
    return [key is not None and first[key] < place for place, key in enumerate(keys)]


def _is_over(valid_until: int | None, now: int) -> bool:
    return valid_until is not None and valid_until <= now
