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
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.kernels.hashing import SEED, fold
from tamis.kernels.kernel import inlined, kernel, lean_kernel
from tamis.kernels.numbers import I64, U64, UP
from tamis.kernels.ranges import grouped
from tamis.papers.fabret.schemas import DEEPEST, ROOT, Equalities, Schemas, advance, child, considered
from tamis.papers.fabret.statistics import EventStatistics
from tamis.papers.fabret.two_phase import Schema

ENTRY_BYTES = 112
"""Bytes of an access predicate in its table and of one of its clusters."""
COLUMN_BYTES = 4
"""Ks: bytes of one predicate of a subscription, or of its id."""
_CLOSE = 1e-9
"""Costs that differ by less count as equal."""


class _Distinct:
    """A hash table of distinct access predicates. Entries with the number of an earlier use count as empty."""

    def __init__(self, most: int) -> None:
        capacity = 4
        while capacity < 2 * most:
            capacity *= 2
        self._hashes = np.zeros(capacity, np.uint64)
        self._numbers, self._uses = np.zeros((2, capacity), np.int64)
        self._use = 0

    def cleared(self) -> tuple[Any, Any, Any, int]:
        self._use += 1
        return self._hashes, self._numbers, self._uses, self._use


class Candidates:
    """Subscriptions, and the groups that may get a table."""

    def __init__(self, equalities: Equalities, sizes: npt.NDArray[np.int64], statistics: EventStatistics) -> None:
        self._equalities = equalities
        self._sizes = sizes
        self._statistics = statistics
        subscriptions = len(sizes)
        self._current = sizes.astype(np.float64)
        self._width = np.zeros(subscriptions, np.int32)
        _begin(equalities, sizes, self._current, self._width)
        self._entry = np.full(subscriptions, -1, np.int32)
        self._population: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._leaving: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        owner = np.repeat(np.arange(subscriptions, dtype=np.int32), np.diff(equalities.start))
        order = grouped(equalities.dimension)
        self._places = order.astype(np.int64)
        self._owners = owner[order]
        self._attributes, first = np.unique(equalities.dimension[order], return_index=True)
        self._first = np.append(first, len(owner))
        self._distinct = _Distinct(int(np.diff(self._first).max(initial=0)))
        self.groups = Schemas()
        self._alive: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    def single_attributes(self) -> list[Schema]:
        """The attributes that occur in equalities."""
        return [(d,) for d in self._attributes.tolist()]

    def cost(self) -> float:
        """The cost of checking subscriptions for one event."""
        return float(self._current.sum())

    def space(self) -> float:
        """The space of clusters behind single attributes; their tables exist anyway."""
        return float(COLUMN_BYTES * (self._sizes - self._width + 1).sum())

    def find_groups(self, most: int, cost_of_table: Callable[[Schema], float]) -> None:
        """Find the groups of at most `most` attributes that may save more than their table costs."""
        for schema in self.single_attributes():
            self.groups.add(schema)
        self._alive = np.ones(len(self.groups), np.bool_)
        counting = considered(most)
        for level in range(2, most + 1):
            bound = np.zeros(len(self.groups))
            done = 0
            while True:
                view = self.groups.view()
                bound = np.append(bound, np.zeros(len(view.parent) - len(bound)))
                done = _extend(view, self._equalities, self._current, self._alive, level, counting, bound, done)
                if done == len(self._sizes):
                    break
                attributes = min(int(np.diff(self._equalities.start)[done]), counting)
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
        first = len(self._population)
        if for_good:
            self._population = np.append(self._population, np.zeros(int((end - begin).min()), np.int32))
        saved, entries, made, columns = _move(
            (begin.copy(), end, self._owners, self._places),
            self._statistics.dependence(schema),
            self._equalities,
            self._sizes,
            (self._current, self._width, self._entry, self._population, self._leaving),
            self._distinct.cleared(),
            first,
            for_good,
        )
        if for_good:
            self._population = self._population[: first + made].copy()
            self._leaving = np.zeros(first + made, np.int32)
        return saved, ENTRY_BYTES * entries - COLUMN_BYTES * columns


