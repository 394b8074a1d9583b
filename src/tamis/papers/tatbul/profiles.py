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

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.kernels.ranges import grouped
from tamis.papers.tatbul.vectors import Array, Lists

_SOME, _ABSENT = int(Mode.SOME), int(Mode.ABSENT)


class Intervals(NamedTuple):
    """The intervals of all attributes, as drawn above."""

    start: I64s
    profile: I32s
    lo: I64s
    hi: I64s


class Profiles(NamedTuple):
    """The profiles of some rows."""

    dimension: I64s
    """The dimension of each attribute, ascending."""
    intervals: Intervals
    constrained: Lists
    """The profiles that say something about each attribute."""
    several: Lists
    """The profiles that have several predicates on each attribute."""
    unbound: I64s
    """The profiles that need no attribute at all."""


class _Runs(NamedTuple):
    """The attributes that each profile constrains, and by how many predicates."""

    dimension: I64s
    profile: I64s
    size: I64s


class _Found(NamedTuple):
    """The intervals of the profiles."""

    dimension: I64s
    profile: I64s
    lo: I64s
    hi: I64s


class _Ends(NamedTuple):
    """The intervals of a set, in an array with room for more."""

    lo: I64s
    hi: I64s


def profiles_of(table: Conjunctions, rows: I32s) -> Profiles:
    """The profiles of some rows of the table, in their order."""
    first, last = table.start[rows], table.start[rows + 1]
    most = table.predicates.start[last] - table.predicates.start[first] + last - first
    runs = _Runs(*np.empty((3, int((last - first).sum())), np.int64))
    found = _Found(*np.empty((4, int(most.sum())), np.int64))
    one, other, both = (_Ends(*np.empty((2, int(most.max(initial=0)) + 2), np.int64)) for _ in range(3))
    bound = np.zeros(len(rows), np.bool_)
    run_count, count = _intersect(table, rows, runs, found, one, other, both, bound)
    runs, found = _Runs(*(each[:run_count] for each in runs)), _Found(*(each[:count] for each in found))
    attributes = np.unique(runs.dimension)
    order = grouped(found.dimension)
    start = np.searchsorted(found.dimension[order], np.append(attributes, KEY_MAX))
    several = runs.size > 1
    return Profiles(
        attributes,
        Intervals(start, found.profile[order].astype(np.int32), found.lo[order], found.hi[order]),
        _by_attribute(attributes, runs.dimension, runs.profile),
        _by_attribute(attributes, runs.dimension[several], runs.profile[several]),
        np.flatnonzero(~bound),
    )


def _by_attribute(attributes: Array, dimension: Array, profile: Array) -> Lists:
    order = grouped(dimension)
    start = np.searchsorted(dimension[order], np.append(attributes, KEY_MAX))
    return Lists(start, profile[order].astype(np.int32))


@lean_kernel
def _intersect(
    table: Conjunctions, rows: I32s, runs: _Runs, found: _Found, one: _Ends, other: _Ends, both: _Ends, bound: Bools
) -> tuple[int, int]:
    """Write the attributes that each profile constrains, and their intervals; returns how many there are of both.

    `one`, `other` and `both` are room for sets. `bound` is set for profiles that need some attribute.
    """
    predicates, run_count, count = table.predicates, 0, 0
    for i in range(len(rows)):
        p, end = table.start[rows[i]], table.start[rows[i] + 1]
        while p < end:
            d, first = predicates.dimension[p], p
            size = 0
            while p < end and predicates.dimension[p] == d:
                if p == first:
                    size = _set_of(predicates, p, one)
                else:
                    size = _common(one, size, other, _set_of(predicates, p, other), both)
                    for j in range(size):
                        one.lo[j], one.hi[j] = both.lo[j], both.hi[j]
                bound[i] |= predicates.mode[p] != _ABSENT
                p += 1
            runs.dimension[run_count], runs.profile[run_count], runs.size[run_count] = d, i, p - first
            run_count += 1
            for j in range(size):
                if one.hi[j] != KEY_MIN:  # no value has KEY_MIN
                    found.dimension[count], found.profile[count] = d, i
                    found.lo[count], found.hi[count] = one.lo[j], one.hi[j]
                    count += 1
    return run_count, count


@inlined
def _set_of(predicates: Predicates, p: int, out: _Ends) -> int:
    """Write the intervals that satisfy a predicate; returns how many there are."""
    size = 0
    if predicates.mode[p] == _SOME:
        for i in range(predicates.start[p], predicates.start[p + 1]):
            out.lo[size], out.hi[size] = predicates.lo[i], predicates.hi[i]
            size += 1
    elif predicates.mode[p] != _ABSENT:
        begin, open_above = KEY_MIN, True
        for i in range(predicates.start[p], predicates.start[p + 1]):
            if predicates.lo[i] > begin:
                out.lo[size], out.hi[size] = begin, predicates.lo[i] - 1
                size += 1
            open_above = predicates.hi[i] != KEY_MAX
            if open_above:
                begin = predicates.hi[i] + 1
        if open_above:
            out.lo[size], out.hi[size] = begin, KEY_MAX
            size += 1
    return size


@inlined
def _common(one: _Ends, one_size: int, other: _Ends, other_size: int, out: _Ends) -> int:
    """Write the intersection of two sets of intervals; returns how many it has."""
    i, j, size = 0, 0, 0
    while i < one_size and j < other_size:
        low, high = max(one.lo[i], other.lo[j]), min(one.hi[i], other.hi[j])
        if low <= high:
            out.lo[size], out.hi[size] = low, high
            size += 1
        if one.hi[i] < other.hi[j]:
            i += 1
        else:
            j += 1
    return size
