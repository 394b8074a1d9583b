"""Matching one event in one call: what surrounds the kernels would cost more than the kernels.

All that the call needs is packed once for the segments of a version, and used for as long as the newest version has these. What a
change brings with it is only put in: deltas, the dead, and the time.

    SingleCall    words  place  start  died  tally  buffers ...  segments                deltas              ids   now  entry
                                                                 SegmentCall ...         DeltaCall ...

Only addresses are kept, neither segments nor deltas: whoever matches holds the version, and others may go.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.one_event import HEAD, OneEvent, unpack_event
from tamis.engine.delta import DeltaView, scan_delta
from tamis.engine.matching.counters import CANDIDATES, COMPARED, EVENTS, SURVIVORS, Tally
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
from tamis.engine.matching.owners import NamingSpace, Place, name_owners
from tamis.engine.matching.results import Life, Slots
from tamis.engine.matching.scratch import Needs, needs_of
from tamis.engine.matching.thread_scratch import BodyScratch, DeltaEvent, delta_event
from tamis.engine.segment import Segment
from tamis.kernels.atomic import count_up
from tamis.kernels.entry import call_entry, entry_of
from tamis.kernels.fields import packed_fields, reader_of, word_of, words_in
from tamis.kernels.kernel import brief_kernel, inlined, lean_kernel
from tamis.kernels.numbers import UP, I64s
from tamis.kernels.packed import Packed, address_of, i4, i8

NO_ROOM = -1
NOT_SMALL = -2
"""The event has numbers of which only labels tell the key; see `unpack_event`."""
_OUT = 1 << 14
_ROWS = 1 << 16
_DIMENSIONS = 256
_NO_IDS = np.zeros(0, np.int64)
_FEW_DELTAS = 8
_BRIEF = 10_000
"""An event that is expected to meet no more entries than this is matched without letting go of the GIL."""


class Seen(Protocol):
    """A version of the engine."""

    @property
    def number(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def segments(self) -> tuple[Segment, ...]: ...
    @property
    def deltas(self) -> tuple[tuple[Any, DeltaView], ...]: ...
    @property
    def life(self) -> Life: ...


class _Buffers(NamedTuple):
    """What kernels write to."""

    rows: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.int64]
    work: npt.NDArray[np.int64]
    """What each part did for the event, three numbers as in `Work`."""
    lack: npt.NDArray[np.int64]
    """Which part lacked room, of what, and how much it needs."""
    event: DeltaEvent
    out: Slots
    clauses: Slots
    names: npt.NDArray[np.int64]


class _SegmentCall(NamedTuple):
    """A segment to match against."""

    call: Packed
    """The packed `RowsCall`."""
    owners: Packed
    """The packed `OwnerArrays`."""
    seen: npt.NDArray[np.int64]
    """What its watch has seen."""


class _DeltaCall(NamedTuple):
    """A delta to match against."""

    columns: Packed
    """The packed `DeltaArrays`."""
    rows: int


class _SingleCall(NamedTuple):
    """What `match_single` works on."""

    words: npt.NDArray[np.int64]
    """The event, see `one_event`."""
    place: npt.NDArray[np.int64]
    """Where its dimensions, lowest and highest keys lie: address and length of each."""
    start: npt.NDArray[np.int64]
    died: npt.NDArray[np.int64]
    tally: npt.NDArray[np.int64]
    buffers: _Buffers
    segments: Packed
    """A `_SegmentCall` for each segment."""
    deltas: Packed
    """A `_DeltaCall` for each delta."""
    ids: npt.NDArray[np.int64]
    now: int
    entry: int
    """The address of `match_rows`."""


_DIED, _DELTAS, _IDS, _NOW = (word_of(_SingleCall, name) for name in ("died", "deltas", "ids", "now"))
_OF_SEGMENT, _OF_DELTA = words_in(_SegmentCall), words_in(_DeltaCall)
_DELTA_ROWS = word_of(_DeltaCall, "rows")
_CALL_DIMENSION = word_of(RowsCall, "batch.dimension")
_read_single, _read_segment, _read_delta = reader_of(_SingleCall), reader_of(_SegmentCall), reader_of(_DeltaCall)


class Single:
    """An event and its match, in buffers of one thread."""

    def __init__(self, tally: Tally, scratches: dict[Needs, BodyScratch]) -> None:
        self.event = OneEvent()
        self.is_taken = False
        """Whether a call uses it. One that was interrupted never gives it back."""
        self._tally = tally
        self._scratches = scratches
        self._words: npt.NDArray[np.int64] | None = None
        self._number, self._generation = -1, -1
        self._ids: npt.NDArray[np.int64] | None = None
        self._died = _NO_IDS
        self._rows_put, self._now_put = -1, -1
        self._out, self._rows, self._dimensions, self._most = _OUT, _ROWS, _DIMENSIONS, _FEW_DELTAS

    def match(self, latest: tuple[Seen, int, int], ids: npt.NDArray[np.int64] | None, dimensions: int) -> int:
        """Match the event that was put into `event`; returns how many slots it satisfies, or NOT_SMALL.

        `latest` is as `Engine.latest` gives it, `ids` are the names of all slots where they are numbers. Neither event nor
        version have more than so many dimensions.
        """
        if dimensions > self._dimensions:
            self._dimensions = dimensions + dimensions // 2
            self._number = self._generation = -1
        version, rows, now = latest
        if version.number != self._number or ids is not self._ids or self._words is not self.event.words:
            self._follow(version, ids)
        if rows != self._rows_put or now != self._now_put:
            self._packed[_NOW], self._deltas[self._last_rows] = now, rows
            self._rows_put, self._now_put = rows, now
        count = self._kernel(self._packed)
        if count != NO_ROOM:
            return count
        self._enlarge(version)
        self._prepare(version)
        return self.match(latest, ids, dimensions)

    def slots(self, count: int) -> Slots:
        """The slots that were found, until the next match."""
        return self._buffers.out[:count]

    def names(self, count: int) -> list[Any]:
        """The names of the slots that were found, where they are numbers."""
        names: list[Any] = self._names[:count].tolist()
        return names

    def _prepare(self, version: Seen) -> None:
        """Pack what the kernel needs for the segments of a version. The caller holds it while that is used."""
        room = self._dimensions
        self._buffers = buffers = _Buffers(
            np.empty(self._rows, np.uint32),
            np.zeros(1, np.int64),
            np.zeros(3 * (len(version.segments) + self._most), np.int64),
            np.zeros(3, np.int64),
            delta_event(room),
            np.empty(self._out, np.int32),
            np.empty(self._out, np.int32),
            np.empty(self._out, np.int64),
        )
        self._names = buffers.names.data  # of which a few are got in two thirds of the time
        self._words = words = self.event.words
        self._place, self._start = np.zeros(6, np.int64), np.zeros(2, np.int64)
        self._place[2] = self._place[4] = address_of(words) + 8 * HEAD
        scratches = self._scratches_for(version.segments)
        self._scratch_arrays = [(scratch.packed, scratch.arrays) for scratch in scratches]
        event = EventBatch(
            self._start, words.view(np.int32), words, words
        )  # Where its values lie, each event says itself.
        self._calls = [
            packed_fields(
                RowsCall(
                    segment.packed[0],
                    scratch.packed,
                    event,
                    buffers.counts,
                    buffers.rows,
                    buffers.work[3 * i : 3 * i + 3],
                )
            )
            for i, (segment, scratch) in enumerate(zip(version.segments, scratches, strict=True))
        ]
        self._segments = _joined(
            packed_fields(_SegmentCall(call, segment.packed[1], segment.watch.seen))
            for segment, call in zip(version.segments, self._calls, strict=True)
        )
        entry = entry_of(match_rows) if version.segments else 0
        self._deltas = np.zeros(_OF_DELTA * self._most, np.int64)
        self._died, self._ids = _NO_IDS, None
        self._packed = packed_fields(
            _SingleCall(
                words,
                self._place,
                self._start,
                _NO_IDS,
                self._tally.counts,
                buffers,
                self._segments,
                self._deltas,
                _NO_IDS,
                0,
                entry,
            )
        )
        self._generation, self._number = version.generation, -1
        expected = sum(segment.watch.expected for segment in version.segments)
        self._kernel = match_single_briefly if expected <= _BRIEF else match_single

    def _follow(self, version: Seen, ids: npt.NDArray[np.int64] | None) -> None:
        """Put in what changes come with."""
        deltas = version.deltas
        most = max((view.number for _, view in deltas), default=0)
        if most > self._rows or len(deltas) > self._most:
            self._rows, self._most = max(self._rows, most), max(self._most, 2 * len(deltas))
            self._generation = -1
        if version.generation != self._generation or self._words is not self.event.words:
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
            self._deltas[at : at + 3] = *columns.place, number
            at += _OF_DELTA
        self._last_rows = max(at - _OF_DELTA, 0) + _DELTA_ROWS
        self._number, self._rows_put = version.number, -1

    def _scratches_for(self, segments: Sequence[Segment]) -> list[BodyScratch]:
        """Scratch for each segment, one for all that need the same: in the caches, there is room for it rather than for many."""
        needs = [needs_of(segment.body) for segment in segments]
        used = {each: self._scratches.get(each) or BodyScratch(each) for each in set(needs)}
        self._scratches.clear()
        self._scratches.update(used)
        return [used[each] for each in needs]

    def _enlarge(self, version: Seen) -> None:
        """Make room for what the last call lacked."""
        part, lack, need = self._buffers.lack.tolist()
        if lack == NO_ROOM_SLOTS:
            self._out *= 4
        elif lack == NO_ROOM_OUT:
            self._rows = need + need // 2
        else:
            self._scratches_for(version.segments)[part].enlarge(lack, need)


class Singles(threading.local):
    """What each thread matches single events in. Whoever matches takes it, so that a call that comes in between, as from the
    finalizer of some object, makes its own; and gives it back by its `is_taken`."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._scratches: dict[Needs, BodyScratch] = {}
        self._last = self._new()

    def take(self) -> Single:
        single = self._last
        if single.is_taken:
            single = self._last = self._new()
        single.is_taken = True
        return single

    def _new(self) -> Single:
        return Single(self._tally, self._scratches)


