"""The part of the predicate index for single keys: a hash table from a key of a dimension to the predicates that name it.

    map         (dimension, key) -> point
    equality    the id of the predicate `=` of each point, or NOBODY
    lists       for each point, the other predicates that have it among their keys: IN, NOT IN, <>

A *literal* is ``2 * id + 1`` for a predicate that does not hold where it is hit, and ``2 * id`` for the others.

Invariant: a point is in the map while some predicate with references names it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import lean_kernel
from tamis.papers.fabret.bit_vector import is_equality
from tamis.papers.parts import pair_map
from tamis.papers.parts.pair_map import PairArrays, PairMap
from tamis.papers.parts.slabs import SlabArrays, Slabs, take_out

NOBODY = -1
_ABSENT, _NONE = int(Mode.ABSENT), int(Mode.NONE)
_LOWEST = 16


class PointArrays(NamedTuple):
    """The points as kernels take them; `counts` has how many points were ever made, and how many of these are free."""

    map: PairArrays
    equality: npt.NDArray[np.int32]
    lists: SlabArrays
    free: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]


class Points:
    """All points that predicates name."""

    def __init__(self) -> None:
        self._map = PairMap()
        self._equality = np.full(_LOWEST, NOBODY, np.int32)
        self._free = np.zeros(_LOWEST, np.int32)
        self._lists = Slabs()
        self._lists.add(_LOWEST)
        self._counts = np.zeros(2, np.int64)

    def __len__(self) -> int:
        return len(self._map)

    @property
    def nbytes(self) -> int:
        return self._map.nbytes + self._equality.nbytes + self._free.nbytes + self._lists.nbytes

    def view(self) -> PointArrays:
        return PointArrays(self._map.view(), self._equality, self._lists.view(), self._free, self._counts)

    def named(self, dimension: int, key: int) -> tuple[int, set[int]]:
        """The equality of a point, and the literals of its other predicates."""
        point = self._map.get(dimension, key)
        return (NOBODY, set()) if point < 0 else (int(self._equality[point]), set(self._lists.values(point).tolist()))

    def enter(self, table: Conjunctions, exemplar: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]) -> None:
        """Take in the points of new predicates."""
        start = table.predicates.start
        sizes = start[exemplar[ids] + 1] - start[exemplar[ids]]
        points, literals = np.empty(int(sizes.sum()), np.int64), np.empty(int(sizes.sum()), np.int32)
        progress = np.zeros(2, np.int64)
        while not _enter(table.predicates, exemplar, ids, self.view(), points, literals, progress):
            needed = int(sizes[progress[0]])
            self._map.reserve(max(len(self._map), needed))
            if self._counts[0] + needed > len(self._equality):
                more = max(len(self._equality), needed)
                self._equality = np.append(self._equality, np.full(more, NOBODY, np.int32))
                self._free = np.append(self._free, np.zeros(more, np.int32))
                self._lists.add(more)
        self._lists.extend(points[: progress[1]], literals[: progress[1]])

    def leave(self, table: Conjunctions, exemplar: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]) -> None:
        """Drop the points of predicates that no conjunction has any more."""
        _leave(table.predicates, exemplar, ids, self.view())


@lean_kernel
def _enter(predicates: Any, exemplar: Any, ids: Any, arrays: Any, points: Any, literals: Any, progress: Any) -> bool:
    """Go on where `progress` says; False if there is no room. Elements of lists go to `points` and `literals`."""
    dimension, mode, start, lo, hi = predicates
    firsts, seconds, values, pairs = arrays.map
    equality, free, counts = arrays.equality, arrays.free, arrays.counts
    for i in range(progress[0], len(ids)):
        p = exemplar[ids[i]]
        size = start[p + 1] - start[p]
        if 2 * (pairs[0] + size) > len(values) or counts[0] + size > len(equality):
            progress[0] = i
            return False
        alone = is_equality(mode, start, lo, hi, p)
        for k in range(start[p], start[p + 1]):
            if lo[k] != hi[k]:
                continue
            at = pair_map.slot_of(firsts, seconds, values, dimension[p], lo[k])
            if values[at] == pair_map.FREE:
                if counts[1] > 0:
                    counts[1] -= 1
                    point = free[counts[1]]
                else:
                    point = counts[0]
                    counts[0] += 1
                pair_map.enter(firsts, seconds, values, pairs, at, dimension[p], lo[k], point)
            point = values[at]
            if alone:
                equality[point] = ids[i]
            else:
                points[progress[1]] = point
                literals[progress[1]] = 2 * ids[i] + (mode[p] == _NONE)
                progress[1] += 1
    return True


@lean_kernel
def _leave(predicates: Any, exemplar: Any, ids: Any, arrays: Any) -> None:
    dimension, mode, start, lo, hi = predicates
    firsts, seconds, values, pairs = arrays.map
    begin, size, _, data, _ = arrays.lists
    equality, free, counts = arrays.equality, arrays.free, arrays.counts
    for number in ids:
        p = exemplar[number]
        alone = is_equality(mode, start, lo, hi, p)
        for k in range(start[p], start[p + 1]):
            if lo[k] != hi[k]:
                continue
            at = pair_map.slot_of(firsts, seconds, values, dimension[p], lo[k])
            point = values[at]
            if alone:
                equality[point] = NOBODY
            else:
                take_out(begin, size, data, point, 2 * number + (mode[p] == _NONE))
            if equality[point] == NOBODY and size[point] == 0:
                pair_map.vacate(firsts, seconds, values, pairs, at)
                free[counts[1]] = point
                counts[1] += 1
