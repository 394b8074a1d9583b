"""Events in their one normal form: a flat dictionary from dotted names to tuples of values.

    {"user": {"age": 30}, "tags": ["a", None, "b"], "note": None}   ->   {"user.age": (30,), "tags": ("a", "b")}

Invariants of the flat form: every value went through `check_value` or is an `Interval`, no tuple is empty, and an
attribute that is missing (absent, None, NaN, an empty list) has no entry. Flattening it again gives the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
"""How deep the objects of an event may be nested. One that holds itself is always deeper."""


def flatten(event: Mapping[str, Any], *, row: int | None = None) -> FlatEvent:
    """The normal form of an event; `row` is its place in a batch, for messages.

    Raises
    ------
    EventError
        For names that are not non-empty strings, values outside the language, lists within lists, nesting beyond
        `MAX_NESTING`, and an attribute given twice (``{"a": {"b": 1}, "a.b": 2}``).

    >>> flatten({"user": {"age": 30}, "tags": ["a", "b"], "note": None})
    {'user.age': (30,), 'tags': ('a', 'b')}
    """
    if type(event) is not dict and not isinstance(event, Mapping):
        raise EventError(f"an event is a mapping from attributes to values, not {type(event).__name__}", row=row)
    flat: FlatEvent = {}
    for name, value in event.items():
        # One event at a time is the hot path: what is plain already is taken without a call.
        cls = type(value)
        plain = (
            (cls is str and value.isascii())
            or (cls is float and value == value)
            or (cls is int and INT64_MIN <= value <= INT64_MAX)
            or cls is bool
        )
        if plain and type(name) is str and name and name.isascii() and name not in flat:
            flat[name] = (value,)
        else:
            _add(flat, _plain_name(name, row, None), value, row, 1)
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
            f"the history is a list of earlier events, not {shortened(history)} ({type(history).__name__}). "
            "Hint: leave it out when there are none"
        )
    return [flatten(event, row=row) for row, event in enumerate(history)]


def kind_of_value(value: Value) -> Kind | None:
    """The kind of a value of the flat form; an Interval has that of its ends."""
    return value.kind if isinstance(value, Interval) else kind_of(value)


def _add(flat: FlatEvent, name: str, value: Any, row: int | None, depth: int) -> None:
    if isinstance(value, Mapping):
        if depth > MAX_NESTING:
            raise EventError(
                f"objects are nested deeper than {MAX_NESTING} levels, or one holds itself",
                row=row,
                attribute=_shortened(name),
            )
        for key, inner in value.items():
            _add(flat, f"{name}.{_plain_name(key, row, name)}", inner, row, depth + 1)
        return
    try:
        values = _values(value)
    except (ValueError, OverflowError) as error:  # EventError is a ValueError
        raise EventError(str(error), row=row, attribute=_shortened(name)) from None
    if not values:
        return
    if name in flat:
        raise EventError("is given twice, nested and as a dotted name", row=row, attribute=_shortened(name))
    flat[name] = values


def _values(value: Any) -> tuple[Value, ...]:
    if isinstance(value, Interval):
        return (value,)
    if _is_list(value):
        return tuple([plain for element in value if (plain := _element(element)) is not None])
    plain = check_value(value)
    return () if plain is None else (plain,)


def _element(value: Any) -> Value | None:
    if isinstance(value, Interval):
        return value
    if isinstance(value, Mapping):
        raise EventError("a list holds scalars, not objects. Hint: flatten the objects to lists of scalars")
    if _is_list(value):
        raise EventError("a list holds scalars, not other lists")
    return check_value(value)


def _is_list(value: Any) -> bool:
    if isinstance(value, list | tuple | set | frozenset):
        return True
    if type(value).__module__ != "numpy":
        return False
    dimensions = getattr(value, "ndim", 0)
    if dimensions > 1:
        raise EventError(f"an array of {dimensions} dimensions is not a list of scalars")
    return bool(dimensions == 1)


def _plain_name(name: object, row: int | None, parent: str | None) -> str:
    inside = "" if parent is None else f" inside {_shortened(parent)!r}"
    if not isinstance(name, str):
        raise EventError(f"an attribute's name is a string, not {shortened(name)}{inside}", row=row)
    if not name:
        raise EventError(f"an attribute's name cannot be empty{inside}", row=row)
    if not is_well_formed(name):
        raise EventError(
            f"the name {shortened(name)}{inside} holds a lone surrogate and is not a Unicode string", row=row
        )
    # A member of a str enumeration has a hash of its own, under which no lookup would find it.
    return name if type(name) is str else str.__str__(name)


def _shortened(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:77]}..."
