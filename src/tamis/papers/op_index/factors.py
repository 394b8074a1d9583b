"""Conjunctions of disjunctions as factors of entries of operator lists.

    (E BETWEEN 3 AND 9 | D = 5)        becomes        (E >= 3 | D = 5) (E <= 9 | D = 5)

A predicate is a conjunction of factors of entries, see `entries`. So a disjunction of predicates is a disjunction of
conjunctions, and it is multiplied out: one factor for every choice of a factor from each predicate. A disjunction is left out
if it would become too large, or if it has IS NULL, which has no entries. Its row must then be verified.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import Bools, I32s, I64s, U8s
from tamis.papers.factor_table import FactorRows
from tamis.papers.op_index.entries import Entries, entries_of

MOST_FACTORS = 4096
"""Most factors of a row."""
MOST_ENTRIES = 1 << 16
"""Most entries of a disjunction that is multiplied out."""


class Distributed(NamedTuple):
    """Factors of entries: the i-th row has entries `start[i]` to `start[i + 1]`, grouped by their bits.

    The row has `bits` factors; `verified` says that the row has more conditions than these factors.
    """

    start: I64s
    bits: I32s
    verified: Bools
    operator: U8s
    attribute: I32s
    operand: I64s
    bit: I32s


class _Sources(NamedTuple):
    """The same, with the number of each entry that becomes an entry of the row."""

    start: I64s
    bits: I32s
    verified: Bools
    source: I64s
    bit: I32s


def distributed(rows: FactorRows) -> Distributed:
    """The factors of rows, every interval distributed over its disjunction."""
    predicates, count = rows.factors.predicates, len(rows.start) - 1
    numbers = np.arange(len(predicates.dimension) + 1)
    entries = entries_of(Conjunctions(numbers, predicates), numbers[:-1].astype(np.int32))
    start, bits, verified = np.zeros(count + 1, np.int64), np.zeros(count, np.int32), np.zeros(count, np.bool_)
    for _ in range(2):  # The first turn counts, the second writes.
        source, bit = np.empty(int(start[-1]), np.int64), np.empty(int(start[-1]), np.int32)
        _distribute(rows, entries, _Sources(start, bits, verified, source, bit))
    return Distributed(
        start, bits, verified, entries.operator[source], entries.attribute[source], entries.operand[source], bit
    )


@lean_kernel
def _distribute(rows: FactorRows, entries: Entries, made: _Sources) -> None:
    """Count the entries and factors of every row, and write the entries if there is room."""
    factors, at = rows.factors.start, 0
    for i in range(len(rows.start) - 1):
        made.start[i] = at
        used = 0
        for k in range(rows.start[i], rows.start[i + 1]):
            combinations = _combinations(entries, factors[k], factors[k + 1])
            if combinations == 0 or used + combinations > MOST_FACTORS:
                made.verified[i] = True
                continue
            for combination in range(combinations):
                rest = combination
                for p in range(factors[k], factors[k + 1]):
                    digit, rest = rest % entries.factors[p], rest // entries.factors[p]
                    for e in range(entries.start[p], entries.start[p + 1]):
                        if entries.factor[e] == digit:
                            if at < len(made.source):
                                made.source[at], made.bit[at] = e, used + combination
                            at += 1
            used += combinations
        made.bits[i] = used
    made.start[len(rows.start) - 1] = at


@inlined
def _combinations(entries: Entries, begin: int, end: int) -> int:
    """The number of factors of a disjunction of predicates; 0 if a predicate has no entries, or if there are too many."""
    combinations = 1
    for p in range(begin, end):
        if entries.verified[p]:
            return 0
        combinations = min(combinations * entries.factors[p], MOST_FACTORS + 1)
    made = 0
    for p in range(begin, end):
        made += (entries.start[p + 1] - entries.start[p]) * combinations // entries.factors[p]
    return 0 if combinations > 1 and made > MOST_ENTRIES else combinations
