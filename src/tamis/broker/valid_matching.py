"""Many subscriptions meet valid events: a matcher is made of the subscriptions, and the columns become a table of Arrow.

A column of Arrow has one type. A row with another value, such as a number where nearly all rows have strings, becomes a mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.broker.valid_columns import Column, Columns, Form
from tamis.kernels.numbers import Bools, I64s
from tamis.language.event import FlatEvent
from tamis.language.expression import Expression
from tamis.matcher.matcher import Matcher


def matched(columns: Columns, wanted: Mapping[int, Expression], rows: I64s) -> dict[int, I64s]:
    """The rows among some that satisfy each expression, ascending."""
    matcher: Matcher[int] = Matcher()
    matcher.add_many(list(wanted), list(wanted.values()))
    names = sorted({name for expression in wanted.values() for name in expression.attributes()})
    is_other = _others(columns, names, int(rows[-1]) + 1)[rows]
    others, plain = rows[is_other], rows[~is_other]
    events = [_event(columns, names, row) for row in others.tolist()]
    table = {name: _array(columns, name, plain) for name in names}
    found = [_pairs(matcher, events, others), _pairs(matcher, pa.table(table) if table else [{}] * len(plain), plain)]
    numbers, places = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((places, numbers))
    numbers, places = numbers[order], places[order]
    ends = np.searchsorted(numbers, list(wanted), "right")
    starts = np.searchsorted(numbers, list(wanted), "left")
    return {number: places[a:b] for number, a, b in zip(wanted, starts, ends, strict=True)}


def _others(columns: Columns, names: Sequence[str], count: int) -> Bools:
    """Which of the first rows have a value that does not fit into the column of Arrow."""
    is_other = np.zeros(count, np.bool_)
    for name in names:
        ordered = [column for _, column in _by_size(columns, name)]
        other = [column.rows for column in ordered[1:]]
        if ordered and ordered[0].form not in _TYPES:
            other.append(ordered[0].rows)
        elif ordered and (rests := ordered[0].rests) is not None and not _are_integers(ordered[0]):
            other.append(ordered[0].rows[rests != 0])
        for rows in other:
            is_other[rows[rows < count]] = True
    return is_other


def _by_size(columns: Columns, name: str) -> list[tuple[Form, Column]]:
    """The columns of an attribute: that of Arrow first, which has scalars and the most rows of those."""
    return sorted(columns.present(name), key=lambda each: (each[1].form not in _TYPES, -len(each[1].rows)))


_TYPES = (Form.NUMBER, Form.STRING, Form.TIMESTAMP, Form.BOOLEAN)


def _are_integers(column: Column) -> bool:
    """Whether all numbers of a column are integers of 64 bits."""
    values = column.values
    return bool(((values == np.floor(values)) & (np.abs(values) < 2.0**63)).all())


def _event(columns: Columns, names: Sequence[str], row: int) -> FlatEvent:
    """The attributes of an event that subscriptions ask about."""
    return {name: values for name in names if (values := columns.flat(name, row))}


def _array(columns: Columns, name: str, rows: I64s) -> pa.Array:
    """The values of some rows: lists if rows have several, null where a row has none."""
    column = next((column for form, column in _by_size(columns, name) if form in _TYPES), None)
    if column is None or not len(column.rows):
        return pa.nulls(len(rows), pa.bool_())
    starts, ends = (np.searchsorted(column.rows, rows, side) for side in ("left", "right"))
    if not column.has_repeats:
        places = np.minimum(starts, len(column.rows) - 1)
        return _arrow(column, places, starts == ends)
    counts = ends - starts
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    places = np.repeat(starts - offsets[:-1], counts) + np.arange(offsets[-1])
    return pa.ListArray.from_arrays(pa.array(offsets), _arrow(column, places, None))


def _arrow(column: Column, places: I64s, is_null: Bools | None) -> pa.Array:
    """The values at some places of a column."""
    values: npt.NDArray[Any] = column.values[places]
    if column.form is Form.STRING:
        return pa.DictionaryArray.from_arrays(pa.array(values, mask=is_null), column.strings.texts())
    if column.rests is not None and _are_integers(column):
        values = values.astype(np.int64) + column.rests[places]
    return pa.array(values, pa.timestamp("us") if column.form is Form.TIMESTAMP else None, mask=is_null)


def _pairs(matcher: Matcher[int], events: Any, rows: I64s) -> tuple[I64s, I64s]:
    """The numbers of subscriptions and the rows of the events that satisfy them."""
    if not len(rows):
        return np.empty(0, np.int64), rows
    found = matcher.match_batch(events, threads=1)
    return found["subscription"].to_numpy(), rows[found["event"].to_numpy()]
