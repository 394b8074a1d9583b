"""Comparisons of numbers and moments as spans, decided for all values of a column at once.

A double holds integers exactly up to 2**53. A larger integer is the nearest double and a *rest*, the integer that is missing:

    0.1          0.1     rest 0
    2**60 + 1    2**60   rest 1         a < 5    all pairs up to (5.0, -1)
    2**60 - 1    2**60   rest -1        a = 5    all pairs from (5.0, 0) to (5.0, 0)

Pairs of a double and a rest have the order of the numbers. Moments are integers in microseconds, and their rest is 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import INT_EXACT
from tamis.kernels.kernel import kernel
from tamis.kernels.numbers import Bools
from tamis.language.operators import Operator
from tamis.language.values import Kind, to_microseconds

I16s = npt.NDArray[np.int16]

_FEW = 8
"""Literals of an IN that are compared one after another faster than they are searched."""
_NO_RESTS: I16s = np.empty(0, np.int16)


class Point(NamedTuple):
    """A number or a moment."""

    value: float
    rest: int


class Span(NamedTuple):
    """All points from one to another, both included. None: there is no such end."""

    low: Point | None
    high: Point | None


def point_of(number: float) -> Point:
    """A number as a double and a rest."""
    if type(number) is int and not -INT_EXACT <= number <= INT_EXACT:
        nearest = float(number)
        return Point(nearest, number - int(nearest))
    return Point(float(number), 0)


def spans_of(operator: Operator, literals: Iterable[Any], kind: Kind) -> list[Span]:
    """The spans of which a positive predicate takes all points. The literals are of one kind, numbers or moments."""
    points = [Point(to_microseconds(each), 0) if kind is Kind.TIMESTAMP else point_of(each) for each in literals]
    first = points[0]
    match operator:
        case Operator.LT:
            return [Span(None, first._replace(rest=first.rest - 1))]
        case Operator.LE:
            return [Span(None, first)]
        case Operator.GT:
            return [Span(first._replace(rest=first.rest + 1), None)]
        case Operator.GE:
            return [Span(first, None)]
        case Operator.BETWEEN:
            return [Span(*points)] if points[0] <= points[1] else []
    return [Span(point, point) for point in points]


def within(spans: list[Span], values: npt.NDArray[Any], rests: I16s | None) -> Bools:
    """Which values lie in one of the spans. Without rests, all rests are 0."""
    if len(spans) > _FEW:
        return _among([span.low for span in spans if span.low is not None], values, rests)
    is_within = np.zeros(len(values), np.bool_)
    for low, high in spans:
        if rests is not None:
            is_within |= _between(low, high, values, rests)
        elif low == high and low is not None:
            if low.rest == 0:
                is_within |= values == low.value
        else:
            is_within |= reaches(low, values, None) & stays_below(high, values, None)
    return is_within


def reaches(low: Point | None, values: npt.NDArray[Any], rests: I16s | None) -> Bools:
    """Which values are a point or lie above it."""
    if low is None:
        return np.ones(len(values), np.bool_)
    if rests is not None:
        return _between(low, None, values, rests)
    is_reached: Bools = values >= low.value if low.rest <= 0 else values > low.value
    return is_reached


def stays_below(high: Point | None, values: npt.NDArray[Any], rests: I16s | None) -> Bools:
    """Which values are a point or lie below it."""
    if high is None:
        return np.ones(len(values), np.bool_)
    if rests is not None:
        return _between(None, high, values, rests)
    is_below: Bools = values <= high.value if high.rest >= 0 else values < high.value
    return is_below


def _between(low: Point | None, high: Point | None, values: npt.NDArray[Any], rests: I16s) -> Bools:
    is_within = np.empty(len(values), np.bool_)
    _mark_between(values, rests, low or Point(-np.inf, 0), high or Point(np.inf, 0), is_within)
    return is_within


def _among(points: list[Point], values: npt.NDArray[Any], rests: I16s | None) -> Bools:
    ordered = sorted(set(points))
    is_among = np.empty(len(values), np.bool_)
    _mark_among(
        values,
        _NO_RESTS if rests is None else rests,
        np.array([point.value for point in ordered], values.dtype),
        np.array([point.rest for point in ordered], np.int16),
        is_among,
    )
    return is_among


@kernel
def _mark_between(values: npt.NDArray[Any], rests: I16s, low: Point, high: Point, is_within: Bools) -> None:
    """Mark the pairs between two others. All comparisons are made, so there is no branch."""
    for place in range(len(values)):
        value, rest = values[place], rests[place]
        is_above = (value > low.value) | ((value == low.value) & (rest >= low.rest))
        is_below = (value < high.value) | ((value == high.value) & (rest <= high.rest))
        is_within[place] = is_above & is_below


@kernel
def _mark_among(
    values: npt.NDArray[Any], rests: I16s, wanted: npt.NDArray[Any], wanted_rests: I16s, is_among: Bools
) -> None:
    """Mark the pairs that are among some others, which ascend."""
    for place in range(len(values)):
        value, rest = values[place], rests[place] if len(rests) else 0
        low, high = 0, len(wanted)
        while low < high:
            middle = (low + high) // 2
            is_less = wanted[middle] < value or (wanted[middle] == value and wanted_rests[middle] < rest)
            low, high = (middle + 1, high) if is_less else (low, middle)
        is_among[place] = low < len(wanted) and wanted[low] == value and wanted_rests[low] == rest