def _joined(parts: Any) -> Packed:
    return np.concatenate([np.zeros(0, np.int64), *parts])


@lean_kernel
def match_single(given: Packed) -> int:
    """Write the slots that the event satisfies; returns how many, NO_ROOM or NOT_SMALL."""
    call = _read_single(given)
    if not unpack_event(call.words, call.start, call.place):
        return NOT_SMALL
    batch = EventBatch(call.start, i4(call.place, 0), i8(call.place, 1), i8(call.place, 2))
    life = Life(call.died, call.now)
    buffers = call.buffers
    filled = 0
    segments, deltas = len(call.segments) // _OF_SEGMENT, len(call.deltas) // _OF_DELTA
    for part in range(segments + deltas):
        done = buffers.work[3 * part : 3 * part + 3]
        done[:] = 0
        if part < segments:
            segment = _read_segment(call.segments[part * _OF_SEGMENT :])
            owners = segment.owners
            if not _match_segment(segment.call, call.segments[part * _OF_SEGMENT], call.entry, call.place):
                buffers.lack[0], buffers.lack[1], buffers.lack[2] = part, segment.call[LACK], segment.call[NEED]
                return NO_ROOM
        else:
            delta = _read_delta(call.deltas[(part - segments) * _OF_DELTA :])
            owners = delta.columns
            scan_delta(owners, delta.rows, batch, (0, 1), buffers.event, buffers.counts, buffers.rows, done)
        space = NamingSpace(buffers.event.places, buffers.out[filled:], buffers.clauses)
        event, _, slots, compared = name_owners(
            owners, batch, life, buffers.rows, buffers.counts, Place(0, 1, 0), space
        )
        if event == 0:
            buffers.lack[1] = NO_ROOM_SLOTS
            return NO_ROOM
        done[2] += compared
        filled += slots
    _count_work(call.tally, call.segments, buffers.work, segments + deltas)
    if len(call.ids) > 0:
        for i in range(filled):
            buffers.names[UP(i)] = call.ids[UP(buffers.out[UP(i)])]
    return filled


