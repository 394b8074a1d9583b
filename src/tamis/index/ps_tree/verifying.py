"""Checking candidates against one event, a block of them at a time, so that their records are fetched from memory together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events import count_holding
from tamis.encoding.kernel import inlined
from tamis.encoding.numbers import UP
from tamis.encoding.prefetch import prefetch
from tamis.index.ps_tree.elements import INT64_ELEMENTS
from tamis.index.ps_tree.nodes import NONE
from tamis.index.records import EventScratch, event_scratch, failing

BLOCK = 256
"""So many candidates are checked together."""


class Scratch(NamedTuple):
    """What a kernel needs for one event; between events `event` and `leaf_of` are as they were made."""

    event: EventScratch
    leaf_of: npt.NDArray[np.int32]
    """Dimension -> leaf of a plain event's value."""
    met: npt.NDArray[np.int32]
    """Lists, or leaves, that an event meets."""
    met_dimension: npt.NDArray[np.int32]
    seen: npt.NDArray[np.int64]
    """Conjunction -> stamp of the last event, of those that are not plain, that has looked at it."""
    leaf_seen: npt.NDArray[np.int64]
    stamp: npt.NDArray[np.int64]
    block: npt.NDArray[np.int32]
    elements: npt.NDArray[np.int32]


def scratch_for(scratch: Scratch | None, dimensions: int, leaves: int, rows: int, values: int) -> Scratch:
    """Scratch for events of so many dimensions and values, over so many leaves and conjunctions; the same if it is enough."""
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
        np.empty(INT64_ELEMENTS, np.int32),
    )


@inlined
def fetch(block: Any, count: int, at: Any, size: Any, words: Any) -> None:
    """Let the records of candidates come from memory."""
    for i in range(count):
        prefetch(at, block[UP(i)])
        prefetch(size, block[UP(i)])
    for i in range(count):
        begin = at[UP(block[UP(i)])]
        prefetch(words, begin)
        prefetch(words, begin + 8)


@inlined
def failing_of(
    c: int, plain: bool, at: Any, size: Any, words: Any, table: Any, event: Any, v_lo: Any, v_hi: Any
) -> tuple[int, int]:
    """How many predicates of a candidate are true of the event before one that is not, and how many there are.

    Of a plain event, those of the record: the access predicates are known to be true. Of any other, all.
    """
    key, first, values = event
    if plain:
        return failing(words, at[UP(c)], size[UP(c)], True, key, first, values, v_lo, v_hi), size[UP(c)]
    begin, end = table.start[c], table.start[c + 1]
    dimension, mode, start, lows, highs = table.predicates
    return count_holding(begin, end, dimension, mode, start, lows, highs, v_lo, v_hi, first, values), end - begin
