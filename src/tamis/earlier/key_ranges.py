"""Keys of values, and the ranges of keys that satisfy a comparison.

Values of one *domain* have keys, 64-bit integers in the order of the values. Values of different domains are never compared,
except that numbers have two domains, since 64 bits do not distinguish all of them:

    NUMBER    doubles below 2**53 and from 2**63 on in magnitude, and the integers among them: the code of the double
    LARGE     integers from 2**53 up to 2**63 in magnitude, and the doubles among them, which are integers: themselves
    TEXT      strings: a code, or a label in the order of strings, see `column`
    TIME      microseconds
    BOOLEAN   0 and 1

A range of keys includes both ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple, TypeAlias

from tamis.encoding.dimensions.keys import INT_BEYOND, INT_EXACT, KEY_MAX, KEY_MIN, double_code
from tamis.language.event import Value, kind_of_value
from tamis.language.operators import Operator
from tamis.language.values import INT64_MAX, INT64_MIN, Interval, Kind, Scalar, kind_of, to_microseconds

MISSING, NUMBER, LARGE, TEXT, TIME, BOOLEAN, ODD = range(7)
"""Domains. An event is odd if the attribute has several values or an Interval. The reference evaluator decides about it."""
DOMAINS = 7
DOMAINS_OF = {Kind.NUMBER: (NUMBER, LARGE), Kind.STRING: (TEXT,), Kind.TIMESTAMP: (TIME,), Kind.BOOLEAN: (BOOLEAN,)}

Key: TypeAlias = Any
"""A number, a string, or microseconds. Python compares those of one kind as the language does."""

KeyRange: TypeAlias = tuple[int, int]
_ALL = (KEY_MIN, KEY_MAX)


class Range(NamedTuple):
    """All values of one kind between two ends. An end that is None is no limit. An open end is not part of the range."""

    lo: Key | None = None
    hi: Key | None = None
    lo_open: bool = False
    hi_open: bool = False


RangesByKind: TypeAlias = dict[Kind, list[Range]]
"""For each kind, the ranges of the values that satisfy a comparison. A kind that is not there has no value to compare with."""


def key_of(value: Scalar) -> Key:
    """A scalar as ranges have it."""
    return to_microseconds(value) if isinstance(value, date) else value


def single(values: tuple[Value, ...]) -> Scalar | None:
    """The value of an attribute that has exactly one, and no Interval."""
    return values[0] if len(values) == 1 and not isinstance(values[0], Interval) else None


def satisfying(values: Sequence[Value], operator: Operator) -> RangesByKind:
    """The values y for which `values OPERATOR y` holds. The operator is positive."""
    if len(values) == 1 and not isinstance(values[0], Interval):
        return _satisfying_one(values[0], operator)
    found: RangesByKind = {}
    ends: dict[Kind, list[tuple[Key, Key]]] = {}
    for value in values:
        lo, hi = (value.lo, value.hi) if isinstance(value, Interval) else (value, value)
        kind = kind_of_value(value)
        assert kind is not None
        if kind is not Kind.BOOLEAN or operator is Operator.EQ:
            ends.setdefault(kind, []).append((key_of(lo), key_of(hi)))
    for kind, pairs in ends.items():
        match operator:
            case Operator.LT | Operator.LE:
                found[kind] = [Range(lo=min(lo for lo, _ in pairs), lo_open=operator is Operator.LT)]
            case Operator.GT | Operator.GE:
                found[kind] = [Range(hi=max(hi for _, hi in pairs), hi_open=operator is Operator.GT)]
            case _:
                assert operator is Operator.EQ
                found[kind] = [Range(lo, hi) for lo, hi in pairs]
    return found


def _satisfying_one(value: Scalar, operator: Operator) -> RangesByKind:
    kind, key = kind_of(value), key_of(value)
    assert kind is not None
    if operator is Operator.EQ:
        return {kind: [Range(key, key)]}
    if kind is Kind.BOOLEAN:
        return {}
    if operator is Operator.LT or operator is Operator.LE:
        return {kind: [Range(lo=key, lo_open=operator is Operator.LT)]}
    return {kind: [Range(hi=key, hi_open=operator is Operator.GT)]}


def number_key(value: float) -> tuple[int, int]:
    """The domain and the key of a number."""
    if INT_EXACT <= abs(value) < INT_BEYOND:
        return LARGE, int(value)
    return NUMBER, double_code(float(value))


def number_ranges(wanted: Range) -> tuple[KeyRange, KeyRange]:
    """The keys in NUMBER and in LARGE that lie in a range of numbers."""
    codes = _code(wanted.lo, KEY_MIN, wanted.lo_open), _code(wanted.hi, KEY_MAX, -wanted.hi_open)
    lo, hi = wanted.lo, wanted.hi
    first = INT64_MIN if lo is None or lo < INT64_MIN else INT64_MAX + 1 if lo > INT64_MAX else math.ceil(lo)
    last = INT64_MAX if hi is None or hi > INT64_MAX else INT64_MIN - 1 if hi < INT64_MIN else math.floor(hi)
    first += wanted.lo_open and first == lo
    last -= wanted.hi_open and last == hi
    return codes, (first, last) if first <= last and first <= INT64_MAX and last >= INT64_MIN else (1, 0)


def _code(end: float | None, limit: int, step: int) -> int:
    """The first code within an end that is open if `step` is not 0."""
    if end is None:
        return limit
    if INT_EXACT <= abs(end) < INT_BEYOND:
        return double_code(math.copysign(INT_EXACT, end))  # No number in this domain has this key, or lies beside it.
    return double_code(float(end)) + step


def integer_range(wanted: Range) -> KeyRange:
    """The keys of timestamps or booleans that lie in a range."""
    lo = KEY_MIN if wanted.lo is None else int(wanted.lo) + wanted.lo_open
    hi = KEY_MAX if wanted.hi is None else int(wanted.hi) - wanted.hi_open
    return lo, hi


def outside(ranges: Iterable[KeyRange]) -> Iterator[KeyRange]:
    """The ranges between, below and above some ranges. A range here may be empty."""
    lo = KEY_MIN
    for first, last in sorted(ranges):
        if first > last:
            continue
        if first > lo:
            yield lo, first - 1
        if last >= KEY_MAX:
            return
        lo = max(lo, last + 1)
    yield lo, KEY_MAX
