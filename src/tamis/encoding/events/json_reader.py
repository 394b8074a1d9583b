"""One event of JSON, as Python's own reader reads it. A name that someone asks about must not be given twice in one object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tamis.encoding.events.asked import Asked
from tamis.errors import EventError
from tamis.language.json_text import (
    Doubled,
    GivenTwiceError,
    NotJsonError,
    name_of,
    noting_doubled,
    reader,
    refusing_doubled,
    twice_error,
)

_read_strictly = reader(refusing_doubled)
_read_noting = reader(noting_doubled)


def read_event(data: bytes, asked: Callable[[], Asked]) -> dict[str, Any]:
    """The object of a text in UTF-8. `asked` is called if some name is given twice.

    Raises
    ------
    EventError
        The text is not an event. The error has no row.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        column = len(data[: error.start].decode()) + 1
        hint = "Hint: files are text in UTF-8; iconv converts other encodings"
        raise EventError(f"not UTF-8: byte 0x{data[error.start]:02x} at column {column}. {hint}") from None
    try:
        try:
            event = _read_strictly(text)
        except GivenTwiceError:
            event = _read_noting(text)
            _check_doubled(event, "", asked())
        if not isinstance(event, dict):
            hint = ". Hint: one object per line, without a list around them" if isinstance(event, list) else ""
            raise NotJsonError(f"an event must be a JSON object, not {name_of(event)}{hint}")
    except NotJsonError as error:
        raise EventError(str(error)) from None
    except RecursionError:
        raise EventError("the JSON is nested too deep") from None
    return event


def _check_doubled(value: Any, prefix: str, asked: Asked) -> None:
    """Refuse asked names, and names of objects around them, that are given twice in an object under a prefix.

    Raises
    ------
    GivenTwiceError
    """
    if isinstance(value, list):
        for each in value:
            _check_doubled(each, prefix, asked)
        return
    if not isinstance(value, dict):
        return
    for name in value.names if isinstance(value, Doubled) else ():
        if name and (asked.has(prefix + name) or asked.leads_to(prefix + name)):
            raise twice_error(name)
    for name, inner in value.items():
        if name and isinstance(inner, dict | list) and asked.leads_to(prefix + name):
            _check_doubled(inner, f"{prefix}{name}.", asked)
