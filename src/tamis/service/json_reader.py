"""Strict JSON: a key given twice is an error, and so is deep nesting. Integers keep all their digits."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from tamis.service.problems import ProblemError


def read_json(raw: bytes, most_depth: int) -> Any:
    """The value of a JSON text in UTF-8.

    Raises
    ------
    ProblemError
        400: the text is not JSON. 413: it is nested deeper than `most_depth`.
    """
    if raw.count(b"{") + raw.count(b"[") > most_depth and _depth(raw) > most_depth:
        raise ProblemError(413, "nesting", f"the JSON is nested deeper than {most_depth} levels")
    try:
        return _decode(raw.decode())
    except UnicodeDecodeError as error:
        raise ProblemError(400, "not-json", f"not JSON: the text is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        # Lines were meant, but the type of the body does not say so.
        hint = (
            ". Hint: of several values on lines, send Content-Type: application/x-ndjson"
            if error.msg == "Extra data"
            else ""
        )
        detail = f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} ({place}){hint}"
        raise ProblemError(400, "not-json", detail) from None
    except RecursionError:
        raise ProblemError(413, "nesting", "the JSON is nested too deep") from None
    except ValueError:
        most = sys.get_int_max_str_digits()
        raise ProblemError(400, "not-json", f"an integer has more than {most} digits") from None


def read_object(raw: bytes, what: str, most_depth: int) -> dict[str, Any]:
    """The object of a JSON text, which is `what` ("an event") in messages.

    Raises
    ------
    ProblemError
    """
    value = read_json(raw, most_depth)
    if type(value) is not dict:
        raise ProblemError(400, "not-an-object", f"{what} must be a JSON object, not {_name(value)}")
    return value


_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for token in _TOKENS.finditer(raw):
        first = raw[token.start()]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"]}":
            depth -= 1
    return deepest


def object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some keys and values.

    Raises
    ------
    ProblemError
        A key is given twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ProblemError(400, "not-json", f"the key {twice!r} is given twice in one object")
    return found


def _constant(word: str) -> Any:
    raise ProblemError(400, "not-json", f"not JSON: {word}. Hint: JSON has no such number; use null")


# Made once: json.loads would make one for every text.
_decode = json.JSONDecoder(object_pairs_hook=object_of_pairs, parse_constant=_constant).decode


def _name(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list):
        return "a list"
    return "a string" if isinstance(value, str) else "a number"
