"""Values to order-preserving 64-bit keys.

*Numbers.* int64 and float64 together have more values than 64 bits can distinguish. So most numbers have an exact code, and one
range of them has labels of the dimension:

    |x| < 2**53 and |x| >= 2**63   the bits of the double, made to ascend as signed integers: exact for all doubles, and
                                   for all integers, since those of the first stretch are doubles
    2**53 <= |x| < 2**63           `Labels` of the constants that predicates name there, placed in the stretch of codes that
                                   the doubles of this range leave free: an integer that is no double (2**53 + 1, most
                                   snowflake ids) has its own key or falls in the gap between its neighbours

*Timestamps* are microseconds; *booleans* 0 and 1; *strings* get labels.
"""

from __future__ import annotations

import struct
from enum import Enum

import numpy as np

from tamis.kernels.kernel import brief_kernel, inlined
from tamis.kernels.numbers import F64s, I64s

KEY_MIN = -(2**63)
"""The start of predicates that are open below. No value has this key."""
KEY_MAX = 2**63 - 1

INT_EXACT = 2**53
"""Integers below this in magnitude are doubles."""
INT_BEYOND = 2**63
"""From this magnitude on, every number of the language is a double."""

_SIGN = 0x7FFF_FFFF_FFFF_FFFF
_INFINITY = 0x7FF0_0000_0000_0000
"""The bits of infinity. Those of NaN, without the sign, are above."""
_DOUBLE = struct.Struct("<d")
_INT64 = struct.Struct("<q")


class KeyKind(Enum):
    """What the keys of a dimension are."""

    NUMBER = "number"
    """The codes of doubles; labels where integers are large."""
    INTEGER = "integer"
    """The values themselves: booleans, timestamps, presence."""
    NAME = "name"
    """Labels of strings, or numbers of patterns."""


def double_code(value: float) -> int:
    """The bits of a double as a signed integer that ascends with it; -0.0 is 0.0."""
    bits: int = _INT64.unpack(_DOUBLE.pack(value + 0.0))[0]
    return bits if bits >= 0 else bits ^ _SIGN


def double_codes(values: F64s) -> I64s:
    """`double_code` of every element."""
    bits = (values + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, bits ^ _SIGN)


def double_value(code: int) -> float:
    """The double that has a code. The codes below that of -inf and above that of inf give NaN."""
    value: float = _DOUBLE.unpack(_INT64.pack(bits_of_code(code)))[0]
    return value


def double_values(codes: I64s) -> F64s:
    """`double_value` of every element."""
    return np.where(codes >= 0, codes, codes ^ _SIGN).view(np.float64)


# The codes of the doubles from 2**53 up to, and without, 2**63, and of their negatives: the regions of the labels of
# large integers. Their ends are even and never labels.
LARGE_FIRST = double_code(float(INT_EXACT))
LARGE_LAST = double_code(float(INT_BEYOND))
SMALL_FIRST = double_code(-float(INT_BEYOND)) + 1
SMALL_LAST = double_code(-float(INT_EXACT)) + 1


def is_labelled(value: float) -> bool:
    """Whether a number lies where keys are labels."""
    return INT_EXACT <= abs(value) < INT_BEYOND


@inlined
def is_small(bits: int) -> bool:
    """Whether the double with these bits is below 2**53 in magnitude, and not NaN."""
    return (bits & _SIGN) < LARGE_FIRST


@inlined
def is_nan(bits: int) -> bool:
    """Whether the double with these bits is NaN."""
    return (bits & _SIGN) > _INFINITY


@inlined
def code_of_bits(bits: int) -> int:
    """The `double_code` of the double with these bits."""
    if bits >= 0:
        return bits
    return bits ^ _SIGN if bits != KEY_MIN else 0  # -0.0 is 0.0


@inlined
def bits_of_code(code: int) -> int:
    """The bits of the double that has a `double_code`."""
    return code if code >= 0 else code ^ _SIGN


@brief_kernel
def ascend(bits: I64s) -> bool:
    """Make `double_code`s of the bits of doubles, in place; whether all are below 2**53 in magnitude, and none NaN.

    This is `double_codes` for one event, for which each operation of NumPy would cost more than this whole kernel.
    """
    small = True
    for i in range(len(bits)):
        small &= is_small(bits[i])
        bits[i] = code_of_bits(bits[i])
    return small
