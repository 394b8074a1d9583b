"""Matching a batch against a segment in one call: the rows of a few events at a time, named while they are in the cache."""

from __future__ import annotations

from typing import Any

from tamis.encoding.kernel import lean_kernel
from tamis.engine.match import match_rows
from tamis.engine.owners import name_owners

NO_ROOM_SLOTS = 4
"""What may be lacking besides what `match_rows` may lack."""
_EVENTS_AT_ONCE = 16


@lean_kernel
def match_events(
    packed: Any, batch: Any, life: Any, place: Any, counts: Any, buffers: Any, out: Any, work: Any
) -> tuple[int, int, int, int, int, int]:
    """Match events from `place[0]` up to the last: slots to `out`, how many each to `counts`.

    `packed` are body, owners and scratch, `buffers` rows, the scratch of an event, and clauses. `place` says besides up to which
    event rows have been found that wait to be named, and where they begin. Returns the same for the event at which it stopped,
    how much of `out` is filled, and, if it stopped for want of room, of what and how much is needed.
    """
    body, owners, scratch = packed
    rows, event_scratch, clauses = buffers
    event, found, at = place
    filled = 0
    while event < len(counts):
        if found == event:
            upto = min(event + _EVENTS_AT_ONCE, len(counts))
            found, _, lack, need = match_rows(body, batch, scratch, (event, upto), counts, rows, work)
            at = 0
            if found == event:
                return event, found, at, filled, lack, need
        event, at, slots, compared = name_owners(
            owners, batch, life, (rows, counts), (event, found, at), event_scratch, (out[filled:], clauses)
        )
        filled += slots
        work[2] += compared
        if event < found:
            return event, found, at, filled, NO_ROOM_SLOTS, 0
    return event, found, at, filled, 0, 0
