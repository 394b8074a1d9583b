"""A sample of the events of late, from which the planner learns what is frequent.

A reservoir of fixed size (Aggarwal, On biased reservoir sampling in the presence of stream evolution, VLDB 2006): while it has
room an event that is taken goes in, later it takes the place of any other. So the chance that an event is still there falls
by e with every `SIZE` events that are taken after it: recent events weigh more, since plans are made for the events to
come, and those are like the last ones rather than like those of a week ago.

Of matched events one of n on average is taken, where n grows from 1 to `SPARSEST` and with the attributes of the events:
the first ones are told soon, and later sampling costs a tenth of a microsecond per event on average. Half of the sample is then
younger than some 45,000 events. Which ones is drawn: every n-th would miss much of a stream that has a rhythm.

    entries     [ event ] [ (table, row) ] [ event ] ...      as they were given: dictionaries in normal form, rows of tables

A value outside the language counts as missing here.

They are encoded when a plan is made, and that is kept until dimensions and constants have grown by a tenth, labels have
moved, or an eighth of the sample is new: what it is for is statistics, and small segments must not wait for it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.columns import chosen, combined
from tamis.encoding.dimensions.dimension_set import NOT_ASKED, Dimensions
from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.events.event_batch import EncodedEvents, EventBatch, encode_flat
from tamis.encoding.events.event_table import encode_table
from tamis.engine.interrupts import holding
from tamis.errors import TableError
from tamis.language.event import FlatEvent

SIZE = 2048
"""So many events are kept."""
SPARSEST = 32
"""Every event of so many is taken in the long run."""
_WARM = 64
"""Sampling becomes sparser by one whenever so many events have come."""
_MOST_OF_BATCH = 256
"""No more than this is taken of one batch, so that a large one is not delayed."""
_EVENTS_PER_COLUMN = 30
"""Of tables, rows are taken once in so many events for each column, but columns of lists and structs stand for many."""
_FEWEST_COLUMNS = 50
_GROWTH = 0.1
_RENEWED = SIZE // 8

_Entry = FlatEvent | tuple[pa.Table, int]


class _Encoding(NamedTuple):
    """The sample in keys, and of what it was made."""

    batch: EventBatch
    dimensions: Dimensions
    words: int
    moves: int
    taken: int


class Sample:
    """Events of late. Any thread may add to it and ask for it."""

    def __init__(self, seed: int = 0) -> None:
        self._lock = threading.RLock()
        self.is_changing = holding(self._lock)
        """Whether the calling thread is in the midst of something here: what it may be interrupted by takes nothing."""
        self._random = random.Random(seed)
        self._entries: list[_Entry] = []
        self._taken = 0
        self._encoding: _Encoding | None = None
        self._rows_put = 0
        self._seen = 0
        """How many events had been matched when some were last taken."""
        self.next = 0
        """When so many events have been matched, the next is to be taken: whoever matches compares with this alone."""

    def __len__(self) -> int:
        return len(self._entries)

    def take_one(self, event: FlatEvent, seen: int) -> None:
        """Take an event that is due, the last of `seen`."""
        if self.is_changing():
            return
        try:
            if self._lock.acquire(blocking=False):  # one of two that come at once is enough
                # To flatten one takes time in proportion to its attributes.
                self.next = seen + self._drawn(self._step(seen) * (1 + len(event) // 8))
                self._seen = seen
                self._put(event)
        finally:
            if self.is_changing():  # an interrupt may come before anybody else knows that it was acquired
                self._lock.release()

    def take_due(self, events: Sequence[FlatEvent] | pa.Table, seen: int) -> None:
        """Take those that are due of a batch, whose last event is the last of `seen`."""
        count = len(events)
        if self.is_changing():
            return
        with self._lock:
            step = wait = self._step(seen)
            first = min(max(self.next - (seen - count) - 1, 0), count)
            wanted = -(-(count - first) // step)
            if isinstance(events, pa.Table) and step == SPARSEST:
                # Taking rows takes time in proportion to the columns, however many they are: so seldom, and more at once.
                wait = _EVENTS_PER_COLUMN * max(events.num_columns, _FEWEST_COLUMNS)
                first, wanted = 0, max(-(-(seen - self._seen) // step), 0)
            self._seen = seen
            self.next = seen + self._drawn(wait)
            self._put_rows(events, range(first, count), min(wanted, count - first, _MOST_OF_BATCH))

    def take_all(self, events: Sequence[FlatEvent] | pa.Table) -> None:
        """Take a batch, of a large one as many events as there is room for in all."""
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

    def _put_rows(self, events: Sequence[FlatEvent] | pa.Table, among: range, count: int) -> None:
        """Take so many events among some rows."""
        rows = sorted(self._random.sample(among, count))
        if not rows:
            return
        if not isinstance(events, pa.Table):
            for row in rows:
                self._put(events[row])
            return
        # Copied: a slice would keep the whole table alive.
        copied = _taken(events, rows)
        for row in range(len(copied)):
            self._put((copied, row))
        self._rows_put += len(rows)
        if self._rows_put > 2 * SIZE:
            self._tidy()

    def _put(self, entry: _Entry) -> None:
        self._taken += 1
        if len(self._entries) < SIZE:
            self._entries.append(entry)
        else:
            self._entries[self._random.randrange(SIZE)] = entry

    def _tidy(self) -> tuple[list[FlatEvent], list[pa.Table]]:
        """Bring the rows of tables together, and let go of those that are no longer in; returns all there is."""
        flat = [entry for entry in self._entries if not isinstance(entry, tuple)]
        places: dict[int, tuple[pa.Table, list[int]]] = {}
        for entry in self._entries:
            if isinstance(entry, tuple):
                places.setdefault(id(entry[0]), (entry[0], []))[1].append(entry[1])
        alike: dict[pa.Schema, list[pa.Table]] = {}
        for table, rows in places.values():
            bare = table.replace_schema_metadata(None)
            alike.setdefault(bare.schema, []).append(_taken(bare, rows))
        tables = [pa.concat_tables(parts) for parts in alike.values()]
        self._entries = [*flat, *((table, row) for table in tables for row in range(len(table)))]
        self._rows_put = 0
        return flat, tables

    def forget_encoding(self) -> None:
        """Let the next who asks see the sample as it is now."""
        with self._lock:
            self._encoding = None

    def encoded(self, dimensions: Dimensions, moves: int) -> EventBatch | None:
        """The sample in keys; None if it is empty. The caller sees to it that dimensions do not change meanwhile.

        `moves` counts how often labels have moved.
        """
        with self._lock:
            if not self._entries:
                return None
            kept, words = self._encoding, dimensions.words()
            if (
                kept is None
                or kept.dimensions is not dimensions
                or kept.moves != moves
                or words > (1 + _GROWTH) * kept.words
                or self._taken - kept.taken > min(_RENEWED, kept.taken)
            ):
                flat, tables = self._tidy()
                # Somebody may ask by now about an attribute that nobody looked at when the event was taken.
                parts = [encode_flat(flat, dimensions, lenient=True)]
                parts += [part for table in tables for part in _encoded_leniently(table, dimensions)]
                batch = _joined([part.batch for part in parts])
                self._encoding = kept = _Encoding(batch, dimensions, words, moves, self._taken)
            return kept.batch


def relabelled(batch: EventBatch | None, dimension: int, relabelling: Relabelling) -> EventBatch | None:
    """A sample with the keys of a dimension following its labels. Those in a gap become the whole of it."""
    if batch is None:
        return None
    lo, hi = relabelling.moved(batch.lo, batch.hi, batch.dimension == dimension)
    return batch._replace(lo=lo, hi=hi)


def renumbered(batch: EventBatch | None, numbers: npt.NDArray[np.int32]) -> EventBatch | None:
    """A sample with the new numbers of dimensions, without the values of those that have none."""
    if batch is None:
        return None
    dimension = numbers[batch.dimension]
    kept = dimension != NOT_ASKED
    start = np.append(0, np.cumsum(kept))[batch.start]
    return EventBatch(start, dimension[kept], batch.lo[kept], batch.hi[kept])


def _encoded_leniently(table: pa.Table, dimensions: Dimensions) -> Iterator[EncodedEvents]:
    """A table in keys; nothing if Arrow cannot read what is asked about by now, which whoever gives such a table is told."""
    with suppress(pa.ArrowException, TableError):
        yield encode_table(table, dimensions, lenient=True)


def _taken(table: pa.Table, rows: Sequence[int]) -> pa.Table:
    """Some rows of a table. Columns that Arrow cannot take rows of have no values then."""
    places = np.array(rows, np.int64)
    try:
        return table.take(pa.array(places))
    except pa.ArrowException:
        pass
    columns = [_taken_column(column, places) for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _taken_column(column: pa.ChunkedArray, places: npt.NDArray[np.int64]) -> pa.ChunkedArray | pa.Array:
    try:
        return column.take(pa.array(places))
    except pa.ArrowException:
        pass  # it has few functions for views and unions
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
