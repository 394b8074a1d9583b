"""A hash table from pairs of 64-bit numbers to numbers, which kernels read and change.

    first     .    7    .    7    3    .        open addressing, at most half full
    second    .    10   .    12   5    .
    value     -1   0    -1   1    2    -1       FREE where there is no pair

Invariant: no place is free between the place that the hash of a pair gives and the place of the pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.hashing import spread_pair
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, UP, I64s

FREE = -1
_LOWEST_CAPACITY = 16


class PairArrays(NamedTuple):
    """The table as kernels take it: values are not negative; `size` has one element, the number of pairs."""

    first: I64s
    second: I64s
    value: I64s
    size: I64s


class PairMap:
    """The table. Kernels may enter as many pairs as were reserved before."""

    def __init__(self) -> None:
        self._arrays = _empty(_LOWEST_CAPACITY)

    def __len__(self) -> int:
        return int(self._arrays.size[0])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    def view(self) -> PairArrays:
        return self._arrays

    def reserve(self, more: int) -> None:
        """Make room for `more` more pairs."""
        capacity = len(self._arrays.value)
        while capacity < 2 * (len(self) + more):
            capacity *= 2
        if capacity > len(self._arrays.value):
            self._move(capacity)

    def shrink(self) -> None:
        """Free room that is no longer needed."""
        capacity = _LOWEST_CAPACITY
        while capacity < 2 * len(self):
            capacity *= 2
        if capacity < len(self._arrays.value):
            self._move(capacity)

    def get(self, first: int, second: int) -> int:
        """The value of a pair; FREE if it is not there."""
        return int(_get(self._arrays, I64(first), I64(second)))

    def _move(self, capacity: int) -> None:
        moved = _empty(capacity)
        _enter_all(self._arrays, moved)
        self._arrays = moved


def _empty(capacity: int) -> PairArrays:
    first, second = np.zeros((2, capacity), np.int64)
    return PairArrays(first, second, np.full(capacity, FREE, np.int64), np.zeros(1, np.int64))


@inlined
def mixed_of(first: int, second: int) -> np.uint64:
    """The hash of a pair: 64 bits."""
    return spread_pair(I64(first), I64(second))


@inlined
def home_of(mixed: np.uint64, capacity: int) -> int:
    """Where a pair of this hash belongs."""
    return I64(mixed & U64(capacity - 1))


@inlined
def pair_place(pairs: PairArrays, first: int, second: int) -> int:
    """Where a pair is, or, if the value there is FREE, where it would go."""
    return pair_place_from(pairs, first, second, home_of(mixed_of(first, second), len(pairs.value)))


@inlined
def pair_place_from(pairs: PairArrays, first: int, second: int, at: int) -> int:
    """The same, starting at the home of the pair: for callers that have already fetched it from memory."""
    while pairs.value[UP(at)] != FREE and not (pairs.first[UP(at)] == first and pairs.second[UP(at)] == second):
        at = (at + 1) & (len(pairs.value) - 1)
    return at


@inlined
def value_of(pairs: PairArrays, first: int, second: int) -> int:
    """The value of a pair; FREE if it is not there."""
    return pairs.value[UP(pair_place(pairs, first, second))]


@inlined
def enter(pairs: PairArrays, at: int, first: int, second: int, value: int) -> None:
    """Put a pair where `pair_place` said it would go."""
    pairs.first[at], pairs.second[at], pairs.value[at] = first, second, value
    pairs.size[0] += 1


@inlined
def vacate(pairs: PairArrays, at: int) -> None:
    """Remove the pair at a place. Pairs behind it move closer to their home."""
    firsts, seconds, values = pairs.first, pairs.second, pairs.value
    mask = len(values) - 1
    hole, at = at, (at + 1) & mask
    while values[at] != FREE:
        home = home_of(mixed_of(firsts[at], seconds[at]), len(values))
        if (at - home) & mask >= (at - hole) & mask:
            firsts[hole], seconds[hole], values[hole] = firsts[at], seconds[at], values[at]
            hole = at
        at = (at + 1) & mask
    values[hole] = FREE
    pairs.size[0] -= 1


@lean_kernel
def _get(pairs: PairArrays, first: int, second: int) -> int:
    return value_of(pairs, first, second)


@lean_kernel
def _enter_all(old: PairArrays, new: PairArrays) -> None:
    for i in range(len(old.value)):
        if old.value[i] != FREE:
            at = pair_place(new, old.first[i], old.second[i])
            enter(new, at, old.first[i], old.second[i], old.value[i])
