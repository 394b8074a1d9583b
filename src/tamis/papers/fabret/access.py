"""Access predicates: conjunctions of equalities, each of which has a list of clusters.

    access      0 always   1 a = 3   2 b = 5   3 a = 3 and b = 5
    parent      -          0         0         1                     an access predicate without its last equality
    predicate   -          12        40        40                    the id of its last equality
    table       -1         -1        -1        0                     the multi-attribute hash table that it belongs to
    head        7          2         -1        5                     its first cluster
    map         (parent, predicate) -> access
    single      id of an equality -> access

Equalities are in the order of their dimensions. An access predicate of several equalities is found one equality at a time, so a
look-up takes as many steps as its schema has attributes. Access predicate 0 has no equality: every event satisfies it.

Invariant: an access predicate has clusters, or is the parent of others, or is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I32s, I64s
from tamis.papers.fabret.bit_vector import Ids
from tamis.papers.parts import pair_map
from tamis.papers.parts.pair_map import PairArrays, PairMap

NO_ACCESS = -1
NO_CLUSTER = -1
NO_TABLE = -1
ALWAYS = 0
MADE, FREED = 0, 1
"""Places in `counts`: access predicates, or clusters, ever made, and how many of them are free."""
_LOWEST = 16
_FILLS = (NO_ACCESS, -1, NO_TABLE, NO_CLUSTER, 0, 0)


class AccessArrays(NamedTuple):
    """Access predicates as kernels take them."""

    map: PairArrays
    single: I32s
    free: I32s
    counts: I64s
    parent: I32s
    predicate: Ids
    table: I32s
    head: I32s
    children: I32s
    """How many access predicates have this one as their parent."""
    population: I32s
    """How many conjunctions are in the clusters of each."""


class AccessPredicates:
    """All access predicates of an index."""

    def __init__(self) -> None:
        self._map = PairMap()
        self._columns = [np.full(_LOWEST, fill, np.int32) for fill in _FILLS]
        self._single = np.zeros(0, np.int32)
        self._free = np.zeros(_LOWEST, np.int32)
        self._counts = np.array([1, 0], np.int64)

    def __len__(self) -> int:
        return int(self._counts[MADE] - self._counts[FREED])

    @property
    def nbytes(self) -> int:
        return self._map.nbytes + sum(each.nbytes for each in (*self._columns, self._single, self._free))

    def view(self) -> AccessArrays:
        return AccessArrays(self._map.view(), self._single, self._free, self._counts, *self._columns)

    def cover(self, ids: int) -> None:
        """Make room for ids of predicates below `ids`."""
        if ids > len(self._single):
            self._single = np.append(self._single, np.full(ids - len(self._single), NO_ACCESS, np.int32))

    def find_or_make(self, ids: Ids, sizes: I32s, tables: I32s) -> I32s:
        """Find or make access predicates in tables: the i-th has the next `sizes[i]` of `ids` as equalities."""
        accesses = np.empty(len(sizes), np.int32)
        starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        done = 0
        while (done := _find_or_make(self.view(), ids, starts, tables, accesses, done)) < len(sizes):
            self._map.reserve(max(len(self._map), int(sizes[done])))
            if self._counts[MADE] + sizes[done] > len(self._free):
                more = max(len(self._free), int(sizes[done]))
                self._columns = [
                    np.append(each, np.full(more, fill, np.int32))
                    for each, fill in zip(self._columns, _FILLS, strict=True)
                ]
                self._free = np.append(self._free, np.zeros(more, np.int32))
        return accesses

    def equalities(self, access: int) -> tuple[int, ...]:
        """The ids of the equalities of an access predicate."""
        found: list[int] = []
        arrays = self.view()
        while access != ALWAYS:
            found.insert(0, int(arrays.predicate[access]))
            access = int(arrays.parent[access])
        return tuple(found)


@lean_kernel
def _find_or_make(arrays: AccessArrays, ids: Ids, starts: I64s, tables: I32s, accesses: I32s, done: int) -> int:
    """Go on from access predicate `done`; returns the first one for which there is no room."""
    pairs, counts = arrays.map, arrays.counts
    for i in range(done, len(accesses)):
        size = starts[i + 1] - starts[i]
        if 2 * (pairs.size[0] + size) > len(pairs.value) or counts[MADE] + size > len(arrays.free):
            return i
        access = ALWAYS
        for k in range(starts[i], starts[i + 1]):
            at = pair_map.pair_place(pairs, access, ids[k])
            if pairs.value[at] == pair_map.FREE:
                if counts[FREED] > 0:
                    counts[FREED] -= 1
                    new = arrays.free[counts[FREED]]
                else:
                    new = counts[MADE]
                    counts[MADE] += 1
                pair_map.enter(pairs, at, access, ids[k], new)
                arrays.parent[new], arrays.predicate[new] = access, ids[k]
                arrays.table[new], arrays.head[new] = NO_TABLE, NO_CLUSTER
                arrays.children[new], arrays.population[new] = 0, 0
                arrays.children[access] += 1
                if access == ALWAYS:
                    arrays.single[ids[k]] = new
            access = pairs.value[at]
        accesses[i] = access
        if access != ALWAYS:
            arrays.table[access] = tables[i]
    return len(accesses)


@inlined
def drop_if_idle(arrays: AccessArrays, access: int) -> None:
    """Free an access predicate that has neither clusters nor children, then its parents if the same is true of them."""
    while access != ALWAYS and arrays.head[access] == NO_CLUSTER and arrays.children[access] == 0:
        above, number = arrays.parent[access], arrays.predicate[access]
        pair_map.vacate(arrays.map, pair_map.pair_place(arrays.map, above, number))
        if above == ALWAYS:
            arrays.single[number] = NO_ACCESS
        arrays.parent[access] = NO_ACCESS
        arrays.free[arrays.counts[FREED]] = access
        arrays.counts[FREED] += 1
        arrays.children[above] -= 1
        access = above
