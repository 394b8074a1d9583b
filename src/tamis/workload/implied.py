"""Predicates implied by an equality (BE-Tree, Table 2b): given ``a = v``, literals for other operators that v satisfies.

Departure: the table asks v1 >= v for ``<`` and v1 <= v for ``>``. If v1 = v, v does not satisfy them, so both are strict here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.numbers import I64s, U8s
from tamis.language.operators import Operator
from tamis.workload.arrays import offsets
from tamis.workload.config import OperatorClass

OPERATORS: tuple[Operator, ...] = (
    Operator.EQ,
    Operator.NE,
    Operator.LT,
    Operator.LE,
    Operator.GT,
    Operator.GE,
    Operator.BETWEEN,
    Operator.IN,
    Operator.NOT_IN,
    Operator.LIKE,
)
"""The operators of workloads. An operator's code is its place in this tuple."""

CODE: dict[Operator, int] = {operator: code for code, operator in enumerate(OPERATORS)}

_RANGES = (Operator.LT, Operator.LE, Operator.GT, Operator.GE, Operator.BETWEEN)
IMPLIED: dict[OperatorClass, tuple[Operator, ...]] = {
    "min": (),
    "low": (Operator.IN,),
    "med": (Operator.IN, *_RANGES),
    "high": (Operator.IN, *_RANGES, Operator.NE, Operator.NOT_IN),
}
"""Operator class (BE-Tree, Table 2a) -> the operators that may replace an equality."""

MAX_SET = 6
"""The most values in IN and NOT IN (BE-Tree 7.1)."""


class Literals(NamedTuple):
    """The literals of some predicates: predicate j has ``values[ptr[j]:ptr[j + 1]]``."""

    ptr: I64s
    values: I64s


def implied_operators(rng: np.random.Generator, count: int, equality_ratio: float, others: tuple[Operator, ...]) -> U8s:
    """Codes of operators: ``=`` with the given probability, else one of the others, all equally likely."""
    codes = np.full(count, CODE[Operator.EQ], np.uint8)
    if others:
        turned = np.flatnonzero(rng.random(count) >= equality_ratio)
        choices = np.array([CODE[operator] for operator in others], np.uint8)
        codes[turned] = choices[rng.integers(0, len(choices), len(turned))]
    return codes


def implied_literals(
    rng: np.random.Generator, operators: U8s, values: I64s, cardinality: int, range_share: float
) -> Literals:
    """Literals that make each operator hold for its value. Values are from 1 to `cardinality`."""
    places = {operator: np.flatnonzero(operators == code) for operator, code in CODE.items()}
    bounds = values.copy()
    for operator in (Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE):
        place = places[operator]
        bounds[place] = _bounds(rng, operator, values[place], cardinality)
    between = places[Operator.BETWEEN]
    bounds[between], ends = _ranges(rng, values[between], cardinality, range_share)
    sets = np.concatenate([places[Operator.IN], places[Operator.NOT_IN]])
    members, sizes = _sets(rng, values[sets], len(places[Operator.IN]), cardinality)

    counts = np.ones(len(operators), np.int64)
    counts[between] = 2
    counts[sets] = sizes
    ptr = offsets(counts)
    literals = np.empty(int(ptr[-1]), np.int64)
    literals[ptr[:-1]] = bounds
    literals[ptr[between] + 1] = ends
    columns = np.arange(MAX_SET)
    used = columns < sizes[:, None]
    literals[(ptr[sets][:, None] + columns)[used]] = members[used]
    return Literals(ptr, literals)


def _bounds(rng: np.random.Generator, operator: Operator, values: I64s, cardinality: int) -> I64s:
    """One literal for each value, uniform among the literals that make the operator hold."""
    match operator:
        case Operator.LT:
            return values + 1 + _below(rng, cardinality + 1 - values)
        case Operator.LE:
            return values + _below(rng, cardinality + 1 - values)
        case Operator.GT:
            return _below(rng, values)
        case Operator.GE:
            return 1 + _below(rng, values)
    return _shifted(values, 1 + _below(rng, np.full(len(values), cardinality - 1)), cardinality)


def _ranges(rng: np.random.Generator, values: I64s, cardinality: int, range_share: float) -> tuple[I64s, I64s]:
    """Both ends of ranges that contain the values. Widths are uniform around the mean, and all positions equally likely."""
    mean = max(1.0, range_share * cardinality)
    widths = np.rint(1 + rng.random(len(values)) * (2 * mean - 2)).astype(np.int64)
    lowest = np.maximum(1, values - widths + 1)
    highest = np.minimum(values, cardinality - widths + 1)
    starts = lowest + _below(rng, highest - lowest + 1)
    return starts, starts + widths - 1


def _sets(rng: np.random.Generator, values: I64s, inside: int, cardinality: int) -> tuple[I64s, I64s]:
    """Rows of distinct members in ascending order, and how many of each row are used.

    The first `inside` sets contain their value (IN), the others do not (NOT IN). All sets have 2 to MAX_SET members, or fewer if
    the cardinality is too small.
    """
    # `others` counts the members that are not the value itself.
    at_most = min(MAX_SET, cardinality - 1)
    others = rng.integers(min(2, at_most), at_most + 1, len(values))
    others[:inside] = rng.integers(1, min(MAX_SET, cardinality), inside)
    shifts = _distinct_shifts(rng, others, cardinality)
    members = _shifted(values[:, None], shifts, cardinality)
    members[np.arange(MAX_SET) >= others[:, None]] = cardinality + 1  # sorts behind all members
    sizes = others.copy()
    members[np.arange(inside), others[:inside]] = values[:inside]
    sizes[:inside] += 1
    members.sort(axis=1)
    return members, sizes


def _distinct_shifts(rng: np.random.Generator, counts: I64s, cardinality: int) -> I64s:
    """In row i, ``counts[i]`` distinct numbers drawn uniformly from 1 to `cardinality` - 1. The rest of the row is arbitrary.

    This is Floyd's algorithm for all rows at once. Step j draws from 1 to n - count + j + 1. A repeat is replaced by that upper
    end.
    """
    shifts = np.zeros((len(counts), MAX_SET), np.int64)
    for step in range(MAX_SET):
        upper = cardinality - counts + step
        drawn = 1 + _below(rng, upper)
        taken = (shifts[:, :step] == drawn[:, None]).any(axis=1)
        shifts[:, step] = np.where(taken, upper, drawn)
    return shifts


def _shifted(values: I64s, shifts: I64s, cardinality: int) -> I64s:
    """The values moved up cyclically within 1 to `cardinality`. Shifts from 1 to `cardinality` - 1 change every value."""
    moved: I64s = (values - 1 + shifts) % cardinality + 1
    return moved


def _below(rng: np.random.Generator, limits: I64s) -> I64s:
    """Uniform integers from 0 to below each limit. Limits are far below 2**53, so the product never rounds up to the limit."""
    return (rng.random(len(limits)) * limits).astype(np.int64)
