"""Counting what is done in many threads, most of them inside kernels that do not hold the GIL."""

from __future__ import annotations

import numpy as np

from tamis.kernels.atomic import count_up
from tamis.kernels.kernel import brief_kernel
from tamis.kernels.numbers import I64s

Counts = I64s
EVENTS, CANDIDATES, SURVIVORS, COMPARED, MISMATCHED = range(5)


class Counters:
    """How much matching has been done so far."""

    def __init__(self) -> None:
        self.counts: Counts = np.zeros(5, np.int64)
        """Kernels add to it, see `count_up`; nobody else writes."""
        self._view = self.counts.data  # read in half of the time that an array takes

    def add(self, events: int, work: tuple[int, int, int], mismatched: int) -> None:
        add_counts(self.counts, (events, *work, mismatched))

    @property
    def events(self) -> int:
        return self._view[EVENTS]

    def as_dict(self) -> dict[str, int]:
        names = ("events", "candidates", "survivors", "compared", "mismatched")
        return dict(zip(names, self.counts.tolist(), strict=True))


@brief_kernel
def add_counts(counts: Counts, numbers: tuple[int, ...]) -> None:
    """Add numbers to counts that kernels in other threads may add to meanwhile."""
    for place in range(len(numbers)):
        count_up(counts, place, numbers[place])
