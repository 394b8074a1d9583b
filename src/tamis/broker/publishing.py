"""Publishing: events are matched, stored with their matches, and told.

Threads that publish at the same time share a commit. Each puts its events into a line and waits for the lock. Whoever gets the
lock first takes all events of the line, and stores them in one transaction. The others then find their events done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.broker.event_text import event_text
from tamis.broker.state import State, numbers_text
from tamis.errors import BrokerError, EventError, TamisError

KEY_LIFE = 24 * 60 * 60 * 1_000_000
"""Microseconds for which the key of an event is remembered."""
_FEW = 64
"""Events that are matched faster one by one than as a batch."""

INTERRUPTED = "a call that stored this event with others was interrupted. Hint: publish it again, with the same `key`"


class Published(NamedTuple):
    """An event that is stored: its number, and the numbers of the subscriptions that were told."""

    sequence: int
    matches: Sequence[int]


class Offer:
    """Events that one call publishes."""

    __slots__ = ("done", "error", "events", "k", "keys", "table", "texts", "valid_until")

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
    """The events that wait for a commit."""

    def __init__(self, state: State, refuse: Callable[[np.ndarray[Any, Any]], None]) -> None:
        self._state = state
        self._refuse = refuse
        """Raises an error if the queues of these subscriptions are full."""
        self._waiting: deque[Offer] = deque()
        self.commits = 0

    def put(self, offer: Offer) -> None:
        self._waiting.append(offer)

    def commit(self) -> None:
        """Store all events of the line. The caller holds the lock."""
        offers: list[Offer] = []
        try:
            while self._waiting:
                offers.append(self._waiting.popleft())
            self._store(offers)
        except BaseException as error:
            # The offers of other threads have left the line, too.
            failed = error if isinstance(error, TamisError) else BrokerError(INTERRUPTED)
            for offer in offers:
                if offer.done is None and offer.error is None:
                    offer.error = failed
            if failed is not error:
                raise

    def _store(self, offers: Sequence[Offer]) -> None:
        now = self._state.now()
        batch = _Batch(self._state, now)
        for offer in offers:
            try:
                batch.add(offer, self._refuse)
            except TamisError as error:
                offer.error = error
        taken = [offer for offer in offers if offer.error is None]
        with self._state.changing():
            batch.store()
            batch.tell()
        self.commits += 1
        for offer, published in zip(taken, batch.published, strict=True):
            offer.done = published


class _Batch:
    """The events of one commit."""

    def __init__(self, state: State, now: int) -> None:
        self._state = state
        self._now = now
        self._rows: list[tuple[int, int, int | None, str, str]] = []
        self._keys: dict[str, Published] = {}
        self._names: list[Any] = []
        self._counts: list[int] = []
        self._valid: list[tuple[int, Any, int]] = []
        self.published: list[list[Published]] = []

    def add(self, offer: Offer, refuse: Callable[[np.ndarray[Any, Any]], None]) -> None:
        """Match the events of an offer.

        Raises
        ------
        EventError, QueueFullError
            Nothing of the offer is stored then.
        """
        known = [self._known(key) for key in offer.keys]
        matches = self._matches(offer, known)
        for found in matches:
            if len(found):
                refuse(np.asarray(found, np.int32))
        published = []
        for place, found in enumerate(matches):
            first = known[place] or self._known(offer.keys[place])
            published.append(self._take(offer, place, found) if first is None else first)
        self.published.append(published)

    def _matches(self, offer: Offer, known: list[Published | None]) -> list[Any]:
        """The subscriptions that each event satisfies. Those of an event with a known key, or one that is over, are not needed."""
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
        if (key := offer.keys[place]) is not None:
            self._keys[key] = published
        return published

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
