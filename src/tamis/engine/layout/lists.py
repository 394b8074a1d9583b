"""The lists of a segment: which conjunctions an event with a given value may satisfy.

Lists are numbered. The entries of all lists lie one after another, in the order of the lists. There are C spaces in D dimensions:

    spaces     one per space of every dimension      cell[d] + space
    presence   one per dimension                     C + d
    always     one                                   C + D
    points     one per key that serves as access     C + D + 1 + number, ascending by dimension and key
    upper      one-sided ranges of a dimension sorted by bound, loosest first: an event's space cuts off a prefix
    lower      the same from below
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.engine.layout.plan import CELLS, LOWER, PAIRS, POINTS, PRESENCE, UPPER, Plan
from tamis.engine.layout.predicate_codes import MASK_WORDS, RANGE, CodedTable, Mask, fill_mask, read_table
from tamis.engine.layout.records import order_of_entries
from tamis.engine.layout.scale import Dimensions, Keys, Scales
from tamis.kernels.bits import has_bit
from tamis.kernels.fields import packed_fields
from tamis.kernels.hashing import spread_pair
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, I32s, I64s
from tamis.kernels.packed import Packed

_NONE = -1


class Entries(NamedTuple):
    """Entries before they are laid out: the list and the conjunction of each, in the order of the lists."""

    list: I64s
    conjunction: I32s


class Points(NamedTuple):
    """The keys that have lists of their own: those of dimension d are `start[d]` to `start[d + 1]`, in ascending order."""

    start: I64s
    key: Keys
    table: I32s
    """Hash table of the numbers of points, with open addressing; -1: free."""


class _Entered(NamedTuple):
    """Entries as they are entered, and the point of each entry that has one, repetitions too."""

    list: I64s
    conjunction: I32s
    point_dimension: Dimensions
    point_key: Keys


def first_point_list(scales: Scales) -> int:
    """The number of the first list of a point."""
    return int(scales.cell[-1]) + len(scales.spaces) + 1


def enter(table: CodedTable, plan: Plan) -> tuple[Entries, Points]:
    """Enter every conjunction that is not found by pairs in its lists."""
    room = int(plan.lists[plan.way != PAIRS].sum(dtype=np.int64))
    points = int(plan.lists[plan.way == POINTS].sum(dtype=np.int64))
    entered = _Entered(
        np.empty(room, np.int64), np.empty(room, np.int32), np.empty(points, np.int32), np.empty(points, np.int64)
    )
    at_point = first_point_list(table.scales)
    filled = _enter(packed_fields(table), plan, at_point, np.empty(MASK_WORDS, np.uint64), entered)
    lists, conjunctions = entered.list[:filled], entered.conjunction[:filled]
    distinct, numbers = _numbered(entered.point_dimension, entered.point_key, len(table.scales.spaces))
    by_point = (lists >= at_point) & (lists < at_point + points)
    beyond = lists >= at_point + points
    lists[beyond] += len(distinct.key) - points
    lists[by_point] = at_point + numbers[lists[by_point] - at_point]
    order = order_of_entries(lists, conjunctions, table, plan)
    return Entries(lists[order], conjunctions[order]), distinct


def _numbered(dimension: Dimensions, key: Keys, dimensions: int) -> tuple[Points, I64s]:
    """The distinct points, sorted, and the number of each given point."""
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


@lean_kernel
def _fill_table(dimension: Dimensions, key: Keys, table: I32s) -> None:
    last = U64(len(table) - 1)
    for number in range(len(key)):
        at = spread_pair(dimension[number], key[number]) & last
        while table[at] != _NONE:
            at = (at + U64(1)) & last
        table[at] = number


@inlined
def home_of(dimension: int, key: int, table: I32s) -> int:
    """The place of a point in a hash table whose length is a power of two; if another is there, the point lies behind it."""
    return I64(spread_pair(dimension, key) & U64(len(table) - 1))


@inlined
def find_point(dimension: int, key: int, home: int, points: Points) -> int:
    """The number of the point whose place this is, -1 if there is no such point."""
    last = U64(len(points.table) - 1)
    at = U64(home)
    while True:
        number = points.table[at]
        if number == _NONE:
            return _NONE
        if points.key[number] == key and points.start[dimension] <= number < points.start[dimension + 1]:
            return number
        at = (at + U64(1)) & last


@lean_kernel
def _enter(packed: Packed, plan: Plan, at_point: int, mask: Mask, entered: _Entered) -> int:
    """Write the entries of all conjunctions; returns how many. Each point has a list of its own, repetitions too."""
    table: CodedTable = read_table(packed)
    predicates, coded, scales = table.predicates, table.coded, table.scales
    cells, dimensions = scales.cell[-1], len(scales.spaces)
    upper = at_point + len(entered.point_key)
    filled, points = 0, 0
    for c in range(len(table.start) - 1):
        p, way = plan.access[c], plan.way[c]
        d = coded.dimension[p] if p >= 0 else 0
        f, g = (I64(coded.first[p]), I64(coded.last[p])) if p >= 0 else (0, 0)
        if way == PAIRS:
            continue
        if way == CELLS:
            several = coded.kind[p] != RANGE and scales.shift_at[d] < 0
            if several:
                fill_mask(p, d, predicates, scales, mask)
            for s in range(f, g + 1):
                if not several or has_bit(mask, s):
                    entered.list[filled], entered.conjunction[filled] = scales.cell[d] + s, c
                    filled += 1
        elif way == POINTS:
            for i in range(predicates.start[p], predicates.start[p + 1]):
                lo = predicates.lo[i]
                for step in range(predicates.hi[i] - lo + 1):  # Not up to hi + 1: the highest key has no next one.
                    entered.list[filled], entered.conjunction[filled] = at_point + points, c
                    entered.point_dimension[points], entered.point_key[points] = d, lo + step
                    filled += 1
                    points += 1
        else:
            if way == UPPER:
                number = upper + scales.cell[d] + (scales.spaces[d] - 1 - g)
            elif way == LOWER:
                number = upper + cells + scales.cell[d] + f
            elif way == PRESENCE:
                number = cells + d
            else:
                number = cells + dimensions
            entered.list[filled], entered.conjunction[filled] = number, c
            filled += 1
    return filled
