"""Aspects: what an event shows of a dimension, in segments that have wide dimensions; and tests, the words that ask for aspects.

    LEAST      the code of the value                   lower bounds ask for it
    MOST       the highest code minus this code        upper bounds
    SAME       the number of the key                   predicates that name one key: `x = 3`
    MEMBER     the number of the key                   predicates that name several keys: `x IN (3, 5)`

The number of a key comes from a table (see `key_numbers`), or its code, if codes tell apart all keys that predicates name.
If an event lacks a dimension, all its aspects there are 0.

A *test* is one word: one of the first 256 dimensions, an aspect, and a value of 22 bits. LEAST and MOST must not be below this
value. SAME and MEMBER must be equal to it. What an event shows has the same ten bits in front, so whole words are compared:

    dimension << 24 | aspect << 22 | value

A set is a MEMBER for each of its keys but the last, and a SAME for the last: one of them must hold. No two of them can hold, so
it is enough to count.

A test of a dimension behind these 256 is *far*: it has the low bits of the dimension's number. The word before it has all bits.
"""

from __future__ import annotations

import numpy as np

from tamis.engine.layout.scale import CODE_BITS, HIGHEST_CODE, SPACE_CODES
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64, U32, UP, U32s

LEAST, MOST, SAME, MEMBER = range(4)
_ASPECT_BITS = 2
ASPECTS = 1 << _ASPECT_BITS
NEAR = 256
"""Dimensions that fit in a test."""
UNKNOWN = 1
"""The number of all keys that no predicate names."""
Words = U32s
_AMONG_SPACE = 2
_BELOW_SPACE, _ABOVE_SPACE = 1, 3


def nothing_seen(dimensions: int) -> Words:
    """The aspects of an event without values."""
    number = np.arange(ASPECTS * dimensions, dtype=np.uint32)
    return number << np.uint32(CODE_BITS)


@inlined
def show(dimension: int, code: int, number: int, seen: Words) -> None:
    """Write the aspects of a value."""
    at = ASPECTS * dimension
    seen[UP(at)] = aspect_word(at, code)
    seen[UP(at + MOST)] = aspect_word(at + MOST, HIGHEST_CODE - code)
    seen[UP(at + SAME)] = aspect_word(at + SAME, number)
    seen[UP(at + MEMBER)] = aspect_word(at + MEMBER, number)


@inlined
def hide(dimension: int, seen: Words) -> None:
    """Write the aspects of a missing value."""
    at = ASPECTS * dimension
    seen[UP(at)] = aspect_word(at, 0)
    seen[UP(at + MOST)] = aspect_word(at + MOST, 0)
    seen[UP(at + SAME)] = aspect_word(at + SAME, 0)
    seen[UP(at + MEMBER)] = aspect_word(at + MEMBER, 0)


@inlined
def aspect_word(aspect: int, value: int) -> np.uint32:
    """A test, or what an event shows; `aspect` is ASPECTS * dimension + aspect."""
    return U32((U32(aspect) << U32(CODE_BITS)) | U32(value))


@inlined
def code_of_space(space: int) -> int:
    """The code of a space, in a dimension that is not wide. The values of tests for ranges lie between these codes, so no
    bound is tied."""
    return SPACE_CODES * space + _AMONG_SPACE


@inlined
def tests_of_spaces(first: int, last: int, top: int) -> tuple[int, int, int, int]:
    """Aspect and value of the two tests for a range of spaces; the second value is 0 if one test is enough."""
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
    """Aspect and value of the two tests for an interval of codes, likewise."""
    if high == HIGHEST_CODE:
        return LEAST, max(low, 1), 0, 0
    if low == 0:
        return MOST, HIGHEST_CODE - high, 0, 0
    return LEAST, low, MOST, HIGHEST_CODE - high


@inlined
def never_named(test: np.uint32) -> np.uint32:
    """A MEMBER of the dimension of this test that no event shows: it fills up a set."""
    return aspect_word(ASPECTS * I64(test_dimension(test)) + MEMBER, HIGHEST_CODE)


@inlined
def aspect_of(test: np.uint32) -> np.uint32:
    """ASPECTS * dimension + aspect of a test."""
    return test >> U32(CODE_BITS)


@inlined
def test_dimension(test: np.uint32) -> np.uint32:
    """The dimension of a test that is not far."""
    return test >> U32(CODE_BITS + _ASPECT_BITS)


@inlined
def is_present(shown: np.uint32) -> bool:
    """Whether an event has the dimension of this aspect."""
    return shown & U32((1 << CODE_BITS) - 1) != U32(0)


@inlined
def is_member(test: np.uint32) -> bool:
    """Whether another test for a key of the same set follows."""
    return aspect_of(test) & U32(1) != U32(0)


@inlined
def is_bound(test: np.uint32) -> bool:
    """Whether a test asks for LEAST or MOST."""
    return aspect_of(test) & U32(SAME) == U32(0)
