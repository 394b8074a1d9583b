"""Events as JSON text, which comes back as an equal event.

JSON has no timestamps, dates, decimals, intervals, bytes and UUIDs. Such a value becomes an object with one name, its tag:

    {"at": datetime(2026, 11, 18, 9, 30)}     {"at": {"$timestamp": "2026-11-18T09:30:00"}}
    {"price": Decimal("9.90")}                {"price": {"$decimal": "9.90"}}
    {"age": Interval(20, 30)}                 {"age": {"$interval": [20, 30]}}
    {"x": {"$date": "my own"}}                {"x": {"$object": {"$date": "my own"}}}

An object of the user that looks like a tagged value gets the tag `$object`, as in the last line.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

from tamis.errors import BrokerError, EventError, shortened
from tamis.language.event import MAX_NESTING, event_items
from tamis.language.values import Interval, is_iterable, is_missing, plain_scalar

_PLAIN = frozenset((str, int, bool, type(None)))
"""Types that JSON has. A float may be NaN or infinite, which JSON does not have."""
_MARK = "$"

Json: TypeAlias = Any


def event_text(event: Any) -> str:
    """The JSON text of an event: a mapping, an instance of a dataclass, or a pandas Series.

    Raises
    ------
    EventError
        A value cannot be stored, or `event` is not an event.

    >>> event_text({"price": 15, "at": date(2026, 11, 18)})
    '{"price":15,"at":{"$date":"2026-11-18"}}'
    """
    items = event.items() if type(event) is dict else event_items(event)
    stored = {}
    for name, value in items:
        if type(name) is not str and not isinstance(name, str):
            raise EventError(f"an attribute's name must be a string, not {shortened(name)}")
        cls = type(value)
        if cls in _PLAIN or (cls is float and math.isfinite(value)):
            stored[name] = value
        else:
            stored[name] = _stored(value, name, 1)
    return _written(stored)


def read_event(text: str) -> dict[str, Any]:
    """The event that `event_text` wrote.

    Raises
    ------
    BrokerError
        The text is damaged.
    """
    try:
        event: dict[str, Any] = _plain_reader(text)
    except json.JSONDecodeError:
        raise BrokerError(
            f"a stored event cannot be read: {shortened(text)}. Hint: the tables are damaged. Restore a backup of the folder"
        ) from None
    return {name: _read(value) for name, value in event.items()} if '"$' in text else event


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_plain_reader = json.JSONDecoder().decode


def _written(stored: dict[str, Json]) -> str:
    text = _encode(stored)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # A lone surrogate is not UTF-8, but JSON can escape it.
        return _encode_ascii(stored)
    return text


def _stored(value: Any, attribute: str, depth: int) -> Json:
    """A value as JSON writes it, with tags."""
    if depth > MAX_NESTING:
        raise EventError(f"objects and lists are nested deeper than {MAX_NESTING} levels", attribute=attribute)
    cls = type(value)
    if cls in _PLAIN:
        return value
    if cls is float:
        return value if math.isfinite(value) else {"$number": repr(value)}
    if isinstance(value, Mapping):
        return _stored_object(value, attribute, depth)
    if isinstance(value, Interval):
        return {"$interval": [_stored(value.lo, attribute, depth), _stored(value.hi, attribute, depth)]}
    if isinstance(value, datetime) and is_missing(value):  # pandas' NaT
        return None
    for kind, tag, write in _TAGS:
        if isinstance(value, kind):
            return {tag: write(value)}
    return _stored_other(value, attribute, depth)


def _stored_object(value: Mapping[Any, Any], attribute: str, depth: int) -> Json:
    stored = {}
    for name, each in value.items():
        if not isinstance(name, str):
            raise EventError(
                f"a name within an object must be a string to be stored, not {shortened(name)}", attribute=attribute
            )
        stored[str(name)] = _stored(each, attribute, depth + 1)
    looks_tagged = len(stored) == 1 and next(iter(stored)).startswith(_MARK)
    return {"$object": stored} if looks_tagged else stored


def _stored_other(value: Any, attribute: str, depth: int) -> Json:
    """Lists of all kinds, values of NumPy and pandas, and subclasses of plain types."""
    if is_iterable(value):
        each = [_stored(item, attribute, depth + 1) for item in value]
        tag = next((tag for kind, tag in _COLLECTIONS if isinstance(value, kind)), None)
        return each if tag is None else {tag: each}
    if is_missing(value):
        return None
    try:
        plain = plain_scalar(value)
    except ValueError as error:
        raise EventError(f"cannot be stored: {error}", attribute=attribute) from None
    if plain is None or type(plain) is type(value):
        items = None if plain is not None else _fields(value)
        if items is not None:
            return _stored_object(items, attribute, depth)
        raise EventError(
            f"{type(value).__name__} cannot be stored: {shortened(value)}. Hint: an event has numbers, strings, booleans, "
            "timestamps, dates, decimals, intervals, bytes, UUIDs, lists and objects",
            attribute=attribute,
        )
    return _stored(plain, attribute, depth)


def _fields(value: Any) -> Mapping[str, Any] | None:
    """The fields of an instance of a dataclass."""
    try:
        return dict(event_items(value))
    except EventError:
        return None


def _timestamp_text(value: datetime) -> str:
    """The ISO form. Nanoseconds of pandas are cut off."""
    plain = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    return plain.isoformat()


_TAGS: tuple[tuple[type, str, Callable[[Any], Json]], ...] = (
    (datetime, "$timestamp", _timestamp_text),
    (date, "$date", date.isoformat),
    (Decimal, "$decimal", str),
    (bytes, "$bytes", lambda value: base64.b64encode(value).decode()),
    (UUID, "$uuid", str),
)
_COLLECTIONS: tuple[tuple[type, str], ...] = ((tuple, "$tuple"), (frozenset, "$set"), (set, "$set"))

_READERS: dict[str, Callable[[Any], Any]] = {
    "$timestamp": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$decimal": Decimal,
    "$bytes": base64.b64decode,
    "$uuid": UUID,
    "$number": float,
    "$interval": lambda ends: Interval(_read(ends[0]), _read(ends[1])),
    "$tuple": lambda items: tuple(map(_read, items)),
    "$set": lambda items: set(map(_read, items)),
    "$object": lambda items: {name: _read(value) for name, value in items.items()},
}


def _read(value: Json) -> Any:
    """A value of the user, from what JSON gives."""
    if type(value) is list:
        return list(map(_read, value))
    if type(value) is not dict:
        return value
    if len(value) == 1:
        ((tag, inner),) = value.items()
        reader = _READERS.get(tag)
        if reader is not None:
            return reader(inner)
    return {name: _read(each) for name, each in value.items()}
