"""The values of the language: scalars of four kinds, and intervals in events.

A *kind* decides what may be compared with what: a literal is compared only with values of its own kind. Every literal goes
through `check_literal`. So a literal of an expression is a bool, an int within 64 bits, a finite float, a well-formed str, a
date, or a datetime that is naive and UTC.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

from tamis.errors import EventError, LiteralError, shortened

Scalar: TypeAlias = bool | int | float | str | date | datetime

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
_MOST_DIGITS = 19

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - naive datetimes are UTC in Tamis
_MICROSECOND = timedelta(microseconds=1)
_FIRST_MOMENT = (datetime.min - _EPOCH) // _MICROSECOND  # noqa: DTZ901
_LAST_MOMENT = (datetime.max - _EPOCH) // _MICROSECOND  # noqa: DTZ901


def is_moment(count: Any) -> Any:
    """Whether a number of microseconds since 1970, or each of an array, lies in the years 1 to 9999."""
    return (count >= _FIRST_MOMENT) & (count <= _LAST_MOMENT)


class Kind(StrEnum):
    """What a value is compared as. Dates and timestamps are one kind."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"


def kind_of(value: object) -> Kind | None:
    """The kind of a scalar; None for anything that is not one."""
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, int | float):
        return Kind.NUMBER
    if isinstance(value, str):
        return Kind.STRING
    if isinstance(value, date):  # a datetime is a date
        return Kind.TIMESTAMP
    return None


def kinds_of(values: Iterable[object]) -> tuple[Kind, ...]:
    """The kinds of some scalars, each once, in the order in which they occur."""
    return tuple(dict.fromkeys(kind for value in values if (kind := kind_of(value)) is not None))


def check_literal(value: Any) -> Scalar:
    """The literal in the one form that expressions hold.

    Raises
    ------
    LiteralError
        For NULL, NaN, infinity, integers beyond 64 bits, lone surrogates, and types outside the language.
    """
    if value is None:
        raise LiteralError(
            "NULL is not a literal here: comparing with it is never true. Hint: use IS NULL or IS NOT NULL"
        )
    try:
        plain = plain_scalar(value)
    except Exception as error:  # also what a foreign class raises
        raise LiteralError(
            f"{shortened(value)} is not a literal of the language: {shortened(error, quoted=False)}"
        ) from None
    if plain is None:
        raise LiteralError(
            f"{shortened(value)} ({type(value).__name__}) is not a literal of the language. "
            "Hint: use a number, a string, a boolean, a date or a datetime"
        )
    if isinstance(plain, float) and not math.isfinite(plain):
        raise LiteralError(f"{plain} is not a literal of the language: a number must be finite")
    if isinstance(plain, int) and not INT64_MIN <= plain <= INT64_MAX:
        raise LiteralError(f"{in_words(plain)} is beyond 64 bits ({INT64_MIN} to {INT64_MAX})")
    if isinstance(plain, str) and not is_well_formed(plain):
        raise LiteralError(f"{shortened(plain)} holds a lone surrogate and is not a Unicode string")
    return plain


def check_value(value: Any) -> Scalar | None:
    """A scalar of an event in plain form; None for what counts as missing (None, NaN).

    Raises
    ------
    EventError
        For types outside the language, integers beyond 64 bits and lone surrogates.
    """
    if is_missing(value):
        return None
    try:
        plain = plain_scalar(value)
    except Exception as error:  # also what a foreign class raises
        raise EventError(
            f"{shortened(value)} is not a value of the language: {shortened(error, quoted=False)}"
        ) from None
    if plain is None:
        raise EventError(
            f"{type(value).__name__} is not a value of the language; "
            "use a number, a string, a boolean, a date, a datetime, a list of these, an Interval or a nested object"
        )
    if isinstance(plain, int) and not INT64_MIN <= plain <= INT64_MAX:
        raise EventError(f"{in_words(plain)} is beyond 64 bits")
    if isinstance(plain, str) and not is_well_formed(plain):
        raise EventError(f"{shortened(plain)} holds a lone surrogate and is not a Unicode string")
    return plain


def in_words(number: int) -> str:
    """An integer as a message shows it: Python refuses to write out those of thousands of digits."""
    return f"the integer {number}" if number.bit_length() < 256 else f"an integer of {number.bit_length()} bits"