@lean_kernel
def _begin(equalities: Any, sizes: Any, current: Any, width: Any) -> None:
    """Set the access predicate of each subscription to one equality."""
    for s in range(len(sizes)):
        for e in range(equalities.start[s], equalities.start[s + 1]):
            width[s] = 1
            current[s] = min(current[s], equalities.nu[e] * (sizes[s] - 1))


@kernel
def _extend(
    groups: Any, equalities: Any, current: Any, alive: Any, level: int, counting: int, bound: Any, done: int
) -> int:
    """Add groups of one more attribute, and sum the costs of their subscriptions; returns the first without room."""
    firsts, seconds, values, pairs = groups.map
    _, parent, of_node, depths, nodes = groups
    start, _, dimension, _ = equalities
    places, path = np.empty(DEEPEST + 1, np.int64), np.empty(DEEPEST + 1, np.int64)
    for s in range(done, len(start) - 1):
        end = min(start[s + 1], start[s] + counting)
        wanted = 1
        for i in range(level):
            wanted = wanted * (end - start[s] - i) // (i + 1)
        if 2 * (pairs[0] + wanted) > len(values) or nodes[0] + wanted > len(parent):
            return s
        places[0], path[0] = start[s] - 1, ROOT
        depth = advance(places, path, 0, level - 1, dimension, end, firsts, seconds, values)
        while depth > 0:
            if depth == level - 1 and alive[path[depth]]:
                for e in range(places[depth] + 1, end):
                    new = child(
                        firsts, seconds, values, pairs, parent, of_node, depths, nodes, path[depth], dimension[e]
                    )
                    bound[new] += current[s]
            depth = advance(places, path, depth, level - 1, dimension, end, firsts, seconds, values)
    return len(start) - 1


@inlined
def _next_common(at: Any, end: Any, owners: Any) -> bool:
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
    postings: Any,
    dependence: float,
    equalities: Any,
    sizes: Any,
    state: Any,
    table: Any,
    first: int,
    for_good: bool,
) -> tuple[float, int, int, int]:
    """The effect of a table for a schema: cost saved, more entries, entries made, fewer columns. Applied if for good.

    The postings of an attribute are the range of its subscriptions, their numbers, and the places of their equalities.
    """
    _, ids, _, nus = equalities
    at, end, owners, places = postings
    current, width, entry, population, leaving = state
    hashes, numbers, uses, use = table
    mask = len(hashes) - 1
    saved, made, emptied, columns = 0.0, 0, 0, 0
    begin = at[0]
    while _next_common(at, end, owners):
        s = owners[at[0]]
        nu = dependence
        hashed = SEED
        for k in range(len(at)):
            nu *= nus[places[at[k]]]
            hashed = fold(hashed, U64(ids[places[at[k]]]))
        at[0] += 1
        new = nu * (sizes[s] - len(at))
        if not new < current[s] * (1 - _CLOSE):
            continue
        saved += current[s] - new
        columns += len(at) - width[s]
        slot = I64(hashed & U64(mask))
        while uses[slot] == use and hashes[slot] != hashed:
            slot = (slot + 1) & mask
        if uses[slot] != use:
            hashes[slot], numbers[slot], uses[slot] = hashed, first + made, use
            made += 1
        old = entry[s]
        if old >= 0:
            leaving[old] += 1
            emptied += leaving[old] == population[old]
        if for_good:
            current[s], width[s], entry[s] = new, len(at), numbers[slot]
            population[numbers[slot]] += 1
    if for_good:
        for old in range(len(leaving)):
            population[old] -= leaving[old]
    else:
        for i in range(begin, end[0]):
            if entry[owners[i]] >= 0:
                leaving[entry[owners[i]]] = 0
    return saved, made - emptied, made, columns
