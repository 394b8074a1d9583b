"""The best access predicate of each subscription, for given tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import F64s, I32s, I64s
from tamis.papers.fabret.access import NO_TABLE
from tamis.papers.fabret.schemas import DEEPEST, Equalities, Path, SchemaArrays, advance, new_path

_CLOSE = 1e-9
"""Costs that differ by less count as equal."""


class Assignment(NamedTuple):
    """The access predicates of some subscriptions: their equalities in a row, how many each has, its table and its cost."""

    equalities: I32s
    counts: I32s
    tables: I32s
    costs: F64s


def assign(tables: SchemaArrays, equalities: Equalities, sizes: I64s, table_of: I32s, dependence: F64s) -> Assignment:
    """The access predicate of least cost of each subscription; subscriptions take turns among equal ones.

    The cost is nu times (given size less the number of equalities of the access predicate); just nu where sizes are 0.
    Schemas that have no table have a `dependence` of NaN.
    """
    most = int(tables.depth[: tables.nodes[0]].max())
    chosen = np.empty(len(sizes) * most, np.int32)
    counts, numbers = np.zeros(len(sizes), np.int32), np.full(len(sizes), NO_TABLE, np.int32)
    costs = np.full(len(sizes), np.inf)
    made = Assignment(chosen, counts, numbers, costs)
    end = _assign(tables, equalities, sizes, table_of, dependence, new_path(), made)
    return made._replace(equalities=chosen[:end])


@lean_kernel
def _assign(
    tables: SchemaArrays,
    equalities: Equalities,
    sizes: I64s,
    table_of: I32s,
    dependence: F64s,
    path: Path,
    out: Assignment,
) -> int:
    start, dimension = equalities.start, equalities.dimension
    end = 0
    for s in range(len(sizes)):
        least, equal = np.inf, 0
        path.place[0] = start[s] - 1
        for choosing in (False, True):  # first the least cost and its ties, then the one whose turn it is
            found = 0
            turn = s % max(equal, 1) + 1
            depth = advance(path, 0, DEEPEST, dimension, start[s + 1], tables.map)
            while depth > 0:
                node = path.node[depth]
                cost = dependence[node]
                if sizes[s] > 0:
                    cost *= sizes[s] - depth
                for k in range(1, depth + 1):
                    cost *= equalities.nu[path.place[k]]
                if not choosing and cost < least * (1 - _CLOSE):
                    least, equal = cost, 1
                elif cost <= least * (1 + _CLOSE):
                    found += 1
                    equal += not choosing
                    if choosing and found == turn:
                        out.counts[s], out.tables[s] = depth, table_of[node]
                        for k in range(1, depth + 1):
                            out.equalities[end + k - 1] = equalities.id[path.place[k]]
                depth = advance(path, depth, DEEPEST, dimension, start[s + 1], tables.map)
        out.costs[s] = least
        end += out.counts[s]
    return end
