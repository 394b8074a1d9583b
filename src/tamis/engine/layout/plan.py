"""The planner: by which predicate each conjunction is found, and by which it is filtered.

Every conjunction is entered in the lists of one *access predicate*. How depends on the predicate:

    CELLS      in the list of every space it covers: points, sets, narrow ranges
    POINTS     wide dimension: in the list of every key it names
    UPPER      one-sided, `last` below the top: in a list sorted by bound, of which an event's space cuts off a prefix
    LOWER      the same from below
    PRESENCE   in the list of the dimension: whatever else needs a value to be there; wide one-sided ranges may form runs in it
    ALWAYS     no predicate needs a value: the list that every event goes through
    PAIRS      by the values that it and another predicate, then in the place of the filter, name at once: see `pairs`

The cost of an access path for one event, in nanoseconds of `costs`: with probability p an entry is read and its filter word
tested (ENTRY). With the filter's probability too, its record is fetched and checked (RECORD), or keys are compared (COMPARE).
Entries in many lists cost memory (SPACE). A list of a dimension costs every event that has it, whatever the list holds (LIST,
twice that for a sorted one). For the few conjunctions that chose such a list this may be much, so they choose again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.costs import COMPARE, ENTRY, LIST, RECORD, SPACE
from tamis.engine.layout.predicate_codes import EDGE, KEYS, POINT, RANGE, RAW, SET, SET_SIZE, Coded
from tamis.engine.layout.scale import MISSING, Scales
from tamis.engine.layout.statistics import Likelihood
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import F64, I64, U64

CELLS, POINTS, UPPER, LOWER, PRESENCE, ALWAYS, PAIRS = range(7)

MOST_LISTS = 1 << 16
"""A predicate that covers more is not entered in a list of each."""
RANKED = 65_534
"""Dimensions from this number on have no room in filter words: their predicates are judged by comparing keys."""
SHORT_SETS = 32_767
"""Dimensions from this number on have no room in the words of sets, which are masks there."""
_NONE = -1
SOME = int(Mode.SOME)


class Plan(NamedTuple):
    """For each conjunction: access predicate and filter (predicate numbers, -1: none), way of access, number of lists."""

    access: npt.NDArray[np.int64]
    way: npt.NDArray[np.uint8]
    filter: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    """The second filter, see `second`."""
    lists: npt.NDArray[np.int32]
    cost: npt.NDArray[np.float32]


ListCosts = npt.NDArray[np.float64]
"""What a list of a dimension, sorted from above or below or not at all, costs each of those that chose it."""


def plan_rows(
    start: npt.NDArray[np.int64],
    predicates: Predicates,
    coded: Coded,
    scales: Scales,
    likelihood: Likelihood,
    list_costs: ListCosts | None = None,
) -> tuple[Plan, ListCosts]:
    """Choose the access path of every conjunction; for some of a segment with the costs of lists that all of it has."""
    count = len(start) - 1
    # Where events have several values in a dimension, "none of these" may come out below nothing.
    np.maximum(coded.probability, 0.0, out=coded.probability)
    plan = Plan(
        np.empty(count, np.int64),
        np.empty(count, np.uint8),
        np.empty(count, np.int64),
        np.full(count, _NONE, np.int64),
        np.empty(count, np.int32),
        np.empty(count, np.float32),
    )
    extra = np.zeros((len(scales.spaces), 3))
    _plan(np.arange(count), start, predicates, coded, scales, likelihood, extra, plan)
    by_dimension = np.flatnonzero((plan.way >= UPPER) & (plan.way <= PRESENCE))
    users = coded.dimension[plan.access[by_dimension]] * 3 + (plan.way[by_dimension] - UPPER)
    sharing = np.maximum(np.bincount(users, minlength=extra.size).reshape(extra.shape), 1)
    extra[:] = LIST * np.array([2, 2, 1]) * likelihood.presence[:, np.newaxis] / sharing
    if list_costs is not None:
        extra = list_costs
    _plan(by_dimension, start, predicates, coded, scales, likelihood, extra, plan)
    return plan, extra


@lean_kernel
def _plan(
    rows: Any, start: Any, predicates: Any, coded: Any, scales: Any, likelihood: Any, extra: Any, plan: Any
) -> None:
    _, p_mode, p_start, p_lo, p_hi = predicates
    dimension, first, last, kind, exact, probability = coded[:6]
    spaces, cell, shift_at = scales.spaces, scales.cell, scales.shift_at
    cumulative, presence = likelihood
    access, way, filters, _, lists, cost = plan
    for row in rows:
        begin, end = start[row], start[row + 1]
        best, second, best_hull, second_hull, raw = _filters(
            begin, end, dimension, first, last, kind, cell, cumulative, presence
        )
        access[row], way[row], filters[row], lists[row] = _NONE, ALWAYS, best, 1
        cost[row] = ENTRY + RECORD * best_hull + COMPARE * best_hull * raw
        for p in range(begin, end):
            d = dimension[p]
            if first[p] == MISSING or probability[p] * ENTRY >= cost[row]:
                continue  # No list is met less often than the predicate holds.
            top = spaces[d] - 1
            hull = cumulative[cell[d] + last[p] + 1] - cumulative[cell[d] + first[p]]
            for option in range(3):
                chosen, reach, count = PRESENCE, F64(presence[d]), 1
                if option == 1:
                    if p_mode[p] != SOME and shift_at[d] >= 0:
                        continue
                    chosen, reach, count = _in_lists(
                        p, p_start, p_lo, p_hi, first, last, kind, shift_at[d] >= 0, probability, hull
                    )
                    if count == 0:
                        continue
                elif option == 2:
                    if kind[p] > RANGE and kind[p] != EDGE and shift_at[d] < 0:
                        continue
                    chosen = _one_sided(first[p], last[p], kind[p], top, shift_at[d] >= 0)
                    reach = F64(probability[p])
                    if chosen == ALWAYS:
                        continue
                decided = _decides(chosen, exact[p], shift_at[d] >= 0, first[p], last[p], top)
                filtered, passing = best, best_hull
                if p == best and chosen != PRESENCE:
                    # Whoever is found by it lies in its hull, even where that does not decide it.
                    filtered, passing = second, second_hull
                elif chosen == PRESENCE and best >= 0 and dimension[best] == d:
                    # The list has told already that the dimension is there.
                    passing = best_hull / presence[d]
                    if second_hull < passing and (second < 0 or dimension[second] != d):
                        filtered, passing = second, second_hull
                left = raw - 1 if decided and kind[p] == RAW else raw
                price = reach * (ENTRY + passing * (RECORD + COMPARE * F64(left > 0))) + SPACE * (count - 1)
                if UPPER <= chosen <= PRESENCE:
                    price += extra[d, chosen - UPPER]
                if price < cost[row]:
                    cost[row] = price
                    access[row], way[row], lists[row], filters[row] = p, chosen, count, filtered


@inlined
def hull_of(p: int, d: int, first: Any, last: Any, cell: Any, cumulative: Any, presence: Any) -> float:
    """How likely an event lies in the hull of a predicate."""
    if first[p] == MISSING:
        return 1.0 - presence[d]
    return cumulative[cell[d] + last[p] + 1] - cumulative[cell[d] + first[p]]


@inlined
def _filters(
    begin: int,
    end: int,
    dimension: Any,
    first: Any,
    last: Any,
    kind: Any,
    cell: Any,
    cumulative: Any,
    presence: Any,
) -> tuple[int, int, float, float, int]:
    """The two predicates whose hulls are least likely, their likelihoods, and how many need their keys compared."""
    best, second, best_hull, second_hull, raw = _NONE, _NONE, 1.0, 1.0, 0
    for p in range(begin, end):
        d = dimension[p]
        raw += kind[p] == RAW or d >= RANKED
        if d >= RANKED:
            continue
        hull = hull_of(p, d, first, last, cell, cumulative, presence)
        if hull < best_hull:
            second, second_hull = best, best_hull
            best, best_hull = p, hull
        elif hull < second_hull:
            second, second_hull = p, hull
    return best, second, best_hull, second_hull, raw


@inlined
def _in_lists(
    p: int,
    p_start: Any,
    p_lo: Any,
    p_hi: Any,
    first: Any,
    last: Any,
    kind: Any,
    wide: bool,
    probability: Any,
    hull: float,
) -> tuple[int, float, int]:
    """Entering a predicate in a list for every space or key: the way, the likelihood, the number of lists (0: no way)."""
    if not wide:
        count = I64(last[p]) - I64(first[p]) + 1
        return CELLS, probability[p], min(count, SET_SIZE) if kind[p] == SET else count
    if kind[p] >= KEYS or p_lo[p_start[p]] == p_hi[p_start[p]]:
        count = 0
        for i in range(p_start[p], p_start[p + 1]):
            width = U64(p_hi[i]) - U64(p_lo[i])
            if width >= U64(MOST_LISTS):
                count = 0
                break
            count += I64(width) + 1
            if count > MOST_LISTS:
                count = 0
                break
        if count > 0 and first[p] <= last[p]:
            return POINTS, probability[p], count
    return CELLS, hull, I64(last[p]) - I64(first[p]) + 1


@inlined
def _one_sided(first: int, last: int, kind: int, top: int, wide: bool) -> int:
    """The way of a one-sided range, ALWAYS if it is none. Wide ones may form runs in the list of the dimension."""
    if (first == 0) == (last == top) or kind >= POINT:
        return ALWAYS
    if wide:
        return PRESENCE
    return UPPER if first == 0 else LOWER


@inlined
def _decides(way: int, exact: bool, wide: bool, first: int, last: int, top: int) -> bool:
    """Whether being found this way means that the access predicate is true."""
    if way == CELLS:
        return exact or not wide
    if way == PRESENCE:
        return exact and first == 0 and last == top
    return way != ALWAYS


@inlined
def deciding(access: int, mode: Any) -> int:
    """The access predicate if being found by it may decide it, -1 if not.

    That one value of an event is none of those excluded says nothing of its other values.
    """
    return access if access >= 0 and mode[access] == SOME else _NONE


@inlined
def is_settled(
    p: int, d: int, first: Any, last: Any, exact: Any, spaces: Any, shift_at: Any, choice: Any, in_run: bool
) -> bool:
    """Whether lists and filter words decide a predicate, so that the record need not hold it. A run decides by keys.

    `choice` is the `deciding` access predicate, its way, filter and second filter.
    """
    access, way, filtered, second = choice
    if p == filtered and (exact[p] or in_run or way == PAIRS):
        return True
    if p == second and exact[p]:
        return True
    return p == access and _decides(way, exact[p], shift_at[d] >= 0, first[p], last[p], spaces[d] - 1)
