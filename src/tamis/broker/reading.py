"""Reading: notes and names from the tables, through a connection of its own, so that readers do not wait for commits."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tamis.broker.answers import Change, Note, StandingSubscription
from tamis.broker.checksums import checked
from tamis.broker.event_text import read_event
from tamis.broker.history_table import history_of_stored
from tamis.broker.moments import as_datetime
from tamis.broker.queues import QueuedNote
from tamis.broker.tables import SubscriptionRow, Tables
from tamis.earlier.join_table import necessary
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent, flatten
from tamis.language.expression import Expression

_NAMES_KEPT = 100_000
"""Names of subscriptions in memory."""


class Reading:
    """Looks up what has only numbers."""

    def __init__(self, tables: Tables, lock: threading.RLock) -> None:
        self.tables = tables
        self._lock = lock
        """Held while the connection is in use."""
        self._names: OrderedDict[int, tuple[str, str]] = OrderedDict()

    def names(self, subscription: int) -> tuple[str, str]:
        """The names of a subscription's subscriber and of the subscription. They never change."""
        with self._lock:
            found = self._names.get(subscription)
            if found is None:
                found = self._names[subscription] = self.tables.names_of(subscription)
                if len(self._names) > _NAMES_KEPT:
                    self._names.popitem(last=False)
            return found

    def notes(self, queued: Sequence[QueuedNote], moment: int) -> list[Note]:
        """Notes with their events and names, up to the first note whose event has just left the tables."""
        found = []
        with self._lock:
            stored = self.tables.event_texts([note.event for note in queued])
            for sequence, event, _, subscriptions in queued:
                if event not in stored:
                    break
                text, valid_until = stored[event]
                names = tuple(sorted(self.names(number)[1] for number in subscriptions))
                expired = valid_until is not None and valid_until <= moment
                found.append(Note(sequence, read_event(text), event, names, expired))
        return found

    def rows(self, condition: str, values: tuple[object, ...] = ()) -> list[SubscriptionRow]:
        """Rows of subscriptions."""
        with self._lock:
            return list(self.tables.subscriptions(condition, values))

    def select(self, sql: str, values: Sequence[object]) -> list[Any]:
        """All rows of a query."""
        with self._lock:
            return list(self.tables.rows(sql, values))

    def standing(self, row: SubscriptionRow) -> StandingSubscription:
        """A subscription as users see it."""
        subscriber, name = self.names(row.number)
        bounds = as_datetime(row.valid_from), as_datetime(row.valid_until)
        return StandingSubscription(subscriber, name, row.expression, row.weight, *bounds, bool(row.paused))

    def change(self, row: SubscriptionRow) -> Change:
        """The last change of a subscription."""
        subscriber, name = self.names(row.number)
        what = "removed" if row.removed or row.paused else "added"
        bounds = as_datetime(row.valid_from), as_datetime(row.valid_until)
        return Change(row.change, what, row.number, subscriber, name, row.expression, row.weight, *bounds)

    def satisfying(self, expression: Expression, after: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """The stored events that an expression is true of, after a number. A value outside the language is UNKNOWN.

        Each event is compared with its own history.
        """
        joined = expression.needs_history()
        constant = necessary(expression) if joined else expression
        sql = "SELECT sequence, event, event_checksum FROM events WHERE sequence > ? ORDER BY sequence LIMIT 1000"
        while True:
            with self._lock:
                rows = list(self.tables.rows(sql, (after,)))
            if not rows:
                return
            for sequence, text in map(checked, rows):
                event = read_event(text)
                flat = flatten(event)
                if evaluate_flat(constant, flat) is True:
                    earlier = self._history_of(sequence) if joined else []
                    if earlier is not None and evaluate_flat(expression, flat, earlier) is True:
                        yield sequence, event
            after = rows[-1][0]

    def _history_of(self, sequence: int) -> list[FlatEvent] | None:
        with self._lock:
            return history_of_stored(self.tables, sequence)

    def backup(self, path: Path) -> None:
        """Copy the tables of this moment to a new file, through one more connection: that may take long, and others read."""
        if self.tables.in_memory:
            with self._lock:
                self.tables.backup(str(path))
            return
        own = Tables(self.tables.path, read_only=True)
        try:
            own.backup(str(path))
        finally:
            own.close()

    def close(self) -> None:
        with self._lock:
            self.tables.close()
