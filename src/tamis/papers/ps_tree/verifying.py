"""One event: the leaves that it meets, and its candidates.

Candidates are checked a block at a time, so that their records are fetched from memory together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import merged
from tamis.kernels.numbers import UP, Bools, I32s, I64s
from tamis.papers.parts.collecting import is_true
from tamis.papers.parts.records import EventKeys, RecordArrays, event_keys, failing_keys, load_keys, unload_keys
from tamis.papers.ps_tree.covering import ForestArrays, leaf_of_key
from tamis.papers.ps_tree.nodes import NONE

BLOCK = 256
"""Candidates checked at a time."""


class RowArrays(NamedTuple):
    """The conjunctions of an index."""

    table: Conjunctions
    records: RecordArrays
    live: Bools
    """Conjunction -> whether it is in the index."""


class Block(NamedTuple):
    """Candidates, and where their records are."""

    conjunction: I32s
    place: I64s
    size: I64s


class Scratch(NamedTuple):
    """Scratch of a kernel for one event; between events `event` and `leaf_of` are in their initial state."""

    event: EventKeys
    leaf_of: I32s
    """Dimension -> leaf of a single-valued event's value."""
    met: I32s
    """Lists or leaves that an event meets."""
    met_dimension: I32s
    seen: I64s
    """Conjunction -> stamp of the last event that has visited it; single-valued events set no stamp."""
    leaf_seen: I64s
    stamp: I64s
    block: Block


def scratch_for(scratch: Scratch | None, dimensions: int, leaves: int, rows: int, values: int) -> Scratch:
    """Scratch for events and an index of these sizes; returns the given scratch if it is large enough."""
    met = leaves + 2 * values + 2
    if scratch is not None:
        sizes = len(scratch.leaf_of), len(scratch.leaf_seen), len(scratch.seen), len(scratch.met)
        needed = dimensions, leaves, rows, met
        if all(size >= each for size, each in zip(sizes, needed, strict=True)):
            return scratch
        dimensions, leaves, rows, met = (max(size, each) for size, each in zip(sizes, needed, strict=True))
    return Scratch(
        event_keys(dimensions),
        np.full(dimensions, NONE, np.int32),
        np.empty(met, np.int32),
        np.empty(met, np.int32),
        np.zeros(rows, np.int64),
        np.zeros(leaves, np.int64),
        np.zeros(1, np.int64),
        Block(np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)),
    )


@merged
def begin_event(batch: EventBatch, event: int, scratch: Scratch) -> bool:
    """Lay out an event; returns whether it is single-valued."""
    scratch.stamp[0] += 1
    return load_keys(batch, event, scratch.event)


@merged
def end_event(batch: EventBatch, event: int, scratch: Scratch) -> None:
    """Clear the layout of an event."""
    for v in range(batch.start[event], batch.start[event + 1]):
        scratch.leaf_of[batch.dimension[v]] = NONE
    unload_keys(batch, event, scratch.event)


@merged
def meet_leaves(
    v: int, single_valued: bool, forest: ForestArrays, batch: EventBatch, scratch: Scratch, many: int
) -> int:
    """Note the leaves that a value is the first to meet, behind the `many` in `met`; returns how many there are then."""
    leaves, d, stamp = forest.trees.leaves, batch.dimension[v], scratch.stamp[0]
    leaf = leaf_of_key(forest, d, batch.lo[v])
    scratch.leaf_of[d] = leaf
    while leaf != NONE and (single_valued or leaves.lo[leaf] <= batch.hi[v]):
        if single_valued or scratch.leaf_seen[leaf] != stamp:
            scratch.leaf_seen[leaf] = stamp
            scratch.met[many], scratch.met_dimension[many] = leaf, d
            many += 1
        if single_valued:
            break
        leaf = leaves.next[leaf]
    return many


@merged
def verify(
    count: int, by_record: bool, rows: RowArrays, batch: EventBatch, scratch: Scratch, matches: I32s, filled: int
) -> tuple[int, int]:
    """Append the candidates of the block that are true of the event to `matches`.

    Returns how much is filled, -1 if there is no room, and how many predicates were evaluated. Records serve single-valued events
    only: they lack the access predicates. An event with several values or intervals may meet their leaves without satisfying
    them.
    """
    block, tested = scratch.block, 0
    for i in range(count):
        if by_record:
            needed = block.size[UP(i)]
            held = failing_keys(rows.records.words, block.place[UP(i)], needed, scratch.event.key)
            true, evaluated = held == needed, min(held + 1, needed)
        else:
            true, evaluated = is_true(block.conjunction[UP(i)], rows.table, batch, scratch.event.places)
        tested += evaluated
        if true:
            if filled == len(matches):
                return -1, tested
            matches[UP(filled)] = block.conjunction[UP(i)]
            filled += 1
    return filled, tested
