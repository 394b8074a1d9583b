"""Files of events, in batches: JSONL (an object per line) or Parquet (see `Matcher.match_batch`).

An event is known by its *label*: its number, counted from 0 over all lines that are not empty, or the value of a field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.cli.event_json import TimestampReader, read_label
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
            return self._table_batches(self._content, size)
        return self._line_batches(self._content, size, until_error)

    def _table_batches(self, rows: ParquetRows, size: int) -> Iterator[Batch]:
        import pyarrow as pa

        for first, table in rows.tables(size):
            numbers = range(first - 1, first - 1 + table.num_rows)
            labels = pa.array(numbers, pa.int64()) if self._label is None else self._label_column(table)
            yield Batch(table, labels, range(first, first + table.num_rows))

    def _label_column(self, table: pa.Table) -> pa.Array:
        import pyarrow as pa

        from tamis.encoding.columns import combined, is_text

        if table.column_names.count(self._label) != 1:
            raise FileError(f"there is no column {self._label!r} for --event-id", path=self.name)
        column = combined(table[self._label])
        if not (is_text(column.type) or pa.types.is_integer(column.type)):
            raise FileError(
                f"the column {self._label!r} must be strings or integers, not {column.type}", path=self.name
            )
        if column.null_count:
            raise FileError(f"the column {self._label!r} has nulls, so events cannot be told apart", path=self.name)
        return column.cast(pa.string() if is_text(column.type) else pa.int64())

    def _line_batches(self, lines: Lines, size: int, until_error: bool) -> Iterator[Batch]:
        events: list[_Event] = []
        errors: list[FileError] = []
        kind: type | None = None
        for number, line in enumerate(line for line in lines if line.text.strip()):
            try:
                event = self._read(line, number, kind)
                kind = type(event.label)
                events.append(event)
            except JsonError as error:
                errors.append(lines.error(line.number, str(error)))
            full = len(events) + len(errors) >= size
            if full or not lines.ready() or (until_error and errors):
                yield _batch(events, errors)
                events, errors = [], []
        if events or errors:
            yield _batch(events, errors)

    def _read(self, line: Line, number: int, kind: type | None) -> _Event:
        if problem := not_text(line.text):
            raise JsonError(problem)
        event = read_object(line.text, "an event")
        label = number if self._label is None else read_label(event, self._label, kind)
        return _Event(line.number, label, self._timestamps.read(event))


class _Event(NamedTuple):
    line: int
    label: str | int
    fields: dict[str, Any]


def _batch(events: list[_Event], errors: list[FileError]) -> Batch:
    import pyarrow as pa

    kind = pa.string() if events and isinstance(events[0].label, str) else pa.int64()
    labels = pa.array([event.label for event in events], kind)
    return Batch([event.fields for event in events], labels, [event.line for event in events], errors)
