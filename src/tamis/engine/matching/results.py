"""The results of matching: the slots of each event, and how much work it took."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import UP, F64s, I32s, I64s

Slots = I32s
Counts = I64s


class Life(NamedTuple):
    """The time when each slot died, and the current time. `died` is empty if no slot has died."""

    died: I64s
    now: int


CANDIDATES, SURVIVORS, COMPARED = range(3)
"""Where kernels count the work, in the order of `Work`."""
WORK = 3
"""The length of an array in which kernels count the work."""


class Work(NamedTuple):
    """How much work matching took."""

    candidates: int = 0
    """List entries visited, including padding."""
    survivors: int = 0
    """Candidates whose record was checked."""
    compared: int = 0
    """Conjunctions or programs decided by comparing keys."""

    def plus(self, other: Work) -> Work:
        return Work(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class LazySlots(Protocol):
    """Slots that are elsewhere, such as on a card. NumPy can make an array of them."""

    def __len__(self) -> int: ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]: ...

    def named(self, first: int, place: npt.NDArray[Any]) -> tuple[I64s, npt.NDArray[Any]]:
        """For each slot the row of its event, the first of which is `first`, and `place` of the slot."""

    def heaviest(self, counts: Counts, weights: F64s, k: int) -> tuple[Counts, Any]:
        """What `tamis.engine.top_k.keep_heaviest` keeps of these slots: an array, or again `LazySlots`."""


def are_lazy(slots: Any) -> TypeGuard[LazySlots]:
    """Whether slots are elsewhere. `isinstance` of a protocol is slow."""
    return not isinstance(slots, np.ndarray)


class Found(NamedTuple):
    """The slots that match each event of a batch, one event after another."""

    counts: Counts
    slots: Slots
    """An array, or `LazySlots` if a card matched the batch."""
    work: Work


class TooMuchFoundError(Exception):
    """The events of a batch match more than there may be at a time. Fewer events must be matched at a time."""


def nothing_found(events: int) -> Found:
    return Found(np.zeros(events, np.int64), np.zeros(0, np.int32), Work())


def together(parts: list[Found], events: int) -> Found:
    """Join what the parts of an index found for the same events. Only one part can find a given subscription."""
    if len(parts) == 1:
        return parts[0]
    work = Work()
    for part in parts:
        work = work.plus(part.work)
    parts = [part for part in parts if len(part.slots)]
    if not parts:
        return nothing_found(events)._replace(work=work)
    if len(parts) == 1:
        return parts[0]._replace(work=work)
    counts = np.sum([part.counts for part in parts], axis=0)
    slots = np.empty(int(counts.sum()), np.int32)
    place = np.cumsum(counts) - counts
    for part in parts:
        _spread(part.counts, np.asarray(part.slots), place, slots)
    return Found(counts, slots, work)


@lean_kernel
def _spread(counts: Counts, slots: Slots, place: Counts, out: Slots) -> None:
    """Copy the slots of every event to `place`, and move `place` behind them."""
    at = 0
    for event in range(len(counts)):
        to = place[UP(event)]
        for i in range(counts[UP(event)]):
            out[UP(to + i)] = slots[UP(at + i)]
        at += counts[UP(event)]
        place[UP(event)] = to + counts[UP(event)]
