"""The stored events that are still valid, in columns, so that a new subscription meets a million of them in milliseconds.

A column belongs to an attribute and a kind of values. It has the rows of the events with such a value, and the values:

    sequence, valid_until   by row: 40, 41, 44, ...             columns   genre, string   row  0 1 3    code   0 0 1
    odd                     rows that columns cannot hold                 price, number   row  0 1 2    value  15.0 9.9 30.0

Strings are codes. An event is *odd* if an attribute has several values, an Interval, or an integer that no double can hold; it
is kept whole. Columns decide comparisons, and string predicates if there are few strings. Of other predicates they only say which
rows may satisfy them. The reference evaluator then decides on a few rows, and a matcher on many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
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
from tamis.language.operators import POSITIVE, Operator
from tamis.language.values import Interval, Kind, Scalar, from_microseconds, kind_of, to_microseconds
from tamis.matcher.matcher import Matcher

_EXACT = 2**53
"""Integers up to this size are doubles."""
_FEW_STRINGS = 2000
"""Strings of a column that are each asked about a predicate by the reference evaluator."""
_FEW = 256
"""Rows that the reference evaluator decides on faster than a matcher, which has to be made first."""
_BY_CODE = frozenset((Operator.EQ, Operator.NE, Operator.IN, Operator.NOT_IN))
"""Operators that need only the codes of their literals."""
_DTYPES = {Kind.NUMBER: np.float64, Kind.STRING: np.int32, Kind.TIMESTAMP: np.int64, Kind.BOOLEAN: np.bool_}


class _Column:
    """The values of one attribute and kind, with the rows that have them, ascending."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._rows, self._values = GrowingArray(np.int64), GrowingArray(_DTYPES[kind])
        self._new_rows: list[int] = []
        self._new_values: list[Any] = []
        """Appending to lists takes a tenth of the time. They move to the arrays when the column is read."""
        self.codes: dict[str, int] = {}
        self._texts = pa.array([], pa.string())

    def append(self, row: int, value: Any) -> None:
        if self.kind is Kind.STRING:
            value = self.codes.setdefault(value, len(self.codes))
        elif self.kind is Kind.TIMESTAMP:
            value = to_microseconds(value)
        self._new_rows.append(row)
        self._new_values.append(value)

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

    def texts(self) -> pa.Array:
        """The strings by code."""
        if len(self._texts) < len(self.codes):
            later = list(islice(self.codes, len(self._texts), None))
            self._texts = pa.concat_arrays([self._texts, pa.array(later, pa.string())])
        return self._texts

    def value(self, row: int) -> Scalar | None:
        """The value of a row; None if it has none."""
        rows = self.rows
        place = int(np.searchsorted(rows, row))
        if place == len(rows) or rows[place] != row:
            return None
        value = self.values[place].item()
        if self.kind is Kind.STRING:
            text: str = self.texts()[value].as_py()
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
            return pa.DictionaryArray.from_arrays(pa.array(values[place], mask=mask), self.texts())
        return pa.array(values[place], pa.timestamp("us") if self.kind is Kind.TIMESTAMP else None, mask=mask)

    def kept(self, is_kept: Bools, new_row: I64s) -> _Column:
        """The column with some rows alone, under new numbers."""
        chosen = is_kept[self.rows]
        column = _Column(self.kind)
        column._rows.extend(new_row[self.rows[chosen]])
        values = self.values[chosen]
        if self.kind is Kind.STRING:
            codes, places = np.unique(values, return_inverse=True)
            column._texts = self.texts().take(pa.array(codes))
            column.codes = {text: code for code, text in enumerate(column._texts.to_pylist())}
            values = places
        column._values.extend(values)
        return column


class _Chosen(NamedTuple):
    """Rows that satisfy an expression, or at least all rows that may satisfy it."""

    rows: Bools
    is_exact: bool


