"""Elements: the parts of a value, one for each level of a tree (section 4.5).

    value           elements
    byte -5         -  7  11                    sign, 3 bits, 4 bits of the complement
    int32           -  3 bits, 7 times 4 bits         9 elements
    int64           -  3 bits, 15 times 4 bits        17 elements
    float64         -  exponent in 3, 4, 4 bits, mantissa in 13 times 4 bits, of its ascending code
    string 'ab'     ^  a  b                     ^ begins all strings, so the empty string has an element too

Values are ordered like their sequences of elements; `-` is 0 and `+` is 1.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import numpy as np

from tamis.encoding.dimensions.keys import double_code
from tamis.errors import shortened
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64, I32s

INT64_ELEMENTS = 17
_KEY_BITS, _BITS = 64, 4
_DIGIT, _FIRST_DIGIT = (1 << _BITS) - 1, (1 << (_BITS - 1)) - 1
"""The bits of an element, and of the first one beside the sign."""


class Kind(Enum):
    """The kind of a tree's values."""

    BYTE = 8
    INT32 = 32
    INT64 = 64
    FLOAT64 = -64
    STRING = 0

    @property
    def bits(self) -> int:
        """How many bits a value has; 0 for strings."""
        return abs(self.value)

    @property
    def domain(self) -> tuple[Any, Any]:
        """The lowest and the highest value; strings have no highest, which is None."""
        if self is Kind.STRING:
            return "", None
        if self is Kind.FLOAT64:
            return -math.inf, math.inf
        return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1

    def wrong_type(self, value: Any) -> str:
        """What is wrong with a value of another type, and what would be right; an empty string if the type is right."""
        if self is Kind.STRING:
            fits, right = isinstance(value, str), "strings"
        elif self is Kind.FLOAT64:
            fits, right = _is_float(value), "floats that are numbers"
        else:
            fits = isinstance(value, int | np.integer) and not isinstance(value, bool)
            right = "whole numbers from {} to {}".format(*self.domain)
        return "" if fits else f"{shortened(value)} is not a value of a tree of kind {self.name}, which holds {right}"


def _is_float(value: Any) -> bool:
    """Whether a value is a number that a double can represent, at least approximately."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return not math.isnan(value)
    except OverflowError:
        return False


def elements_of(value: Any, kind: Kind) -> I32s:
    """The elements of a value.

    >>> elements_of(-5, Kind.BYTE).tolist()
    [0, 7, 11]
    """
    if kind is Kind.STRING:
        return np.array([0, *map(ord, value)], np.int32)
    number = code_of(value, kind)
    rest = [number >> shift & _DIGIT for shift in range(kind.bits - 2 * _BITS, -_BITS, -_BITS)]
    return np.array([number >= 0, number >> (kind.bits - _BITS) & _FIRST_DIGIT, *rest], np.int32)


def code_of(value: Any, kind: Kind) -> int:
    """A number that keeps the order of values; neighbouring values have neighbouring numbers. Not for strings."""
    return double_code(value) if kind is Kind.FLOAT64 else int(value)


@inlined
def element_of(key: int, at: int) -> int:
    """An element of an int64."""
    if at == 0:
        return 1 if key >= 0 else 0
    return int(I64(key) >> I64(_KEY_BITS - _BITS * at)) & (_FIRST_DIGIT if at == 1 else _DIGIT)


@inlined
def elements_up_to(key: int, at: int) -> int:
    """The elements of an int64 up to a place, as one number: of keys with the same elements before, the order of the next."""
    return int(I64(key) >> I64(_KEY_BITS - 1 if at == 0 else _KEY_BITS - _BITS * at))
