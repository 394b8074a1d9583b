"""Slots that a card found for the events of a batch, still on the card.

Most callers want names, only counts, or the heaviest. Then the slots themselves never leave the card: it writes the row of the
event and the place of the name for each match, and only these two columns come back. A batch is matched in *pieces*, one for each
segment and run of the kernel. The slots of an event are those of the first piece, then those of the next. Slots that the
processor found for the same events go into gaps that the card leaves:

    event 0        event 1     event 2
    c c d p        c           p p              c, d: pieces on the card, p: from the processor
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.engine.matching.results import Counts, Slots
from tamis.engine.top_k import keep_heaviest
from tamis.gpu.buffers import Buffers
from tamis.gpu.order_kernels import keep_heaviest_on_card, name_in_order, put_in_order
from tamis.gpu.uploads import Uploads
from tamis.kernels.numbers import F64s, I32s, I64s
from tamis.kernels.ranges import span_indices

_MOST_HEAVIEST = 64
"""The largest k for which the card finds the heaviest slots. It looks at all slots of an event k times."""


class Piece(NamedTuple):
    """Slots that one run of the kernel found."""

    counts: I32s
    """Event -> how many slots it has."""
    on_card: Any
    """The same on the card, where events without slots may have any number below 0."""
    at: Any
    """Event -> where its slots begin, on the card."""
    slot: Any
    """The slots, on the card."""


def summed(counts: Sequence[npt.NDArray[Any]], events: int) -> Counts:
    """The sum of several counts for each event."""
    return np.add.reduce(counts, axis=0, dtype=np.int64, initial=0) if counts else np.zeros(events, np.int64)


class CardSlots:
    """The slots of each event, in buffers that nobody else uses while this object lives.

    Parameters
    ----------
    others : tuple of arrays, optional
        How many slots the processor found for each event, and these slots.
    """

    def __init__(
        self, pieces: list[Piece], buffers: Buffers, uploads: Uploads, others: tuple[Counts, Slots] | None = None
    ) -> None:
        self._pieces = pieces
        self._buffers = buffers
        self._uploads = uploads
        self._others = others
        self._keeps: object = None
        """What must live as long as this object."""
        here = np.zeros(buffers.events, np.int64) if others is None else others[0]
        self._counts = summed([piece.counts for piece in pieces], buffers.events)
        end = np.cumsum(self._counts + here)
        self._at = end - here - self._counts
        """Where the slots of each event begin."""
        self._total = int(end[-1]) if len(end) else 0

    def __len__(self) -> int:
        return self._total

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The slots, event by event."""
        if self._total == 0:
            return np.zeros(0, np.int32)
        ordered = self._ordered()
        found = self._buffers.fetch("slots in order", ordered)
        self._buffers.wait()
        found = found.copy()
        if self._others is not None:
            found[self._gaps(*self._others)] = self._others[1]
        return found if dtype is None else found.astype(dtype)

    def named(self, first: int, place: npt.NDArray[Any]) -> tuple[I64s, npt.NDArray[Any]]:
        """For each slot the row of its event, from `first` on, and `place` of the slot."""
        if self._total == 0:
            return np.zeros(0, np.int64), np.zeros(0, place.dtype)
        buffers, there = self._buffers, self._uploads.find("place", place, lambda: place)
        events = buffers.array("rows of events", self._total, np.int64)
        names = buffers.array("names", self._total, place.dtype)
        for number, (piece, at) in enumerate(zip(self._pieces, self._places(), strict=True)):
            ordered_at = buffers.put(f"places {number}", at)
            buffers.launch(
                name_in_order, (piece.on_card, piece.at, piece.slot, ordered_at, first, there, events, names)
            )
        rows, named = buffers.fetch_to_keep(events), buffers.fetch_to_keep(names)
        buffers.wait()
        if self._others is not None:
            gaps = self._gaps(*self._others)
            rows[gaps] = first + np.repeat(np.arange(len(self._counts)), self._others[0])
            named[gaps] = place[self._others[1]]
        return rows, named

    def heaviest(self, counts: Counts, weights: F64s, k: int) -> tuple[Counts, Any]:
        """The `k` heaviest slots of each event, as `keep_heaviest` finds them: on the card if it found all slots."""
        if self._others is not None or k > _MOST_HEAVIEST or self._total == 0:
            return keep_heaviest(counts, np.asarray(self), weights, k)
        buffers, there = self._buffers, self._uploads.find("weights", weights, lambda: weights)
        kept = np.minimum(counts, k)
        end = np.cumsum(kept)
        piece = self._pieces[0]
        if len(self._pieces) > 1:
            on_card = buffers.put("counts", self._counts.astype(np.int32))
            piece = Piece(piece.counts, on_card, buffers.put("begins", self._at), self._ordered())
        count, at = buffers.put("kept", kept.astype(np.int32)), buffers.put("kept_at", end - kept)
        out = buffers.array("heaviest", int(end[-1]), np.int32)
        buffers.launch(keep_heaviest_on_card, (piece.on_card, piece.at, piece.slot, there, count, at, out))
        buffers.wait()
        found = CardSlots([Piece(kept.astype(np.int32), count, at, out)], buffers, self._uploads)
        found._keeps = self
        return kept, found

    def _ordered(self) -> Any:
        """The slots event by event, on the card, with gaps."""
        buffers = self._buffers
        ordered = buffers.array("slots in order", self._total, np.int32)
        for number, (piece, at) in enumerate(zip(self._pieces, self._places(), strict=True)):
            ordered_at = buffers.put(f"places {number}", at)
            buffers.launch(put_in_order, (piece.on_card, piece.at, piece.slot, ordered_at, ordered))
        return ordered

    def _places(self) -> list[I64s]:
        """Where the slots of each event go, of one piece after another."""
        at = self._at
        places = []
        for piece in self._pieces:
            places.append(at)
            at = at + piece.counts
        return places

    def _gaps(self, counts: Counts, slots: Slots) -> I64s:
        """The places of the slots that the processor found."""
        return span_indices(self._at + self._counts, counts)


def open_rows(counts: I32s, buffers: Buffers) -> npt.NDArray[Any]:
    """The open rows that the last run of the kernel found, event by event; `counts` says how many each event has."""
    total = int(counts.sum())
    if total == 0:
        return np.zeros(0, np.uint32)
    results = buffers.results
    ordered = buffers.array("rows in order", total, np.uint32)
    there, places = buffers.put("counts of rows", counts), buffers.put("places of rows", np.cumsum(counts) - counts)
    buffers.launch(put_in_order, (there, results.row_at, results.row, places, ordered))
    found = buffers.fetch("rows in order", ordered)
    buffers.wait()
    return found.copy()
