"""The planner: by which predicate each conjunction is found, and by which it is filtered.

Every conjunction is entered in the lists of one *access predicate*. There are several ways, depending on the predicate:

    CELLS      in the list of every space that it covers: points, sets, narrow ranges
    POINTS     wide dimension: in the list of every key that it names
    UPPER      one-sided, `last` below the top: in a list sorted by bound, of which an event's space cuts off a prefix
    LOWER      the same from below
    PRESENCE   in the list of the dimension: all other predicates that need a value; wide one-sided ranges may form runs there
    ALWAYS     no predicate needs a value: in the list that every event visits
    PAIRS      by two values at once: the second predicate takes the place of the filter, see `pairs`

The cost of an access path is in nanoseconds per event (see `costs`). With probability p an entry is read and its filter word
tested (ENTRY). If it passes the filter too, its record is fetched and checked (RECORD), or keys are compared (COMPARE). Entries
in many lists cost memory (SPACE). The list of a dimension costs every event that has the dimension, however short the list is
(LIST, twice for a sorted list). This may be much for the few conjunctions that chose such a list, so they choose again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.engine.layout.costs import COMPARE, ENTRY, LIST, RECORD, SPACE
from tamis.engine.layout.predicate_codes import (
    KEYS,
    POINT,
    RANGE,
    RAW,
    SET,
    SET_SIZE,
    Coded,
    CodedTable,
    likelihood_between,
    read_table,
)
from tamis.engine.layout.scale import MISSING, Scales
from tamis.kernels.fields import packed_fields
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import F64, I64, U64, UP, F64s, I32s, I64s, U8s
from tamis.kernels.packed import Packed

CELLS, POINTS, UPPER, LOWER, PRESENCE, ALWAYS, PAIRS = range(7)

MOST_LISTS = 1 << 16
"""The most lists that a predicate may be entered in."""
RANKED = 65_534
"""Dimensions from this number on do not fit into filter words: their predicates are decided by comparing keys."""
SHORT_SETS = 32_767
"""Dimensions from this number on do not fit into the words of sets: their sets are masks."""
_NONE = -1
SOME = int(Mode.SOME)


class Plan(NamedTuple):
    """How each conjunction is found. Predicates are given by number, -1: none."""

    access: I64s
    way: U8s
    filter: I64s
    second: I64s
    """The second filter, see `second_filter`."""
    lists: I32s
    """The number of lists."""
    cost: npt.NDArray[np.float32]


class Choice(NamedTuple):
    """How one conjunction is found, as far as this decides predicates."""

    access: int
    """The access predicate if it is `deciding`, else -1."""
    way: int
    filter: int
    second: int
    """The second filter if entries test it, else -1."""
    in_run: bool
    """Whether the entries are in runs, which compare the keys of the filter predicate."""


class _Filters(NamedTuple):
    """The two predicates of a conjunction whose hulls are least likely, -1: none; and how likely the hulls are."""

    best: int
    second: int
    best_hull: float
    second_hull: float
    raw: int
    """How many predicates are decided by comparing keys."""


ListCosts = F64s
"""Dimension, way from UPPER to PRESENCE -> what the list costs each conjunction in it."""


def plan_rows(table: CodedTable, list_costs: ListCosts | None = None) -> tuple[Plan, ListCosts]:
    """Choose the access path of every conjunction. If the table is a part of a segment: with the list costs of the segment."""
    coded, presence, count = table.coded, table.likelihood.presence, len(table.start) - 1
    # If events have several values in a dimension, "none of these" may get a likelihood below 0.
    np.maximum(coded.probability, 0.0, out=coded.probability)
    plan = Plan(
        np.empty(count, np.int64),
        np.empty(count, np.uint8),
        np.empty(count, np.int64),
        np.full(count, _NONE, np.int64),
        np.empty(count, np.int32),
        np.empty(count, np.float32),
    )
    extra = np.zeros((len(presence), 3))
    packed = packed_fields(table)
    _plan(np.arange(count), packed, extra, plan)
    by_dimension = np.flatnonzero((plan.way >= UPPER) & (plan.way <= PRESENCE))
    users = coded.dimension[plan.access[by_dimension]] * 3 + (plan.way[by_dimension] - UPPER)
    sharing = np.maximum(np.bincount(users, minlength=extra.size).reshape(extra.shape), 1)
    extra[:] = LIST * np.array([2, 2, 1]) * presence[:, np.newaxis] / sharing
    if list_costs is not None:
        extra = list_costs
    _plan(by_dimension, packed, extra, plan)
    return plan, extra


@lean_kernel
def _plan(rows: I64s, packed: Packed, extra: ListCosts, plan: Plan) -> None:
    """Choose the access paths of some conjunctions; `extra` is what lists of dimensions cost besides."""
    table: CodedTable = read_table(packed)
    coded, scales = table.coded, table.scales
    for row in rows:
        filters = _filters(row, table)
        plan.access[row], plan.way[row], plan.filter[row], plan.lists[row] = _NONE, ALWAYS, filters.best, 1
        plan.cost[row] = ENTRY + RECORD * filters.best_hull + COMPARE * filters.best_hull * filters.raw
        for p in range(table.start[row], table.start[row + 1]):
            if coded.first[p] == MISSING or coded.probability[p] * ENTRY >= plan.cost[row]:
                continue  # No list is met less often than the predicate holds.
            d = coded.dimension[p]
            for option in range(3):
                way, reach, count = _way(option, p, d, table)
                if count == 0:
                    continue
                filtered, passing = _filter_with(way, p, d, filters, table)
                decided = _decides(p, way, coded, scales)
                left = filters.raw - 1 if decided and coded.kind[p] == RAW else filters.raw
                price = reach * (ENTRY + passing * (RECORD + COMPARE * F64(left > 0))) + SPACE * (count - 1)
                if UPPER <= way <= PRESENCE:
                    price += extra[d, way - UPPER]
                if price < plan.cost[row]:
                    plan.cost[row] = price
                    plan.access[row], plan.way[row], plan.lists[row], plan.filter[row] = p, way, count, filtered


@inlined
def hull_of(p: int, table: CodedTable) -> float:
    """How likely an event lies in the hull of a predicate."""
    first, last, d = table.coded.first[UP(p)], table.coded.last[UP(p)], table.coded.dimension[UP(p)]
    if first == MISSING:
        return 1.0 - table.likelihood.presence[UP(d)]
    return likelihood_between(first, last, d, table.scales, table.likelihood)


@merged
def _filters(row: int, table: CodedTable) -> _Filters:
    best, second, best_hull, second_hull, raw = _NONE, _NONE, 1.0, 1.0, 0
    for p in range(table.start[row], table.start[row + 1]):
        raw += is_raw(p, table.coded)
        if table.coded.dimension[p] >= RANKED:
            continue
        hull = hull_of(p, table)
        if hull < best_hull:
            second, second_hull = best, best_hull
            best, best_hull = p, hull
        elif hull < second_hull:
            second, second_hull = p, hull
    return _Filters(best, second, best_hull, second_hull, raw)


@inlined
def is_raw(p: int, coded: Coded) -> bool:
    """Whether a predicate is decided by comparing keys."""
    return coded.kind[UP(p)] == RAW or coded.dimension[UP(p)] >= RANKED


@merged
def _way(option: int, p: int, d: int, table: CodedTable) -> tuple[int, float, int]:
    """One of three options to find a conjunction by a predicate: way, likelihood, and number of lists (0: not possible)."""
    coded, wide = table.coded, table.scales.shift_at[d] >= 0
    way, reach, count = PRESENCE, F64(table.likelihood.presence[d]), 1
    if option == 1:
        count = 0
        if table.predicates.mode[p] == SOME or not wide:
            way, reach, count = _in_lists(p, d, table)
    elif option == 2:
        way = _one_sided(coded.first[p], coded.last[p], coded.kind[p], table.scales.spaces[d] - 1, wide)
        reach = F64(coded.probability[p])
        if way == ALWAYS or (not wide and coded.kind[p] != RANGE):
            count = 0
    return way, reach, count


@merged
def _filter_with(way: int, p: int, d: int, filters: _Filters, table: CodedTable) -> tuple[int, float]:
    """The filter of a conjunction that is found by a predicate, and how likely its entry passes."""
    filtered, passing = filters.best, filters.best_hull
    if p == filters.best and way != PRESENCE:
        # An event that meets the list lies in the hull of the predicate, even if that does not decide it.
        filtered, passing = filters.second, filters.second_hull
    elif way == PRESENCE and filters.best >= 0 and table.coded.dimension[filters.best] == d:
        # An event that meets the list has the dimension.
        passing = filters.best_hull / table.likelihood.presence[d]
        elsewhere = filters.second < 0 or table.coded.dimension[filters.second] != d
        if filters.second_hull < passing and elsewhere:
            filtered, passing = filters.second, filters.second_hull
    return filtered, passing


@inlined
def _in_lists(p: int, d: int, table: CodedTable) -> tuple[int, float, int]:
    """Entering a predicate in a list for every space or key: way, likelihood and number of lists."""
    predicates, coded = table.predicates, table.coded
    if table.scales.shift_at[d] < 0:
        return CELLS, coded.probability[p], most_cells(p, coded)
    begin, end = predicates.start[p], predicates.start[p + 1]
    if coded.kind[p] >= KEYS or predicates.lo[begin] == predicates.hi[begin]:
        count = 0
        for i in range(begin, end):
            width = U64(predicates.hi[i]) - U64(predicates.lo[i])
            if width >= U64(MOST_LISTS) or count + I64(width) >= MOST_LISTS:
                count = 0
                break
            count += I64(width) + 1
        if count > 0 and coded.first[p] <= coded.last[p]:
            return POINTS, coded.probability[p], count
    return CELLS, hull_of(p, table), I64(coded.last[p]) - I64(coded.first[p]) + 1


@inlined
def most_cells(p: int, coded: Coded) -> int:
    """How many spaces a predicate covers in a dimension that is not wide, at most."""
    count = I64(coded.last[UP(p)]) - I64(coded.first[UP(p)]) + 1
    return min(count, SET_SIZE) if coded.kind[UP(p)] == SET else count


@inlined
def _one_sided(first: int, last: int, kind: int, top: int, wide: bool) -> int:
    """The way of a one-sided range; ALWAYS for other predicates. In wide dimensions, ranges may form runs."""
    if (first == 0) == (last == top) or kind >= POINT:
        return ALWAYS
    if wide:
        return PRESENCE
    return UPPER if first == 0 else LOWER


@inlined
def _decides(p: int, way: int, coded: Coded, scales: Scales) -> bool:
    """Whether the access predicate is true of every event that finds the conjunction this way."""
    d = coded.dimension[p]
    if way == CELLS:
        return coded.exact[p] or scales.shift_at[d] < 0
    if way == PRESENCE:
        return coded.exact[p] and coded.first[p] == 0 and coded.last[p] == scales.spaces[d] - 1
    return way != ALWAYS


@inlined
def deciding(access: int, mode: U8s) -> int:
    """The access predicate; -1 if it must be checked even for events that find the conjunction by it.

    NONE must be checked: if an event has several values, a list shows only that one of them is not excluded.
    """
    return access if access >= 0 and mode[access] == SOME else _NONE


@inlined
def is_settled(p: int, coded: Coded, scales: Scales, choice: Choice) -> bool:
    """Whether lists, runs and filter words decide a predicate, so that the record need not hold it."""
    if p == choice.filter and (coded.exact[p] or choice.in_run or choice.way == PAIRS):
        return True
    if p == choice.second and coded.exact[p]:
        return True
    return p == choice.access and _decides(p, choice.way, coded, scales)
