"""Rows of predicates in little memory, from which `explain` and snapshots make expressions.

    row              r0              r1
    start            0               2        3      predicates of row r: start[r] .. start[r + 1]
    first_literal    0               4        5      literals of row r: first_literal[r] .. first_literal[r + 1]
    attribute        0       1       0               places in `attributes`
    operator         in      =       <               places in `OPERATORS`
    literals         3       1       1               how many literals each predicate has

Each column has the narrowest type that holds its numbers. So a predicate takes about 5 bytes, and 47 as `PredicateTable` has it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.expressions.predicate_rows import TypedValues
from tamis.encoding.expressions.predicate_table import PredicateTable
from tamis.language.expression import Expression
from tamis.language.values import Kind

_NARROW = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32)
"""Types narrower than the 64 bits of a `PredicateTable`."""


class KeptPredicates:
    """The rows of a `PredicateTable`, which does not live on."""

    def __init__(self, table: PredicateTable) -> None:
        self._attributes = table.attributes
        self._start = narrowed(table.start)
        self._first_literal = narrowed(table.value_start[table.start])
        self._attribute = narrowed(table.attribute)
        self._operator = narrowed(table.operator)
        self._literals = narrowed(np.diff(table.value_start))
        self._values = [_KeptValues.of(values, int(table.value_start[-1])) for values in table.values]

    def __len__(self) -> int:
        return len(self._start) - 1

    @property
    def nbytes(self) -> int:
        columns = (self._start, self._first_literal, self._attribute, self._operator, self._literals)
        return sum(column.nbytes for column in columns) + sum(values.nbytes for values in self._values)

    def expression(self, row: int) -> Expression:
        """One row as an expression, with all checks."""
        return self.part(row, row + 1).expression(0)

    def part(self, first: int, end: int) -> PredicateTable:
        """The rows from `first` up to, and without, `end`."""
        begin, upto = int(self._start[first]), int(self._start[end])
        literal, last_literal = int(self._first_literal[first]), int(self._first_literal[end])
        return PredicateTable.of_parts(
            self._start[first : end + 1].astype(np.int64) - begin,
            self._attribute[begin:upto].astype(np.int64),
            self._attributes,
            self._operator[begin:upto].astype(np.int64),
            np.append(0, np.cumsum(self._literals[begin:upto], dtype=np.int64)),
            [values.between(literal, last_literal) for values in self._values],
        )

    def parts(self, rows: int) -> Iterator[PredicateTable]:
        """All rows, `rows` at a time; one part if there are none."""
        for first in range(0, max(len(self), 1), rows):
            yield self.part(first, min(first + rows, len(self)))


class _KeptValues(NamedTuple):
    """Literals of one kind."""

    kind: Kind
    positions: npt.NDArray[Any] | None
    """Their places among all literals; None if there are no others."""
    literals: Any
    type: npt.DTypeLike | None
    """The type of the literals in a `TypedValues`; None if they are strings."""

    @classmethod
    def of(cls, values: TypedValues, total: int) -> _KeptValues:
        positions = None if len(values.positions) == total else narrowed(values.positions)
        if isinstance(values.literals, pa.Array):
            return cls(values.kind, positions, values.literals, None)
        return cls(values.kind, positions, narrowed(values.literals), values.literals.dtype)

    @property
    def nbytes(self) -> int:
        return int(self.literals.nbytes) + (0 if self.positions is None else self.positions.nbytes)

    def between(self, first: int, end: int) -> TypedValues:
        """Those of the literals from `first` up to, and without, `end`."""
        if self.positions is None:
            positions = np.arange(end - first)
        else:
            places = self.positions
            first_position = first
            first, end = bisect_left(places, first), bisect_left(places, end)
            positions = places[first:end].astype(np.int64) - first_position
        if self.type is None:
            return TypedValues(self.kind, positions, self.literals.slice(first, end - first))
        return TypedValues(self.kind, positions, self.literals[first:end].astype(self.type))


def narrowed(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same integers in the narrowest type that holds them. Other numbers stay as they are."""
    if numbers.dtype.kind not in "iu" or not len(numbers):
        return numbers
    low, high = int(numbers.min()), int(numbers.max())
    for narrow in _NARROW:
        if np.iinfo(narrow).min <= low and high <= np.iinfo(narrow).max:
            return numbers.astype(narrow)
    return numbers
