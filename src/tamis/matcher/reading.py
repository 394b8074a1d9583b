"""What callers hand in as events: dictionaries, or anything that Arrow can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tamis.errors import EventError, TableError, shortened
from tamis.language.event import FlatEvent, flatten
from tamis.language.values import is_iterable


def read_events(events: Any) -> list[FlatEvent] | pa.Table:
    """Events as flat dictionaries or as an Arrow table, whichever they come as.

    Raises
    ------
    EventError, TableError
        When they are neither, or cannot be read.
    """
    table = as_table(events)
    if table is not None:
        return table
    if isinstance(events, Mapping):
        raise EventError("a batch of events is a list of mappings or a table. Hint: match() takes a single event")
    if not is_iterable(events):
        raise EventError(
            f"events are a list of mappings, an Arrow table or record batch, or something with the Arrow PyCapsule "
            f"protocol (polars, pandas, DuckDB), not {type(events).__name__}"
        )
    return [flatten(event, row=row) for row, event in enumerate(events)]


@contextmanager
def rows_counted_from(first: int) -> Iterator[None]:
    """Let errors count the rows of a batch from another number than 0."""
    try:
        yield
    except EventError as error:
        if error.row is None or first == 0:
            raise
        raise EventError(error.reason, row=first + error.row, attribute=error.attribute) from None


@contextmanager
def arrow_errors() -> Iterator[None]:
    """Turn what Arrow says of data that it cannot handle, or that is no UTF-8, into our own error."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise TableError(f"a string is not UTF-8: {error}") from None
    except pa.ArrowException as error:
        raise TableError(f"Arrow cannot read the table: {shortened(error, quoted=False)}") from None


def as_table(data: Any) -> pa.Table | None:
    """Arrow data as a table; None for anything else."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        try:
            return pa.table(data)
        except Exception as error:  # whatever the other library raises
            reason = shortened(error, quoted=False)
            raise TableError(f"{type(data).__name__} cannot be read as an Arrow table: {reason}") from None
    return None