class ValidEvents:
    """Events with a validity, in columns."""

    def __init__(self, *, few_rows: int = _FEW, few_strings: int = _FEW_STRINGS, look_again: int = 4096) -> None:
        self._few_rows, self._few_strings, self._fewest = few_rows, few_strings, look_again
        self._clear()
        self.refused = 0
        """How often a subscription asked a stored event about a value outside the language."""

    def _clear(self) -> None:
        self._sequence = GrowingArray(np.int64)
        self._valid_until = GrowingArray(np.int64)
        self._columns: dict[tuple[str, Kind], _Column] = {}
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
            for kind in _DTYPES:
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
        columns = [column for kind in _DTYPES if (column := self._columns.get((name, kind))) is not None]
        return [column.rows for column in sorted(columns, key=lambda each: -len(each.rows))[1:]]

    def _array(self, name: str, rows: I64s) -> pa.Array:
        columns = [column for kind in _DTYPES if (column := self._columns.get((name, kind))) is not None]
        if not columns:
            return pa.nulls(len(rows), pa.bool_())
        return max(columns, key=lambda each: len(each.rows)).array(rows)

    # Deciding by columns. Odd rows are not considered.

    def _chosen(self, node: Expression) -> _Chosen:
        """The rows that satisfy an expression in negation normal form, or may satisfy it."""
        match node:
            case Constant():
                return _Chosen(np.full(len(self), node.value), True)
            case And():
                return self._conjunction(sorted(node.operands, key=self._is_costly))
            case Or():
                parts = [self._chosen(each) for each in node.operands]
                return _Chosen(
                    np.logical_or.reduce([part.rows for part in parts]), all(part.is_exact for part in parts)
                )
            case Predicate() if node.operator is Operator.IS_NULL:
                present = self._predicate(node.with_operator(Operator.IS_NOT_NULL))
                return _Chosen(~present.rows, True)
            case Predicate():
                return self._predicate(node)
        return _Chosen(np.ones(len(self), np.bool_), False)

    def _conjunction(self, operands: list[Expression]) -> _Chosen:
        """Costly operands come last. If few rows are left for one, it is cheaper to decide on these rows alone."""
        chosen = _Chosen(np.ones(len(self), np.bool_), True)
        for operand in operands:
            if self._is_costly(operand) and 4 * np.count_nonzero(chosen.rows) < len(self):
                return _Chosen(chosen.rows, False)
            part = self._chosen(operand)
            chosen = _Chosen(chosen.rows & part.rows, chosen.is_exact and part.is_exact)
        return chosen

    def _is_costly(self, node: Expression) -> bool:
        """Whether a predicate looks at many strings."""
        if not isinstance(node, Predicate) or Kind.STRING not in node.kinds:
            return False
        column = self._columns.get((node.attribute, Kind.STRING))
        is_simple = node.operator in _BY_CODE and not isinstance(node, CasePredicate)
        return column is not None and not is_simple and len(column.codes) > self._few_strings

    def _predicate(self, predicate: Predicate) -> _Chosen:
        is_chosen = np.zeros(len(self), np.bool_)
        is_presence = predicate.operator is Operator.IS_NOT_NULL
        kinds = tuple(_DTYPES) if is_presence else predicate.kinds
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
        return _Chosen(is_chosen, is_exact)


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


def chosen_values(predicate: Predicate, kind: Kind, column: _Column, few_strings: int) -> _Chosen | None:
    """The values of a column that satisfy a predicate, or may satisfy it; None if all may."""
    literals: list[Any] = [literal for literal in predicate.values if kind_of(literal) is kind]
    positive = POSITIVE.get(predicate.operator)
    if positive is not None:  # A negative predicate is TRUE where there is a value and the positive one is FALSE.
        chosen = chosen_values(predicate.with_operator(positive), kind, column, few_strings)
        return _Chosen(~chosen.rows, True) if chosen is not None and chosen.is_exact else None
    if kind is Kind.STRING:
        return _chosen_strings(predicate, literals, column, few_strings)
    if kind is Kind.TIMESTAMP:
        literals = list(map(to_microseconds, literals))
    elif kind is Kind.NUMBER and not all(-_EXACT <= each <= _EXACT for each in literals):
        return None
    values = column.values
    match predicate.operator:
        case Operator.EQ:
            return _Chosen(values == literals[0], True)
        case Operator.LT:
            return _Chosen(values < literals[0], True)
        case Operator.LE:
            return _Chosen(values <= literals[0], True)
        case Operator.GT:
            return _Chosen(values > literals[0], True)
        case Operator.GE:
            return _Chosen(values >= literals[0], True)
        case Operator.BETWEEN:
            return _Chosen((values >= literals[0]) & (values <= literals[1]), True)
        case Operator.IN:
            return _Chosen(np.isin(values, np.array(literals, values.dtype)), True)
    return None


def _chosen_strings(predicate: Predicate, literals: list[str], column: _Column, few_strings: int) -> _Chosen | None:
    """As `chosen_values`, for strings: a predicate is asked about each string once."""
    is_cased = isinstance(predicate, CasePredicate)
    if not is_cased:
        if predicate.operator is Operator.EQ:
            return _Chosen(np.equal(column.values, column.codes.get(literals[0], -1)), True)
        if predicate.operator is Operator.IN:
            codes = [code for literal in literals if (code := column.codes.get(literal)) is not None]
            return _Chosen(np.isin(column.values, np.array(codes, np.int32)), True)
    if len(column.codes) <= few_strings:
        name = predicate.attribute
        is_true = np.array([evaluate_flat(predicate, {name: (text,)}) is True for text in column.codes], np.bool_)
        return _Chosen(is_true[column.values], _has_one_kind(predicate))
    if not is_cased and predicate.operator is Operator.LIKE and predicate.escape is None and "\\" not in literals[0]:
        is_like: Bools = pc.match_like(column.texts(), literals[0]).to_numpy(zero_copy_only=False)
        return _Chosen(is_like[column.values], False)
    return None


def _has_one_kind(predicate: Predicate) -> bool:
    return len(predicate.kinds) == 1
