"""The groups of words of a record, and the header that says how many there are of each group in a long record.

A header has four bytes in each of two words:

    word 1    far sets . masks . sets . ranges
    word 2    predicates that the tests for keys stand for . far tests . tests for bounds . tests for keys
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.engine.layout.aspects import Words
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64, U32, UP, I64s

RANGES, NAMES, BOUNDS, FAR_TESTS, FAR_SETS, SETS, MASKS = range(7)
"""The groups of words of a record, in their order. NAMES are tests for keys, BOUNDS are tests for bounds."""
GROUPS = 7
HEADER_MOST = 255
"""The most of each that a header can count."""
_HEADER_AT = 1
_FIRST, _SECOND, _THIRD, _FOURTH = range(0, 32, 8)
"""Where the bytes of a word begin."""
LONG_WORDS = _HEADER_AT + 2
"""The words of a long record before its groups: its row and its header."""


class LongHeader(NamedTuple):
    """How many there are of each group in a long record."""

    ranges: int
    sets: int
    masks: int
    far_sets: int
    names: int
    bounds: int
    far_tests: int
    named: int
    """The predicates that the tests for keys stand for."""


@inlined
def header_of(counts: I64s, named: int) -> LongHeader:
    """The header of a record with these `RecordScratch.counts`."""
    return LongHeader(
        ranges=counts[RANGES],
        sets=counts[SETS],
        masks=counts[MASKS],
        far_sets=counts[FAR_SETS],
        names=counts[NAMES],
        bounds=counts[BOUNDS],
        far_tests=counts[FAR_TESTS],
        named=named,
    )


@inlined
def write_header(h: LongHeader, out: Words, at: int) -> None:
    out[at + _HEADER_AT] = U32(h.ranges | (h.sets << _SECOND) | (h.masks << _THIRD) | (h.far_sets << _FOURTH))
    out[at + _HEADER_AT + 1] = U32(h.names | (h.bounds << _SECOND) | (h.far_tests << _THIRD) | (h.named << _FOURTH))


@inlined
def long_header(record: Words, at: int) -> LongHeader:
    """The header of the long record at a place."""
    a, b = record[UP(at + _HEADER_AT)], record[UP(at + _HEADER_AT + 1)]
    return LongHeader(
        ranges=_byte(a, _FIRST),
        sets=_byte(a, _SECOND),
        masks=_byte(a, _THIRD),
        far_sets=_byte(a, _FOURTH),
        names=_byte(b, _FIRST),
        bounds=_byte(b, _SECOND),
        far_tests=_byte(b, _THIRD),
        named=_byte(b, _FOURTH),
    )


@inlined
def _byte(word: np.uint32, begin: int) -> int:
    """The byte of a word that begins at a bit."""
    return I64((word >> U32(begin)) & U32(255))
