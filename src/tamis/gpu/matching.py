"""Matching a batch on a card.

    batch ──▶ card ──▶ kernel: slots of settled rows, and open rows, by event in any order
                         └──▶ counts ──▶ places in the order of the events ──▶ slots and open rows, back to the processor
    open rows ──▶ owners are named as always        odd events ──▶ matched by the processor

If there was no room for the rows of some events, the kernel runs again for these.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.evaluation import event_places
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.plain_rows import PlainRows, encoded, events_in
from tamis.engine.layout.record_words import DOUBT
from tamis.engine.matching.owners import NamingScratch, Place, name_owners
from tamis.engine.matching.results import (
    CANDIDATES,
    Counts,
    Found,
    Life,
    TooMuchFoundError,
    Work,
    nothing_found,
    together,
)
from tamis.engine.matching.thread_scratch import ThreadScratch
from tamis.engine.segment import Segment
from tamis.gpu.buffers import USUAL_BUFFERS, BufferLimits, Buffers, check_plain
from tamis.gpu.card import SegmentArrays, SegmentsOnCard
from tamis.gpu.card_arrays import NO_ROOM, ODD
from tamis.gpu.card_slots import CardSlots, Piece, open_rows, summed
from tamis.gpu.match_kernel import match_events
from tamis.gpu.pinned import PinnedPool
from tamis.gpu.uploads import Uploads
from tamis.kernels.numbers import Bools, I32s, I64s, U8s, U32s
from tamis.kernels.ranges import span_indices

_SELDOM_ALL = 4
"""Odd events may match this many times more than `most`, if suddenly all subscriptions match."""


class _Run(NamedTuple):
    """What one run of the kernel found. Counts are 0 for events that were not done."""

    piece: Piece
    open_counts: Counts
    open_rows: U32s


class _Matched(NamedTuple):
    """What the runs of the kernel for one segment found."""

    arrays: SegmentArrays
    runs: list[_Run]
    odd: Bools
    visited: int


class CardMatching:
    """Matches segments on a card. What a card cannot do, the processor does."""

    def __init__(self, segments: SegmentsOnCard, limits: BufferLimits = USUAL_BUFFERS) -> None:
        self.segments = segments
        self.uploads = Uploads(segments.card)
        self._limits = limits
        self.most = sys.maxsize if limits.most is None else limits.most
        """The most matches of a segment and several events."""
        self._free: deque[Buffers] = deque()
        self._to_keep = PinnedPool(segments.card)

    def for_batch(self) -> BatchMatching:
        """What matches one batch."""
        return BatchMatching(self)

    def take(self) -> Buffers:
        """Free buffers. Those that were used last come first, since they have grown to what batches need."""
        try:
            return self._free.pop()
        except IndexError:
            return Buffers(self.segments.card, self._to_keep, self._limits)

    def give(self, buffers: Buffers) -> None:
        """Take buffers back that nobody uses any more."""
        self._free.append(buffers)


class BatchMatching:
    """Matches the parts of one batch, in any number of threads at once."""

    def __init__(self, matching: CardMatching) -> None:
        self._matching = matching
        self._uploads = Uploads(matching.segments.card)

    def match(
        self,
        segments: Sequence[Segment],
        batch: EventBatch | PlainRows,
        dimensions: int,
        life: Life,
        scratches: ThreadScratch,
    ) -> list[Found]:
        """What `Segment.match` finds in each segment; in one result what the card found, with what the processor added to that.

        Raises
        ------
        NotPlainError, TooMuchFoundError
        """
        there = [(segment, self._matching.segments.find(segment)) for segment in segments]
        parts = [
            segment.match(encoded(batch), dimensions, life, scratches) for segment, arrays in there if arrays is None
        ]
        on_card = [(segment, arrays) for segment, arrays in there if arrays is not None]
        if not on_card:
            return parts
        buffers = self._matching.take()
        try:
            with self._matching.segments.card.here():
                found = self._run(on_card, batch, life, buffers)
            for (segment, _), matched in zip(on_card, found, strict=True):
                parts += _added(segment, matched, batch, dimensions, life, scratches, self._matching.most)
        except BaseException:
            self._matching.give(buffers)
            raise
        pieces = [run.piece for matched in found for run in matched.runs]
        return [self._with_card(pieces, together(parts, events_in(batch)), buffers)]

    def _run(
        self,
        segments: list[tuple[Segment, SegmentArrays]],
        batch: EventBatch | PlainRows,
        life: Life,
        buffers: Buffers,
    ) -> list[_Matched]:
        """Run the kernel for each segment."""
        dead = self._matching.uploads.find("dead", life, lambda: dead_slots(life))
        buffers.begin(batch, self._matching.uploads)
        found: list[_Matched] = []
        for _, arrays in segments:
            living = arrays._replace(owners=arrays.owners._replace(dead=dead))
            found.append(_run(living, sum(len(matched.runs) for matched in found), buffers))
        return found

    def _with_card(self, pieces: list[Piece], others: Found, buffers: Buffers) -> Found:
        """Slots on the card, joined with what the processor found. The buffers are free when nobody has these slots."""
        if not pieces:
            self._matching.give(buffers)
            return others
        given = (others.counts, others.slots) if len(others.slots) else None
        slots: Any = CardSlots(pieces, buffers, self._uploads, given)
        weakref.finalize(slots, self._matching.give, buffers).atexit = False
        counts = summed([others.counts, *(piece.counts for piece in pieces)], buffers.events)
        return Found(counts, slots, others.work)


def dead_slots(life: Life) -> U8s:
    """The dead slots as bits; none if nobody is dead."""
    return np.packbits(life.died <= life.now, bitorder="little")


def _run(arrays: SegmentArrays, first: int, buffers: Buffers) -> _Matched:
    """Match the batch in the buffers. `first`: how many runs there were for this batch."""
    buffers.lay_out(arrays.sizes)
    events = buffers.events
    todo, runs = np.arange(events, dtype=np.int32), list[_Run]()
    odd, visited = np.zeros(events, np.bool_), 0
    while len(todo):
        counts, rows, more = launch(arrays, todo, buffers, first + len(runs))
        visited += more
        odd[todo[counts == ODD]] = True
        lacking = counts == NO_ROOM
        if not (counts < 0).all():
            runs.append(_found(todo, counts, rows, buffers))
        todo = todo[lacking]
        if len(todo):
            total = counts[~lacking].clip(0).sum(dtype=np.int64) + rows.sum(dtype=np.int64)
            buffers.make_room(int(rows[lacking].max()), int(total))
    return _Matched(arrays, runs, odd, visited)


def _found(todo: I32s, counts: I32s, rows: I32s, buffers: Buffers) -> _Run:
    """What a run of the kernel found for the events in `todo`."""
    settled, opened = np.zeros(buffers.events, np.int32), np.zeros(buffers.events, np.int32)
    done, results = counts >= 0, buffers.results
    settled[todo[done]], opened[todo[done]] = counts[done], rows[done]
    buffers.keep_results(int(settled.sum(dtype=np.int64)))
    on_card = results.settled
    if len(todo) < buffers.events:  # The kernel wrote nothing for the other events.
        buffers.card.copy_there(settled, on_card, buffers.stream)
        buffers.wait()
    piece = Piece(settled, on_card, results.slot_at, results.slot)
    return _Run(piece, opened.astype(np.int64), open_rows(opened, buffers))


def launch(arrays: SegmentArrays, todo: I32s, buffers: Buffers, piece: int = 0) -> tuple[I32s, I32s, int]:
    """Run the kernel for some events; returns what `Results.settled` and `Results.open` say of them, and the entries visited.

    Raises
    ------
    NotPlainError
    """
    buffers.clear_results(piece)
    run_kernel(arrays, buffers.put("todo", todo), buffers)
    results = buffers.results
    counts, rows = buffers.fetch("settled", results.settled), buffers.fetch("open", results.open)
    work, noted = buffers.fetch("work", results.work), buffers.fetch_noted()
    buffers.wait()
    check_plain(noted)
    return counts[todo], rows[todo], int(work[CANDIDATES])


def run_kernel(arrays: SegmentArrays, todo: Any, buffers: Buffers) -> None:
    """Put the kernel into the queue, for the events in `todo`, which is on the card."""
    arguments = buffers.batch, todo, arrays.body, arrays.owners, buffers.event_arrays, buffers.results
    buffers.launch_blocks(match_events, arguments, len(todo))


def _added(
    segment: Segment,
    matched: _Matched,
    batch: EventBatch | PlainRows,
    dimensions: int,
    life: Life,
    scratches: ThreadScratch,
    most: int,
) -> list[Found]:
    """What the processor finds in a segment besides what the card found.

    Raises
    ------
    TooMuchFoundError
    """
    odd, visited = matched.odd, matched.visited
    most = max(most, segment.owned)  # A single event always has room.
    if np.count_nonzero(odd) * segment.owned > _SELDOM_ALL * most:
        raise TooMuchFoundError
    segment.watch.add(len(odd) - int(np.count_nonzero(odd)), visited)
    parts = [nothing_found(len(odd))._replace(work=Work(candidates=visited))]
    parts += [
        _named(run.open_counts, run.open_rows, segment, _keys(run, matched.arrays, batch), dimensions, life, most)
        for run in matched.runs
        if len(run.open_rows)
    ]
    if odd.any():
        parts.append(_matched_here(np.flatnonzero(odd), segment, encoded(batch), dimensions, life, scratches))
    return parts


def _keys(run: _Run, arrays: SegmentArrays, batch: EventBatch | PlainRows) -> EventBatch:
    """The events for naming the owners of open rows. Most rows are open only because they have several owners. Then keys are not
    needed, so rows of a table are not encoded."""
    if isinstance(batch, EventBatch) or arrays.has_programs or (run.open_rows & np.uint32(DOUBT)).any():
        return encoded(batch)
    nothing = np.zeros(0, np.int64)
    return EventBatch(np.zeros(events_in(batch) + 1, np.int64), np.zeros(0, np.int32), nothing, nothing)


def _named(
    counts: I64s, rows: U32s, segment: Segment, batch: EventBatch, dimensions: int, life: Life, most: int
) -> Found:
    """The slots of open rows.

    Raises
    ------
    TooMuchFoundError
    """
    events, parts, compared = len(counts), [np.zeros(0, np.int32)], 0
    place, size = Place(0, events if len(rows) else 0, 0), 1024 + 2 * len(rows)
    places = event_places(dimensions)
    while place.event < place.stop:
        naming = NamingScratch(places, np.empty(size, np.int32), np.empty(size, np.int32))
        event, at, filled, more = name_owners(segment.packed[1], batch, life, rows, counts, place, naming)
        place = Place(event, events, at)
        parts.append(naming.slots[:filled])
        compared += more
        size *= 2
        if sum(map(len, parts)) > most:
            raise TooMuchFoundError
    return Found(counts, np.concatenate(parts), Work(compared=compared))


def _matched_here(
    odd: I64s, segment: Segment, batch: EventBatch, dimensions: int, life: Life, scratches: ThreadScratch
) -> Found:
    """What the processor finds for odd events."""
    sizes = np.diff(batch.start)[odd]
    values = span_indices(batch.start[:-1][odd], sizes)
    start = np.append(0, np.cumsum(sizes))
    some = EventBatch(start, batch.dimension[values], batch.lo[values], batch.hi[values])
    found = segment.match(some, dimensions, life, scratches)
    counts = np.zeros(len(batch.start) - 1, np.int64)
    counts[odd] = found.counts
    return found._replace(counts=counts)
