"""Predicates rewritten as entries of operator lists (section 4.2).

A predicate becomes *factors*, which must all be true. A factor has entries, of which one must be true:

    predicate                    factors
    a = 3                        (= 3)
    a IN (3, 6, 9)               (= 3 | = 6 | = 9)
    a <= 8, a >= 2               (<= 8), (>= 2)
    a BETWEEN 3 AND 12           (>= 3) (<= 12)
    a <> 3, a NOT IN (3, 6)      (!= 3), (!= 3) (!= 6)
    a NOT BETWEEN 3 AND 12       (<= 2 | >= 13)
    a IS NOT NULL                (>= lowest key)
    a in 1..3 or 7..9            (>= 1) (<= 3 | >= 7) (<= 9)      outside every gap
    a IS NULL                    none: the caller verifies it

Keys are whole numbers, so `<` and `>` are `<=` and `>=` of the neighbouring key. At most one entry of a factor
is true of one value: values are distinct and intervals disjoint. Each true entry lowers the counter of factors by one, so the
counter ends at zero exactly if all factors are true.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import Bools, I32s, I64s, U8s


class Operator(IntEnum):
    """The operators that have lists of their own."""

    EQ = 0
    LE = 1
    GE = 2
    NE = 3


OPERATORS = len(Operator)
EQ, LE, GE, NE = (int(operator) for operator in Operator)
_NONE, _ABSENT = int(Mode.NONE), int(Mode.ABSENT)


class Entries(NamedTuple):
    """The entries of some conjunctions: the i-th has entries `start[i]` to `start[i + 1]` and `factors[i]` factors.

    `factor` counts from 0 in each conjunction; `verified` says that the conjunction has conditions without a factor.
    """

    start: I64s
    factors: I32s
    verified: Bools
    operator: U8s
    attribute: I32s
    operand: I64s
    factor: I32s


def entries_of(table: Conjunctions, rows: I32s) -> Entries:
    """The entries of some rows of a table."""
    start, factors, verified = (
        np.zeros(len(rows) + 1, np.int64),
        np.zeros(len(rows), np.int32),
        np.zeros(len(rows), bool),
    )
    for _ in range(2):  # The first turn counts, the second writes.
        count = int(start[-1])
        operator, attribute, factor = np.empty(count, np.uint8), np.empty(count, np.int32), np.empty(count, np.int32)
        entries = Entries(start, factors, verified, operator, attribute, np.empty(count, np.int64), factor)
        _rewrite(table, rows, entries)
    return entries


@lean_kernel
def _rewrite(table: Conjunctions, rows: I32s, entries: Entries) -> None:
    """Count the entries of every row, and write them if there is room."""
    predicates, at = table.predicates, 0
    for i in range(len(rows)):
        entries.start[i] = at
        factor = 0
        for p in range(table.start[rows[i]], table.start[rows[i] + 1]):
            if predicates.mode[p] == _ABSENT:
                entries.verified[i] = True
                continue
            before = at
            at, factor = _rewrite_one(p, predicates, entries, at, factor)
            entries.attribute[before:at] = predicates.dimension[p]
        entries.factors[i] = factor
    entries.start[len(rows)] = at


@merged
def _rewrite_one(p: int, predicates: Predicates, entries: Entries, at: int, factor: int) -> tuple[int, int]:
    """The entries of one predicate, from place `at` and factor number `factor` on; returns the next place and number."""
    lo, hi, begin, end = predicates.lo, predicates.hi, predicates.start[p], predicates.start[p + 1]
    if predicates.mode[p] == _NONE:
        for i in range(begin, end):
            at = _put(entries, at, NE, lo[i], factor) if lo[i] == hi[i] else _outside(entries, at, lo[i], hi[i], factor)
            factor += 1
        return at, factor
    bounded = end - begin == 1 and lo[begin] != hi[begin]
    for i in range(begin, end):
        bounded |= lo[i] != hi[i] and lo[i] > KEY_MIN and hi[i] < KEY_MAX
    if not bounded:
        for i in range(begin, end):
            if lo[i] == hi[i]:
                at = _put(entries, at, EQ, lo[i], factor)
            elif lo[i] > KEY_MIN:
                at = _put(entries, at, GE, lo[i], factor)
            else:
                at = _put(entries, at, LE, hi[i], factor)
        return at, factor + 1
    before = factor
    if lo[begin] > KEY_MIN:
        at = _put(entries, at, GE, lo[begin], factor)
        factor += 1
    for i in range(begin + 1, end):
        at = _outside(entries, at, hi[i - 1] + 1, lo[i] - 1, factor)
        factor += 1
    if hi[end - 1] < KEY_MAX:
        at = _put(entries, at, LE, hi[end - 1], factor)
        factor += 1
    if factor == before:  # everything: there is a value
        at = _put(entries, at, GE, KEY_MIN, factor)
        factor += 1
    return at, factor


@inlined
def _outside(entries: Entries, at: int, lo: int, hi: int, factor: int) -> int:
    """A factor that is true outside an interval."""
    if lo > KEY_MIN:
        at = _put(entries, at, LE, lo - 1, factor)
    if hi < KEY_MAX:
        at = _put(entries, at, GE, hi + 1, factor)
    return at


@inlined
def _put(entries: Entries, at: int, operator: int, operand: int, factor: int) -> int:
    if at < len(entries.operator):
        entries.operator[at], entries.operand[at], entries.factor[at] = operator, operand, factor
    return at + 1
