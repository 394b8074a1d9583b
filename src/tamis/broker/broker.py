"""The broker: a durable publish/subscribe system around a matcher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tamis.broker.answers import Matches, Note, Receipt
from tamis.broker.arguments import listed, plain_key, plain_keys, plain_number
from tamis.broker.asked_attributes import Asked
from tamis.broker.checksums import damaged_row
from tamis.broker.delivery_calls import DeliveryCalls
from tamis.broker.event_text import read_event
from tamis.broker.history_table import history_of_stored
from tamis.broker.listing_calls import ListingCalls
from tamis.broker.moments import read_moment
from tamis.broker.publishing import Offer, Published
from tamis.broker.queues import QueuedNote
from tamis.broker.subscription_calls import SubscriptionCalls
from tamis.broker.table_rows import row_events
from tamis.broker.tables import SubscriberRow
from tamis.errors import BrokerError, OptionError, RetentionError, UnknownIdError, shortened
from tamis.language.event import flatten
from tamis.language.explain import Explanation, explain_flat
from tamis.language.reading import to_expression
from tamis.matcher.covering import CoveringReport, find_covering
from tamis.matcher.event_input import as_table
from tamis.matcher.options import plain_limit

_PATIENCE = 0.05
"""Seconds after which a reader that waits for notes looks at the clock, and at what other processes wrote."""


class Broker(SubscriptionCalls, ListingCalls, DeliveryCalls):
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
        if isinstance(valid_until, list | tuple):
            ends = [read_moment(each, "valid_until") for each in valid_until]
        else:
            ends = [read_moment(valid_until, "valid_until")] * len(rows)
        given_keys = plain_keys(keys, len(rows))
        if len(ends) != len(rows) or len(given_keys) != len(rows):
            raise OptionError(
                f"{len(rows)} events need as many keys and moments, not {len(given_keys)} and {len(ends)}"
            )
        limit = None if k is None else plain_limit(k)
        return self._published(Offer(rows, ends, given_keys, limit, table))

    def _published(self, offer: Offer) -> list[Receipt]:
        self._check_writing()  # without the lock, before others wait for this offer
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
            acknowledged. If no note was acknowledged yet, that is the oldest note there is.
        follow : bool
            Wait for more notes at the end. Closing the broker ends the iterator.

        Raises
        ------
        UnknownIdError
            There is no such subscriber. The iterator raises this, too, if somebody removes the subscriber meanwhile.
        RetentionError
            Notes after this number were dropped. The iterator raises this, too, if its next note is dropped meanwhile.
        BrokerError
            The broker is closed. The iterator raises this, too, unless it follows.
        """
        with self._looking():
            row = self._subscribing.subscriber(subscriber)
            start = row.cursor if after is None else plain_number(after, "after")
            hidden = self._retention.last_hidden(row, self._state)
            if 0 < start < hidden:
                raise RetentionError(subscriber, start, hidden + 1)
        return self._read(subscriber, start or None, follow)

    def _read(self, subscriber: str, after: int | None, follow: bool) -> Iterator[Note]:
        """The notes after a number; None: from the oldest one on. The numbers have no gap: a dropped note is an error."""
        missing = 0
        while True:
            with self._told:
                if follow and self._is_closed:
                    return
                self._look()
                row = self._subscribing.subscriber(subscriber)
                hidden = self._retention.last_hidden(row, self._state)
                after = hidden if after is None else after
                if hidden > after:
                    raise RetentionError(subscriber, after, hidden + 1)
                if missing:  # No retention has dropped it.
                    raise damaged_row(missing)
                queued = self._state.queues.read(row.number, after, self._limits.notes_at_once)
                if not queued:
                    if not follow:
                        return
                    self._told.wait(_PATIENCE)
                    continue
                moment, removals = self._state.moment, self._state.removals
            notes = self._notes(queued, moment)
            for note in notes:
                yield note
                after = note.sequence
                if self._is_closed or self._state.removals != removals:
                    break  # The next look says what has happened.
            else:
                missing = queued[len(notes)].event if len(notes) < len(queued) else 0

    def _notes(self, queued: Sequence[QueuedNote], moment: int) -> list[Note]:
        """Notes up to the first one whose event has left the tables. None if the broker was closed meanwhile."""
        try:
            return self._reading.notes(queued, moment)
        except BrokerError:
            if self._is_closed:
                return []
            raise

    def acknowledge(self, subscriber: str, sequence: int) -> None:
        """Move the cursor of a subscriber: reading starts after this note from now on. An earlier number changes nothing.

        A broker that was opened with ``read_only=True`` does this, too, while another process writes. It is all that it writes.

        Raises
        ------
        UnknownIdError
        OptionError
            There is no such note yet.
        """
        number = plain_number(sequence, "sequence")
        with self._looking():
            row = self._subscribing.subscriber(subscriber)
            self._check_told(row, number)
            if number > row.cursor:
                tables = self._cursor_tables()
                with tables.transaction():
                    tables.move_cursor(row.number, number)

    def acknowledge_many(self, sequences: Mapping[str, int]) -> None:
        """Move the cursors of subscribers in one step: all of them, or none if one is wrong. See `acknowledge`.

        Raises
        ------
        UnknownIdError, OptionError
        """
        if not isinstance(sequences, Mapping):
            raise OptionError(f"`sequences` must be a mapping from subscribers to numbers, not {shortened(sequences)}")
        with self._looking():
            moves = []
            for subscriber, sequence in sequences.items():
                row, number = self._subscribing.subscriber(subscriber), plain_number(sequence, "sequence")
                self._check_told(row, number)
                moves.append((row.number, number))
            tables = self._cursor_tables()
            with tables.transaction():
                for number, sequence in moves:
                    tables.move_cursor(number, sequence)

    def _check_told(self, row: SubscriberRow, number: int) -> None:
        total = self._state.queues.total(row.number)
        if number > total:
            raise OptionError(f"`sequence` is {number}, but the last note of {shortened(row.name)} is {total}")

    def explain(self, subscriber: str, name: str, event_sequence: int) -> Explanation:
        """Explain why a stored event satisfies a subscription or not. A value outside the language is UNKNOWN.

        With a history, the event is compared with the events that were retained when it was published.

        Raises
        ------
        UnknownIdError
        """
        number = plain_number(event_sequence, "event_sequence")
        with self._looking():
            row, stored = self._subscribing.find(subscriber, name), self._state.stored_event(number)
            expression = to_expression(row.expression)
            earlier = history_of_stored(self._tables, number) if expression.needs_history() else []
            if earlier is None:
                raise UnknownIdError(event_sequence, "event")
        return explain_flat(expression, flatten(read_event(stored.event)), earlier)

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

        A broker that was opened with ``read_only=True`` makes a matcher of its own when this is first asked. That takes as long
        as opening the folder for writing. With a history, it reads the retained events again after each change of the folder.

        Raises
        ------
        EventError
        """
        with self._matching() as state:
            return bool(state.matcher.match(event, k=1)) if state.history is None else state.history.wants(event)

    def attributes(self) -> set[str]:
        """The attributes that the subscriptions of this moment ask about. With a history, also those that it reads itself."""
        with self._matching() as state:
            asked = Asked(frozenset(state.store.asked()), state.rests, state.change, state.moment)
            own = () if self.history is None else (self.history.key, self.history.order)
        return {*self._asked.names(asked), *(name for name in own if name is not None)}

    def replay(self, expression: Any, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        """The stored events that an expression is true of, with their numbers. Nobody is told.

        Raises
        ------
        ExpressionError
        """
        read, number = self._expressions.read(expression), plain_number(after, "after")
        with self._looking():
            pass
        return self._reading.satisfying(read, number)
