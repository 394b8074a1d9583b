"""Clusters: the subscriptions of one access predicate with one number of predicates left to check, in columns.

    cluster     0            1                        begin, room, size, columns (how many predicates are left)
    data        7 9 9 . | 4 4 5 . | 1 2 3 . |  ...    column after column, then the subscription line
                1st       2nd       line
    following   the next cluster of the same access predicate; they differ in their number of columns
    cluster_of, position_of      where each conjunction is

A column holds ids of predicates, without those of the access predicate. Equalities come first, since they fail most often, then
IN, then ranges, then predicates that are true of most values. A full cluster moves to the end of `data`, with half as much room
again. Deleting a subscription puts the last one of its cluster in its place.

Invariant: a conjunction in the index is in one cluster, and `cluster_of` and `position_of` say where; no cluster is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.bits import has_bit
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import UP, I32s, I64s
from tamis.kernels.prefetch import prefetch
from tamis.kernels.ranges import span_indices
from tamis.papers.fabret.access import ALWAYS, FREED, MADE, NO_CLUSTER, AccessArrays, drop_if_idle
from tamis.papers.fabret.bit_vector import Ids, Words, is_equality

_SOME = int(Mode.SOME)
_LOWEST = 16
_FEWEST_DEAD = 1 << 12
_RANKS = 4
UNUSED = 2
"""A place in `counts` beside MADE and FREED: unused entries of `data`."""

LINE = 16
"""Entries of a cache line: the loops over a cluster are unrolled by it."""
_AHEAD = 4 * LINE
"""Distance, in entries, at which columns are prefetched."""


class ClusterArrays(NamedTuple):
    """Clusters as kernels take them."""

    data: I32s
    cluster_of: I32s
    position_of: I32s
    counts: I64s
    begin: I64s
    room: I32s
    size: I32s
    columns: I32s
    following: I32s
    access: I32s
    need: I32s
    """How many conjunctions are about to enter the cluster; negative if it must move first."""
    free: I32s


class Clusters:
    """All clusters of an index."""

    def __init__(self) -> None:
        self._begin = np.zeros(_LOWEST, np.int64)
        self._columns = [np.zeros(_LOWEST, np.int32) for _ in range(7)]
        self._counts = np.zeros(3, np.int64)
        self._data = GrowingArray(np.int32)
        self._cluster_of = GrowingArray(np.int32)
        self._position_of = GrowingArray(np.int32)

    def __len__(self) -> int:
        return int(self._counts[MADE] - self._counts[FREED])

    @property
    def nbytes(self) -> int:
        growing = self._data.nbytes + self._cluster_of.nbytes + self._position_of.nbytes
        return self._begin.nbytes + growing + sum(each.nbytes for each in self._columns)

    def view(self) -> ClusterArrays:
        growing = (self._data.view(), self._cluster_of.view(), self._position_of.view())
        return ClusterArrays(*growing, self._counts, self._begin, *self._columns)

    def put(self, accesses: AccessArrays, table: Conjunctions, conjunctions: I32s, chosen: I32s, ids: Ids) -> None:
        """Put conjunctions into the clusters of the chosen access predicates; `ids` are their predicates in a row."""
        missing = len(table.start) - 1 - len(self._cluster_of)
        if missing > 0:
            self._cluster_of.grow(missing, fill=NO_CLUSTER)
            self._position_of.grow(missing, fill=0)
        done = 0
        while (done := _assign(accesses, self.view(), table, conjunctions, chosen, done)) < len(conjunctions):
            more = len(self._begin)
            self._begin = np.append(self._begin, np.zeros(more, np.int64))
            self._columns = [np.append(each, np.zeros(more, np.int32)) for each in self._columns]
        end = len(self._data)
        self._data.grow(_count_room(self.view(), conjunctions))
        _move_to_room(self.view(), conjunctions, end)
        _write(accesses, self.view(), table, conjunctions, chosen, ids)

    def take_out(self, accesses: AccessArrays, conjunctions: I32s) -> None:
        """Take conjunctions out of their clusters."""
        _take_out(accesses, self.view(), conjunctions)
        if self._counts[UNUSED] > max(len(self._data) // 2, _FEWEST_DEAD):
            kept = GrowingArray(np.int32)
            _compact(accesses.head, self.view(), kept.grow(self._live()))
            self._data, self._counts[UNUSED] = kept, 0

    def members(self, clusters: npt.NDArray[Any]) -> I32s:
        """The conjunctions in some clusters."""
        view = self.view()
        counts = view.size[clusters].astype(np.int64)
        lines = view.begin[clusters] + view.columns[clusters].astype(np.int64) * view.room[clusters]
        return view.data[span_indices(lines, counts)]

    def rows(self, cluster: int) -> I32s:
        """The columns of a cluster and its line, each a row."""
        view = self.view()
        begin, room, rows = int(view.begin[cluster]), int(view.room[cluster]), int(view.columns[cluster]) + 1
        return view.data[begin : begin + rows * room].reshape(rows, room)[:, : view.size[cluster]]

    def _live(self) -> int:
        """How many entries of `data` are in use."""
        view = self.view()
        return int((view.size.astype(np.int64) * (view.columns + 1)).sum())

    def check(
        self,
        accesses: AccessArrays,
        conjunctions: I32s,
        ids_of: Callable[[int], set[int]],
        equalities: Callable[[int], Iterable[int]],
    ) -> None:
        """Raise an AssertionError unless these conjunctions, with ids of predicates, are here, and no others."""
        view = self.view()
        seen: set[int] = set()
        made = int(accesses.counts[MADE])
        idle = set(accesses.free[: accesses.counts[FREED]].tolist())
        clusters = 0
        for access in sorted(set(range(made)) - idle):
            cluster, population, columns = int(accesses.head[access]), 0, set()
            assert access == 0 or cluster != NO_CLUSTER or accesses.children[access] > 0, (
                "an access predicate has a use"
            )
            assert np.count_nonzero(accesses.parent[:made] == access) == accesses.children[access]
            left_out = set(equalities(access))
            while cluster != NO_CLUSTER:
                clusters += 1
                size, count = int(view.size[cluster]), int(view.columns[cluster])
                assert view.access[cluster] == access
                assert 0 < size <= view.room[cluster]
                assert count not in columns, "clusters of a list differ in their number of predicates"
                columns.add(count)
                population += size
                block = self.rows(cluster)
                for position in range(size):
                    c = int(block[count, position])
                    assert (view.cluster_of[c], view.position_of[c]) == (cluster, position)
                    assert left_out <= ids_of(c)
                    assert sorted(block[:count, position].tolist()) == sorted(ids_of(c) - left_out)
                    seen.add(c)
                cluster = int(view.following[cluster])
            assert population == accesses.population[access]
        assert clusters == len(self)
        assert seen == set(conjunctions.tolist())
        assert np.count_nonzero(view.cluster_of != NO_CLUSTER) == len(seen)


@inlined
def _rank(predicates: Predicates, p: int) -> int:
    """The position of a predicate in the order of tests: predicates that fail often come first."""
    if predicates.mode[p] != _SOME:
        return 3
    if is_equality(predicates, p):
        return 0
    first = predicates.start[p]
    return 1 if predicates.lo[first] == predicates.hi[first] else 2


@lean_kernel
def _assign(
    accesses: AccessArrays, clusters: ClusterArrays, table: Conjunctions, conjunctions: I32s, chosen: I32s, done: int
) -> int:
    """Find or make the cluster of each conjunction, and count arrivals in `need`. Returns the first without room."""
    counts = clusters.counts
    for i in range(done, len(conjunctions)):
        c, access = conjunctions[i], chosen[i]
        columns = table.start[c + 1] - table.start[c]
        above = access
        while above != ALWAYS:
            columns -= 1
            above = accesses.parent[above]
        cluster = accesses.head[access]
        while cluster != NO_CLUSTER and clusters.columns[cluster] != columns:
            cluster = clusters.following[cluster]
        if cluster == NO_CLUSTER:
            if counts[FREED] > 0:
                counts[FREED] -= 1
                cluster = clusters.free[counts[FREED]]
            elif counts[MADE] < len(clusters.free):
                cluster = counts[MADE]
                counts[MADE] += 1
            else:
                return i
            clusters.room[cluster], clusters.size[cluster], clusters.need[cluster] = 0, 0, 0
            clusters.columns[cluster], clusters.access[cluster] = columns, access
            clusters.following[cluster] = accesses.head[access]
            accesses.head[access] = cluster
        clusters.need[cluster] += 1
        accesses.population[access] += 1
        clusters.cluster_of[c] = cluster
    return len(conjunctions)


@inlined
def _new_room(size: int, need: int) -> int:
    return max(size + need, size + size // 2)


@lean_kernel
def _count_room(clusters: ClusterArrays, conjunctions: I32s) -> int:
    """The entries that these conjunctions' clusters need at a new place if they must move; negates the need of each."""
    total = 0
    for c in conjunctions:
        cluster = clusters.cluster_of[c]
        size, need = clusters.size[cluster], clusters.need[cluster]
        if need > 0 and size + need > clusters.room[cluster]:
            total += _new_room(size, need) * (clusters.columns[cluster] + 1)
            clusters.need[cluster] = -need
    return total


