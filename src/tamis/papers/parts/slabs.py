"""Many lists of numbers in one array, to which kernels append and from which they take.

    list      0        1     2
    begin     0        8     4
    size      3        1     2
    room      4        2     4
    data      a b c . | g h . . | i . |           a list that is full moves to the end, with twice the room

Invariant: lists do not overlap, and `size <= room`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import UP, I32s, I64s

_LOWEST_ROOM = 2
_LOWEST_DATA = 16


class SlabArrays(NamedTuple):
    """The lists as kernels take them; `end` has one element, how much of `data` is in use."""

    begin: I64s
    size: I32s
    room: I32s
    data: I32s
    end: I64s


class Slabs:
    """The lists, numbered from 0."""

    def __init__(self) -> None:
        self._begin = GrowingArray(np.int64)
        self._size = GrowingArray(np.int32)
        self._room = GrowingArray(np.int32)
        self._data = np.empty(_LOWEST_DATA, np.int32)
        self._end = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return len(self._begin)

    @property
    def nbytes(self) -> int:
        return self._begin.nbytes + self._size.nbytes + self._room.nbytes + self._data.nbytes + self._end.nbytes

    def view(self) -> SlabArrays:
        return SlabArrays(self._begin.view(), self._size.view(), self._room.view(), self._data, self._end)

    def values(self, number: int) -> I32s:
        """The values of a list."""
        begin = int(self._begin.view()[number])
        return self._data[begin : begin + int(self._size.view()[number])]

    def add(self, count: int = 1) -> int:
        """Make `count` empty lists; returns the number of the first."""
        first = len(self)
        for column in (self._begin, self._size, self._room):
            column.grow(count, fill=0)
        return first

    def enlarge(self, more: int = 0) -> None:
        """Make room after `push` found none, or for `more` more numbers. All lists move to a new array, without gaps."""
        lists = self.view()
        used = int(lists.size.sum(dtype=np.int64))
        self._data = np.empty(max(_LOWEST_DATA, 4 * used + 2 * more), np.int32)
        self._end[0] = _move(lists, self._data)

    def fit(self) -> None:
        """Free the room behind the lists. Some room remains in each list."""
        lists = self.view()
        used = int((lists.size + lists.size // 2).sum(dtype=np.int64))
        if 2 * used < len(self._data):
            self._data = np.empty(max(_LOWEST_DATA, used), np.int32)
            self._end[0] = _move(lists, self._data)

    def extend(self, lists: I64s, values: I32s) -> None:
        """Append a value to each of some lists, one after another."""
        done = _push_all(self.view(), lists, values, 0)
        while done < len(lists):
            self.enlarge(len(lists) - done)
            done = _push_all(self.view(), lists, values, done)


@inlined
def push(lists: SlabArrays, number: int, value: int) -> bool:
    """Append a value to a list. Returns False, without a change, if there is no room."""
    begin, size, room, data, end = lists.begin, lists.size, lists.room, lists.data, lists.end
    if size[number] == room[number]:
        more = max(2 * room[number], _LOWEST_ROOM)
        if end[0] + more > len(data):
            return False
        for i in range(size[number]):
            data[UP(end[0] + i)] = data[UP(begin[number] + i)]
        begin[number], room[number] = end[0], more
        end[0] += more
    data[UP(begin[number] + size[number])] = value
    size[number] += 1
    return True


@inlined
def take_out(lists: SlabArrays, number: int, value: int) -> int:
    """Remove a value from a list; the last value takes its place. Returns the place, or -1 if the value is not there."""
    first, last = lists.begin[number], lists.begin[number] + lists.size[number] - 1
    for i in range(first, last + 1):
        if lists.data[UP(i)] == value:
            lists.data[UP(i)] = lists.data[UP(last)]
            lists.size[number] -= 1
            return i - first
    return -1


@lean_kernel
def _push_all(lists: SlabArrays, numbers: I64s, values: I32s, first: int) -> int:
    """Append values from `first` on; returns the first for which there was no room."""
    for i in range(first, len(numbers)):
        if not push(lists, numbers[i], values[i]):
            return i
    return len(numbers)


@lean_kernel
def _move(lists: SlabArrays, to: I32s) -> int:
    """Put lists one behind another, with some room behind each; returns where they end."""
    end = 0
    for number in range(len(lists.begin)):
        for i in range(lists.size[number]):
            to[end + i] = lists.data[lists.begin[number] + i]
        lists.begin[number] = end
        lists.room[number] = lists.size[number] + lists.size[number] // 2
        end += lists.room[number]
    return end
