"""Retention: how long notes can be read, and when events leave the tables.

Only the oldest notes of a queue go. A note can no longer be read if it is older than `max_age`, or if its queue has `max_notes`
later ones. An event leaves the tables when it is older than `max_age` and was not valid since: all its notes are hidden by then.
With `max_notes`, an event also leaves when it has notes, all of them are hidden, and it is no longer valid; see `dropping`.
`subscribers.deleted` counts the notes that have left, so that all others keep their numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np

from tamis.broker.checksums import checked
from tamis.broker.number_lists import read_numbers
from tamis.broker.queue_block import Block, without
from tamis.broker.state import State
from tamis.broker.stored_ends import last_deleted
from tamis.broker.tables import MeetingRow, SubscriberRow, Tables
from tamis.errors import OptionError, QueueFullError, shortened
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.language.values import INT64_MAX

WhenFull = Literal["drop oldest", "refuse publish"]
_EVENTS = "SELECT sequence, published, valid_until, matches, checksum FROM events"
_WAYS: tuple[WhenFull, ...] = ("drop oldest", "refuse publish")


class Retention(NamedTuple):
    """What is kept."""

    max_age: int | None = None
    """Microseconds for which a note can be read; None: for ever."""
    max_notes: int | None = None
    """How many notes of a subscriber can be read; None: all."""
    when_full: WhenFull = "drop oldest"
    """With "refuse publish", notes that were not acknowledged are not dropped for others. Publishing is an error instead."""

    def shown(self) -> dict[str, Any]:
        """The settings as users give them."""
        age = None if self.max_age is None else timedelta(microseconds=self.max_age)
        return {"max_age": age, "max_notes": self.max_notes, "when_full": self.when_full}

    @property
    def refuses(self) -> bool:
        """Whether a full queue refuses events."""
        return self.max_notes is not None and self.when_full == "refuse publish"

    def last_hidden(self, row: SubscriberRow, state: State) -> int:
        """The number of the last note of a subscriber that cannot be read any more; 0 if all can."""
        hidden = row.dropped
        if self.max_notes is not None:
            beyond = state.queues.total(row.number) - self.max_notes
            hidden = max(hidden, beyond if self.when_full == "drop oldest" else min(beyond, row.cursor))
        if self.max_age is not None:
            hidden = max(hidden, state.queues.last_before(row.number, state.moment - self.max_age))
        return hidden

    def refuse(self, names: I32s, waiting: Counter[int], state: State) -> None:
        """Count the notes of an event in `waiting`, by subscriber.

        Raises
        ------
        QueueFullError
            A queue is full, and publishing is to be refused then.
        """
        assert self.max_notes is not None
        subscribers = np.unique(state.subscriber_of.view()[names]).tolist()
        for number in subscribers:
            row = state.tables.subscriber_numbered(number)
            room = self.max_notes - state.queues.total(number) - waiting[number]
            # Notes that were dropped do not wait. Looking for them takes longer than the cursor, so it comes second.
            if room + row.cursor <= 0 and room + self.last_hidden(row, state) <= 0:
                raise QueueFullError(
                    f"{shortened(row.name)} has {self.max_notes} notes that were not acknowledged, and no more are allowed. "
                    "Nothing was stored. Hint: publish again when notes were acknowledged"
                )
        waiting.update(subscribers)


def read_retention(tables: Tables) -> Retention:
    """What is set in the tables."""
    stored = {name: tables.setting(name) for name in Retention._fields}
    return Retention(stored["max_age"], stored["max_notes"], stored["when_full"] or "drop oldest")


def write_retention(tables: Tables, retention: Retention) -> None:
    """Store what is set. The caller has begun a transaction."""
    for name, value in retention._asdict().items():
        tables.put_setting(name, value)


def checked_retention(before: Retention, given: dict[str, Any]) -> Retention:
    """What is set after a user gave new values for some fields.

    Raises
    ------
    OptionError
    """
    if "max_age" in given and given["max_age"] is not None:
        age = given["max_age"]
        if not isinstance(age, timedelta) or age <= timedelta(0):
            raise OptionError(f"`max_age` must be a timedelta above 0 or None, not {shortened(age)}")
        given = {**given, "max_age": age // timedelta(microseconds=1)}
    most = given.get("max_notes")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise OptionError(f"`max_notes` must be a number from 1 on or None, not {shortened(most)}")
    if given.get("when_full", _WAYS[0]) not in _WAYS:
        raise OptionError(f"`when_full` must be {' or '.join(map(repr, _WAYS))}, not {shortened(given['when_full'])}")
    return before._replace(**given)


def delete_old(state: State, max_age: int, most: int) -> int:
    """Delete events that are too old from the tables, at most `most`. Returns the number of the last one; 0 if there is none."""
    cutoff = state.moment - max_age
    # Events lie in the order in which they were published. So the search ends at the first one that is young enough.
    sql = "SELECT sequence FROM events WHERE published >= ? ORDER BY sequence LIMIT 1"
    (young,) = state.tables.one(sql, (cutoff,)) or (INT64_MAX,)
    sql = f"{_EVENTS} WHERE sequence < ? AND coalesce(valid_until, 0) < ? ORDER BY sequence LIMIT ?"
    rows = _matches(state.tables.rows(sql, (young, cutoff, most)))
    if rows:
        with state.tables.transaction():
            gone = _delete(state, rows)
            _count_deleted(state, gone)
            _hide_before(state, gone, cutoff)
    return int(rows[-1][0]) if rows else 0


def delete_unreadable(state: State, events: Sequence[int], moment: int) -> list[int]:
    """Delete events whose notes are all hidden, unless an event is valid at a moment or later. Returns their numbers."""
    marks = ", ".join("?" * len(events))
    sql = f"{_EVENTS} WHERE sequence IN ({marks}) AND coalesce(valid_until, 0) <= ? ORDER BY sequence"
    rows = _matches(state.tables.rows(sql, (*events, moment)))
    if rows:
        with state.tables.transaction():
            _count_deleted(state, _delete(state, rows))
    return [sequence for sequence, _ in rows]


def _matches(rows: Iterable[Any]) -> list[tuple[int, str]]:
    """Numbers of events and their matches."""
    return [(sequence, matches) for sequence, _, _, matches in map(checked, rows)]


def _delete(state: State, rows: Sequence[tuple[int, str]]) -> Counter[int]:
    """Delete events, given by number and matches, in order. Returns how many notes of each subscriber go with them."""
    if state.history is not None:
        state.history.table.move([sequence for sequence, _ in rows])
    state.tables.many("DELETE FROM events WHERE sequence = ?", ((sequence,) for sequence, _ in rows))
    state.tables.put_setting("last_deleted_event", max(rows[-1][0], last_deleted(state.tables)[0]))
    state.tables.put_setting("last_deletion", state.moment)
    return Counter(_subscribers(state, (read_numbers(matches) for _, matches in rows)))


def delete_old_meetings(state: State, max_age: int) -> None:
    """Delete meetings that are too old and whose events are all gone."""
    cutoff = state.moment - max_age
    _delete_empty(state, list(state.tables.meetings("moment < ?", (cutoff,))), cutoff)


def delete_unreadable_meetings(state: State, after: int, most: int) -> int:
    """Delete meetings whose events are all gone. Looks at `most` meetings after a number. Returns the last one; 0: no more."""
    sql = "SELECT max(number) FROM (SELECT DISTINCT number FROM meetings WHERE number > ? ORDER BY number LIMIT ?)"
    last: int = state.tables.one(sql, (after, most))[0] or 0
    _delete_empty(state, list(state.tables.meetings("number > ? AND number <= ?", (after, last))), None)
    return last


def _delete_empty(state: State, rows: Iterable[MeetingRow], cutoff: int | None) -> None:
    """Delete the meetings whose events are all gone. Notes from before the cutoff are hidden then; None: they are already."""
    for number, each in groupby(rows, key=lambda row: row.number):
        told = {row.subscription: read_numbers(row.events) for row in each}
        events = sorted(set().union(*told.values()))
        if any(state.tables.event(event) is not None for event in events):
            continue
        pairs = {(int(state.subscriber_of.view()[name]), event) for name, own in told.items() for event in own}
        gone = Counter(subscriber for subscriber, _ in pairs)
        with state.tables.transaction():
            state.tables.rows("DELETE FROM meetings WHERE number = ?", (number,))
            _count_deleted(state, gone)
            state.tables.put_setting("last_deleted_meeting", max(number, last_deleted(state.tables)[1]))
            if cutoff is not None:
                _hide_before(state, gone, cutoff)


def _subscribers(state: State, matches: Iterable[list[int]]) -> Iterable[int]:
    """The subscribers of each list of subscriptions, each once in a list."""
    subscriber_of = state.subscriber_of.view()
    for names in matches:
        yield from np.unique(subscriber_of[np.array(names, np.int32)]).tolist() if names else ()


def _count_deleted(state: State, gone: Counter[int]) -> None:
    """Count notes that leave the tables."""
    rows = ((count, subscriber) for subscriber, count in gone.items())
    state.tables.change_subscribers("deleted", "deleted + ?1", rows)


def _hide_before(state: State, subscribers: Iterable[int], cutoff: int) -> None:
    """Hide all notes from before the cutoff from now on, whatever is set later."""
    rows = ((state.queues.last_before(number, cutoff), number) for number in subscribers)
    state.tables.change_subscribers("dropped", "max(dropped, ?1)", rows)


def forget_deleted(state: State, last: int) -> None:
    """Drop the notes of deleted events from the queues. `last` is the last event that was deleted."""
    older = np.array(list(state.tables.rows("SELECT sequence FROM events WHERE sequence <= ?", (last,))), np.int64)
    _keep(state, lambda event: (event > last) | np.isin(event, older.ravel()))


def forget_events(state: State, gone: Sequence[int]) -> None:
    """Drop the notes of some events from the queues."""
    _keep(state, lambda event: ~np.isin(event, np.array(gone, np.int64)))


def _keep(state: State, kept: Callable[[I64s], Bools]) -> None:
    def chosen(block: Block) -> Block:
        is_kept = kept(block.event)
        return block if is_kept.all() else without(block, is_kept)

    state.queues.keep(chosen)
