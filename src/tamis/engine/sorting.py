"""Rows that were found several times, each once."""

from __future__ import annotations

from typing import Any

from tamis.encoding.kernel import inlined
from tamis.encoding.numbers import U32
from tamis.encoding.sorting import sort_unique
from tamis.engine.records import ROW


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
