"""Matching a batch against a segment in one call: the rows of a few events at a time, named while they are in the cache."""

from __future__ import annotations

from typing import Any

from tamis.engine.matching.match import EVENT, LACK, NEED, STOP, WORK
from tamis.engine.matching.owners import name_owners
from tamis.kernels.entry import call_entry
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.packed import i8

NO_ROOM_SLOTS = 4
"""What may be lacking besides what `match_rows` may lack."""
_EVENTS_AT_ONCE = 16


@lean_kernel
def match_events(
    matching: Any, owners: Any, batch: Any, life: Any, place: Any, counts: Any, buffers: Any, out: Any
) -> tuple[int, int, int, int, int, int]:
    """Match events from `place[0]` up to the last: slots to `out`, how many each to `counts`.

    `matching` is how `match_rows` is called: its entry, its call and the address of that. `buffers` are rows, the scratch of an
    event, and clauses. `place` says besides up to which event rows have been found that wait to be named, and where they begin.
    Returns the same for the event at which it stopped, how much of `out` is filled, and, if it stopped for want of room, of what
    and how much is needed.
    """
    entry, call, address = matching
    rows, event_scratch, clauses = buffers
    event, found, at = place
    filled, work = 0, i8(call, WORK)
    while event < len(counts):
        if found == event:
            call[EVENT], call[STOP] = event, min(event + _EVENTS_AT_ONCE, len(counts))
            found, at = call_entry(entry, address), 0
            if found == event:
                return event, found, at, filled, call[LACK], call[NEED]
        event, at, slots, compared = name_owners(
            owners, batch, life, (rows, counts), (event, found, at), event_scratch, (out[filled:], clauses)
        )
        filled += slots
        work[2] += compared
        if event < found:
            return event, found, at, filled, NO_ROOM_SLOTS, 0
    return event, found, at, filled, 0, 0
