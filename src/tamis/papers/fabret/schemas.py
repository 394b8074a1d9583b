"""Sets of attributes (schemas), and the equalities of subscriptions that they are made of.

    node          0 root   1 {a}   2 {a, b}   3 {b}          schemas and their prefixes, attributes in ascending order
    map           (node, dimension) -> node
    depth         0        1       2          1

    equality      e0   e1   e2 | e3 | e4 ...                 by subscription, then by dimension, at most one per dimension
    start         0              3    4
    id, dimension, nu

`advance` goes through all schemas that lie within the attributes of one subscription.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.papers.fabret.bit_vector import is_equality
from tamis.papers.fabret.statistics import StatisticsArrays, nu_of
from tamis.papers.interface import Numbers
from tamis.papers.parts import pair_map
from tamis.papers.parts.pair_map import PairArrays, PairMap

ROOT = 0
_LOWEST = 16
DEEPEST = 8
"""Most attributes of a schema."""
_MOST_EQUALITIES = 32
_MOST_GROUPS = 8192


def considered(most: int) -> int:
    """How many of a subscription's first equalities are considered for schemas of at most `most` attributes.

    These equalities have at most 8,192 such schemas. 32 equalities would have 41,448 schemas of at most four attributes, and more
    than a million of six.

    >>> considered(2), considered(3), considered(4), considered(6)
    (32, 32, 21, 14)
    """
    count = _MOST_EQUALITIES
    while sum(math.comb(count, size) for size in range(1, most + 1)) > _MOST_GROUPS:
        count -= 1
    return count


class SchemaArrays(NamedTuple):
    """The schemas as kernels take them; `nodes` has one element, the number of schemas."""

    map: PairArrays
    parent: npt.NDArray[np.int32]
    dimension: npt.NDArray[np.int32]
    depth: npt.NDArray[np.int32]
    nodes: npt.NDArray[np.int64]


class Schemas:
    """Some schemas, by number."""

    def __init__(self) -> None:
        self._map = PairMap()
        self._columns = [np.full(_LOWEST, -1, np.int32) for _ in range(2)]
        self._columns.append(np.zeros(_LOWEST, np.int32))
        self._nodes = np.ones(1, np.int64)

    def __len__(self) -> int:
        return int(self._nodes[0])

    @property
    def nbytes(self) -> int:
        return self._map.nbytes + sum(column.nbytes for column in self._columns)

    def view(self) -> SchemaArrays:
        parent, dimension, depth = self._columns
        return SchemaArrays(self._map.view(), parent, dimension, depth, self._nodes)

    def reserve(self, more: int) -> None:
        """Make room for `more` more schemas."""
        self._map.reserve(more)
        missing = len(self) + more - len(self._columns[0])
        if missing > 0:
            missing = max(missing, len(self))
            self._columns = [np.append(column, np.zeros(missing, np.int32)) for column in self._columns]

    def schema(self, node: int) -> tuple[int, ...]:
        """The attributes of a schema."""
        found: tuple[int, ...] = ()
        parent, dimension, _ = self._columns
        while node != ROOT:
            found = (int(dimension[node]), *found)
            node = int(parent[node])
        return found

    def add(self, schema: tuple[int, ...]) -> int:
        """The number of a schema. A new schema is added together with its prefixes."""
        node = ROOT
        for dimension in schema:
            self.reserve(1)
            node = _add(self.view(), node, dimension)
        return node


class Equalities(NamedTuple):
    """The equalities of some subscriptions as kernels take them."""

    start: npt.NDArray[np.int64]
    id: npt.NDArray[np.int32]
    dimension: npt.NDArray[np.int32]
    nu: npt.NDArray[np.float64]


def equalities_of(
    table: Conjunctions,
    conjunctions: Numbers,
    ids: npt.NDArray[np.int32],
    references: npt.NDArray[np.int32],
    totals: npt.NDArray[np.int64],
    statistics: StatisticsArrays,
) -> Equalities:
    """The equalities of conjunctions with these ids of predicates; of several on one dimension, the most selective.

    `totals` is how many references there are to equalities on each dimension.
    """
    start = np.zeros(len(conjunctions) + 1, np.int64)
    numbers, dimensions = np.empty((2, len(ids)), np.int32)
    nus = np.empty(len(ids), np.float64)
    count = _equalities(table, conjunctions, ids, references, totals, statistics, (start, numbers, dimensions, nus))
    return Equalities(start, numbers[:count], dimensions[:count], nus[:count])


def count_equalities(table: Conjunctions, conjunctions: Numbers, totals: npt.NDArray[np.int64], by: int) -> None:
    """Add to `totals`, for each dimension, `by` for every equality of the conjunctions."""
    _count(table, conjunctions, totals, by)


@lean_kernel
def _count(table: Any, conjunctions: Any, totals: Any, by: int) -> None:
    dimension, mode, start, lo, hi = table.predicates
    for c in conjunctions:
        for p in range(table.start[c], table.start[c + 1]):
            if is_equality(mode, start, lo, hi, p):
                totals[dimension[p]] += by


@lean_kernel
def _equalities(
    table: Any, conjunctions: Any, ids: Any, references: Any, totals: Any, statistics: Any, out: Any
) -> int:
    dimension, mode, start, lo, hi = table.predicates
    events, present, distinct, seen = statistics
    firsts, seconds, values, _ = seen
    starts, numbers, dimensions, nus = out
    at, count = 0, 0
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        for p in range(table.start[c], table.start[c + 1]):
            number = ids[at]
            at += 1
            if not is_equality(mode, start, lo, hi, p):
                continue
            d = dimension[p]
            share = references[number] / max(totals[d], 1)
            nu = nu_of(events, present, distinct, firsts, seconds, values, d, lo[start[p]], share)
            again = count > starts[i] and dimensions[count - 1] == d
            if again and nus[count - 1] <= nu:
                continue
            place = count - 1 if again else count
            numbers[place], dimensions[place], nus[place] = number, d, nu
            count = place + 1
        starts[i + 1] = count
    return count


@inlined
def child(
    firsts: Any,
    seconds: Any,
    values: Any,
    pairs: Any,
    parent: Any,
    dimension: Any,
    depth: Any,
    nodes: Any,
    node: int,
    d: int,
) -> int:
    """The schema with one attribute more, added if it is new; there must be room for it."""
    at = pair_map.slot_of(firsts, seconds, values, node, d)
    if values[at] == pair_map.FREE:
        new = nodes[0]
        pair_map.enter(firsts, seconds, values, pairs, at, node, d, new)
        parent[new], dimension[new], depth[new] = node, d, depth[node] + 1
        nodes[0] += 1
    found: int = values[at]
    return found


@lean_kernel
def _add(arrays: Any, node: int, d: int) -> int:
    firsts, seconds, values, pairs = arrays.map
    _, parent, dimension, depth, nodes = arrays
    return child(firsts, seconds, values, pairs, parent, dimension, depth, nodes, node, d)


@inlined
def advance(
    places: Any, nodes: Any, depth: int, most: int, dimension: Any, end: int, firsts: Any, seconds: Any, values: Any
) -> int:
    """Go to the next schema within the attributes of a subscription; returns its depth, 0 if none is left.

    `places[1 : depth + 1]` are its equalities, and `nodes[1 : depth + 1]` its prefixes and itself. To begin, set `nodes[0]` to
    ROOT, `places[0]` to one before the first equality, and `depth` to 0. The last equality is before `end`.
    """
    at = places[depth] + 1
    while True:
        while at < end and depth < most:
            node = values[pair_map.slot_of(firsts, seconds, values, nodes[depth], dimension[at])]
            if node != pair_map.FREE:
                depth += 1
                places[depth], nodes[depth] = at, node
                return depth
            at += 1
        if depth == 0:
            return 0
        at = places[depth] + 1
        depth -= 1
