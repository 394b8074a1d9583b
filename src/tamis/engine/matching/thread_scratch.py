"""Scratch space of threads: each thread has its own for every segment, and it grows when a kernel lacks room."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.evaluation import EventPlaces, event_places
from tamis.engine.layout.segment_build import Body
from tamis.engine.matching.match import NO_ROOM_LISTS, NO_ROOM_OUT
from tamis.engine.matching.scratch import Needs, needs_of, scratch_for
from tamis.kernels.fields import packed_fields
from tamis.kernels.numbers import I32s, I64s, U32s
from tamis.kernels.packed import Packed


class ScratchSizes(NamedTuple):
    """First sizes of buffers. They grow when a kernel lacks room."""

    entries: int = 1 << 16
    """Entries that an event meets in a segment; less if the segment has fewer entries."""
    lists: int = 256
    """Lists that an event meets."""
    slots: int = 1024
    """Slots of a batch, in addition to the number that is expected."""
    most_slots: int = 1 << 22
    """The most slots to make room for beforehand."""
    delta_rows: int = 1 << 16
    """Rows of a delta that events satisfy."""


USUAL_SIZES = ScratchSizes()


class HasBody(Protocol):
    body: Body


class BodyScratch:
    """What a thread needs to match against the body of a segment; it grows when a kernel says what it lacks.

    Between calls of kernels there is nothing in it, so all calls in a thread may share it.
    """

    def __init__(self, needs: Needs, entries: int, lists: int) -> None:
        self._needs = needs
        self.entries = entries
        self._lists = lists
        self._lay_out()

    def _lay_out(self) -> None:
        self.arrays = scratch_for(self._needs, self.entries, self._lists)
        self.packed = packed_fields(self.arrays)

    def enlarge(self, lack: int, need: int) -> None:
        """Make room for what `match_rows` lacked: entries or lists."""
        if lack == NO_ROOM_LISTS:
            self._lists = need
        else:
            self.entries = need + need // 2
        self._lay_out()


class SegmentScratch:
    """The buffers of one thread for one segment."""

    def __init__(self, body: Body, sizes: ScratchSizes) -> None:
        entries = (len(body.entry) + len(body.run_entry)) // 2 + body.pairs.entries
        self._scratch = BodyScratch(needs_of(body), min(sizes.entries, entries), sizes.lists)
        self._sizes = sizes
        self.rows = np.empty(max(self._scratch.entries, 1024), np.uint32)
        self._repeated = np.empty(0, np.int32)
        self._places = event_places(0)
        self._per_event = 0.0
        """How many slots an event of the last batch had, or half as many as one of the batch before."""

    @property
    def packed_scratch(self) -> Packed:
        return self._scratch.packed

    def enlarge(self, lack: int, need: int) -> None:
        """Make room for what `match_rows` lacked."""
        if lack != NO_ROOM_OUT:
            self._scratch.enlarge(lack, need)
        elif need > len(self.rows):
            self.rows = np.empty(need + need // 2, np.uint32)

    def slots_for(self, events: int) -> int:
        """Room to make for the slots of this many events."""
        return min(int(1.25 * self._per_event * events) + self._sizes.slots, self._sizes.most_slots)

    def note(self, slots: int, events: int) -> None:
        self._per_event = max(slots / max(events, 1), self._per_event / 2)

    def places(self, dimensions: int) -> EventPlaces:
        """Where the values of an event are noted."""
        if len(self._places.first) < dimensions:
            self._places = event_places(dimensions + dimensions // 2)
        return self._places

    def repeated(self, size: int) -> I32s:
        if len(self._repeated) < size:
            self._repeated = np.empty(size, np.int32)
        return self._repeated


class Extent(NamedTuple):
    """The lowest and highest key of an event by dimension. Without a key, the lowest is above the highest."""

    lowest: I64s
    highest: I64s


class DeltaEvent(NamedTuple):
    """An event by dimension of the matcher, as deltas need it."""

    places: EventPlaces
    extent: Extent


def delta_event(dimensions: int) -> DeltaEvent:
    """Room for `dimensions` dimensions. There must be at least one, since rows without a dimension read it too."""
    return DeltaEvent(event_places(dimensions), Extent(np.full(dimensions, KEY_MAX), np.full(dimensions, KEY_MIN)))


class DeltaScratch:
    """The buffers of one thread for deltas."""

    def __init__(self, sizes: ScratchSizes = USUAL_SIZES) -> None:
        self._sizes = sizes
        self._event = delta_event(1)
        self._repeated = np.empty(0, np.int32)
        self._found = np.empty(0, np.uint32)

    def event(self, dimensions: int) -> DeltaEvent:
        """Where an event is laid out."""
        if len(self._event.places.first) <= dimensions:
            self._event = delta_event(dimensions + dimensions // 2 + 1)
        return self._event

    def repeated(self, size: int) -> I32s:
        if len(self._repeated) < size:
            self._repeated = np.empty(size, np.int32)
        return self._repeated

    def found(self, rows: int) -> U32s:
        """Room for the rows that are found, of this many."""
        if len(self._found) < rows:
            self._found = np.empty(max(2 * rows, self._sizes.delta_rows), np.uint32)
        return self._found


class ThreadScratch(threading.local):
    """The scratch of each thread. A call takes it and gives it back, so a call in between, such as from the finalizer of some
    object, makes its own."""

    def __init__(self, sizes: ScratchSizes = USUAL_SIZES) -> None:
        self._sizes = sizes
        self._segments: WeakKeyDictionary[Any, SegmentScratch] = WeakKeyDictionary()
        self._delta: DeltaScratch | None = None

    def take(self, segment: HasBody) -> SegmentScratch:
        scratch = self._segments.pop(segment, None)
        return SegmentScratch(segment.body, self._sizes) if scratch is None else scratch

    def give(self, segment: HasBody, scratch: SegmentScratch) -> None:
        self._segments[segment] = scratch

    def take_delta(self) -> DeltaScratch:
        scratch, self._delta = self._delta, None
        return DeltaScratch(self._sizes) if scratch is None else scratch

    def give_delta(self, scratch: DeltaScratch) -> None:
        self._delta = scratch
