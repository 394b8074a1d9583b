"""Arrow tables of subscriptions in predicate form, taken apart.

A row is a conjunction: ``predicates: list<struct<attribute: string, operator: string, values: list<V>>>``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import combined, is_text, is_variant, kind_and_values, plain_texts
from tamis.encoding.expressions.predicate_rows import (
    OPERATOR_CODE,
    OPERATORS,
    PredicateRows,
    TypedValues,
    WrongRowsError,
)
from tamis.errors import EventError, ExpressionError, TableError
from tamis.kernels.numbers import I64s
from tamis.language.expression import Expression, Predicate, all_of
from tamis.language.operators import read_operator
from tamis.language.values import Kind, from_microseconds


class PredicateTable(PredicateRows):
    """A column of conjunctions, taken out of its lists."""

    def __init__(
        self, start: I64s, attribute: pa.Array, operator: pa.Array, value_start: I64s, values: pa.Array
    ) -> None:
        attributes = pc.dictionary_encode(attribute)
        self.start = start
        self.attribute = attributes.indices.to_numpy().astype(np.int64)
        self.attributes = attributes.dictionary.to_pylist()
        nameless = np.array([not name for name in self.attributes], np.bool_)[self.attribute]
        if nameless.any():
            raise _wrong(_rows_of(np.flatnonzero(nameless), start), "an attribute's name cannot be empty")
        self.operator = _operators(pc.dictionary_encode(operator), start)
        self.value_start = value_start
        self.values = list(self._typed(values))

    @classmethod
    def of_parts(
        cls,
        start: I64s,
        attribute: npt.NDArray[Any],
        attributes: list[str],
        operator: npt.NDArray[Any],
        value_start: I64s,
        values: list[TypedValues],
    ) -> PredicateTable:
        """A table from the parts that another one has."""
        table = cls.__new__(cls)
        table.start, table.attribute, table.attributes = start, attribute, attributes
        table.operator, table.value_start, table.values = operator, value_start, values
        return table

    def predicate(self, p: int) -> Predicate:
        first, last = int(self.value_start[p]), int(self.value_start[p + 1])
        literals: list[Any] = [None] * (last - first)
        for kind, positions, typed in self.values:
            for at in range(*np.searchsorted(positions, (first, last))):
                place = int(positions[at]) - first
                if literals[place] is not None:
                    raise ExpressionError("a value must set one field, not several")
                literals[place] = _literal(kind, typed[at])
        return Predicate(self.attributes[self.attribute[p]], OPERATORS[self.operator[p]], literals)

    def expression(self, row: int) -> Expression:
        return all_of(*[self.predicate(p) for p in range(self.start[row], self.start[row + 1])])

    def _typed(self, values: pa.Array) -> Iterator[TypedValues]:
        for part in values.flatten() if is_variant(values.type) else [values]:
            if pa.types.is_null(part.type):
                continue
            decoded = plain_texts(part)
            positions = np.flatnonzero(decoded.is_valid().to_numpy(zero_copy_only=False))
            try:
                kind, literals = kind_and_values("values", decoded.drop_null(), positions)
            except EventError as error:
                reason = f"a literal is wrong: {error.reason}"
                if error.rows is None:
                    raise TableError(reason) from None
                owners = np.searchsorted(self.value_start, error.rows, side="right") - 1
                raise _wrong(_rows_of(owners, self.start), reason) from None
            yield TypedValues(kind, positions, literals)


def _literal(kind: Kind, typed: Any) -> Any:
    """A literal as Python has it."""
    if kind is Kind.TIMESTAMP:
        return from_microseconds(int(typed))
    return typed.as_py() if kind is Kind.STRING else typed.item()


def read_predicates(column: pa.ChunkedArray) -> PredicateTable:
    """Take a column in predicate form apart.

    Raises
    ------
    TableError
        When the column has another type.
    WrongRowsError
        When some rows have a null where there must be none, an unknown operator, or a literal that is none.
    """
    check_predicates_type(column.type)
    lists = combined(column)
    if lists.null_count:
        raise _wrong(_nulls(lists), "predicates is null")
    structs = pc.list_flatten(lists)
    fields = dict(zip((field.name for field in lists.type.value_type), structs.flatten(), strict=True))
    start = np.append(0, np.cumsum(pc.list_value_length(lists).to_numpy().astype(np.int64)))
    for name in ("attribute", "operator"):
        fields[name] = plain_texts(fields[name])
        if fields[name].null_count:
            raise _wrong(_rows_of(_nulls(fields[name]), start), f"a predicate's {name} is null")
    lengths = pc.fill_null(pc.list_value_length(fields["values"]), 0).to_numpy().astype(np.int64)
    value_start = np.append(0, np.cumsum(lengths))
    return PredicateTable(
        start, fields["attribute"], fields["operator"], value_start, pc.list_flatten(fields["values"])
    )


def check_predicates_type(kind: pa.DataType) -> None:
    """Refuse a column of another type than that of the predicate form.

    Raises
    ------
    TableError
    """
    try:
        names = [field.name for field in kind.value_type]
        texts = [kind.value_type.field(name).type for name in ("attribute", "operator")]
        value_type = kind.value_type.field("values").type.value_type
    except (AttributeError, KeyError, TypeError):
        raise _wrong_type(kind) from None
    if len(set(names)) < len(names) or not all(map(is_text, texts)) or not _is_value(value_type):
        raise _wrong_type(kind)


def _operators(encoded: pa.DictionaryArray, start: I64s) -> I64s:
    codes = encoded.indices.to_numpy()
    operators, unknown = [], {}
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            operators.append(OPERATOR_CODE[read_operator(text)])
        except ExpressionError as error:
            operators.append(0)
            unknown[code] = str(error)
    if unknown:
        at = np.flatnonzero(np.isin(codes, list(unknown)))
        rows = _rows_of(at, start).tolist()
        # The first in a row counts, which comes last here.
        reasons = {row: unknown[code] for row, code in zip(rows[::-1], codes[at].tolist()[::-1], strict=True)}
        raise WrongRowsError({row: _wrong_row(row, reason) for row, reason in reasons.items()})
    return np.asarray(np.array(operators, np.int64)[codes])


def _wrong(rows: Iterable[int], reason: str) -> WrongRowsError:
    return WrongRowsError({row: _wrong_row(row, reason) for row in map(int, rows)})


def _wrong_row(row: int, reason: str) -> TableError:
    return TableError(reason, row=row)


def _rows_of(predicates: I64s, start: I64s) -> I64s:
    """The row of each predicate."""
    return np.searchsorted(start, predicates, side="right") - 1


def _nulls(column: pa.Array) -> I64s:
    return np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))


def _is_value(kind: pa.DataType) -> bool:
    if is_variant(kind):
        return True
    return bool(
        is_text(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date(kind)
        or pa.types.is_null(kind)
    )


def _wrong_type(kind: pa.DataType) -> TableError:
    return TableError(
        "the column 'predicates' must be list<struct<attribute: string, operator: string, values: list<V>>>, V a number, "
        "string, boolean, timestamp, date, or a struct of nullable fields among integer, number, string, boolean, "
        f"timestamp; it is {kind}"
    )
