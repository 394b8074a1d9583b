"""A sample of recent events, from which the planner learns which values are frequent.

A reservoir of fixed size (Aggarwal, On biased reservoir sampling in the presence of stream evolution, VLDB 2006). A taken event
is added while there is room; later it replaces a random other event. So the probability that an event is still there falls by e
with every `SIZE` events that are taken after it. Recent events weigh more, since future events are more like them than like the
events of a week ago.

On average, one of n matched events is taken. n grows from 1 to `SPARSEST`, and with the number of attributes. So the first events
count soon, and later sampling takes a tenth of a microsecond per event on average. Half of the sample is then younger than some
45,000 events. The events are chosen at random: every n-th event would miss much of a stream that has a rhythm.

    entries     [ event ] [ (table, row) ] [ unread ] ...     as they were given: flat events, rows of tables, what makes them

A value outside the language counts as missing here. Flattening a large event takes longer than matching ten of them, and a small
matcher never plans. So events of batches are flattened when somebody first asks for the encoded sample.

The sample is encoded when a plan is made. Statistics may be a little old, and small segments must not wait. So the encoding is
used again until dimensions and constants have grown by a tenth, labels have moved, or an eighth of the sample is new.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encoding.columns import chosen, combined
from tamis.encoding.dimensions.dimension_set import NOT_ASKED, Dimensions
from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.events.event_batch import EncodedEvents, EventBatch, encode_flat
from tamis.encoding.events.event_table import encode_table
from tamis.encoding.events.json_lines import JsonLines
from tamis.encoding.events.mappings import Mappings
from tamis.engine.interrupts import holding
from tamis.errors import TableError
from tamis.kernels.numbers import I32s, I64s
from tamis.language.event import FlatEvent

SIZE = 2048
"""Events in the sample."""
SPARSEST = 32
"""In the long run, one event is taken of this many matched events."""
_WARM = 64
"""After this many more matched events, the distance between two taken events grows by one."""
_MOST_OF_BATCH = 256
"""The most events taken from one batch, so that a large batch is not delayed."""
_EVENTS_PER_COLUMN = 30
"""Rows of tables are taken after this many events for each column, since taking rows costs time per column."""
_FEWEST_COLUMNS = 50
"""A table counts as having at least this many columns: one column of lists or structs may stand for many."""
_GROWTH = 0.1
"""Growth of dimensions and constants after which the sample is encoded again."""
_RENEWED = SIZE // 8
"""New events after which the sample is encoded again."""

ReadEntry = FlatEvent | tuple[pa.Table, int]
Entry = ReadEntry | Callable[[], FlatEvent]


class _Encoding(NamedTuple):
    """The sample in keys, and the state that it was encoded with."""

    batch: EventBatch
    dimensions: Dimensions
    words: int
    moves: int
    taken: int


class Sample:
    """Recent events. Any thread may add events and ask for the encoded sample."""

    def __init__(self, seed: int = 0) -> None:
        self._lock = threading.RLock()
        self.is_changing = holding(self._lock)
        """Whether the calling thread is inside of a call here. A call that interrupts it takes no events."""
        self._random = random.Random(seed)
        self.entries: list[Entry] = []
        """Flat events, rows of tables, and functions that flatten an event."""
        self._taken = 0
        self._encoding: _Encoding | None = None
        self._rows_put = 0
        self._seen = 0
        """The number of matched events when some were last taken."""
        self.next = 0
        """The number of matched events at which the next one is taken. Matching compares only with this."""

    def __len__(self) -> int:
        return len(self.entries)

    def take_one(self, event: FlatEvent, seen: int) -> None:
        """Take an event that is due, the last of `seen`."""
        if self.is_changing():
            return
        try:
            if self._lock.acquire(blocking=False):  # If two threads come together, one event is enough.
                # Flattening an event takes time in proportion to its attributes.
                self.next = seen + self._drawn(self._step(seen) * (1 + len(event) // 8))
                self._seen = seen
                self._put(event)
        finally:
            if self.is_changing():  # Not the result of `acquire`: an interrupt may come before it is returned.
                self._lock.release()

    def take_due(self, events: Sequence[FlatEvent] | Mappings | pa.Table | JsonLines, seen: int) -> None:
        """Take the events of a batch that are due. The last event of the batch is the last of `seen`."""
        count = len(events)
        if self.is_changing():
            return
        with self._lock:
            step = wait = self._step(seen)
            first = min(max(self.next - (seen - count) - 1, 0), count)
            wanted = -(-(count - first) // step)
            if isinstance(events, pa.Table) and step == SPARSEST:
                # Taking rows takes time in proportion to the columns, not to the rows. So take seldom, and many at once.
                wait = _EVENTS_PER_COLUMN * max(events.num_columns, _FEWEST_COLUMNS)
                first, wanted = 0, max(-(-(seen - self._seen) // step), 0)
            self._seen = seen
            self.next = seen + self._drawn(wait)
            self._put_rows(events, range(first, count), min(wanted, count - first, _MOST_OF_BATCH))

    def take_all(self, events: Sequence[FlatEvent] | pa.Table) -> None:
        """Take a batch. From a large batch, take as many events as the sample has."""
        if self.is_changing():
            return
        with self._lock:
            self._put_rows(events, range(len(events)), min(len(events), SIZE))

    @staticmethod
    def _step(seen: int) -> int:
        return min(1 + seen // _WARM, SPARSEST)

    def _drawn(self, step: int) -> int:
        """A number of events to wait, `step` on average."""
        return self._random.randrange(1, 2 * step)

    def _put_rows(
        self, events: Sequence[FlatEvent] | Mappings | pa.Table | JsonLines, among: range, count: int
    ) -> None:
        """Take `count` random events among some rows."""
        rows = sorted(self._random.sample(among, count))
        if not rows:
            return
        if not isinstance(events, pa.Table):
            for row in rows:
                self._put(events.unread(row) if isinstance(events, Mappings | JsonLines) else events[row])
            return
        # Copied: a slice would keep the whole table alive.
        copied = _taken(events, rows)
        for row in range(len(copied)):
            self._put((copied, row))
        self._rows_put += len(rows)
        if self._rows_put > 2 * SIZE:
            self._tidy()

    def _put(self, entry: Entry) -> None:
        self._taken += 1
        if len(self.entries) < SIZE:
            self.entries.append(entry)
        else:
            self.entries[self._random.randrange(SIZE)] = entry

    def _tidy(self) -> tuple[list[FlatEvent], list[pa.Table]]:
        """Join the rows of tables, and drop the rows that are no longer in the sample; returns all events."""
        flat = [entry for entry in self.entries if isinstance(entry, dict)]
        unread = [entry for entry in self.entries if not isinstance(entry, dict | tuple)]
        places: dict[int, tuple[pa.Table, list[int]]] = {}
        for entry in self.entries:
            if isinstance(entry, tuple):
                places.setdefault(id(entry[0]), (entry[0], []))[1].append(entry[1])
        alike: dict[pa.Schema, list[pa.Table]] = {}
        for table, rows in places.values():
            bare = table.replace_schema_metadata(None)
            alike.setdefault(bare.schema, []).append(_taken(bare, rows))
        tables = [pa.concat_tables(parts) for parts in alike.values()]
        self.entries = [*flat, *unread, *((table, row) for table in tables for row in range(len(table)))]
        self._rows_put = 0
        return flat, tables

    def read(self, most: int) -> list[ReadEntry]:
        """Some of the events, at most `most`: flat, or rows of tables."""
        with self._lock:
            found = [entry if isinstance(entry, dict | tuple) else entry() for entry in self.entries[:most]]
            self.entries[: len(found)] = found
            return found

    def forget_encoding(self) -> None:
        """Encode the sample again when somebody next asks for it."""
        with self._lock:
            self._encoding = None

    def encoded(self, dimensions: Dimensions, moves: int) -> EventBatch | None:
        """The sample in keys; None if it is empty. The caller keeps dimensions from changing meanwhile.

        `moves` counts how often labels have moved.
        """
        with self._lock:
            if not self.entries:
                return None
            kept, words = self._encoding, dimensions.words()
            if (
                kept is None
                or kept.dimensions is not dimensions
                or kept.moves != moves
                or words > (1 + _GROWTH) * kept.words
                or self._taken - kept.taken > min(_RENEWED, kept.taken)
            ):
                self.read(SIZE)
                flat, tables = self._tidy()
                # Leniently: a predicate may now ask about an attribute that was not checked when the event was taken.
                parts = [encode_flat(flat, dimensions, lenient=True)]
                parts += [part for table in tables for part in _encoded_leniently(table, dimensions)]
                batch = _joined([part.batch for part in parts])
                self._encoding = kept = _Encoding(batch, dimensions, words, moves, self._taken)
            return kept.batch


def relabelled(batch: EventBatch | None, dimension: int, relabelling: Relabelling) -> EventBatch | None:
    """A sample with new keys in a dimension whose labels move. A key in a gap becomes the whole gap."""
    if batch is None:
        return None
    lo, hi = relabelling.moved(batch.lo, batch.hi, batch.dimension == dimension)
    return batch._replace(lo=lo, hi=hi)


def renumbered(batch: EventBatch | None, numbers: I32s) -> EventBatch | None:
    """A sample with new numbers of dimensions, without the values of dimensions that have no number."""
    if batch is None:
        return None
    dimension = numbers[batch.dimension]
    kept = dimension != NOT_ASKED
    start = np.append(0, np.cumsum(kept))[batch.start]
    return EventBatch(start, dimension[kept], batch.lo[kept], batch.hi[kept])


def _encoded_leniently(table: pa.Table, dimensions: Dimensions) -> Iterator[EncodedEvents]:
    """A table in keys; nothing if Arrow cannot read it. The user who gives such a table gets an error."""
    with suppress(pa.ArrowException, TableError):
        yield encode_table(table, dimensions, lenient=True)


def _taken(table: pa.Table, rows: Sequence[int]) -> pa.Table:
    """Some rows of a table. Columns whose rows Arrow cannot take become null."""
    places = np.array(rows, np.int64)
    try:
        return table.take(pa.array(places))
    except pa.ArrowException:
        pass
    columns = [_taken_column(column, places) for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _taken_column(column: pa.ChunkedArray, places: I64s) -> pa.ChunkedArray | pa.Array:
    try:
        return column.take(pa.array(places))
    except pa.ArrowException:
        pass  # Arrow has few functions for views and unions.
    try:
        return chosen(combined(column), places)
    except pa.ArrowException:
        return pa.nulls(len(places))


def _joined(parts: Sequence[EventBatch]) -> EventBatch:
    """Batches one after another."""
    before = np.cumsum([0, *(int(part.start[-1]) for part in parts)])
    start = [part.start[:-1] + shift for part, shift in zip(parts, before[:-1], strict=True)]
    return EventBatch(
        np.concatenate([*start, before[-1:]]),
        np.concatenate([part.dimension for part in parts]),
        np.concatenate([part.lo for part in parts]),
        np.concatenate([part.hi for part in parts]),
    )
