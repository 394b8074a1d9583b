"""What segments must find, computed by NumPy on whole columns: slower than the engine, faster than a loop over leaves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import Conjunctions, canonical
from tamis.encoding.expressions.programs import ACCEPT, NO_PROGRAMS
from tamis.engine.rows import Rows
from tests.papers.naive import Event, rows_of


class Columns:
    """The predicates of a table by dimension. An event is compared only with predicates on its own dimensions."""

    def __init__(self, table: Conjunctions) -> None:
        predicates = table.predicates
        self._start = table.start
        self._dimension = predicates.dimension
        self._absent = predicates.mode == Mode.ABSENT
        self._some = predicates.mode == Mode.SOME
        owner = np.repeat(np.arange(len(predicates.dimension)), np.diff(predicates.start))
        order = np.argsort(predicates.dimension[owner], kind="stable")
        self._owner, self._lo, self._hi = owner[order], predicates.lo[order], predicates.hi[order]
        self._sorted = predicates.dimension[owner][order]

    def true_of(self, event: Event) -> npt.NDArray[np.bool_]:
        """Which conjunctions an event satisfies."""
        met = np.zeros(len(self._dimension), np.bool_)
        for dimension, values in event.items():
            first, last = np.searchsorted(self._sorted, [dimension, dimension + 1])
            lo, hi = self._lo[first:last], self._hi[first:last]
            for low, high in values:
                met[self._owner[first:last][(lo <= high) & (low <= hi)]] = True
        present = np.isin(self._dimension, [dimension for dimension, values in event.items() if values])
        holds = np.where(self._absent, ~present, present & (met == self._some))
        wrong = np.append(0, np.cumsum(~holds))
        all_hold: npt.NDArray[np.bool_] = wrong[self._start[1:]] == wrong[self._start[:-1]]
        return all_hold


def rows_with(clauses: list[list[Leaf]], slots: npt.NDArray[np.int32] | None = None) -> Rows:
    """Plain conjunctions as rows of the engine. Their slots are 0, 1, 2 and so on, unless `slots` is given."""
    count = len(clauses)
    own = np.arange(count, dtype=np.int32) if slots is None else slots
    return rows_of_table(canonical(rows_of(clauses)), own)


def rows_of_table(table: Conjunctions, slots: npt.NDArray[np.int32]) -> Rows:
    return Rows(table, slots, np.full(len(slots), ACCEPT, np.int64), np.zeros(len(slots), np.bool_), NO_PROGRAMS)
