"""The stored events that are still valid, in columns, so that a new subscription meets a million of them in milliseconds.

A column belongs to an attribute and a kind of values. It has the rows of the events with such a value, and the values:

    sequence, valid_until   by row: 40, 41, 44, ...             columns   genre, string   row  0 1 3    code   0 0 1
    odd                     rows that columns cannot hold                 price, number   row  0 1 2    value  15.0 9.9 30.0

Strings are codes. An event is *odd* if an attribute has several values, an Interval, or an integer that no double can hold; it
is kept whole. A subscription meets events in two steps. Columns first rule out most rows: a row that is left may satisfy the
subscription. Then the reference evaluator decides on a few rows, and a matcher decides on many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import Bools, I64s
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent, Refused
from tamis.language.expression import And, CasePredicate, Constant, Expression, Or, Predicate
from tamis.language.normal import to_nnf
from tamis.language.operators import Operator
from tamis.language.values import Interval, Kind, Scalar, from_microseconds, kind_of, to_microseconds
from tamis.matcher.matcher import Matcher

_EXACT = 2**53
"""Integers up to this size are doubles."""
_FEW = 256
"""Rows that the reference evaluator decides on faster than a matcher, which has to be made first."""
_DTYPES = {Kind.NUMBER: np.float64, Kind.STRING: np.int32, Kind.TIMESTAMP: np.int64, Kind.BOOLEAN: np.bool_}


class _Column:
    """The values of one attribute and kind, with the rows that have them, ascending."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.rows = GrowingArray(np.int64)
        self.values = GrowingArray(_DTYPES[kind])
        self.codes: dict[str, int] = {}
        self._texts = pa.array([], pa.string())

    def append(self, row: int, value: Any) -> None:
        self.rows.append(row)
        self.values.append(self._stored(value))

    def _stored(self, value: Any) -> Any:
        if self.kind is Kind.STRING:
            return self.codes.setdefault(value, len(self.codes))
        return to_microseconds(value) if self.kind is Kind.TIMESTAMP else value

    def texts(self) -> pa.Array:
        """The strings by code."""
        if len(self._texts) < len(self.codes):
            later = list(self.codes)[len(self._texts) :] if len(self._texts) else list(self.codes)
            self._texts = pa.concat_arrays([self._texts, pa.array(later, pa.string())])
        return self._texts

    def value(self, row: int) -> Scalar | None:
        """The value of a row; None if it has none."""
        rows = self.rows.view()
        place = int(np.searchsorted(rows, row))
        if place == len(rows) or rows[place] != row:
            return None
        value = self.values.view()[place].item()
        if self.kind is Kind.STRING:
            text: str = self.texts()[value].as_py()
            return text
        return from_microseconds(value) if self.kind is Kind.TIMESTAMP else value

    def array(self, rows: I64s) -> pa.Array:
        """The values of some rows, null where a row has none."""
        own, values = self.rows.view(), self.values.view()
        if len(own) == 0:
            return pa.nulls(len(rows), pa.bool_())
        place = np.minimum(np.searchsorted(own, rows), len(own) - 1)
        mask = own[place] != rows
        if self.kind is Kind.STRING:
            return pa.DictionaryArray.from_arrays(pa.array(values[place], mask=mask), self.texts())
        return pa.array(values[place], pa.timestamp("us") if self.kind is Kind.TIMESTAMP else None, mask=mask)

    def kept(self, is_kept: Bools, new_row: I64s) -> _Column:
        """The column with some rows alone, under new numbers."""
        rows = self.rows.view()
        chosen = is_kept[rows]
        column = _Column(self.kind)
        column.rows.extend(new_row[rows[chosen]])
        values = self.values.view()[chosen]
        if self.kind is Kind.STRING:
            codes, places = np.unique(values, return_inverse=True)
            column._texts = self.texts().take(pa.array(codes))
            column.codes = {text: code for code, text in enumerate(column._texts.to_pylist())}
            values = places
        column.values.extend(values)
        return column


