"""What callers hand in as events: dictionaries, or anything that Arrow can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.dimensions import Dimensions
from tamis.encoding.event_table import TableEncoder
from tamis.errors import EventError, TableError, shortened
from tamis.language.event import FlatEvent, flatten
from tamis.language.schema import Schema
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


def wrong_rows(events: pa.Table, schema: Schema | None = None) -> dict[int, str]:
    """The rows of a table that are no events, and why: also those with a string that is not UTF-8, whoever asks about it.

    Columns have types that events may have.
    """
    wrong: dict[int, str] = {}
    left = np.arange(len(events))
    while len(left) and (found := _something_wrong(events, schema)) is not None:
        reason, rows = found
        if rows is None and len(left) > 1:  # Nobody can tell which rows it is: those of one half, or of both.
            for half in (slice(0, len(left) // 2), slice(len(left) // 2, len(left))):
                part = wrong_rows(events.slice(half.start, half.stop - half.start), schema)
                wrong.update((int(left[half][row]), why) for row, why in part.items())
            break
        which = np.zeros(len(left), np.bool_)
        which[slice(None) if rows is None else rows] = True
        wrong.update((row, reason) for row in left[which].tolist())
        events, left = events.filter(pa.array(~which)), left[~which]
    return dict(sorted(wrong.items()))


def _something_wrong(events: pa.Table, schema: Schema | None) -> tuple[str, npt.NDArray[np.int64] | None] | None:
    """What is wrong with some rows, and with which, if that is known."""
    try:
        with arrow_errors():
            TableEncoder(events, Dimensions(), schema).check()
    except EventError as error:
        return error.reason if error.attribute is None else f"attribute {error.attribute!r}: {error.reason}", error.rows
    except TableError as error:
        return str(error), None
    return None


def right_rows(events: pa.Table, wrong: Mapping[int, str]) -> pa.Table:
    """All rows but the wrong ones."""
    if not wrong:
        return events
    right = np.ones(len(events), np.bool_)
    right[list(wrong)] = False
    return events.filter(pa.array(right))


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