@lean_kernel
def _move_to_room(clusters: ClusterArrays, conjunctions: I32s, end: int) -> None:
    """Move clusters that need more room to the end."""
    for c in conjunctions:
        cluster = clusters.cluster_of[c]
        need, columns = clusters.need[cluster], clusters.columns[cluster] + 1
        if need < 0:
            room = _new_room(clusters.size[cluster], -need)
            _copy(clusters, cluster, clusters.data, end, room)
            clusters.counts[UNUSED] += clusters.room[cluster] * columns
            clusters.begin[cluster], clusters.room[cluster] = end, room
            end += room * columns
        clusters.need[cluster] = 0


@inlined
def _copy(clusters: ClusterArrays, cluster: int, to: I32s, at: int, room: int) -> None:
    """Copy the columns and the line of a cluster to a place with another room."""
    for column in range(clusters.columns[cluster] + 1):
        begin = clusters.begin[cluster] + column * clusters.room[cluster]
        for i in range(clusters.size[cluster]):
            to[at + column * room + i] = clusters.data[begin + i]


@lean_kernel
def _write(
    accesses: AccessArrays, clusters: ClusterArrays, table: Conjunctions, conjunctions: I32s, chosen: I32s, ids: Ids
) -> None:
    """Write each conjunction behind the last of its cluster."""
    at = 0
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        cluster = clusters.cluster_of[c]
        place = clusters.begin[cluster] + clusters.size[cluster]
        first, last = table.start[c], table.start[c + 1]
        for rank in range(_RANKS):
            for p in range(first, last):
                if _rank(table.predicates, p) != rank:
                    continue
                number = ids[at + p - first]
                access = chosen[i]
                while access != ALWAYS and accesses.predicate[access] != number:
                    access = accesses.parent[access]
                if access == ALWAYS:
                    clusters.data[place] = number
                    place += clusters.room[cluster]
        clusters.data[place] = c
        clusters.position_of[c] = clusters.size[cluster]
        clusters.size[cluster] += 1
        at += last - first


