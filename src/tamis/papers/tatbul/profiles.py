"""The rows of the table as profiles: for every attribute that they constrain, the intervals in which its value must lie.

    attribute     a0             a1               numbered by ascending dimension
    start         0              3       5        its intervals: start[a] .. start[a + 1], by ascending profile
    profile       0    2    2    0       1        numbers of profiles: places among the rows
    lo            10   MIN  8    5       3
    hi            20   4    8    5       MAX

Several predicates of a profile on one attribute become one set of intervals, their intersection. NONE is the complement. An
attribute that must be absent is constrained, but has no interval: no value satisfies the profile. No interval ends at the lowest
key, because no value has it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.ranges import grouped
from tamis.papers.interface import Numbers
from tamis.papers.tatbul.vectors import Lists

_SOME, _ABSENT = int(Mode.SOME), int(Mode.ABSENT)

Array = npt.NDArray[Any]


class Intervals(NamedTuple):
    """The intervals of all attributes, as drawn above."""

    start: npt.NDArray[np.int64]
    profile: npt.NDArray[np.int32]
    lo: npt.NDArray[np.int64]
    hi: npt.NDArray[np.int64]


class Profiles(NamedTuple):
    """The profiles of some rows."""

    dimension: npt.NDArray[np.int64]
    """The dimension of each attribute, ascending."""
    intervals: Intervals
    constrained: Lists
    """The profiles that say something about each attribute."""
    several: Lists
    """The profiles that have several predicates on each attribute."""
    unbound: npt.NDArray[np.int64]
    """The profiles that need no attribute at all."""


def profiles_of(table: Conjunctions, rows: Numbers) -> Profiles:
    """The profiles of some rows of the table, in their order."""
    first, last = table.start[rows], table.start[rows + 1]
    most_intervals = int((table.predicates.start[last] - table.predicates.start[first] + last - first).sum())
    longest = int((table.predicates.start[last] - table.predicates.start[first] + last - first).max(initial=0)) + 2
    runs = tuple(np.empty(int((last - first).sum()), np.int64) for _ in range(3))
    intervals = tuple(np.empty(most_intervals, np.int64) for _ in range(4))
    scratch = tuple(np.empty(longest, np.int64) for _ in range(6))
    bound = np.zeros(len(rows), np.bool_)
    run_count, count = _intersect(table, rows, runs, intervals, scratch, bound)
    run_dimension, run_profile, run_size = (each[:run_count] for each in runs)
    dimension, profile, lo, hi = (each[:count] for each in intervals)
    attributes = np.unique(run_dimension)
    order = grouped(dimension)
    start = np.searchsorted(dimension[order], np.append(attributes, KEY_MAX))
    return Profiles(
        attributes,
        Intervals(start, profile[order].astype(np.int32), lo[order], hi[order]),
        _by_attribute(attributes, run_dimension, run_profile),
        _by_attribute(attributes, run_dimension[run_size > 1], run_profile[run_size > 1]),
        np.flatnonzero(~bound),
    )


def _by_attribute(attributes: Array, dimension: Array, profile: Array) -> Lists:
    order = grouped(dimension)
    start = np.searchsorted(dimension[order], np.append(attributes, KEY_MAX))
    return Lists(start, profile[order].astype(np.int32))


@lean_kernel
def _intersect(table: Any, rows: Any, runs: Any, intervals: Any, scratch: Any, bound: Any) -> tuple[int, int]:
    """Write the attributes that each profile constrains, and their intervals; returns how many there are of both.

    `bound` is set for profiles that need some attribute.
    """
    run_dimension, run_profile, run_size = runs
    dimension, profile, lo, hi = intervals
    a_lo, a_hi, b_lo, b_hi, c_lo, c_hi = scratch
    predicates = table.predicates
    run_count, count = 0, 0
    for i in range(len(rows)):
        p, end = table.start[rows[i]], table.start[rows[i] + 1]
        while p < end:
            d, first = predicates.dimension[p], p
            size = 0
            while p < end and predicates.dimension[p] == d:
                if p == first:
                    size = _set_of(predicates, p, a_lo, a_hi)
                else:
                    size = _common(a_lo, a_hi, size, b_lo, b_hi, _set_of(predicates, p, b_lo, b_hi), c_lo, c_hi)
                    for j in range(size):
                        a_lo[j], a_hi[j] = c_lo[j], c_hi[j]
                bound[i] |= predicates.mode[p] != _ABSENT
                p += 1
            run_dimension[run_count], run_profile[run_count], run_size[run_count] = d, i, p - first
            run_count += 1
            for j in range(size):
                if a_hi[j] != KEY_MIN:  # no value has KEY_MIN
                    dimension[count], profile[count], lo[count], hi[count] = d, i, a_lo[j], a_hi[j]
                    count += 1
    return run_count, count


@inlined
def _set_of(predicates: Any, p: int, lo: Any, hi: Any) -> int:
    """Write the intervals that satisfy a predicate; returns how many there are."""
    size = 0
    if predicates.mode[p] == _SOME:
        for i in range(predicates.start[p], predicates.start[p + 1]):
            lo[size], hi[size] = predicates.lo[i], predicates.hi[i]
            size += 1
    elif predicates.mode[p] != _ABSENT:
        begin, open_above = KEY_MIN, True
        for i in range(predicates.start[p], predicates.start[p + 1]):
            if predicates.lo[i] > begin:
                lo[size], hi[size] = begin, predicates.lo[i] - 1
                size += 1
            open_above = predicates.hi[i] != KEY_MAX
            if open_above:
                begin = predicates.hi[i] + 1
        if open_above:
            lo[size], hi[size] = begin, KEY_MAX
            size += 1
    return size


@inlined
def _common(a_lo: Any, a_hi: Any, a_size: int, b_lo: Any, b_hi: Any, b_size: int, lo: Any, hi: Any) -> int:
    """Write the intersection of two sets of intervals; returns how many it has."""
    a, b, size = 0, 0, 0
    while a < a_size and b < b_size:
        low, high = max(a_lo[a], b_lo[b]), min(a_hi[a], b_hi[b])
        if low <= high:
            lo[size], hi[size] = low, high
            size += 1
        if a_hi[a] < b_hi[b]:
            a += 1
        else:
            b += 1
    return size
