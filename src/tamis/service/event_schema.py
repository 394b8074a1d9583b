"""The event schema of a tenant. JSON has no timestamps: a schema says which strings are timestamps, and which kinds values have.

It stands in ``schema.json`` in the folder of the tenant, or in the configuration, which then nobody can change over the network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tamis.errors import EventError, FileError, LiteralError, SchemaError
from tamis.language.event import flatten
from tamis.language.expression import Expression
from tamis.language.literals import read_timestamp
from tamis.language.schema import Schema
from tamis.language.values import Kind
from tamis.service.problems import ProblemError
from tamis.service.tenant_files import SCHEMA
from tamis.storage.replacing import replacing

MOST_ATTRIBUTES = 10_000
"""Attributes of a schema that is set over the network."""


class EventSchema:
    """Reads and checks the events of a tenant. Without a declaration, it changes and refuses nothing."""

    def __init__(self, folder: Path, configured: Mapping[str, Any] | None) -> None:
        self._path = folder / SCHEMA
        self.is_fixed = configured is not None
        self._use(_read(self._path) if configured is None else configured)

    def _use(self, declared: Mapping[str, Any]) -> None:
        schema = Schema.of(declared) if declared else None
        self._timestamps = frozenset(
            name for name in schema or () if schema is not None and schema[name].kind is Kind.TIMESTAMP
        )
        self._schema = schema

    def declared(self) -> dict[str, str]:
        """The declaration."""
        return {} if self._schema is None else self._schema.to_dict()

    def change(self, declared: Mapping[str, Any]) -> None:
        """Declare something else. Events that are stored and subscriptions stay as they are.

        Raises
        ------
        SchemaError, ProblemError
        """
        if self.is_fixed:
            raise ProblemError(409, "fixed-schema", "the schema stands in the configuration of the service")
        if _attributes(declared) > MOST_ATTRIBUTES:
            detail = f"a schema may declare {MOST_ATTRIBUTES:,} attributes. Hint: events may have others, too"
            raise ProblemError(413, "schema-too-long", detail)
        Schema.of(declared)
        with replacing(str(self._path)) as stream:
            stream.write(json.dumps(declared, indent=1).encode())
        self._use(declared)

    def read(self, event: dict[str, Any], row: int | None = None) -> dict[str, Any]:
        """The event with its timestamps.

        Raises
        ------
        EventError
        """
        if self._schema is None:
            return event
        found = self._object(event, "", row) if self._timestamps else event
        self._schema.check_event(flatten(found), row)
        return found

    def check(self, expression: Expression, text: str | None = None) -> None:
        """Refuse an expression that does not fit. With its `text`, the error shows the place.

        Raises
        ------
        ExpressionError
        """
        if self._schema is not None:
            self._schema.check(expression, text)

    def _object(self, found: dict[str, Any], prefix: str, row: int | None) -> dict[str, Any]:
        return {key: self._value(value, prefix + key, row) for key, value in found.items()}

    def _value(self, value: Any, name: str, row: int | None) -> Any:
        if isinstance(value, dict):
            return self._object(value, f"{name}.", row)
        if isinstance(value, list):
            return [self._value(each, name, row) for each in value]
        if not isinstance(value, str) or name not in self._timestamps:
            return value
        try:
            return read_timestamp(value)
        except LiteralError:
            raise EventError(
                f"{value!r} is not a timestamp. Hint: 2026-11-14T10:00:00Z", row=row, attribute=name
            ) from None


def _attributes(declared: Mapping[str, Any]) -> int:
    """How many attributes are declared, counted until they are too many."""
    count, left = 0, [declared]
    while left and count <= MOST_ATTRIBUTES:
        for value in left.pop().values():
            count += 1
            if isinstance(value, dict):
                left.append(value)
    return count


def _read(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    try:
        declared: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        Schema.of(declared)
    except (OSError, ValueError, SchemaError) as error:
        raise FileError(f"not a schema: {error}", path=str(path)) from None
    return declared
