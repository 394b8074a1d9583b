"""Events of a batch, encoded in shares for threads to match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.event_table import TableEncoder
from tamis.encoding.events.json_lines import JsonEncoder, JsonLines
from tamis.encoding.events.mapping_encoder import MappingEncoder
from tamis.encoding.events.plain_rows import PlainRows
from tamis.matcher.crew import each, shares_of, tapering
from tamis.matcher.store import Workers

_FIRST = 8
"""If one thread encodes a small table, the other threads begin when one eighth of its rows is encoded."""

ON_CARD = 1 << 16
"""Events of a part that a card matches. Its launches and copies take some milliseconds in all, whatever the number of events."""
CARD_THREADS = 4
"""The most threads that let a card match parts: enough to copy one part while another is matched."""

Encoded = tuple[list[EventBatch] | list[PlainRows], int]
"""Some events in parts, and the number of their mismatched values."""


def _nbytes(events: pa.Table | JsonLines) -> int:
    if isinstance(events, JsonLines):
        return events.nbytes
    try:
        return int(events.nbytes)
    except pa.ArrowException:  # Some releases of pyarrow do not know it for views.
        return int(events.get_total_buffer_size())


def is_encoded_by_one(events: pa.Table, threads: int, share_bytes: int) -> bool:
    """Whether one thread should encode a table while others match the first rows, since the table is small."""
    return 1 < threads <= len(events) // _FIRST and _nbytes(events) < 2 * share_bytes


def encoded_table(
    encoder: TableEncoder,
    events: pa.Table,
    by_one: bool,
    workers: Workers,
    share_bytes: int,
) -> Iterator[Encoded]:
    """Encode a table. Either one thread encodes, the first rows before the others, or each thread encodes a share.

    Raises
    ------
    EventError, TableError
    """
    count, threads = len(events), workers.threads
    try:
        if by_one:
            first = count // _FIRST
            batch, mismatched = encoder.rows(0, first)
            yield slices(batch, shares_of(first, threads - 1)), mismatched
            batch, mismatched = encoder.rows(first, count)
            yield slices(batch, tapering(count - first, threads)), mismatched
            return
        shares = _shares(events, workers, share_bytes)
        encoded = each(lambda share: encoder.rows(*share), shares, threads)
    except Exception:
        encoder.rows(0, count)  # The error of the whole table names the first wrong row.
        raise
    for_each = threads if len(shares) == 1 else 2
    parts = [
        part for batch, _ in encoded for part in slices(batch, bounds_for(len(batch.start) - 1, workers, for_each))
    ]
    yield parts, sum(mismatched for _, mismatched in encoded)


def encoded_lines(encoder: JsonEncoder, lines: JsonLines, workers: Workers, share_bytes: int) -> Iterator[Encoded]:
    """Encode lines of JSON: all threads read, one thread encodes, all threads match.

    Reading is a few long calls of kernels, which other threads do not disturb. Encoding is some ten short calls for each
    attribute. Between these calls, two threads that encode wait for each other's interpreter lock: on two cores, they took as
    long as one thread, with 1.5 times its processor time.

    Raises
    ------
    WrongEventsError
    """
    shares = _shares(lines, workers, share_bytes)
    batch, mismatched = encoder.encoded(each(lambda share: encoder.read(*share), shares, workers.threads))
    yield slices(batch, bounds_for(len(lines), workers, workers.threads)), mismatched


def encoded_mappings(encoder: MappingEncoder, count: int, workers: Workers, at_once: int) -> Iterator[Encoded]:
    """Encode mappings: one thread encodes, all threads match. Of many mappings, the first are matched while others are encoded.

    Making columns of mappings holds the interpreter lock. Of 9.9 us for a detection event, that takes 5.2, encoding 3.3 and
    matching 1.2. A second thread that makes columns waits for the lock (two took 1.3 times as long as one), and one that encodes
    waits at each of its short calls. So matching alone is shared.

    Raises
    ------
    EventError, UnevenError, UnknownClassesError
    """
    try:
        for first, last in shares_of(count, count // at_once):
            batch, mismatched = encoder.rows(first, last)
            yield slices(batch, bounds_for(last - first, workers, workers.threads)), mismatched
    except Exception:
        encoder.rows(0, count)  # The error of all events names the first wrong one.
        raise


def _shares(events: pa.Table | JsonLines, workers: Workers, share_bytes: int) -> list[tuple[int, int]]:
    """The rows that each thread reads or encodes."""
    count = len(events)
    most = min(workers.threads, count, _nbytes(events) // share_bytes) if workers.threads > 1 else 1
    return shares_of(count, most if workers.card is None else min(most, count // ON_CARD))


def waiting_table(encoder: TableEncoder, events: pa.Table, threads: int) -> Iterator[Encoded]:
    """Rows of a table for a card, which makes the keys of their numbers; the threads encode all other columns.

    Raises
    ------
    EventError, TableError
    """
    count = len(events)
    try:
        waiting = each(lambda share: encoder.waiting(*share), shares_of(count, count // ON_CARD), threads)
    except Exception:
        encoder.rows(0, count)  # The error of the whole table names the first wrong row.
        raise
    yield [part for part, _ in waiting], sum(mismatched for _, mismatched in waiting)


def bounds_for(count: int, workers: Workers, threads: int) -> Iterable[tuple[int, int]]:
    """The parts in which `count` events are matched by this many threads, or on a card, where each part has its price."""
    return tapering(count, threads) if workers.card is None else shares_of(count, count // ON_CARD)


def slices(batch: EventBatch, bounds: Iterable[tuple[int, int]]) -> list[EventBatch]:
    """The events of a batch within each of these bounds; all events if there are no bounds."""
    return [batch._replace(start=batch.start[first : last + 1]) for first, last in bounds] or [batch]
