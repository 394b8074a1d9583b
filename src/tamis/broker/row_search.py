"""The rows of columns in which an expression is TRUE.

A predicate is decided for all values of a column at once, with its three truths:

    TRUE       a value of the row satisfies it
    known      the row has a value of the literal's kind; without one, the predicate is UNKNOWN
    FALSE      known, and not TRUE

Operands of AND are decided one after another, fast ones first. Each is decided only for the rows that are left. So a regular
expression over a million strings searches few of them if another predicate leaves few rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tamis.broker.number_spans import reaches, spans_of, stays_below, within
from tamis.broker.strings import cost, satisfying
from tamis.broker.valid_columns import ENDS, POINTS, Column, Columns, Form
from tamis.kernels.numbers import Bools
from tamis.language.expression import (
    And,
    CasePredicate,
    Constant,
    Expression,
    Not,
    Or,
    Predicate,
    TruthTest,
    all_of,
    any_of,
)
from tamis.language.normal import negated_literal
from tamis.language.operators import NULL_TESTS, POSITIVE, SETS, Operator
from tamis.language.values import Kind, kind_of

_FEWER = {1: 16, 2: 4, 3: 1}
"""By cost: how many times fewer rows than strings must be left so that looking up their strings pays."""
_TRUE, _FALSE, _UNKNOWN = frozenset({True}), frozenset({False}), frozenset({None})
_KNOWN = _TRUE | _FALSE


class RowSearch:
    """Searches the rows of columns."""

    def __init__(self, columns: Columns, count: int) -> None:
        self._columns = columns
        self._count = count
        """How many rows there are."""

    def true(self, node: Expression, among: Bools) -> Bools:
        """The rows among some in which an expression in negation normal form is TRUE."""
        match node:
            case Constant():
                return among if node.value else self._none()
            case And():
                for operand in self._fast_first(node.operands):
                    among = self.true(operand, among)
                return among
            case Or():
                found = self._none()
                for operand in self._fast_first(node.operands):
                    found |= self.true(operand, among & ~found)
                return found
            case TruthTest(operand=Predicate() as predicate):
                return self._accepted(predicate, node.accepted, among)
            case Not(operand=Predicate() as predicate):
                return self._accepted(predicate, _FALSE, among)
            case Predicate():
                positive = POSITIVE.get(node.operator)
                if positive is None or node.operator in NULL_TESTS:
                    return self._accepted(node, _TRUE, among)
                return self._accepted(node.with_operator(positive), _FALSE, among)
        raise AssertionError(f"not in negation normal form, or with earlier events: {node}")

    def _none(self) -> Bools:
        return np.zeros(self._count, np.bool_)

    def _fast_first(self, operands: Iterable[Expression]) -> list[Expression]:
        return sorted(operands, key=self._cost)

    def _cost(self, node: Expression) -> int:
        if not isinstance(node, Predicate):
            return max(map(self._cost, node.operands), default=0)
        column = self._columns.get((node.attribute, Form.STRING))
        return 0 if column is None else cost(node, column.strings)

    def _accepted(self, predicate: Predicate, truths: frozenset[bool | None], among: Bools) -> Bools:
        """The rows among some in which a positive predicate has one of some truths."""
        if predicate.operator in NULL_TESTS:
            is_present = self._present(predicate.attribute)
            return among & (is_present if predicate.operator is Operator.IS_NOT_NULL else ~is_present)
        if len(predicate.kinds) > 1:
            return self._of_several_kinds(predicate, truths, among)
        if truths in (_UNKNOWN, _KNOWN):
            is_known = self._known(predicate)
            return among & (~is_known if None in truths else is_known)
        is_true = self._true(predicate, among)
        if truths == {True, None}:
            return among & (is_true | ~self._known(predicate))
        if truths == {False, None}:
            return among & ~is_true
        return among & is_true if True in truths else among & self._known(predicate) & ~is_true

    def _of_several_kinds(self, predicate: Predicate, truths: frozenset[bool | None], among: Bools) -> Bools:
        """An IN with literals of several kinds is an OR over the kinds."""
        assert predicate.operator in SETS
        assert len(truths) == 1
        parts = [
            predicate.with_literals([value for value in predicate.values if kind_of(value) is kind])
            for kind in predicate.kinds
        ]
        return self.true(any_of(*parts) if True in truths else all_of(*map(negated_literal, parts)), among)

    def _present(self, attribute: str) -> Bools:
        return self._having(column for _, column in self._columns.present(attribute))

    def _having(self, columns: Iterable[Column]) -> Bools:
        """The rows that have an entry in one of some columns."""
        found = self._none()
        for column in columns:
            if column.is_full(self._count):
                return np.ones(self._count, np.bool_)
            found[column.rows] = True
        return found

    def _known(self, predicate: Predicate) -> Bools:
        """The rows with a value of the kind that a predicate asks about."""
        (kind,) = predicate.kinds
        forms = [POINTS[kind], *ENDS.get(kind, ())[:1]]
        columns = [column for form in forms if (column := self._columns.get((predicate.attribute, form))) is not None]
        if predicate.operator is not Operator.IP_IN:
            return self._having(columns)
        found = self._none()
        for column in columns:
            column.mark(column.chosen_strings(column.strings.addresses().family > 0), found)
        return found

    def _true(self, predicate: Predicate, among: Bools) -> Bools:
        """The rows in which a positive predicate with literals of one kind is TRUE. Rows not among some may be missing."""
        (kind,) = predicate.kinds
        column = self._columns.get((predicate.attribute, POINTS[kind]))
        found = self._none()
        if kind is Kind.STRING:
            if column is not None:
                self._mark_strings(predicate, column, among, found)
        elif kind is Kind.BOOLEAN:
            if column is not None:
                column.mark(np.isin(column.values, np.array(predicate.values, np.bool_)), found)
        else:
            spans = spans_of(predicate.operator, predicate.values, kind)
            if column is not None:
                column.mark(within(spans, column.values, column.rests), found)
            lowest, highest = (self._columns.get((predicate.attribute, form)) for form in ENDS[kind])
            if lowest is not None and highest is not None:
                for low, high in spans:
                    is_below = stays_below(high, lowest.values, lowest.rests)
                    lowest.mark(is_below & reaches(low, highest.values, highest.rests), found)
        return found

    def _pays(self, cost: int, among: Bools, strings: int) -> bool:
        """Whether looking up the strings of some rows is faster than deciding on all strings."""
        return cost > 0 and _FEWER[cost] * int(np.count_nonzero(among)) < strings

    def _mark_strings(self, predicate: Predicate, column: Column, among: Bools, found: Bools) -> None:
        literals: list[Any] = list(predicate.values)
        strings = column.strings
        is_chosen = np.zeros(len(strings), np.bool_)
        if predicate.operator in (Operator.EQ, Operator.IN) and not isinstance(predicate, CasePredicate):
            wanted = strings.codes(literals)
            if len(wanted) == 1:
                column.mark(np.equal(column.values, wanted[0]), found)
                return
            is_chosen[wanted] = True
        elif self._pays(cost(predicate, strings), among, len(strings)):
            entries = column.entries(among)
            is_satisfied = satisfying(predicate, literals, strings, column.values[entries])
            found[column.rows[entries[is_satisfied]]] = True
            return
        else:
            is_chosen = satisfying(predicate, literals, strings)
        column.mark(column.chosen_strings(is_chosen), found)
