"""What one batch at a time reads and writes on a card: the events of a batch, the arrays of blocks, the results of a kernel.

Taking memory of a card stops the card, and memory that the system may move is slow to copy. So all arrays are kept for the next
call, and copies go through pinned memory. An array grows when it is too short.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import EventBatch
from tamis.engine.matching.results import WORK
from tamis.gpu.card import Card, shared_places
from tamis.gpu.card_arrays import EventArrays, Results
from tamis.gpu.match_kernel import THREADS
from tamis.gpu.pinned import PinnedPool


class BufferLimits(NamedTuple):
    """First sizes of buffers. They grow when a kernel lacks room."""

    room: int = 1 << 12
    """Rows that an event may have."""
    rows: int = 1 << 16
    """Slots of a batch, and open rows."""
    blocks: int = 32
    """Blocks for each processor of a card."""
    scratch: int = 1 << 28
    """The most rows in the scratch of all blocks. If events need more, there are fewer blocks."""


USUAL_BUFFERS = BufferLimits()


class Buffers:
    """Buffers that serve one batch after another."""

    results: Results
    """Where the kernel writes."""
    batch: EventBatch
    """The events, on the card."""
    event_arrays: EventArrays
    shared_bytes: int

    def __init__(self, card: Card, to_keep: PinnedPool, limits: BufferLimits = USUAL_BUFFERS) -> None:
        self.card = card
        self.stream = card.new_stream()
        self._limits = limits
        self._most_blocks = limits.blocks * card.processors
        self._room = limits.room
        self._slots, self._rows = limits.rows, limits.rows
        self._sizes: tuple[int, int, int] | None = None
        self._kept: dict[str, Any] = {}
        self._pinned: dict[str, npt.NDArray[np.uint8]] = {}
        self._to_keep = to_keep

    @property
    def blocks(self) -> int:
        """How many blocks run at the same time."""
        return max(min(self._most_blocks, self._limits.scratch // self._room), 1)

    def begin(self, batch: EventBatch, sizes: tuple[int, int, int]) -> None:
        """Put the events of a batch on the card. `sizes` are those of the segment."""
        first, last = int(batch.start[0]), int(batch.start[-1])
        lo = self.put("lo", batch.lo[first:last])
        hi = lo if batch.hi is batch.lo else self.put("hi", batch.hi[first:last])
        start = self.put("start", batch.start - first)
        self.batch = EventBatch(start, self.put("dimension", batch.dimension[first:last]), lo, hi)
        if sizes != self._sizes:
            self._sizes = sizes
            self._lay_out(sizes)

    def _lay_out(self, sizes: tuple[int, int, int]) -> None:
        places, self.shared_bytes = shared_places(sizes)
        kinds = np.int64, np.uint32, np.uint8
        elsewhere = [
            self.card.room(1 if at >= 0 else size * self._most_blocks, kind)
            for at, size, kind in zip(places, sizes, kinds, strict=True)
        ]
        self.event_arrays = EventArrays(*sizes, *places, *elsewhere)

    def make_room(self, longest: int, total: int) -> None:
        """Make room for batches like one that has this many rows in all, of which one event has the most."""
        self._room = max(self._room, longest)
        self._slots, self._rows = max(self._slots, total + total // 4), max(self._rows, total + total // 4)

    def clear_results(self) -> None:
        """Make room for the results of the next run of the kernel."""
        events = len(self.batch.start) - 1
        self.results = Results(
            self.array("slot", self._slots, np.int32),
            self.array("row", self._rows, np.uint32),
            self.array("settled", events, np.int32),
            self.array("open", events, np.int32),
            self.array("slot_at", events, np.int64),
            self.array("row_at", events, np.int64),
            self.put("filled", np.zeros(2, np.int64)),
            self.put("work", np.zeros(WORK, np.int64)),
            self.array("scratch", self.blocks * self._room, np.uint32),
            self._room,
        )

    def array(self, name: str, count: int, kind: Any) -> Any:
        """An array of the card for `count` elements, with anything in it."""
        kept = self._kept.get(name)
        if kept is None or kept.size < count:
            self._kept.pop(name, None)
            kept = self._kept[name] = self.card.room(count + count // 4 + 1, kind)
        return kept[:count]

    def put(self, name: str, array: npt.NDArray[Any]) -> Any:
        """A copy of an array on the card."""
        there = self.array(name, len(array), array.dtype)
        staged = self._staged(name, array.dtype, len(array))
        staged[:] = array
        self.card.copy_there(staged, there, self.stream)
        return there

    def fetch(self, name: str, array: Any) -> npt.NDArray[Any]:
        """The elements of an array of the card, after `wait`, and until the next call with this name."""
        staged = self._staged(name, array.dtype, array.size)
        self.card.copy_here(array, staged, self.stream)
        return staged

    def fetch_to_keep(self, array: Any) -> npt.NDArray[Any]:
        """The same in an array for the user."""
        kept = self._to_keep.empty(array.size, array.dtype)
        if kept is None:
            kept = np.empty(array.size, array.dtype)
        self.card.copy_here(array, kept, self.stream)
        return kept

    def _staged(self, name: str, kind: Any, count: int) -> npt.NDArray[Any]:
        size = count * np.dtype(kind).itemsize
        kept = self._pinned.get(name)
        if kept is None or len(kept) < size:
            self._pinned.pop(name, None)
            kept = self._pinned[name] = self.card.pinned(size + size // 4 + 8)
        return kept[:size].view(kind)

    def launch(self, kernel: Any, arguments: tuple[Any, ...], blocks: int | None = None, shared: int = 0) -> None:
        """Put a kernel into the queue."""
        self.card.launch(kernel, self.blocks if blocks is None else blocks, THREADS, self.stream, shared, arguments)

    def wait(self) -> None:
        """Wait until the card has done all that these buffers are used for."""
        self.stream.synchronize()
