"""Matching a batch on a card.

    batch ──▶ card ──▶ kernel: slots of settled rows, and open rows, by event in any order
                         └──▶ counts ──▶ places in the order of the events ──▶ slots and open rows, back to the processor
    open rows ──▶ owners are named as always        odd events ──▶ matched by the processor

If there was no room for the rows of some events, the kernel runs again for these.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.evaluation import event_places
from tamis.encoding.events.event_batch import EventBatch
from tamis.engine.matching.owners import NamingScratch, Place, name_owners
from tamis.engine.matching.results import CANDIDATES, Counts, Found, Life, Slots, Work, nothing_found, together
from tamis.engine.matching.thread_scratch import ThreadScratch
from tamis.engine.segment import Segment
from tamis.gpu.buffers import USUAL_BUFFERS, BufferLimits, Buffers
from tamis.gpu.card import SegmentArrays, SegmentsOnCard
from tamis.gpu.card_arrays import NO_ROOM, ODD
from tamis.gpu.card_slots import CardSlots
from tamis.gpu.match_kernel import match_events
from tamis.gpu.pinned import PinnedPool
from tamis.kernels.numbers import Bools, I32s, I64s, U32s
from tamis.kernels.ranges import span_indices


class _Round(NamedTuple):
    """What one run of the kernel found. Counts are 0 for events that were not done."""

    settled: I32s
    """Event -> how many settled rows it has. Their slots are on the card until the next run."""
    slots: Slots | None
    """These slots, if there was a next run."""
    open_counts: Counts
    open_rows: U32s


class CardMatching:
    """Matches segments on a card. What a card cannot do, the processor does."""

    def __init__(self, segments: SegmentsOnCard, limits: BufferLimits = USUAL_BUFFERS) -> None:
        self.segments = segments
        self._limits = limits
        self._free: deque[Buffers] = deque()
        self._to_keep = PinnedPool(segments.card)

    def match(
        self, segment: Segment, batch: EventBatch, dimensions: int, life: Life, scratches: ThreadScratch
    ) -> Found:
        """What `Segment.match` finds."""
        arrays = self.segments.find(segment)
        if arrays is None:
            return segment.match(batch, dimensions, life, scratches)
        buffers = self._taken()
        with self.segments.card.here():
            rounds, odd, visited = _run(arrays, batch, buffers)
        events = len(odd)
        segment.watch.add(events - int(np.count_nonzero(odd)), visited)
        parts = [nothing_found(events)._replace(work=Work(candidates=visited))]
        parts += [_named(found.open_counts, found.open_rows, segment, batch, dimensions, life) for found in rounds]
        if odd.any():
            parts.append(_matched_here(np.flatnonzero(odd), segment, batch, dimensions, life, scratches))
        if len(rounds) == 1 and len(life.died) == 0:
            return self._with_card(rounds[0].settled, together(parts, events), buffers)
        found = together([*parts, *(_living(found, life, buffers) for found in rounds)], events)
        self._free.append(buffers)
        return found

    def _taken(self) -> Buffers:
        """Free buffers. Those that were used last come first, since they have grown to what batches need."""
        try:
            return self._free.pop()
        except IndexError:
            return Buffers(self.segments.card, self._to_keep, self._limits)

    def _with_card(self, settled: I32s, others: Found, buffers: Buffers) -> Found:
        """Slots on the card, joined with what the processor found. The buffers are free when nobody has these slots."""
        given = (others.counts, others.slots) if len(others.slots) else None
        slots: Any = CardSlots(settled, buffers, given)
        weakref.finalize(slots, self._free.append, buffers).atexit = False
        return Found(others.counts + settled, slots, others.work)


def _run(arrays: SegmentArrays, batch: EventBatch, buffers: Buffers) -> tuple[list[_Round], Bools, int]:
    """Match a batch; also says which events are odd, and how many entries were visited."""
    events = len(batch.start) - 1
    buffers.begin(batch, arrays.sizes)
    todo, rounds = np.arange(events, dtype=np.int32), list[_Round]()
    odd, visited = np.zeros(events, np.bool_), 0
    while len(todo):
        counts, rows, more = launch(arrays, todo, buffers)
        visited += more
        odd[todo[counts == ODD]] = True
        lacking = counts == NO_ROOM
        if not (counts < 0).all():
            rounds.append(_found(todo, counts, rows, buffers, bool(lacking.any())))
        todo = todo[lacking]
        if len(todo):
            total = counts[~lacking].clip(0).sum(dtype=np.int64) + rows.sum(dtype=np.int64)
            buffers.make_room(int(rows[lacking].max()), int(total))
    return rounds, odd, visited


def _found(todo: I32s, counts: I32s, rows: I32s, buffers: Buffers, goes_on: bool) -> _Round:
    """What a run of the kernel found for the events in `todo`; `goes_on`: there is a next run."""
    events = len(buffers.batch.start) - 1
    settled, opened = np.zeros(events, np.int32), np.zeros(events, np.int32)
    done = counts >= 0
    settled[todo[done]], opened[todo[done]] = counts[done], rows[done]
    slots = np.array(CardSlots(settled, buffers)) if goes_on else None
    return _Round(settled, slots, opened.astype(np.int64), CardSlots(opened, buffers).opened())


def launch(arrays: SegmentArrays, todo: I32s, buffers: Buffers) -> tuple[I32s, I32s, int]:
    """Run the kernel for some events; returns what `Results.settled` and `Results.open` say of them, and the entries visited."""
    buffers.clear_results()
    run_kernel(arrays, buffers.put("todo", todo), buffers)
    results = buffers.results
    counts, rows = buffers.fetch("settled", results.settled), buffers.fetch("open", results.open)
    work = buffers.fetch("work", results.work)
    buffers.wait()
    return counts[todo], rows[todo], int(work[CANDIDATES])


def run_kernel(arrays: SegmentArrays, todo: Any, buffers: Buffers) -> None:
    """Put the kernel into the queue, for the events in `todo`, which is on the card."""
    arguments = buffers.batch, todo, arrays.body, arrays.owners, buffers.event_arrays, buffers.results
    buffers.launch(match_events, arguments, min(buffers.blocks, len(todo)), buffers.shared_bytes)


def _living(found: _Round, life: Life, buffers: Buffers) -> Found:
    """The settled rows of a round, without slots that are dead."""
    slots = np.array(CardSlots(found.settled, buffers)) if found.slots is None else found.slots
    counts = found.settled.astype(np.int64)
    if len(life.died) and len(slots):
        lives = life.died[slots] > life.now
        event = np.repeat(np.arange(len(counts)), counts)
        counts, slots = np.bincount(event[lives], minlength=len(counts)), slots[lives]
    return Found(counts, slots, Work())


def _named(counts: I64s, rows: U32s, segment: Segment, batch: EventBatch, dimensions: int, life: Life) -> Found:
    """The slots of open rows."""
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
