"""Columns of valid events: the values of one attribute and kind, and which of them satisfy a predicate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.broker.address_search import in_networks
from tamis.broker.strings import Strings, in_codes, satisfying
from tamis.encoding.dimensions.keys import INT_EXACT
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import Bools, I64s
from tamis.language.evaluate import evaluate_flat
from tamis.language.expression import CasePredicate, Predicate
from tamis.language.operators import POSITIVE, Operator
from tamis.language.values import Kind, Scalar, from_microseconds, kind_of, to_microseconds

DTYPES = {Kind.NUMBER: np.float64, Kind.STRING: np.int32, Kind.TIMESTAMP: np.int64, Kind.BOOLEAN: np.bool_}
_MOST_NEW = 4096
"""Values that lie in a list before they move to an array."""


class ColumnContents(NamedTuple):
    """The arrays of a column."""

    rows: I64s
    values: npt.NDArray[Any]
    texts: pa.Array | None
    """Of strings: the strings by code."""


class Column:
    """The values of one attribute and kind, with the rows that have them, ascending."""

    def __init__(self, kind: Kind, strings: Strings | None = None) -> None:
        self.kind = kind
        self.strings = Strings() if strings is None else strings
        self._stored: Callable[[Any], int] | None = None
        """Makes the number of a value that the column has in its place."""
        if kind is Kind.STRING:
            self._stored = self.strings.code
        elif kind is Kind.TIMESTAMP:
            self._stored = to_microseconds
        self._rows, self._values = GrowingArray(np.int64), GrowingArray(DTYPES[kind])
        self._new_rows: list[int] = []
        self._new_values: list[Any] = []
        """Appending to lists takes a tenth of the time. They move to the arrays when they are long, or the column is read."""

    @classmethod
    def restored(cls, kind: Kind, rows: I64s, values: npt.NDArray[Any], strings: Strings | None) -> Column:
        """The column that has these arrays, which are not copied."""
        column = cls(kind, strings)
        column._rows, column._values = GrowingArray.of(rows), GrowingArray.of(values)
        return column

    def append(self, row: int, value: Any) -> None:
        self._new_rows.append(row)
        self._new_values.append(value if self._stored is None else self._stored(value))
        if len(self._new_rows) >= _MOST_NEW:
            self._settle()

    def _settle(self) -> None:
        if self._new_rows:
            self._rows.extend(self._new_rows)
            self._values.extend(np.array(self._new_values, self._values.data.dtype))
            self._new_rows, self._new_values = [], []

    @property
    def rows(self) -> I64s:
        self._settle()
        return self._rows.view()

    @property
    def values(self) -> npt.NDArray[Any]:
        self._settle()
        return self._values.view()

    def value(self, row: int) -> Scalar | None:
        """The value of a row; None if it has none."""
        rows = self.rows
        place = int(np.searchsorted(rows, row))
        if place == len(rows) or rows[place] != row:
            return None
        value = self.values[place].item()
        if self.kind is Kind.STRING:
            text: str = self.strings.texts()[value].as_py()
            return text
        return from_microseconds(value) if self.kind is Kind.TIMESTAMP else value

    def array(self, rows: I64s) -> pa.Array:
        """The values of some rows, null where a row has none."""
        own, values = self.rows, self.values
        if len(own) == 0:
            return pa.nulls(len(rows), pa.bool_())
        place = np.minimum(np.searchsorted(own, rows), len(own) - 1)
        mask = own[place] != rows
        if self.kind is Kind.STRING:
            return pa.DictionaryArray.from_arrays(pa.array(values[place], mask=mask), self.strings.texts())
        return pa.array(values[place], pa.timestamp("us") if self.kind is Kind.TIMESTAMP else None, mask=mask)

    def contents(self) -> ColumnContents:
        """The arrays of this moment. Later values do not change them."""
        return ColumnContents(self.rows, self.values, self.strings.texts() if self.kind is Kind.STRING else None)

    def kept(self, is_kept: Bools, new_row: I64s) -> Column:
        """The column with some rows alone, under new numbers."""
        chosen = is_kept[self.rows]
        values, strings = self.values[chosen], None
        if self.kind is Kind.STRING:
            codes, places = np.unique(values, return_inverse=True)
            values, strings = places.astype(np.int32), self.strings.kept(codes)
        return Column.restored(self.kind, new_row[self.rows[chosen]], values, strings)


class Chosen(NamedTuple):
    """Rows that satisfy an expression, or at least all rows that may satisfy it."""

    rows: Bools
    is_exact: bool


def chosen_values(predicate: Predicate, kind: Kind, column: Column, few_strings: int) -> Chosen | None:
    """The values of a column that satisfy a predicate, or may satisfy it; None if all may."""
    literals: list[Any] = [literal for literal in predicate.values if kind_of(literal) is kind]
    positive = POSITIVE.get(predicate.operator)
    if positive is not None:  # A negative predicate is TRUE where there is a value and the positive one is FALSE.
        chosen = chosen_values(predicate.with_operator(positive), kind, column, few_strings)
        return Chosen(~chosen.rows, True) if chosen is not None and chosen.is_exact else None
    if kind is Kind.STRING:
        return _chosen_strings(predicate, literals, column, few_strings)
    if kind is Kind.TIMESTAMP:
        literals = list(map(to_microseconds, literals))
    elif kind is Kind.NUMBER and not all(-INT_EXACT <= each <= INT_EXACT for each in literals):
        return None
    values = column.values
    match predicate.operator:
        case Operator.EQ:
            return Chosen(values == literals[0], True)
        case Operator.LT:
            return Chosen(values < literals[0], True)
        case Operator.LE:
            return Chosen(values <= literals[0], True)
        case Operator.GT:
            return Chosen(values > literals[0], True)
        case Operator.GE:
            return Chosen(values >= literals[0], True)
        case Operator.BETWEEN:
            return Chosen((values >= literals[0]) & (values <= literals[1]), True)
        case Operator.IN:
            return Chosen(np.isin(values, np.array(literals, values.dtype)), True)
    return None


def _chosen_strings(predicate: Predicate, literals: list[str], column: Column, few_strings: int) -> Chosen | None:
    """As `chosen_values`, for strings."""
    if not isinstance(predicate, CasePredicate) and predicate.operator in (Operator.EQ, Operator.IN):
        return Chosen(in_codes(column.values, column.strings.codes(literals)), True)
    is_true = satisfying(predicate, literals, column.strings)
    if is_true is None and len(column.strings) <= few_strings:
        name, texts = predicate.attribute, column.strings.texts().to_pylist()
        is_true = np.array([evaluate_flat(predicate, {name: (text,)}) is True for text in texts], np.bool_)
    return None if is_true is None else Chosen(is_true[column.values], len(predicate.kinds) == 1)


def outside(predicate: Predicate, column: Column) -> Bools:
    """Which strings of a column make an ip_in FALSE: addresses that lie in none of the networks."""
    addresses = column.strings.addresses()
    is_outside: Bools = (addresses.family > 0) & ~in_networks(addresses, map(str, predicate.values))
    chosen: Bools = is_outside[column.values]
    return chosen
