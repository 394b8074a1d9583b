"""The calls of a broker that look at parts of it: one subscription, pages of long lists, one event, what comes next.

They have a connection of their own. So a search through a million subscriptions holds up nobody.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.broker.answers import StandingSubscription, StoredEvent, SubscriberFigures
from tamis.broker.arguments import plain_number
from tamis.broker.event_text import read_event
from tamis.broker.moments import as_datetime
from tamis.broker.number_lists import read_numbers
from tamis.broker.opening import open_reading
from tamis.broker.reading import Reading
from tamis.broker.storage_calls import StorageCalls
from tamis.broker.subscribing import checked_name
from tamis.broker.tables import SubscriberRow
from tamis.errors import OptionError, UnknownIdError, shortened
from tamis.kernels.numbers import I32s

Listener = Callable[[I32s, I32s], None]
"""Is told of new notes: the numbers of their subscribers and of their subscriptions, one pair for each match."""

MOST = 10_000
"""Entries of the longest page."""

_SUBSCRIPTIONS = """
SELECT s.number, o.name, s.name, s.expression, s.weight, s.valid_from, s.valid_until, s.paused
FROM subscriptions AS s CROSS JOIN subscribers AS o ON o.number = s.subscriber
WHERE s.removed = 0 AND s.number > ?
"""
_CONTAINS = "(instr(lower(s.name), ?) OR instr(lower(s.expression), ?) OR instr(lower(o.name), ?))"


class Numbered(NamedTuple):
    """A subscription with its number, which never changes."""

    number: int
    subscription: StandingSubscription


class ListingCalls(StorageCalls):
    """Looking at parts of a broker."""

    _lists: Reading | None = None

    def subscription(self, subscriber: str, name: str) -> StandingSubscription:
        """One subscription.

        Raises
        ------
        UnknownIdError
        """
        return self.numbered(subscriber, name).subscription

    def numbered(self, subscriber: str, name: str) -> Numbered:
        """One subscription with its number.

        Raises
        ------
        UnknownIdError
        """
        with self._looking():
            row = self._subscribing.find(subscriber, name)
        bounds = as_datetime(row.valid_from), as_datetime(row.valid_until)
        found = StandingSubscription(subscriber, name, row.expression, row.weight, *bounds, bool(row.paused))
        return Numbered(row.number, found)

    def find_subscriptions(
        self, search: str = "", *, subscriber: str | None = None, after: int = 0, limit: int = 100
    ) -> list[Numbered]:
        """A page of the subscriptions, in the order in which they first came.

        Parameters
        ----------
        search : str
            A part of the name, of the subscriber's name or of the expression. Small and capital letters of ASCII are the same.
        subscriber : str, optional
            Whose subscriptions. By default, those of all.
        after : int
            The number of the last subscription of the page before.
        limit : int
            The most subscriptions of a page.

        Raises
        ------
        UnknownIdError, OptionError
        """
        sql = _SUBSCRIPTIONS
        values: list[Any] = [plain_number(after, "after")]
        if subscriber is not None:
            with self._looking():
                sql, values = f"{sql} AND s.subscriber = ?", [*values, self._subscribing.subscriber(subscriber).number]
        if search:
            sql, values = f"{sql} AND {_CONTAINS}", [*values, *[_folded(search)] * 3]
        return [
            Numbered(
                number,
                StandingSubscription(who, name, text, weight, as_datetime(start), as_datetime(end), bool(paused)),
            )
            for number, who, name, text, weight, start, end, paused in self._page(
                f"{sql} ORDER BY s.number", values, limit
            )
        ]

    def subscriber(self, name: str) -> SubscriberFigures:
        """A subscriber and the state of its queue.

        Raises
        ------
        UnknownIdError
        """
        with self._looking():
            return self._figures(self._subscribing.subscriber(name))

    def find_subscribers(self, search: str = "", *, after: int = 0, limit: int = 100) -> list[SubscriberFigures]:
        """A page of the subscribers, in the order in which they first came. The parameters are those of `find_subscriptions`."""
        sql = f"SELECT {', '.join(SubscriberRow._fields)} FROM subscribers WHERE removed = 0 AND number > ?"
        values: list[Any] = [plain_number(after, "after")]
        if search:
            sql, values = f"{sql} AND instr(lower(name), ?)", [*values, _folded(search)]
        rows = [SubscriberRow(*row) for row in self._page(f"{sql} ORDER BY number", values, limit)]
        with self._looking():
            return [self._figures(row) for row in rows if row.number < len(self._state.queues)]

    def deepest(self, most: int = 10) -> tuple[int, list[SubscriberFigures]]:
        """How many notes wait in all queues, and the subscribers with the most of them. It looks at all subscribers.

        A note that `max_age` has hidden counts until it leaves the tables. In the figures of a subscriber, it does not.
        """
        with self._looking():
            last = self._state.queues.last_numbers_with_tail()
        # Those who have acknowledged nothing and lost nothing need no row.
        sql = "SELECT number, max(cursor, dropped), removed FROM subscribers WHERE cursor > 0 OR dropped > 0 OR removed = 1"
        rows = np.array(self._page(sql, [], None), np.int64).reshape(-1, 3)
        rows = rows[rows[:, 0] < len(last)]
        last[rows[:, 0]] = np.where(rows[:, 2], 0, last[rows[:, 0]] - rows[:, 1])
        waiting = np.maximum(last, 0)
        if self._retention.max_notes is not None and not self._retention.refuses:
            waiting = np.minimum(waiting, self._retention.max_notes)
        top = (
            np.argpartition(-waiting, min(most, len(waiting)) - 1)[:most]
            if len(waiting) and most
            else np.empty(0, np.int64)
        )
        top = top[np.argsort(-waiting[top], kind="stable")]
        numbers = [int(number) for number in top if waiting[number]]
        with self._looking():
            chosen = [self._state.tables.subscriber_numbered(number) for number in numbers]
            return int(waiting.sum()), [self._figures(row) for row in chosen if not row.removed]

    def event(self, sequence: int) -> StoredEvent:
        """A stored event.

        Raises
        ------
        UnknownIdError
        """
        number = plain_number(sequence, "sequence")
        with self._looking():
            row = self._state.stored_event(number)
        published, valid_until = as_datetime(row.published), as_datetime(row.valid_until)
        assert published is not None
        return StoredEvent(number, read_event(row.event), published, valid_until, len(read_numbers(row.matches)))

    def names(self, number: int) -> tuple[str, str]:
        """The names of the subscriber and of the subscription with a number. They never change.

        Raises
        ------
        UnknownIdError
        """
        with self._looking():
            if not 0 < plain_number(number, "number") < len(self._state.subscriber_of):
                raise UnknownIdError(number)
        return self._reading.names(number)

    def costs(self, most: int = 1000, seed: int = 0) -> list[tuple[int, float]]:
        """What subscriptions cost: numbers, and expected nanoseconds for each event, the most expensive first.

        At most `most` subscriptions are looked at, which `seed` chooses. Some of them have no known cost and are left out.
        """
        with self._writing():
            count = len(self._state.subscriber_of)
        chosen = range(1, count)
        numbers = chosen if len(chosen) <= most else random.Random(seed).sample(chosen, most)
        found = [(number, cost) for number in numbers if (cost := self.cost(number)) is not None]
        return sorted(found, key=lambda pair: -pair[1])

    def brief(self) -> dict[str, Any]:
        """The figures of `stats` that are quick to find, also with a million subscriptions."""
        with self._looking():
            return self._brief()

    def counts(self) -> dict[str, int]:
        """How many subscribers, subscriptions and stored events there are. It looks at all of them."""
        sql = (
            "SELECT (SELECT count(*) FROM subscribers WHERE removed = 0), "
            "(SELECT count(*) FROM subscriptions WHERE removed = 0), (SELECT count(*) FROM events)"
        )
        return dict(zip(("subscribers", "subscriptions", "events"), self._page(sql, [], None)[0], strict=True))

    def cost(self, number: int) -> float | None:
        """What a subscription costs: expected nanoseconds for each event. None if that is not known, or if no event meets it."""
        with self._writing():
            matcher = self._state.matcher
        try:
            return matcher.plan(number).cost
        except UnknownIdError:
            return None

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a function called when notes come, until the function that this returns is called.

        The listener runs in the thread that writes, which holds the lock of the broker. It must be quick. If it raises an
        error, the error is logged.
        """
        if not callable(listener):
            raise OptionError(f"`listener` must be a function, not {shortened(listener)}")
        with self._looking():
            self._state.listeners.append(listener)

        def leave() -> None:
            with self._lock:
                if listener in self._state.listeners:
                    self._state.listeners.remove(listener)

        return leave

    def _figures(self, row: SubscriberRow) -> SubscriberFigures:
        last, hidden = self._state.queues.total(row.number), self._retention.last_hidden(row, self._state)
        return SubscriberFigures(row.number, row.name, row.cursor, hidden + 1, last, last - max(row.cursor, hidden))

    def _page(self, sql: str, values: Sequence[Any], limit: int | None) -> list[Any]:
        if limit is not None:
            if plain_number(limit, "limit") > MOST:
                raise OptionError(f"`limit` must be at most {MOST}, not {shortened(limit)}")
            sql, values = f"{sql} LIMIT ?", [*values, limit]
        with self._looking():
            if self._lists is None:
                self._lists = open_reading(self._tables, self._lock)
            lists = self._lists
        return lists.select(sql, values)

    def close(self) -> None:
        with self._lock:
            lists, self._lists = self._lists, None
        if lists is not None and not self._tables.in_memory and not self._is_copy:
            lists.close()
        super().close()


def _folded(search: str) -> str:
    """A text as SQLite's lower() writes it: only letters of ASCII change."""
    checked_name(search, "search")
    return "".join(letter.lower() if letter.isascii() else letter for letter in search)
