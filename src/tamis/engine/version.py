"""A version: the parts that a match works on. It never changes.

segments  [ 812,000 rows ] [ 61,000 ] [ 16,384 ]      immutable, indexed
deltas    [ 16,384 rows, full ] [ 318 rows, the first of the active delta ]
life      when each slot died; a slot that died later than the version is alive in it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.plain_rows import PlainRows, encoded, events_in
from tamis.engine.delta import Delta, DeltaView, match_delta
from tamis.engine.layout.access_path import Access
from tamis.engine.matching.results import Found, Life, nothing_found, together
from tamis.engine.matching.thread_scratch import ThreadScratch
from tamis.engine.segment import Segment


class SegmentMatching(Protocol):
    """Something that matches the segments of one batch in the place of the calling threads, such as a card."""

    def match(
        self,
        segments: Sequence[Segment],
        batch: EventBatch | PlainRows,
        dimensions: int,
        life: Life,
        scratches: ThreadScratch,
    ) -> list[Found]:
        """What `Segment.match` finds in each segment, or in several together.

        Raises
        ------
        NotPlainError
        """


class Accelerator(Protocol):
    """Something that matches batches in the place of threads."""

    def for_batch(self) -> SegmentMatching:
        """What matches one batch, in any number of threads at once."""


class Version(NamedTuple):
    """What matching sees."""

    segments: tuple[Segment, ...]
    deltas: tuple[tuple[Delta, DeltaView], ...]
    life: Life
    number: int = 0
    """Differs from the number of every other version of the engine."""
    segment_set: int = 0
    """Versions with the same number have the same segments."""

    def match(
        self,
        batch: EventBatch | PlainRows,
        dimensions: int,
        scratches: ThreadScratch,
        by: SegmentMatching | None = None,
    ) -> Found:
        """Match a batch, in scratch space of the calling thread; the segments `by` something else, if that is given.

        Raises
        ------
        NotPlainError
        """
        events = events_in(batch)
        if events == 0:
            return nothing_found(0)
        if by is not None:
            parts = by.match(self.segments, batch, dimensions, self.life, scratches)
        else:
            keys = encoded(batch)
            parts = [segment.match(keys, dimensions, self.life, scratches) for segment in self.segments]
        for _, view in self.deltas:
            scratch = scratches.take_delta()
            parts.append(match_delta(view, encoded(batch), dimensions, self.life, scratch))
            scratches.give_delta(scratch)
        return together(parts, events)

    def accesses(self, slot: int) -> tuple[list[tuple[Access, bool]], bool]:
        """How events find the rows of a slot in segments (see `Segment.accesses`), and whether a delta has some of its rows."""
        found = [access for segment in self.segments for access in segment.accesses(slot)]
        return found, any(bool((view.rows.slot == slot).any()) for _, view in self.deltas)
