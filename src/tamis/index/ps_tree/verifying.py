"""Checking candidates against one event, a block of them at a time, so that their records are fetched from memory together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events import count_holding
from tamis.encoding.kernel import inlined
from tamis.encoding.keys import KEY_MIN
from tamis.encoding.leaf import Mode
from tamis.encoding.numbers import UP
from tamis.encoding.prefetch import prefetch
from tamis.index.ps_tree.elements import INT64_ELEMENTS
from tamis.index.ps_tree.nodes import NONE
from tamis.index.records import ONE_INTERVAL, EventScratch, event_scratch

_SOME, _ABSENT = int(Mode.SOME), int(Mode.ABSENT)
_HALF = 0xFFFFFFFF
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
    places: npt.NDArray[np.int64]
    """Where the records of the block are."""
    sizes: npt.NDArray[np.int64]
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
        np.empty(BLOCK, np.int64),
        np.empty(BLOCK, np.int64),
        np.empty(INT64_ELEMENTS, np.int32),
    )


@inlined
def locate(block: Any, count: int, at: Any, size: Any, places: Any, sizes: Any) -> None:
    """Where the records of candidates are."""
    for i in range(count):
        prefetch(at, block[UP(i)])
        prefetch(size, block[UP(i)])
    for i in range(count):
        places[UP(i)], sizes[UP(i)] = at[UP(block[UP(i)])], size[UP(block[UP(i)])]


@inlined
def fetch(words: Any, place: int) -> None:
    """Let a record come from memory: most have no more than four lines."""
    prefetch(words, place)
    prefetch(words, place + 8)
    prefetch(words, place + 16)
    prefetch(words, place + 24)


@inlined
def failing_plain(words: Any, at: int, size: int, key: Any) -> int:
    """`records.failing` for a plain event. With two arrays it costs a third: others are passed by value, seven words each."""
    for i in range(size):
        head = words[UP(at)]
        value = key[UP(head >> 32)]
        if head & _HALF == ONE_INTERVAL:
            if not words[UP(at + 1)] <= value <= words[UP(at + 2)]:
                return i
            at += 3
        else:
            intervals, mode = (head & _HALF) >> 2, head & 3
            low, high = 0, intervals
            while low < high:  # find the first interval that ends at or behind the value
                middle = (low + high) // 2
                if words[UP(at + 2 * middle + 2)] < value:
                    low = middle + 1
                else:
                    high = middle
            found = low < intervals and words[UP(at + 2 * low + 1)] <= value
            held = found if mode == _SOME else not found and (value == KEY_MIN) == (mode == _ABSENT)
            if not held:
                return i
            at += 1 + 2 * intervals
    return size


@inlined
def failing_any(c: int, start: Any, predicates: Any, v_lo: Any, v_hi: Any, first: Any, values: Any) -> tuple[int, int]:
    """How many predicates of a conjunction are true of any event before one that is not, and how many it has.

    A record lacks the access predicates, which an event with several values or intervals may meet without satisfying.
    """
    begin, end = start[c], start[c + 1]
    dimension, mode, at, lows, highs = predicates
    return count_holding(begin, end, dimension, mode, at, lows, highs, v_lo, v_hi, first, values), end - begin
