"""Columns of strings: folding, reversing and locating them among constants without a Python loop per value."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.kernels.kernel import kernel
from tamis.kernels.numbers import I64s, U8s

Bytes = U8s


class Texts:
    """A column of strings without nulls. Its other forms (lower case, reversed) are made once and shared.

    Code that only needs the length, a list or the column itself may take it in place of the column.
    """

    def __init__(self, strings: pa.Array) -> None:
        large = strings.cast(pa.large_string())
        _, offsets, data = large.buffers()
        ends, letters = np.zeros(1, np.int64), np.zeros(0, np.uint8)
        if len(large):
            ends = np.frombuffer(offsets, np.int64)[large.offset : large.offset + len(large) + 1]
            letters = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else letters
            # Only the used part: pyarrow 26 lowers a column wrongly if its first string does not begin at the first byte.
            ends = ends - ends[0] if ends[0] != 0 else ends
        ends.flags.writeable = letters.flags.writeable = False  # Kernels are compiled for read-only arrays alone.
        self.buffers: tuple[I64s, Bytes] = (ends, letters)
        """Offsets from 0 on, and UTF-8."""
        self.strings = pa.Array.from_buffers(
            pa.large_string(), len(large), [None, pa.py_buffer(ends), pa.py_buffer(letters)]
        )

    def __len__(self) -> int:
        return len(self.strings)

    def to_pylist(self) -> list[str]:
        strings: list[str] = self.strings.to_pylist()
        return strings

    @functools.cached_property
    def is_ascii(self) -> bool:
        return int(self.buffers[1].max(initial=0)) < 128

    def check(self) -> None:
        """Read all strings.

        Raises
        ------
        UnicodeDecodeError
            When one of them is not UTF-8.
        """
        if not self.is_ascii:
            try:
                self.strings.validate(full=True)
            except pa.ArrowInvalid:
                self.strings.to_pylist()

    @functools.cached_property
    def lowered(self) -> Texts:
        """``str.lower()`` of every string."""
        return self._changed(pc.ascii_lower(self.strings), str.lower)

    @functools.cached_property
    def uppered(self) -> Texts:
        """``str.upper()`` of every string."""
        return self._changed(pc.ascii_upper(self.strings), str.upper)

    def _changed(self, ascii_changed: pa.Array, change: Callable[[str], str]) -> Texts:
        """Every string in a case. Outside ASCII, Arrow's case differs from Python's, so these strings are changed in Python."""
        if self.is_ascii:
            return Texts(ascii_changed)
        other = pc.invert(pc.string_is_ascii(self.strings))
        changed = [change(text) for text in self.strings.filter(other).to_pylist()]
        return Texts(pc.replace_with_mask(ascii_changed, other, pa.array(changed, pa.large_string())))

    @functools.cached_property
    def reversed(self) -> Texts:
        """Every string read backwards, by code point. ASCII is reversed by bytes, in a twentieth of the time."""
        backwards = pc.binary_reverse(self.strings.cast(pa.large_binary()))
        if self.is_ascii:
            return Texts(backwards.view(pa.large_string()))
        other = pc.invert(pc.string_is_ascii(self.strings))
        turned = pc.utf8_reverse(self.strings.filter(other)).cast(pa.large_binary())
        return Texts(pc.replace_with_mask(backwards, other, turned).view(pa.large_string()))


def texts_of(strings: pa.Array | Texts) -> Texts:
    """A column as `Texts`."""
    return strings if isinstance(strings, Texts) else Texts(strings)


def lowered(strings: pa.Array | Texts) -> Texts:
    """``str.lower()`` of every string."""
    return texts_of(strings).lowered


def uppered(strings: pa.Array | Texts) -> Texts:
    """``str.upper()`` of every string."""
    return texts_of(strings).uppered


def reversed_texts(strings: pa.Array | Texts) -> Texts:
    """Every string read backwards, by code point."""
    return texts_of(strings).reversed


def locate(strings: pa.Array | Texts, constants: pa.Array | Texts, labels: I64s, empty_key: int) -> I64s:
    """The key of every string among sorted constants: its label, or the key of its gap (see `labels`)."""
    keys = np.empty(len(strings), np.int64)
    if len(labels) == 0:
        keys[:] = empty_key
        return keys
    _locate(*texts_of(strings).buffers, *texts_of(constants).buffers, labels, keys)
    return keys


@kernel
def _locate(offsets: I64s, data: Bytes, constant_offsets: I64s, constant_data: Bytes, labels: I64s, keys: I64s) -> None:
    """Binary search by bytes: UTF-8 ascends as code points do.

    A prefix that a string shares with both ends of the search is shared by all constants between them, and is not compared again.
    Tried: hashing the strings first. On paths, hashing alone takes 210 ns, and the search 100. Searching by the first eight bytes
    first is no faster on average.
    """
    for i in range(len(offsets) - 1):
        begin, length = offsets[i], offsets[i + 1] - offsets[i]
        lo, hi = 0, len(labels)
        below = above = 0
        key = np.int64(0)
        found = False
        while lo < hi and not found:
            middle = (lo + hi) // 2
            other, other_length = constant_offsets[middle], constant_offsets[middle + 1] - constant_offsets[middle]
            shorter = min(length, other_length)
            same = min(below, above)
            while same < shorter and data[np.uintp(begin + same)] == constant_data[np.uintp(other + same)]:
                same += 1
            if same == length and same == other_length:
                key = labels[middle]
                found = True
            elif same < length and (same == other_length or constant_data[other + same] < data[begin + same]):
                lo, below = middle + 1, same
            else:
                hi, above = middle, same
        if not found:
            key = labels[lo] - 1 if lo < len(labels) else labels[-1] + 1
        keys[i] = key
