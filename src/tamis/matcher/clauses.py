"""Expressions to rows of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.expressions.compile import Compiled, Compiler
from tamis.encoding.expressions.conjunctions import Conjunctions, canonical
from tamis.encoding.expressions.predicate_encoding import encode_rows
from tamis.encoding.expressions.predicate_rows import ExpressionRows, PredicateRows
from tamis.encoding.expressions.predicates import predicates_of
from tamis.encoding.expressions.programs import ACCEPT, ProgramTable
from tamis.engine.rows import Rows, concatenated
from tamis.language.expression import Expression

# Below this, laying expressions out in columns costs more than compiling them one by one.
_FEWEST_IN_BULK = 8


class ClauseRows(NamedTuple):
    """Rows whose slots are numbers of subscriptions, counted from 0 in the order in which they were given."""

    rows: Rows
    subscriptions: int

    def of_slots(self, slots: npt.NDArray[np.int32]) -> Rows:
        """The rows, owned by slots."""
        return self.rows._replace(slot=slots[self.rows.slot])


class RowCompiler:
    """Compiles expressions to rows. `moves` counts how often labels have moved, which makes keys stale."""

    def __init__(self, compiler: Compiler, moves: Callable[[], int]) -> None:
        self._compiler = compiler
        self._moves = moves

    def compile(self, expressions: Sequence[Expression]) -> ClauseRows:
        if len(expressions) < _FEWEST_IN_BULK:
            return ClauseRows(self._each(expressions, np.arange(len(expressions))), len(expressions))
        # Most subscriptions are plain conjunctions, and those are encoded together.
        plain = np.array([ExpressionRows.can_hold(expression) for expression in expressions], np.bool_)
        bulk, rest = np.flatnonzero(plain), np.flatnonzero(~plain)
        others = [expressions[row] for row in rest.tolist()]
        while True:
            moves = self._moves()
            apart = [self._each(others, rest)] if others else []
            together = self.compile_rows(ExpressionRows([expressions[row] for row in bulk.tolist()])).rows
            together = together._replace(slot=bulk[together.slot].astype(np.int32))
            if self._moves() == moves:
                return ClauseRows(concatenated([together, *apart]), len(expressions))

    def compile_rows(self, rows: PredicateRows) -> ClauseRows:
        """Compile rows of predicates.

        Raises
        ------
        WrongRowsError
        """
        while True:
            moves = self._moves()
            encoded = encode_rows(rows, self._compiler)
            left = np.ones(len(rows), np.bool_)
            left[encoded.rows] = left[encoded.never] = False
            others = np.flatnonzero(left)
            expressions = rows.expressions(others.tolist())
            apart = [self._each(expressions, others)] if expressions else []
            # Should labels have moved on the way, keys were made that are stale now; all constants are known by then.
            if self._moves() == moves:
                break
        plain = _plain_rows(canonical(encoded.conjunctions), encoded.rows)
        return ClauseRows(concatenated([plain, *apart]), len(rows))

    def _each(self, expressions: Sequence[Expression], numbers: npt.NDArray[np.int64]) -> Rows:
        """The rows of expressions with these numbers, compiled one by one."""
        compiled = self._compiler.compile_many(expressions)
        clauses = [clause for each in compiled for clause in each.clauses]
        start = np.append(0, np.cumsum([len(clause) for clause in clauses], dtype=np.int64))
        table = Conjunctions(start, predicates_of(leaf for clause in clauses for leaf in clause))
        counts = np.array([len(each.clauses) for each in compiled], np.int64)
        programs = ProgramTable()
        program = np.array([_program(each, programs) for each in compiled], np.int64)
        return Rows(
            canonical(table),
            np.repeat(numbers, counts).astype(np.int32),
            np.repeat(program, counts),
            np.repeat(counts > 1, counts),
            programs.view(),
        )


def _program(compiled: Compiled, programs: ProgramTable) -> int:
    return ACCEPT if compiled.tree is None else programs.add(compiled.tree)


def _plain_rows(table: Conjunctions, numbers: npt.NDArray[np.int64]) -> Rows:
    count = len(numbers)
    return Rows(
        table,
        numbers.astype(np.int32),
        np.full(count, ACCEPT, np.int64),
        np.zeros(count, np.bool_),
        ProgramTable().view(),
    )
