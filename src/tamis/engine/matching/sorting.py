"""Rows that were found several times, each once."""

from __future__ import annotations

from typing import Any

from tamis.engine.layout.records import ROW
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import U32
from tamis.kernels.sorting import sort_unique


@inlined
def sort_rows(words: Any, begin: int, end: int) -> int:
    """`sort_unique` for rows, some with DOUBT: what is found without doubt is in no doubt."""
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
