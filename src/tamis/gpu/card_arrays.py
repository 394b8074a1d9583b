"""The arrays that kernels for cards read and write, besides those of the engine."""

from __future__ import annotations

from typing import NamedTuple

from tamis.kernels.numbers import I32s, I64s, U8s, U32s

ODD, NO_ROOM = -1, -2
"""Instead of the number of slots of an event: the event is odd, or it needs more room."""


class CardOwners(NamedTuple):
    """The owners of rows that have one, see `tamis.engine.matching.owners`."""

    sole: I32s
    is_sole: U8s
    first: int
    """The slot of row 0; NOT_BY_SLOT."""


class EventArrays(NamedTuple):
    """Where the arrays of an event lie: at a place in shared memory, or, if that is -1, in these arrays of the card."""

    dimensions: int
    """The length of `key`, or 0."""
    aspects: int
    """The length of `seen`, or 0."""
    spaces: int
    """The length of `space`."""
    key_at: int
    seen_at: int
    space_at: int
    key: I64s
    seen: U32s
    space: U8s


class Results(NamedTuple):
    """What the kernel writes."""

    slot: I32s
    """Slots of settled rows."""
    row: U32s
    """Open rows."""
    settled: I32s
    """Event -> how many slots it has; ODD, NO_ROOM."""
    open: I32s
    """Event -> how many open rows it has. If there is no room: how many rows in all."""
    slot_at: I64s
    row_at: I64s
    """Event -> where its slots and its open rows are."""
    filled: I64s
    """How many slots and open rows there are."""
    work: I64s
    scratch: U32s
    """Room for the rows of one event for each block."""
    room: int
    """The share of a block in `scratch`."""


class Block(NamedTuple):
    """What the threads of a block share, and who a thread is."""

    space: U8s
    seen: U32s
    key: I64s
    begin: U32s
    end: U32s
    run: I32s
    """Items: entries from `begin` to `end`, of a run or of no run."""
    met: I32s
    """Runs of the lists that the event meets."""
    cell: U32s
    queue: U32s
    counts: I32s
    lane: int
    mine: int
    """Where the queue of the thread's warp begins."""
    base: int
    """Where the scratch of the block begins."""
