"""Strict JSON: Python's reader, but a key given twice is an error, and every error is one short sentence."""

from __future__ import annotations

from typing import Any

from tamis.cli.lines import LineError
from tamis.language.json_text import GivenTwiceError, NotJsonError, name_of, reader, refusing_doubled

_read = reader(refusing_doubled)


class JsonError(LineError):
    """A text is not JSON, or not the JSON that is needed."""


class KeyTwiceError(JsonError):
    """A key is given twice in one object."""


def read_json(text: str) -> Any:
    """The value of a JSON text.

    Raises
    ------
    JsonError
    """
    try:
        return _read(text)
    except GivenTwiceError as error:
        raise KeyTwiceError(str(error)) from None
    except NotJsonError as error:
        raise JsonError(str(error)) from None


def read_object(text: str, what: str, *, per_line: bool = False) -> dict[str, Any]:
    """The object of a JSON text, which is `what` ("an event") in messages; with `per_line`, each line has an object."""
    value = read_json(text)
    if not isinstance(value, dict):
        hint = ". Hint: one object per line, without a list around them" if per_line and isinstance(value, list) else ""
        raise JsonError(f"{what} must be a JSON object, not {name_of(value)}{hint}")
    return value
