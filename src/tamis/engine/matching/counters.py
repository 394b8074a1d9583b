"""Counting what is done in many threads, most of them inside kernels that do not hold the GIL."""

from __future__ import annotations

import numpy as np

from tamis.engine.matching.results import Work
from tamis.kernels.atomic import count_up
from tamis.kernels.kernel import brief_kernel
from tamis.kernels.numbers import I64s

Counts = I64s
EVENTS, OF_WORK = 0, 1
"""Places of counters: the events, then the work in the order of `Work`, then the mismatched."""
_NAMES = ("events", *Work._fields, "mismatched")


class Counters:
    """How much matching has been done so far."""

    def __init__(self) -> None:
        self.counts: Counts = np.zeros(len(_NAMES), np.int64)
        """Kernels add to it, see `count_up`; nobody else writes."""
        self._view = self.counts.data  # read in half of the time that an array takes

    def add(self, events: int, work: tuple[int, int, int], mismatched: int) -> None:
        add_counts(self.counts, (events, *work, mismatched))

    @property
    def events(self) -> int:
        return self._view[EVENTS]

    def as_dict(self) -> dict[str, int]:
        return dict(zip(_NAMES, self.counts.tolist(), strict=True))


@brief_kernel
def add_counts(counts: Counts, numbers: tuple[int, ...]) -> None:
    """Add numbers to counts that kernels in other threads may add to meanwhile."""
    for place in range(len(numbers)):
        count_up(counts, place, numbers[place])
