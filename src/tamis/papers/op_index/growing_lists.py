"""Many growing lists whose elements have several columns.

    list      0        1     2
    begin     0        8     4
    size      3        1     2
    room      4        2     4
    column    a b c . | g h . . | i . |           a list that gets too long moves to the end, with twice the room
    column    1 2 3 . | 4 5 . . | 6 . |

Room is made from Python, for all lists of a batch at once, before kernels write. Invariant: lists do not overlap, and
`size <= room`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I64s

_LOWEST_ROOM = 16


class GrowingLists:
    """The lists, numbered from 0."""

    def __init__(self, *dtypes: npt.DTypeLike) -> None:
        self._begin = GrowingArray(np.int64)
        self._size = GrowingArray(np.int64)
        self._room = GrowingArray(np.int64)
        self.columns: list[npt.NDArray[Any]] = [np.empty(_LOWEST_ROOM, dtype) for dtype in dtypes]
        self._end = 0

    def __len__(self) -> int:
        return len(self._begin)

    @property
    def nbytes(self) -> int:
        numbers = self._begin.nbytes + self._size.nbytes + self._room.nbytes
        return numbers + sum(column.nbytes for column in self.columns)

    @property
    def begin(self) -> I64s:
        return self._begin.view()

    @property
    def size(self) -> I64s:
        return self._size.view()

    def part(self, number: int, column: int) -> npt.NDArray[Any]:
        """A column of one list."""
        begin = int(self.begin[number])
        return self.columns[column][begin : begin + int(self.size[number])]

    def add(self, count: int) -> int:
        """Make `count` empty lists; returns the number of the first."""
        first = len(self)
        for column in (self._begin, self._size, self._room):
            column.grow(count, fill=0)
        return first

    def reserve(self, numbers: I64s, added: I64s) -> None:
        """Make room for more elements in distinct lists."""
        room = self._room.view()
        needed = self.size[numbers] + added
        full = needed > room[numbers]
        moving, needed = numbers[full], needed[full]
        if len(moving) == 0:
            return
        # A list that is built at once gets the room it needs. A list that grows gets twice that.
        rooms = np.where(room[moving] == 0, needed, 2 * needed)
        if self._end + int(rooms.sum()) > len(self.columns[0]):
            room[moving] = rooms
            self._spread()
        else:
            places = self._end + np.cumsum(rooms) - rooms
            for column in self.columns:
                _copy(self.begin[moving], self.size[moving], places, column, column)
            self.begin[moving], room[moving] = places, rooms
            self._end += int(rooms.sum())

    def _spread(self) -> None:
        """Move all lists to longer columns, without the gaps that earlier moves left."""
        room = self._room.view()
        places = np.cumsum(room) - room
        end = int(room.sum())
        length = end if self._end == 0 else end + end // 2
        for number, column in enumerate(self.columns):
            moved = np.empty(max(_LOWEST_ROOM, length), column.dtype)
            _copy(self.begin, self.size, places, column, moved)
            self.columns[number] = moved
        self.begin[:] = places
        self._end = end

    def check(self) -> None:
        """Raise an AssertionError if lists overlap or are longer than their room."""
        room = self._room.view()
        assert (self.size <= room).all()
        order = np.argsort(self.begin, kind="stable")
        ends = (self.begin + room)[order]
        some = room[order] > 0
        assert (ends[some][:-1] <= self.begin[order][some][1:]).all()
        assert (ends <= self._end).all()
        assert self._end <= len(self.columns[0])


@lean_kernel
def _copy(begin: I64s, size: I64s, to: I64s, old: npt.NDArray[Any], new: npt.NDArray[Any]) -> None:
    for number in range(len(begin)):
        for i in range(size[number]):
            new[to[number] + i] = old[begin[number] + i]
