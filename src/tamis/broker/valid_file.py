"""The valid events as a file beside the tables. It is a cache: without it, the events are read from the tables.

The name has the last event that the file knows. Rows are those of `ValidEvents`:

    sequence, valid_until     by row
    <n>.values, <n>.rows      of column n, whose attribute and form are in the meta data; no rows if the column is full
    <n>.rests                 the rests of numbers, if there are any
    <n>.texts                 the strings of column n by code
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.broker import cache_names
from tamis.broker.valid_columns import DTYPES, ColumnContents, Form, is_full
from tamis.broker.valid_events import Contents
from tamis.errors import SnapshotError
from tamis.storage import container
from tamis.storage.tables import COLUMN, to_bytes

KIND = "valid"
_CONTENT = "valid events"
_VERSION = 2


class SavedEvents(NamedTuple):
    """A file with valid events that looks good from outside."""

    path: Path
    event: int
    """The last event that it knows."""

    def read(self) -> Contents | None:
        """The events; None if the file is damaged."""
        try:
            # Not mapped: the events stay in memory when the next file takes the place of this one.
            return _read(container.open(self.path, mmap=False))
        except (SnapshotError, OSError):
            return None

    def delete(self) -> None:
        with suppress(OSError):
            self.path.unlink()


def write_valid(folder: Path, contents: Contents, event: int) -> str:
    """Write valid events up to an event to a file. Returns its name.

    Raises
    ------
    SnapshotError
    """
    arrays: dict[str, npt.NDArray[Any]] = {"sequence": contents.sequence, "valid_until": contents.valid_until}
    for place, column in enumerate(contents.columns.values()):
        if not is_full(column.rows, len(contents.sequence)):
            arrays[f"{place}.rows"] = column.rows
        if column.rests is not None:
            arrays[f"{place}.rests"] = column.rests
        arrays[f"{place}.values"] = column.values
        if column.texts is not None:
            arrays[f"{place}.texts"] = to_bytes(column.texts)
    name = cache_names.new_name(KIND, (event,))
    columns = [[attribute, form.value] for attribute, form in contents.columns]
    container.write(folder / name, arrays, _meta(columns))
    return name


def find_valid(folder: Path, own: Collection[str]) -> SavedEvents | None:
    """The newest file that looks good; None if there is none. `own` has the names of files that belong to the tables."""
    for numbers, name in cache_names.numbered(own, KIND):
        with suppress(SnapshotError, OSError):
            meta = container.open(folder / name).meta
            if meta == _meta(meta.get("columns")):
                return SavedEvents(folder / name, *numbers)
    return None


def _meta(columns: Any) -> dict[str, Any]:
    return {"content": _CONTENT, "content_version": _VERSION, "columns": columns}


def _read(opened: container.Container) -> Contents:
    sequence = opened.array("sequence")
    columns = {}
    for place, (name, word) in enumerate(opened.meta["columns"]):
        form, rows, rests = Form(word), f"{place}.rows", f"{place}.rests"
        columns[name, form] = ColumnContents(
            opened.array(rows) if rows in opened.names else np.arange(len(sequence)),
            opened.array(f"{place}.values"),
            opened.array(rests) if rests in opened.names else None,
            _texts(opened.table(f"{place}.texts")) if form is Form.STRING else None,
        )
        assert columns[name, form].values.dtype == DTYPES[form]
    return Contents(sequence, opened.array("valid_until"), columns)


def _texts(table: pa.Table) -> pa.Array:
    return pa.concat_arrays(table[COLUMN].chunks) if table.num_rows else pa.array([], pa.string())
