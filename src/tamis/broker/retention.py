"""Retention: how long notes can be read, and when events leave the tables.

Only the oldest notes of a queue go. A note can no longer be read if it is older than `max_age`, or if its queue has `max_notes`
later ones. An event leaves the tables when it is older than `max_age` and was not valid since: all its notes are hidden by then.
`subscribers.deleted` counts the notes that have left, so that all others keep their numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np

from tamis.broker.queue_block import Block, without
from tamis.broker.state import State, last_deleted
from tamis.broker.tables import MeetingRow, SubscriberRow, Tables, read_numbers
from tamis.errors import OptionError, QueueFullError, shortened
from tamis.kernels.numbers import I32s

WhenFull = Literal["drop oldest", "refuse publish"]
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

    def last_hidden(self, owner: SubscriberRow, state: State) -> int:
        """The number of the last note of a subscriber that cannot be read any more; 0 if all can."""
        hidden = owner.dropped
        if self.max_notes is not None:
            beyond = state.queues.total(owner.number) - self.max_notes
            hidden = max(hidden, beyond if self.when_full == "drop oldest" else min(beyond, owner.cursor))
        if self.max_age is not None:
            hidden = max(hidden, state.queues.last_before(owner.number, state.moment - self.max_age))
        return hidden

    def refuse(self, names: I32s, waiting: Counter[int], state: State) -> None:
        """Count the notes of an event in `waiting`, by subscriber.

        Raises
        ------
        QueueFullError
            A queue is full, and publishing is to be refused then.
        """
        assert self.max_notes is not None
        owners = np.unique(state.owners.view()[names]).tolist()
        for owner in owners:
            cursor, name = state.tables.one("SELECT cursor, name FROM subscribers WHERE number = ?", (owner,))
            if state.queues.total(owner) + waiting[owner] - cursor >= self.max_notes:
                raise QueueFullError(
                    f"{shortened(name)} has {self.max_notes} notes that were not acknowledged, and no more are allowed. "
                    "Nothing was stored. Hint: publish again when notes were acknowledged"
                )
        waiting.update(owners)


def read_retention(tables: Tables) -> Retention:
    """What is set in the tables."""
    stored = {name: tables.setting(name) for name in Retention._fields}
    return Retention(stored["max_age"], stored["max_notes"], stored["when_full"] or "drop oldest")


def write_retention(tables: Tables, retention: Retention) -> None:
    with tables.transaction():
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
    sql = (
        "SELECT sequence, matches FROM events WHERE published < ? AND coalesce(valid_until, 0) < ? "
        "ORDER BY sequence LIMIT ?"
    )
    rows = list(state.tables.rows(sql, (cutoff, cutoff, most)))
    if rows:
        gone = Counter(_owners(state, (read_numbers(matches) for _, matches in rows)))
        with state.tables.transaction():
            state.tables.many("DELETE FROM events WHERE sequence = ?", ((sequence,) for sequence, _ in rows))
            _count_deleted(state, gone, cutoff)
            last = max(rows[-1][0], last_deleted(state.tables)[0])
            state.tables.put_setting("last_deleted_event", last)
            state.tables.put_setting("last_deletion", state.moment)
    return int(rows[-1][0]) if rows else 0


def delete_old_meetings(state: State, max_age: int) -> None:
    """Delete meetings that are too old and whose events are all gone."""
    sql = "SELECT * FROM meetings WHERE moment < ? ORDER BY number"
    rows = map(MeetingRow._make, list(state.tables.rows(sql, (state.moment - max_age,))))
    for number, each in groupby(rows, key=lambda row: row.number):
        told = {row.subscription: read_numbers(row.events) for row in each}
        events = sorted(set().union(*told.values()))
        if any(state.tables.event(event) is not None for event in events):
            continue
        cutoff = state.moment - max_age
        pairs = {(int(state.owners.view()[name]), event) for name, own in told.items() for event in own}
        with state.tables.transaction():
            state.tables.rows("DELETE FROM meetings WHERE number = ?", (number,))
            _count_deleted(state, Counter(owner for owner, _ in pairs), cutoff)
            state.tables.put_setting("last_deleted_meeting", max(number, last_deleted(state.tables)[1]))


def _owners(state: State, matches: Iterable[list[int]]) -> Iterable[int]:
    """The subscribers of each list of subscriptions, each once in a list."""
    owners = state.owners.view()
    for names in matches:
        yield from np.unique(owners[np.array(names, np.int32)]).tolist() if names else ()


def _count_deleted(state: State, gone: Counter[int], cutoff: int) -> None:
    """Count notes that leave the tables. All notes from before the cutoff stay hidden from now on, whatever is set later."""
    rows = ((count, state.queues.last_before(owner, cutoff), owner) for owner, count in gone.items())
    state.tables.many("UPDATE subscribers SET deleted = deleted + ?, dropped = max(dropped, ?) WHERE number = ?", rows)


def forget_deleted(state: State, last: int) -> None:
    """Drop the notes of deleted events from the queues. `last` is the last event that was deleted."""
    older = np.array(list(state.tables.rows("SELECT sequence FROM events WHERE sequence <= ?", (last,))), np.int64)

    def chosen(block: Block) -> Block:
        is_kept = (block.event > last) | np.isin(block.event, older.ravel())
        return block if is_kept.all() else without(block, is_kept)

    state.queues.keep(chosen)