@lean_kernel
def _take_out(accesses: AccessArrays, clusters: ClusterArrays, conjunctions: I32s) -> None:
    data, following, counts = clusters.data, clusters.following, clusters.counts
    for c in conjunctions:
        cluster, position = clusters.cluster_of[c], clusters.position_of[c]
        clusters.size[cluster] -= 1
        last, at = clusters.size[cluster], clusters.begin[cluster]
        for _ in range(clusters.columns[cluster]):
            data[at + position] = data[at + last]
            at += clusters.room[cluster]
        data[at + position] = data[at + last]
        clusters.position_of[data[at + position]] = position
        clusters.cluster_of[c] = NO_CLUSTER
        access = clusters.access[cluster]
        accesses.population[access] -= 1
        if last == 0:
            if accesses.head[access] == cluster:
                accesses.head[access] = following[cluster]
            else:
                before = accesses.head[access]
                while following[before] != cluster:
                    before = following[before]
                following[before] = following[cluster]
            counts[UNUSED] += clusters.room[cluster] * (clusters.columns[cluster] + 1)
            clusters.room[cluster] = 0
            clusters.free[counts[FREED]] = cluster
            counts[FREED] += 1
            drop_if_idle(accesses, access)


@lean_kernel
def _compact(head: I32s, clusters: ClusterArrays, kept: I32s) -> None:
    """Write clusters one behind another without spare room; clusters of one access predicate lie together."""
    end = 0
    for access in range(len(head)):
        cluster = head[access]
        while cluster != NO_CLUSTER:
            size = clusters.size[cluster]
            _copy(clusters, cluster, kept, end, size)
            clusters.begin[cluster], clusters.room[cluster] = end, size
            end += size * (clusters.columns[cluster] + 1)
            cluster = clusters.following[cluster]


