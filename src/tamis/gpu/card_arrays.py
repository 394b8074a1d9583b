"""The arrays that kernels for cards read and write, besides those of the engine."""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.kernels.numbers import F64s, I32s, I64s, U8s, U32s

ODD, NO_ROOM = -1, -2
"""Instead of the number of slots of an event: the event is odd, or it needs more room."""


NO_BITS = -1
"""Instead of the place of bits: no value is null."""
FREE = -1
"""A free place of a hash table."""
VALUES_AT, VALIDITY_AT, BIT, CODE, DIMENSION = range(5)
COLUMN = 5
"""What kernels know of a column of a wide table, in the order of these places."""


class CardOwners(NamedTuple):
    """The owners of rows that have one, see `tamis.engine.matching.owners`."""

    sole: I32s
    is_sole: U8s
    first: int
    """The slot of row 0; NOT_BY_SLOT."""
    dead: U8s
    """The slots that are dead, as bits; empty if none is."""


class CardEvents(NamedTuple):
    """The events of a batch, as `EventBatch` has them, but with the end of each event, so that they may lie in any order."""

    begin: I64s
    end: I64s
    dimension: I32s
    lo: I64s
    hi: I64s


class Cells(NamedTuple):
    """Memory of Arrow on the card, as numbers of each type."""

    i8: I64s
    f8: F64s
    i4: I32s
    f4: Any
    i2: Any
    i1: Any
    u1: U8s
    u2: Any
    u4: U32s


class CardEntries(NamedTuple):
    """Where the parts of a long table lie in the cells. Places are in the elements of each part."""

    start: int
    """Where the entries of each event begin: 64-bit integers."""
    name_end: int
    """Where the offset of the first name is, of `name_bits` bits. The next offset is where this name ends."""
    name_bits: int
    names: int
    """Where the bytes of names are, less the offset of the first name."""
    values: int
    code: int
    """The type of the values, as `plain_columns` has it."""
    validity: int
    """Where the bits are; NO_BITS."""
    bit: int


class CardNames(NamedTuple):
    """The attributes that predicates ask about, in a hash table."""

    table: I32s
    """The place of an attribute in the other arrays; FREE."""
    start: I64s
    """Where each name begins, and where the last one ends."""
    text: U8s
    dimension: I32s


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
    place: I64s
    """Where the slots and the open rows of the event go."""
    counts: I32s
    lane: int
    mine: int
    """Where the queue of the thread's warp begins."""
    base: int
    """Where the scratch of the block begins."""
