"""XXH64, the checksum of snapshots. It has four lanes, and each lane takes every fourth word of 64 bits.

    word     0  1  2  3    4  5  6  7    8  ...
    lane     0  1  2  3    0  1  2  3    0          lane <- rotate(lane + word * P2, 31) * P1

A lane's step is reversible, so one changed word always changes its lane. The lanes are then folded into one number, so an error
goes unseen once in 2**64.

Reference: Y. Collet, "xxHash fast digest algorithm", XXH64 with seed 0. Departures: none in the result. The input is always a
multiple of 32 bytes, so there is no code for a remainder.

Measured on one x86-64 core, GB/s from cache and from memory: this 10 and 6.5, zlib.crc32 3.9 and 3.6, SHA-256 1.2,
BLAKE2b 0.7. FNV's step on words has no rotation. It is hardly faster from memory, and two flipped signs in one lane cancel out.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.numbers import U8s, U64s

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = 0x165667B19E3779F9
_P4 = 0x85EBCA77C2B2AE63
_P5 = 0x27D4EB2F165667C5

_STRIPE = 32
_MASK = 2**64 - 1


class Checksum:
    """The checksum of bytes that come in pieces. The length of each piece is a multiple of 32."""

    __slots__ = ("_lanes", "_size")

    def __init__(self) -> None:
        p1, p2 = int(_P1), int(_P2)
        self._lanes = np.array([(p1 + p2) & _MASK, p2, 0, -p1 & _MASK], np.uint64)
        self._size = 0

    def update(self, piece: U8s) -> None:
        words = np.require(piece.view(np.uint64), requirements="A")
        # Numba would compile a second version for writable arrays.
        words.flags.writeable = False
        _take_in(words, self._lanes)
        self._size += len(piece)

    def value(self) -> int:
        total = self._folded() if self._size >= _STRIPE else _P5
        total = (total + self._size) & _MASK
        total = ((total ^ (total >> 33)) * int(_P2)) & _MASK
        total = ((total ^ (total >> 29)) * _P3) & _MASK
        return total ^ (total >> 32)

    def _folded(self) -> int:
        lanes: list[int] = self._lanes.tolist()
        p1, p2 = int(_P1), int(_P2)
        total = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            step = _rotated((lane * p2) & _MASK, 31) * p1
            total = ((total ^ step) * p1 + _P4) & _MASK
        return total


def checksum(data: U8s) -> int:
    """The checksum of bytes in one piece."""
    whole = Checksum()
    whole.update(data)
    return whole.value()


def _rotated(word: int, by: int) -> int:
    return ((word << by) | (word >> (64 - by))) & _MASK


@kernel
def _take_in(words: U64s, lanes: U64s) -> None:
    first, second, third, fourth = lanes[0], lanes[1], lanes[2], lanes[3]
    for i in range(0, len(words), 4):
        first = _step(first, words[i])
        second = _step(second, words[i + 1])
        third = _step(third, words[i + 2])
        fourth = _step(fourth, words[i + 3])
    lanes[0], lanes[1], lanes[2], lanes[3] = first, second, third, fourth


@inlined
def _step(lane: np.uint64, word: np.uint64) -> np.uint64:
    added = lane + word * _P2
    return ((added << np.uint64(31)) | (added >> np.uint64(33))) * _P1
