"""The forecast of a segment: how many entries an event is expected to visit.

It is the sum of the likelihoods of the lists of all conjunctions of the segment. This is the cost model of Fabret and others
(3.2): matching costs what its entries cost. `tamis.engine.watch` compares the forecast with the number of entries that events
do visit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.engine.layout.plan import ALWAYS, CELLS, PAIRS, PRESENCE, ListCosts, Plan
from tamis.engine.layout.predicate_codes import Coded, CodedTable
from tamis.engine.layout.scale import Scales
from tamis.engine.layout.statistics import Likelihood
from tamis.kernels.numbers import Bools, F64s, I32s


class Forecast(NamedTuple):
    """What the planner knew. A segment keeps it to explain how a conjunction is found."""

    scales: Scales
    likelihood: Likelihood
    list_costs: ListCosts
    entries: F64s
    """How many entries an event is expected to visit: one number, in an array, since segments are made of arrays."""


def expected_entries(table: CodedTable, plan: Plan, visited: F64s, conjunctions: I32s, in_run: Bools) -> float:
    """How many entries an event is expected to visit.

    `visited` is the share of the entries of each conjunction that guards let events visit. `conjunctions` are those of all
    entries, and `in_run` says which of the entries are in runs.
    """
    reach = reaches(table, plan)
    looked = reach * visited
    if in_run.any():
        times = np.bincount(conjunctions[in_run], minlength=len(reach))
        several = np.flatnonzero(times)
        share = times[several] / np.bincount(conjunctions)[several]
        in_runs = _run_reaches(plan, table.coded, reach, several)
        looked[several] += share * (in_runs - looked[several])
    return float(looked.sum())


def reaches(table: CodedTable, plan: Plan) -> F64s:
    """The likelihood of meeting each conjunction in its lists."""
    coded, scales, likelihood = table.coded, table.scales, table.likelihood
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


def _run_reaches(plan: Plan, coded: Coded, reach: F64s, rows: npt.NDArray[np.intp]) -> F64s:
    """The likelihood of visiting entries in runs: an event visits only entries whose filter it passes."""
    access, filters = plan.access[rows], plan.filter[rows]
    passing = coded.probability[filters].astype(np.float64)
    same = (access >= 0) & (coded.dimension[access] == coded.dimension[filters])
    return np.where(same, np.minimum(reach[rows], passing), reach[rows] * passing)
