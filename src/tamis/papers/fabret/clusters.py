"""Clusters: the subscriptions of one access predicate with one number of predicates left to check, in columns.

    cluster     0            1                        begin, room, size, columns (how many predicates are left)
    data        7 9 9 . | 4 4 5 . | 1 2 3 . |  ...    column after column, then the subscription line
                1st       2nd       line
    following   the next cluster of the same access predicate; they differ in their number of columns
    cluster_of, position_of      where each conjunction is

A column holds ids of predicates, without those of the access predicate: equalities first, which fail most often, then IN, then
ranges, then predicates that are true of most values. A full cluster moves to the end of `data`, with half as much room again.
Deleting a subscription puts the last one of its cluster in its place.

Invariant: a conjunction in the index is in one cluster, and `cluster_of` and `position_of` say where; no cluster is empty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import UP
from tamis.kernels.prefetch import prefetch
from tamis.kernels.ranges import run_indices
from tamis.papers.fabret.access import NO_CLUSTER, AccessArrays, drop_if_idle
from tamis.papers.fabret.bit_vector import is_equality, is_set
from tamis.papers.interface import Numbers

_SOME = int(Mode.SOME)
_LOWEST = 16
_FEWEST_DEAD = 1 << 12
_RANKS = 4

LINE = 16
"""Entries of a cache line: the loops over a cluster are unrolled by it."""
_AHEAD = 4 * LINE
"""Distance, in entries, at which columns are prefetched."""


class ClusterArrays(NamedTuple):
    """Clusters as kernels take them; `counts`: clusters ever made, free clusters, unused entries of `data`."""

    begin: npt.NDArray[np.int64]
    room: npt.NDArray[np.int32]
    size: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    following: npt.NDArray[np.int32]
    access: npt.NDArray[np.int32]
    need: npt.NDArray[np.int32]
    free: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    data: npt.NDArray[np.int32]
    cluster_of: npt.NDArray[np.int32]
    position_of: npt.NDArray[np.int32]


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
        return int(self._counts[0] - self._counts[1])

    @property
    def nbytes(self) -> int:
        growing = self._data.nbytes + self._cluster_of.nbytes + self._position_of.nbytes
        return self._begin.nbytes + growing + sum(each.nbytes for each in self._columns)

    def view(self) -> ClusterArrays:
        room, size, columns, following, access, need, free = self._columns
        fixed = (room, size, columns, following, access, need, free)
        growing = (self._data.view(), self._cluster_of.view(), self._position_of.view())
        return ClusterArrays(self._begin, *fixed, self._counts, *growing)

    def put(
        self,
        accesses: AccessArrays,
        table: Conjunctions,
        conjunctions: Numbers,
        chosen: npt.NDArray[np.int32],
        ids: npt.NDArray[np.int32],
    ) -> None:
        """Put conjunctions into the clusters of the chosen access predicates; `ids` are their predicates in a row."""
        missing = len(table.start) - 1 - len(self._cluster_of)
        if missing > 0:
            self._cluster_of.grow(missing, fill=NO_CLUSTER)
            self._position_of.grow(missing, fill=0)
        done = 0
        while (done := _assign(accesses, self.view(), table.start, conjunctions, chosen, done)) < len(conjunctions):
            more = len(self._begin)
            self._begin = np.append(self._begin, np.zeros(more, np.int64))
            self._columns = [np.append(each, np.zeros(more, np.int32)) for each in self._columns]
        end = len(self._data)
        self._data.grow(_count_room(self.view(), conjunctions))
        _move_to_room(self.view(), conjunctions, end)
        _write(accesses, self.view(), table, conjunctions, chosen, ids)

    def take_out(self, accesses: AccessArrays, conjunctions: Numbers) -> None:
        """Take conjunctions out of their clusters."""
        _take_out(accesses, self.view(), conjunctions)
        if self._counts[2] > max(len(self._data) // 2, _FEWEST_DEAD):
            kept = GrowingArray(np.int32)
            _compact(accesses.head, self.view(), kept.grow(self._live()))
            self._data, self._counts[2] = kept, 0

    def members(self, clusters: npt.NDArray[Any]) -> Numbers:
        """The conjunctions in some clusters."""
        view = self.view()
        counts = view.size[clusters].astype(np.int64)
        lines = view.begin[clusters] + view.columns[clusters].astype(np.int64) * view.room[clusters]
        return view.data[run_indices(lines, counts)]

    def _live(self) -> int:
        """How many entries of `data` are in use."""
        view = self.view()
        return int((view.size.astype(np.int64) * (view.columns + 1)).sum())

    def check(
        self, accesses: AccessArrays, table: Conjunctions, conjunctions: Numbers, ids_of: Any, equalities: Any
    ) -> None:
        """Raise an AssertionError unless these conjunctions, with ids of predicates, are here, and no others."""
        view = self.view()
        seen: set[int] = set()
        made = int(accesses.counts[0])
        idle = set(accesses.free[: accesses.counts[1]].tolist())
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
                begin, room, size, count = (int(each[cluster]) for each in view[:4])
                assert view.access[cluster] == access
                assert 0 < size <= room
                assert count not in columns, "clusters of a list differ in their number of predicates"
                columns.add(count)
                population += size
                block = view.data[begin : begin + (count + 1) * room].reshape(count + 1, room)[:, :size]
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
def _rank(mode: Any, start: Any, lo: Any, hi: Any, p: int) -> int:
    """The position of a predicate in the order of tests: predicates that fail often come first."""
    if mode[p] != _SOME:
        return 3
    if is_equality(mode, start, lo, hi, p):
        return 0
    return 1 if lo[start[p]] == hi[start[p]] else 2


@lean_kernel
def _assign(accesses: Any, clusters: Any, starts: Any, conjunctions: Any, chosen: Any, done: int) -> int:
    """Find or make the cluster of each conjunction, and count arrivals in `need`. Returns the first without room."""
    _, room, size, columns, following, access_of, need, free, counts, _, cluster_of, _ = clusters
    parent, head, population = accesses.parent, accesses.head, accesses.population
    for i in range(done, len(conjunctions)):
        c, access = conjunctions[i], chosen[i]
        count = starts[c + 1] - starts[c]
        above = access
        while above != 0:
            count -= 1
            above = parent[above]
        cluster = head[access]
        while cluster != NO_CLUSTER and columns[cluster] != count:
            cluster = following[cluster]
        if cluster == NO_CLUSTER:
            if counts[1] > 0:
                counts[1] -= 1
                cluster = free[counts[1]]
            elif counts[0] < len(free):
                cluster = counts[0]
                counts[0] += 1
            else:
                return i
            room[cluster], size[cluster], columns[cluster], need[cluster] = 0, 0, count, 0
            following[cluster], access_of[cluster] = head[access], access
            head[access] = cluster
        need[cluster] += 1
        population[access] += 1
        cluster_of[c] = cluster
    return len(conjunctions)


@inlined
def _new_room(size: int, need: int) -> int:
    return max(size + need, size + size // 2)


@lean_kernel
def _count_room(clusters: Any, conjunctions: Any) -> int:
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
def _move_to_room(clusters: Any, conjunctions: Any, end: int) -> None:
    """Move clusters that need more room to the end."""
    begin, room, size, columns, _, _, need, _, counts, data, cluster_of, _ = clusters
    for c in conjunctions:
        cluster = cluster_of[c]
        if need[cluster] < 0:
            new = _new_room(size[cluster], -need[cluster])
            for column in range(columns[cluster] + 1):
                for i in range(size[cluster]):
                    data[end + column * new + i] = data[begin[cluster] + column * room[cluster] + i]
            counts[2] += room[cluster] * (columns[cluster] + 1)
            begin[cluster], room[cluster] = end, new
            end += new * (columns[cluster] + 1)
        need[cluster] = 0


@lean_kernel
def _write(accesses: Any, clusters: Any, table: Any, conjunctions: Any, chosen: Any, ids: Any) -> None:
    """Write each conjunction behind the last of its cluster."""
    begin, room, size, _, _, _, _, _, _, data, cluster_of, position_of = clusters
    _, mode, start, lo, hi = table.predicates
    starts = table.start
    parent, predicate = accesses.parent, accesses.predicate
    at = 0
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        cluster = cluster_of[c]
        place = begin[cluster] + size[cluster]
        first = starts[c]
        for rank in range(_RANKS):
            for p in range(first, starts[c + 1]):
                if _rank(mode, start, lo, hi, p) != rank:
                    continue
                number = ids[at + p - first]
                access = chosen[i]
                while access != 0 and predicate[access] != number:
                    access = parent[access]
                if access == 0:
                    data[place] = number
                    place += room[cluster]
        data[place] = c
        position_of[c] = size[cluster]
        size[cluster] += 1
        at += starts[c + 1] - first


@lean_kernel
def _take_out(accesses: Any, clusters: Any, conjunctions: Any) -> None:
    begin, room, size, columns, following, access_of, _, free, counts, data, cluster_of, position_of = clusters
    firsts, seconds, values, pairs = accesses.map
    _, parent, predicate, _, head, children, population, single, idle, access_counts = accesses
    for c in conjunctions:
        cluster, position = cluster_of[c], position_of[c]
        size[cluster] -= 1
        last = size[cluster]
        for column in range(columns[cluster] + 1):
            at = begin[cluster] + column * room[cluster]
            data[at + position] = data[at + last]
        moved = data[begin[cluster] + columns[cluster] * room[cluster] + position]
        position_of[moved] = position
        cluster_of[c] = NO_CLUSTER
        access = access_of[cluster]
        population[access] -= 1
        if last == 0:
            if head[access] == cluster:
                head[access] = following[cluster]
            else:
                before = head[access]
                while following[before] != cluster:
                    before = following[before]
                following[before] = following[cluster]
            counts[2] += room[cluster] * (columns[cluster] + 1)
            room[cluster] = 0
            free[counts[1]] = cluster
            counts[1] += 1
            drop_if_idle(
                firsts, seconds, values, pairs, parent, predicate, head, children, single, idle, access_counts, access
            )


@lean_kernel
def _compact(head: Any, clusters: Any, kept: Any) -> None:
    """Write clusters one behind another without spare room; clusters of one access predicate lie together."""
    begin, room, size, columns, following, _, _, _, _, data, _, _ = clusters
    end = 0
    for access in range(len(head)):
        cluster = head[access]
        while cluster != NO_CLUSTER:
            for column in range(columns[cluster] + 1):
                for i in range(size[cluster]):
                    kept[end + column * size[cluster] + i] = data[begin[cluster] + column * room[cluster] + i]
            begin[cluster], room[cluster] = end, size[cluster]
            end += size[cluster] * (columns[cluster] + 1)
            cluster = following[cluster]


# -- the cluster matching algorithm: methods for small numbers of columns, and a generic one


@inlined
def _emit(out: Any, filled: int, c: int) -> int:
    if filled < len(out):
        out[UP(filled)] = c
    return filled + 1


@inlined
def _test_1(bits: Any, data: Any, at: int, room: int, columns: int) -> int:
    """How many predicates of a subscription are true before one that is not."""
    return 1 if is_set(bits, data[UP(at)]) else 0


@inlined
def _test_2(bits: Any, data: Any, at: int, room: int, columns: int) -> int:
    if not is_set(bits, data[UP(at)]):
        return 0
    return 2 if is_set(bits, data[UP(at + room)]) else 1


@inlined
def _test_3(bits: Any, data: Any, at: int, room: int, columns: int) -> int:
    held = _test_2(bits, data, at, room, columns)
    return 3 if held == 2 and is_set(bits, data[UP(at + 2 * room)]) else held


@inlined
def _test_4(bits: Any, data: Any, at: int, room: int, columns: int) -> int:
    held = _test_3(bits, data, at, room, columns)
    return 4 if held == 3 and is_set(bits, data[UP(at + 3 * room)]) else held


@inlined
def _test_many(bits: Any, data: Any, at: int, room: int, columns: int) -> int:
    for column in range(columns):
        if not is_set(bits, data[UP(at)]):
            return column
        at += room
    return columns


def _method(test: Any) -> Any:
    """The cluster matching algorithm around one way to test a subscription."""

    @inlined
    def check(
        bits: Any, data: Any, begin: int, room: int, size: int, columns: int, ahead: bool, out: Any, filled: int
    ) -> tuple[int, int]:
        line = begin + columns * room
        whole = size - size % LINE
        tested = 0
        for block in range(0, whole, LINE):
            if ahead:  # the first columns only: later ones are seldom read
                prefetch(data, begin + block + _AHEAD)
                prefetch(data, begin + room + block + _AHEAD)
            for i in range(block, block + LINE):
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
    bits: Any, data: Any, begin: int, room: int, size: int, columns: int, ahead: bool, out: Any, filled: int
) -> Any:
    """Append the subscriptions of a cluster that match; returns where they end, and how many predicates were tested."""
    if columns == 0:
        for i in range(begin, begin + size):
            filled = _emit(out, filled, data[UP(i)])
        return filled, 0
    if columns == 1:
        return _check_1(bits, data, begin, room, size, 1, ahead, out, filled)
    if columns == 2:
        return _check_2(bits, data, begin, room, size, 2, ahead, out, filled)
    if columns == 3:
        return _check_3(bits, data, begin, room, size, 3, ahead, out, filled)
    if columns == 4:
        return _check_4(bits, data, begin, room, size, 4, ahead, out, filled)
    return _check_many(bits, data, begin, room, size, columns, ahead, out, filled)
