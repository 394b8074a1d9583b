"""Events of a batch, encoded in shares for threads to match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.event_table import TableEncoder
from tamis.matcher.crew import each, shares_of, tapering

# Shares of a table that have fewer bytes are encoded sooner in one thread: two of 0.2 MB took 1.3 times as long, of 0.9 MB 0.7.
_FEWEST_ENCODED = 1 << 19
# Then the others begin with one row of so many.
_FIRST = 8

Encoded = tuple[list[EventBatch], int]
"""Some events in parts, and how many values of theirs are mismatched."""


def _nbytes(table: pa.Table) -> int:
    try:
        return int(table.nbytes)
    except pa.ArrowException:  # Not all releases of pyarrow can tell it of views.
        return int(table.get_total_buffer_size())


def is_encoded_by_one(events: pa.Table, threads: int) -> bool:
    """Whether it is best that one thread encodes a table, and the others match what it has done: if it is small."""
    return 1 < threads <= len(events) // _FIRST and _nbytes(events) < 2 * _FEWEST_ENCODED


def encoded_table(encoder: TableEncoder, events: pa.Table, by_one: bool, threads: int) -> Iterator[Encoded]:
    """Encode a table: one thread first those rows with which the others can begin, or each thread some.

    Raises
    ------
    EventError, TableError
    """
    count = len(events)
    try:
        if by_one:
            first = count // _FIRST
            batch, mismatched = encoder.rows(0, first)
            yield slices(batch, shares_of(first, threads - 1)), mismatched
            batch, mismatched = encoder.rows(first, count)
            yield slices(batch, tapering(count - first, threads)), mismatched
            return
        most = min(threads, count, _nbytes(events) // _FEWEST_ENCODED) if threads > 1 else 1
        shares = shares_of(count, most)
        encoded = each(lambda share: encoder.rows(*share), shares, threads)
    except Exception:
        encoder.rows(0, count)  # The whole of a table tells what is wrong with it first, and in which row.
        raise
    for_each = threads if len(shares) == 1 else 2
    parts = [part for batch, _ in encoded for part in slices(batch, tapering(len(batch.start) - 1, for_each))]
    yield parts, sum(mismatched for _, mismatched in encoded)


def slices(batch: EventBatch, bounds: Iterable[tuple[int, int]]) -> list[EventBatch]:
    """The events of a batch within these bounds; all, where there are none."""
    return [batch._replace(start=batch.start[first : last + 1]) for first, last in bounds] or [batch]
