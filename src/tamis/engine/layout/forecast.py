"""The forecast of a segment: how many entries an event is expected to visit.

It is the sum, over the conjunctions of the segment, of the likelihood of their lists (Fabret and others 3.2: the cost of matching
is the cost of the entries that are checked). `tamis.engine.watch` compares it with what events do visit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.engine.layout.plan import ALWAYS, CELLS, PAIRS, PRESENCE, ListCosts, Plan
from tamis.engine.layout.predicate_codes import Coded
from tamis.engine.layout.scale import Scales
from tamis.engine.layout.statistics import Likelihood


class Forecast(NamedTuple):
    """What the planner knew. A segment keeps it to explain how a conjunction is found."""

    scales: Scales
    likelihood: Likelihood
    list_costs: ListCosts
    entries: npt.NDArray[np.float64]
    """How many an event is expected to look at: one number, in an array like all that a segment is made of."""


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
