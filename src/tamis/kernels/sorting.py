"""Sorting and searching inside kernels that allocate nothing.

Arrays to sort are Any: callers sort keys, rows and words, which are integers of different sizes.
"""

from __future__ import annotations

from typing import Any

from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64, UP, I32s, I64s


@inlined
def sort_part(array: Any, begin: int, end: int) -> None:
    """Sort a part of an array in place. Shell sort: most parts are short, but some have thousands of elements."""
    gap = (end - begin) // 2
    while gap > 0:
        for i in range(begin + gap, end):
            moving = array[i]
            j = i
            while j >= begin + gap and array[j - gap] > moving:
                array[j] = array[j - gap]
                j -= gap
            array[j] = moving
        gap //= 2


@inlined
def sort_unique(array: Any, begin: int, end: int) -> int:
    """Sort a part of an array in place and drop repeated elements; returns how many remain."""
    sort_part(array, begin, end)
    kept = begin
    for i in range(begin, end):
        if i == begin or array[i] != array[kept - 1]:
            array[kept] = array[i]
            kept += 1
    return kept - begin


@inlined
def middle_of(begin: int, end: int) -> int:
    """The place in the middle, for a binary search. A shift: dividing numbers that could be negative takes more steps."""
    return (begin + end) >> 1


@inlined
def first_at_least(keys: I64s | I32s, begin: int, end: int, least: int) -> int:
    """The first place of ascending keys, from `begin` to `end`, whose key is at least `least`."""
    while begin < end:
        middle = middle_of(begin, end)
        if keys[UP(middle)] < least:
            begin = middle + 1
        else:
            end = middle
    return begin


@inlined
def first_above(keys: I32s | I64s, begin: int, end: int, key: int) -> int:
    """The first place in ascending keys whose key is above `key`.

    The search has no branch that depends on a key, so the processor overlaps searches that follow each other.
    """
    left = end - begin
    while left > 0:
        half = (left + 1) // 2
        begin += half * I64(keys[UP(begin + half - 1)] <= key)
        left -= half
    return begin


@inlined
def first_not_below(order: I32s, values: I64s, begin: int, end: int, least: int) -> int:
    """The first place of an order, from `begin` to `end`, whose value is at least `least`. The values ascend in this order."""
    while begin < end:
        middle = middle_of(begin, end)
        if values[UP(order[UP(middle)])] < least:
            begin = middle + 1
        else:
            end = middle
    return begin
