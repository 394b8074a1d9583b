"""Arrow tables of subscriptions in predicate form, taken apart.

A row is a conjunction: ``predicates: list<struct<attribute: string, operator: string, values: list<V>>>``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import combined, is_text, is_variant, plain_texts, plain_values
from tamis.encoding.predicate_rows import OPERATOR_CODE, OPERATORS, Ints, PredicateRows, TypedValues
from tamis.errors import EventError, ExpressionError, TableError
from tamis.language.expression import Expression, Predicate, all_of
from tamis.language.operators import read_operator
from tamis.language.values import Kind, from_microseconds


class PredicateTable(PredicateRows):
    """A column of conjunctions, taken out of its lists."""

    def __init__(
        self, start: Ints, attribute: pa.Array, operator: pa.Array, value_start: Ints, values: pa.Array
    ) -> None:
        attributes = pc.dictionary_encode(attribute)
        self.start = start
        self.attribute = attributes.indices.to_numpy().astype(np.int64)
        self.attributes = attributes.dictionary.to_pylist()
        for code, name in enumerate(self.attributes):
            if not name:
                raise TableError(
                    f"row {_row_of(_first(self.attribute == code), start)}: an attribute's name cannot be empty"
                )
        self.operator = _operators(pc.dictionary_encode(operator), start)
        self.value_start = value_start
        self.values = list(self._typed(values))

    @classmethod
    def of_parts(
        cls,
        start: Ints,
        attribute: npt.NDArray[Any],
        attributes: list[str],
        operator: npt.NDArray[Any],
        value_start: Ints,
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
        for kind, positions, plain in self.values:
            for at in range(*np.searchsorted(positions, (first, last))):
                place = int(positions[at]) - first
                if literals[place] is not None:
                    raise ExpressionError("a value sets one field, not several")
                literals[place] = _literal(kind, plain[at])
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
                kind, plain = plain_values("values", decoded.drop_null(), positions)
            except EventError as error:
                owner = int(np.searchsorted(self.value_start, error.row or 0, side="right")) - 1
                place = "" if error.row is None else f"row {_row_of(owner, self.start)}: "
                raise TableError(f"{place}a literal is wrong: {error.reason}") from None
            yield TypedValues(kind, positions, plain)


def _literal(kind: Kind, plain: Any) -> Any:
    """A literal as Python has it."""
    if kind is Kind.TIMESTAMP:
        return from_microseconds(int(plain))
    return plain.as_py() if kind is Kind.STRING else plain.item()


def read_predicates(column: pa.ChunkedArray) -> PredicateTable:
    """Take a column in predicate form apart.

    Raises
    ------
    TableError
        When the column has another type, or a null where there must be none.
    """
    lists = combined(column)
    try:
        names = [field.name for field in lists.type.value_type]
        value_type = lists.type.value_type.field("values").type.value_type
    except (AttributeError, KeyError, TypeError):
        raise _wrong_type(lists.type) from None
    if not {"attribute", "operator", "values"} <= set(names) or not (_is_value(value_type)):
        raise _wrong_type(lists.type)
    if lists.null_count:
        raise TableError(f"row {_first_null(lists)}: predicates is null")
    structs = pc.list_flatten(lists)
    fields = dict(zip(names, structs.flatten(), strict=True))
    start = np.append(0, np.cumsum(pc.list_value_length(lists).to_numpy().astype(np.int64)))
    for name in ("attribute", "operator"):
        if not is_text(fields[name].type):
            raise _wrong_type(lists.type)
        fields[name] = plain_texts(fields[name])
        if fields[name].null_count:
            row = _row_of(_first_null(fields[name]), start)
            raise TableError(f"row {row}: a predicate's {name} is null")
    lengths = pc.fill_null(pc.list_value_length(fields["values"]), 0).to_numpy().astype(np.int64)
    value_start = np.append(0, np.cumsum(lengths))
    return PredicateTable(
        start, fields["attribute"], fields["operator"], value_start, pc.list_flatten(fields["values"])
    )


def _operators(encoded: pa.DictionaryArray, start: Ints) -> Ints:
    codes = encoded.indices.to_numpy()
    operators = []
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            operators.append(OPERATOR_CODE[read_operator(text)])
        except ExpressionError as error:
            raise TableError(f"row {_row_of(_first(codes == code), start)}: {error}") from None
    return np.asarray(np.array(operators, np.int64)[codes])


def _row_of(predicate: int, start: Ints) -> int:
    return int(np.searchsorted(start, predicate, side="right")) - 1


def _first_null(column: pa.Array) -> int:
    return _first(column.is_null().to_numpy(zero_copy_only=False))


def _first(chosen: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(chosen)[0])


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
