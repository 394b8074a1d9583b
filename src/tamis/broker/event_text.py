"""Events as JSON text, which comes back as an equal event.

JSON has no timestamps, dates, decimals, intervals, bytes and UUIDs. Such a value becomes an object with one name, its tag:

    {"at": datetime(2026, 11, 18, 9, 30)}     {"at": {"$timestamp": "2026-11-18T09:30:00"}}
    {"price": Decimal("9.90")}                {"price": {"$decimal": "9.90"}}
    {"age": Interval(20, 30)}                 {"age": {"$interval": [20, 30]}}
    {"x": {"$date": "my own"}}                {"x": {"$object": {"$date": "my own"}}}

An object of the user that looks like a tagged value gets the tag `$object`, as in the last line.

The language takes the stored event as it takes the published one. So only what the language takes as a list is stored as a list.
Other values come back equal or are refused, except these, which come back as plain types:

    an instance of a dataclass                an object
    values and arrays of NumPy and pandas     numbers, strings, timestamps of Python, lists
    bytearray, frozenset                      bytes, set; a frozenset within a set stays one
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

from tamis.errors import BrokerError, EventError, shortened
from tamis.language.event import MAX_NESTING, event_items, is_list, object_items
from tamis.language.values import Interval, is_missing, plain_scalar

_PLAIN = frozenset((str, int, bool, type(None)))
"""Types that JSON has. A float may be NaN or infinite, which JSON does not have."""
_NESTED = frozenset((dict, list))
"""Types that may hold tagged values."""
_MARK = "$"
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What the readers of JSON and of tagged values raise when a text is damaged."""

Json: TypeAlias = Any


def event_text(event: Any, *, row: int | None = None) -> str:
    """The JSON text of an event: a mapping, an instance of a dataclass, or a pandas Series.

    Raises
    ------
    EventError
        A value cannot be stored, or `event` is not an event. The error names the row, if it is given.

    >>> event_text({"price": 15, "at": date(2026, 11, 18)})
    '{"price":15,"at":{"$date":"2026-11-18"}}'
    """
    try:
        return _text(event)
    except EventError as error:
        raise error.at(row) from None


def _text(event: Any) -> str:
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
    try:
        return _written(stored)
    except ValueError:
        raise _unwritable(stored) from None


def read_event(text: str) -> dict[str, Any]:
    """The event that `event_text` wrote.

    Raises
    ------
    BrokerError
        The text is damaged.
    """
    try:
        event: dict[str, Any] = _plain_reader(text)
        if type(event) is dict:
            if '"$' not in text:
                return event
            return {name: _read(value) if type(value) in _NESTED else value for name, value in event.items()}
    except _UNREADABLE:
        pass
    raise BrokerError(
        f"a stored event cannot be read: {shortened(text)}. Hint: the tables are damaged. Restore a backup of the folder"
    )


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


def _unwritable(stored: dict[str, Json]) -> EventError:
    """The error for an event with an integer that Python refuses to write. It names the attribute."""
    reason = f"an integer has more than {sys.get_int_max_str_digits()} digits and cannot be stored. Hint: use a Decimal"
    for name, value in stored.items():
        try:
            _encode(value)
        except ValueError:
            return EventError(reason, attribute=name)
    return EventError(reason)


def _stored(value: Any, attribute: str, depth: int) -> Json:
    """A value as JSON writes it, with tags."""
    if depth > MAX_NESTING:
        raise EventError(f"objects and lists are nested deeper than {MAX_NESTING} levels", attribute=attribute)
    cls = type(value)
    if cls in _PLAIN:
        return value
    if cls is float:
        return value if math.isfinite(value) else {"$number": repr(value)}
    if isinstance(value, Interval):
        return {"$interval": [_stored(value.lo, attribute, depth), _stored(value.hi, attribute, depth)]}
    items = object_items(value)
    if items is not None:
        return _stored_object(items, attribute, depth)
    if isinstance(value, datetime) and is_missing(value):  # pandas' NaT
        return None
    if _has_nanoseconds(value):
        raise EventError(
            f"a timestamp cannot be stored with nanoseconds: {shortened(value)}. Hint: round it to microseconds",
            attribute=attribute,
        )
    for kind, tag, write in _TAGS:
        if isinstance(value, kind):
            return {tag: write(value)}
    return _stored_other(value, attribute, depth)


