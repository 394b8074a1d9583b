"""Scratch space for matching: every thread has its own, for every segment that it matches against."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tamis.encoding.keys import KEY_MAX, KEY_MIN
from tamis.engine.body import Body
from tamis.engine.match import NO_ROOM_ENTRIES, NO_ROOM_LISTS, scratch_for
from tamis.engine.owners import EventScratch
from tamis.engine.packed import Packed, packed

_ROWS = 1 << 16
_ENTRIES = 1 << 16
_LISTS = 256
_SINGLE = 1 << 14


class HasBody(Protocol):
    body: Body


class Room:
    """The buffers of one thread for one segment. They grow when a kernel says what it lacks."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._entries = min(_ENTRIES, (len(body.entry) + len(body.run_entry)) // 2)
        self._lists = _LISTS
        self._scratch = scratch_for(body, self._entries, self._lists)
        self.packed_scratch = packed(self._scratch)
        self.rows = np.empty(max(self._entries, 1024), np.uint32)
        self._clauses = np.empty(0, np.int32)
        self._event = EventScratch(np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._counts = np.zeros(1, np.int64)
        self.work = np.zeros(3, np.int64)
        """What `match_single` adds its work to."""
        self.out = np.empty(_SINGLE, np.int32)
        """Where `match_single` writes slots."""
        self._single_clauses = np.empty(_SINGLE, np.int32)
        self._dimensions = -1
        self._packed_single: Packed = np.zeros(0, np.int64)

    def packed_single(self, dimensions: int) -> Packed:
        """All buffers for `match_single`: scratch, rows, counts, work, the event by dimension, slots, clauses."""
        if self._dimensions < dimensions:
            event = self.event(dimensions)
            buffers = (self.rows, self._counts, self.work, *event, self.out, self._single_clauses)
            self._packed_single = packed((*self._scratch, *buffers))
            self._dimensions = len(event.value)
        return self._packed_single

    def enlarge(self, lack: int, need: int) -> None:
        """Make room for what `match_rows` lacked."""
        if lack == NO_ROOM_LISTS:
            self._lists = need
        elif lack == NO_ROOM_ENTRIES:
            self._entries = need + need // 2
        else:
            if need > len(self.rows):
                self.rows = np.empty(need + need // 2, np.uint32)
                self._dimensions = -1
            return
        self._dimensions = -1
        self._scratch = scratch_for(self._body, self._entries, self._lists)
        self.packed_scratch = packed(self._scratch)

    def event(self, dimensions: int) -> EventScratch:
        """Where an event is laid out by dimension, for so many dimensions."""
        if len(self._event.value) < dimensions:
            self._event = EventScratch(*np.zeros((2, dimensions + dimensions // 2), np.int64))
        return self._event

    def clauses(self, size: int) -> npt.NDArray[np.int32]:
        if len(self._clauses) < size:
            self._clauses = np.empty(size, np.int32)
        return self._clauses


class Numbers(NamedTuple):
    """Room for the rows of a delta that are found, and the numbers of all its rows."""

    found: npt.NDArray[np.uint32]
    all: npt.NDArray[np.int32]


class DeltaRoom:
    """The buffers of one thread for deltas."""

    def __init__(self) -> None:
        self._event = EventScratch(np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._lowest, self._highest = np.zeros((2, 0), np.int64)
        self._clauses = np.empty(0, np.int32)
        self._numbers = Numbers(np.empty(0, np.uint32), np.empty(0, np.int32))

    def event(self, dimensions: int) -> EventScratch:
        if len(self._event.value) < dimensions:
            self._event = EventScratch(*np.zeros((2, dimensions + dimensions // 2), np.int64))
        return self._event

    def extent(self, dimensions: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The lowest and highest key of the event by dimension: the wrong way round where it has none."""
        if len(self._lowest) < dimensions:
            room = dimensions + dimensions // 2
            self._lowest, self._highest = np.full(room, KEY_MAX), np.full(room, KEY_MIN)
        return self._lowest, self._highest

    def clauses(self, size: int) -> npt.NDArray[np.int32]:
        if len(self._clauses) < size:
            self._clauses = np.empty(size, np.int32)
        return self._clauses

    def numbers(self, rows: int) -> Numbers:
        if len(self._numbers.all) < rows:
            self._numbers = Numbers(np.empty(max(2 * rows, _ROWS), np.uint32), np.arange(2 * rows, dtype=np.int32))
        return self._numbers


class Rooms(threading.local):
    """The rooms of each thread."""

    def __init__(self) -> None:
        self._rooms: WeakKeyDictionary[Any, Room] = WeakKeyDictionary()
        self.delta = DeltaRoom()

    def of(self, segment: HasBody) -> Room:
        room = self._rooms.get(segment)
        if room is None:
            room = self._rooms[segment] = Room(segment.body)
        return room
