"""Slots with a mark among many: a batch may find ten million slots, of which a few have something to do with earlier events.

    slots    7  3  9  3  4        marks   a bit for each slot: 4 and 9 have one
    places         2     4

A bit for each slot stays in the caches of the processor. Looking up a number for each slot took five times as long.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.bits import BYTE, has_bit_in_bytes
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I64, UP, I32s, I64s, U8s

_SHARE, _SPARE = 16, 1024
"""Room for the places of so large a share of the slots, and for some more. If there are more, the room is doubled."""


@lean_kernel
def write_marked(slots: I32s, start: int, marks: U8s, places: I64s, count: int) -> tuple[int, int]:
    """Write the places of slots with a mark, from place `start` on, behind `count` others.

    Returns where it stopped because there is no room, or the end, and the new count.
    """
    slot_end = BYTE * len(marks)
    for at in range(start, len(slots)):
        slot = I64(slots[UP(at)])
        if slot < slot_end and has_bit_in_bytes(marks, slot):
            if count == len(places):
                return at, count
            places[UP(count)] = at
            count += 1
    return len(slots), count


@lean_kernel
def write_others(slots: I32s, gone: I64s, out: I32s) -> None:
    """Write all slots but those at some places, which ascend."""
    start, count = 0, 0
    for i in range(len(gone) + 1):
        end = gone[i] if i < len(gone) else len(slots)
        for at in range(start, end):
            out[UP(count)] = slots[UP(at)]
            count += 1
        start = end + 1


def marked_places(slots: I32s, marks: U8s) -> I64s:
    """The places of the slots that have a mark. Slots behind the last mark have none."""
    places = np.empty(min(len(slots), len(slots) // _SHARE + _SPARE), np.int64)
    at, count = write_marked(slots, 0, marks, places, 0)
    while at < len(slots):
        places = np.append(places, np.empty_like(places))
        at, count = write_marked(slots, at, marks, places, count)
    return places[:count]


def without_places(slots: I32s, gone: I64s) -> I32s:
    """All slots but those at some places, which ascend."""
    left = np.empty(len(slots) - len(gone), np.int32)
    write_others(slots, gone, left)
    return left
