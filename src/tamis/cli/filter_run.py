"""One pass over files of events: print the events that one expression selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tamis.cli.byte_stream import ByteStream
from tamis.cli.diagnostics import Diagnostics
from tamis.cli.event_files import format_of
from tamis.cli.event_filter import EventFilter
from tamis.cli.event_lines import CsvEvents, EventLine, JsonEvents, line_problem
from tamis.cli.json_blocks import JsonBlock, block_of, whole_lines
from tamis.cli.kernel_choice import KernelChoice
from tamis.cli.lines import BOM
from tamis.cli.parquet_rows import ParquetRows
from tamis.errors import EventError, FileError, TableError
from tamis.language.schema import Schema

if TYPE_CHECKING:
    from tamis.cli.json_filter import JsonFilter

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
    choice : KernelChoice, optional
        Decides which lines of JSON kernels decide together.
    """

    def __init__(
        self,
        event_filter: EventFilter,
        diagnostics: Diagnostics,
        *,
        write: Callable[[bytes], None] | None = None,
        invert: bool = False,
        schema: Schema | None = None,
        choice: KernelChoice | None = None,
    ) -> None:
        self._choice = choice or KernelChoice()
        self._json_filter: JsonFilter | None = None
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
        if is_csv:
            events: CsvEvents | JsonEvents = CsvEvents(stream, self._schema, self._filter.kinds)
        else:
            events = JsonEvents(stream, self._schema, self._filter.asks)
            # A schema checks and reads objects.
            if self._schema is None and not stream.begin().startswith(b"["):
                self._json_lines(stream, events)
                return
        begun = False
        for line in events:
            if not begun:
                self._begin(events.header, stream.name)
                begun = True
            self._line(line, stream.name)
            if len(self._waiting) >= _WRITTEN_TOGETHER or not events.ready():
                self._flush()
        self._begin(events.header, stream.name)

    def _json_lines(self, stream: ByteStream, events: JsonEvents) -> None:
        before = 0
        for data in whole_lines(stream):
            at = len(BOM) if before == 0 and data.startswith(BOM) else 0
            alone = self._choice.alone(data, stream.left())
            while alone and at < len(data):
                end = data.find(b"\n", at)
                line = data[at:] if end < 0 else data[at:end]
                at, before = at + len(line) + 1, before + 1
                if line and not line.isspace():
                    self._line(events.line(before, line), stream.name)
                alone -= 1
            if at < len(data):
                block = block_of(data[at:] if at else data, before)
                self._together(block, stream.name)
                before += block.lines
            self._flush()

    def _together(self, block: JsonBlock, name: str) -> None:
        """Decide the lines of a block."""
        from tamis.cli.json_filter import JsonFilter, runs_of

        if self._json_filter is None:
            self._json_filter = JsonFilter(self._filter.expression)
        lines = block.events
        matches, problems = self._json_filter.decide(lines)
        chosen = matches != self._invert
        chosen[list(problems)] = False
        if problems and self._diagnostics.stops:
            last = min(problems)
            matches[last:] = chosen[last:] = False
        self.matched += int(matches.sum())
        self.selected += int(chosen.sum())
        self._flush()
        if self._write is not None and chosen.any():
            self._write(b"".join(runs_of(lines, chosen)))
        for row, error in problems.items():
            problem = line_problem(error, lines.text(row))
            self._diagnostics.bad_line(FileError(problem, path=name, line=block.line(row)))

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
