"""Conjunctions whose predicates lie in columns: what `predicate_encoding` encodes in bulk.

    row            r0            r1
    start          0             2        3           predicates of row r: start[r] .. start[r + 1]
    attribute      0      1      0                    places in `attributes`
    operator       =      in     <                    places in `OPERATORS`
    value_start    0      1      4        5           literals of predicate p: value_start[p] .. value_start[p + 1]

The literals are kept by kind (`TypedValues`), each with its place among all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import ExpressionError, TamisError
from tamis.kernels.numbers import I64s
from tamis.language.expression import And, Expression, Predicate
from tamis.language.operators import Operator
from tamis.language.schema import Schema
from tamis.language.values import Kind, kind_of, to_microseconds

OPERATORS = list(Operator)
OPERATOR_CODE = {operator: code for code, operator in enumerate(OPERATORS)}


class WrongRowsError(Exception):
    """Some rows are not subscriptions. Users never see this error: they get the errors of rows."""

    def __init__(self, errors: Mapping[int, TamisError]) -> None:
        super().__init__()
        self.errors = dict(sorted(errors.items()))
        """Row -> its error. Other rows may be wrong in other ways."""


class TypedValues(NamedTuple):
    """Literals of one kind, and their places among all literals."""

    kind: Kind
    positions: I64s
    literals: Any
    """NumPy for numbers, booleans and microseconds, Arrow for strings."""


class PredicateRows(ABC):
    """Rows of predicates in columns, which can also be read one by one."""

    start: I64s
    attribute: I64s
    attributes: list[str]
    operator: I64s
    value_start: I64s
    values: list[TypedValues]

    def __len__(self) -> int:
        return len(self.start) - 1

    def rows_outside(self, schema: Schema) -> list[int]:
        """The rows that name an attribute the schema lacks, or have a literal of another kind."""
        kinds = [schema[name].kind if name in schema else None for name in self.attributes]
        wrong = np.array([kind is None for kind in kinds], np.bool_)[self.attribute]
        owner = np.repeat(np.arange(len(self.attribute)), np.diff(self.value_start))
        for kind, positions, _ in self.values:
            other = np.array([declared is not kind for declared in kinds], np.bool_)
            predicates = owner[positions]
            wrong[predicates[other[self.attribute[predicates]]]] = True
        rows: list[int] = (np.unique(np.searchsorted(self.start, np.flatnonzero(wrong), side="right")) - 1).tolist()
        return rows

    def expressions(self, rows: Iterable[int]) -> list[Expression]:
        """Some rows as expressions, with all checks.

        Raises
        ------
        WrongRowsError
            With all of these rows that are no expressions.
        """
        found, errors = [], {}
        for row in rows:
            try:
                found.append(self.expression(row))
            except ExpressionError as error:
                errors[row] = error
        if errors:
            raise WrongRowsError(errors)
        return found

    @abstractmethod
    def predicate(self, p: int) -> Predicate:
        """One predicate, with all checks."""

    @abstractmethod
    def expression(self, row: int) -> Expression:
        """One row as an expression, with all checks."""


class ExpressionRows(PredicateRows):
    """Expressions that are conjunctions of predicates, or single ones."""

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self._expressions = expressions
        self._predicates: list[Predicate] = []
        codes: dict[str, int] = {}
        start, attribute, operator, value_start = [0], [], [], [0]
        literals: list[Any] = []
        for expression in expressions:
            predicates: Any = expression.operands if isinstance(expression, And) else (expression,)
            self._predicates.extend(predicates)
            for predicate in predicates:
                attribute.append(codes.setdefault(predicate.attribute, len(codes)))
                operator.append(OPERATOR_CODE[predicate.operator])
                literals.extend(predicate.values)
                value_start.append(len(literals))
            start.append(len(attribute))
        self.start, self.attribute = np.array(start, np.int64), np.array(attribute, np.int64)
        self.attributes = list(codes)
        self.operator, self.value_start = np.array(operator, np.int64), np.array(value_start, np.int64)
        self.values = _by_type(literals)

    @staticmethod
    def can_hold(expression: Expression) -> bool:
        operands = expression.operands if isinstance(expression, And) else (expression,)
        return all(type(operand) is Predicate for operand in operands)

    def predicate(self, p: int) -> Predicate:
        return self._predicates[p]

    def expression(self, row: int) -> Expression:
        return self._expressions[row]


def _by_type(literals: list[Any]) -> list[TypedValues]:
    """Python literals as arrays. Integers and floats are kept apart, since neither array could hold both exactly."""
    by_type: dict[type, tuple[list[int], list[Any]]] = {}
    for position, literal in enumerate(literals):
        positions, values = by_type.setdefault(type(literal), ([], []))
        positions.append(position)
        values.append(literal)
    typed = []
    for cls, (positions, values) in by_type.items():
        kind = kind_of(values[0])
        assert kind is not None
        array: Any
        if cls is str:
            array = pa.array(values, pa.large_string())
        elif kind is Kind.TIMESTAMP:
            array = np.array([to_microseconds(value) for value in values], np.int64)
        else:
            array = np.array(values, {bool: np.bool_, int: np.int64, float: np.float64}[cls])
        typed.append(TypedValues(kind, np.array(positions, np.int64), array))
    return typed
