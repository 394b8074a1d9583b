"""The stored events that are still valid, in columns, so that a new subscription meets a million of them in milliseconds.

A column belongs to an attribute and a form of values (`valid_columns`). It has the rows of the events with such a value, and the
values:

    sequence, valid_until   by row: 40, 41, 44, ...             columns   genre, string   row  0 1 3    code   0 0 1
                                                                          price, number   row  0 1 2    value  15.0 9.9 30.0
                                                                          tags, string    row  0 0 2    code   0 1 1

Strings are codes. All values have columns, also lists, intervals and integers of 64 bits. So columns decide expressions
(`row_search`). Only if a call brings many subscriptions, a matcher decides (`valid_matching`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.broker.limits import USUAL_BROKER_LIMITS
from tamis.broker.row_search import RowSearch
from tamis.broker.strings import Strings
from tamis.broker.valid_batch import read_batch
from tamis.broker.valid_columns import ENDS, POINTS, Column, ColumnContents, Columns, Form
from tamis.broker.valid_matching import matched
from tamis.encoding.dimensions.keys import INT_EXACT
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import Bools, I64s
from tamis.language.event import FlatEvent, Value, flatten
from tamis.language.expression import Expression
from tamis.language.normal import to_nnf
from tamis.language.values import Interval, kind_of

_FEW_EVENTS = 16
"""Events that enter the columns faster one by one."""
_FEW_SUBSCRIPTIONS = 100
"""Subscriptions of one call that columns decide on faster than a matcher: 64 take 156 ms for 500,000 events, by a matcher 419."""


class Contents(NamedTuple):
    """Valid events as arrays, which events that come later do not change."""

    sequence: I64s
    valid_until: I64s
    columns: dict[tuple[str, Form], ColumnContents]


class ValidEvents:
    """Events with a validity, in columns."""

    def __init__(
        self,
        *,
        few_subscriptions: int = _FEW_SUBSCRIPTIONS,
        look_again: int = 4096,
        few_to_know: int = USUAL_BROKER_LIMITS.strings_to_know,
    ) -> None:
        self._few_subscriptions, self._fewest, self._few_to_know = few_subscriptions, look_again, few_to_know
        self._clear()
        self.refused = 0
        """How often a subscription asked a stored event about a value outside the language."""
        self.unsaved = 0
        """How many events were added since they were last written to a file."""

    @classmethod
    def restored(cls, contents: Contents, few_to_know: int) -> ValidEvents:
        """The events that had these contents."""
        valid = cls(few_to_know=few_to_know)
        valid._sequence, valid._valid_until = GrowingArray.of(contents.sequence), GrowingArray.of(contents.valid_until)
        for key, column in contents.columns.items():
            strings = None if column.texts is None else Strings(column.texts, few_to_know=few_to_know)
            valid._columns[key] = Column.restored(key[1], column, strings)
        return valid

    def contents(self) -> Contents:
        """The events of this moment."""
        columns = {key: column.contents() for key, column in self._columns.items()}
        return Contents(self._sequence.view(), self._valid_until.view(), columns)

    def tally(self, moment: int) -> tuple[int, int]:
        """How many events are valid at a moment or later, and the sum of their numbers."""
        chosen = self._sequence.view()[self._valid_until.view() > moment]
        return len(chosen), int(chosen.sum())

    def _clear(self) -> None:
        self._sequence = GrowingArray(np.int64)
        self._valid_until = GrowingArray(np.int64)
        self._columns = Columns()
        self._by_type: dict[tuple[str, type], Column] = {}
        """The columns by the types of scalars that came before."""
        self._look_again = self._fewest
        """The number of rows at which the events that are no longer valid are dropped."""

    def __len__(self) -> int:
        return len(self._sequence)

    def add(self, sequence: int, event: FlatEvent, valid_until: int) -> None:
        """Take in an event. Events come in the order of their numbers."""
        row = len(self._sequence)
        self._sequence.append(sequence)
        self._valid_until.append(valid_until)
        self.unsaved += 1
        for name, values in event.items():
            if not values:
                self._column(name, Form.REFUSED).append(row, False)
            for value in values:
                column = self._by_type.get((name, type(value)))
                if column is None or (type(value) is int and not -INT_EXACT <= value <= INT_EXACT):
                    self._add_rare(row, name, value)
                else:
                    column.append(row, value)

    def add_many(self, sequences: Sequence[int], events: Sequence[Any], ends: Sequence[int]) -> None:
        """Take in events as they were published, in the order of their numbers."""
        entries = read_batch(events) if len(events) >= _FEW_EVENTS else None
        if entries is None:
            for sequence, event, valid_until in zip(sequences, events, ends, strict=True):
                self.add(sequence, flatten(event), valid_until)
            return
        first = len(self._sequence)
        self._sequence.extend(sequences)
        self._valid_until.extend(ends)
        self.unsaved += len(events)
        for name, form, rows, values in entries:
            self._column(name, form).extend(np.array(rows, np.int64) + first, values)

    def _add_rare(self, row: int, name: str, value: Value) -> None:
        """Add a value of a new type, an interval, or a large integer."""
        if isinstance(value, Interval):
            for form, end in zip(ENDS[value.kind], (value.lo, value.hi), strict=True):
                self._append(self._column(name, form), row, end)
            return
        kind = kind_of(value)
        assert kind is not None
        column = self._by_type[name, type(value)] = self._column(name, POINTS[kind])
        self._append(column, row, value)

    def _append(self, column: Column, row: int, value: Any) -> None:
        append = column.append_large if type(value) is int else column.append
        append(row, value)

    def _column(self, name: str, form: Form) -> Column:
        column = self._columns.get((name, form))
        if column is None:
            column = self._columns[name, form] = Column(form, Strings(few_to_know=self._few_to_know))
        return column

    def forget(self, moment: int) -> None:
        """Drop the events that end at a moment or before, if they are many."""
        if len(self) < self._look_again:
            return
        is_kept = self._valid_until.view() > moment
        kept = int(np.count_nonzero(is_kept))
        if 2 * kept <= len(self):
            self._keep(is_kept)
        self._look_again = max(self._fewest, 2 * kept)

    def _keep(self, is_kept: Bools) -> None:
        sequence, valid_until = self._sequence.view()[is_kept], self._valid_until.view()[is_kept]
        new_row = np.cumsum(is_kept) - 1
        columns = {key: column.kept(is_kept, new_row) for key, column in self._columns.items()}
        self._clear()
        self._sequence.extend(sequence)
        self._valid_until.extend(valid_until)
        self._columns = Columns({key: column for key, column in columns.items() if len(column.rows)})

    def meet(self, wanted: Mapping[int, Expression], moment: int) -> dict[int, I64s]:
        """The numbers of the events that are valid at a moment and satisfy each expression, ascending."""
        self.forget(moment)
        is_valid = self._valid_until.view() > moment
        if not is_valid.any():
            return {number: np.empty(0, np.int64) for number in wanted}
        self._count_refused(wanted.values(), is_valid)
        sequence = self._sequence.view()
        if len(wanted) > self._few_subscriptions:
            found = matched(self._columns, wanted, np.flatnonzero(is_valid))
            return {number: sequence[rows] for number, rows in found.items()}
        search = RowSearch(self._columns, len(self))
        return {number: sequence[search.true(to_nnf(each), is_valid)] for number, each in wanted.items()}

    def _count_refused(self, wanted: Iterable[Expression], is_valid: Bools) -> None:
        for expression in wanted:
            for name in expression.attributes():
                column = self._columns.get((name, Form.REFUSED))
                if column is not None:
                    self.refused += int(np.count_nonzero(is_valid[column.rows]))
