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
from typing import NamedTuple

import numpy as np

from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import F64s, I32s, I64s
from tamis.papers.fabret.bit_vector import Ids, is_equality
from tamis.papers.fabret.statistics import StatisticsArrays, nu_of
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


class GroupLimits(NamedTuple):
    """Which groups of attributes a subscription has."""

    attributes: int
    """The most attributes of a group."""
    equalities: int
    """How many of a subscription's first equalities count, see `considered`."""

    @classmethod
    def of(cls, most: int) -> GroupLimits:
        return cls(most, considered(most))


class SchemaArrays(NamedTuple):
    """The schemas as kernels take them; `nodes` has one element, the number of schemas."""

    map: PairArrays
    nodes: I64s
    parent: I32s
    dimension: I32s
    depth: I32s


class Schemas:
    """Some schemas, by number."""

    def __init__(self) -> None:
        self._map = PairMap()
        self._columns = [np.full(_LOWEST, fill, np.int32) for fill in (-1, -1, 0)]
        self._nodes = np.ones(1, np.int64)

    def __len__(self) -> int:
        return int(self._nodes[0])

    @property
    def nbytes(self) -> int:
        return self._map.nbytes + sum(column.nbytes for column in self._columns)

    def view(self) -> SchemaArrays:
        return SchemaArrays(self._map.view(), self._nodes, *self._columns)

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
        arrays = self.view()
        while node != ROOT:
            found = (int(arrays.dimension[node]), *found)
            node = int(arrays.parent[node])
        return found

    def add(self, schema: tuple[int, ...]) -> int:
        """The number of a schema. A new schema is added together with its prefixes."""
        node = ROOT
        for dimension in schema:
            self.reserve(1)
            node = child(self.view(), node, dimension)
        return node


class Equalities(NamedTuple):
    """The equalities of some subscriptions as kernels take them."""

    start: I64s
    id: Ids
    dimension: I32s
    nu: F64s


def equalities_of(
    table: Conjunctions, conjunctions: I32s, ids: Ids, references: I32s, totals: I64s, statistics: StatisticsArrays
) -> Equalities:
    """The equalities of conjunctions with these ids of predicates; of several on one dimension, the most selective.

    `totals` is how many references there are to equalities on each dimension.
    """
    start = np.zeros(len(conjunctions) + 1, np.int64)
    id_, dimension = np.empty((2, len(ids)), np.int32)
    found = Equalities(start, id_, dimension, np.empty(len(ids)))
    count = _equalities(table, conjunctions, ids, references, totals, statistics, found)
    return Equalities(start, found.id[:count], found.dimension[:count], found.nu[:count])


@lean_kernel
def count_equalities(table: Conjunctions, conjunctions: I32s, totals: I64s, by: int) -> None:
    """Add to `totals`, for each dimension, `by` for every equality of the conjunctions."""
    for c in conjunctions:
        for p in range(table.start[c], table.start[c + 1]):
            if is_equality(table.predicates, p):
                totals[table.predicates.dimension[p]] += by


@lean_kernel
def _equalities(
    table: Conjunctions,
    conjunctions: I32s,
    ids: Ids,
    references: I32s,
    totals: I64s,
    statistics: StatisticsArrays,
    out: Equalities,
) -> int:
    predicates = table.predicates
    at, count = 0, 0
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        for p in range(table.start[c], table.start[c + 1]):
            number = ids[at]
            at += 1
            if not is_equality(predicates, p):
                continue
            d = predicates.dimension[p]
            share = references[number] / max(totals[d], 1)
            nu = nu_of(statistics, d, predicates.lo[predicates.start[p]], share)
            again = count > out.start[i] and out.dimension[count - 1] == d
            if again and out.nu[count - 1] <= nu:
                continue
            place = count - 1 if again else count
            out.id[place], out.dimension[place], out.nu[place] = number, d, nu
            count = place + 1
        out.start[i + 1] = count
    return count


@lean_kernel
def child(schemas: SchemaArrays, node: int, d: int) -> int:
    """The schema with one attribute more, added if it is new; there must be room for it."""
    pairs = schemas.map
    at = pair_map.pair_place(pairs, node, d)
    if pairs.value[at] == pair_map.FREE:
        new = schemas.nodes[0]
        pair_map.enter(pairs, at, node, d, new)
        schemas.parent[new], schemas.dimension[new], schemas.depth[new] = node, d, schemas.depth[node] + 1
        schemas.nodes[0] += 1
    return pairs.value[at]


class Path(NamedTuple):
    """A schema of a subscription, and its prefixes, by depth: ``1`` to the depth of the schema."""

    place: I64s
    """The place of the last equality; at depth 0, one before the first."""
    node: I64s


def new_path() -> Path:
    """Room for a path; it begins at the root."""
    return Path(*np.full((2, DEEPEST + 1), ROOT, np.int64))


@inlined
def advance(path: Path, depth: int, most: int, dimension: I32s, end: int, pairs: PairArrays) -> int:
    """Go to the next schema within the attributes of a subscription; returns its depth, 0 if none is left.

    To begin, set ``path.place[0]`` to one before the first equality, and `depth` to 0. The last equality is before `end`. `pairs`
    is the map of the schemas.
    """
    at = path.place[depth] + 1
    while True:
        while at < end and depth < most:
            node = pair_map.value_of(pairs, path.node[depth], dimension[at])
            if node != pair_map.FREE:
                depth += 1
                path.place[depth], path.node[depth] = at, node
                return depth
            at += 1
        if depth == 0:
            return 0
        at = path.place[depth] + 1
        depth -= 1
