"""The table `history`: where each event belongs among the earlier events, so that the history of any stored event can be found.

    sequence   the number of an event
    kind, key  the value of the history's key, and its kind; kind is '' if the history has no key, null if the event has no value
    time       the time of the event; its number if the history has no order, null if the event has no usable time
    newest     the largest time of this event and all events before it; null if there is none
    event      null while the event is in `events`, then its text

The history of event n follows from the table: of the events before n with the same key, the ones not older than `age`
before `newest` of n. Of these, the `rows` with the largest times, of equal times the latest ones. It does not matter when an
event left: it never comes back, since the events that drive it out have larger times and leave later.

When an event leaves `events`, its text moves to this table. It goes from here when no stored event and no new one needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from tamis.broker.checksums import DAMAGED, checked
from tamis.broker.event_text import read_event
from tamis.broker.tables import Tables
from tamis.earlier.history import History, history_of, options_of
from tamis.earlier.leaving import Time
from tamis.earlier.places import ShelfKey
from tamis.earlier.retained import Place, Retained, RetainedContents
from tamis.errors import BrokerError
from tamis.kernels.numbers import I64s
from tamis.language.event import FlatEvent, flatten
from tamis.language.values import Kind

OPTIONS, TIME_KIND = "history", "history_time_kind"
"""Settings: the options as JSON, and the kind of times."""
_WITHOUT_KEY = ""
_TEXT = "coalesce(history.event, events.event)"
_JOINED = "history LEFT JOIN events ON events.sequence = history.sequence"
_LATEST = "ORDER BY time DESC, history.sequence DESC"


def read_options(tables: Tables) -> History | None:
    """The history that is set in the tables; None if there is none."""
    text = tables.setting(OPTIONS)
    return None if text is None else history_of(json.loads(text))


def known_event(text: str | None) -> FlatEvent:
    """A stored event without values outside the language.

    Raises
    ------
    BrokerError
    """
    if text is None:
        raise BrokerError(f"an event that the history needs is not in the tables.{DAMAGED}")
    return {name: values for name, values in flatten(read_event(text)).items() if values}


def begin_history(tables: Tables, history: History) -> None:
    """Set a history. The events that are stored become earlier events."""
    retained, table = Retained(history), HistoryTable(tables, history)

    def rows() -> Iterator[HistoryRow]:
        for sequence, text in tables.rows("SELECT sequence, event FROM events ORDER BY sequence"):
            event = known_event(text)
            retained.begin(event)
            yield table.row(sequence, retained.place(event), retained.newest)
            retained.add(event)

    with tables.transaction():
        tables.put_setting(OPTIONS, json.dumps(options_of(history)))
        table.put_rows(rows())
        table.put_time_kind(retained.kind)


def history_of_stored(tables: Tables, sequence: int) -> list[FlatEvent] | None:
    """The history of a stored event, in order of arrival; None if the event is not stored any more."""
    with tables.snapshot():
        history = read_options(tables)
        if history is None or tables.event(sequence) is None:
            return None
        table = HistoryTable(tables, history)
        return table.before(table.stored([sequence])[0])


class HistoryRow(NamedTuple):
    """A row of `history` whose event is in `events`."""

    sequence: int
    kind: str | None
    key: Any
    time: Time | None
    newest: Time | None


class HistoryTable:
    """The table `history` of a broker with a history."""

    def __init__(self, tables: Tables, history: History) -> None:
        self._tables = tables
        self.history = history
        age = history.age
        self._age = age // timedelta(microseconds=1) if isinstance(age, timedelta) else age
        self._look_again = 0
        """Rows before the first stored event at which `prune` looks at them again."""
        self.time_kind = self._read_time_kind()

    def _read_time_kind(self) -> Kind | None:
        word = self._tables.setting(TIME_KIND)
        if word is None and self.history.age is not None:
            return Kind.TIMESTAMP if isinstance(self.history.age, timedelta) else Kind.NUMBER
        return None if word is None else Kind(word)

    def row(self, sequence: int, place: Place, newest: Time | None) -> HistoryRow:
        """The row of an event."""
        kind, key = self._key(place.shelf)
        time = place.time
        if self.history.order is None:
            time = newest = sequence
        return HistoryRow(sequence, kind, key, time, newest)

    def _key(self, shelf: ShelfKey | None) -> tuple[str | None, Any]:
        if self.history.key is None:
            return _WITHOUT_KEY, _WITHOUT_KEY
        if shelf is None:
            return None, None
        return (Kind.STRING, shelf) if isinstance(shelf, str) else shelf

    def put_rows(self, rows: Iterable[HistoryRow]) -> None:
        """Store rows. The caller has begun a transaction."""
        # SQL makes the checksum: SQLite has no booleans, so that a key may come back as a number.
        columns, marks = ", ".join(HistoryRow._fields), "?1, ?2, ?3, ?4, ?5"
        self._tables.many(f"INSERT INTO history ({columns}, checksum) VALUES ({marks}, checksum({marks}))", rows)

    def put_time_kind(self, kind: Kind | None) -> None:
        """Store the kind of times, if it was not known. The caller has begun a transaction."""
        if kind is not self.time_kind:
            self._tables.put_setting(TIME_KIND, kind)

    def _is_old(self, time: Time, newest: Time) -> bool:
        return self._age is not None and newest - time > self._age

    def stored(self, sequences: Sequence[int]) -> list[HistoryRow]:
        """The rows of stored events."""
        sql = "SELECT sequence, kind, key, time, newest, checksum FROM history WHERE sequence = ?"
        found = [self._tables.one(sql, (sequence,)) for sequence in sequences]
        if None in found:
            raise BrokerError(f"event {sequences[found.index(None)]} has no row in the table `history`.{DAMAGED}")
        return [HistoryRow(*checked(row)) for row in found]

    def before(self, row: HistoryRow) -> list[FlatEvent]:
        """The history of a stored event, in order of arrival."""
        sequence, kind, key, _, newest = row
        if kind is None or newest is None:
            return []
        sql = (
            f"SELECT history.sequence, time, {_TEXT} FROM {_JOINED} "
            f"WHERE kind = ? AND key = ? AND time <= ? AND history.sequence < ? {_LATEST} LIMIT ?"
        )
        most = -1 if self.history.rows is None else self.history.rows
        found = []
        for number, time, text in self._tables.rows(sql, (kind, key, newest, sequence, most)):
            if self._is_old(time, newest):
                break
            found.append((number, text))
        return [known_event(text) for _, text in sorted(found)]

    def numbers_between(self, first: HistoryRow, last: HistoryRow) -> I64s:
        """The numbers of the events from one to another that have the same key as both, in order."""
        rows = self._tables.rows(
            f"SELECT sequence {self._between}", (first.sequence, last.sequence, first.kind, first.key)
        )
        return np.array([number for (number,) in rows], np.int64)

    def events_between(self, first: HistoryRow, last: HistoryRow) -> Iterator[tuple[int, FlatEvent]]:
        """The events of `numbers_between`, with their numbers. Without a key, `first` and `last` are one event."""
        if first.kind is None:
            sql, values = "SELECT sequence, event FROM events WHERE sequence = ?", (first.sequence,)
        else:
            sql = (
                "SELECT history.sequence, coalesce(history.event, events.event) "
                f"FROM (SELECT sequence, event {self._between}) AS history "
                "LEFT JOIN events ON events.sequence = history.sequence ORDER BY history.sequence"
            )
            values = (first.sequence, last.sequence, first.kind, first.key)  # type: ignore[assignment]
        for number, text in self._tables.rows(sql, values):
            yield number, known_event(text)

    @property
    def _between(self) -> str:
        """Without a key, all events in between are wanted, so the index by key is not (`+`)."""
        plus = "+" if self.history.key is None else ""
        return f"FROM history WHERE sequence BETWEEN ? AND ? AND {plus}kind = ? AND {plus}key = ? ORDER BY sequence"

    def newest(self) -> Time | None:
        """The largest time seen."""
        row = self._tables.one("SELECT newest FROM history ORDER BY sequence DESC LIMIT 1")
        return None if row is None else row[0]

    def retained(self) -> RetainedContents:
        """What the next event may meet."""
        self.time_kind = self._read_time_kind()
        newest = None if self.history.order is None else self.newest()
        return RetainedContents(list(self._all_retained(newest)), newest, self.time_kind, 0)

    def _all_retained(self, newest: Time | None) -> Iterator[FlatEvent]:
        sql = (
            f"SELECT time, {_TEXT} FROM (SELECT *, row_number() OVER (PARTITION BY kind, key ORDER BY time DESC, sequence DESC) "
            "AS place FROM history WHERE kind IS NOT NULL AND time IS NOT NULL) AS history "
            "LEFT JOIN events ON events.sequence = history.sequence WHERE place <= ? ORDER BY history.sequence"
        )
        for time, text in self._tables.rows(sql, (self._most,)):
            if newest is None or not self._is_old(time, newest):
                yield known_event(text)

    @property
    def _most(self) -> int:
        return 2**62 if self.history.rows is None else self.history.rows

    def move(self, sequences: Sequence[int]) -> None:
        """Keep the texts of events that are about to leave `events`. The caller has begun a transaction."""
        sql = (
            "UPDATE history SET (event, event_checksum) = "
            "(SELECT event, event_checksum FROM events WHERE events.sequence = ?1) WHERE sequence = ?1"
        )
        self._tables.many(sql, ((sequence,) for sequence in sequences))

    def prune(self, *, at_once: bool) -> None:
        """Delete what no stored event and no new event needs any more, among the rows before the first stored event.

        A row between stored events stays until all events before it have left. Unless `at_once`, rows wait until they are many.
        """
        tables = self._tables
        (first,) = tables.one("SELECT min(sequence) FROM events")
        (last,) = tables.one("SELECT coalesce(max(sequence), 0) FROM history")  # The next event needs its `newest`.
        if first is None:
            first = last + 1
            newest = self.newest()
        else:
            row = tables.one("SELECT newest FROM history WHERE sequence = ?", (first,))
            newest = None if row is None else row[0]
        (before,) = tables.one("SELECT count(*) FROM history WHERE sequence < ?", (first,))
        if not before or (before < self._look_again and not at_once):
            return
        sql = (
            "SELECT sequence, time, kind, row_number() OVER (PARTITION BY kind, key ORDER BY time DESC, sequence DESC) "
            "FROM history WHERE sequence < ?"
        )
        gone = [
            (sequence,)
            for sequence, time, kind, place in tables.rows(sql, (first,))
            if sequence != last
            and (
                kind is None
                or time is None
                or place > self._most
                or (newest is not None and self._is_old(time, newest))
            )
        ]
        with tables.transaction():
            tables.many("DELETE FROM history WHERE sequence = ?", gone)
        self._look_again = 2 * (before - len(gone))
