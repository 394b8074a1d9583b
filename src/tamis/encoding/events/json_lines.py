"""Events as lines of JSON in one array of bytes, and their way to keys, without an object per value.

lines --json_scanner--> values --json_columns--> columns --event_table--> keys
  |                                                 ^
  '-- odd lines --json_reader--> flat events -------'
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.columns import Column, Odd
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.events.asked import NOTHING, Asked
from tamis.encoding.events.event_batch import EncodedEvents
from tamis.encoding.events.event_table import checked, encode_columns
from tamis.encoding.events.json_columns import columns_of, flat_columns
from tamis.encoding.events.json_names import Names, names_of
from tamis.encoding.events.json_reader import read_event
from tamis.encoding.events.json_scanner import Found, Lines, Scratch, counts_of, scan
from tamis.errors import EventError, WrongEventsError
from tamis.kernels.numbers import Bools, I64s, U8s
from tamis.language.event import FlatEvent, flatten
from tamis.language.schema import Schema

MARK = b"\xef\xbb\xbf"
"""The byte order mark that some editors write at the beginning of a file. It is no part of the first line."""

_LINE_FEED = 10
_PIECE = 1 << 17
"""Bytes that are searched for line feeds at once."""
_VALUE_BYTES = 16
"""Bytes of lines for each value that there is room for at first."""


class JsonLines:
    """Events, one in each line. `numbers` says which line of the input each is, counted from 0."""

    def __init__(self, lines: Lines, numbers: I64s) -> None:
        self.lines = lines
        self.numbers = numbers

    @staticmethod
    def split(data: bytes | bytearray | memoryview) -> JsonLines:
        """The lines of a text. Blank lines are no events. A byte order mark at the beginning is left out."""
        return JsonLines.cut(data)[0]

    @staticmethod
    def cut(data: bytes | bytearray | memoryview, *, is_begin: bool = True) -> tuple[JsonLines, int]:
        """The lines of a part of a text, and how many there are, blank ones included. See `split`."""
        if not len(data) or data[-1] != _LINE_FEED:
            data = bytes(data) + b"\n"
        data = bytes(data)  # not a copy if it is one already
        array = np.frombuffer(data, np.uint8)
        # Piece by piece, which needs no new pages of memory.
        pieces = (array[first : first + _PIECE] == _LINE_FEED for first in range(0, len(array), _PIECE))
        end = np.concatenate([np.flatnonzero(piece) + at * _PIECE for at, piece in enumerate(pieces)])
        start = np.append(0, end[:-1] + 1)
        if is_begin and array[: len(MARK)].tobytes() == MARK:
            start[0] = len(MARK)
        return JsonLines(Lines(array, start, end), np.arange(len(end))).without_blanks(), len(end)

    @staticmethod
    def of(texts: Sequence[bytes]) -> JsonLines:
        """Texts that may contain line feeds. Blank texts are no events."""
        end = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64) - 1
        start = np.append(0, end[:-1] + 1) if len(texts) else end
        array = np.frombuffer(b"\n".join([*texts, b""]) or b"\n", np.uint8)
        return JsonLines(Lines(array, start, end), np.arange(len(texts))).without_blanks()

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        """The bytes of all lines."""
        return int(self.lines.end[-1] - self.lines.start[0]) if len(self) else 0

    def __getitem__(self, row: int) -> FlatEvent:
        """The flat form of an event; empty if it is wrong."""
        return _flat(self.text(row))

    def unread(self, row: int) -> Callable[[], FlatEvent]:
        """A function that gives the flat form of an event. It keeps the text of this line alone."""
        return functools.partial(_flat, self.text(row))

    def text(self, row: int) -> bytes:
        """A line without its end."""
        return self.lines.data[self.lines.start[row] : self.lines.end[row]].tobytes()

    def slice(self, first: int, last: int) -> JsonLines:
        """The rows from `first` up to `last`."""
        data, start, end = self.lines
        return JsonLines(Lines(data, start[first:last], end[first:last]), self.numbers[first:last])

    def without(self, rows: Sequence[int]) -> JsonLines:
        """All rows but some."""
        kept = np.ones(len(self), np.bool_)
        kept[list(rows)] = False
        data, start, end = self.lines
        return JsonLines(Lines(data, start[kept], end[kept]), self.numbers[kept])

    def without_blanks(self) -> JsonLines:
        """All lines but those of blanks alone, which are surely short or rare."""
        data, start, _ = self.lines
        blank = [row for row in np.flatnonzero(data[start] <= ord(" ")).tolist() if not self.text(row).strip()]
        return self.without(blank) if blank else self


def _flat(text: bytes) -> FlatEvent:
    with suppress(EventError):
        return flatten(read_event(text, lambda: NOTHING))
    return {}


class LinesRead(NamedTuple):
    """Lines as columns, and the errors of lines that are wrong as a whole, by row."""

    columns: list[Column | Odd]
    wrong: dict[int, EventError]
    size: int
    """How many lines there are."""


class JsonEncoder:
    """Encodes any range of rows. Several threads may encode at once while no dimension changes.

    With `lenient`, wrong values and lines count as missing.
    """

    def __init__(
        self, lines: JsonLines, dimensions: Dimensions, schema: Schema | None = None, *, lenient: bool = False
    ) -> None:
        self._lines = lines
        self._dimensions = dimensions
        self._schema = schema
        self._lenient = lenient
        form = dimensions.json_form
        if form is None or form[0] is not schema:
            form = dimensions.json_form = schema, *names_of({*dimensions.by_attribute, *(schema or ())})
        self._names: Names = form[1]
        self._attributes: list[str] = form[2]

    def rows(self, first: int, last: int) -> EncodedEvents:
        """The keys of the rows from `first` up to `last`.

        Raises
        ------
        WrongEventsError
            It counts rows from `first` on.
        """
        return self.encoded([self.read(first, last)])

    def read(self, first: int, last: int) -> LinesRead:
        """The values of the rows from `first` up to `last`, by column. Wrong lines are noted, not raised."""
        asked = Asked.of(self._dimensions, self._schema)
        return read_columns(self._lines.slice(first, last), self._names, self._attributes, asked)

    def encoded(self, parts: Sequence[LinesRead]) -> EncodedEvents:
        """The keys of rows that were read in parts which follow each other.

        Raises
        ------
        WrongEventsError
        """
        read = joined(parts)
        right = _right_columns(read, self._schema)
        if read.wrong and not self._lenient:
            raise WrongEventsError(read.wrong)
        return encode_columns(right, self._dimensions, read.size)


def wrong_lines(lines: JsonLines, asked: Asked, schema: Schema | None) -> dict[int, EventError]:
    """The errors of wrong lines by row, if somebody asks about some attributes, which are known by name."""
    read = read_columns(lines, *names_of(asked.every()), asked)
    _right_columns(read, schema)
    return dict(sorted(read.wrong.items()))


def _right_columns(read: LinesRead, schema: Schema | None) -> list[Column]:
    """The columns that keep to the schema. An error of each other row is noted in `read.wrong`.

    It is that of the first attribute and kind by name, since the order of columns depends on other rows.
    """
    right: list[Column] = []
    for found in checked(sorted(read.columns, key=_form_of), schema, texts=False):
        if isinstance(found, Column):
            right.append(found)
            continue
        error = EventError(found.reason, attribute=found.attribute)
        read.wrong.update((row, error) for row in found.rows.tolist() if row not in read.wrong)
    return right


def _form_of(column: Column | Odd) -> tuple[str, str]:
    return column.attribute or "", column.kind.value if isinstance(column, Column) else ""


def read_columns(lines: JsonLines, names: Names, attributes: list[str], asked: Asked) -> LinesRead:
    """The values of some attributes. `attributes` has their names by number."""
    found, count, odd = _scanned(lines.lines, names)
    columns: list[Column | Odd] = list(columns_of(found, count, lines.lines.data, attributes))
    wrong: dict[int, EventError] = {}
    events: dict[int, FlatEvent] = {}
    for row in np.flatnonzero(odd).tolist():
        try:
            events[row] = flatten(read_event(lines.text(row), lambda: asked))
        except EventError as error:
            wrong[row] = error
    if events:
        columns += flat_columns(events, itertools.compress(attributes, names.is_asked))
    return LinesRead(columns, wrong, len(lines))


def joined(parts: Sequence[LinesRead]) -> LinesRead:
    """Lines that follow each other, as if they had been read together: columns of one form become one column."""
    if len(parts) == 1:
        return parts[0]
    alike: dict[tuple[Any, ...], list[Column]] = {}
    odd: list[Odd] = []
    wrong: dict[int, EventError] = {}
    first = 0
    for part in parts:
        # A part may have several columns of one form, whose rows overlap.
        seen: Counter[tuple[Any, ...]] = Counter()
        for found in part.columns:
            moved = found._replace(rows=found.rows + first)
            if isinstance(moved, Odd):
                odd.append(moved)
                continue
            form = moved.attribute, moved.kind, str(_type_of(moved))
            alike.setdefault((*form, seen[form]), []).append(moved)
            seen[form] += 1
        wrong |= {first + row: error for row, error in part.wrong.items()}
        first += part.size
    return LinesRead([*odd, *map(_one_column, alike.values())], wrong, first)


def _type_of(column: Column) -> Any:
    return column.values.dtype if isinstance(column.values, np.ndarray) else column.values.type


def _one_column(columns: list[Column]) -> Column:
    values = [column.values for column in columns]
    together = np.concatenate(values) if isinstance(values[0], np.ndarray) else pa.concat_arrays(values)
    return columns[0]._replace(rows=np.concatenate([column.rows for column in columns]), values=together)


def _scanned(lines: Lines, names: Names) -> tuple[Found, int, Bools]:
    """The values that the kernel found, how many they are, and which lines are odd."""
    odd = _not_text(lines)
    size = int(lines.end[-1] - lines.start[0]) if len(lines.start) else 0
    longest = int((lines.end - lines.start).max(initial=0))
    room, row, scratch = size // _VALUE_BYTES + longest, 0, Scratch.of(names)
    found = _with_room(room, np.empty(size, np.uint8), None)
    while True:
        row = scan(lines, row, names, found, scratch, odd)
        if row == len(lines.start):
            return found, counts_of(scratch), odd
        room *= 2
        found = _with_room(room, found.unescaped, found)


def _with_room(room: int, unescaped: U8s, old: Found | None) -> Found:
    """Arrays for values, which begin with the old ones."""
    arrays: list[npt.NDArray[Any]] = [np.empty(room, kind) for kind in ("i4", "i4", "i1", "i8", "i8")]
    kept: tuple[Any, ...] = () if old is None else old[:-1]
    for new, before in zip(arrays, kept, strict=False):
        new[: len(before)] = before
    return Found._make([*arrays, unescaped])


def _not_text(lines: Lines) -> Bools:
    """Which lines are not UTF-8. All are checked at once, since none is usually the answer."""
    data, start, end = lines
    wrong = np.zeros(len(start), np.bool_)
    if not len(start):
        return wrong
    part = data[start[0] : end[-1]]
    ends = np.array([0, len(part)], np.int64)
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, pa.py_buffer(ends), pa.py_buffer(part)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        for row, (first, last) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
            try:
                data[first:last].tobytes().decode()
            except UnicodeDecodeError:
                wrong[row] = True
    return wrong
