"""Arguments of public calls, checked."""

from __future__ import annotations

from typing import Any

from tamis.errors import EventError, OptionError, shortened
from tamis.language.event import is_event
from tamis.language.values import is_iterable


def plain_key(key: object) -> str | None:
    if key is not None and (not isinstance(key, str) or not key):
        raise OptionError(f"`key` must be a str with at least one character, not {shortened(key)}")
    return key


def plain_number(given: Any, name: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise OptionError(f"`{name}` must be a number from 0 on, not {shortened(given)}")
    return given


def listed(given: Any, what: str) -> list[Any]:
    if is_event(given) or not is_iterable(given):
        error = EventError if what == "events" else OptionError
        raise error(f"{what} must be a list of mappings or an Arrow table, not {type(given).__name__}")
    return list(given)
