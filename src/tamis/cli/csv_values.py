"""Fields of CSV files as values of events.

CSV has no kinds. So a field that reads as a number, a boolean or a timestamp has two values: this value and its text. A
predicate sees the value of its own kind: `zip = '12345'` the text, `zip > 10000` the number. If there is a declared schema, the
schema decides instead. An empty field is a missing value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from tamis.cli.lines import LineError

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.language.values import Kind

# Digits with a leading zero are a name, such as a postcode.
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_INTEGER = len("-9223372036854775808")
_BOOLEANS = {"true": True, "false": False}
_LETTERS_OF_BOOLEANS = frozenset("tTfF")
_STARTS_OF_NUMBERS = frozenset("0123456789+-. ")

Read = Callable[[str], Any]
"""Text of a field -> its value."""


def reader_of(name: str, schema: Schema | None, kinds: Collection[Kind] | None = None) -> Read:
    """A reader for the fields of a column: as the schema declares, or as every kind that fits.

    `kinds` are the kinds that predicates compare the column with, if known: for a single kind, one reading is enough. The
    reader raises a LineError for a field that is not of the declared kind.
    """
    if schema is not None and name in schema:
        return _Declared(name, schema[name].kind)
    if kinds is None or len(kinds) > 1:
        return readings
    return _One(next(iter(kinds), None))


def readings(text: str) -> Any:
    """The values of a field: its text, and the value of another kind that the text may mean; None if it is empty.

    >>> readings("12"), readings("012"), readings("")
    ([12, '12'], '012', None)
    """
    if not text:
        return None
    first = text[0]
    if first in _STARTS_OF_NUMBERS:
        number = _number(text)
        if number is None:
            number = _timestamp(text)
        return text if number is None else [number, text]
    if first in _LETTERS_OF_BOOLEANS and (truth := _boolean(text)) is not None:
        return [truth, text]
    return text


def _number(text: str) -> int | float | None:
    plain = text.strip(" ")
    if _INTEGER.fullmatch(plain) and len(plain) <= _LONGEST_INTEGER:
        from tamis.language.values import INT64_MAX, INT64_MIN

        value = int(plain)
        if INT64_MIN <= value <= INT64_MAX:
            return value
    if _NUMBER.fullmatch(plain):
        # An integer beyond 64 bits is a double: it lies on the same side of every integer that a predicate can name.
        double = float(plain)
        return None if math.isinf(double) else double
    return None


def _boolean(text: str) -> bool | None:
    return _BOOLEANS.get(text.lower())


def _timestamp(text: str) -> Any:
    from tamis.errors import LiteralError
    from tamis.language.literals import read_timestamp

    if len(text) < len("2026-11-14") or text[4] != "-":
        return None
    try:
        return read_timestamp(text)
    except LiteralError:
        return None


def _reader_of_kind(kind: Kind | None) -> Read:
    """A reader of fields as values of one kind; it returns None if a field does not fit. Any text is a string."""
    readers: dict[str | None, Read] = {"number": _number, "boolean": _boolean, "timestamp": _timestamp}
    return readers.get(kind, str)


class _One:
    """Reads fields of a column that is compared with one kind of literals only."""

    def __init__(self, kind: Kind | None) -> None:
        self._read = _reader_of_kind(kind)

    def __call__(self, text: str) -> Any:
        if not text:
            return None
        value = self._read(text)
        return text if value is None else value


class _Declared:
    """Reads fields of a column whose kind is declared."""

    def __init__(self, name: str, kind: Kind) -> None:
        self._name = name
        self._kind = kind
        self._read = _reader_of_kind(kind)

    def __call__(self, text: str) -> Any:
        if not text:
            return None
        value = self._read(text)
        if value is None:
            raise LineError(
                f"attribute {self._name!r}: {text!r} is not a {self._kind}, but the schema declares a {self._kind}"
            )
        return value