def _has_nanoseconds(value: Any) -> bool:
    """Whether it is a timestamp of pandas or NumPy that is not at a whole microsecond."""
    if isinstance(value, datetime):
        return bool(getattr(value, "nanosecond", 0))
    if getattr(getattr(value, "dtype", None), "kind", "") != "M" or is_list(value):
        return False
    return bool(value.astype("datetime64[us]") != value) and not is_missing(value)


def _stored_object(items: Iterable[tuple[Any, Any]], attribute: str, depth: int) -> Json:
    stored = {}
    for name, each in items:
        if not isinstance(name, str):
            raise EventError(
                f"a name within an object must be a string to be stored, not {shortened(name)}", attribute=attribute
            )
        stored[str(name)] = _stored(each, attribute, depth + 1)
    looks_tagged = len(stored) == 1 and next(iter(stored)).startswith(_MARK)
    return {"$object": stored} if looks_tagged else stored


def _stored_other(value: Any, attribute: str, depth: int) -> Json:
    """Lists of all kinds, values of NumPy and pandas, and subclasses of plain types."""
    if is_list(value):
        return _stored_list(value, attribute, depth)
    if is_missing(value):
        return None
    try:
        plain = plain_scalar(value)
    except Exception as error:  # also what a foreign class raises
        raise EventError(f"cannot be stored: {shortened(error, quoted=False)}", attribute=attribute) from None
    if plain is None or type(plain) is type(value):
        raise EventError(
            f"{type(value).__name__} cannot be stored: {shortened(value)}. Hint: an event has numbers, strings, booleans, "
            "timestamps, dates, decimals, intervals, bytes, UUIDs, lists and objects",
            attribute=attribute,
        )
    return _stored(plain, attribute, depth)


def _stored_list(value: Any, attribute: str, depth: int) -> Json:
    each = [_stored(item, attribute, depth + 1) for item in value]
    tag = next((tag for kind, tag in _COLLECTIONS if isinstance(value, kind)), None)
    if tag == "$set" and not all(map(_is_hashable_again, each)):
        raise EventError(
            f"a set cannot be stored if objects or lists are in it: {shortened(value)}. Hint: use a list",
            attribute=attribute,
        )
    return each if tag is None else {tag: each}


def _is_hashable_again(stored: Json) -> bool:
    """Whether a member of a set comes back as a value that a set can hold. Objects and lists do not."""
    if type(stored) is not dict:
        return type(stored) is not list
    if len(stored) != 1:
        return False
    ((tag, inner),) = stored.items()
    if tag == "$tuple":
        return all(map(_is_hashable_again, inner))
    return tag in _READERS and tag != "$object"


def _timestamp_text(value: datetime) -> str:
    """The ISO form."""
    plain = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    return plain.isoformat()


_TAGS: tuple[tuple[type, str, Callable[[Any], Json]], ...] = (
    (datetime, "$timestamp", _timestamp_text),
    (date, "$date", date.isoformat),
    (Decimal, "$decimal", str),
    (bytes, "$bytes", lambda value: base64.b64encode(value).decode()),
    (bytearray, "$bytes", lambda value: base64.b64encode(value).decode()),
    (UUID, "$uuid", str),
)
_COLLECTIONS: tuple[tuple[type, str], ...] = ((tuple, "$tuple"), (frozenset, "$set"), (set, "$set"))

_READERS: dict[str, Callable[[Any], Any]] = {
    "$timestamp": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$decimal": Decimal,
    "$bytes": partial(base64.b64decode, validate=True),
    "$uuid": UUID,
    "$number": float,
    "$interval": lambda ends: Interval(_read(ends[0]), _read(ends[1])),
    "$tuple": lambda items: tuple(map(_read, items)),
    "$set": lambda items: set(map(_read_member, items)),
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


def _read_member(value: Json) -> Any:
    """A member of a set. A set within it comes back as a frozenset."""
    if type(value) is dict and len(value) == 1:
        ((tag, inner),) = value.items()
        if tag == "$set":
            return frozenset(map(_read_member, inner))
        if tag == "$tuple":
            return tuple(map(_read_member, inner))
    return _read(value)
