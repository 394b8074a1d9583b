"""Adding many subscriptions at once: all or none of them, or only the right ones.

A row is the place of a subscription in the call. Each check rejects the rows that are wrong (`Rejections`), which raises their
error or collects it. The last step changes the store, in one call, with the rows that no check rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tamis.encoding.columns import chosen_rows, combined, is_text
from tamis.encoding.expressions.kept_predicates import KeptPredicates
from tamis.encoding.expressions.predicate_rows import WrongRowsError
from tamis.encoding.expressions.predicate_table import PredicateTable, check_predicates_type, read_predicates
from tamis.errors import (
    CapabilityError,
    DuplicateIdError,
    ExpressionError,
    IdTypeError,
    OptionError,
    TableError,
    TamisError,
)
from tamis.kernels.numbers import I64s
from tamis.language.expression import Expression
from tamis.language.values import is_iterable
from tamis.matcher.collecting import paused_collector
from tamis.matcher.event_input import arrow_errors
from tamis.matcher.expression_reader import ExpressionReader, kept
from tamis.matcher.expression_store import ExpressionBlock, GivenExpressions, TableRows
from tamis.matcher.ids import Id, list_of_ids
from tamis.matcher.options import list_of_weights, plain_weight, weights_of
from tamis.matcher.rejected import Rejected, Rejections
from tamis.matcher.store import Store
from tamis.matcher.unused_memory import give_back

T = TypeVar("T")


def add_expressions(
    store: Store[Any], reader: ExpressionReader, ids: Any, expressions: Any, weights: Any, on_error: object
) -> list[Rejected]:
    """Add expressions of any form to a store that the caller is changing; returns the rejected ones."""
    addition = _Addition(store, reader, list_of_ids(ids), on_error)
    addition.check_ids()
    given = list_of_expressions(expressions, addition.count)
    addition.weigh(weights)
    with paused_collector():
        return addition.add(given)


def add_rows(store: Store[Any], reader: ExpressionReader, table: pa.Table, on_error: object) -> list[Rejected]:
    """The same for the rows of a table, see `Matcher.add_table`."""
    form = _form_of(table)
    ids, wrong_ids = _ids_of(table.column("id"))
    weights = weights_of(table.column("weight")) if "weight" in table.column_names else None
    addition = _Addition(store, reader, ids, on_error)
    addition.reject(wrong_ids)
    addition.check_ids()
    addition.weigh(weights)
    if form == "predicates":
        return addition.add_predicates(table.column(form))
    texts, wrong_texts = _texts_of(table.column(form))
    addition.reject(wrong_texts)
    with paused_collector():
        return addition.add(texts)


class _Addition:
    """The subscriptions of one call on their way into a store."""

    def __init__(self, store: Store[Any], reader: ExpressionReader, ids: list[Any], on_error: object) -> None:
        self._store = store
        self._reader = reader
        self._ids = ids
        """The given ids; `check_ids` makes them plain str or int."""
        self._rejections = Rejections(on_error, ids)
        self._rows: Sequence[int] = range(len(ids))
        self._weights = np.zeros(len(ids))
        self.count = len(ids)

    def reject(self, errors: dict[int, TamisError]) -> None:
        """Reject some of the rows.

        Raises
        ------
        TamisError
        """
        if errors:
            self._rejections.reject_all(errors)
            self._rows = [row for row in self._rows if row not in errors]

    def check_ids(self) -> None:
        """Raises `DuplicateIdError` or `IdTypeError`, unless errors are collected."""
        if len(self._rows) == len(self._ids):
            try:
                self._ids = list(self._store.ids.check_new(self._ids))
                return
            except (DuplicateIdError, IdTypeError):
                if not self._rejections.collects:
                    raise
        right, errors = self._store.ids.check_each(self._ids)
        self.reject(errors)
        self._ids = [right.get(row, given) for row, given in enumerate(self._ids)]

    def weigh(self, given: Any) -> None:
        """Take the weights of all rows; None means weight 0.

        Raises
        ------
        OptionError
        """
        if given is None:
            return
        listed = list_of_weights(given, self.count)
        errors: dict[int, TamisError] = {}
        for row in self._rows:
            try:
                self._weights[row] = plain_weight(listed[row])
            except OptionError as error:
                errors[row] = error
        self.reject(errors)

    def add(self, given: Sequence[Any]) -> list[Rejected]:
        """Add the expressions of the rows that are right.

        Raises
        ------
        ExpressionError, CapabilityError
        """
        read = self._read(given)
        clauses = self._compiled(lambda rows: self._store.compile([read[row] for row in rows]))
        return self._enter(clauses, GivenExpressions([kept(given[row], read[row]) for row in self._rows]))

    def _read(self, given: Sequence[Any]) -> dict[int, Expression]:
        """The expressions of the rows that are right, by row."""
        read: dict[int, Expression] = {}
        errors: dict[int, TamisError] = {}
        for row in self._rows:
            try:
                read[row] = self._reader.read(given[row])
            except ExpressionError as error:
                error.subscription = self._ids[row]
                if not self._rejections.collects:
                    raise
                errors[row] = error
        self.reject(errors)
        return read

    def add_predicates(self, column: pa.ChunkedArray) -> list[Rejected]:
        """Add the rows that are right of a column in predicate form.

        Raises
        ------
        TableError, ExpressionError, CapabilityError
        """
        check_predicates_type(column.type)

        def compiled(rows: Sequence[int]) -> tuple[KeptPredicates, Any]:
            kept = KeptPredicates(self._table(column, rows))
            self._give_back()
            return kept, self._store.compile_rows(kept)

        kept, clauses = self._compiled(compiled)
        return self._enter(clauses, TableRows(kept))

    def _table(self, column: pa.ChunkedArray, rows: Sequence[int]) -> PredicateTable:
        """Some rows, taken apart and held against the schema.

        Raises
        ------
        WrongRowsError, TableError
        """
        table = read_predicates(chosen_rows(column, _places(rows)))
        errors: dict[int, TamisError] = {}
        for place in [] if self._reader.schema is None else table.rows_outside(self._reader.schema):
            try:
                self._reader.check(table.expression(place))
            except ExpressionError as error:
                errors[place] = error
        if errors:
            raise WrongRowsError(errors)
        return table

    def _compiled(self, compile_some: Callable[[Sequence[int]], T]) -> T:
        """The rows that are right, compiled; all others are rejected.

        Raises
        ------
        TableError, ExpressionError, CapabilityError
            If errors are not collected.
        """
        while True:
            try:
                return compile_some(self._rows)
            except WrongRowsError as wrong:
                self.reject(self._errors(self._rows, wrong))
            except (CapabilityError, TableError, UnicodeDecodeError, pa.ArrowException):
                errors = self._wrong_among(self._rows, compile_some) if self._rejections.collects else {}
                if not errors:
                    raise
                self.reject(errors)

    def _wrong_among(self, rows: Sequence[int], compile_some: Callable[[Sequence[int]], T]) -> dict[int, TamisError]:
        """The rows that cannot be compiled. If an error does not say which rows it is about, they are found by halves."""
        try:
            with arrow_errors():
                compile_some(rows)
        except WrongRowsError as wrong:
            return self._errors(rows, wrong)
        except (CapabilityError, TableError) as error:
            half = len(rows) // 2
            if half:
                return self._wrong_among(rows[:half], compile_some) | self._wrong_among(rows[half:], compile_some)
            return {rows[0]: TableError(error.reason, row=rows[0]) if isinstance(error, TableError) else error}
        return {}

    def _errors(self, rows: Sequence[int], wrong: WrongRowsError) -> dict[int, TamisError]:
        """The errors by row of the call."""
        errors: dict[int, TamisError] = {}
        for place, error in wrong.errors.items():
            row = rows[place]
            if isinstance(error, TableError):
                error = TableError(error.reason, row=row)
            elif isinstance(error, ExpressionError):
                error.subscription = self._ids[row]
            errors[row] = error
        return errors

    def _enter(self, clauses: Any, block: ExpressionBlock) -> list[Rejected]:
        identifiers: list[Id] = [self._ids[row] for row in self._rows]
        self._give_back()
        self._store.add(identifiers, clauses, block, self._weights[_places(self._rows)])
        self._give_back()
        return self._rejections.listed()

    def _give_back(self) -> None:
        """Give back what the last step of a large call took: the next step takes as much."""
        if len(self._rows) > self._store.limits.rows_at_once:
            give_back()


def _places(rows: Sequence[int]) -> I64s:
    return np.arange(rows.start, rows.stop) if isinstance(rows, range) else np.array(rows, np.int64)


def list_of_expressions(expressions: Any, count: int) -> list[Any]:
    if not is_iterable(expressions):
        raise ExpressionError(
            f"expressions must be a list with one entry for each id, not {type(expressions).__name__}"
        )
    given = list(expressions)
    if len(given) != count:
        raise ExpressionError(f"ids and expressions differ in number: {count} and {len(given)}")
    return given


def _form_of(table: pa.Table) -> str:
    """The column that has the expressions."""
    names = table.column_names
    forms = [name for name in ("expression", "predicates") if names.count(name) == 1]
    if names.count("id") != 1 or len(forms) != 1 or names.count("weight") > 1:
        raise TableError(
            f"the columns must be 'id', either 'expression' or 'predicates', and perhaps 'weight'; they are {names}"
        )
    return forms[0]


def _texts_of(column: pa.ChunkedArray) -> tuple[list[Any], dict[int, TamisError]]:
    if not is_text(column.type):
        raise TableError(f"the column 'expression' must be strings, not {column.type}")
    return _values_of(column, "expression")


def _ids_of(column: pa.ChunkedArray) -> tuple[list[Any], dict[int, TamisError]]:
    if not (is_text(column.type) or pa.types.is_integer(column.type)):
        raise TableError(f"the column 'id' must be strings or integers, not {column.type}")
    return _values_of(column, "id")


def _values_of(column: pa.ChunkedArray, name: str) -> tuple[list[Any], dict[int, TamisError]]:
    """The values of a column, and the errors of rows whose value is null or not UTF-8."""
    values: list[Any]
    errors: dict[int, TamisError] = {}
    try:
        values = combined(column).to_pylist()
    except UnicodeDecodeError:
        values = []
        for row, scalar in enumerate(column):
            try:
                values.append(scalar.as_py())
            except UnicodeDecodeError as error:
                values.append(None)
                errors[row] = TableError(f"{name}: a string is not UTF-8: {error}", row=row)
    if column.null_count:
        nulls = {row: TableError(f"{name} is null", row=row) for row, value in enumerate(values) if value is None}
        errors = nulls | errors
    return values, errors
