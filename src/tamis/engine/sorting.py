"""Sorting inside kernels that allocate nothing."""

from __future__ import annotations

from typing import Any

from tamis.encoding.kernel import inlined
from tamis.encoding.numbers import U32
from tamis.engine.records import ROW


@inlined
def sort_unique(array: Any, begin: int, end: int) -> int:
    """Sort a part of an array in place and drop what is repeated; returns how many remain. Shell sort: parts are short."""
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
    kept = begin
    for i in range(begin, end):
        if i == begin or array[i] != array[kept - 1]:
            array[kept] = array[i]
            kept += 1
    return kept - begin


@inlined
def sort_rows(words: Any, begin: int, end: int) -> int:
    """The same for rows, some with DOUBT: what is found without doubt is in no doubt."""
    for i in range(begin, end):
        words[i] = (words[i] << U32(1)) | (words[i] >> U32(31))
    end = begin + sort_unique(words, begin, end)
    kept = begin
    for i in range(begin, end):
        word = (words[i] >> U32(1)) | (words[i] << U32(31))
        if kept == begin or (word ^ words[kept - 1]) & U32(ROW):
            words[kept] = word
            kept += 1
    return kept - begin
