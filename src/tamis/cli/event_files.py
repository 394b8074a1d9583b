"""Files of events, in batches: JSONL, CSV, or Parquet (see `Matcher.match_batch`).

The *id* of an event is its number, counted from 0 over all files, or the value of a field. Blank lines have no number. A line
that cannot be read has a number, so the numbers are the same whether bad lines are skipped or not.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tamis.cli.byte_stream import STDIN, ByteStream, cannot_open, without_packed_end
from tamis.cli.event_ids import EventIds, IdColumn
from tamis.cli.event_json import has_timestamps, read_event_id
from tamis.cli.event_lines import CsvEvents, EventLine, JsonEvents, line_problem
from tamis.cli.json_blocks import json_blocks
from tamis.cli.lines import LineError
from tamis.cli.parquet_rows import ParquetRows
from tamis.errors import EventError, FileError

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.encoding.events.asked import Asked
    from tamis.encoding.events.json_lines import JsonLines
    from tamis.language.schema import Schema

FORMATS = ("jsonl", "csv", "parquet")
_ENDS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True, slots=True)
class Batch:
    """Some consecutive events of a file: mappings or a table, their ids and lines, and errors of other lines."""

    file: str
    events: list[dict[str, Any]] | pa.Table | JsonLines
    ids: pa.Array
    lines: Sequence[int]
    errors: list[FileError] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lines)

    def part(self, start: int, end: int) -> Batch:
        """Some of the events, as a batch of their own."""
        return Batch(
            self.file, part_of(self.events, start, end), self.ids.slice(start, end - start), self.lines[start:end]
        )

    def mappings(self) -> list[dict[str, Any]]:
        """The events as mappings, of a file that was read without `asked`."""
        return self.events if isinstance(self.events, list) else cast("pa.Table", self.events).to_pylist()

    def problem(self, row: int, error: EventError) -> str:
        """What is wrong with a line of JSON."""
        return line_problem(error, cast("JsonLines", self.events).text(row))

    def without(self, rows: Sequence[int]) -> Batch:
        """The batch without some of its lines of JSON."""
        import numpy as np
        import pyarrow as pa

        kept = np.delete(np.arange(len(self)), rows)
        lines = [self.lines[row] for row in kept.tolist()]
        return Batch(self.file, cast("JsonLines", self.events).without(rows), self.ids.take(pa.array(kept)), lines)


def part_of(events: Any, start: int, end: int) -> Any:
    """Some of the events, in the form that they have."""
    import pyarrow as pa

    if isinstance(events, list):
        return events[start:end]
    return events.slice(start, end - start) if isinstance(events, pa.Table) else events.slice(start, end)


def format_of(path: str) -> str:
    """The format that the ending of a name gives; JSONL for other names and for stdin."""
    name = without_packed_end(path)
    return next((format for end, format in _ENDS.items() if name.endswith(end)), "jsonl")


def expanded(paths: Sequence[str]) -> list[str]:
    """All files of some paths and patterns (``logs/*.jsonl``), patterns in the order of their names; stdin without any path.

    Raises
    ------
    FileError
        If a file does not exist or cannot be opened, or if no file fits a pattern.
    """
    found: list[str] = []
    for path in paths or [STDIN]:
        if path == STDIN or os.path.lexists(path) or not glob.has_magic(path):
            found.append(path)
            continue
        matched = sorted(each for each in glob.glob(path, recursive=True) if not os.path.isdir(each))
        if not matched:
            raise FileError("no file matches this pattern", path=path)
        found += matched
    if found.count(STDIN) > 1:
        raise FileError("can be read only once", path="stdin")
    for path in found:
        if path != STDIN:
            try:
                open(path, "rb").close()
            except (OSError, ValueError) as error:  # ValueError: a null character in the name
                raise cannot_open(path, error) from None
    return found


class EventFile:
    """A file of events, read once.

    Parameters
    ----------
    path : str
        The file; ``-`` is stdin.
    format : str, optional
        One of FORMATS. By default, the ending of the name decides.
    id_field : str, optional
        The field whose value is the id of an event, a string or an integer.
    schema : Schema, optional
        Declared kinds. JSON has no timestamps, so strings of JSONL are read as timestamps if their attribute is declared so. The
        schema also gives the kinds of CSV columns.
    first : int
        The number of the first event.
    kind : type, optional
        The type of the ids of files before this one.
    asked : callable, optional
        What somebody asks about. Then lines of JSON may be given as they are, and only asked names must not be given twice
        in one object. By default, no name may.
    """

    def __init__(
        self,
        path: str,
        format: str | None = None,
        *,
        id_field: str | None = None,
        schema: Schema | None = None,
        first: int = 0,
        kind: type | None = None,
        asked: Callable[[], Asked] | None = None,
    ) -> None:
        format = format or format_of(path)
        self.number = first
        """The number of the next event."""
        self.kind = kind
        self._id_field = id_field
        self._id_column: IdColumn | None = None
        self._rows: ParquetRows | None = None
        self._is_csv = format == "csv"
        if format == "parquet":
            self._rows = ParquetRows(path)
            self.name = self._rows.name
            if id_field is not None:
                self._id_column = IdColumn(self._rows, id_field, kind)
                self.kind = self._id_column.kind
            return
        self._stream = ByteStream(path)
        self.name = self._stream.name
        self._lines = CsvEvents(self._stream, schema) if self._is_csv else JsonEvents(self._stream, schema, asked)
        # Ids and timestamps are read from objects.
        self._in_blocks = asked is not None and not (self._is_csv or id_field is not None or has_timestamps(schema))

    def share(self) -> float | None:
        """How much of the file is read, from 0 to 1; None if its size is unknown."""
        return self._stream.share() if self._rows is None else self._rows.share()

    def error(self, line: int, message: str) -> FileError:
        """The error for a line of this file."""
        return FileError(message, path=self.name, line=line)

    def batches(self, size: int, *, until_error: bool = False) -> Iterator[Batch]:
        """Batches of up to `size` events. On a live stream a batch does not wait for events that have not come yet.

        With `until_error`, the batch with the first error is the last, and its events are those before the error.
        """
        if self._rows is not None:
            return self._table_batches(self._rows, size, until_error)
        if self._in_blocks and not self._stream.begin().startswith(b"["):
            return self._block_batches(size)
        return self._line_batches(size, until_error)

    @property
    def id_type(self) -> pa.DataType:
        """The type of the ids, if known. For text files it is string until the first id is read."""
        import pyarrow as pa

        return pa.string() if self._id_field is not None and self.kind is not int else pa.int64()

    def _table_batches(self, rows: ParquetRows, size: int, until_error: bool) -> Iterator[Batch]:
        import pyarrow as pa

        for first, table in rows.tables(size):
            if self._id_column is None:
                numbers = pa.array(range(self.number, self.number + table.num_rows), pa.int64())
                batch = Batch(self.name, table, numbers, range(first, first + table.num_rows))
            else:
                batch = _with_ids(rows, first, table, self._id_column.ids(table), until_error)
            self.number += table.num_rows
            yield batch

    def _block_batches(self, size: int) -> Iterator[Batch]:
        """Lines of JSON as they are. Whoever matches them finds which are wrong."""
        import pyarrow as pa

        for block in json_blocks(self._stream):
            numbers = (block.events.numbers + (block.before + 1)).tolist()
            for start in range(0, len(numbers), size):
                lines = numbers[start : start + size]
                ids = pa.array(range(self.number, self.number + len(lines)), pa.int64())
                self.number += len(lines)
                yield Batch(self.name, block.events.slice(start, start + size), ids, lines)

    def _line_batches(self, size: int, until_error: bool) -> Iterator[Batch]:
        events: list[_Event] = []
        errors: list[FileError] = []
        for line in self._lines:
            try:
                events.append(self._read(line))
            except LineError as error:
                errors.append(self.error(line.line, str(error)))
            self.number += 1
            full = len(events) + len(errors) >= size
            if full or not self._lines.ready() or (until_error and errors):
                yield self._batch(events, errors)
                events, errors = [], []
        if events or errors:
            yield self._batch(events, errors)

    def _read(self, line: EventLine) -> _Event:
        if line.problem is not None:
            raise LineError(line.problem)
        event_id: str | int = self.number
        if self._id_field is not None:
            event_id = read_event_id(line.fields, self._id_field, self.kind, texts=self._is_csv)
            self.kind = type(event_id)
        return _Event(line.line, event_id, line.fields)

    def _batch(self, events: list[_Event], errors: list[FileError]) -> Batch:
        import pyarrow as pa

        kind = pa.string() if events and isinstance(events[0].id, str) else pa.int64()
        ids = pa.array([event.id for event in events], kind)
        return Batch(self.name, [event.fields for event in events], ids, [event.line for event in events], errors)


class EventFiles:
    """Several files of events, one after another. Events are numbered through.

    Parameters
    ----------
    paths : list of str
        Files, at least one; see `expanded` for patterns.
    format, id_field, schema, asked
        As of `EventFile`.
    """

    def __init__(
        self,
        paths: Sequence[str],
        format: str | None = None,
        *,
        id_field: str | None = None,
        schema: Schema | None = None,
        asked: Callable[[], Asked] | None = None,
    ) -> None:
        self._paths = paths
        self._asked = asked
        self._format = format
        self._id_field = id_field
        self._schema = schema
        self._done = 0
        self._file = self._opened(None)

    @property
    def several(self) -> bool:
        """Whether there are several files, so that a line number alone does not locate an event."""
        return len(self._paths) > 1

    @property
    def id_type(self) -> pa.DataType:
        """The type of the ids, if known."""
        return self._file.id_type

    def share(self) -> float | None:
        """How much of all files is read, from 0 to 1, as if all had the same size; None if unknown."""
        share = self._file.share()
        return None if share is None else (self._done + share) / len(self._paths)

    def batches(self, size: int, *, until_error: bool = False) -> Iterator[Batch]:
        """The batches of all files, as `EventFile.batches` gives them."""
        while True:
            yield from self._file.batches(size, until_error=until_error)
            if self._done + 1 == len(self._paths):
                return
            self._done += 1
            self._file = self._opened(self._file)

    def _opened(self, before: EventFile | None) -> EventFile:
        first, kind = (0, None) if before is None else (before.number, before.kind)
        path = self._paths[self._done]
        return EventFile(
            path,
            self._format,
            id_field=self._id_field,
            schema=self._schema,
            first=first,
            kind=kind,
            asked=self._asked,
        )


class _Event(NamedTuple):
    line: int
    id: str | int
    fields: dict[str, Any]


def _with_ids(rows: ParquetRows, first: int, table: pa.Table, ids: EventIds, until_error: bool) -> Batch:
    """The rows that have an id, as a batch with errors for the others; `until_error` as in `EventFile.batches`."""
    import pyarrow as pa

    if not ids.problems:
        return Batch(rows.name, table, ids.values, range(first, first + table.num_rows))
    problems = list(ids.problems.items())
    kept = len(ids.rows)
    if until_error:
        problems = problems[:1]
        kept = sum(row < problems[0][0] for row in ids.rows)
    errors = [rows.error(first + row, message) for row, message in problems]
    lines = [first + row for row in ids.rows[:kept]]
    taken = pa.array(ids.rows[:kept], pa.int64())
    return Batch(rows.name, table.take(taken), ids.values.slice(0, kept), lines, errors)
