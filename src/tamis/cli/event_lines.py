"""Events of text files one by one: JSON lines, a JSON array, or CSV.

A blank line is not an event. A line that cannot be read is an event with a problem, and keeps its place among the others.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.cli.byte_stream import ByteStream
from tamis.cli.csv_text import not_csv
from tamis.cli.csv_values import Read, reader_of
from tamis.cli.event_json import TimestampReader
from tamis.cli.json_array import JsonArray, in_one_line
from tamis.cli.json_text import JsonError, KeyTwiceError, read_object
from tamis.cli.lines import BOM, NOT_UTF8, LineError, Lines, decoded, not_text
from tamis.errors import EventError, FileError, shortened

if TYPE_CHECKING:
    from tamis.encoding.events.asked import Asked
    from tamis.language.schema import Schema
    from tamis.language.values import Kind

LONGEST_FIELD = 1 << 26
"""Most bytes of a field in a CSV file: a quote that is never closed must not fill the memory."""


class EventLine(NamedTuple):
    """An event and the number of its first line.

    Attributes
    ----------
    fields : dict
        The attributes; empty if there is a problem.
    raw : bytes
        The line, or the lines, as they are in the file, without the line feed at the end.
    problem : str or None
        What is wrong with the line.
    """

    line: int
    fields: dict[str, Any]
    raw: bytes
    problem: str | None = None


class JsonEvents:
    """Events of a file with an object per line, or of a file with an array of objects, which begins with ``[``."""

    header: bytes | None = None

    def __init__(
        self, stream: ByteStream, schema: Schema | None = None, asked: Callable[[], Asked] | None = None
    ) -> None:
        self._stream = stream
        self._asked = asked
        self._lines = Lines(stream)
        self._array = JsonArray(stream)
        self._is_array = False
        self._timestamps = TimestampReader(schema)

    def __iter__(self) -> Iterator[EventLine]:
        self._is_array = self._stream.begin().startswith(b"[")
        return self._elements() if self._is_array else self._objects()

    def ready(self) -> bool:
        """Whether the next event, or the end, is there already."""
        return self._array.ready() if self._is_array else self._lines.ready()

    def _objects(self) -> Iterator[EventLine]:
        for number, data in enumerate(self._lines.raw(), 1):
            if data and not data.isspace():
                yield self._read(number, data, per_line=True)

    def _elements(self) -> Iterator[EventLine]:
        for line, data, problem in self._array:
            yield EventLine(line, {}, data, problem) if problem else self._read(line, in_one_line(data), per_line=False)

    def line(self, number: int, data: bytes) -> EventLine:
        """Read one line."""
        return self._read(number, data, per_line=True)

    def _object(self, text: str, data: bytes, per_line: bool) -> dict[str, Any]:
        try:
            return read_object(text, "an event", per_line=per_line)
        except KeyTwiceError:
            if self._asked is None:
                raise
            return _read_asked(data, self._asked)

    def _read(self, line: int, data: bytes, *, per_line: bool) -> EventLine:
        text = decoded(data)
        try:
            if problem := not_text(text):
                raise LineError(problem)
            return EventLine(line, self._timestamps.read(self._object(text, data, per_line)), data)
        except JsonError as error:
            return EventLine(line, {}, data, str(error) + (_hint(text) if per_line else ""))
        except LineError as error:
            return EventLine(line, {}, data, str(error))


def _read_asked(data: bytes, asked: Callable[[], Asked]) -> dict[str, Any]:
    """An event in which names that nobody asks about may be given twice.

    Raises
    ------
    JsonError
    """
    from tamis.encoding.events.json_reader import read_event

    try:
        return read_event(data, asked)
    except EventError as error:
        raise JsonError(str(error)) from None


def line_problem(error: EventError, data: bytes) -> str:
    """What is wrong with a line of JSON, with a hint if it is not JSON."""
    is_json = error.attribute is not None or error.reason.startswith(NOT_UTF8)
    return str(error) if is_json else str(error) + _hint(data.decode())


def _hint(text: str) -> str:
    """A hint about a line that is not JSON."""
    if text.lstrip().startswith("{") and text.count("{") > text.count("}"):
        return ". Hint: write each object on one line, for example with `jq -c .`"
    if "," in text and not text.lstrip().startswith(("{", '"', "[")):
        return ". Hint: --event-format csv, if it is CSV"
    return ""


class CsvEvents:
    """Events of a file with a header that names the attributes, and a record for each event.

    Fields are separated by commas, or where the header has no comma, by tabs or semicolons.

    Parameters
    ----------
    asked : mapping, optional
        The columns to read, and the kinds that each is compared with. By default, all columns, as any kind.
    """

    def __init__(
        self,
        stream: ByteStream,
        schema: Schema | None = None,
        asked: Mapping[str, Collection[Kind]] | None = None,
    ) -> None:
        self._stream = stream
        self._lines = Lines(stream)
        self._schema = schema
        self._asked = asked
        self._readers: dict[str, tuple[int, Read]] = {}
        self._columns = 0
        self._waiting: list[bytes] = []
        """The lines of the record that is being read."""
        self.header: bytes | None = None

    def ready(self) -> bool:
        """Whether the next event, or the end, is there already."""
        return self._lines.ready()

    def __iter__(self) -> Iterator[EventLine]:
        # Python's limit of 128 kB would refuse long texts.
        csv.field_size_limit(LONGEST_FIELD)
        delimiter = _delimiter(self._stream.begin())
        records = csv.reader(self._texts(), delimiter=delimiter, strict=True)
        self._read_header(records)
        while True:
            line = records.line_num + 1
            self._waiting.clear()
            try:
                record = next(records)
            except StopIteration:
                return
            except csv.Error as error:
                yield EventLine(line, {}, b"\n".join(self._waiting), not_csv(error))
                continue
            if record:
                yield self._event(line, record)

    def _texts(self) -> Iterator[str]:
        for data in self._lines.raw():
            self._waiting.append(data)
            yield f"{decoded(data)}\n"

    def _read_header(self, records: Iterator[list[str]]) -> None:
        """Find the columns.

        Raises
        ------
        FileError
            When columns have no name, or two have the same one.
        """
        try:
            names: list[str] = next((record for record in records if record), [])
        except csv.Error as error:
            raise self._wrong_header(not_csv(error)) from None
        if problem := not_text(",".join(names)):
            raise self._wrong_header(problem)
        names = [name.strip() for name in names]
        for place, name in enumerate(names):
            if not name:
                raise self._wrong_header(f"column {place + 1} has no name. Hint: the first line names the attributes")
            if name in names[:place]:
                raise self._wrong_header(f"two columns are called {shortened(name)}. Hint: rename one of them")
        self.header = b"\n".join(line for line in self._waiting if line.strip()) if names else None
        self._columns = len(names)
        self._readers = {
            name: (place, reader_of(name, self._schema, None if self._asked is None else self._asked[name]))
            for place, name in enumerate(names)
            if self._asked is None or name in self._asked
        }

    def _wrong_header(self, problem: str) -> FileError:
        return FileError(problem, path=self._stream.name, line=1)

    def _event(self, line: int, record: list[str]) -> EventLine:
        raw = b"\n".join(self._waiting)
        if len(record) != self._columns:
            wrong = f"the header has {self._columns} fields, the line has {len(record)}"
            return EventLine(line, {}, raw, f"{wrong}. Hint: a field with the separator in it needs double quotes")
        try:
            if not raw.isascii() and (problem := not_text("".join(record))):
                raise LineError(problem)
            return EventLine(line, {name: read(record[place]) for name, (place, read) in self._readers.items()}, raw)
        except LineError as error:
            return EventLine(line, {}, raw, str(error))


def _delimiter(begin: bytes) -> str:
    header = begin.removeprefix(BOM).split(b"\n", 1)[0]
    if b"," in header:
        return ","
    return next((mark for mark in "\t;" if mark.encode() in header), ",")