@inlined
def _match_segment(words: Packed, address: int, entry: int, place: Packed) -> bool:
    """Call `match_rows` for the event whose values lie where `place` says; whether there was room."""
    for i in range(6):  # dimensions, lowest and highest keys
        words[_CALL_DIMENSION + i] = place[i]
    words[EVENT], words[STOP] = 0, 1
    return call_entry(entry, address) != 0


@inlined
def _count_work(tally: I64s, segments: Packed, work: I64s, parts: int) -> None:
    """Count what all parts did for the event, and let each segment take note of what it did."""
    entries, survivors, compared = 0, 0, 0
    for part in range(parts):
        entries += work[3 * part]
        survivors += work[3 * part + 1]
        compared += work[3 * part + 2]
        if part < len(segments) // _OF_SEGMENT:
            seen = _read_segment(segments[part * _OF_SEGMENT :]).seen
            count_up(seen, 0, 1)
            count_up(seen, 1, work[3 * part])
    count_up(tally, EVENTS, 1)
    count_up(tally, CANDIDATES, entries)
    count_up(tally, SURVIVORS, survivors)
    count_up(tally, COMPARED, compared)


@brief_kernel
def match_single_briefly(given: Packed) -> int:
    """`match_single` where it is done soon."""
    return match_single(given)
