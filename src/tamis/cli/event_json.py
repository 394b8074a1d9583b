"""Facts about an event that JSON lacks: which strings are timestamps, and which field is its id."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from tamis.cli.event_ids import beyond_64_bits, no_field
from tamis.cli.json_text import JsonError

if TYPE_CHECKING:
    from tamis.language.schema import Schema


def has_timestamps(schema: Schema | None) -> bool:
    """Whether a schema declares timestamps."""
    return bool(TimestampReader(schema).names)


class TimestampReader:
    """Reads the strings of attributes that a schema declares as timestamps. Other values stay as they are."""

    def __init__(self, schema: Schema | None) -> None:
        self.names: frozenset[str] = frozenset()
        if schema is not None:
            from tamis.language.values import Kind

            self.names = frozenset(name for name in schema if schema[name].kind is Kind.TIMESTAMP)

    def read(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event with its timestamps.

        Raises
        ------
        JsonError
            For a string that is not a timestamp.
        """
        try:
            return self._object(event, "") if self.names else event
        except RecursionError:
            raise JsonError("the JSON is nested too deep") from None

    def _object(self, found: dict[str, Any], prefix: str) -> dict[str, Any]:
        return {key: self._value(value, prefix + key) for key, value in found.items()}

    def _value(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return self._object(value, f"{name}.")
        if isinstance(value, list):
            return [self._value(each, name) for each in value]
        return _timestamp(value, name) if name in self.names else value


def _timestamp(value: Any, name: str) -> Any:
    from tamis.errors import LiteralError
    from tamis.language.literals import read_timestamp

    if not isinstance(value, str):
        return value
    try:
        moment: datetime = read_timestamp(value)
    except LiteralError:
        raise JsonError(f"attribute {name!r}: {value!r} is not a timestamp. Hint: 2026-11-14T10:00:00Z") from None
    return moment


def read_event_id(event: dict[str, Any], path: str, kind: type | None, *, texts: bool = False) -> str | int:
    """The value of a field, which may lie in nested objects (``order.id``): a string or an integer, all of one type.

    `texts`: a field with several readings, as in CSV, counts as its text, the last reading.

    Raises
    ------
    JsonError
    """
    from tamis.errors import IdTypeError
    from tamis.matcher.ids import plain_id

    found: Any = event
    for name in [path] if path in event else path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    if texts and isinstance(found, list):
        found = found[-1]
    if found is None:
        raise JsonError(no_field(path))
    try:
        event_id = plain_id(found)
    except IdTypeError:
        if type(found) is int:
            raise JsonError(beyond_64_bits(path, found)) from None
        raise JsonError(f"the field {path!r} must be a string or an integer, not {found!r}") from None
    if kind is not None and type(event_id) is not kind:
        raise JsonError(
            f"the field {path!r} was {kind.__name__} in earlier events, but {event_id!r} is {type(event_id).__name__}"
        )
    return event_id
