"""Vectors of bytes find what a look at each byte finds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tamis.kernels.byte_search import LANES, WORD_BYTES, plain_bytes, word_at
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import U8s

pytestmark = pytest.mark.kernels


@lean_kernel
def plain(data: U8s, at: int) -> int:
    found: int = plain_bytes(data, at)
    return found


@lean_kernel
def word(data: U8s, at: int) -> int:
    found: int = word_at(data, at)
    return found


def test_plain_bytes_end_before_what_json_forbids_in_strings() -> None:
    draws = random.Random(0)
    for special in [*range(40), 0x5B, 0x5C, 0x5D, 0x7F, 0x80, 0xA2, 0xDC, 0xFF]:
        data = np.full(3 * LANES, ord("a"), np.uint8)
        place = draws.randrange(LANES, 2 * LANES)
        data[place] = special
        stops = special < 0x20 or special in b'"\\'
        for at in (place - LANES, place - 5, place, place + 1):
            expected = place - at if stops and 0 <= place - at < LANES else LANES
            assert plain(data, at) == expected, special


def test_words_have_the_lowest_byte_first() -> None:
    data = np.arange(20, dtype=np.uint8)
    for at in range(20 - WORD_BYTES):
        assert int(word(data, at)) == int.from_bytes(bytes(range(at, at + WORD_BYTES)), "little")
