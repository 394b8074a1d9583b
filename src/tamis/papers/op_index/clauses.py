"""Conjunctions of disjunctions as clauses of entries of operator lists.

    (E BETWEEN 3 AND 9 | D = 5)        becomes        (E >= 3 | D = 5) (E <= 9 | D = 5)

A predicate is a conjunction of clauses of entries, see `entries`. So a disjunction of predicates is a disjunction of
conjunctions, and it is multiplied out: one clause for every choice of a clause from each predicate. A disjunction is left out
if it would become too large, or if it has IS NULL, which has no entries. Its row must then be verified.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.papers.clause_table import FactorRows
from tamis.papers.op_index.entries import Entries, entries_of

MOST_CLAUSES = 4096
"""Most clauses of a row."""
MOST_ENTRIES = 1 << 16
"""Most entries of a disjunction that is multiplied out."""


class Distributed(NamedTuple):
    """Clauses of entries: the i-th row has entries `start[i]` to `start[i + 1]`, grouped by their bits.

    The row has `bits` clauses; `verified` says that the row has more conditions than these clauses.
    """

    start: npt.NDArray[np.int64]
    bits: npt.NDArray[np.int32]
    verified: npt.NDArray[np.bool_]
    operator: npt.NDArray[np.uint8]
    attribute: npt.NDArray[np.int32]
    operand: npt.NDArray[np.int64]
    bit: npt.NDArray[np.int32]


def distributed(rows: FactorRows) -> Distributed:
    """The clauses of rows, every interval distributed over its disjunction."""
    predicates = rows.clauses.predicates
    count = len(predicates.dimension)
    entries = entries_of(Conjunctions(np.arange(count + 1), predicates), np.arange(count, dtype=np.int32))
    start = np.zeros(len(rows.start), np.int64)
    bits, verified = np.zeros(len(start) - 1, np.int32), np.zeros(len(start) - 1, np.bool_)
    source, bit = np.empty(0, np.int64), np.empty(0, np.int32)
    _distribute(rows.start, rows.clauses.start, entries, start, bits, verified, source, bit, False)
    source, bit = np.empty(int(start[-1]), np.int64), np.empty(int(start[-1]), np.int32)
    _distribute(rows.start, rows.clauses.start, entries, start, bits, verified, source, bit, True)
    columns: Entries = entries
    return Distributed(
        start, bits, verified, columns.operator[source], columns.attribute[source], columns.operand[source], bit
    )


@lean_kernel
def _distribute(
    rows: Any, clauses: Any, entries: Any, start: Any, bits: Any, verified: Any, source: Any, bit: Any, write: bool
) -> None:
    """Count the entries and clauses of every row, or write them: the source of each entry, and its bit."""
    at = 0
    for i in range(len(rows) - 1):
        start[i] = at
        used = 0
        for k in range(rows[i], rows[i + 1]):
            combinations = _combinations(entries, clauses[k], clauses[k + 1])
            if combinations == 0 or used + combinations > MOST_CLAUSES:
                verified[i] = True
                continue
            for combination in range(combinations):
                rest = combination
                for p in range(clauses[k], clauses[k + 1]):
                    digit, rest = rest % entries.clauses[p], rest // entries.clauses[p]
                    for e in range(entries.start[p], entries.start[p + 1]):
                        if entries.clause[e] == digit:
                            if write:
                                source[at], bit[at] = e, used + combination
                            at += 1
            used += combinations
        bits[i] = used
    start[len(rows) - 1] = at


@inlined
def _combinations(entries: Any, begin: int, end: int) -> int:
    """The number of clauses of a disjunction of predicates; 0 if a predicate has no entries, or if there are too many."""
    combinations = 1
    for p in range(begin, end):
        if entries.verified[p]:
            return 0
        combinations = min(combinations * entries.clauses[p], MOST_CLAUSES + 1)
    made = 0
    for p in range(begin, end):
        made += (entries.start[p + 1] - entries.start[p]) * combinations // entries.clauses[p]
    return 0 if combinations > 1 and made > MOST_ENTRIES else combinations
