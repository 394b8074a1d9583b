"""The broker: a durable publish/subscribe system around a matcher."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from tamis.broker.arguments import listed, plain_key, plain_number
from tamis.broker.delivery_calls import DeliveryCalls
from tamis.broker.event_text import read_event
from tamis.broker.moments import read_moment
from tamis.broker.publishing import Offer, Published
from tamis.broker.records import Matches, Note, Receipt
from tamis.broker.storage_calls import StorageCalls
from tamis.broker.subscription_calls import SubscriptionCalls
from tamis.broker.table_rows import row_events
from tamis.broker.tables import SubscriberRow
from tamis.errors import OptionError, RetentionError, UnknownIdError, shortened
from tamis.language.explain import Explanation, explain
from tamis.matcher.covering import CoveringReport, find_covering
from tamis.matcher.event_input import as_table
from tamis.matcher.options import plain_limit

_PATIENCE = 0.05
"""Seconds after which a reader that waits for notes looks at the clock, and at what other processes wrote."""


class Broker(SubscriptionCalls, DeliveryCalls, StorageCalls):
    """Subscribers, their subscriptions, events, and the notes that tell one about the other. Make one with `tamis.open`.

    Any number of threads may use a broker.
    """

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
            [event], [read_moment(valid_until, "valid_until")], [plain_key(key)], None if k is None else plain_limit(k)
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
        rows = listed(events, "events") if table is None else row_events(table)
        ends = valid_until if isinstance(valid_until, list | tuple) else [valid_until] * len(rows)
        given_keys = [None] * len(rows) if keys is None else list(keys)
        if len(ends) != len(rows) or len(given_keys) != len(rows):
            raise OptionError(
                f"{len(rows)} events need as many keys and moments, not {len(given_keys)} and {len(ends)}"
            )
        moments = [read_moment(each, "valid_until") for each in ends]
        limit = None if k is None else plain_limit(k)
        return self._published(Offer(rows, moments, list(map(plain_key, given_keys)), limit, table))

    def _published(self, offer: Offer) -> list[Receipt]:
        return list(map(self._receipt, self._line.publish(offer)))

    def _receipt(self, published: Published) -> Receipt:
        return Receipt(published.sequence, Matches(published.matches, self._reading.names))

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
            start = owner.cursor if after is None else plain_number(after, "after")
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
        number = plain_number(sequence, "sequence")
        with self._writing():
            self._state.now()
            owner = self._subscribing.owner(subscriber)
            total = self._state.queues.total(owner.number)
            if number > total:
                raise OptionError(f"`sequence` is {number}, but the last note of {shortened(subscriber)} is {total}")
            if number > owner.cursor:
                with self._tables.transaction():
                    self._tables.rows("UPDATE subscribers SET cursor = ? WHERE number = ?", (number, owner.number))

    def explain(self, subscriber: str, name: str, event_sequence: int) -> Explanation:
        """Explain why a stored event satisfies a subscription or not.

        Raises
        ------
        UnknownIdError
        """
        number = plain_number(event_sequence, "event_sequence")
        with self._looking():
            row, stored = self._subscribing.find(subscriber, name), self._tables.event(number)
        if stored is None:
            raise UnknownIdError(event_sequence, "event")
        return explain(row.expression, read_event(stored.event))

    def covering(self, *, most: int = 3, one_value: bool = False) -> CoveringReport[tuple[str, str]]:
        """Find subscriptions that are identical, covered by others, or never true. Paused ones are compared, too.

        This takes some minutes for a million subscriptions. Others may use the broker meanwhile.

        Parameters
        ----------
        most : int
            The largest number of wider subscriptions that are listed for a subscription.
        one_value : bool
            Whether to assume that an attribute has one value in every event. Then more is found.
        """
        pairs = [((each.subscriber, each.name), each.text) for each in self.subscriptions()]
        return find_covering(pairs, scalars=None if one_value else (), most=most)

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
        return self._reading.satisfying(self._expressions.read(expression), plain_number(after, "after"))
