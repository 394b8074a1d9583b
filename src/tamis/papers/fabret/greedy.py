"""The data of static clustering's greedy algorithm: subscriptions, and groups of attributes that may get a table.

    subscription   0      1      2
    current        0.02   0.01   0.3      nu * check of its access predicate so far
    width          1      2      1        equalities of this access predicate
    entry          -1     7      -1       number of this access predicate; -1 if it has one equality
    population     subscriptions of each entry

A group can save at most the current cost of its subscriptions. If its table costs more, the group is never chosen, and neither is
any larger group that contains it: `find_groups` skips all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tamis.kernels.hashing import SEED, fold
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, UP, Bools, F64s, I32s, I64s, U64s
from tamis.kernels.ranges import grouped
from tamis.papers.fabret.schemas import Equalities, GroupLimits, Path, SchemaArrays, Schemas, advance, child, new_path
from tamis.papers.fabret.statistics import EventStatistics
from tamis.papers.fabret.two_phase import Schema

ENTRY_BYTES = 112
"""Bytes of an access predicate in its table and of one of its clusters."""
COLUMN_BYTES = 4
"""Ks: bytes of one predicate of a subscription, or of its id."""
_CLOSE = 1e-9
"""Costs that differ by less count as equal."""


class _Distinct(NamedTuple):
    """A hash table of distinct access predicates. Entries with the number of an earlier use count as empty."""

    hashes: U64s
    use: I64s
    """One element: the number of the current use."""
    numbers: I64s
    uses: I64s


class _State(NamedTuple):
    """The access predicates of the subscriptions so far, as drawn above."""

    current: F64s
    width: I32s
    entry: I32s
    population: I32s
    leaving: I32s
    """Entry -> how many subscriptions leave it for the table being tried."""


class _Postings(NamedTuple):
    """The subscriptions of each attribute of a schema: from ``at`` to ``end``, ascending."""

    at: I64s
    end: I64s
    owner: I32s
    place: I64s
    """The equality of the owner on the attribute."""


class Candidates:
    """Subscriptions, and the groups that may get a table."""

    def __init__(self, equalities: Equalities, sizes: I64s, statistics: EventStatistics) -> None:
        self._equalities = equalities
        self._sizes = sizes
        self._statistics = statistics
        width, entry = np.zeros(len(sizes), np.int32), np.full(len(sizes), -1, np.int32)
        nothing = np.zeros(0, np.int32)
        self._state = _State(sizes.astype(np.float64), width, entry, nothing, nothing)
        _begin(equalities, sizes, self._state)
        owner = np.repeat(np.arange(len(sizes), dtype=np.int32), np.diff(equalities.start))
        order = grouped(equalities.dimension)
        self._places = order.astype(np.int64)
        self._owners = owner[order]
        self._attributes, first = np.unique(equalities.dimension[order], return_index=True)
        self._first = np.append(first, len(owner))
        capacity = 4
        while capacity < 2 * np.diff(self._first).max(initial=0):
            capacity *= 2
        numbers = np.zeros((2, capacity), np.int64)
        self._distinct = _Distinct(np.zeros(capacity, np.uint64), np.zeros(1, np.int64), *numbers)
        self.groups = Schemas()
        self._alive: Bools = np.zeros(0, np.bool_)

    def single_attributes(self) -> list[Schema]:
        """The attributes that occur in equalities."""
        return [(d,) for d in self._attributes.tolist()]

    def cost(self) -> float:
        """The cost of checking subscriptions for one event."""
        return float(self._state.current.sum())

    def space(self) -> float:
        """The space of clusters behind single attributes; their tables exist anyway."""
        return float(COLUMN_BYTES * (self._sizes - self._state.width + 1).sum())

    def find_groups(self, most: int, cost_of_table: Callable[[Schema], float]) -> None:
        """Find the groups of at most `most` attributes that may save more than their table costs."""
        for schema in self.single_attributes():
            self.groups.add(schema)
        self._alive = np.ones(len(self.groups), np.bool_)
        limits, path = GroupLimits.of(most), new_path()
        for level in range(2, most + 1):
            bound, limits, done = np.zeros(len(self.groups)), limits._replace(attributes=level), 0
            while True:
                view = self.groups.view()
                bound = np.append(bound, np.zeros(len(view.parent) - len(bound)))
                done = _extend(view, self._equalities, self._state.current, self._alive, limits, path, bound, done)
                if done == len(self._sizes):
                    break
                attributes = min(int(np.diff(self._equalities.start)[done]), limits.equalities)
                self.groups.reserve(max(len(self.groups), math.comb(attributes, level)))
            before = len(self._alive)
            worth = [bound[node] > cost_of_table(self.groups.schema(node)) for node in range(before, len(self.groups))]
            self._alive = np.append(self._alive, np.array(worth, np.bool_))

    def nodes(self) -> list[int]:
        """The groups."""
        return np.flatnonzero(self._alive & (self.groups.view().depth[: len(self.groups)] > 1)).tolist()

    def evaluate(self, node: int) -> tuple[float, float]:
        """The checking cost that a table for a group would save, and the bytes it would add, without the empty table."""
        return self._moved(node, False)

    def add(self, node: int) -> None:
        """Let the subscriptions that gain move to a table for a group."""
        self._moved(node, True)

    def _moved(self, node: int, for_good: bool) -> tuple[float, float]:
        schema = self.groups.schema(node)
        at = np.searchsorted(self._attributes, schema)
        begin, end = self._first[at], self._first[at + 1]
        postings, state = _Postings(begin.copy(), end, self._owners, self._places), self._state
        first = len(state.population)
        if for_good:
            more = np.zeros(int((end - begin).min()), np.int32)
            state = state._replace(population=np.append(state.population, more))
        self._distinct.use[0] += 1
        dependence = self._statistics.dependence(schema)
        saved, entries, made, columns = _move(
            postings, dependence, self._equalities, self._sizes, state, self._distinct, first, for_good
        )
        if for_good:
            population = state.population[: first + made].copy()
            self._state = state._replace(population=population, leaving=np.zeros(first + made, np.int32))
        return saved, ENTRY_BYTES * entries - COLUMN_BYTES * columns


@lean_kernel
def _begin(equalities: Equalities, sizes: I64s, state: _State) -> None:
    """Set the access predicate of each subscription to one equality."""
    for s in range(len(sizes)):
        for e in range(equalities.start[s], equalities.start[s + 1]):
            state.width[s] = 1
            state.current[s] = min(state.current[s], equalities.nu[e] * (sizes[s] - 1))


@lean_kernel
def _extend(
    groups: SchemaArrays,
    equalities: Equalities,
    current: F64s,
    alive: Bools,
    limits: GroupLimits,
    path: Path,
    bound: F64s,
    done: int,
) -> int:
    """Add groups of `limits.attributes`, and sum the costs of their subscriptions; returns the first without room."""
    level = limits.attributes
    start, dimension = equalities.start, equalities.dimension
    for s in range(done, len(start) - 1):
        end = min(start[s + 1], start[s] + limits.equalities)
        wanted = 1
        for i in range(level):
            wanted = wanted * (end - start[s] - i) // (i + 1)
        has_pairs = 2 * (groups.map.size[0] + wanted) <= len(groups.map.value)
        if not has_pairs or groups.nodes[0] + wanted > len(groups.parent):
            return s
        path.place[0] = start[s] - 1
        depth = advance(path, 0, level - 1, dimension, end, groups.map)
        while depth > 0:
            if depth == level - 1 and alive[path.node[depth]]:
                for e in range(path.place[depth] + 1, end):
                    bound[child(groups, path.node[depth], dimension[e])] += current[s]
            depth = advance(path, depth, level - 1, dimension, end, groups.map)
    return len(start) - 1


@inlined
def _next_common(at: I64s, end: I64s, owners: I32s) -> bool:
    """Move places in ascending lists on to the next number that is in all of them; False if there is none."""
    if at[0] == end[0]:
        return False
    k, agreeing = 0, 0
    wanted = owners[at[0]]
    while agreeing < len(at):
        while at[k] < end[k] and owners[UP(at[k])] < wanted:
            at[k] += 1
        if at[k] == end[k]:
            return False
        agreeing = agreeing + 1 if owners[UP(at[k])] == wanted else 1
        wanted = owners[UP(at[k])]
        k = k + 1 if k + 1 < len(at) else 0
    return True


@lean_kernel
def _move(
    postings: _Postings,
    dependence: float,
    equalities: Equalities,
    sizes: I64s,
    state: _State,
    table: _Distinct,
    first: int,
    for_good: bool,
) -> tuple[float, int, int, int]:
    """The effect of a table for a schema: cost saved, more entries, entries made, fewer columns. Applied if for good."""
    at, end, owners = postings.at, postings.end, postings.owner
    current, leaving, numbers = state.current, state.leaving, table.numbers
    use, mask = table.use[0], len(table.hashes) - 1
    saved, made, emptied, columns = 0.0, 0, 0, 0
    begin = at[0]
    while _next_common(at, end, owners):
        s = owners[at[0]]
        nu = dependence
        hashed = SEED
        for k in range(len(at)):
            e = postings.place[at[k]]
            nu *= equalities.nu[e]
            hashed = fold(hashed, U64(equalities.id[e]))
        at[0] += 1
        new = nu * (sizes[s] - len(at))
        if not new < current[s] * (1 - _CLOSE):
            continue
        saved += current[s] - new
        columns += len(at) - state.width[s]
        place = I64(hashed & U64(mask))
        while table.uses[place] == use and table.hashes[place] != hashed:
            place = (place + 1) & mask
        if table.uses[place] != use:
            table.hashes[place], numbers[place], table.uses[place] = hashed, first + made, use
            made += 1
        old = state.entry[s]
        if old >= 0:
            leaving[old] += 1
            emptied += leaving[old] == state.population[old]
        if for_good:
            current[s], state.width[s], state.entry[s] = new, len(at), numbers[place]
            state.population[numbers[place]] += 1
    if for_good:
        for old in range(len(leaving)):
            state.population[old] -= leaving[old]
    else:
        for i in range(begin, end[0]):
            if state.entry[owners[i]] >= 0:
                leaving[state.entry[owners[i]]] = 0
    return saved, made - emptied, made, columns
