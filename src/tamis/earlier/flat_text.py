"""Flat events as JSON text, for files. What is read is equal to what was written, with the same types.

    {"price": (9.5,), "tags": ("a", "b")}      {"price": 9.5, "tags": ["a", "b"]}
    {"at": (datetime(2026, 11, 18, 9),)}       {"at": {"timestamp": "2026-11-18T09:00:00"}}

A value that JSON does not have is an object with one name: `timestamp`, `date`, `number` (infinite) or `interval` (two ends).
Values outside the language are not written.
"""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from typing import Any

from tamis.language.event import FlatEvent, Value
from tamis.language.values import Interval

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
_PLAIN = frozenset((str, int, bool))


def flat_text(event: FlatEvent) -> str:
    """The JSON text of a flat event.

    >>> flat_text({"price": (9.5,), "on": (date(2026, 11, 18),)})
    '{"price":9.5,"on":{"date":"2026-11-18"}}'
    """
    written: dict[str, Any] = {}
    for name, values in event.items():
        if values:
            written[name] = _written(values[0]) if len(values) == 1 else list(map(_written, values))
    return _encode(written)


def _written(value: Value) -> Any:
    cls = type(value)
    if cls in _PLAIN:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": repr(value)}
    if isinstance(value, Interval):
        return {"interval": [_written(value.lo), _written(value.hi)]}
    assert isinstance(value, date)
    return {"timestamp" if isinstance(value, datetime) else "date": value.isoformat()}


def read_flat(text: str) -> FlatEvent:
    """The flat event that `flat_text` wrote.

    Raises
    ------
    ValueError
        The text is damaged.
    """
    try:
        return {name: _read_values(value) for name, value in json.loads(text).items()}
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"not the text of an event: {error}") from None


def _read_values(value: Any) -> tuple[Value, ...]:
    if type(value) is list:
        return tuple(map(_read, value))
    return (_read(value) if type(value) is dict else value,)


def _read(value: Any) -> Any:
    if type(value) is not dict:
        return value
    ((tag, inner),) = value.items()
    return _READERS[tag](inner)


_READERS: dict[str, Any] = {
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "number": float,
    "interval": lambda ends: Interval(_read(ends[0]), _read(ends[1])),
}
