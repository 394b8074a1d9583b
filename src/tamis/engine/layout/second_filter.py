"""The second filter: the least likely predicate of a conjunction besides its access predicate and its filter.

Runs and pairs decide the filter predicate, so their entries have the second filter in its place. Entries of lists get a second
filter word only if that pays: if many conjunctions pass the first filter and few the second, as with broad ranges. Then fewer
records are fetched. In one such case, 33,000 of 110,000 entries survive instead of 55,000. The second word takes a nanosecond per
entry.
"""

from __future__ import annotations

import numpy as np

from tamis.engine.layout.costs import RECORD, SECOND_WORD, USUAL_COSTS, Costs
from tamis.engine.layout.forecast import reaches
from tamis.engine.layout.plan import PAIRS, RANKED, Plan, hull_of
from tamis.engine.layout.predicate_codes import CodedTable, read_table
from tamis.kernels.fields import packed_fields
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import F64s
from tamis.kernels.packed import Packed

_NONE = -1


def choose_second(table: CodedTable, plan: Plan, costs: Costs = USUAL_COSTS) -> bool:
    """Find the second filter of every conjunction; returns whether entries of lists should have a word for it."""
    saved = _choose(packed_fields(table), plan, reaches(table, plan))
    return bool(saved > costs.second_space * plan.lists[plan.way != PAIRS].sum(dtype=np.int64))


@lean_kernel
def _choose(packed: Packed, plan: Plan, reach: F64s) -> float:
    """Find the second filters; returns how many nanoseconds per event they are expected to save."""
    table: CodedTable = read_table(packed)
    saved = 0.0
    for row in range(len(plan.second)):
        best, least = _NONE, 1.0
        for p in range(table.start[row], table.start[row + 1]):
            if p in (plan.access[row], plan.filter[row]) or table.coded.dimension[p] >= RANKED:
                continue
            hull = hull_of(p, table)
            if hull < least:
                best, least = p, hull
        plan.second[row] = best
        if plan.way[row] == PAIRS:
            continue
        passing = hull_of(plan.filter[row], table) if plan.filter[row] >= 0 else 1.0
        saved += reach[row] * (passing * (1.0 - least) * RECORD - SECOND_WORD)
    return saved
