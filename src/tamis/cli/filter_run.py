"""One pass over files of events: print the events that one expression selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tamis.cli.byte_stream import ByteStream
from tamis.cli.diagnostics import Diagnostics
from tamis.cli.event_files import format_of
from tamis.cli.event_filter import EventFilter
from tamis.cli.event_lines import CsvEvents, EventLine, JsonEvents
from tamis.cli.parquet_rows import ParquetRows
from tamis.errors import EventError, FileError, TableError
from tamis.language.schema import Schema

_WRITTEN_TOGETHER = 1_000
"""Lines written at a time. A live stream writes earlier if no more lines can be read now."""


class FilterRun:
    """Selects events.

    Parameters
    ----------
    write : callable, optional
        Receives the output. By default, nothing is printed.
    invert : bool
        Whether to select the events that do not match.
    schema : Schema, optional
        As of `EventFile`.
    """

    def __init__(
        self,
        event_filter: EventFilter,
        diagnostics: Diagnostics,
        *,
        write: Callable[[bytes], None] | None = None,
        invert: bool = False,
        schema: Schema | None = None,
    ) -> None:
        self.matched = 0
        self.selected = 0
        self._filter = event_filter
        self._diagnostics = diagnostics
        self._write = write
        self._invert = invert
        self._schema = schema
        self._waiting: list[bytes] = []
        self._header: bytes | None = None

    def filter_all(self, paths: Sequence[str], format: str | None) -> None:
        """Go through files.

        Raises
        ------
        FileError
            For the first bad line, if the diagnostics stop at it. Events selected before it are printed.
        """
        formats = [format or format_of(path) for path in paths]
        if "csv" in formats and len(set(formats)) > 1 and self._write is not None:
            other = next(path for path, each in zip(paths, formats, strict=True) if each != formats[0])
            raise FileError(f"is not {formats[0]}, but {paths[0]} is. Hint: filter CSV files separately", path=other)
        try:
            for path, each in zip(paths, formats, strict=True):
                self._parquet(path) if each == "parquet" else self._lines(path, is_csv=each == "csv")
        finally:
            self._flush()

    def _lines(self, path: str, *, is_csv: bool) -> None:
        stream = ByteStream(path)
        events = CsvEvents(stream, self._schema, self._filter.kinds) if is_csv else JsonEvents(stream, self._schema)
        begun = False
        for line in events:
            if not begun:
                self._begin(events.header, stream.name)
                begun = True
            self._line(line, stream.name)
            if len(self._waiting) >= _WRITTEN_TOGETHER or not events.ready():
                self._flush()
        self._begin(events.header, stream.name)

    def _begin(self, header: bytes | None, name: str) -> None:
        """Print the header of the first CSV file; the others must have the same."""
        if header is None or header.rstrip(b"\r") == self._header:
            return
        if self._header is not None and self._write is not None:
            shown = self._header.decode(errors="replace")
            raise FileError(f"the header differs from the header of the first file: {shown}", path=name, line=1)
        self._header = header.rstrip(b"\r")
        self._waiting.append(header)

    def _line(self, line: EventLine, name: str) -> None:
        if line.problem is not None:
            self._diagnostics.bad_line(FileError(line.problem, path=name, line=line.line))
            return
        try:
            matches = self._filter.matches(line.fields)
        except EventError as error:
            self._diagnostics.bad_line(FileError(str(error), path=name, line=line.line))
            return
        self.matched += matches
        if matches is not self._invert:
            self.selected += 1
            self._waiting.append(line.raw)

    def _parquet(self, path: str) -> None:
        from tamis.cli.table_filter import decided, json_lines

        rows = ParquetRows(path)
        for first, table in rows.tables():
            chosen = []
            try:
                for row, matches, problem in decided(table, self._filter):
                    if problem is not None:
                        self._diagnostics.bad_line(rows.error(first + row, problem))
                        continue
                    self.matched += matches
                    if matches is not self._invert:
                        chosen.append(row)
            except TableError as error:
                raise FileError(str(error), path=path) from None
            finally:
                self.selected += len(chosen)
                if self._write is not None and chosen:
                    self._waiting += json_lines(table.take(chosen))
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and self._write is not None:
            self._write(b"\n".join([*waiting, b""]))
