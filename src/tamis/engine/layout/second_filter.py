"""The second filter: the least likely predicate of a conjunction that is neither its access predicate nor its filter.

Entries of runs and of pairs, which have decided the filter predicate, have the second one in its place. Entries of lists get a
word for it only where that pays: where many conjunctions pass the first filter and few the second, as with broad ranges, it keeps
entries from their records. There 55,000 survivors of 110,000 entries become 33,000, at a nanosecond an entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.engine.layout.costs import RECORD, SECOND_WORD, SPACE
from tamis.engine.layout.forecast import reaches
from tamis.engine.layout.plan import PAIRS, RANKED, Plan, hull_of
from tamis.engine.layout.predicate_codes import Coded
from tamis.engine.layout.scale import Scales
from tamis.engine.layout.statistics import Likelihood
from tamis.kernels.kernel import lean_kernel

_NONE = -1


def choose_second(
    start: npt.NDArray[np.int64], plan: Plan, coded: Coded, scales: Scales, likelihood: Likelihood
) -> bool:
    """Find the second filter of every conjunction; returns whether entries of lists should have a word for it."""
    reach = reaches(plan, coded, scales, likelihood)
    saved = _choose(start, plan, coded, scales.cell, likelihood, reach)
    return bool(saved > SPACE * plan.lists[plan.way != PAIRS].sum(dtype=np.int64) / 2)


@lean_kernel
def _choose(start: Any, plan: Any, coded: Any, cell: Any, likelihood: Any, reach: Any) -> float:
    """Find the second filters; returns how many nanoseconds of an event they are expected to save."""
    access, way, filters, second = plan.access, plan.way, plan.filter, plan.second
    dimension, first, last = coded.dimension, coded.first, coded.last
    cumulative, presence = likelihood
    saved = 0.0
    for row in range(len(second)):
        best, least = _NONE, 1.0
        for p in range(start[row], start[row + 1]):
            d = dimension[p]
            if p in (access[row], filters[row]) or d >= RANKED:
                continue
            hull = hull_of(p, d, first, last, cell, cumulative, presence)
            if hull < least:
                best, least = p, hull
        second[row] = best
        if way[row] == PAIRS:
            continue
        passing = 1.0
        if filters[row] >= 0:
            passing = hull_of(filters[row], dimension[filters[row]], first, last, cell, cumulative, presence)
        saved += reach[row] * (passing * (1.0 - least) * RECORD - SECOND_WORD)
    return saved
