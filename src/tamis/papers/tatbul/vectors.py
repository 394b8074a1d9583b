"""Sets of profiles as bit vectors, or as lists where these take less memory.

    vector      0          1              2
    counts      3          5000           1
    begin       0          ~0             3            a list begins here in `profiles`, or ~begin in `words`
    profiles    4 70 9                    8
    words                  0b11.. ...                  `width` words for each vector of bits

A vector is a list if it has at most one profile for 32 bits. The paper has plain bit vectors, and leaves compression to future
work.

Invariant: no profile is twice in a list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.bits import WORD, bit_of, set_bit, word_of, words_for
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import UP, I32s, I64s, U64s

Array = npt.NDArray[Any]

_PROFILES_PER_WORD = 2
"""Profiles of a list that take as much memory as a word of bits."""


class Lists(NamedTuple):
    """Lists of profiles: those of list i are ``data[start[i]] .. data[start[i + 1]]``."""

    start: Array
    data: I32s


class Vectors(NamedTuple):
    """Vectors by number, as kernels take them."""

    width: int
    """Words of a vector of bits."""
    counts: I64s
    begin: I64s
    profiles: I32s
    words: U64s

    @property
    def nbytes(self) -> int:
        return self.counts.nbytes + self.begin.nbytes + self.profiles.nbytes + self.words.nbytes


def room_for(profiles: int, counts: Array) -> Vectors:
    """Empty vectors that will have these counts of profiles; `profiles` is how many profiles there are."""
    width = words_for(profiles)
    as_bits = counts > _PROFILES_PER_WORD * width
    listed = np.where(as_bits, 0, counts)
    begin = np.append(0, np.cumsum(listed))
    begin[:-1][as_bits] = ~(np.arange(as_bits.sum()) * width)
    words = np.zeros(int(as_bits.sum()) * width, np.uint64)
    return Vectors(
        width, counts.astype(np.int64), begin[:-1].astype(np.int64), np.empty(int(begin[-1]), np.int32), words
    )


def vectors(lists: Lists, profiles: int) -> Vectors:
    """The vector of each list; `profiles` is how many profiles there are."""
    made = room_for(profiles, np.diff(lists.start))
    enter(made, 0, lists.start, lists.data)
    return made


def distinct(lists: Lists, profiles: int) -> Lists:
    """The same lists, with each profile once."""
    start, data = np.zeros(len(lists.start), np.int64), np.empty(len(lists.data), np.int32)
    count = _distinct(lists.start, lists.data, np.full(profiles, -1, np.int64), start, data)
    return Lists(start, data[:count].copy())


def members(made: Vectors, number: int) -> Array:
    """The profiles of a vector, ascending."""
    begin = int(made.begin[number])
    if begin >= 0:
        return np.sort(made.profiles[begin : begin + int(made.counts[number])])
    words = made.words[~begin : ~begin + made.width]
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))


@lean_kernel
def enter(made: Vectors, first: int, start: I64s, data: I32s) -> None:
    """Write lists into the vectors from number `first` on."""
    for i in range(len(start) - 1):
        begin = made.begin[first + i]
        for k in range(start[i], start[i + 1]):
            if begin >= 0:
                made.profiles[begin + k - start[i]] = data[k]
            else:
                set_bit(made.words, WORD * ~begin + data[k])


@lean_kernel
def unite(made: Vectors, number: int, bits: U64s) -> None:
    """Set the bits of the profiles of a vector."""
    begin = made.begin[number]
    if begin >= 0:
        for k in range(begin, begin + made.counts[number]):
            set_bit(bits, made.profiles[k])
    else:
        for w in range(made.width):
            bits[w] |= made.words[~begin + w]


@lean_kernel
def keep(constrained: Vectors, number: int, satisfied: U64s, rest: U64s) -> None:
    """Clear the bits of constrained profiles that are not satisfied."""
    begin = constrained.begin[number]
    if begin >= 0:
        for k in range(begin, begin + constrained.counts[number]):
            w, bit = UP(word_of(constrained.profiles[k])), bit_of(constrained.profiles[k])
            rest[w] &= satisfied[w] | ~bit
    else:
        for w in range(constrained.width):
            rest[w] &= satisfied[w] | ~constrained.words[~begin + w]


@lean_kernel
def _distinct(start: I64s, data: I32s, seen: I64s, out_start: I64s, out: I32s) -> int:
    """Write each profile of a list once; `seen` is -1 for each profile. Returns how many were written."""
    count = 0
    for i in range(len(start) - 1):
        for k in range(start[i], start[i + 1]):
            if seen[data[k]] != i:
                seen[data[k]] = i
                out[count] = data[k]
                count += 1
        out_start[i + 1] = count
    return count
