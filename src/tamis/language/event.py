"""Events in their one normal form: a flat dictionary from dotted names to tuples of values.

    {"user": {"age": 30}, "tags": ["a", None, "b"], "note": None}   ->   {"user.age": (30,), "tags": ("a", "b")}
    {"ports": [{"nr": 22}, {"nr": 80}, 7]}                          ->   {"ports.nr": (22, 80), "ports": (7,)}
    {"key": b"x"}                                                   ->   {"key": Refused("bytes is not a value ...")}

Invariants of the flat form: every value went through `check_value` or is an `Interval`, and an attribute that is missing
(absent, None, NaN, an empty list, an object) has no entry. The only empty tuples are `Refused`: a value outside the language
is not an error until an expression asks about its attribute, see `refuse_asked`. Flattening a flat event changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from tamis.errors import EventError, shortened
from tamis.language.values import (
    INT64_MAX,
    INT64_MIN,
    Interval,
    Kind,
    Scalar,
    check_value,
    is_iterable,
    is_well_formed,
    kind_of,
)

Value: TypeAlias = Scalar | Interval
FlatEvent: TypeAlias = dict[str, tuple[Value, ...]]

MAX_NESTING = 100
"""Levels of objects and lists within an event. An object that holds itself is refused as well."""

GIVEN_TWICE = "given twice: nested and as a dotted name"

_Items: TypeAlias = Iterable[tuple[Any, Any]]
_Parents: TypeAlias = tuple[int, ...]
"""The identities of the objects and lists around a value."""


class Refused(tuple[Value, ...]):
    """In place of the values of an attribute that has one outside the language: no values, and the reason."""

    reason: str
    below: bool
    """Whether the dotted names below this one could not be read either."""

    def __new__(cls, reason: str = "", *, below: bool = False) -> Refused:
        refused = super().__new__(cls)
        refused.reason, refused.below = reason, below
        return refused

    def concerns(self, own: str, asked: str) -> bool:
        """Whether an expression that asks about `asked` meets this, under the name `own`."""
        return asked == own or (self.below and asked.startswith(f"{own}."))

    def error(self, own: str, row: int | None) -> EventError:
        """The error for an expression that asks."""
        return EventError(self.reason, row=row, attribute=_shortened(own))


def flatten(event: Any, *, row: int | None = None) -> FlatEvent:
    """The normal form of an event: a mapping, an instance of a dataclass, or a pandas Series.

    `row` is its place in a batch, for messages. Names that no expression can write (inside objects: numbers; anywhere: the
    empty string and lone surrogates) are left out.

    Raises
    ------
    EventError
        When it is no event, or its names are no strings. A value outside the language is `Refused` in the result.

    >>> flatten({"user": {"age": 30}, "tags": ["a", "b"], "note": None})
    {'user.age': (30,), 'tags': ('a', 'b')}
    >>> flatten({"connections": [{"port": 22}, {"port": 80}]})
    {'connections.port': (22, 80)}
    """
    flat: FlatEvent = {}
    for name, value in event.items() if type(event) is dict else event_items(event, row):
        # Single events are the hot path: plain values are taken without a call.
        cls = type(value)
        plain = (
            (cls is str and value.isascii())
            or (cls is float and value == value)
            or (cls is int and INT64_MIN <= value <= INT64_MAX)
            or cls is bool
            or (cls is datetime and value.tzinfo is None)
        )
        if plain and type(name) is str and name and name.isascii() and name not in flat:
            flat[name] = (value,)
            continue
        if not isinstance(name, str):
            raise EventError(f"an attribute's name must be a string, not {shortened(name)}", row=row)
        own = _plain_name(name)
        if own is not None:
            _add(flat, own, value, (id(event),))
    return flat


def flatten_history(history: Iterable[Mapping[str, Any]]) -> list[FlatEvent]:
    """The normal forms of the earlier events.

    Raises
    ------
    EventError
        When they are not a list of events; `row` is the place of one that is wrong.
    """
    if isinstance(history, Mapping) or not is_iterable(history):
        raise EventError(
            f"the history must be a list of earlier events, not {shortened(history)} ({type(history).__name__}). "
            "Hint: leave it out when there are none"
        )
    return [flatten(event, row=row) for row, event in enumerate(history)]


def refuse_asked(event: FlatEvent, asked: Callable[[], Collection[str]], row: int | None = None) -> None:
    """Raise an EventError if the event has a value outside the language under a name that is asked about."""
    refused = [(name, values) for name, values in event.items() if isinstance(values, Refused)]
    names = asked() if refused else ()
    for name, values in refused:
        if any(values.concerns(name, each) for each in names):
            raise values.error(name, row)


def kind_of_value(value: Value) -> Kind | None:
    """The kind of a value of the flat form; an Interval has that of its ends."""
    return value.kind if isinstance(value, Interval) else kind_of(value)


def is_event(given: Any) -> bool:
    """Whether something is one event: a mapping, an instance of a dataclass, or a pandas Series."""
    return isinstance(given, Mapping) or _is_record(given) or _is_series(given)


def event_items(event: Any, row: int | None = None) -> _Items:
    """The attributes of an event and their values, as they were given.

    Raises
    ------
    EventError
        If it is not an event.
    """
    if _is_series(event):
        return list(event.items())
    items = object_items(event)
    if items is None:
        raise EventError(
            "an event must be a mapping from attributes to values, a dataclass or a pandas Series, "
            f"not {type(event).__name__}",
            row=row,
        )
    return items


def _is_record(value: Any) -> bool:
    """Whether it is an instance of a dataclass. An Interval is a value."""
    cls = type(value)
    return hasattr(cls, "__dataclass_fields__") and cls is not Interval


def _is_series(value: Any) -> bool:
    return is_of(value, "pandas", "Series")


def is_of(value: Any, library: str, name: str) -> bool:
    """Whether something is of a class of a library, which need not be installed."""
    return any(cls.__name__ == name and cls.__module__.partition(".")[0] == library for cls in type(value).__mro__)


def object_items(value: Any) -> _Items | None:
    """The fields of an object; None for other values."""
    if isinstance(value, Mapping):
        return value.items()
    if _is_record(value):
        return [(name, getattr(value, name)) for name in type(value).__dataclass_fields__]
    return None


def _add(flat: FlatEvent, name: str, value: Any, parents: _Parents) -> None:
    """Enter a value of any kind under a name, and what is inside it under dotted names."""
    if isinstance(value, Refused):
        _put(flat, name, value)
        return
    try:
        found = _found(name, value, parents)
    except EventError as error:
        _put(flat, name, Refused(str(error)))
    except Exception as error:  # what a foreign class raises while it is read
        reason = f"{type(value).__name__} cannot be read: {shortened(error, quoted=False)}"
        _put(flat, name, Refused(reason, below=True))
    else:
        for own, values in found.items():
            _put(flat, own, values)


def _found(name: str, value: Any, parents: _Parents) -> FlatEvent:
    """What a value adds to an event under a name and below it."""
    if isinstance(value, Interval):
        return {name: (value,)}
    items = object_items(value)
    several = items is None and is_list(value)
    if items is None and not several:
        plain = check_value(value)
        return {} if plain is None else {name: (plain,)}
    if len(parents) > MAX_NESTING or id(value) in parents:
        reason = f"objects are nested deeper than {MAX_NESTING} levels, or one contains itself"
        return {name: Refused(reason, below=True)}
    inside = (*parents, id(value))
    if items is None:
        return _joined(name, value, inside)
    found: FlatEvent = {}
    for key, inner in items:
        own = _plain_name(key)
        if own is not None:
            _add(found, f"{name}.{own}", inner, inside)
    return found


def _joined(name: str, elements: Iterable[Any], parents: _Parents) -> FlatEvent:
    """What all elements of a list add together. One element must not have a name twice; two elements may share a name."""
    found: dict[str, list[Value]] = {}
    refused: FlatEvent = {}
    for element in elements:
        cls = type(element)
        if (cls is str and element.isascii()) or (cls is int and INT64_MIN <= element <= INT64_MAX):
            found.setdefault(name, []).append(element)
            continue
        one: FlatEvent = {}
        _add(one, name, element, parents)
        for own, values in one.items():
            if values:
                found.setdefault(own, []).extend(values)
            else:
                refused.setdefault(own, values)
    return {own: tuple(values) for own, values in found.items()} | refused


def _put(flat: FlatEvent, name: str, values: tuple[Value, ...]) -> None:
    flat[name] = Refused(GIVEN_TWICE) if name in flat else values


def is_list(value: Any) -> bool:
    """Whether the language takes a value as a list: a list, tuple, set or frozenset, or an array of NumPy with dimensions."""
    if isinstance(value, list | tuple | set | frozenset):
        return True
    return type(value).__module__ == "numpy" and getattr(value, "ndim", 0) > 0


def _plain_name(name: Any) -> str | None:
    """A name as expressions write it; None if they cannot."""
    if not isinstance(name, str) or not name or not is_well_formed(name):
        return None
    # A member of a str enumeration has a hash of its own, under which no lookup would find it.
    return name if type(name) is str else str.__str__(name)


def _shortened(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:77]}..."
