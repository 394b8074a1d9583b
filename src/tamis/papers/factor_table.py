"""The table of conjunctions of disjunctions, for indexes that take them as they are.

    (a = 1 OR b = 2) AND c = 3           factor     0: a = 1 | b = 2    1: c = 3    2: d = 4
    c = 3 AND d = 4                      row        0: 0 1              1: 1 2

A *factor* is a disjunction of predicates; the papers say clause. A factor is never empty. A row without factors is true of every
event. Both levels are tables of conjunctions: the search for an equal row is the same for AND and for OR, for predicates and for
numbers of factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.dimensions.leaf import Leaf
from tamis.encoding.expressions.conjunctions import Conjunctions, ConjunctionTable, conjunctions_taken
from tamis.encoding.expressions.predicates import Predicates, predicates_of
from tamis.kernels.numbers import I32s, I64s


class FactorRows(NamedTuple):
    """Conjunctions of disjunctions: the i-th has the disjunctions `start[i]` to `start[i + 1]` of `factors`."""

    start: I64s
    factors: Conjunctions

    @classmethod
    def of(cls, rows: Sequence[Sequence[Sequence[Leaf]]]) -> FactorRows:
        """Rows that are lists of factors, which are lists of leaves."""
        factors = [factor for row in rows for factor in row]
        return cls(
            _starts([len(row) for row in rows]),
            Conjunctions(
                _starts([len(factor) for factor in factors]),
                predicates_of(leaf for factor in factors for leaf in factor),
            ),
        )

    @classmethod
    def of_conjunctions(cls, table: Conjunctions) -> FactorRows:
        """Rows from conjunctions: every predicate becomes a factor."""
        return cls(table.start, Conjunctions(np.arange(len(table.predicates.dimension) + 1), table.predicates))

    def flat(self) -> Conjunctions:
        """All predicates of each row, without their division into factors."""
        return Conjunctions(self.factors.start[self.start], self.factors.predicates)


class FactorTable(ConjunctionTable):
    """A table of conjunctions one level up: the dimensions of its rows are numbers of `factors`."""

    def __init__(self) -> None:
        super().__init__()
        self.factors = ConjunctionTable()

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.factors.nbytes

    def intern(self, added: Conjunctions) -> I32s:
        return self.intern_factors(FactorRows.of_conjunctions(added))

    def intern_factors(self, added: FactorRows) -> I32s:
        """The number of each row, added if there is no equal one yet."""
        return super().intern(Conjunctions(added.start, _numbers(self.factors.intern(added.factors))))

    def relabel(self, dimension: int, relabelling: Relabelling) -> None:
        self.factors.relabel(dimension, relabelling)

    def swept(self, kept: npt.NDArray[Any], change: Callable[[Predicates], None]) -> tuple[Self, I32s]:
        rows = self.taken(kept)
        change(rows.factors.predicates)
        table = type(self)()
        return table, table.intern_factors(rows)

    def taken(self, rows: npt.NDArray[Any]) -> FactorRows:
        """Some rows, in the order of `rows`."""
        chosen = conjunctions_taken(self.view(), rows)
        return FactorRows(chosen.start, conjunctions_taken(self.factors.view(), chosen.predicates.dimension))


def _starts(counts: list[int]) -> I64s:
    return np.append(0, np.cumsum(counts, dtype=np.int64))


def _numbers(factors: I32s) -> Predicates:
    """Numbers of factors in the form of predicates: the number is the dimension, and there are no intervals."""
    nothing = np.empty(0, np.int64)
    return Predicates(factors, np.zeros(len(factors), np.uint8), np.zeros(len(factors) + 1, np.int64), nothing, nothing)
