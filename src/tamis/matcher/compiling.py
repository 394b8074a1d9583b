"""Expressions of many subscriptions to conjunctions in keys. Both stores compile with this.

expressions, rows of a table
   |  plain conjunctions: encoded together, by column       predicate_encoding
   |  all others: one by one                                compile
   v
CompiledMany --> rows of the engine, or numbers in the table of an index
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tamis.encoding.expressions.compile import Compiled, Compiler
from tamis.encoding.expressions.conjunctions import Conjunctions, canonical, joined_conjunctions
from tamis.encoding.expressions.kept_predicates import KeptPredicates
from tamis.encoding.expressions.predicate_encoding import EncodedRows, add_constants, encode_rows
from tamis.encoding.expressions.predicate_rows import ExpressionRows, PredicateRows, WrongRowsError
from tamis.encoding.expressions.predicates import predicates_of
from tamis.errors import TamisError
from tamis.kernels.numbers import I64s
from tamis.language.expression import Expression

_FEWEST_IN_BULK = 8
"""Expressions from which on laying them out in columns takes less time than compiling them one by one."""

_NO_NUMBERS = np.zeros(0, np.int64)
_NOTHING = EncodedRows(_NO_NUMBERS, Conjunctions(np.zeros(1, np.int64), predicates_of(())), _NO_NUMBERS)


class CompiledMany(NamedTuple):
    """Subscriptions in keys. Their numbers count from 0 in the order of the call; one that is never true may be missing."""

    total: int
    one_conjunction: I64s
    """Numbers of the subscriptions that are one conjunction."""
    conjunctions: Conjunctions
    """The conjunction of each of them, in canonical form."""
    others: I64s
    """Numbers of the other subscriptions."""
    compiled: list[Compiled]
    """What each of them was compiled to."""


class SubscriptionCompiler:
    """Compiles subscriptions, at most `rows_at_once` rows of a table together.

    `moves` counts how often labels have moved, which makes older keys stale.
    """

    def __init__(self, compiler: Compiler, moves: Callable[[], int], rows_at_once: int) -> None:
        self._compiler = compiler
        self._moves = moves
        self._rows_at_once = rows_at_once

    def compile(self, expressions: Sequence[Expression]) -> CompiledMany:
        fits = np.zeros(len(expressions), np.bool_)
        if len(expressions) >= _FEWEST_IN_BULK:
            fits[:] = [ExpressionRows.can_hold(expression) for expression in expressions]
        bulk, rest = np.flatnonzero(fits), np.flatnonzero(~fits)
        rows = ExpressionRows([expressions[number] for number in bulk.tolist()])
        return self._compiled(rows, bulk, [expressions[number] for number in rest.tolist()], rest)

    def compile_rows(self, rows: KeptPredicates) -> CompiledMany:
        """Compile rows of predicates, some at a time, since encoding takes several times the memory of the result.

        Raises
        ------
        WrongRowsError
        """
        if len(rows) > self._rows_at_once:
            add_constants(rows.parts(self._rows_at_once), self._compiler)
        while True:
            moves = self._moves()
            parts = self._compiled_parts(rows)
            if self._moves() == moves:
                return _joined(parts)

    def _compiled_parts(self, rows: KeptPredicates) -> list[CompiledMany]:
        parts: list[CompiledMany] = []
        errors: dict[int, TamisError] = {}
        first = 0
        for part in rows.parts(self._rows_at_once):
            try:
                parts.append(self._compiled(part, first + np.arange(len(part)), [], _NO_NUMBERS))
            except WrongRowsError as wrong:
                errors.update({first + row: error for row, error in wrong.errors.items()})
            first += len(part)
        if errors:
            raise WrongRowsError(errors)
        return parts

    def _compiled(self, rows: PredicateRows, numbers: I64s, expressions: list[Expression], rest: I64s) -> CompiledMany:
        """Compile rows and expressions, both with their numbers."""
        total = len(numbers) + len(rest)
        while True:
            moves = self._moves()
            encoded = encode_rows(rows, self._compiler) if len(rows) else _NOTHING
            left = np.ones(len(rows), np.bool_)
            left[encoded.rows] = left[encoded.never] = False
            hard = np.flatnonzero(left)
            compiled = self._compiler.compile_many([*expressions, *rows.expressions(hard.tolist())])
            # If labels moved on the way, some keys are stale. Next time all constants are known, and no label moves.
            if self._moves() == moves:
                others = np.concatenate((rest, numbers[hard]))
                # Part by part, as all at once would need the memory of another table.
                conjunctions = canonical(encoded.conjunctions)
                return CompiledMany(total, numbers[encoded.rows], conjunctions, others, compiled)


def _joined(parts: Sequence[CompiledMany]) -> CompiledMany:
    """Subscriptions that were compiled in parts. Their numbers already count on from part to part."""
    if len(parts) == 1:
        return parts[0]
    return CompiledMany(
        sum(part.total for part in parts),
        np.concatenate([part.one_conjunction for part in parts]),
        joined_conjunctions([part.conjunctions for part in parts]),
        np.concatenate([part.others for part in parts]),
        [compiled for part in parts for compiled in part.compiled],
    )


def clauses_of(compiled: Sequence[Compiled]) -> Conjunctions:
    """All clauses of some subscriptions, one after another."""
    clauses = [clause for each in compiled for clause in each.clauses]
    start = np.append(0, np.cumsum([len(clause) for clause in clauses], dtype=np.int64))
    return Conjunctions(start, predicates_of(leaf for clause in clauses for leaf in clause))
