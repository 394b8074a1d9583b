"""Aspects: what an event shows of a dimension, in segments that have wide ones; and the words of records that ask for it.

    LEAST      its code                         asked for by lower bounds
    MOST       the highest code minus its       asked for by upper bounds
    SAME       the number of its key            asked for where a key is named: `x = 3`
    MEMBER     the same                         asked for where several are named: `x IN (3, 5)`

The number of a key is its number on the roll, see `roll`, or its code where codes tell apart all keys that are named. All aspects
of an attribute that is missing are 0.

A *test* is one word: a dimension of the first 256, an aspect, and 22 bits that the aspect must not be below or, for SAME and
MEMBER, be equal to. An aspect has the same ten bits in front, so that test and aspect are compared as they are:

    dimension << 24 | aspect << 22 | value

A set is a MEMBER for each of its keys but the last, which is a SAME: one of them must hold. Two of them cannot, so it is
enough to count those that do.

Of other dimensions, those in front are the last of these bits, and a word with all of them precedes the test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.engine.layout.scale import CODE_BITS, HIGHEST_CODE, SPACE_CODES
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import U32, UP

LEAST, MOST, SAME, MEMBER = range(4)
ASPECTS = 4
NEAR = 256
"""So many dimensions fit in a test."""
UNKNOWN = 1
"""The number of keys that no predicate names."""
_AMONG_SPACE = 2
_BELOW_SPACE, _ABOVE_SPACE = 1, 3


def nothing_seen(dimensions: int) -> npt.NDArray[np.uint32]:
    """The aspects of an event without values."""
    number = np.arange(ASPECTS * dimensions, dtype=np.uint32)
    return number << np.uint32(CODE_BITS)


@inlined
def show(dimension: int, code: int, number: int, seen: Any) -> None:
    """Let an event have a value."""
    at = ASPECTS * dimension
    seen[UP(at)] = word_of(at, code)
    seen[UP(at + MOST)] = word_of(at + MOST, HIGHEST_CODE - code)
    seen[UP(at + SAME)] = word_of(at + SAME, number)
    seen[UP(at + MEMBER)] = word_of(at + MEMBER, number)


@inlined
def hide(dimension: int, seen: Any) -> None:
    """Let it have none again."""
    at = ASPECTS * dimension
    seen[UP(at)] = word_of(at, 0)
    seen[UP(at + MOST)] = word_of(at + MOST, 0)
    seen[UP(at + SAME)] = word_of(at + SAME, 0)
    seen[UP(at + MEMBER)] = word_of(at + MEMBER, 0)


@inlined
def word_of(aspect: int, value: int) -> Any:
    """A test, or what is shown; `aspect` is counted through all dimensions."""
    return U32((U32(aspect) << U32(CODE_BITS)) | U32(value))


@inlined
def code_of_space(space: int) -> int:
    """The code of a dimension that is not wide: tests for ranges lie beside all of them, and are never tied."""
    return SPACE_CODES * space + _AMONG_SPACE


@inlined
def tests_of_spaces(first: int, last: int, top: int) -> tuple[int, int, int, int]:
    """The aspect and value of each of the tests for a range of spaces; the second value is 0 where one is enough."""
    if first > top:
        return SAME, 0, 0, 0
    if first == last:
        return SAME, code_of_space(first), 0, 0
    least, most = SPACE_CODES * first + _BELOW_SPACE, HIGHEST_CODE - (SPACE_CODES * last + _ABOVE_SPACE)
    if last == top:
        return LEAST, least, 0, 0
    if first == 0:
        return MOST, most, 0, 0
    return LEAST, least, MOST, most


@inlined
def tests_of_codes(low: int, high: int) -> tuple[int, int, int, int]:
    """The same for an interval of codes."""
    if high == HIGHEST_CODE:
        return LEAST, max(low, 1), 0, 0
    if low == 0:
        return MOST, HIGHEST_CODE - high, 0, 0
    return LEAST, low, MOST, HIGHEST_CODE - high


@inlined
def never_named(test: Any) -> Any:
    """A member for the set that begins with a test, or for the set of its key, that no event has."""
    return U32((test >> U32(CODE_BITS + 2) << U32(CODE_BITS + 2)) | U32(word_of(MEMBER, HIGHEST_CODE)))


@inlined
def is_member(test: Any) -> bool:
    """Whether another test for a key of the same set follows."""
    return (test >> U32(CODE_BITS)) & U32(1) != U32(0)


@inlined
def is_bound(test: Any) -> bool:
    return (test >> U32(CODE_BITS + 1)) & U32(1) == U32(0)
