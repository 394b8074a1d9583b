"""The part of the predicate index for single keys: a hash table from a key of a dimension to the predicates that name it.

    map         (dimension, key) -> point
    equality    the id of the predicate `=` of each point, or NOBODY
    lists       for each point, the other predicates that have it among their keys: IN, NOT IN, <>

A *literal* is ``2 * id + 1`` for a predicate that does not hold where it is hit, and ``2 * id`` for the others.

Invariant: a point is in the map while some predicate with references names it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I32s, I64s
from tamis.papers.fabret.bit_vector import Ids, TableNumbers, is_equality
from tamis.papers.parts import pair_map
from tamis.papers.parts.pair_map import PairArrays, PairMap
from tamis.papers.parts.slabs import SlabArrays, Slabs, take_out

NOBODY = -1
_NONE = int(Mode.NONE)
_LOWEST = 16
MADE, FREED = 0, 1
"""Places in `counts`: points ever made, and how many of them are free."""
_NEXT, _FILLED = 0, 1
"""Places in `progress`: the next id to enter, and how many elements of lists there are."""


class PointArrays(NamedTuple):
    """The points as kernels take them."""

    map: PairArrays
    equality: Ids
    lists: SlabArrays
    free: I32s
    counts: I64s


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

    def enter(self, table: Conjunctions, exemplar: TableNumbers, ids: Ids) -> None:
        """Take in the points of new predicates."""
        start = table.predicates.start
        sizes = start[exemplar[ids] + 1] - start[exemplar[ids]]
        points, literals = np.empty(int(sizes.sum()), np.int64), np.empty(int(sizes.sum()), np.int32)
        progress = np.zeros(2, np.int64)
        while not _enter(table.predicates, exemplar, ids, self.view(), points, literals, progress):
            needed = int(sizes[progress[_NEXT]])
            self._map.reserve(max(len(self._map), needed))
            if self._counts[MADE] + needed > len(self._equality):
                more = max(len(self._equality), needed)
                self._equality = np.append(self._equality, np.full(more, NOBODY, np.int32))
                self._free = np.append(self._free, np.zeros(more, np.int32))
                self._lists.add(more)
        self._lists.extend(points[: progress[_FILLED]], literals[: progress[_FILLED]])

    def leave(self, table: Conjunctions, exemplar: TableNumbers, ids: Ids) -> None:
        """Drop the points of predicates that no conjunction has any more."""
        _leave(table.predicates, exemplar, ids, self.view())


@lean_kernel
def _enter(
    predicates: Predicates,
    exemplar: TableNumbers,
    ids: Ids,
    arrays: PointArrays,
    points: I64s,
    literals: I32s,
    progress: I64s,
) -> bool:
    """Go on where `progress` says; False if there is no room. Elements of lists go to `points` and `literals`."""
    pairs, equality, counts = arrays.map, arrays.equality, arrays.counts
    for i in range(progress[_NEXT], len(ids)):
        p = exemplar[ids[i]]
        d, begin, end = predicates.dimension[p], predicates.start[p], predicates.start[p + 1]
        size = end - begin
        if 2 * (pairs.size[0] + size) > len(pairs.value) or counts[MADE] + size > len(equality):
            progress[_NEXT] = i
            return False
        alone = is_equality(predicates, p)
        for k in range(begin, end):
            key = predicates.lo[k]
            if key != predicates.hi[k]:
                continue
            at = pair_map.pair_place(pairs, d, key)
            if pairs.value[at] == pair_map.FREE:
                if counts[FREED] > 0:
                    counts[FREED] -= 1
                    point = arrays.free[counts[FREED]]
                else:
                    point = counts[MADE]
                    counts[MADE] += 1
                pair_map.enter(pairs, at, d, key, point)
            point = pairs.value[at]
            if alone:
                equality[point] = ids[i]
            else:
                points[progress[_FILLED]] = point
                literals[progress[_FILLED]] = 2 * ids[i] + (predicates.mode[p] == _NONE)
                progress[_FILLED] += 1
    return True


@lean_kernel
def _leave(predicates: Predicates, exemplar: TableNumbers, ids: Ids, arrays: PointArrays) -> None:
    counts = arrays.counts
    for number in ids:
        p = exemplar[number]
        alone = is_equality(predicates, p)
        for k in range(predicates.start[p], predicates.start[p + 1]):
            if predicates.lo[k] != predicates.hi[k]:
                continue
            at = pair_map.pair_place(arrays.map, predicates.dimension[p], predicates.lo[k])
            point = arrays.map.value[at]
            if alone:
                arrays.equality[point] = NOBODY
            else:
                take_out(arrays.lists, point, 2 * number + (predicates.mode[p] == _NONE))
            if arrays.equality[point] == NOBODY and arrays.lists.size[point] == 0:
                pair_map.vacate(arrays.map, at)
                arrays.free[counts[FREED]] = point
                counts[FREED] += 1
