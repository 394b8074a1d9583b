"""JSON as users give it: texts, lists of texts, columns of Arrow, files."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from tamis.encoding.columns import is_text, plain_texts
from tamis.encoding.events.asked import Asked
from tamis.encoding.events.json_lines import JsonLines
from tamis.encoding.events.json_reader import read_event
from tamis.errors import EventError, WrongEventsError
from tamis.language.event import FlatEvent, flatten, refuse_asked
from tamis.language.schema import Schema
from tamis.language.values import is_iterable

_EXPECTED = "JSON lines must be str or bytes, a list of these, a column of Arrow, an open file or a path"


def encoded(text: Any) -> bytes:
    """One JSON text in UTF-8. A lone surrogate becomes bytes that are not UTF-8.

    Raises
    ------
    EventError
        If it is neither str nor bytes.
    """
    if isinstance(text, str):
        return text.encode(errors="surrogatepass")
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    raise EventError(f"JSON must be str or bytes, not {type(text).__name__}. Hint: match() takes a mapping")


def json_lines(given: Any) -> JsonLines:
    """Lines of JSON, whatever holds them. Lines count from 0, and blank lines are no events.

    Raises
    ------
    EventError
        If they are of another type.
    OSError
        If the file cannot be read.
    """
    if isinstance(given, JsonLines):
        return given
    if isinstance(given, os.PathLike):
        with open(given, "rb") as file:
            return JsonLines.split(file.read())
    if hasattr(given, "read"):
        given = given.read()
    if isinstance(given, str | bytes | bytearray | memoryview):
        return JsonLines.split(encoded(given))
    if isinstance(given, pa.Array | pa.ChunkedArray):
        return JsonLines.of([text or b"" for text in _binary(given).to_pylist()])
    if not is_iterable(given) or isinstance(given, dict):
        raise EventError(f"{_EXPECTED}, not {type(given).__name__}")
    return JsonLines.of([encoded(text) for text in given])


def _binary(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    kind = column.type
    if is_text(kind):
        parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return pa.chunked_array([plain_texts(part).cast(pa.large_binary()) for part in parts], pa.large_binary())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column
    raise EventError(f"{_EXPECTED}, not a column of {kind}")


def flat_lines(lines: JsonLines, asked: Asked, schema: Schema | None) -> list[FlatEvent]:
    """The events of all lines as flat dictionaries, checked for attributes that somebody asks about.

    Raises
    ------
    WrongEventsError
    """
    events: list[FlatEvent] = []
    problems: dict[int, EventError] = {}
    for row in range(len(lines)):
        try:
            event = flatten(read_event(lines.text(row), lambda: asked))
            refuse_asked(event, asked.every)
            if schema is not None:
                schema.check_event(event)
        except EventError as error:
            problems[row] = error
        else:
            events.append(event)
    if problems:
        raise WrongEventsError(problems)
    return events
