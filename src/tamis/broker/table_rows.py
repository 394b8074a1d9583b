"""Rows of Arrow tables as events, the way a publisher would write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from tamis.encoding.columns import combined, is_variant
from tamis.encoding.events.event_columns import is_long
from tamis.errors import EventError, TableError, shortened

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


def _reader(kind: pa.DataType, *, in_entry: bool = False) -> _Read | None:
    """What turns a value of Arrow into our own; None if that is the same. The value of an entry may be a variant."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _in_utc
    if pa.types.is_struct(kind) and is_variant(kind) and in_entry:
        return lambda value: next((each for each in value.values() if each is not None), None)
    if pa.types.is_struct(kind):
        is_entry = {field.name for field in kind} == {"attribute", "value"}
        fields = {field.name: _reader(field.type, in_entry=is_entry) for field in kind}
        return lambda value: {name: _read(fields[name], each) for name, each in value.items() if each is not None}
    if pa.types.is_map(kind):
        item = _reader(kind.item_type, in_entry=True)
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


def row_events(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as events. Null is a missing attribute.

    Raises
    ------
    EventError
    TableError
        A column is given twice.
    """
    names = table.column_names
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise TableError(f"the column {shortened(twice)} is given twice. Hint: rename or drop one of them")
    columns = [
        ColumnReader(field.type, field.name).values(combined(column))
        for field, column in zip(table.schema, table.columns, strict=True)
    ]
    if is_long(table):
        return list(map(spread, columns[0]))
    rows = zip(*columns, strict=True) if columns else ([] for _ in range(len(table)))
    return [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows]
