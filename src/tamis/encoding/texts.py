"""Columns of strings: folding, reversing and locating them among constants without a Python loop per value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.kernel import inlined, kernel


def lowered(texts: pa.Array) -> pa.Array:
    """``str.lower()`` of every string. Arrow's own differs from Python's outside ASCII, so those are done in Python."""
    ascii_only = pc.string_is_ascii(texts)
    if pc.all(ascii_only).as_py() is not False:
        return pc.ascii_lower(texts)
    folded = [text.lower() for text in texts.filter(pc.invert(ascii_only)).to_pylist()]
    return pc.replace_with_mask(pc.ascii_lower(texts), pc.invert(ascii_only), pa.array(folded, texts.type))


def reversed_texts(texts: pa.Array) -> pa.Array:
    """Every string read backwards, by code point."""
    return pc.utf8_reverse(texts)


def buffers(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets and UTF-8 bytes of a column of strings without nulls."""
    large = texts.cast(pa.large_string())
    _, offsets, data = large.buffers()
    if offsets is None or len(large) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    ends = np.frombuffer(offsets, np.int64)[large.offset : large.offset + len(large) + 1]
    return ends, np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)


def locate(
    texts: pa.Array, constants: pa.Array, labels: npt.NDArray[np.int64], empty_key: int
) -> npt.NDArray[np.int64]:
    """The key of every string among sorted constants: a label, or that of the gap it falls in (see `labels`)."""
    keys = np.empty(len(texts), np.int64)
    if len(labels) == 0:
        keys[:] = empty_key
        return keys
    _locate(*buffers(texts), *buffers(constants), labels, keys)
    return keys


@kernel
def _locate(offsets: Any, data: Any, constant_offsets: Any, constant_data: Any, labels: Any, keys: Any) -> None:
    for i in range(len(offsets) - 1):
        lo, hi = 0, len(labels)
        found = False
        while lo < hi:
            middle = (lo + hi) // 2
            order = _compare(
                constant_data,
                constant_offsets[middle],
                constant_offsets[middle + 1],
                data,
                offsets[i],
                offsets[i + 1],
            )
            if order == 0:
                keys[i] = labels[middle]
                found = True
                break
            if order < 0:
                lo = middle + 1
            else:
                hi = middle
        if not found:
            keys[i] = labels[lo] - 1 if lo < len(labels) else labels[-1] + 1


@inlined
def _compare(left: Any, start: int, end: int, right: Any, other_start: int, other_end: int) -> int:
    """Order of two byte strings. UTF-8 bytes ascend as code points do."""
    for i in range(min(end - start, other_end - other_start)):
        difference = np.int64(left[start + i]) - np.int64(right[other_start + i])
        if difference != 0:
            return -1 if difference < 0 else 1
    return (end - start) - (other_end - other_start)
