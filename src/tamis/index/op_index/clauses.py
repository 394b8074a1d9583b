"""Subscriptions in conjunctive normal form, and their clauses as entries of operator lists.

    (E BETWEEN 3 AND 9 | D = 5)        becomes        (E >= 3 | D = 5) (E <= 9 | D = 5)

A predicate is clauses of entries, see `entries`, so a disjunction of predicates is a disjunction of conjunctions, which is
multiplied out: one clause for every choice of a clause of each predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.conjunctions import Conjunctions
from tamis.encoding.kernel import lean_kernel
from tamis.encoding.leaf import Leaf
from tamis.encoding.predicates import Predicates, predicates_of
from tamis.errors import CapabilityError
from tamis.index.interface import Numbers
from tamis.index.op_index.entries import Entries, entries_of
from tamis.language.expression import And, Constant, Expression

MOST_CLAUSES = 4096
"""More clauses than this, after distributing, no subscription may have."""
_TOO_MANY = f"a subscription has more than {MOST_CLAUSES} clauses when it is in conjunctive normal form"


class CnfRows(NamedTuple):
    """Subscriptions: s has clauses `start[s]` to `start[s + 1]`, clause k has predicates `clause[k]` to `clause[k + 1]`."""

    start: npt.NDArray[np.int64]
    clause: npt.NDArray[np.int64]
    predicates: Predicates

    @classmethod
    def of(cls, subscriptions: Sequence[Sequence[Sequence[Leaf]]]) -> CnfRows:
        """Subscriptions that are lists of clauses, which are lists of predicates."""
        clauses = [clause for subscription in subscriptions for clause in subscription]
        return cls(
            np.append(0, np.cumsum([len(subscription) for subscription in subscriptions], dtype=np.int64)),
            np.append(0, np.cumsum([len(clause) for clause in clauses], dtype=np.int64)),
            predicates_of(leaf for clause in clauses for leaf in clause),
        )

    @classmethod
    def of_trees(cls, trees: Iterable[Expression]) -> CnfRows:
        """Expressions as `Compiler.trees` gives them, each multiplied out."""
        return cls.of([_multiplied(tree) for tree in trees])

    @classmethod
    def of_conjunctions(cls, table: Conjunctions) -> CnfRows:
        """Conjunctions: every predicate is a clause, IN one of several equalities."""
        return cls(table.start, np.arange(len(table.predicates.dimension) + 1), table.predicates)


class Distributed(NamedTuple):
    """Clauses of entries: those of the i-th subscription are `start[i]` to `start[i + 1]`, grouped by their bits."""

    start: npt.NDArray[np.int64]
    bits: npt.NDArray[np.int32]
    verified: npt.NDArray[np.bool_]
    entry: npt.NDArray[np.int64]
    bit: npt.NDArray[np.int32]
    entries: Entries


def distributed(rows: CnfRows, chosen: Numbers) -> Distributed:
    """The clauses of some subscriptions with every interval distributed over its disjunction."""
    count = len(rows.predicates.dimension)
    each = Conjunctions(np.arange(count + 1), rows.predicates)
    entries = entries_of(each, np.arange(count, dtype=np.int32))
    start = np.zeros(len(chosen) + 1, np.int64)
    bits, verified = np.zeros(len(chosen), np.int32), np.zeros(len(chosen), np.bool_)
    made: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]] = np.empty(0, np.int64), np.empty(0, np.int32)
    _distribute(rows.start, rows.clause, chosen, entries, (start, bits, verified), made, False)
    if (bits > MOST_CLAUSES).any():
        raise CapabilityError(_TOO_MANY)
    made = np.empty(int(start[-1]), np.int64), np.empty(int(start[-1]), np.int32)
    _distribute(rows.start, rows.clause, chosen, entries, (start, bits, verified), made, True)
    return Distributed(start, bits, verified, *made, entries)


def _multiplied(tree: Expression) -> list[list[Leaf]]:
    """The clauses of a tree of leaves: none if it is TRUE, an empty one if it is FALSE."""
    if isinstance(tree, Leaf):
        return [[tree]]
    if isinstance(tree, Constant):
        return [] if tree.value else [[]]
    parts = [_multiplied(operand) for operand in tree.operands]
    if isinstance(tree, And):
        return [clause for clauses in parts for clause in clauses]
    if prod(map(len, parts)) > MOST_CLAUSES:
        raise CapabilityError(_TOO_MANY)
    return [list(dict.fromkeys(leaf for clause in chosen for leaf in clause)) for chosen in product(*parts)]


@lean_kernel
def _distribute(start: Any, clause: Any, chosen: Any, entries: Any, rows: Any, made: Any, write: bool) -> None:
    """Count the entries and clauses of every subscription, or write them."""
    e_start, e_clauses, e_verified, _, _, _, e_clause = entries
    row_start, row_bits, row_verified = rows
    sources, bits = made
    at = 0
    for i in range(len(chosen)):
        row_start[i] = at
        bit = 0
        for k in range(start[chosen[i]], start[chosen[i] + 1]):
            combinations = 1
            for p in range(clause[k], clause[k + 1]):
                combinations = min(combinations * (0 if e_verified[p] else max(e_clauses[p], 1)), MOST_CLAUSES + 1)
            row_verified[i] |= combinations == 0
            if bit + combinations > MOST_CLAUSES:
                bit = MOST_CLAUSES + 1
                break
            for combination in range(combinations):
                rest = combination
                for p in range(clause[k], clause[k + 1]):
                    digit, rest = rest % max(e_clauses[p], 1), rest // max(e_clauses[p], 1)
                    for e in range(e_start[p], e_start[p + 1]):
                        if e_clause[e] == digit:
                            if write:
                                sources[at], bits[at] = e, bit + combination
                            at += 1
            bit += combinations
        row_bits[i] = bit
    row_start[len(chosen)] = at
