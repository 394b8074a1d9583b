"""The table of conjunctions of disjunctions, for indexes that take them as they are.

    (a = 1 OR b = 2) AND c = 3           clause     0: a = 1 | b = 2    1: c = 3    2: d = 4
    c = 3 AND d = 4                      row        0: 0 1              1: 1 2

Both levels are tables of conjunctions. The search for an equal row is the same for AND and for OR, for predicates and for
numbers of clauses. A clause is never empty. A row without clauses is true of every event.
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
    """Conjunctions of disjunctions: the i-th has the disjunctions `start[i]` to `start[i + 1]` of `clauses`."""

    start: I64s
    clauses: Conjunctions

    @classmethod
    def of(cls, rows: Sequence[Sequence[Sequence[Leaf]]]) -> FactorRows:
        """Rows that are lists of clauses, which are lists of leaves."""
        clauses = [clause for row in rows for clause in row]
        return cls(
            _starts([len(row) for row in rows]),
            Conjunctions(
                _starts([len(clause) for clause in clauses]),
                predicates_of(leaf for clause in clauses for leaf in clause),
            ),
        )

    @classmethod
    def of_conjunctions(cls, table: Conjunctions) -> FactorRows:
        """Rows from conjunctions: every predicate becomes a clause."""
        return cls(table.start, Conjunctions(np.arange(len(table.predicates.dimension) + 1), table.predicates))

    def flat(self) -> Conjunctions:
        """All predicates of each row, without their division into clauses."""
        return Conjunctions(self.clauses.start[self.start], self.clauses.predicates)


class ClauseTable(ConjunctionTable):
    """A table of conjunctions one level up: the dimensions of its rows are numbers of `clauses`."""

    def __init__(self) -> None:
        super().__init__()
        self.clauses = ConjunctionTable()

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.clauses.nbytes

    def intern(self, added: Conjunctions) -> I32s:
        return self.intern_factors(FactorRows.of_conjunctions(added))

    def intern_factors(self, added: FactorRows) -> I32s:
        """The number of each row, added if there is no equal one yet."""
        return super().intern(Conjunctions(added.start, _numbers(self.clauses.intern(added.clauses))))

    def relabel(self, dimension: int, relabelling: Relabelling) -> None:
        self.clauses.relabel(dimension, relabelling)

    def swept(self, kept: npt.NDArray[Any], change: Callable[[Predicates], None]) -> tuple[Self, I32s]:
        rows = self.taken(kept)
        change(rows.clauses.predicates)
        table = type(self)()
        return table, table.intern_factors(rows)

    def taken(self, rows: npt.NDArray[Any]) -> FactorRows:
        """Some rows, in the order of `rows`."""
        chosen = conjunctions_taken(self.view(), rows)
        return FactorRows(chosen.start, conjunctions_taken(self.clauses.view(), chosen.predicates.dimension))


def _starts(counts: list[int]) -> I64s:
    return np.append(0, np.cumsum(counts, dtype=np.int64))


def _numbers(clauses: I32s) -> Predicates:
    """Numbers of clauses in the form of predicates: the number is the dimension, and there are no intervals."""
    nothing = np.empty(0, np.int64)
    return Predicates(clauses, np.zeros(len(clauses), np.uint8), np.zeros(len(clauses) + 1, np.int64), nothing, nothing)
