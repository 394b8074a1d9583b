"""Several numbers in one word, and sets of small numbers as bits.

    word of two halves    first << 32 | second              64 bits; the second number is not negative
    number with a flag    number << 1 | flag                the flag is 0 or 1
    words of a set        bit n & 63 of word n >> 6         64 bits each
    bytes of a set        bit n & 7 of byte n >> 3          as Arrow and NumPy (``bitorder="little"``) pack them

Words with parts of other sizes are declared where they are drawn.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import U64, UP, I64s, U8s, U64s

_Word = TypeVar("_Word", int, I64s)

_HALF_BITS = 32
_HALF = (1 << _HALF_BITS) - 1
_WORD_BITS, _BYTE_BITS = 6, 3
WORD, BYTE = 1 << _WORD_BITS, 1 << _BYTE_BITS
"""Numbers of a set in one word and in one byte."""
_EACH_BYTE, _HIGH_BITS = 0x0101010101010101, 0x8080808080808080


@inlined
def halves(first: _Word, second: _Word) -> _Word:
    """A word of two numbers of 32 bits. The second number is not negative."""
    return (first << _HALF_BITS) | second


@inlined
def first_half(word: _Word) -> _Word:
    return word >> _HALF_BITS


@inlined
def second_half(word: _Word) -> _Word:
    return word & _HALF


@inlined
def with_flag(number: int, flag: int) -> int:
    return (number << 1) | flag


@inlined
def number_in(word: int) -> int:
    """The number of a word with a flag."""
    return word >> 1


@inlined
def flag_in(word: int) -> int:
    """The flag of a word with a flag."""
    return word & 1


@inlined
def words_for(numbers: _Word) -> _Word:
    """How many words a set of the numbers below this one has."""
    return (numbers + WORD - 1) // WORD


@inlined
def word_of(number: int | np.uint64) -> np.uint64:
    """The word of a set that has the bit of a number."""
    return U64(number) >> U64(_WORD_BITS)


@inlined
def bit_of(number: int | np.uint64) -> np.uint64:
    """The bit of a number in its word."""
    return U64(1) << (U64(number) & U64(WORD - 1))


@inlined
def has_bit(words: U64s, number: int | np.uint64) -> bool:
    """Whether a number is in a set."""
    return (words[UP(word_of(number))] >> (U64(number) & U64(WORD - 1))) & U64(1) != U64(0)


@inlined
def set_bit(words: U64s, number: int | np.uint64) -> None:
    """Add a number to a set."""
    words[UP(word_of(number))] |= bit_of(number)


@inlined
def clear_bit(words: U64s, number: int | np.uint64) -> None:
    """Remove a number from a set."""
    words[UP(word_of(number))] &= ~bit_of(number)


@inlined
def has_bit_in_bytes(packed: U8s, number: int) -> bool:
    """Whether a number is in a set of bytes."""
    place = U64(number) & U64(BYTE - 1)
    return (packed[UP(U64(number) >> U64(_BYTE_BITS))] >> place) & U64(1) != U64(0)


@inlined
def in_each_byte(byte: Any) -> np.uint64:
    """A word that has a byte eight times."""
    return U64(byte) * U64(_EACH_BYTE)


@inlined
def has_zero_byte(word: np.uint64) -> bool:
    """Whether a byte of a word is 0: such a byte borrows from its highest bit."""
    return (word - U64(_EACH_BYTE)) & ~word & U64(_HIGH_BITS) != U64(0)
