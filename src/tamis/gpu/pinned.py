"""Pinned memory for results: a card writes them there at its full speed, and they are not copied again.

Taking pinned memory is slow, so a block is kept when nobody uses the array in it any more. Tables of Arrow may live long. If
arrays that are in use hold too much pinned memory, the results are in plain memory instead.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.gpu.card import Card

_LEAST = 1 << 16
"""The smallest block."""
_MOST = 1 << 33
"""The most bytes of all blocks of a pool."""


class PinnedPool:
    """Blocks of pinned memory, of sizes that are powers of two."""

    def __init__(self, card: Card, most: int = _MOST) -> None:
        self._card = card
        self._most = most
        self._free: dict[int, list[npt.NDArray[np.uint8]]] = {}
        self._lock = threading.RLock()  # A finalizer may run while this thread holds it.
        self.nbytes = 0
        """The bytes of all blocks, free or not."""

    def empty(self, count: int, kind: Any) -> npt.NDArray[Any] | None:
        """An array in pinned memory; None if there is too much of that already."""
        size = max(count * np.dtype(kind).itemsize, _LEAST)
        size = 1 << (size - 1).bit_length()
        block = self._take(size)
        if block is None:
            return None
        holder = (ctypes.c_uint8 * size).from_address(block.ctypes.data)
        weakref.finalize(holder, self._give, block).atexit = False
        return np.frombuffer(holder, kind, count)

    def _take(self, size: int) -> npt.NDArray[np.uint8] | None:
        with self._lock:
            free = self._free.setdefault(size, [])
            if free:
                return free.pop()
            if self.nbytes + size > self._most:
                self._drop()
            if self.nbytes + size > self._most:
                return None
            self.nbytes += size
        return self._card.pinned(size)

    def _drop(self) -> None:
        """Give all free blocks back to the system."""
        for size, free in self._free.items():
            self.nbytes -= size * len(free)
            free.clear()

    def _give(self, block: npt.NDArray[np.uint8]) -> None:
        with self._lock:
            self._free[len(block)].append(block)
