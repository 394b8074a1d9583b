"""Arguments as paths, queries and bodies. What a broker would refuse is refused here, with the same error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from tamis.broker.moments import as_datetime, read_moment
from tamis.broker.subscribing import NotGiven, checked_name
from tamis.errors import IdTypeError
from tamis.language.reading import to_expression
from tamis.matcher.options import plain_weight

encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode

NDJSON = (("content-type", "application/x-ndjson"),)
JSON = (("content-type", "application/json"),)


def path_of(*parts: str) -> str:
    """A path. Every second part is a name, in which all characters but letters and digits are escaped."""
    return "/v1" + "".join(f"/{_escaped(part) if place % 2 else part}" for place, part in enumerate(parts))


def _escaped(name: str) -> str:
    # A client would resolve the names "." and ".." as steps of the path.
    return quote(name, safe="").replace(".", "%2E")


def query_of(**words: Any) -> tuple[tuple[str, str], ...]:
    """A query with the words that are not None."""
    return tuple((name, _word(value)) for name, value in words.items() if value is not None)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def names_of(subscriber: object, name: object) -> tuple[str, str]:
    """The names of a subscriber and of its subscription.

    Raises
    ------
    IdTypeError
    """
    return checked_name(subscriber, "subscriber"), checked_name(name, "subscription")


def known_name(name: Any) -> str:
    """The name of a subscriber that a broker would look up.

    Raises
    ------
    IdTypeError
    """
    if not isinstance(name, str):
        raise IdTypeError(f"the name of a subscriber must be a str, not {type(name).__name__}")
    return checked_name(name, "subscriber")


def moment_text(given: Any, name: str) -> str | None:
    """A moment as text in UTC.

    Raises
    ------
    OptionError
    """
    found = as_datetime(read_moment(given, name))
    return None if found is None else f"{found.replace(tzinfo=None).isoformat()}Z"


def expression_text(given: Any) -> str:
    """The text of an expression, as a broker keeps it.

    Raises
    ------
    ExpressionError
    """
    return given if isinstance(given, str) else str(to_expression(given))


def subscription_fields(words: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a subscription that are given.

    Raises
    ------
    ExpressionError, OptionError
    """
    given = {name: value for name, value in words.items() if not isinstance(value, NotGiven)}
    for name, value in given.items():
        if name == "expression":
            given[name] = expression_text(value)
        elif name == "weight":
            given[name] = plain_weight(value)
        elif name in ("valid_from", "valid_until"):
            given[name] = moment_text(value, name)
    return given


def body_of(value: Any) -> bytes:
    return encode(value).encode()


def read_moment_text(text: str | None) -> datetime | None:
    """A moment of an answer."""
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def chunks(lines: Iterable[bytes], size: int = 128 * 1024) -> Iterable[bytes]:
    """Lines in larger parts."""
    held: list[bytes] = []
    count = 0
    for line in lines:
        held.append(line)
        count += len(line)
        if count >= size:
            yield b"".join(held)
            held, count = [], 0
    if held:
        yield b"".join(held)
