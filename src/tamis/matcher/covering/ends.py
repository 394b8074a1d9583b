"""The lowest, the highest and a middle value of a set, as far as events can have them."""

from __future__ import annotations

import math
import sys
from datetime import datetime
from typing import Any

from tamis.language.value_set import AFTER, Cut, Span, ValueSet, key_of, literal_at
from tamis.language.values import Kind, Scalar, is_moment

_LAST_CHARACTER = chr(sys.maxunicode)
_FIRST_MOMENT, _LAST_MOMENT = datetime.min, datetime.max  # noqa: DTZ901 - naive datetimes are UTC in Tamis


def lowest(one: ValueSet, kind: Kind) -> Scalar | None:
    """The lowest value of a set, or a value near it; None if there is none, as between two neighbouring floats."""
    return next((value for span in one.spans() if (value := _first(span, kind)) is not None), None)


def highest(one: ValueSet, kind: Kind) -> Scalar | None:
    """The highest value of a set, or a value of its last span; None if there is none."""
    for span in reversed(list(one.spans())):
        value = _last(span, kind)
        if value is None:
            value = _first(span, kind)
        if value is not None:
            return value
    return None


def listed(one: ValueSet, kind: Kind) -> list[Scalar] | None:
    """The values of a set, ascending; None if they are infinitely many."""
    spans = list(one.spans())
    points = points_of(spans, kind)
    return points if len(points) == len(spans) else None


def points_of(spans: list[Span], kind: Kind) -> list[Scalar]:
    """The values of the spans that have only one."""
    return [literal_at(span.lo[0], kind) for span in spans if span.lo is not None and span.is_point]


def _first(span: Span, kind: Kind) -> Scalar | None:
    if span.lo is None:
        value: Scalar | None = _FIRST_MOMENT if kind is Kind.TIMESTAMP else -math.inf
    else:
        key, side = span.lo
        value = _after(key, kind) if side is AFTER else literal_at(key, kind)
    return value if value is not None and _is_below(value, span.hi) else None


def _last(span: Span, kind: Kind) -> Scalar | None:
    if span.hi is None:
        ends: dict[Kind, Scalar] = {Kind.TIMESTAMP: _LAST_MOMENT, Kind.STRING: _LAST_CHARACTER * 4}
        value: Scalar | None = ends.get(kind, math.inf)
    else:
        key, side = span.hi
        value = literal_at(key, kind) if side is AFTER else _before(key, kind)
    return value if value is not None and (span.lo is None or not _is_below(value, span.lo)) else None


def _is_below(value: Scalar, cut: Cut | None) -> bool:
    """Whether a value is below a cut; None is the upper end of the line."""
    if cut is None:
        return True
    key = key_of(value)
    return bool(key < cut[0] or (key == cut[0] and cut[1] is AFTER))


def _after(key: Any, kind: Kind) -> Scalar | None:
    """The first value after a key."""
    if kind is Kind.STRING:
        return str(key) + "\0"
    return _next(key, kind, 1)


def _before(key: Any, kind: Kind) -> Scalar | None:
    """The last value before a key; of strings, a value near it."""
    if kind is not Kind.STRING:
        return _next(key, kind, -1)
    if not key or key[-1] == "\0":
        return str(key[:-1]) if key else None
    before = ord(key[-1]) - 1
    # Half a surrogate pair is not a character: U+D7FF comes before U+E000.
    return str(key[:-1]) + chr(0xD7FF if before == 0xDFFF else before) + _LAST_CHARACTER


def _next(key: Any, kind: Kind, step: int) -> Scalar | None:
    if kind is Kind.BOOLEAN:
        return None
    if kind is Kind.TIMESTAMP:
        return literal_at(key + step, kind) if is_moment(key + step) else None
    # A large integer may have no float of its own.
    near = float(key)
    is_beyond = near > key if step > 0 else near < key
    return near if is_beyond else math.nextafter(near, step * math.inf)
