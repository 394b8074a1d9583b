"""Hashes of numbers, for tables that kernels read. Some tables are saved in snapshots, so the formulas stay as they are.

The numbers are Any: callers give signed and unsigned integers of any size, and get 64 unsigned bits (see `numbers`).
"""

from __future__ import annotations

from typing import Any

from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import U64

SEED = U64(0x9E3779B97F4A7C15)
"""The fractional part of the golden ratio, times 2**64: the first state of a hash of several numbers (see `fold`), and a factor
that moves low bits up."""
_ODD, _OTHER_ODD = U64(0xD6E8FEB86659FD93), U64(0xA0761D6478BD642F)


@inlined
def spread(value: Any) -> Any:
    """64 bits of one number. The high bits depend on all bits of the number."""
    mixed = U64(value) * SEED
    return (mixed ^ (mixed >> U64(32))) * _ODD


@inlined
def spread_pair(first: Any, second: Any) -> Any:
    """64 bits of two numbers. The low bits depend on all bits of both."""
    mixed = U64(second) ^ (U64(first) * _ODD)
    # Mixed before the product too: keys of small numbers differ only in high bits, and a product does not move these down.
    mixed = (mixed ^ (mixed >> U64(32))) * SEED
    return mixed ^ (mixed >> U64(32))


@inlined
def fold(state: Any, value: Any) -> Any:
    """A hash of several numbers, one after another: one round of the finaliser of splitmix64."""
    mixed = (state ^ value) * U64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> U64(27))) * U64(0x94D049BB133111EB)
    return mixed ^ (mixed >> U64(31))


@inlined
def joined_ends(lo: Any, hi: Any) -> Any:
    """One number of the two ends of an interval, for one round of `fold`: each round waits for the round before.

    Products with odd numbers lose no bit, neither of the lowest key nor of the distance to the highest. Both keys times odd
    numbers would lose a bit where the keys are equal.
    """
    lowest = U64(lo)
    return lowest * _ODD + (U64(hi) - lowest) * _OTHER_ODD


@inlined
def share_of(mixed: Any, count: Any) -> Any:
    """One of `count` numbers, chosen by the high half of a hash."""
    return ((U64(mixed) >> U64(32)) * U64(count)) >> U64(32)
