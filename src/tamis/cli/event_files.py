"""Files of events, in batches: JSONL (an object per line) or Parquet (see `Matcher.match_batch`).

An event is known by its *label*: its number, counted from 0 over all lines that are not empty, or the value of a field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.cli.event_json import TimestampReader, read_label
from tamis.cli.event_labels import LabelColumn, Labels
from tamis.cli.json_text import JsonError, read_object
from tamis.cli.lines import Line, Lines, not_text
from tamis.cli.parquet_rows import ParquetRows
from tamis.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.language.schema import Schema

FORMATS = ("jsonl", "parquet")


@dataclass(frozen=True, slots=True)
class Batch:
    """Some consecutive events of a file: mappings or a table, their labels and lines; what was wrong with other lines."""

    events: list[dict[str, Any]] | pa.Table
    labels: pa.Array
    lines: Sequence[int]
    errors: list[FileError] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lines)

    def part(self, start: int, end: int) -> Batch:
        """Some of the events, as a batch of their own."""
        events = self.events[start:end] if isinstance(self.events, list) else self.events.slice(start, end - start)
        return Batch(events, self.labels.slice(start, end - start), self.lines[start:end])


class EventFile:
    """A file of events, read once.

    Parameters
    ----------
    path : str
        The file; ``-`` is stdin, JSONL.
    format : str, optional
        One of FORMATS. If it is not given, what ends in `.parquet` or `.pq` is Parquet, anything else JSONL.
    label : str, optional
        The field whose value is the label of an event, a string or an integer.
    schema : Schema, optional
        Strings of JSONL under attributes that it declares as timestamps are read as such: JSON has none.
    """

    def __init__(
        self, path: str, format: str | None = None, *, label: str | None = None, schema: Schema | None = None
    ) -> None:
        parquet = format == "parquet" if format else path.lower().endswith((".parquet", ".pq"))
        self._content: Lines | ParquetRows = ParquetRows(path) if parquet else Lines(path)
        self._label = label
        self._label_column: LabelColumn | None = None
        if label is not None and isinstance(self._content, ParquetRows):
            self._label_column = LabelColumn(self._content, label)
        self._kind: type | None = None
        self._timestamps = TimestampReader(schema)

    @property
    def name(self) -> str:
        return self._content.name

    def share(self) -> float | None:
        """How much of the file is read, from 0 to 1; None if its size is unknown."""
        return self._content.share()

    def error(self, line: int, message: str) -> FileError:
        """The error for a line of this file."""
        return self._content.error(line, message)

    def batches(self, size: int, *, until_error: bool = False) -> Iterator[Batch]:
        """Batches of up to `size` events. On a live stream a batch does not wait for events that have not come yet.

        With `until_error`, the batch with the first error is the last, and its events are those before the error.
        """
        if isinstance(self._content, ParquetRows):
            return self._table_batches(self._content, size, until_error)
        return self._line_batches(self._content, size, until_error)

    @property
    def label_type(self) -> pa.DataType:
        """The type of the labels, as far as it is known: those of JSONL are strings until one is read."""
        import pyarrow as pa

        if self._label_column is not None:
            return self._label_column.type
        return pa.string() if self._label is not None and self._kind is not int else pa.int64()

    def _table_batches(self, rows: ParquetRows, size: int, until_error: bool) -> Iterator[Batch]:
        import pyarrow as pa

        for first, table in rows.tables(size):
            if self._label_column is None:
                numbers = pa.array(range(first - 1, first - 1 + table.num_rows), pa.int64())
                yield Batch(table, numbers, range(first, first + table.num_rows))
            else:
                yield _labelled(rows, first, table, self._label_column.labels(table), until_error)

    def _line_batches(self, lines: Lines, size: int, until_error: bool) -> Iterator[Batch]:
        events: list[_Event] = []
        errors: list[FileError] = []
        for number, line in enumerate(line for line in lines if line.text.strip()):
            try:
                event = self._read(line, number)
                self._kind = type(event.label)
                events.append(event)
            except JsonError as error:
                errors.append(lines.error(line.number, str(error)))
            full = len(events) + len(errors) >= size
            if full or not lines.ready() or (until_error and errors):
                yield _batch(events, errors)
                events, errors = [], []
        if events or errors:
            yield _batch(events, errors)

    def _read(self, line: Line, number: int) -> _Event:
        if problem := not_text(line.text):
            raise JsonError(problem)
        event = read_object(line.text, "an event", per_line=True)
        label = number if self._label is None else read_label(event, self._label, self._kind)
        return _Event(line.number, label, self._timestamps.read(event))


class _Event(NamedTuple):
    line: int
    label: str | int
    fields: dict[str, Any]


def _labelled(rows: ParquetRows, first: int, table: pa.Table, labels: Labels, until_error: bool) -> Batch:
    """The rows that have a label, as a batch with errors for the others; `until_error` as in `EventFile.batches`."""
    import pyarrow as pa

    if not labels.problems:
        return Batch(table, labels.values, range(first, first + table.num_rows))
    problems = list(labels.problems.items())
    kept = len(labels.rows)
    if until_error:
        problems = problems[:1]
        kept = sum(row < problems[0][0] for row in labels.rows)
    errors = [rows.error(first + row, message) for row, message in problems]
    lines = [first + row for row in labels.rows[:kept]]
    taken = pa.array(labels.rows[:kept], pa.int64())
    return Batch(table.take(taken), labels.values.slice(0, kept), lines, errors)


def _batch(events: list[_Event], errors: list[FileError]) -> Batch:
    import pyarrow as pa

    kind = pa.string() if events and isinstance(events[0].label, str) else pa.int64()
    labels = pa.array([event.label for event in events], kind)
    return Batch([event.fields for event in events], labels, [event.line for event in events], errors)
