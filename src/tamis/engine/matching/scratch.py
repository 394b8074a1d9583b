"""The arrays of a thread that matches events against a segment. After each event they are reset."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.engine.layout.aspects import nothing_seen
from tamis.engine.layout.guards import BLOCK
from tamis.engine.layout.pairs import PairScratch, pair_scratch
from tamis.engine.layout.plan import RANKED
from tamis.engine.layout.record_words import SHAPES
from tamis.engine.layout.scale import MISSING
from tamis.engine.layout.segment_build import Body
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import Bools, I32s, I64s, U8s, U32s

AHEAD = 16
"""How many records ahead to prefetch."""
LANES = 16
"""Words of a vector, see `vectors`."""
LISTS_AHEAD = 3
"""How many lists ahead to prefetch."""
_BEHIND_SPACE = 3
"""Bytes behind the spaces of an event that vector code reads together with the last one."""
SORTED_AT_ONCE = 1024
"""The most survivors that are sorted by shape at a time."""


class Values(NamedTuple):
    """The values of one event of a batch: from `begin` up to `end`. Values of one dimension are neighbours."""

    begin: int
    end: int
    dimension: I32s
    low: I64s
    high: I64s


class LoadedEvent(NamedTuple):
    """An event, by dimension of the segment.

    An event with at most one value in each dimension, and no interval, is *single-valued*.

        dimension    0     1        2     3             touched   0  2  3       the dimensions of the event
        space        7     MISSING  4     0             first     7  4  0       the space of the lowest key in each dimension
        several      -     -        -     x             last      -  -  2       the space of the highest key, if not single-valued
    """

    space: U8s
    """Dimension -> the space of the value, or MISSING. One more entry at the end is 0, which always passes."""
    several: Bools
    """Dimension -> whether the event has several values there, or an interval."""
    seen: U32s
    """The aspects of all dimensions. Empty if no dimension is wide."""
    low: I64s
    """Dimension -> the lowest key, if the event has the dimension."""
    high: I64s
    """Dimension -> the highest key, if the event has the dimension."""
    touched: I32s
    first: I32s
    last: I32s
    point: I32s
    """For each touched dimension of a single-valued event: the home of its key in the table of points. -1: probably no list."""
    place: I32s
    """For each touched dimension of a single-valued event: the place of its number in `Lookup.whole`, or ~v for its value v."""
    origin: I32s
    """For each touched dimension of a single-valued event: its number in the matcher."""


class Met(NamedTuple):
    """The lists and runs that an event meets."""

    begin: I64s
    """The first entry of each list."""
    end: I64s
    """One behind the last entry of each list."""
    run: I64s
    """The number of each run."""
    run_begin: I64s
    """The first entry of each run whose condition may hold."""
    run_end: I64s
    """One behind the last entry of each run whose condition may hold."""


class Ordered(NamedTuple):
    """Survivors sorted by the shape of their records."""

    reference: U32s
    place: I64s
    """Shape -> where the next survivor of this shape goes."""


class Scratch(NamedTuple):
    """All arrays that a thread needs to match against a segment."""

    event: LoadedEvent
    met: Met
    survivor: U32s
    """References of the entries whose filter words hold."""
    ordered: Ordered
    pairs: PairScratch


class Needs(NamedTuple):
    """What determines the size of the scratch for a segment. Segments with equal needs can share a scratch."""

    dimensions: int
    wide: bool
    """Whether any dimension is wide."""
    runs: int
    cells: int
    """Cells of pairs. 0: there are no pairs."""


def needs_of(body: Body) -> Needs:
    """The needs of a segment, rounded up, so that similar segments have equal needs."""
    runs, cells = len(body.runs.list) + 1, body.cells if body.pairs.entries else 0
    return Needs(body.dimensions, len(body.lookup.shift) > 0, _round(runs), _round(cells))


def _round(number: int) -> int:
    return 1 << (number - 1).bit_length() if number else 0


@inlined
def room_for(entries: int) -> int:
    """The length of the array of survivors for this many entries."""
    return entries + entries // BLOCK + AHEAD + 2 * LANES


def scratch_for(needs: Needs, entries: int, lists: int) -> Scratch:
    """Scratch for events that meet at most this many entries in this many lists."""
    dimensions = needs.dimensions
    ranked = min(dimensions, RANKED)
    space = np.full(ranked + 1 + _BEHIND_SPACE, MISSING, np.uint8)[: ranked + 1]
    space[ranked] = 0
    several = np.zeros(ranked + 1, np.bool_)
    low, high = np.zeros((2, dimensions), np.int64)
    by_touched = np.empty((6, dimensions + 1), np.int32)
    begin, end = np.zeros((2, lists + LISTS_AHEAD + 8), np.int64)
    run, run_begin, run_end = np.zeros((3, needs.runs), np.int64)
    return Scratch(
        LoadedEvent(space, several, nothing_seen(ranked if needs.wide else 0), low, high, *by_touched),
        Met(begin, end, run, run_begin, run_end),
        np.zeros(room_for(entries), np.uint32),
        Ordered(np.zeros(SORTED_AT_ONCE + AHEAD + LANES, np.uint32), np.zeros(SHAPES, np.int64)),
        pair_scratch(needs.cells, lists),
    )
