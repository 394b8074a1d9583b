"""Matches to stdout or to a file, as JSONL, CSV or Parquet.

A table of matches has the columns `event`, `file` where there are several, `line`, and `subscription` or (counts) `matches`.
Arrow makes the text, a column at a time: a busy event has a hundred thousand matches.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from tamis.cli.byte_stream import PACKED_ENDS, without_packed_end
from tamis.cli.whole_file import whole_file
from tamis.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa

STDOUT = "-"
FORMATS = ("jsonl", "csv", "parquet")

ROWS_AT_ONCE = 1 << 18
"""Matches written at a time. This bounds the text in memory, and keeps it within the 2 GB of an Arrow string array."""


def write_all(stream: BinaryIO, data: bytes | memoryview) -> None:
    """Write all bytes. A stream without a buffer, such as stdout of `python -u`, may take a part at a time."""
    left = memoryview(data)
    while left:
        left = left[stream.write(left) :]


class MatchWriter(ABC):
    """Takes tables of matches, all with the same columns."""

    def __init__(self, stream: BinaryIO, rows_at_once: int) -> None:
        self.stream = stream
        self.rows_at_once = rows_at_once

    @abstractmethod
    def write(self, matches: pa.Table) -> None:
        """Write some matches. Text is flushed to the reader of the stream when this returns."""

    @abstractmethod
    def finish(self, schema: pa.Schema) -> None:
        """Complete the file. The schema gives its columns if there were no matches."""

    def _write_lines(self, matches: pa.Table, around: list[str], quote: Callable[[str], str]) -> None:
        """Write a line per row: its values as text, with the strings `around` before, between and after them."""
        import pyarrow.compute as pc

        for start in range(0, matches.num_rows, self.rows_at_once):
            part = matches.slice(start, self.rows_at_once)
            values = [_texts(column, quote) for column in part.columns]
            pieces = [piece for pair in zip(around, values, strict=False) for piece in pair]
            lines = pc.binary_join_element_wise(*pieces, around[-1], "")
            size = pc.sum(pc.binary_length(lines)).as_py()
            write_all(self.stream, memoryview(lines.buffers()[2])[:size])
        self.stream.flush()


@contextmanager
def open_matches(path: str, format: str | None = None, *, rows_at_once: int = ROWS_AT_ONCE) -> Iterator[MatchWriter]:
    """A writer to a file, which appears when the block ends without an error, or to stdout (``-``).

    Parameters
    ----------
    format : str, optional
        One of FORMATS. By default, the ending of the name decides, else JSONL. Text under a name in `.gz` or `.zst` is packed.

    Raises
    ------
    FileError
        When the file cannot be written.
    """
    kind = format or _format_of(path)
    writer = _WRITERS[kind]
    if path == STDOUT:
        if kind == "parquet":
            raise FileError("Parquet must be written to a file. Hint: --output matches.parquet", path="stdout")
        if sys.stdout is None:
            raise FileError("is closed", path="stdout")
        yield writer(sys.stdout.buffer, rows_at_once)
    elif path.lower().endswith(PACKED_ENDS):
        if kind == "parquet":
            raise FileError("Parquet files are already compressed. Hint: use a name that ends in .parquet", path=path)
        with whole_file(path) as stream, _packing(path, stream) as packed:
            yield writer(packed, rows_at_once)
    else:
        with whole_file(path) as stream:
            yield writer(stream, rows_at_once)


def _format_of(path: str) -> str:
    ends = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
    name = without_packed_end(path)
    return next((format for end, format in ends.items() if name.endswith(end)), "jsonl")


def _packing(path: str, stream: BinaryIO) -> BinaryIO:
    if path.lower().endswith(".zst"):
        import pyarrow as pa

        # It closes the file that it writes to, so it gets a second handle.
        return cast(BinaryIO, pa.CompressedOutputStream(os.fdopen(os.dup(stream.fileno()), "wb"), "zstd"))
    # Without name and time, so that the same matches give the same bytes.
    return cast(BinaryIO, gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0))


class _JsonWriter(MatchWriter):
    def write(self, matches: pa.Table) -> None:
        first, *others = (f'"{name}": ' for name in matches.column_names)
        self._write_lines(matches, ["{" + first, *(f", {name}" for name in others), "}\n"], json.dumps)

    def finish(self, schema: pa.Schema) -> None:
        self.stream.flush()


class _CsvWriter(MatchWriter):
    _begun = False

    def write(self, matches: pa.Table) -> None:
        self._begin(matches.column_names)
        between = [","] * (matches.num_columns - 1)
        self._write_lines(matches, ["", *between, "\n"], _csv_field)

    def finish(self, schema: pa.Schema) -> None:
        self._begin(schema.names)
        self.stream.flush()

    def _begin(self, names: list[str]) -> None:
        if not self._begun:
            self.stream.write(f"{','.join(names)}\n".encode())
            self._begun = True


class _ParquetWriter(MatchWriter):
    """Collects small tables: each written table is a row group, and many small row groups make a file slow."""

    def __init__(self, stream: BinaryIO, rows_at_once: int) -> None:
        super().__init__(stream, rows_at_once)
        self._writer: Any = None
        self._waiting: list[pa.Table] = []

    def write(self, matches: pa.Table) -> None:
        self._waiting.append(matches)
        if sum(table.num_rows for table in self._waiting) >= self.rows_at_once:
            self._write_waiting()

    def finish(self, schema: pa.Schema) -> None:
        if self._writer is None and not self._waiting:
            self._waiting.append(schema.empty_table())
        if self._waiting:
            self._write_waiting()
        self._writer.close()

    def _write_waiting(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        matches = pa.concat_tables(self._waiting)
        self._waiting = []
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.stream, matches.schema, compression="zstd")
        self._writer.write_table(matches)


_WRITERS: dict[str, type[MatchWriter]] = {"jsonl": _JsonWriter, "csv": _CsvWriter, "parquet": _ParquetWriter}


def _texts(column: pa.ChunkedArray, quote: Callable[[str], str]) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    from tamis.encoding.columns import combined

    values = combined(column)
    if pa.types.is_integer(values.type):
        return values.cast(pa.string())
    encoded = pc.dictionary_encode(values)
    quoted = pa.array([quote(text) for text in encoded.dictionary.to_pylist()], pa.string())
    return quoted.take(encoded.indices)


def _csv_field(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if not text or any(mark in text for mark in ',"\r\n') else text
