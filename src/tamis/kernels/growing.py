"""Flat arrays that grow at their end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class GrowingArray:
    """A one-dimensional array with room behind its end, doubled when it is used up.

    `view()` is the used part, without a copy. When the array grows, an older view stays as it was.
    """

    __slots__ = ("_size", "data")

    def __init__(self, dtype: npt.DTypeLike, room: int = 16) -> None:
        self.data: npt.NDArray[Any] = np.empty(room, dtype)
        """The used part and the room behind it. Growing may replace this array."""
        self._size = 0

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> GrowingArray:
        """An array that begins with the elements of another one. They are copied when it grows."""
        growing = cls(array.dtype, 0)
        growing.data, growing._size = array, len(array)
        return growing

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    def view(self) -> npt.NDArray[Any]:
        return self.data[: self._size]

    def extend(self, values: npt.ArrayLike) -> None:
        array = np.asarray(values)
        part = self.grow(len(array))
        part[:] = array

    def append(self, value: Any) -> None:
        self.grow(1)[0] = value

    def grow(self, count: int, fill: Any = None) -> npt.NDArray[Any]:
        """Add `count` elements and return them as a view, to be filled by the caller unless `fill` is given."""
        needed = self._size + count
        if needed > len(self.data):
            data = np.empty(max(needed, 2 * len(self.data)), self.data.dtype)
            data[: self._size] = self.data[: self._size]
            self.data = data
        part = self.data[self._size : needed]
        if fill is not None:
            part[:] = fill
        self._size = needed
        return part

    def shrink(self, count: int) -> None:
        """Drop the last elements. They must not be in use elsewhere."""
        self._size -= count

    def drop(self, count: int) -> None:
        """Drop the first elements. The others move to the front, so older views become worthless."""
        self._size -= count
        self.data[: self._size] = self.data[count : count + self._size]
