"""Strict JSON: Python's reader, but a key given twice is an error, and every error is one short sentence."""

from __future__ import annotations

import json
import math
from typing import Any

from tamis.cli.lines import LineError


class JsonError(LineError):
    """A text is not JSON, or not the JSON that is needed."""


def read_json(text: str) -> Any:
    """The value of a JSON text.

    Raises
    ------
    JsonError
    """
    try:
        return _read(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if "\n" in text else f"column {error.colno}"
        raise JsonError(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} ({place})") from None
    except JsonError:
        raise
    except RecursionError:
        raise JsonError("the JSON is nested too deep") from None


def _read(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (json.JSONDecodeError, JsonError):
        raise
    except ValueError:  # an integer of more digits than Python reads
        return json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer).decode(text)


def _integer(digits: str) -> int:
    """An integer. If it has too many digits for Python, a power of two near it, which is beyond 64 bits too."""
    try:
        return int(digits)
    except ValueError:
        size = 1 << int(len(digits.lstrip("-")) * math.log2(10))
        return -size if digits.startswith("-") else size


def read_object(text: str, what: str, *, per_line: bool = False) -> dict[str, Any]:
    """The object of a JSON text, which is `what` ("an event") in messages; with `per_line`, each line has an object."""
    value = read_json(text)
    if not isinstance(value, dict):
        hint = ". Hint: one object per line, without a list around them" if per_line and isinstance(value, list) else ""
        raise JsonError(f"{what} must be a JSON object, not {_name(value)}{hint}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise JsonError(f"the key {twice!r} is given twice in one object")
    return found


# Made once: json.loads would make one for every line.
_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _name(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list):
        return "a list"
    return "a string" if isinstance(value, str) else "a number"
