"""Sorting inside kernels that allocate nothing."""

from __future__ import annotations

from typing import Any

from tamis.kernels.kernel import inlined


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
