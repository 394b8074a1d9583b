"""Columns of events as values of Python, the way a publisher would write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import EventError
from tamis.kernels.numbers import Bools, I64s

_Read = Callable[[Any], Any]


class ColumnReader:
    """Reads values of one column.

    struct, map        objects, without the fields that are null
    array              lists
    timestamp          datetimes in UTC; without a zone, as they are
    """

    def __init__(self, kind: pa.DataType, name: str) -> None:
        self._name = name
        self._read = _reader(kind)

    def values(self, column: pa.Array) -> list[Any]:
        """The values of a column.

        Raises
        ------
        EventError
            Python has no such value, such as a timestamp of the year 20000.
        """
        try:
            found = column.to_pylist()
            read = self._read
            return found if read is None else [None if value is None else read(value) for value in found]
        except (ValueError, OverflowError) as error:
            raise EventError(f"a value cannot be stored: {error}", attribute=self._name) from None


def _reader(kind: pa.DataType) -> _Read | None:
    """What turns a value of Arrow into our own; None if that is the same."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _in_utc
    if pa.types.is_struct(kind):
        fields = {field.name: _reader(field.type) for field in kind}
        return lambda value: {name: _read(fields[name], each) for name, each in value.items() if each is not None}
    if pa.types.is_map(kind):
        item = _reader(kind.item_type)
        return lambda pairs: {name: _read(item, value) for name, value in pairs if value is not None}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = _reader(kind.value_type)
        return None if item is None else lambda values: [_read(item, value) for value in values]
    return None


def _in_utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def _read(reader: _Read | None, value: Any) -> Any:
    return value if reader is None or value is None else reader(value)


def spread(held: Any) -> dict[str, Any]:
    """The attributes in a column that holds all of them: a map, or a list of attributes and values, where a name may repeat."""
    if held is None or isinstance(held, dict):
        return held or {}
    found: dict[str, list[Any]] = {}
    for each in held:
        if each is not None and "value" in each:
            found.setdefault(each["attribute"], []).append(each["value"])
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def run_starts(columns: Sequence[pa.Array]) -> I64s:
    """The rows that differ from the row before. A NaN differs from every value."""
    length = len(columns[0])
    differs = np.zeros(max(0, length - 1), bool)
    for column in columns:
        differs |= _differs(column)
    return np.flatnonzero(np.append(np.ones(min(1, length), bool), differs))


def _differs(column: pa.Array) -> Bools:
    before, after = column[:-1], column[1:]
    try:
        found = pc.fill_null(pc.not_equal(before, after), pc.xor(before.is_null(), after.is_null()))
    except pa.ArrowNotImplementedError:  # structs, maps, lists
        try:
            found = [one != other for one, other in pairwise(column.to_pylist())]
        except (ValueError, OverflowError):  # a value that `ColumnReader` refuses
            found = [True] * len(before)
    return np.array(found, bool)
