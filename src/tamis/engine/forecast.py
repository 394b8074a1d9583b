"""What a segment was planned with, and whether events keep to it.

The *forecast* of a segment is how many entries an event is expected to look at: the sum, over its conjunctions, of the
likelihood of their lists (Fabret and others 3.2: the cost of matching is that of the entries that are checked). The *watch*
counts how many it is. Where events look at more than twice as many, their distribution is no longer the one that the
segment was planned for, and it is built anew with the sample of late.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.engine.coding import Coded
from tamis.engine.plan import ALWAYS, CELLS, PAIRS, PRESENCE, ListCosts, Plan
from tamis.engine.scale import Scales
from tamis.engine.statistics import Likelihood
from tamis.engine.tally import Counts, add_counts

MOST_DRIFT = 2.0
"""A segment whose events look at more than this times what was expected is planned anew."""
FEW_ENTRIES = 16.0
"""So many more per event are not worth the work, whatever their share: they take some 20 nanoseconds."""
FEWEST_EVENTS = 10_000
"""So many events must have been seen."""
PATIENCE = 4
"""A segment that was planned anew waits for so many times as many events before the next time: should its likelihoods be off
for another reason, as when attributes depend on each other, planning anew does not help."""


class Forecast(NamedTuple):
    """What the planner knew: kept to say how a conjunction is found."""

    scales: Scales
    likelihood: Likelihood
    list_costs: ListCosts
    entries: npt.NDArray[np.float64]
    """How many an event is expected to look at: one number, in an array like all that a segment is made of."""


class Watch:
    """How many entries events of late look at."""

    def __init__(self, expected: float, needed: int = FEWEST_EVENTS) -> None:
        self.expected = expected
        self.needed = needed
        self.seen: Counts = np.zeros(2, np.int64)
        """Events, and the entries that they looked at. Kernels add to it, see `count_up`."""

    def add(self, events: int, entries: int) -> None:
        add_counts(self.seen, (events, entries))

    @property
    def events(self) -> int:
        return self.seen.item(0)

    @property
    def entries(self) -> int:
        return self.seen.item(1)

    @property
    def observed(self) -> float | None:
        """Entries per event; None: there were no events."""
        return self.entries / self.events if self.events else None

    @property
    def drift(self) -> float | None:
        """Observed entries by expected ones."""
        observed = self.observed
        return None if observed is None or self.expected <= 0.0 else observed / self.expected

    def is_due(self) -> bool:
        """Whether the segment should be planned anew; forgets half of what it saw when that is much."""
        if self.events < self.needed:
            return False
        if self.entries > self.events * (MOST_DRIFT * self.expected + FEW_ENTRIES):
            return True
        if self.events > 4 * self.needed:
            self.add(-(self.events // 2), -(self.entries // 2))
        return False


def expected_entries(
    plan: Plan,
    coded: Coded,
    scales: Scales,
    likelihood: Likelihood,
    looked_at: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int32],
    in_run: npt.NDArray[np.bool_],
) -> float:
    """How many entries an event is expected to look at, of which guards leave some; `rows` are those of the entries, `in_run`
    says which are in runs."""
    reach = reaches(plan, coded, scales, likelihood)
    looked = reach * looked_at
    if in_run.any():
        several = np.flatnonzero(np.bincount(rows[in_run], minlength=len(reach)))
        share = np.bincount(rows[in_run], minlength=len(reach))[several] / np.bincount(rows)[several]
        in_runs = _run_reaches(plan, coded, reach, several)
        looked[several] += share * (in_runs - looked[several])
    return float(looked.sum())


def reaches(plan: Plan, coded: Coded, scales: Scales, likelihood: Likelihood) -> npt.NDArray[np.float64]:
    """The likelihood of meeting each conjunction in its lists."""
    reach = np.ones(len(plan.access))
    rows = np.flatnonzero(plan.way != ALWAYS)
    access, way = plan.access[rows], plan.way[rows]
    dimension = coded.dimension[access]
    found = coded.probability[access].astype(np.float64)
    by_dimension = way == PRESENCE
    found[by_dimension] = likelihood.presence[dimension[by_dimension]]
    paired = way == PAIRS
    found[paired] *= coded.probability[plan.filter[rows[paired]]]
    buckets = np.flatnonzero((way == CELLS) & (scales.shift_at[dimension] >= 0))
    base, p = scales.cell[dimension[buckets]], access[buckets]
    after = likelihood.cumulative[base + coded.last[p] + 1]
    found[buckets] = after - likelihood.cumulative[base + coded.first[p]]
    reach[rows] = found
    return reach


def _run_reaches(
    plan: Plan, coded: Coded, reach: npt.NDArray[np.float64], rows: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    """The likelihood of entries in runs: what the filter does not let through is never looked at."""
    access, filters = plan.access[rows], plan.filter[rows]
    passing = coded.probability[filters].astype(np.float64)
    same = (access >= 0) & (coded.dimension[access] == coded.dimension[filters])
    return np.where(same, np.minimum(reach[rows], passing), reach[rows] * passing)
