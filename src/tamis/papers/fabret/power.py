"""Potential hash tables and their power: the checks that a table would save, summed over the subscriptions that wait.

    groups      schemas that may get a table
    power       of each group, the sum of nu(p) of the subscriptions that wait and have its attributes
    waiting     of each conjunction, the nu(p) that it was entered with; 0 if it does not wait

A subscription enters when its cluster has an excessive benefit margin that no existing table can lower. It leaves when it moves
or is deleted. All subscriptions leave when events have changed nu. So a power is the paper's: the sum over the clusters of the
repair list of nu(p) times the number of subscriptions that have the attributes.

Invariant: the power of a group is the sum over the waiting conjunctions, except those whose access predicate has all attributes
of the group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import lean_kernel, merged
from tamis.kernels.numbers import F64s, I32s, I64s
from tamis.papers.fabret.access import ALWAYS, AccessArrays
from tamis.papers.fabret.bit_vector import TableNumbers
from tamis.papers.fabret.schemas import Equalities, GroupLimits, Path, SchemaArrays, Schemas, child, new_path
from tamis.papers.fabret.two_phase import Schema, TwoPhase

_NOTHING = 1e-6
"""Powers below this are rounding errors."""


class _Accessed(NamedTuple):
    """The access predicates of some subscriptions, and the arrays that show their attributes."""

    chosen: I32s
    accesses: AccessArrays
    exemplar: TableNumbers
    dimension: I32s


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

    def strongest(self, least: float) -> int:
        """The group of the greatest power; -1 if no power is at least `least`."""
        used = len(self.groups)
        power = np.where(self.power[:used] >= 2 * self.refused[:used], self.power[:used], 0.0)
        best = int(np.argmax(power))
        return best if power[best] >= max(least, _NOTHING) else -1

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


def having(schema: Schema, equalities: Equalities) -> I64s:
    """Which of some subscriptions have an equality on each attribute of a schema."""
    found = np.empty(len(equalities.start) - 1, np.int64)
    return found[: _having(np.array(schema, np.int32), equalities, found)]


@lean_kernel
def _having(schema: I32s, equalities: Equalities, out: I64s) -> int:
    start, count = equalities.start, 0
    for s in range(len(start) - 1):
        found = 0
        for e in range(start[s], start[s + 1]):
            if found < len(schema) and equalities.dimension[e] == schema[found]:
                found += 1
        if found == len(schema):
            out[count] = s
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
