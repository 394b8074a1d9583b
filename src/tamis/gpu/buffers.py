"""What one batch at a time reads and writes on a card: the events of a batch, the arrays of blocks, the results of a kernel.

Taking memory of a card stops the card, and memory that the system may move is slow to copy. So all arrays are kept for the next
call, and copies go through pinned memory. An array grows when it is too short.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.plain_columns import WIDTHS, raw_column
from tamis.encoding.events.plain_rows import ColumnRows, EntryRows, NotPlainError, PlainRows, events_in
from tamis.engine.matching.results import WORK, TooMuchFoundError
from tamis.gpu.card import Card, shared_places
from tamis.gpu.card_arrays import COLUMN, NO_BITS, CardEntries, CardEvents, Cells, EventArrays, Results
from tamis.gpu.encode_kernels import WRONG, encode_columns, encode_entries
from tamis.gpu.match_kernel import MOST_THREADS, THREADS
from tamis.gpu.names_table import names_table
from tamis.gpu.pinned import PinnedPool
from tamis.gpu.uploads import Uploads
from tamis.kernels.bits import BYTE

_CELLS = [np.dtype(kind) for kind in ("i8", "f8", "i4", "f4", "i2", "i1", "u1", "u2", "u4")]
"""The types of `Cells`."""
_ALIGNED = 8
"""Bytes of the widest type."""
_STEP = 1 << 20
"""Bytes that copies of Arrow's memory grow by, so that most batches use the same arrays."""
MUCH_SHARED = 16 << 10
"""Bytes of shared memory for an event from which on a block has more threads."""


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
    most: int | None = None
    """The most slots and open rows of a segment and several events. More are an error. None: as many as the card has room for."""


USUAL_BUFFERS = BufferLimits()


def check_plain(noted: npt.NDArray[Any] | None) -> None:
    """Check what the kernels that encode noted.

    Raises
    ------
    NotPlainError
    """
    if noted is not None and noted[WRONG]:
        raise NotPlainError


