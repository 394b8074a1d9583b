"""Columns of valid events: the values of one attribute and form, each with the row of its event.

    form                       values               of an event with several values
    number                     doubles, and rests   several entries with one row
    string                     codes
    timestamp                  microseconds
    boolean
    lowest, highest number     the ends of intervals, in two columns with the same rows
    lowest, highest moment
    refused                    nothing: rows with a value outside the language

Rows ascend. A column is *full* if each row has exactly one entry. `number_spans` describes rests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.broker.number_spans import I16s, point_of
from tamis.broker.strings import Strings
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import kernel
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.language.event import Value
from tamis.language.values import Interval, Kind, Scalar, from_microseconds, to_microseconds


class Form(StrEnum):
    """What the values of a column are."""

    NUMBER = "number"
    STRING = "string"
    TIMESTAMP = "timestamp"
    BOOLEAN = "boolean"
    LOWEST_NUMBER = "lowest number"
    HIGHEST_NUMBER = "highest number"
    LOWEST_MOMENT = "lowest moment"
    HIGHEST_MOMENT = "highest moment"
    REFUSED = "refused"


POINTS = {
    Kind.NUMBER: Form.NUMBER,
    Kind.STRING: Form.STRING,
    Kind.TIMESTAMP: Form.TIMESTAMP,
    Kind.BOOLEAN: Form.BOOLEAN,
}
"""The forms of scalars."""
ENDS = {
    Kind.NUMBER: (Form.LOWEST_NUMBER, Form.HIGHEST_NUMBER),
    Kind.TIMESTAMP: (Form.LOWEST_MOMENT, Form.HIGHEST_MOMENT),
}
"""The forms of the ends of intervals."""
_NUMBERS = frozenset((Form.NUMBER, Form.LOWEST_NUMBER, Form.HIGHEST_NUMBER))
_MOMENTS = frozenset((Form.TIMESTAMP, Form.LOWEST_MOMENT, Form.HIGHEST_MOMENT))
DTYPES = {
    form: np.dtype(np.float64 if form in _NUMBERS else np.int64 if form in _MOMENTS else np.bool_) for form in Form
} | {Form.STRING: np.dtype(np.int32)}
_MOST_NEW = 4096
"""Values that lie in a list before they move to an array."""


class ColumnContents(NamedTuple):
    """The arrays of a column."""

    rows: I64s
    values: npt.NDArray[Any]
    rests: I16s | None
    """Of numbers: the rests; None if all are 0."""
    texts: pa.Array | None
    """Of strings: the strings by code."""


class Column:
    """The values of one attribute and form, with the rows that have them, ascending."""

    def __init__(self, form: Form, strings: Strings | None = None) -> None:
        self.form = form
        self.strings = Strings() if strings is None else strings
        self._stored: Callable[[Any], Any] | None = None
        """Makes what the column has in place of a value."""
        if form is Form.STRING:
            self._stored = self.strings.code
        elif form in _MOMENTS:
            self._stored = to_microseconds
        self._rows, self._values = GrowingArray(np.int64), GrowingArray(DTYPES[form])
        self._rests: GrowingArray | None = None
        self._has_repeats = False
        """Whether a row has several entries."""
        self._new_rows: list[int] = []
        self._new_values: list[Any] = []
        """Appending to lists takes a tenth of the time. They move to the arrays when they are long, or the column is read."""
        self._new_rests: dict[int, int] = {}
        """By place in the lists: the rests that are not 0."""

    @classmethod
    def restored(cls, form: Form, contents: ColumnContents, strings: Strings | None) -> Column:
        """The column that has these arrays, which are not copied."""
        column = cls(form, strings)
        column._rows, column._values = GrowingArray.of(contents.rows), GrowingArray.of(contents.values)
        column._rests = None if contents.rests is None else GrowingArray.of(contents.rests)
        column._has_repeats = _repeats(contents.rows)
        return column

    def append(self, row: int, value: Any) -> None:
        """Add a value. `append_large` adds integers that no double may hold."""
        self._new_rows.append(row)
        self._new_values.append(value if self._stored is None else self._stored(value))
        if len(self._new_rows) >= _MOST_NEW:
            self._settle()

    def append_large(self, row: int, number: int) -> None:
        """Add an integer of any size."""
        nearest, rest = point_of(number)
        if rest:
            self._new_rests[len(self._new_rows)] = rest
        self.append(row, nearest)

    def extend(self, rows: npt.ArrayLike, values: Any) -> None:
        """Add values at once. The numbers among them are no integers that no double may hold."""
        self._settle()
        given = np.asarray(rows, np.int64)
        self._note_repeats(given)
        self._rows.extend(given)
        stored = self.strings.codes_of(values) if self.form is Form.STRING else values
        self._values.extend(np.asarray(stored, self._values.data.dtype))
        if self._rests is not None:
            self._rests.grow(len(given), fill=0)

    def _note_repeats(self, rows: I64s) -> None:
        last = self._rows.view()[max(len(self._rows) - 1, 0) :]
        self._has_repeats = self._has_repeats or _repeats(np.concatenate([last, rows]))

    def _settle(self) -> None:
        if not self._new_rows:
            return
        rows, before = np.array(self._new_rows, np.int64), len(self._rows)
        self._note_repeats(rows)
        self._rows.extend(rows)
        self._values.extend(np.array(self._new_values, self._values.data.dtype))
        if self._new_rests and self._rests is None:
            self._rests = GrowingArray(np.int16)
            self._rests.grow(before, fill=0)
        if self._rests is not None:
            rests = self._rests.grow(len(rows), fill=0)
            rests[list(self._new_rests)] = list(self._new_rests.values())
        self._new_rows, self._new_values, self._new_rests = [], [], {}

    @property
    def rows(self) -> I64s:
        self._settle()
        return self._rows.view()

    @property
    def values(self) -> npt.NDArray[Any]:
        self._settle()
        return self._values.view()

    @property
    def rests(self) -> I16s | None:
        """The rests of numbers; None if all are 0."""
        self._settle()
        return None if self._rests is None else self._rests.view()

    def is_full(self, count: int) -> bool:
        """Whether each of the first `count` rows, which are all rows, has exactly one entry."""
        return len(self.rows) == count and not self._has_repeats

    @property
    def has_repeats(self) -> bool:
        """Whether a row has several entries."""
        self._settle()
        return self._has_repeats

    def mark(self, is_chosen: Bools, is_marked: Bools) -> None:
        """Mark the rows of chosen entries."""
        if self.is_full(len(is_marked)):
            is_marked |= is_chosen
        else:
            _mark_rows(self.rows, is_chosen, is_marked)

    def entries(self, is_wanted: Bools) -> I64s:
        """The places of the entries of some rows."""
        return np.flatnonzero(is_wanted if self.is_full(len(is_wanted)) else is_wanted[self.rows])

    def chosen_strings(self, is_chosen: Bools) -> Bools:
        """Which entries have one of some strings, which are chosen by code."""
        found = np.empty(len(self.rows), np.bool_)
        _look_up(self.values, is_chosen, found)
        return found

    def scalars(self, row: int) -> list[Scalar]:
        """The values of a row."""
        start, end = np.searchsorted(self.rows, [row, row + 1]).tolist()
        return [self._scalar(place) for place in range(start, end)]

    def _scalar(self, place: int) -> Scalar:
        value = self.values[place].item()
        if self.form is Form.STRING:
            text: str = self.strings.texts()[value].as_py()
            return text
        if self.form in _MOMENTS:
            return from_microseconds(value)
        rests = self.rests
        return value if rests is None or rests[place] == 0 else int(value) + int(rests[place])

    def contents(self) -> ColumnContents:
        """The arrays of this moment. Later values do not change them."""
        texts = self.strings.texts() if self.form is Form.STRING else None
        return ColumnContents(self.rows, self.values, self.rests, texts)

    def kept(self, is_kept: Bools, new_row: I64s) -> Column:
        """The column with some rows alone, under new numbers."""
        chosen = is_kept[self.rows]
        values, strings, rests = self.values[chosen], None, self.rests
        if self.form is Form.STRING:
            codes, places = np.unique(values, return_inverse=True)
            values, strings = places.astype(np.int32), self.strings.kept(codes)
        rests = rests[chosen] if rests is not None and rests[chosen].any() else None
        return Column.restored(self.form, ColumnContents(new_row[self.rows[chosen]], values, rests, None), strings)


class Columns(dict[tuple[str, Form], Column]):
    """The columns of all attributes."""

    def points(self, attribute: str) -> Iterator[tuple[Form, Column]]:
        """The columns of an attribute with scalars."""
        return self._some(attribute, POINTS.values())

    def present(self, attribute: str) -> Iterator[tuple[Form, Column]]:
        """The columns of an attribute whose rows have a value: scalars, and the lowest ends of intervals."""
        return self._some(attribute, (*POINTS.values(), *(low for low, _ in ENDS.values())))

    def _some(self, attribute: str, forms: Any) -> Iterator[tuple[Form, Column]]:
        return ((form, column) for form in forms if (column := self.get((attribute, form))) is not None)

    def flat(self, attribute: str, row: int) -> tuple[Value, ...]:
        """The values of an attribute in a row, as the normal form of an event has them."""
        found: list[Value] = [value for _, column in self.points(attribute) for value in column.scalars(row)]
        for low, high in ENDS.values():
            if (attribute, low) in self:
                lows, highs = (self[attribute, form].scalars(row) for form in (low, high))
                found += map(Interval, lows, highs)
        return tuple(found)


def is_full(rows: I64s, count: int) -> bool:
    """Whether the rows of entries are the first `count` rows, each once."""
    return len(rows) == count and not _repeats(rows)


def _repeats(rows: I64s) -> bool:
    return bool((rows[1:] == rows[:-1]).any())


@kernel
def _mark_rows(rows: I64s, is_chosen: Bools, is_marked: Bools) -> None:
    for place in range(len(rows)):
        is_marked[rows[place]] |= is_chosen[place]


@kernel
def _look_up(codes: I32s, is_chosen: Bools, found: Bools) -> None:
    for place in range(len(codes)):
        found[place] = is_chosen[codes[place]]
