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

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.kernel import inlined, lean_kernel
from tamis.papers.parts import pair_map
from tamis.papers.parts.pair_map import PairArrays, PairMap

NO_ACCESS = -1
NO_CLUSTER = -1
NO_TABLE = -1
ALWAYS = 0
_LOWEST = 16
_FILLS = (NO_ACCESS, -1, NO_TABLE, NO_CLUSTER, 0, 0)


class AccessArrays(NamedTuple):
    """Access predicates as kernels take them; `counts` has how many were ever made, and how many of these are free."""

    map: PairArrays
    parent: npt.NDArray[np.int32]
    predicate: npt.NDArray[np.int32]
    table: npt.NDArray[np.int32]
    head: npt.NDArray[np.int32]
    children: npt.NDArray[np.int32]
    population: npt.NDArray[np.int32]
    single: npt.NDArray[np.int32]
    free: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]


class AccessPredicates:
    """All access predicates of an index."""

    def __init__(self) -> None:
        self._map = PairMap()
        self._columns = [np.full(_LOWEST, fill, np.int32) for fill in _FILLS]
        self._single = np.zeros(0, np.int32)
        self._free = np.zeros(_LOWEST, np.int32)
        self._counts = np.array([1, 0], np.int64)

    def __len__(self) -> int:
        return int(self._counts[0] - self._counts[1])

    @property
    def nbytes(self) -> int:
        return self._map.nbytes + sum(each.nbytes for each in (*self._columns, self._single, self._free))

    def view(self) -> AccessArrays:
        parent, predicate, table, head, children, population = self._columns
        columns = (parent, predicate, table, head, children, population)
        return AccessArrays(self._map.view(), *columns, self._single, self._free, self._counts)

    def cover(self, ids: int) -> None:
        """Make room for ids of predicates below `ids`."""
        if ids > len(self._single):
            self._single = np.append(self._single, np.full(ids - len(self._single), NO_ACCESS, np.int32))

    def find_or_make(
        self, ids: npt.NDArray[np.int32], sizes: npt.NDArray[np.int32], tables: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """Find or make access predicates in tables: the i-th has the next `sizes[i]` of `ids` as equalities."""
        accesses = np.empty(len(sizes), np.int32)
        starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        done = 0
        while (done := _find_or_make(self.view(), ids, starts, tables, accesses, done)) < len(sizes):
            self._map.reserve(max(len(self._map), int(sizes[done])))
            if self._counts[0] + sizes[done] > len(self._free):
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
        while access != ALWAYS:
            found.insert(0, int(self._columns[1][access]))
            access = int(self._columns[0][access])
        return tuple(found)


@lean_kernel
def _find_or_make(arrays: Any, ids: Any, starts: Any, tables: Any, accesses: Any, done: int) -> int:
    """Go on from access predicate `done`; returns the first one for which there is no room."""
    firsts, seconds, values, pairs = arrays.map
    _, parent, predicate, table, head, children, population, single, free, counts = arrays
    for i in range(done, len(accesses)):
        size = starts[i + 1] - starts[i]
        if 2 * (pairs[0] + size) > len(values) or counts[0] + size > len(free):
            return i
        access = ALWAYS
        for k in range(starts[i], starts[i + 1]):
            at = pair_map.slot_of(firsts, seconds, values, access, ids[k])
            if values[at] == pair_map.FREE:
                if counts[1] > 0:
                    counts[1] -= 1
                    new = free[counts[1]]
                else:
                    new = counts[0]
                    counts[0] += 1
                pair_map.enter(firsts, seconds, values, pairs, at, access, ids[k], new)
                parent[new], predicate[new], table[new], head[new] = access, ids[k], NO_TABLE, NO_CLUSTER
                children[new], population[new] = 0, 0
                children[access] += 1
                if access == ALWAYS:
                    single[ids[k]] = new
            access = values[at]
        accesses[i] = access
        if access != ALWAYS:
            table[access] = tables[i]
    return len(accesses)


@inlined
def drop_if_idle(
    firsts: Any,
    seconds: Any,
    values: Any,
    pairs: Any,
    parent: Any,
    predicate: Any,
    head: Any,
    children: Any,
    single: Any,
    free: Any,
    counts: Any,
    access: int,
) -> None:
    """Free an access predicate that has neither clusters nor children, then its parents if the same is true of them."""
    while access != ALWAYS and head[access] == NO_CLUSTER and children[access] == 0:
        above = parent[access]
        pair_map.vacate(
            firsts, seconds, values, pairs, pair_map.slot_of(firsts, seconds, values, above, predicate[access])
        )
        if above == ALWAYS:
            single[predicate[access]] = NO_ACCESS
        parent[access] = NO_ACCESS
        free[counts[1]] = access
        counts[1] += 1
        children[above] -= 1
        access = above
