"""The watch of a segment: whether events keep to its forecast.

It counts how many entries events visit. If they visit more than twice as many as expected, the segment was planned for another
distribution of events. It is then planned and built again, with the present sample of events.
"""

from __future__ import annotations

import numpy as np

from tamis.engine.matching.counters import Counts, add_counts

MOST_DRIFT = 2.0
"""Ratio of visited to expected entries from which a segment is planned again."""
FEW_ENTRIES = 16.0
"""Additional entries per event that never make planning worthwhile: visiting them takes some 20 nanoseconds."""
FEWEST_EVENTS = 10_000
"""Events that must have been seen before a segment is planned again."""
PATIENCE = 4
"""Factor by which the number of events grows that a segment waits for after each new plan. If the likelihoods are wrong for
another reason, such as attributes that depend on each other, planning again does not help."""

SEEN_EVENTS, SEEN_ENTRIES = range(2)
"""Places in `Watch.seen`."""


class Watch:
    """How many entries recent events visit."""

    def __init__(self, expected: float, needed: int = FEWEST_EVENTS) -> None:
        self.expected = expected
        self.needed = needed
        self.seen: Counts = np.zeros(2, np.int64)
        """Events, and the entries that they visited. Kernels add to it, see `count_up`."""

    def add(self, events: int, entries: int) -> None:
        add_counts(self.seen, (events, entries))

    @property
    def events(self) -> int:
        return self.seen.item(SEEN_EVENTS)

    @property
    def entries(self) -> int:
        return self.seen.item(SEEN_ENTRIES)

    @property
    def observed(self) -> float | None:
        """Entries per event, or None if there were no events."""
        return self.entries / self.events if self.events else None

    @property
    def drift(self) -> float | None:
        """Ratio of observed to expected entries, or None."""
        observed = self.observed
        return None if observed is None or self.expected <= 0.0 else observed / self.expected

    def is_due(self) -> bool:
        """Whether the segment should be planned again. Forgets half of what it saw when that is much."""
        if self.events < self.needed:
            return False
        if self.entries > self.events * (MOST_DRIFT * self.expected + FEW_ENTRIES):
            return True
        if self.events > 4 * self.needed:
            self.add(-(self.events // 2), -(self.entries // 2))
        return False
