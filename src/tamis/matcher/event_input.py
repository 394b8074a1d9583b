"""Events as users give them: mappings, or anything that Arrow can read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.encoding.columns import Odd
from tamis.encoding.events.asked import EVERYTHING, Asked
from tamis.encoding.events.event_table import checked_columns
from tamis.encoding.events.mappings import Mappings
from tamis.errors import EventError, OptionError, TableError, did_you_mean, shortened
from tamis.language.event import FlatEvent, is_event, is_of
from tamis.language.schema import Schema
from tamis.language.values import is_iterable


def read_events(events: Any, attributes: Iterable[str] | None = None) -> Mappings | pa.Table:
    """Events as mappings, or as an Arrow table if they are one.

    `attributes` are the columns of a table to read, or the names in mappings with all names below them.

    Raises
    ------
    EventError, TableError
        If they are neither, or cannot be read, or a table lacks a column.
    OptionError
        If `attributes` is not a list of names.
    """
    names = None if attributes is None else checked_names(attributes)
    try:
        table = as_table(events, names)
    except TableError:
        # Arrow cannot hold a column of Python objects. Perhaps nobody asks about this column, so rows are read one by one.
        events = _records(events, names)
        if events is None:
            raise
        table = None
    if table is not None:
        return table
    if is_event(events):
        raise EventError("a batch of events must be a list of mappings or a table. Hint: match() takes a single event")
    if not is_iterable(events):
        raise EventError(
            f"events must be a list of mappings, an Arrow table or record batch, or something with the Arrow PyCapsule "
            f"protocol (polars, pandas, DuckDB), not {type(events).__name__}"
        )
    read = Mappings(events)
    return read if names is None else Mappings([_within(event, names) for event in read.flat()])


def checked_names(attributes: Iterable[str]) -> tuple[str, ...]:
    """The names of the attributes to read.

    Raises
    ------
    OptionError
    """
    if isinstance(attributes, str) or not is_iterable(attributes):
        hint = f". Hint: attributes=[{attributes!r}]" if isinstance(attributes, str) else ""
        raise OptionError(f"`attributes` must be a list of names, not {shortened(attributes)}{hint}")
    names = tuple(attributes)
    for name in names:
        if not isinstance(name, str):
            raise OptionError(f"`attributes` must be a list of names, but {shortened(name)} is not a string")
    return tuple(dict.fromkeys(names))


def _within(event: FlatEvent, names: tuple[str, ...]) -> FlatEvent:
    """An event with only some attributes and the attributes below them."""
    below = tuple(f"{name}." for name in names)
    return {name: values for name, values in event.items() if name in names or name.startswith(below)}


@contextmanager
def rows_counted_from(first: int) -> Iterator[None]:
    """Let errors count the rows of a batch from `first` on."""
    try:
        yield
    except EventError as error:
        if error.row is None or first == 0:
            raise
        raise error.at(first + error.row) from None


def wrong_rows(events: pa.Table, asked: Asked = EVERYTHING, schema: Schema | None = None) -> dict[int, str]:
    """The rows of a table that have a wrong value of an attribute that is asked about, and the problem of each."""
    problems: dict[int, str] = {}
    with arrow_errors():
        for found in checked_columns(events, asked, schema):
            if isinstance(found, Odd):
                found.note(problems)
    return dict(sorted(problems.items()))


def right_rows(events: pa.Table, wrong: Mapping[int, str]) -> pa.Table:
    """The rows that are not wrong."""
    if not wrong:
        return events
    right = np.ones(len(events), np.bool_)
    right[list(wrong)] = False
    return events.filter(pa.array(right))


@contextmanager
def arrow_errors() -> Iterator[None]:
    """Turn errors of Arrow, and of strings that are not UTF-8, into our own error."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise TableError(f"a string is not UTF-8: {error}") from None
    except pa.ArrowException as error:
        raise TableError(f"Arrow cannot read the table: {shortened(error, quoted=False)}") from None


def as_table(data: Any, columns: tuple[str, ...] | None = None) -> pa.Table | None:
    """Arrow data as a table, or some columns of it; None for anything else.

    Raises
    ------
    TableError
        If it cannot be read, or lacks a column.
    """
    if is_of(data, "polars", "LazyFrame"):
        if columns is not None:
            _check_columns(data.collect_schema().names(), columns)
        data = (data if columns is None else data.select(columns)).collect()
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, pa.Table):
        if not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
            return None
        if columns is not None:
            data = _frame_with(data, columns)
        try:
            data = pa.table(data)
        except Exception as error:  # Other libraries raise errors of any class.
            reason = shortened(error, quoted=False)
            raise TableError(f"{type(data).__name__} cannot be read as an Arrow table: {reason}") from None
    if columns is None:
        return data
    _check_columns(data.column_names, columns)
    return data.select([at for at, name in enumerate(data.column_names) if name in columns])


def _frame_with(data: Any, columns: tuple[str, ...]) -> Any:
    """A frame with only some columns, so that nobody converts the others; anything else as it is."""
    if is_of(data, "pandas", "DataFrame"):
        if any(name in columns for name in data.index.names):
            data = data.reset_index()
    elif not is_of(data, "polars", "DataFrame"):
        return data
    _check_columns(list(data.columns), columns)
    return data[list(columns)]


def _records(data: Any, columns: tuple[str, ...] | None) -> list[dict[str, Any]] | None:
    """The rows of a frame; None for anything else."""
    if columns is not None:
        data = _frame_with(data, columns)
    if is_of(data, "pandas", "DataFrame"):
        named = any(name is not None for name in data.index.names)
        rows: list[dict[str, Any]] = (data.reset_index() if named else data).to_dict("records")
        return rows
    return list(data.iter_rows(named=True)) if is_of(data, "polars", "DataFrame") else None


def _check_columns(names: list[str], wanted: tuple[str, ...]) -> None:
    for name in wanted:
        if name not in names:
            known = [str(each) for each in names]
            close = did_you_mean(name, known) or f"; the columns are: {shortened(', '.join(known), quoted=False)}"
            raise TableError(f"the table of events has no column {name!r}{close}")