# -- the cluster matching algorithm: methods for small numbers of columns, and a generic one


class ClusterPlace(NamedTuple):
    """The place of one cluster in `data`."""

    data: I32s
    begin: int
    room: int
    size: int


@inlined
def _emit(out: I32s, filled: int, c: int) -> int:
    if filled < len(out):
        out[UP(filled)] = c
    return filled + 1


@inlined
def _test_1(bits: Words, data: Ids, at: int, room: int, columns: int) -> int:
    """How many predicates of a subscription are true before one that is not."""
    return 1 if has_bit(bits, data[UP(at)]) else 0


@inlined
def _test_2(bits: Words, data: Ids, at: int, room: int, columns: int) -> int:
    if not has_bit(bits, data[UP(at)]):
        return 0
    return 2 if has_bit(bits, data[UP(at + room)]) else 1


@inlined
def _test_3(bits: Words, data: Ids, at: int, room: int, columns: int) -> int:
    held = _test_2(bits, data, at, room, columns)
    return 3 if held == 2 and has_bit(bits, data[UP(at + 2 * room)]) else held


@inlined
def _test_4(bits: Words, data: Ids, at: int, room: int, columns: int) -> int:
    held = _test_3(bits, data, at, room, columns)
    return 4 if held == 3 and has_bit(bits, data[UP(at + 3 * room)]) else held


@inlined
def _test_many(bits: Words, data: Ids, at: int, room: int, columns: int) -> int:
    for column in range(columns):
        if not has_bit(bits, data[UP(at)]):
            return column
        at += room
    return columns


_Test = Callable[[Words, Ids, int, int, int], int]
_Method = Callable[[ClusterPlace, int, Words, bool, I32s, int], tuple[int, int]]


def _method(test: _Test) -> _Method:
    """The cluster matching algorithm around one way to test a subscription."""

    @inlined
    def check(cluster: ClusterPlace, columns: int, bits: Words, ahead: bool, out: I32s, filled: int) -> tuple[int, int]:
        data, begin, room, size = cluster.data, cluster.begin, cluster.room, cluster.size
        line = begin + columns * room
        whole = size - size % LINE
        tested = 0
        for first in range(0, whole, LINE):
            if ahead:  # the first columns only: later ones are seldom read
                prefetch(data, begin + first + _AHEAD)
                prefetch(data, begin + room + first + _AHEAD)
            for i in range(first, first + LINE):
                held = test(bits, data, begin + i, room, columns)
                tested += min(held + 1, columns)
                if held == columns:
                    filled = _emit(out, filled, data[UP(line + i)])
        for i in range(whole, size):
            held = test(bits, data, begin + i, room, columns)
            tested += min(held + 1, columns)
            if held == columns:
                filled = _emit(out, filled, data[UP(line + i)])
        return filled, tested

    return check


_check_1, _check_2, _check_3, _check_4 = _method(_test_1), _method(_test_2), _method(_test_3), _method(_test_4)
_check_many = _method(_test_many)


@inlined
def check_cluster(
    cluster: ClusterPlace, columns: int, bits: Words, ahead: bool, out: I32s, filled: int
) -> tuple[int, int]:
    """Append the subscriptions of a cluster that match; returns where they end, and how many predicates were tested."""
    if columns == 0:
        for i in range(cluster.begin, cluster.begin + cluster.size):
            filled = _emit(out, filled, cluster.data[UP(i)])
        return filled, 0
    if columns == 1:
        return _check_1(cluster, 1, bits, ahead, out, filled)
    if columns == 2:
        return _check_2(cluster, 2, bits, ahead, out, filled)
    if columns == 3:
        return _check_3(cluster, 3, bits, ahead, out, filled)
    if columns == 4:
        return _check_4(cluster, 4, bits, ahead, out, filled)
    return _check_many(cluster, columns, bits, ahead, out, filled)
