"""Matching one event in one call: calling several kernels from Python would take longer than the kernels.

The arguments are packed once for the segments of a version, and used while the newest version has the same segments. A change
only writes its deltas, the times of death, and the time into them.

    SingleCall    words  values  start  died  counters  buffers ...  segments                deltas       ids   marks  now  kernel
                                                                    SegmentCall ...         DeltaCall ...

Only addresses are kept, neither segments nor deltas: the caller holds the version while it matches, and old parts may go.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.one_event import HEAD, HI, LO, EventValues, OneEvent, read_values, unpack_event
from tamis.engine.delta import scan_delta
from tamis.engine.limits import Limits
from tamis.engine.matching.counters import EVENTS, OF_WORK, Counters
from tamis.engine.matching.match import (
    EVENT,
    LACK,
    NEED,
    NO_ROOM_OUT,
    NO_ROOM_SLOTS,
    STOP,
    RowsCall,
    match_rows,
)
from tamis.engine.matching.owners import NamingScratch, Place, name_owners
from tamis.engine.matching.results import CANDIDATES, COMPARED, SURVIVORS, WORK, Life, Slots
from tamis.engine.matching.scratch import Needs, needs_of
from tamis.engine.matching.thread_scratch import BodyScratch, DeltaEvent, delta_event
from tamis.engine.segment import Segment
from tamis.engine.version import Version
from tamis.engine.watch import SEEN_ENTRIES, SEEN_EVENTS
from tamis.kernels.atomic import count_up
from tamis.kernels.bits import BYTE, has_bit_in_bytes
from tamis.kernels.by_address import address_of_kernel, call_kernel
from tamis.kernels.fields import packed_fields, reader_of, word_of, words_in
from tamis.kernels.kernel import brief_kernel, inlined, lean_kernel
from tamis.kernels.numbers import I64, UP, I64s, U8s, U32s
from tamis.kernels.packed import Packed, address_of
from tamis.kernels.ranges import Span

NO_ROOM = -1
NOT_SMALL = -2
"""The event has numbers that only labels turn into keys; see `unpack_event`."""
_PART, _LACK, _NEED = range(3)
"""Places in `_Buffers.lack`."""
_MARKED = 64
"""Marked slots whose places are written."""
_NO_IDS, _NO_MARKS = np.zeros(0, np.int64), np.zeros(0, np.uint8)


class _Buffers(NamedTuple):
    """Arrays that kernels write to."""

    rows: U32s
    counts: I64s
    work: I64s
    """The work of each part for the event, WORK numbers as in `Work`."""
    lack: I64s
    """The part that lacked room, which buffer was too small, and the size that the part needs."""
    event: DeltaEvent
    out: Slots
    repeated: Slots
    names: I64s
    marked: I64s
    """How many slots that the event satisfies have a mark. Then the places of the first of them."""


class _SegmentCall(NamedTuple):
    """A segment to match against."""

    call: Packed
    """The packed `RowsCall`."""
    owners: Packed
    """The packed `OwnerArrays`."""
    seen: I64s
    """`Watch.seen` of the segment."""


class _DeltaCall(NamedTuple):
    """A delta to match against."""

    columns: Packed
    """The packed `DeltaArrays`."""
    rows: int


class _SingleCall(NamedTuple):
    """The arguments of `match_single`."""

    words: I64s
    """The event, see `one_event`."""
    values: Packed
    """Address and length of its dimensions, of its lowest keys, and of its highest keys."""
    start: I64s
    died: I64s
    counters: I64s
    buffers: _Buffers
    segments: Packed
    """A `_SegmentCall` for each segment."""
    deltas: Packed
    """A `_DeltaCall` for each delta."""
    ids: I64s
    marks: U8s
    """A bit for each slot; slots behind the last one have none."""
    now: int
    kernel: int
    """The address of `match_rows`."""


_DIED, _DELTAS, _IDS, _MARKS, _NOW = (word_of(_SingleCall, name) for name in ("died", "deltas", "ids", "marks", "now"))
_OF_SEGMENT, _OF_DELTA = words_in(_SegmentCall), words_in(_DeltaCall)
_DELTA_COLUMNS, _DELTA_ROWS = word_of(_DeltaCall, "columns"), word_of(_DeltaCall, "rows")
_OF_VALUES, _VALUES_AT = words_in(EventValues), word_of(RowsCall, "batch.dimension")
"""How many words packed `EventValues` take, and where a packed `RowsCall` has them: all fields of its batch but `start`."""
_read_single, _read_segment, _read_delta = reader_of(_SingleCall), reader_of(_SegmentCall), reader_of(_DeltaCall)


class Single:
    """An event and its match, in buffers of one thread."""

    def __init__(self, counters: Counters, scratches: dict[Needs, BodyScratch], limits: Limits) -> None:
        self.event = OneEvent()
        self.is_taken = False
        """Whether a call uses it. A call that was interrupted never gives it back."""
        self._counters = counters
        self._scratches = scratches
        self._brief, self._sizes = limits.brief_entries, limits.scratch
        self._words: I64s | None = None
        self._number, self._segment_set = -1, -1
        self._ids: I64s | None = None
        self._died, self._marks = _NO_IDS, _NO_MARKS
        self._rows_put, self._now_put = -1, -1
        self._matches, self._rows = limits.event_matches, limits.event_rows
        self._dimensions, self._most_deltas = limits.event_dimensions, limits.event_deltas

    def match(self, latest: tuple[Version, int, int], ids: I64s | None, dimensions: int, marks: U8s = _NO_MARKS) -> int:
        """Match the event that was put into `event`; returns the number of slots that it satisfies, or NOT_SMALL.

        `latest` is what `Engine.latest` gave. `ids` are the ids of all slots, if they are integers. Neither the event nor the
        version has more than `dimensions` dimensions. `marks` has a bit for each slot, see `marked`.
        """
        if dimensions > self._dimensions:
            self._dimensions = dimensions + dimensions // 2
            self._number = self._segment_set = -1
        version, rows, now = latest
        if version.number != self._number or ids is not self._ids or self._words is not self.event.words:
            self._follow(version, ids)
        if rows != self._rows_put or now != self._now_put:
            self._packed[_NOW], self._deltas[self._last_rows] = now, rows
            self._rows_put, self._now_put = rows, now
        if marks is not self._marks:
            self._packed[_MARKS], self._packed[_MARKS + 1] = address_of(marks), len(marks)
            self._marks = marks
        count = self._kernel(self._packed)
        if count != NO_ROOM:
            return count
        self._enlarge(version)
        self._prepare(version)
        return self.match(latest, ids, dimensions, marks)

    @property
    def marked(self) -> int:
        """How many of the slots of the last match have a mark."""
        return self._marked[0]

    def places_of_marked(self) -> list[int] | None:
        """The places of these slots among all, ascending; None if they are many."""
        count = self._marked[0]
        return self._marked[1 : 1 + count].tolist() if count <= _MARKED else None

    def slots_at(self, places: Sequence[int]) -> list[int]:
        """The slots at some places among all, a few."""
        return [self._out[place] for place in places]

    def slots(self, count: int) -> Slots:
        """The slots that the event satisfies, until the next match."""
        return self._buffers.out[:count]

    def names(self, count: int) -> list[Any]:
        """The ids of these slots, if they are integers."""
        names: list[Any] = self._names[:count].tolist()
        return names

    def _prepare(self, version: Version) -> None:
        """Pack the arguments of the kernel for the segments of a version. The caller holds the version while it matches."""
        self._buffers = buffers = self._new_buffers(len(version.segments) + self._most_deltas)
        self._names = buffers.names.data  # A memoryview reads a few ids in two thirds of the time of an array.
        self._marked, self._out = buffers.marked.data, buffers.out.data
        self._words = words = self.event.words
        self._values, self._start = np.zeros(_OF_VALUES, np.int64), np.zeros(2, np.int64)
        self._values[LO] = self._values[HI] = address_of(words) + 8 * HEAD
        self._segments = self._packed_segments(version.segments)
        self._deltas = np.zeros(_OF_DELTA * self._most_deltas, np.int64)
        self._died, self._ids, self._marks = _NO_IDS, None, _NO_MARKS
        self._packed = packed_fields(
            _SingleCall(
                words=words,
                values=self._values,
                start=self._start,
                died=_NO_IDS,
                counters=self._counters.counts,
                buffers=buffers,
                segments=self._segments,
                deltas=self._deltas,
                ids=_NO_IDS,
                marks=_NO_MARKS,
                now=0,
                kernel=address_of_kernel(match_rows) if version.segments else 0,
            )
        )
        self._segment_set, self._number = version.segment_set, -1
        expected = sum(segment.watch.expected for segment in version.segments)
        self._kernel = match_single_briefly if expected <= self._brief else match_single

    def _new_buffers(self, parts: int) -> _Buffers:
        return _Buffers(
            rows=np.empty(self._rows, np.uint32),
            counts=np.zeros(1, np.int64),
            work=np.zeros(WORK * parts, np.int64),
            lack=np.zeros(_NEED + 1, np.int64),
            event=delta_event(self._dimensions),
            out=np.empty(self._matches, np.int32),
            repeated=np.empty(self._matches, np.int32),
            names=np.empty(self._matches, np.int64),
            marked=np.zeros(1 + _MARKED, np.int64),
        )

    def _packed_segments(self, segments: Sequence[Segment]) -> Packed:
        """A packed `_SegmentCall` for each segment, with the buffers and scratch of this thread."""
        scratches, buffers, words = self._scratches_for(segments), self._buffers, self.event.words
        # These arrays are placeholders: each event writes the addresses of its values.
        event = EventBatch(self._start, words.view(np.int32), words, words)
        self._calls = []
        packed = [np.zeros(0, np.int64)]
        for i, (segment, scratch) in enumerate(zip(segments, scratches, strict=True)):
            body, owners = segment.packed
            work = buffers.work[WORK * i : WORK * (i + 1)]
            call = packed_fields(RowsCall(body, scratch.packed, event, buffers.counts, buffers.rows, work))
            self._calls.append((call, scratch.packed, scratch.arrays))  # Kept alive: kernels have only their addresses.
            packed.append(packed_fields(_SegmentCall(call, owners, segment.watch.seen)))
        return np.concatenate(packed)

    def _follow(self, version: Version, ids: I64s | None) -> None:
        """Write the deltas, times of death and ids of a version into the arguments."""
        deltas = version.deltas
        most = max((view.number for _, view in deltas), default=0)
        if most > self._rows or len(deltas) > self._most_deltas:
            self._rows, self._most_deltas = max(self._rows, most), max(self._most_deltas, 2 * len(deltas))
            self._segment_set = -1
        if version.segment_set != self._segment_set or self._words is not self.event.words:
            self._prepare(version)
        given, died = self._packed, version.life.died
        if died is not self._died:
            given[_DIED], given[_DIED + 1] = address_of(died), len(died)
            self._died = died
        if ids is not self._ids:
            known = _NO_IDS if ids is None else ids
            given[_IDS], given[_IDS + 1] = address_of(known), len(known)
            self._ids = ids
        given[_DELTAS + 1] = _OF_DELTA * len(deltas)
        at = 0
        for _, (columns, number) in deltas:
            columns_at = at + _DELTA_COLUMNS
            self._deltas[columns_at], self._deltas[columns_at + 1] = columns.place
            self._deltas[at + _DELTA_ROWS] = number
            at += _OF_DELTA
        self._last_rows = max(at - _OF_DELTA, 0) + _DELTA_ROWS
        self._number, self._rows_put = version.number, -1

    def _scratches_for(self, segments: Sequence[Segment]) -> list[BodyScratch]:
        """Scratch for each segment. Segments with the same needs share one, since one stays in the caches and many do not."""
        needs, sizes = [needs_of(segment.body) for segment in segments], self._sizes
        used = {each: self._scratches.get(each) or BodyScratch(each, sizes.entries, sizes.lists) for each in set(needs)}
        self._scratches.clear()
        self._scratches.update(used)
        return [used[each] for each in needs]

    def _enlarge(self, version: Version) -> None:
        """Make more room where the last call lacked it."""
        part, lack, need = self._buffers.lack.tolist()
        if lack == NO_ROOM_SLOTS:
            self._matches *= 4
        elif lack == NO_ROOM_OUT:
            self._rows = need + need // 2
        else:
            self._scratches_for(version.segments)[part].enlarge(lack, need)


class Singles(threading.local):
    """The `Single` of each thread. A match takes it, and gives it back by `is_taken`. A call inside of that call, as from a
    finalizer, gets a new one."""

    def __init__(self, counters: Counters, limits: Limits) -> None:
        self._counters = counters
        self._limits = limits
        self._scratches: dict[Needs, BodyScratch] = {}
        self._last = self._new()

    def take(self) -> Single:
        single = self._last
        if single.is_taken:
            single = self._last = self._new()
        single.is_taken = True
        return single

    def _new(self) -> Single:
        return Single(self._counters, self._scratches, self._limits)


@lean_kernel
def match_single(given: Packed) -> int:
    """Write the slots that the event satisfies; returns how many, NO_ROOM or NOT_SMALL."""
    call = _read_single(given)
    if not unpack_event(call.words, call.start, call.values):
        return NOT_SMALL
    values = read_values(call.values)
    batch = EventBatch(call.start, values.dimension, values.lo, values.hi)
    life = Life(call.died, call.now)
    buffers, lack = call.buffers, call.buffers.lack
    filled = 0
    segments, deltas = len(call.segments) // _OF_SEGMENT, len(call.deltas) // _OF_DELTA
    for part in range(segments + deltas):
        done = buffers.work[WORK * part : WORK * (part + 1)]
        done[:] = 0
        if part < segments:
            segment = _read_segment(call.segments[part * _OF_SEGMENT :])
            owners = segment.owners
            if not _match_segment(segment.call, call.segments[part * _OF_SEGMENT], call.kernel, call.values):
                lack[_PART], lack[_LACK], lack[_NEED] = part, segment.call[LACK], segment.call[NEED]
                return NO_ROOM
        else:
            delta = _read_delta(call.deltas[(part - segments) * _OF_DELTA :])
            owners = delta.columns
            scan_delta(owners, delta.rows, batch, Span(0, 1), buffers.event, buffers.counts, buffers.rows, done)
        naming = NamingScratch(buffers.event.places, buffers.out[filled:], buffers.repeated)
        event, _, slots, compared = name_owners(
            owners, batch, life, buffers.rows, buffers.counts, Place(0, 1, 0), naming
        )
        if event == 0:
            lack[_LACK] = NO_ROOM_SLOTS
            return NO_ROOM
        done[COMPARED] += compared
        filled += slots
    _count_work(call.counters, call.segments, buffers.work, segments + deltas)
    if len(call.ids) > 0:
        for i in range(filled):
            buffers.names[UP(i)] = call.ids[UP(buffers.out[UP(i)])]
    if len(call.marks) > 0:
        _note_marked(buffers.out[:filled], call.marks, buffers.marked)
    else:
        buffers.marked[0] = 0
    return filled


@inlined
def _note_marked(slots: Slots, marks: U8s, marked: I64s) -> None:
    """Write how many slots have a mark, and the places of the first of them."""
    count = 0
    for i in range(len(slots)):
        slot = I64(slots[UP(i)])
        if slot < BYTE * len(marks) and has_bit_in_bytes(marks, slot):
            count += 1
            if count < len(marked):
                marked[UP(count)] = i
    marked[0] = count


@inlined
def _match_segment(words: Packed, address: int, kernel: int, values: Packed) -> bool:
    """Call `match_rows` for the event whose packed `EventValues` these are; whether there was room."""
    for i in range(_OF_VALUES):
        words[_VALUES_AT + i] = values[i]
    words[EVENT], words[STOP] = 0, 1
    return call_kernel(kernel, address) != 0


@inlined
def _count_work(counters: I64s, segments: Packed, work: I64s, parts: int) -> None:
    """Count the work of all parts for the event, and the work of each segment in its watch."""
    candidates, survivors, compared = 0, 0, 0
    for part in range(parts):
        at = WORK * part
        candidates += work[at + CANDIDATES]
        survivors += work[at + SURVIVORS]
        compared += work[at + COMPARED]
        if part < len(segments) // _OF_SEGMENT:
            seen = _read_segment(segments[part * _OF_SEGMENT :]).seen
            count_up(seen, SEEN_EVENTS, 1)
            count_up(seen, SEEN_ENTRIES, work[at + CANDIDATES])
    count_up(counters, EVENTS, 1)
    count_up(counters, OF_WORK + CANDIDATES, candidates)
    count_up(counters, OF_WORK + SURVIVORS, survivors)
    count_up(counters, OF_WORK + COMPARED, compared)


@brief_kernel
def match_single_briefly(given: Packed) -> int:
    """`match_single` for events that are expected to be done soon."""
    return match_single(given)
