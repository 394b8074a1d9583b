"""The literals of the SQL text: what a number, a date or a timestamp says as a value."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime

from tamis.errors import LiteralError
from tamis.language.values import INT64_MAX, INT64_MIN

_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?) ?(Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_SHOWN = 30


def is_number(text: str) -> bool:
    """Whether a text is an unsigned number: digits, a decimal point, an exponent."""
    return _NUMBER.fullmatch(text) is not None


def read_integer(text: str, *, negative: bool = False) -> int:
    """The integer that decimal digits spell."""
    # Python refuses to read or show thousands of digits; 64 bits have 19.
    digits = text.lstrip("0") or "0"
    if len(digits) <= 19:
        value = -int(digits) if negative else int(digits)
        if INT64_MIN <= value <= INT64_MAX:
            return value
    sign = "-" if negative else ""
    raise LiteralError(f"the integer {sign}{shorten(text)} is beyond 64 bits ({INT64_MIN} to {INT64_MAX})")


def read_decimal(text: str, *, negative: bool = False) -> float:
    """The double nearest to a decimal number."""
    value = float(text)
    if math.isinf(value):
        raise LiteralError(f"the number {shorten(text)} is beyond the largest double (about 1.8e308)")
    return -value if negative else value


def read_date(text: str) -> date:
    """The day of DATE '...': year, month and day in full."""
    if _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise LiteralError(f"there is no such day: {text!r}") from None
    raise LiteralError(f"DATE cannot read {shorten(text)!r}. Hint: write it as DATE '2026-11-14'")


def read_timestamp(text: str) -> datetime:
    """The moment of TIMESTAMP '...', naive and in UTC; a zone may follow the time, a day alone is its midnight."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise LiteralError(
            f"TIMESTAMP cannot read {shorten(text)!r}. "
            "Hint: write it as TIMESTAMP '2026-11-14 10:00:00', with up to six decimals and a zone like +01:00 or Z"
        )
    day, time, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day} {time or '00:00'}{zone if zone and zone != 'UTC' else '+00:00'}")
        return moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise LiteralError(f"there is no such moment: {text!r}") from None


def shorten(text: str) -> str:
    """The text, or its beginning when it is too long for a message."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
