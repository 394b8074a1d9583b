"""The stored events that are still valid, in columns, so that a new subscription meets a million of them in milliseconds.

A column belongs to an attribute and a kind of values. It has the rows of the events with such a value, and the values:

    sequence, valid_until   by row: 40, 41, 44, ...             columns   genre, string   row  0 1 3    code   0 0 1
    odd                     rows that columns cannot hold                 price, number   row  0 1 2    value  15.0 9.9 30.0

Strings are codes. An event is *odd* if an attribute has several values, an Interval, or an integer that no double can hold; it
is kept whole. Columns decide nearly all predicates (`valid_columns`, `strings`). Of other predicates they only say which rows may
satisfy them. The reference evaluator then decides on a few rows, and a matcher on many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.broker.limits import USUAL_BROKER_LIMITS
from tamis.broker.strings import Strings
from tamis.broker.valid_columns import DTYPES, Chosen, Column, ColumnContents, chosen_values, outside
from tamis.encoding.dimensions.keys import INT_EXACT
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import Bools, I64s
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent, Refused
from tamis.language.expression import And, Constant, Expression, Not, Or, Predicate
from tamis.language.normal import to_nnf
from tamis.language.operators import Operator
from tamis.language.values import Interval, Kind, Scalar, kind_of
from tamis.matcher.matcher import Matcher

_FEW_STRINGS = 2000
"""Strings of a column that are each asked about a predicate by the reference evaluator, if nothing faster decides."""
_FEW = 256
"""Rows that the reference evaluator decides on faster than a matcher, which has to be made first."""
_COSTLY = frozenset((Operator.RLIKE, Operator.NOT_RLIKE))
"""Operators that take long for many strings."""


class Contents(NamedTuple):
    """Valid events as arrays, which events that come later do not change."""

    sequence: I64s
    valid_until: I64s
    special: I64s
    """The rows of events that columns do not hold completely: odd ones, and those with values outside the language."""
    columns: dict[tuple[str, Kind], ColumnContents]


class ValidEvents:
    """Events with a validity, in columns."""

    def __init__(
        self,
        *,
        few_rows: int = _FEW,
        few_strings: int = _FEW_STRINGS,
        look_again: int = 4096,
        few_to_know: int = USUAL_BROKER_LIMITS.strings_to_know,
    ) -> None:
        self._few_rows, self._few_strings, self._fewest, self._few_to_know = (
            few_rows,
            few_strings,
            look_again,
            few_to_know,
        )
        self._clear()
        self.refused = 0
        """How often a subscription asked a stored event about a value outside the language."""
        self.unsaved = 0
        """How many events were added since they were last written to a file."""

    @classmethod
    def restored(cls, contents: Contents, special: Mapping[int, FlatEvent], few_to_know: int) -> ValidEvents:
        """The events that had these contents. `special` has the special events by row, as far as they are still valid."""
        valid = cls(few_to_know=few_to_know)
        valid._sequence, valid._valid_until = GrowingArray.of(contents.sequence), GrowingArray.of(contents.valid_until)
        for key, (rows, values, texts) in contents.columns.items():
            strings = None if texts is None else Strings(texts, few_to_know=few_to_know)
            valid._columns[key] = Column.restored(key[1], rows, values, strings)
        for row, event in special.items():
            valid._put_special(row, event)
        return valid

    def contents(self) -> Contents:
        """The events of this moment."""
        special = np.unique(np.fromiter(chain(self._odd, *self._refused.values()), np.int64))
        columns = {key: column.contents() for key, column in self._columns.items()}
        return Contents(self._sequence.view(), self._valid_until.view(), special, columns)

    def tally(self, moment: int) -> tuple[int, int]:
        """How many events are valid at a moment or later, and the sum of their numbers."""
        chosen = self._sequence.view()[self._valid_until.view() > moment]
        return len(chosen), int(chosen.sum())

    def _clear(self) -> None:
        self._sequence = GrowingArray(np.int64)
        self._valid_until = GrowingArray(np.int64)
        self._columns: dict[tuple[str, Kind], Column] = {}
        self._by_type: dict[tuple[str, type], Column] = {}
        """The columns by the types of values that came before."""
        self._odd: dict[int, FlatEvent] = {}
        self._refused: dict[str, list[int]] = {}
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
        for column, value in self._plain_values(event) or self._other_values(row, event):
            column.append(row, value)

    def _plain_values(self, event: FlatEvent) -> list[tuple[Column, Scalar]] | None:
        """The values of an event with their columns; None if the event may be special, or a column is missing.

        Nearly all events are plain. This takes half of the time of `_other_values`.
        """
        found = []
        for name, values in event.items():
            if len(values) != 1:
                return None
            value: Any = values[0]
            column = self._by_type.get((name, type(value)))
            if column is None or (type(value) is int and not -INT_EXACT <= value <= INT_EXACT):
                return None
            found.append((column, value))
        return found

    def _other_values(self, row: int, event: FlatEvent) -> list[tuple[Column, Scalar]]:
        """As `_plain_values`, for all events. A special event is noted, and an odd one has no values for columns."""
        if self._put_special(row, event):
            return []
        found: list[tuple[Column, Scalar]] = []
        for name, values in event.items():
            for value in values:
                kind = kind_of(value)
                assert kind is not None
                assert not isinstance(value, Interval)
                column = self._columns.get((name, kind))
                if column is None:
                    column = self._columns[name, kind] = Column(kind, Strings(few_to_know=self._few_to_know))
                self._by_type[name, type(value)] = column
                found.append((column, value))
        return found

    def _put_special(self, row: int, event: FlatEvent) -> bool:
        """Note what columns do not hold. Returns whether the event is odd, so that they hold nothing of it."""
        for name, values in event.items():
            if isinstance(values, Refused):
                self._refused.setdefault(name, []).append(row)
        is_odd = any(map(_is_odd, event.values()))
        if is_odd:
            self._odd[row] = event
        return is_odd

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
        odd = {int(new_row[row]): event for row, event in self._odd.items() if is_kept[row]}
        refused = {name: [int(new_row[row]) for row in rows if is_kept[row]] for name, rows in self._refused.items()}
        self._clear()
        self._sequence.extend(sequence)
        self._valid_until.extend(valid_until)
        self._columns = {key: column for key, column in columns.items() if len(column.rows)}
        self._odd = odd
        self._refused = {name: rows for name, rows in refused.items() if rows}

    def meet(self, wanted: Mapping[int, Expression], moment: int) -> dict[int, I64s]:
        """The numbers of the events that are valid at a moment and satisfy each expression, ascending."""
        self.forget(moment)
        is_valid = self._valid_until.view() > moment
        if not is_valid.any():
            return {number: np.empty(0, np.int64) for number in wanted}
        self._count_refused(wanted.values(), is_valid)
        if len(wanted) <= 4:
            return {number: self._satisfying(each, is_valid) for number, each in wanted.items()}
        found = self._matched(wanted, np.flatnonzero(is_valid))
        return {number: self._sequence.view()[rows] for number, rows in found.items()}

    def _count_refused(self, wanted: Iterable[Expression], is_valid: Bools) -> None:
        if not self._refused:
            return
        for expression in wanted:
            for name in expression.attributes():
                self.refused += int(np.count_nonzero(is_valid[self._refused.get(name, [])]))

    def _satisfying(self, expression: Expression, is_valid: Bools) -> I64s:
        chosen = self._chosen(to_nnf(expression))
        is_sure = is_valid & chosen.rows if chosen.is_exact else np.zeros(len(self), np.bool_)
        is_open = is_valid & chosen.rows & ~is_sure
        odd = list(self._odd)
        is_sure[odd], is_open[odd] = False, is_valid[odd]
        is_sure[self._decided(expression, np.flatnonzero(is_open))] = True
        return self._sequence.view()[is_sure]

    def _decided(self, expression: Expression, rows: I64s) -> I64s:
        """The rows that satisfy an expression, decided without columns."""
        if len(rows) > self._few_rows:
            return self._matched({0: expression}, rows)[0]
        names = expression.attributes()
        found = [row for row in rows.tolist() if evaluate_flat(expression, self._event(row, names)) is True]
        return np.array(found, np.int64)

    def _event(self, row: int, names: Iterable[str]) -> FlatEvent:
        """The attributes of an event that an expression asks about."""
        if row in self._odd:
            return self._odd[row]
        event: FlatEvent = {}
        for name in names:
            for kind in DTYPES:
                column = self._columns.get((name, kind))
                value = None if column is None else column.value(row)
                if value is not None:
                    event[name] = (value,)
        return event

    def _matched(self, wanted: Mapping[int, Expression], rows: I64s) -> dict[int, I64s]:
        """The rows among some that satisfy each expression, found by a matcher, ascending."""
        matcher: Matcher[int] = Matcher()
        matcher.add_many(list(wanted), list(wanted.values()))
        names = sorted({name for expression in wanted.values() for name in expression.attributes()})
        is_odd = np.zeros(len(self), np.bool_)
        is_odd[list(self._odd)] = True
        for mixed in (rows for name in names for rows in self._rows_of_several_kinds(name)):
            is_odd[mixed] = True
        whole = rows[is_odd[rows]]
        plain = rows[~is_odd[rows]]
        found = [_pairs(matcher, [self._event(row, names) for row in whole.tolist()], whole)]
        columns = {name: self._array(name, plain) for name in names}
        found.append(_pairs(matcher, pa.table(columns) if columns else [{}] * len(plain), plain))
        numbers, places = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.lexsort((places, numbers))
        numbers, places = numbers[order], places[order]
        ends = np.searchsorted(numbers, list(wanted), "right")
        starts = np.searchsorted(numbers, list(wanted), "left")
        return {number: places[a:b] for number, a, b in zip(wanted, starts, ends, strict=True)}

    def _rows_of_several_kinds(self, name: str) -> list[I64s]:
        """The rows of all kinds of an attribute but the most frequent one: a column of Arrow has one type."""
        columns = [column for kind in DTYPES if (column := self._columns.get((name, kind))) is not None]
        return [column.rows for column in sorted(columns, key=lambda each: -len(each.rows))[1:]]

    def _array(self, name: str, rows: I64s) -> pa.Array:
        columns = [column for kind in DTYPES if (column := self._columns.get((name, kind))) is not None]
        if not columns:
            return pa.nulls(len(rows), pa.bool_())
        return max(columns, key=lambda each: len(each.rows)).array(rows)

    # Deciding by columns. Odd rows are not considered.

    def _chosen(self, node: Expression) -> Chosen:
        """The rows that satisfy an expression in negation normal form, or may satisfy it."""
        match node:
            case Constant():
                return Chosen(np.full(len(self), node.value), True)
            case And():
                return self._conjunction(sorted(node.operands, key=self._is_costly))
            case Or():
                parts = [self._chosen(each) for each in node.operands]
                return Chosen(np.logical_or.reduce([part.rows for part in parts]), all(part.is_exact for part in parts))
            case Predicate() if node.operator is Operator.IS_NULL:
                present = self._predicate(node.with_operator(Operator.IS_NOT_NULL))
                return Chosen(~present.rows, True)
            case Predicate():
                return self._predicate(node)
            case Not(operand=Predicate() as operand) if operand.operator is Operator.IP_IN:
                return self._outside(operand)
        return Chosen(np.ones(len(self), np.bool_), False)

    def _outside(self, predicate: Predicate) -> Chosen:
        """The rows with an address that makes an ip_in FALSE."""
        is_chosen = np.zeros(len(self), np.bool_)
        column = self._columns.get((predicate.attribute, Kind.STRING))
        if column is not None:
            is_chosen[column.rows[outside(predicate, column)]] = True
        return Chosen(is_chosen, True)

    def _conjunction(self, operands: list[Expression]) -> Chosen:
        """Costly operands come last. If few rows are left for one, it is cheaper to decide on these rows alone."""
        chosen = Chosen(np.ones(len(self), np.bool_), True)
        for operand in operands:
            if self._is_costly(operand) and 16 * np.count_nonzero(chosen.rows) < len(self):
                return Chosen(chosen.rows, False)
            part = self._chosen(operand)
            chosen = Chosen(chosen.rows & part.rows, chosen.is_exact and part.is_exact)
        return chosen

    def _is_costly(self, node: Expression) -> bool:
        """Whether a predicate takes long, because it looks at many strings."""
        if not isinstance(node, Predicate) or node.operator not in _COSTLY:
            return False
        column = self._columns.get((node.attribute, Kind.STRING))
        return column is not None and len(column.strings) > self._few_strings

    def _predicate(self, predicate: Predicate) -> Chosen:
        is_chosen = np.zeros(len(self), np.bool_)
        is_presence = predicate.operator is Operator.IS_NOT_NULL
        kinds = tuple(DTYPES) if is_presence else predicate.kinds
        is_exact = is_presence or len(kinds) == 1
        for kind in kinds:
            column = self._columns.get((predicate.attribute, kind))
            if column is None:
                continue
            chosen = None if is_presence else chosen_values(predicate, kind, column, self._few_strings)
            is_exact = is_exact and (is_presence or (chosen is not None and chosen.is_exact))
            if chosen is None:
                is_chosen[column.rows] = True
            elif len(column.rows) == len(is_chosen):
                is_chosen |= chosen.rows
            else:
                is_chosen[column.rows[chosen.rows]] = True
        return Chosen(is_chosen, is_exact)


def _is_odd(values: Sequence[Any]) -> bool:
    if len(values) != 1:
        return len(values) > 1
    value = values[0]
    return isinstance(value, Interval) or (type(value) is int and not -INT_EXACT <= value <= INT_EXACT)


def _pairs(matcher: Matcher[int], events: Any, rows: I64s) -> tuple[I64s, I64s]:
    """The numbers of subscriptions and the rows of the events that satisfy them."""
    if not len(rows):
        return np.empty(0, np.int64), rows
    found = matcher.match_batch(events, threads=1)
    return found["subscription"].to_numpy(), rows[found["event"].to_numpy()]
