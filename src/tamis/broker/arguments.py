"""Arguments of public calls, checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from datetime import datetime, timedelta
from typing import Any, get_args

import numpy as np

from tamis.broker.tables import Synchronous
from tamis.errors import EventError, OptionError, shortened
from tamis.language.event import is_event
from tamis.language.values import INT64_MAX, is_iterable, is_well_formed

_LONGEST_AGE = datetime.max - datetime.min  # noqa: DTZ901
"""The time from the year 1 to 9999: a moment before now by this much still has 64 bits."""


def plain_key(key: object) -> str | None:
    if key is not None and (not isinstance(key, str) or not key):
        raise OptionError(f"`key` must be a str with at least one character, not {shortened(key)}")
    if key is not None and not is_well_formed(key):
        raise OptionError(f"`key` must be Unicode text, but {shortened(key)} holds a lone surrogate")
    return key


def plain_keys(given: Any, count: int) -> list[str | None]:
    """The keys of `count` events."""
    if given is None:
        return [None] * count
    if not is_iterable(given) or isinstance(given, Mapping | Set):
        raise OptionError(f"`keys` must be a list with a key or None for each event, not {shortened(given)}")
    return list(map(plain_key, given))


def plain_number(given: Any, name: str) -> int:
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < 0:
        raise OptionError(f"`{name}` must be a number from 0 on, not {shortened(given)}")
    if given > INT64_MAX:
        raise OptionError(f"`{name}` must be at most {INT64_MAX}, not {shortened(given)}")
    return int(given)


def check_storable(given: Mapping[str, Any]) -> None:
    """Refuse settings of `retain` that are too large for the tables."""
    age, most = given.get("max_age"), given.get("max_notes")
    if isinstance(age, timedelta) and age > _LONGEST_AGE:
        raise OptionError(
            f"`max_age` must be at most {_LONGEST_AGE.days:,} days, not {shortened(age, quoted=False)}. Hint: None keeps all"
        )
    if isinstance(most, int) and most > INT64_MAX:
        raise OptionError(f"`max_notes` must be at most {INT64_MAX}, not {shortened(most)}. Hint: None keeps all")


def plain_path(given: Any) -> str:
    try:
        path = os.fsdecode(given)
    except TypeError:
        raise OptionError(f"`path` must be a str or a path, not {shortened(given)}") from None
    if not path or "\0" in path:
        raise OptionError(f"`path` must be the name of a folder, not {shortened(given)}")
    return path


def check_clock(given: object) -> None:
    if not callable(given):
        raise OptionError(f"`clock` must be callable and return a datetime, not {shortened(given)}")


def check_synchronous(given: object) -> None:
    words = get_args(Synchronous)
    if given not in words:
        *others, last = map(repr, words)
        raise OptionError(f"`synchronous` must be {', '.join(others)} or {last}, not {shortened(given)}")


def listed(given: Any, what: str) -> list[Any]:
    if is_event(given) or not is_iterable(given):
        error = EventError if what == "events" else OptionError
        raise error(f"{what} must be a list of mappings or an Arrow table, not {type(given).__name__}")
    return list(given)
