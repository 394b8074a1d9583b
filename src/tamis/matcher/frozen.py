"""A saved matcher that only matches, for many processes that share one mapped file.

`tamis.load` gives a matcher that can be changed. Such a matcher takes some 50 bytes of memory for every subscription, samples
events, and builds segments again when events drift. The processes of a cluster need nothing of that, and each of them would do
it.
"""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.event_table import TableEncoder
from tamis.encoding.events.json_lines import JsonEncoder
from tamis.encoding.events.plain_rows import NotPlainError, PlainRows
from tamis.engine.matching.owners import ALIVE
from tamis.engine.matching.results import Life
from tamis.engine.matching.thread_scratch import ThreadScratch
from tamis.engine.segment import segments_of
from tamis.engine.snapshot import read_rows, read_segment
from tamis.engine.top_k import heaviest_slots
from tamis.engine.version import Accelerator, Version
from tamis.errors import SnapshotError
from tamis.kernels.numbers import F64s, I32s, I64s
from tamis.language.schema import Schema
from tamis.matcher.event_input import arrow_errors
from tamis.matcher.json_input import json_lines
from tamis.matcher.snapshot import open_snapshot
from tamis.storage import container


class FrozenMatcher:
    """A file of `Matcher.save`, mapped into memory. Its ids are integers. One thread uses it at a time.

    Raises
    ------
    SnapshotError
        See `tamis.load`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        opened = open_snapshot(container.open(path, mmap=True))
        if opened.meta["ids"] != "int":
            raise SnapshotError("has subscriptions whose ids are not integers", path=opened.path)
        if "history" in opened.meta:
            raise SnapshotError(
                "has a history, and many processes cannot share one. Hint: tamis.load", path=opened.path
            )
        schema = opened.meta["schema"]
        self._schema = None if schema is None else Schema.of(schema)
        self._dimensions = Dimensions()
        self._dimensions.restore(opened.table("dimensions"))
        segments = [read_segment(number, opened.array) for number in range(opened.meta["segments"])]
        rows = read_rows(opened.names, opened.array)
        if rows is not None:
            segments += segments_of(rows, None)
        alive = opened.array("alive")
        died = np.zeros(0, np.int64) if alive.all() else np.where(alive, ALIVE, 0)
        self._version = Version(tuple(segments), (), Life(died, 0))
        self._weights: F64s = opened.array("weights")
        self._ids: I64s = opened.array("ids")
        self._scratch = ThreadScratch()
        self.candidates = 0
        """Entries of lists that all events so far have visited, see `Work.candidates`."""

    def match(self, events: pa.Table, k: int | None = None, card: Accelerator | None = None) -> tuple[I64s, I32s]:
        """The number of subscriptions that each event satisfies, and their slots, event by event; see `ids`.

        Parameters
        ----------
        events : pyarrow.Table
        k : int, optional
            Keep the `k` subscriptions with the largest weights of each event.
        card : Accelerator, optional
            What matches in the place of the calling thread.

        Raises
        ------
        EventError, TableError, TooMuchFoundError
        """
        with arrow_errors():
            encoder = TableEncoder(events, self._dimensions, self._schema, waits=card is not None)
            if card is not None and encoder.can_wait():
                try:
                    return self._matched(encoder.waiting(0, len(events))[0], k, card)
                except NotPlainError:
                    pass
            batch = encoder.rows(0, len(events)).batch
        return self._matched(batch, k, card)

    def _matched(self, batch: EventBatch | PlainRows, k: int | None, card: Accelerator | None) -> tuple[I64s, I32s]:
        by = None if card is None else card.for_batch()
        counts, slots, work = self._version.match(batch, len(self._dimensions), self._scratch, by)
        self.candidates += work.candidates
        counts, slots = heaviest_slots(counts, slots, self._weights, k)
        return counts, np.asarray(slots)

    def match_json(
        self, column: pa.Array | pa.ChunkedArray, k: int | None = None, card: Accelerator | None = None
    ) -> tuple[I64s, I32s]:
        """`match` of events as JSON texts. A text that is null or blank is no event and has no matches.

        Raises
        ------
        EventError, TooMuchFoundError
        """
        lines = json_lines(column)
        batch = JsonEncoder(lines, self._dimensions, self._schema).rows(0, len(lines)).batch
        of_events, slots = self._matched(batch, k, card)
        counts = np.zeros(len(column), np.int64)
        counts[lines.numbers] = of_events
        return counts, slots

    def ids(self, slots: I32s) -> I64s:
        """The ids of slots."""
        return self._ids[slots]
