"""Potential hash tables and their power: the checks that a table would save, summed over the subscriptions that wait.

    groups      schemas that may get a table
    power       of each group, the sum of nu(p) of the subscriptions that wait and have its attributes
    waiting     of each conjunction, the nu(p) that it was entered with; 0 if it does not wait

A subscription enters when its cluster has an excessive benefit margin that no existing table can lower. It leaves when it moves
or is deleted. All subscriptions leave when events have changed nu. So a power is the paper's: the sum over the clusters of the
repair list of nu(p) times the number of subscriptions that have the attributes.

Invariant: the power of a group is the sum over the waiting conjunctions, except those whose access predicate has all attributes
of the group.

The *repair list* of a group has the waiting subscriptions with all its attributes. It is not stored: it lies within the shortest
of the lists of its attributes.

    start, member     for each attribute, the places of the waiting subscriptions with an equality on it
    rows, nus         for each place, the subscription and its nu(p)
    equalities        of each place
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import lean_kernel, merged
from tamis.kernels.numbers import F64s, I32s, I64s
from tamis.papers.fabret.access import ALWAYS, AccessArrays
from tamis.papers.fabret.bit_vector import TableNumbers
from tamis.papers.fabret.schemas import Equalities, GroupLimits, Path, SchemaArrays, Schemas, child, new_path
from tamis.papers.fabret.two_phase import Schema, TwoPhase

BETTER = 1 - 1e-9
"""Factor by which a cost must fall before a subscription moves: the gain must exceed rounding errors."""
_NOTHING = 1e-6
"""Powers below this are rounding errors."""


class _Accessed(NamedTuple):
    """The access predicates of some subscriptions, and the arrays that show their attributes."""

    chosen: I32s
    accesses: AccessArrays
    exemplar: TableNumbers
    dimension: I32s


class RepairLists(NamedTuple):
    """The waiting subscriptions by attribute, as drawn above."""

    start: I64s
    member: I64s
    rows: I32s
    nus: F64s
    equalities: Equalities


class PotentialTables:
    """The tables that may be created."""

    def __init__(self) -> None:
        self.groups = Schemas()
        self.power: F64s = np.zeros(len(self.groups.view().parent))
        self.refused = np.zeros_like(self.power)
        """The power of a group when it was found useless; infinite if the group has a table."""
        self.waiting = GrowingArray(np.float64)

    @property
    def nbytes(self) -> int:
        return self.groups.nbytes + self.power.nbytes + self.refused.nbytes + self.waiting.nbytes

    def cover(self, conjunctions: int) -> None:
        """Make room for `conjunctions` conjunctions."""
        if conjunctions > len(self.waiting):
            self.waiting.grow(conjunctions - len(self.waiting), fill=0.0)

    def enter(self, core: TwoPhase, conjunctions: I32s, equalities: Equalities, nus: F64s, most: int) -> None:
        """Let conjunctions wait, unless they already do."""
        self._add(core, conjunctions, equalities, nus, most)
        self.waiting.view()[conjunctions] = nus

    def leave(self, core: TwoPhase, conjunctions: I32s, equalities: Equalities, most: int) -> None:
        """Stop the waiting of conjunctions. Call this before they leave their clusters."""
        self._add(core, conjunctions, equalities, -self.waiting.view()[conjunctions], most)
        self.waiting.view()[conjunctions] = 0.0

    def _add(self, core: TwoPhase, conjunctions: I32s, equalities: Equalities, amounts: F64s, most: int) -> None:
        clusters, exemplar = core.clusters.view(), core.predicates.bits.view().exemplar
        chosen = clusters.access[clusters.cluster_of[conjunctions]]
        accessed = _Accessed(chosen, core.accesses.view(), exemplar, core.table.view().predicates.dimension)
        limits, path, done = GroupLimits.of(most), new_path(), 0
        while True:
            self._cover_groups()
            done = _add_power(self.groups.view(), equalities, accessed, amounts, limits, path, self.power, done)
            if done == len(conjunctions):
                break
            attributes = min(int(np.diff(equalities.start)[done]), limits.equalities)
            self.groups.reserve(max(len(self.groups), _subsets(attributes, most)))

    def strong(self, least: float) -> list[tuple[float, int]]:
        """The groups of sufficient power as a heap: the strongest first, with its power below zero."""
        power = self.power[: len(self.groups)]
        groups = np.flatnonzero((power >= max(least, _NOTHING)) & (power >= 2 * self.refused[: len(power)]))
        heap = list(zip((-power[groups]).tolist(), groups.tolist(), strict=True))
        heapq.heapify(heap)
        return heap

    def strongest(self, heap: list[tuple[float, int]], least: float) -> int:
        """Take the strongest group from a heap; -1 if none is left. Powers may have become lower since it was made."""
        while heap:
            power, group = heapq.heappop(heap)
            now = float(self.power[group])
            if now == -power:
                return group
            if now >= max(least, _NOTHING, 2 * self.refused[group]):
                heapq.heappush(heap, (-now, group))
        return -1

    def allow(self, schema: Schema) -> None:
        """Let a schema that has lost its table get one again when its power suffices."""
        group = self.add(schema)
        self.refused[group] = 0.0

    def add(self, schema: Schema) -> int:
        """The number of a group."""
        group = self.groups.add(schema)
        self._cover_groups()
        return group

    def _cover_groups(self) -> None:
        missing = np.zeros(len(self.groups.view().parent) - len(self.power))
        if len(missing):
            self.power, self.refused = np.append(self.power, missing), np.append(self.refused, missing)

    def forget_refusals(self) -> None:
        """Let groups that were found useless be tried again."""
        self.refused[np.isfinite(self.refused)] = 0.0

    def check(self, core: TwoPhase, live: I32s, equalities: Equalities, most: int) -> None:
        """Raise an AssertionError unless each power is the sum over the waiting conjunctions."""
        waiting = self.waiting.view()
        assert set(np.flatnonzero(waiting).tolist()) <= set(live.tolist())
        fresh = PotentialTables()
        fresh.cover(len(waiting))
        fresh.enter(core, live, equalities, waiting[live], most)
        expected: dict[Schema, float] = {
            fresh.groups.schema(node): float(fresh.power[node]) for node in range(len(fresh.groups))
        }
        for node in range(len(self.groups)):
            assert np.isclose(self.power[node], expected.get(self.groups.schema(node), 0.0), atol=1e-6)


def repair_lists(rows: I32s, nus: F64s, equalities: Equalities) -> RepairLists:
    """The repair lists of some waiting subscriptions, with the nu of their access predicates."""
    order = np.argsort(equalities.dimension, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(equalities.dimension)))
    member = np.repeat(np.arange(len(rows)), np.diff(equalities.start))[order]
    return RepairLists(start, member, rows, nus, equalities)


def gaining(lists: RepairLists, schema: Schema, dependence: float, waiting: F64s) -> tuple[I32s, int]:
    """The subscriptions that a table of a schema, with this dependence, would make less likely to be visited.

    Also returns how many subscriptions were looked at.
    """
    if max(schema) >= len(lists.start) - 1:
        return np.zeros(0, np.int32), 0
    shortest = min(schema, key=lambda d: lists.start[d + 1] - lists.start[d])
    found = np.empty(lists.start[shortest + 1] - lists.start[shortest], np.int32)
    count = _gaining(lists, np.array(schema, np.int32), shortest, dependence, waiting, found)
    return found[:count], len(found)


@lean_kernel
def _gaining(lists: RepairLists, schema: I32s, shortest: int, dependence: float, waiting: F64s, out: I32s) -> int:
    start, dimension = lists.equalities.start, lists.equalities.dimension
    count = 0
    for i in range(lists.start[shortest], lists.start[shortest + 1]):
        s = lists.member[i]
        found, nu = 0, dependence
        for e in range(start[s], start[s + 1]):
            if found < len(schema) and dimension[e] == schema[found]:
                found += 1
                nu *= lists.equalities.nu[e]
        # Those that have moved to another new table wait no longer.
        if found == len(schema) and nu < lists.nus[s] * BETTER and waiting[lists.rows[s]] > 0:
            out[count] = lists.rows[s]
            count += 1
    return count


@lean_kernel
def _subsets(attributes: int, most: int) -> int:
    """How many groups of at most `most` attributes there are."""
    total, of_size = 0, 1
    for size in range(1, min(attributes, most) + 1):
        of_size = of_size * (attributes - size + 1) // size
        total += of_size
    return total


@merged
def _is_accessed(s: int, accessed: _Accessed, path: Path, depth: int, dimension: I32s) -> bool:
    """Whether the access predicate of a subscription has all attributes of a group."""
    accesses = accessed.accesses
    for k in range(1, depth + 1):
        d, access = dimension[path.place[k]], accessed.chosen[s]
        while access != ALWAYS and accessed.dimension[accessed.exemplar[accesses.predicate[access]]] != d:
            access = accesses.parent[access]
        if access == ALWAYS:
            return False
    return True


@lean_kernel
def _add_power(
    groups: SchemaArrays,
    equalities: Equalities,
    accessed: _Accessed,
    amounts: F64s,
    limits: GroupLimits,
    path: Path,
    power: F64s,
    done: int,
) -> int:
    """Add the amount of each subscription to all groups of its attributes; returns the first without room."""
    most = limits.attributes
    start, dimension = equalities.start, equalities.dimension
    for s in range(done, len(start) - 1):
        end = min(start[s + 1], start[s] + limits.equalities)
        wanted = _subsets(end - start[s], most)
        has_pairs = 2 * (groups.map.size[0] + wanted) <= len(groups.map.value)
        if not has_pairs or groups.nodes[0] + wanted > len(groups.parent):
            return s
        depth, at = 0, start[s]
        while True:
            if at < end and depth < most:
                node = child(groups, path.node[depth], dimension[at])
                depth += 1
                path.place[depth], path.node[depth] = at, node
                if depth > 1 and not _is_accessed(s, accessed, path, depth, dimension):
                    power[node] += amounts[s]
                at += 1
            elif depth == 0:
                break
            else:
                at = path.place[depth] + 1
                depth -= 1
    return len(start) - 1
