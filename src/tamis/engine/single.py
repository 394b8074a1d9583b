"""Matching one event against a segment in one call: what surrounds the kernel would cost more than the kernel."""

from __future__ import annotations

from typing import Any

from tamis.encoding.kernel import lean_kernel
from tamis.engine.match import match_rows
from tamis.engine.owners import EventScratch, name_owners
from tamis.engine.packed import i4, i8, u4

NO_ROOM = -1


@lean_kernel
def match_single(body: Any, owners: Any, room: Any, batch: Any, life: Any) -> int:
    """Write the slots that one event satisfies; returns how many, or NO_ROOM.

    Segment, owners and room are packed; see `Room.packed_single` for the order of the latter.
    """
    rows, counts, work = u4(room, 14), i8(room, 15), i8(room, 16)
    _, _, lack, _ = match_rows(body, batch, room, (0, 1), counts, rows, work)
    if lack:
        return NO_ROOM
    scratch = EventScratch(i8(room, 17), i8(room, 18))
    out = i4(room, 19), i4(room, 20)
    event, _, filled, compared = name_owners(owners, batch, life, (rows, counts), (0, 1, 0), scratch, out)
    if event == 0:
        return NO_ROOM
    work[2] += compared
    return filled
