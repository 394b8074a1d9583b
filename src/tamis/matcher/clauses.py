"""Compiled subscriptions to rows of the engine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.expressions.conjunctions import canonical
from tamis.encoding.expressions.programs import ACCEPT, NO_PROGRAMS, ProgramTable
from tamis.engine.rows import Rows, concatenated
from tamis.kernels.numbers import I32s
from tamis.matcher.compiling import CompiledMany, clauses_of


class ClauseRows(NamedTuple):
    """Rows whose slots are numbers of subscriptions, counted from 0 in the order of the call."""

    rows: Rows
    subscriptions: int

    def of_slots(self, slots: I32s) -> Rows:
        """The rows, owned by slots."""
        return self.rows._replace(slot=slots[self.rows.slot])


def clause_rows(compiled: CompiledMany) -> ClauseRows:
    """The rows of compiled subscriptions."""
    first = [_rows_of_one(compiled)] if len(compiled.one_conjunction) or not compiled.compiled else []
    others = [_other_rows(compiled)] if compiled.compiled else []
    return ClauseRows(concatenated(first + others), compiled.total)


def _rows_of_one(compiled: CompiledMany) -> Rows:
    """The rows of subscriptions that are one conjunction."""
    count = len(compiled.one_conjunction)
    return Rows(
        compiled.conjunctions,
        compiled.one_conjunction.astype(np.int32),
        np.full(count, ACCEPT, np.int64),
        np.zeros(count, np.bool_),
        NO_PROGRAMS,
    )


def _other_rows(compiled: CompiledMany) -> Rows:
    programs = ProgramTable()
    program = [ACCEPT if each.tree is None else programs.add(each.tree) for each in compiled.compiled]
    counts = np.array([len(each.clauses) for each in compiled.compiled], np.int64)
    return Rows(
        canonical(clauses_of(compiled.compiled)),
        np.repeat(compiled.others, counts).astype(np.int32),
        np.repeat(np.array(program, np.int64), counts),
        np.repeat(counts > 1, counts),
        programs.view(),
    )