class Buffers:
    """Buffers that serve one batch after another."""

    results: Results
    """Where the kernel writes."""
    batch: CardEvents
    """The events, on the card."""
    events: int
    event_arrays: EventArrays
    shared_bytes: int
    threads: int
    """Threads of a block that matches an event."""

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
        self._noted: Any = None
        """What the kernels that encode noted; None if threads encoded the batch."""
        self._cells: tuple[Any, Cells] | None = None
        """An array and its views."""
        self._views: dict[str, Any] = {}
        """The last array that `array` gave by each name. Slicing an array of a card takes as long as a short kernel."""
        self._filled = 0
        """Slots of the batch that are in `results.slot`."""

    @property
    def blocks(self) -> int:
        """How many blocks run at the same time."""
        return max(min(self._most_blocks, self._limits.scratch // self._room), 1)

    def begin(self, batch: EventBatch | PlainRows, uploads: Uploads) -> None:
        """Put the events of a batch on the card, where the keys of `PlainRows` are made."""
        self.events, self._filled, self._noted = events_in(batch), 0, None
        if isinstance(batch, EventBatch):
            self.batch = self._put_batch(batch)
            return
        self._noted = self.put("noted", np.zeros(2, np.int64))
        if isinstance(batch, EntryRows):
            self._encode_entries(batch, uploads)
        else:
            self._encode_columns(batch)

    def _put_batch(self, batch: EventBatch | None) -> CardEvents:
        if batch is None:
            batch = EventBatch(np.zeros(1, np.int64), np.zeros(0, np.int32), *[np.zeros(0, np.int64)] * 2)
        first, last = int(batch.start[0]), int(batch.start[-1])
        lo = self.put("lo", batch.lo[first:last])
        hi = lo if batch.hi is batch.lo else self.put("hi", batch.hi[first:last])
        start = self.put("start", batch.start - first)
        return CardEvents(start[:-1], start[1:], self.put("dimension", batch.dimension[first:last]), lo, hi)

    def _new_batch(self, values: int) -> CardEvents:
        """Room for a batch of this many values."""
        begin, end = self.array("begin", self.events, np.int64), self.array("end", self.events, np.int64)
        keys = self.array("keys", values, np.int64)
        return CardEvents(begin, end, self.array("dimensions", values, np.int32), keys, keys)

    def _encode_columns(self, rows: ColumnRows) -> None:
        columns = rows.columns
        raw = [raw_column(array) for array in columns.arrays]
        cells, places = self._put_cells([part for column in raw for part in (column.values, column.validity)])
        lines = np.zeros((len(raw), COLUMN), np.int64)
        for line, column, dimension in zip(range(len(raw)), raw, columns.dimensions, strict=True):
            at, bits_at = places[2 * line : 2 * line + 2]
            validity = bits_at if len(column.validity) else NO_BITS
            lines[line] = at // WIDTHS[column.code], validity, column.bit, column.code, dimension
        others = self._put_batch(rows.others)
        self.batch = self._new_batch(columns.values + len(others.lo))
        described = self.put("columns", lines.ravel())
        self.launch(encode_columns, (described, cells, others, self.batch, self._noted))

    def _encode_entries(self, rows: EntryRows, uploads: Uploads) -> None:
        start, names, values = rows.entries
        _, offsets, text = names.buffers()
        width = 8 if pa.types.is_large_string(names.type) else 4
        ends = np.frombuffer(offsets, np.int64 if width == 8 else np.int32)[names.offset :][: len(names) + 1]
        first, last = int(ends[0]), int(ends[-1])
        letters = np.frombuffer(text, np.uint8)[first:last] if last > first else np.zeros(0, np.uint8)
        raw = raw_column(values)
        parts = [start.view(np.uint8), ends.view(np.uint8), letters, raw.values, raw.validity]
        cells, places = self._put_cells(parts)
        entries = CardEntries(
            places[0] // 8,
            places[1] // width,
            BYTE * width,
            places[2] - first,
            places[3] // WIDTHS[raw.code],
            raw.code,
            places[4] if len(raw.validity) else NO_BITS,
            raw.bit,
        )
        known = uploads.find("names", rows.known, lambda: names_table(rows.known))
        self.batch = self._new_batch(len(values))
        self.launch(encode_entries, (entries, known, cells, self.batch, self._noted))

    def _put_cells(self, parts: list[npt.NDArray[np.uint8]]) -> tuple[Cells, list[int]]:
        """Copies of some memory on the card, and where each part begins."""
        ends = np.cumsum([0, *(-(-len(part) // _ALIGNED) * _ALIGNED for part in parts)])
        size = int(ends[-1])
        staged = self._staged("cells", np.uint8, size)
        places: list[int] = ends[:-1].tolist()
        for at, part in zip(places, parts, strict=True):
            staged[at : at + len(part)] = part
        there = self.array("cells", -(-(size + 1) // _STEP) * _STEP, np.uint8)
        self.card.copy_there(staged, there[:size], self.stream)
        if self._cells is None or self._cells[0] is not there:
            self._cells = there, Cells(*(there.view(kind) for kind in _CELLS))
        return self._cells[1], places

    def fetch_noted(self) -> npt.NDArray[Any] | None:
        """What the kernels that encode noted, after `wait`; None if threads encoded the batch."""
        return None if self._noted is None else self.fetch("noted", self._noted)

    def lay_out(self, sizes: tuple[int, int, int]) -> None:
        """Prepare the arrays of events for a segment, whose sizes are these."""
        if sizes != self._sizes:
            self._sizes = sizes
            self._lay_out(sizes)

    def _lay_out(self, sizes: tuple[int, int, int]) -> None:
        places, self.shared_bytes = shared_places(sizes)
        self.threads = THREADS if self.shared_bytes < MUCH_SHARED else MOST_THREADS
        kinds = np.int64, np.uint32, np.uint8
        elsewhere = [
            self.card.room(1 if at >= 0 else size * self._most_blocks, kind)
            for at, size, kind in zip(places, sizes, kinds, strict=True)
        ]
        self.event_arrays = EventArrays(*sizes, *places, *elsewhere)

    def make_room(self, longest: int, total: int) -> None:
        """Make room for batches like one that has this many rows in all, of which one event has the most.

        The slots that were found stay where they are.

        Raises
        ------
        TooMuchFoundError
        """
        if self._limits.most is not None and total > max(self._limits.most, longest):
            raise TooMuchFoundError
        self._room = max(self._room, longest)
        self._slots, self._rows = max(self._slots, total + total // 4), max(self._rows, total + total // 4)
        self._kept.pop("slot", None)
        self._views.pop("slot", None)
        self._filled = 0

    def clear_results(self, piece: int) -> None:
        """Make room for the results of the next run of the kernel. `piece` numbers the runs for one batch."""
        events = self.events
        self.results = Results(
            self.array("slot", self._slots, np.int32),
            self.array("row", self._rows, np.uint32),
            self.array(f"settled {piece}", events, np.int32),
            self.array("open", events, np.int32),
            self.array(f"slot_at {piece}", events, np.int64),
            self.array("row_at", events, np.int64),
            self.put("filled", np.array([self._filled, 0], np.int64)),
            self.put("work", np.zeros(WORK, np.int64)),
            self.array("scratch", self.blocks * self._room, np.uint32),
            self._room,
        )

    def keep_results(self, slots: int) -> None:
        """Let the next run of the kernel keep the slots of this run."""
        self._filled += slots

    def array(self, name: str, count: int, kind: Any) -> Any:
        """An array of the card for `count` elements, with anything in it."""
        view = self._views.get(name)
        if view is not None and view.size == count and view.dtype == kind:
            return view
        kept = self._kept.get(name)
        if kept is None or kept.size < count or kept.dtype != kind:
            self._kept.pop(name, None)
            self._views.pop(name, None)
            kept = self._kept[name] = self.card.room(count + count // 4 + 1, kind)
        view = self._views[name] = kept[:count]
        return view

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

    def launch(self, kernel: Any, arguments: tuple[Any, ...]) -> None:
        """Put a kernel into the queue that has a warp for each event."""
        self.card.launch(kernel, self.blocks, THREADS, self.stream, 0, arguments)

    def launch_blocks(self, kernel: Any, arguments: tuple[Any, ...], events: int) -> None:
        """Put the kernel into the queue that has a block for each event."""
        blocks = min(self.blocks, events)
        self.card.launch(kernel, blocks, self.threads, self.stream, self.shared_bytes, arguments)

    def wait(self) -> None:
        """Wait until the card has done all that these buffers are used for."""
        self.stream.synchronize()
