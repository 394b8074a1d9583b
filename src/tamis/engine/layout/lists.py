"""The lists of a segment: which conjunctions an event with a given value may satisfy.

Lists are numbered; the entries of all lie one after another, in the order of their lists:

    spaces     one per space of every dimension      cell[d] + space
    presence   one per dimension                     C + d
    always     one                                   C + D
    points     one per key that serves as access     C + D + 1 + number, ascending by dimension and key
    upper      one-sided ranges of a dimension sorted by bound, loosest first: an event's space cuts off a prefix
    lower      the same from below
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.plan import CELLS, LOWER, PAIRS, POINTS, PRESENCE, UPPER, Plan
from tamis.engine.layout.predicate_codes import MASK_WORDS, RANGE, Coded, fill_mask, has_space
from tamis.engine.layout.records import order_in_lists
from tamis.engine.layout.scale import Scales
from tamis.kernels.hashing import spread_pair
from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.numbers import I64, U64

_NONE = -1


class Entries(NamedTuple):
    """Entries before they are laid out: the list of each and its conjunction, in the order of the lists."""

    list: npt.NDArray[np.int64]
    row: npt.NDArray[np.int32]


class Points(NamedTuple):
    """The keys that have a list of their own: those of dimension d are `start[d]` to `start[d + 1]`, ascending."""

    start: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]
    table: npt.NDArray[np.int32]
    """Hash table of the numbers of points, open addressing; -1 is free."""


def first_point_list(scales: Scales) -> int:
    return int(scales.cell[-1]) + len(scales.spaces) + 1


def enter(
    start: npt.NDArray[np.int64], plan: Plan, predicates: Predicates, coded: Coded, scales: Scales
) -> tuple[Entries, Points]:
    """Enter every conjunction in its lists, but for those that are found by pairs."""
    room = int(plan.lists[plan.way != PAIRS].sum(dtype=np.int64))
    points = int(plan.lists[plan.way == POINTS].sum(dtype=np.int64))
    lists, rows = np.empty(room, np.int64), np.empty(room, np.int32)
    point_dimension, point_key = np.empty(points, np.int32), np.empty(points, np.int64)
    at_point = first_point_list(scales)
    filled = _enter(start, plan, predicates, coded, scales, at_point, lists, rows, point_dimension, point_key)
    lists, rows = lists[:filled], rows[:filled]
    distinct, numbers = _numbered(point_dimension, point_key, len(scales.spaces))
    count = len(distinct.key)
    by_point = (lists >= at_point) & (lists < at_point + points)
    beyond = lists >= at_point + points
    lists[beyond] += count - points
    lists[by_point] = at_point + numbers[lists[by_point] - at_point]
    minor = order_in_lists(start, plan, predicates, coded, scales).astype(np.uint64)
    order = np.argsort((lists.astype(np.uint64) << U64(24)) | minor[rows])
    return Entries(lists[order], rows[order]), distinct


def _numbered(dimension: npt.NDArray[np.int32], key: npt.NDArray[np.int64], dimensions: int) -> tuple[Points, Any]:
    """The distinct points, sorted, and the number of each given one."""
    order = np.lexsort((key, dimension))
    d, k = dimension[order], key[order]
    new = np.ones(len(d), np.bool_)
    new[1:] = (d[1:] != d[:-1]) | (k[1:] != k[:-1])
    numbers = np.empty(len(d), np.int64)
    numbers[order] = np.cumsum(new) - 1
    d, k = d[new], k[new]
    table = np.full(max(2, 1 << int(2 * len(k)).bit_length()), _NONE, np.int32)
    _fill_table(d, k, table)
    return Points(np.searchsorted(d, np.arange(dimensions + 1)), k, table), numbers


@kernel
def _fill_table(dimension: Any, key: Any, table: Any) -> None:
    last = U64(len(table) - 1)
    for number in range(len(key)):
        at = spread_pair(dimension[number], key[number]) & last
        while table[at] != _NONE:
            at = (at + U64(1)) & last
        table[at] = number


@inlined
def slot_of(dimension: int, key: int, table: Any) -> int:
    """Where in a table, whose length is a power of two, a point lies, or behind."""
    return I64(spread_pair(dimension, key) & U64(len(table) - 1))


@inlined
def find_point(dimension: int, key: int, slot: int, points: Points) -> int:
    """The number of a point whose slot this is, -1 if it has no list."""
    last = U64(len(points.table) - 1)
    at = U64(slot)
    while True:
        number = points.table[at]
        if number == _NONE:
            return _NONE
        if points.key[number] == key and points.start[dimension] <= number < points.start[dimension + 1]:
            return number
        at = (at + U64(1)) & last


@kernel
def _enter(
    start: Any,
    plan: Any,
    predicates: Any,
    coded: Any,
    scales: Any,
    at_point: int,
    lists: Any,
    rows: Any,
    point_dimension: Any,
    point_key: Any,
) -> int:
    access, way = plan.access, plan.way
    p_mode, p_start, p_lo, p_hi = predicates.mode, predicates.start, predicates.lo, predicates.hi
    dimension, first, last, kind = coded.dimension, coded.first, coded.last, coded.kind
    spaces, cell, shift_at = scales.spaces, scales.cell, scales.shift_at
    mask = np.empty(MASK_WORDS, np.uint64)
    cells, dimensions = cell[-1], len(spaces)
    upper = at_point + len(point_key)
    filled, points = 0, 0
    for row in range(len(start) - 1):
        p = access[row]
        d = dimension[p] if p >= 0 else 0
        f, g = (I64(first[p]), I64(last[p])) if p >= 0 else (0, 0)
        if way[row] == PAIRS:
            continue
        if way[row] == CELLS:
            several = kind[p] != RANGE and shift_at[d] < 0
            if several:
                fill_mask(p_mode[p], p_lo, p_hi, p_start[p], p_start[p + 1], d, scales, mask)
            for s in range(f, g + 1):
                if not several or has_space(mask, s):
                    lists[filled], rows[filled] = cell[d] + s, row
                    filled += 1
        elif way[row] == POINTS:
            for i in range(p_start[p], p_start[p + 1]):
                for step in range(p_hi[i] - p_lo[i] + 1):  # Behind the highest key there is none to end at.
                    lists[filled], rows[filled] = at_point + points, row
                    point_dimension[points], point_key[points] = d, p_lo[i] + step
                    filled += 1
                    points += 1
        else:
            if way[row] == UPPER:
                number = upper + cell[d] + (spaces[d] - 1 - g)
            elif way[row] == LOWER:
                number = upper + cells + cell[d] + f
            elif way[row] == PRESENCE:
                number = cells + d
            else:
                number = cells + dimensions
            lists[filled], rows[filled] = number, row
            filled += 1
    return filled
