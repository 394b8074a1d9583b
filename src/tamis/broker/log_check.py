"""SQLite's log: whether something in it is damaged, before SQLite reads it.

    head      magic number, version, size of a page, ..., two random numbers, checksum           32 bytes
    frame     number of a page, pages after this commit or 0, the two random numbers, checksum   24 bytes, then the page
    frame     ...

A checksum goes on from frame to frame. If the magic number is odd, its words begin with their highest byte.

SQLite reads up to the first wrong frame, since a crash may leave a part of a commit. So it would take damage in the middle for a
crash, and lose all later commits. But a commit begins when the one before it is on disk. If two commits follow a wrong frame,
the first of them was on disk, and with it the frame.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np

from tamis.broker.checksums import DAMAGED
from tamis.errors import BrokerError
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I64s, U8s, U32s

_HEAD, _FRAME = 32, 24
"""Bytes of the head, and of what stands before each page."""
_SIZES = tuple(512 << each for each in range(8))
"""Of pages."""
_WORD = 0xFFFFFFFF


def check_log(tables: Path) -> None:
    """Look for damage in the log of tables that nobody has open.

    Raises
    ------
    BrokerError
        Commits are lost.
    """
    path = tables.with_name(f"{tables.name}-wal")
    with suppress(FileNotFoundError):
        if path.stat().st_size > _HEAD and _lost_commits(np.memmap(path, np.uint8, "r")) > 1:
            raise BrokerError(f"{path} is damaged in the middle.{DAMAGED}")


def _lost_commits(content: U8s) -> int:
    """How many commits follow a wrong frame."""
    head = content[:_HEAD].view(">u4").astype(np.int64)
    size = int(head[2])
    if size not in _SIZES:
        size = _SIZES[3]  # The head is damaged. Tamis makes pages of 4,096 bytes.
    width = (_FRAME + size) // 4
    count = (len(content) - _HEAD) // (4 * width)
    words = content[_HEAD : _HEAD + count * 4 * width].view("<u4").reshape(count, width)
    before = words[:, : _FRAME // 4].byteswap().astype(np.int64)
    if content[3] & 1:
        words = words.byteswap()
    first = content[: _HEAD - 8].view(">u4" if content[3] & 1 else "<u4").astype(np.uint32)
    sound, *sums = sound_frames(first.reshape(1, 6), 0, head[6:7], head[7:8], 0, 0)
    is_good = sound == 1
    salts = head[4:6] if is_good or not count else _usual(before[:, 2:4])
    is_new = (before[:, 2:4] == salts).all(axis=1)
    """Older frames, which a commit has not overwritten yet, have other numbers."""
    good = 0
    if is_good:
        new = words[: int(np.argmin(np.append(is_new, False)))]
        good, *_ = sound_frames(new, 2, before[:, 4], before[:, 5], *sums)
    return int(np.count_nonzero(before[good:, 1][is_new[good:]]))


def _usual(pairs: I64s) -> I64s:
    """The pair that is there most often."""
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    usual: I64s = distinct[np.argmax(counts)]
    return usual


@lean_kernel
def sound_frames(
    words: U32s, left_out: int, firsts: I64s, seconds: I64s, first: int, second: int
) -> tuple[int, int, int]:
    """How many frames have the right checksum, and the checksum of the last of these, which goes on from the given one.

    It covers two words, leaves some out, and covers all others.
    """
    good_one, good_two = np.int64(first), np.int64(second)
    for frame in range(len(words)):
        one, two = good_one, good_two
        for place in range(0, words.shape[1], 2):
            if place < 2 or place >= 2 + 2 * left_out:
                one = (one + np.int64(words[frame, place]) + two) & _WORD
                two = (two + np.int64(words[frame, place + 1]) + one) & _WORD
        if one != firsts[frame] or two != seconds[frame]:
            return frame, int(good_one), int(good_two)
        good_one, good_two = one, two
    return len(words), int(good_one), int(good_two)