class ValidEvents:
    """Events with a validity, in columns."""

    def __init__(self) -> None:
        self._clear()
        self.refused = 0
        """How often a subscription asked a stored event about a value outside the language."""

    def _clear(self) -> None:
        self._sequence = GrowingArray(np.int64)
        self._valid_until = GrowingArray(np.int64)
        self._columns: dict[tuple[str, Kind], _Column] = {}
        self._odd: dict[int, FlatEvent] = {}
        self._refused: dict[str, list[int]] = {}
        self._look_again = 4096
        """The number of rows at which the events that are no longer valid are dropped."""

    def __len__(self) -> int:
        return len(self._sequence)

    def add(self, sequence: int, event: FlatEvent, valid_until: int) -> None:
        """Take in an event. Events come in the order of their numbers."""
        row = len(self._sequence)
        self._sequence.append(sequence)
        self._valid_until.append(valid_until)
        for name, values in event.items():
            if isinstance(values, Refused):
                self._refused.setdefault(name, []).append(row)
        if any(map(_is_odd, event.values())):
            self._odd[row] = event
            return
        for name, values in event.items():
            for value in values:
                kind = kind_of(value)
                assert kind is not None
                column = self._columns.get((name, kind))
                if column is None:
                    column = self._columns[name, kind] = _Column(kind)
                column.append(row, value)

    def forget(self, moment: int) -> None:
        """Drop the events that end at a moment or before, if they are many."""
        if len(self) < self._look_again:
            return
        is_kept = self._valid_until.view() > moment
        kept = int(np.count_nonzero(is_kept))
        if 2 * kept <= len(self):
            self._keep(is_kept)
        self._look_again = max(4096, 2 * kept)

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
        return self._matched(wanted, np.flatnonzero(is_valid))

    def _count_refused(self, wanted: Iterable[Expression], is_valid: Bools) -> None:
        if not self._refused:
            return
        for expression in wanted:
            for name in expression.attributes():
                self.refused += int(np.count_nonzero(is_valid[self._refused.get(name, [])]))

    def _satisfying(self, expression: Expression, is_valid: Bools) -> I64s:
        maybe = self._maybe(to_nnf(expression))
        if maybe is not None:
            maybe[list(self._odd)] = True
            is_valid = is_valid & maybe
        rows = np.flatnonzero(is_valid)
        if len(rows) > _FEW:
            return self._matched({0: expression}, rows)[0]
        names = expression.attributes()
        found = [row for row in rows.tolist() if evaluate_flat(expression, self._event(row, names)) is True]
        return self._sequence.view()[np.array(found, np.int64)]

    def _event(self, row: int, names: Iterable[str]) -> FlatEvent:
        """The attributes of an event that an expression asks about."""
        if row in self._odd:
            return self._odd[row]
        event: FlatEvent = {}
        for name in names:
            for kind in _DTYPES:
                column = self._columns.get((name, kind))
                value = None if column is None else column.value(row)
                if value is not None:
                    event[name] = (value,)
        return event

    def _matched(self, wanted: Mapping[int, Expression], rows: I64s) -> dict[int, I64s]:
        """The events among some rows that satisfy each expression, found by a matcher."""
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
        numbers, sequences = numbers[order], self._sequence.view()[places[order]]
        ends = np.searchsorted(numbers, list(wanted), "right")
        starts = np.searchsorted(numbers, list(wanted), "left")
        return {number: sequences[a:b] for number, a, b in zip(wanted, starts, ends, strict=True)}

    def _rows_of_several_kinds(self, name: str) -> list[I64s]:
        """The rows of all kinds of an attribute but the most frequent one: a column of Arrow has one type."""
        columns = [column for kind in _DTYPES if (column := self._columns.get((name, kind))) is not None]
        return [column.rows.view() for column in sorted(columns, key=lambda each: -len(each.rows))[1:]]

    def _array(self, name: str, rows: I64s) -> pa.Array:
        columns = [column for kind in _DTYPES if (column := self._columns.get((name, kind))) is not None]
        if not columns:
            return pa.nulls(len(rows), pa.bool_())
        return max(columns, key=lambda each: len(each.rows)).array(rows)

    # Ruling out rows

    def _maybe(self, node: Expression) -> Bools | None:
        """Which rows may satisfy an expression in negation normal form; None if all may. Odd rows are not considered."""
        match node:
            case Constant():
                return None if node.value else np.zeros(len(self), np.bool_)
            case And():
                masks = [mask for each in node.operands if (mask := self._maybe(each)) is not None]
                return np.logical_and.reduce(masks) if masks else None
            case Or():
                every = [self._maybe(each) for each in node.operands]
                masks = [mask for mask in every if mask is not None]
                return np.logical_or.reduce(masks) if len(masks) == len(every) else None
            case Predicate() if node.operator is not Operator.IS_NULL:
                return self._maybe_predicate(node)
        return None

    def _maybe_predicate(self, predicate: Predicate) -> Bools:
        is_maybe = np.zeros(len(self), np.bool_)
        for kind in _DTYPES if predicate.operator is Operator.IS_NOT_NULL else predicate.kinds:
            column = self._columns.get((predicate.attribute, kind))
            if column is not None:
                rows, chosen = column.rows.view(), _chosen(predicate, kind, column)
                if chosen is None:
                    is_maybe[rows] = True
                elif len(rows) == len(is_maybe):
                    is_maybe |= chosen
                else:
                    is_maybe[rows[chosen]] = True
        return is_maybe


