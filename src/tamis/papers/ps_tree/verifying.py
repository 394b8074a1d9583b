"""Checks candidates against one event, a block at a time, so that their records are fetched from memory together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import count_holding
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import UP
from tamis.kernels.prefetch import prefetch
from tamis.papers.parts.records import EventScratch, event_scratch, failing_plain
from tamis.papers.ps_tree.elements import INT64_ELEMENTS
from tamis.papers.ps_tree.nodes import NONE

BLOCK = 256
"""Candidates checked at a time."""


class Scratch(NamedTuple):
    """Scratch of a kernel for one event; between events `event` and `leaf_of` are in their initial state."""

    event: EventScratch
    leaf_of: npt.NDArray[np.int32]
    """Dimension -> leaf of a plain event's value."""
    met: npt.NDArray[np.int32]
    """Lists or leaves that an event meets."""
    met_dimension: npt.NDArray[np.int32]
    seen: npt.NDArray[np.int64]
    """Conjunction -> stamp of the last event that has visited it; plain events set no stamp."""
    leaf_seen: npt.NDArray[np.int64]
    stamp: npt.NDArray[np.int64]
    block: npt.NDArray[np.int32]
    places: npt.NDArray[np.int64]
    """Where the records of the block are."""
    sizes: npt.NDArray[np.int64]
    elements: npt.NDArray[np.int32]


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
        event_scratch(dimensions),
        np.full(dimensions, NONE, np.int32),
        np.empty(met, np.int32),
        np.empty(met, np.int32),
        np.zeros(rows, np.int64),
        np.zeros(leaves, np.int64),
        np.zeros(1, np.int64),
        np.empty(BLOCK, np.int32),
        np.empty(BLOCK, np.int64),
        np.empty(BLOCK, np.int64),
        np.empty(INT64_ELEMENTS, np.int32),
    )


@inlined
def locate(block: Any, count: int, at: Any, size: Any, places: Any, sizes: Any) -> None:
    """Write the places of the candidates' records."""
    for i in range(count):
        prefetch(at, block[UP(i)])
        prefetch(size, block[UP(i)])
    for i in range(count):
        places[UP(i)], sizes[UP(i)] = at[UP(block[UP(i)])], size[UP(block[UP(i)])]


@inlined
def fetch(words: Any, place: int) -> None:
    """Prefetch a record: most have at most four cache lines."""
    prefetch(words, place)
    prefetch(words, place + 8)
    prefetch(words, place + 16)
    prefetch(words, place + 24)


@inlined
def verify(
    block: Any,
    count: int,
    by_record: bool,
    places: Any,
    sizes: Any,
    words: Any,
    key: Any,
    table: Any,
    v_lo: Any,
    v_hi: Any,
    first: Any,
    values: Any,
    out: Any,
    filled: int,
) -> tuple[int, int]:
    """Append the candidates of a block that are true of the event. Returns how much is filled, -1 if there is no room, and how
    many predicates were evaluated. Records serve plain events only."""
    tested = 0
    for i in range(count):
        if by_record:
            needed = sizes[UP(i)]
            held = failing_plain(words, places[UP(i)], needed, key)
        else:
            held, needed = _failing_any(block[UP(i)], table.start, table.predicates, v_lo, v_hi, first, values)
        tested += min(held + 1, needed)
        if held == needed:
            if filled == len(out):
                return -1, tested
            out[UP(filled)] = block[UP(i)]
            filled += 1
    return filled, tested


@inlined
def _failing_any(c: int, start: Any, predicates: Any, v_lo: Any, v_hi: Any, first: Any, values: Any) -> tuple[int, int]:
    """How many predicates of a conjunction are true of the event before the first that is not, and how many it has.

    Works for any event. A record lacks the access predicates: an event with several values or intervals may meet their leaves
    without satisfying them.
    """
    begin, end = start[c], start[c + 1]
    dimension, mode, at, lows, highs = predicates
    return count_holding(begin, end, dimension, mode, at, lows, highs, v_lo, v_hi, first, values), end - begin
