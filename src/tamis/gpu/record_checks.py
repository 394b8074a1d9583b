"""The record of one survivor, and the owner of its row, in one thread. See `match_kernel`."""

from __future__ import annotations

from typing import Any

from tamis.engine.layout.record_words import DONE, LONG
from tamis.engine.layout.segment_build import Body
from tamis.engine.matching.owners import NOT_BY_SLOT
from tamis.gpu import engine_functions as engine
from tamis.gpu.card_arrays import Block, CardOwners
from tamis.gpu.device_code import device
from tamis.kernels.numbers import I64, U32, UP

OPEN_ROW, GONE = -1, -2
"""Instead of the slot of a row: the row is open, or it has no living owner."""


@device
def record_holds(reference: Any, body: Body, block: Block) -> tuple[bool, Any]:
    """Whether the record of a survivor holds, and its row."""
    record, at, shape = body.record, engine.record_at(reference), engine.shape_of(reference)
    if shape == DONE:
        return True, U32(engine.settled_row(reference))
    if shape == LONG:
        holds, tied = engine.check_long(record, at, block.space, block.seen)
    elif len(block.seen) > 0:
        names, bounds = engine.groups_in(shape)
        named = engine.predicates_in(record[UP(at)])
        holds, tied = engine.check_tests(record, at + 1, names, named, bounds, block.seen)
    else:
        ranges, sets = engine.groups_in(shape)
        holds, tied = engine.check_ranges(record, at + 1, ranges, sets, block.space), False
    if not holds:
        return False, U32(0)
    doubt = tied and engine.ties_are_in_doubt(record, at, shape, block.seen, body.lookup.about)
    return True, U32(engine.found_row(record[UP(at)]) | engine.in_doubt(doubt))


@device
def owner_of(word: Any, owners: CardOwners) -> int:
    """The slot of a settled row; OPEN_ROW; GONE, if the slot is dead."""
    if engine.is_in_doubt(word):
        return I64(OPEN_ROW)
    row = engine.row_of(word)
    if owners.first != NOT_BY_SLOT:
        if len(owners.is_sole) > 0 and not engine.has_bit_in_bytes(owners.is_sole, row):
            return I64(OPEN_ROW)
        slot = I64(owners.first + row)
    else:
        slot = max(I64(owners.sole[UP(row)]), I64(OPEN_ROW))
    if slot >= 0 and len(owners.dead) > 0 and engine.has_bit_in_bytes(owners.dead, slot):
        return I64(GONE)
    return slot
