"""Slots that a card found for the events of a batch, still on the card.

Most callers want names, or only counts. Then the slots themselves never leave the card: it writes the row of the event and the
place of the name for each match, and only these two columns come back. Slots that the processor found for the same events go
into gaps that the card leaves:

    event 0        event 1     event 2
    c c c p        c           p p              c: from the card, p: from the processor
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.engine.matching.results import Counts, Slots
from tamis.gpu.buffers import Buffers
from tamis.gpu.order_kernels import name_in_order, put_in_order
from tamis.kernels.numbers import I32s, I64s
from tamis.kernels.ranges import span_indices


class CardSlots:
    """The slots of each event, in buffers that nobody else uses while this object lives.

    Parameters
    ----------
    counts : array
        Event -> how many slots the card found.
    others : tuple of arrays, optional
        How many slots the processor found for each event, and these slots.
    """

    def __init__(self, counts: I32s, buffers: Buffers, others: tuple[Counts, Slots] | None = None) -> None:
        self._counts = counts
        self._buffers = buffers
        self._results = buffers.results
        self._others = others
        here = np.zeros(len(counts), np.int64) if others is None else others[0]
        end = np.cumsum(counts + here)
        self._at = end - here - counts
        """Where the slots of each event begin."""
        self._total = int(end[-1]) if len(end) else 0

    def __len__(self) -> int:
        return self._total

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The slots, event by event."""
        found = self._ordered(self._results.slot_at, self._results.slot)
        if self._others is not None:
            found[self._gaps(*self._others)] = self._others[1]
        return found if dtype is None else found.astype(dtype)

    def opened(self) -> npt.NDArray[Any]:
        """The open rows, likewise. The counts are those of open rows then."""
        return self._ordered(self._results.row_at, self._results.row)

    def named(self, first: int, place: npt.NDArray[Any]) -> tuple[I64s, npt.NDArray[Any]]:
        """For each slot the row of its event, from `first` on, and `place` of the slot."""
        if self._total == 0:
            return np.zeros(0, np.int64), np.zeros(0, place.dtype)
        buffers, results = self._buffers, self._results
        counts, at = self._places()
        events = buffers.array("rows of events", self._total, np.int64)
        names = buffers.array("names", self._total, place.dtype)
        there = buffers.put("place", place)
        buffers.launch(name_in_order, (counts, results.slot_at, results.slot, at, first, there, events, names))
        rows, named = buffers.fetch_to_keep(events), buffers.fetch_to_keep(names)
        buffers.wait()
        if self._others is not None:
            gaps = self._gaps(*self._others)
            rows[gaps] = first + np.repeat(np.arange(len(self._counts)), self._others[0])
            named[gaps] = place[self._others[1]]
        return rows, named

    def _ordered(self, found_at: Any, found: Any) -> npt.NDArray[Any]:
        """What the card found for all events, event by event, with gaps."""
        if self._total == 0:
            return np.zeros(0, found.dtype)
        buffers = self._buffers
        counts, at = self._places()
        name = f"{found.dtype} in order"
        ordered = buffers.array(name, self._total, found.dtype)
        buffers.launch(put_in_order, (counts, found_at, found, at, ordered))
        fetched = buffers.fetch(name, ordered)
        buffers.wait()
        return fetched.copy()

    def _gaps(self, counts: Counts, slots: Slots) -> I64s:
        """The places of the slots that the processor found."""
        return span_indices(self._at + self._counts, counts)

    def _places(self) -> tuple[Any, Any]:
        """How many slots of each event are on the card, and where they go: both on the card."""
        return self._buffers.put("counts", self._counts), self._buffers.put("places", self._at)