def plain_scalar(value: Any) -> Scalar | None:
    """The value as a plain Python scalar: NumPy and pandas scalars and decimals converted, aware datetimes made naive UTC.

    None when it is no scalar of the language, a missing value (NaT) among them.
    """
    if isinstance(value, bool | int | float | str):
        # Subclasses (StrEnum, IntEnum, numpy.float64, numpy.str_) are made plain, so that types can be compared.
        for base in (bool, int, float, str):
            if isinstance(value, base):
                return value if type(value) is base else base(value)
    if isinstance(value, datetime):
        # pandas' Timestamp is a datetime with nanoseconds; microseconds are what we keep. Its NaT is not itself.
        if value != value:
            return None
        plain = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
        return plain.astimezone(UTC).replace(tzinfo=None) if plain.tzinfo is not None else plain
    if isinstance(value, date):
        return value
    if isinstance(value, Decimal):
        return _plain_decimal(value)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        if value.dtype.kind in "mM":
            return _plain_time(value)
        item = value.item()
        return None if type(item) is type(value) else plain_scalar(item)
    return None


def _plain_time(value: Any) -> datetime | None:
    """The moment of a numpy.datetime64. `item()` would give a number for nanoseconds, and outside Python's years."""
    if value.dtype.kind == "m":
        raise ValueError("durations are not supported")
    if value != value:
        return None
    year = 1970 + int(value.astype("datetime64[Y]").astype("int64"))
    if not MINYEAR <= year <= MAXYEAR:
        raise ValueError(f"the year {year} is not within {MINYEAR} to {MAXYEAR}")
    moment: datetime = value.astype("datetime64[us]").item()
    return moment


def _plain_decimal(value: Decimal) -> int | float:
    """The integer, if it is written as one that has 64 bits, else the nearest double."""
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and 0 <= exponent <= _MOST_DIGITS:
        number = int(value)
        if INT64_MIN <= number <= INT64_MAX:
            return number
    return float(value)


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN in any form, and the missing values of NumPy and pandas."""
    if value is None or type(value).__name__ == "NAType":
        return True
    try:
        return bool(value != value)
    except Exception:  # a foreign class may raise anything
        return isinstance(value, Decimal) and value.is_nan()


def is_well_formed(text: str) -> bool:
    """Whether a string is Unicode text, which a lone surrogate (half of a broken pair) is not."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_microseconds(value: date) -> int:
    """Microseconds since 1970 in UTC; a date is its midnight."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001
    return (value - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """The timestamp that is this many microseconds after 1970.

    Raises
    ------
    LiteralError
        Before the year 1 and after 9999.
    """
    if not _FIRST_MOMENT <= count <= _LAST_MOMENT:
        raise LiteralError("a timestamp lies outside the years 1 to 9999")
    return _EPOCH + count * _MICROSECOND


def identity(value: Scalar) -> tuple[type, Scalar]:
    """A key that distinguishes literals: for Python, 1, 1.0 and True are equal."""
    return (type(value), value)


@dataclass(frozen=True, slots=True)
class Interval:
    """An unknown value of an event that lies in ``[lo, hi]``, both ends included.

    It behaves as the infinite set of its points: ``price < 10`` holds when some point is below 10, ``price <> 10``
    when no point is 10. The ends are two numbers, or two dates or datetimes.

    >>> Interval(5, 10)
    Interval(lo=5, hi=10)
    """

    lo: Scalar
    hi: Scalar

    def __post_init__(self) -> None:
        ends = []
        for end in (self.lo, self.hi):
            value = check_value(end)
            if value is None or kind_of(value) not in (Kind.NUMBER, Kind.TIMESTAMP):
                raise EventError(
                    "the ends of an Interval must be two numbers, or two dates or datetimes, "
                    f"not {shortened(self.lo)} and {shortened(self.hi)}"
                )
            ends.append(value)
        lo, hi = ends
        if kind_of(lo) is not kind_of(hi):
            raise EventError(f"the ends of an Interval must be of one kind: {shortened(self.lo)}, {shortened(self.hi)}")
        if compare(lo, hi) > 0:
            raise EventError(
                f"an Interval's lower end must come first: {shortened(self.lo)} is above {shortened(self.hi)}"
            )
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)

    @property
    def kind(self) -> Kind:
        kind = kind_of(self.lo)
        assert kind is not None
        return kind


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1 as `left` is below, equal to or above `right`; both of one kind.

    Python compares int and float exactly and strings by code point, which is the language's own order.
    """
    if isinstance(left, date):
        left, right = to_microseconds(left), to_microseconds(right)
    return int(left > right) - int(left < right)


def is_iterable(value: object) -> bool:
    """Whether a value counts as a list. Strings do not, nor do arrays without dimensions, which claim to be lists."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and getattr(value, "ndim", 1) != 0


def distinct(values: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """The values without repetition, in their order; 1, 1.0 and True differ."""
    if set(map(type, values)) in ({int}, {str}):
        return tuple(dict.fromkeys(values))
    return tuple({identity(value): value for value in values}.values())