def _is_odd(values: Sequence[Any]) -> bool:
    if len(values) != 1:
        return len(values) > 1
    value = values[0]
    return isinstance(value, Interval) or (type(value) is int and not -_EXACT <= value <= _EXACT)


def _pairs(matcher: Matcher[int], events: Any, rows: I64s) -> tuple[I64s, I64s]:
    """The numbers of subscriptions and the rows of the events that satisfy them."""
    if not len(rows):
        return np.empty(0, np.int64), rows
    found = matcher.match_batch(events, threads=1)
    return found["subscription"].to_numpy(), rows[found["event"].to_numpy()]


class _Range(NamedTuple):
    lo: Any
    hi: Any


def _chosen(predicate: Predicate, kind: Kind, column: _Column) -> Bools | None:
    """Which values of a column may satisfy a predicate; None if all may."""
    literals = [literal for literal in predicate.values if kind_of(literal) is kind]
    values = column.values.view()
    if isinstance(predicate, CasePredicate):
        return None
    if kind is Kind.STRING:
        return _chosen_strings(predicate, literals, column, values)
    stored: list[Any] = [to_microseconds(each) if kind is Kind.TIMESTAMP else each for each in literals]  # type: ignore[arg-type]
    if predicate.operator is Operator.IN:
        return np.isin(values, np.array(stored, values.dtype)) if len(stored) < 1000 else None
    ends = _ends(predicate.operator, stored)
    if ends is None:
        return None
    # Both ends are included: an integer that is not a double is rounded.
    return (values >= float(ends.lo)) & (values <= float(ends.hi)) if kind is Kind.NUMBER else _between(values, ends)


def _between(values: npt.NDArray[Any], ends: _Range) -> Bools:
    is_above: Bools = values >= ends.lo if ends.lo != -np.inf else np.ones(len(values), np.bool_)
    return is_above if ends.hi == np.inf else is_above & (values <= ends.hi)


def _ends(operator: Operator, stored: list[Any]) -> _Range | None:
    match operator:
        case Operator.EQ:
            return _Range(stored[0], stored[0])
        case Operator.LT | Operator.LE:
            return _Range(-np.inf, stored[0])
        case Operator.GT | Operator.GE:
            return _Range(stored[0], np.inf)
        case Operator.BETWEEN:
            return _Range(stored[0], stored[1])
    return None


def _chosen_strings(
    predicate: Predicate, literals: list[Any], column: _Column, values: npt.NDArray[np.int32]
) -> Bools | None:
    match predicate.operator:
        case Operator.EQ:
            return np.equal(values, column.codes.get(literals[0], -1))
        case Operator.IN:
            codes = [code for literal in literals if (code := column.codes.get(literal)) is not None]
            return np.isin(values, np.array(codes, np.int32))
        case Operator.LIKE if predicate.escape is None and "\\" not in literals[0]:
            is_like: Bools = pc.match_like(column.texts(), literals[0]).to_numpy(zero_copy_only=False)
            return is_like[values]
    return None
