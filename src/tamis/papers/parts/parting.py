"""Divides intervals at a key, as interval trees do: intervals below the key, intervals that contain it, intervals above it.

those    4  6  1  2  7  0  3                 numbers of intervals, in any order
at 35    0  3  |  4  6  1  2  |  7           each part keeps the order
         begin    first          last   end
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.bits import flag_in, number_in
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I32s, I64s

_MOST_WAITING = 256
"""Room for nodes that wait while others are built: keys are in the middle, so there are two for each level."""
Keys = I64s


class Waiting(NamedTuple):
    """Nodes that wait to be built, and the range of their intervals.

    `parent` is the number of the parent, with a flag for its right child; -1 for a root.
    """

    spare: I32s
    """Room for the numbers of all intervals."""
    begin: I64s
    end: I64s
    parent: I64s


def room_for(intervals: int) -> Waiting:
    """Room to build trees of `intervals` intervals."""
    return Waiting(np.empty(intervals, np.int32), *np.empty((3, _MOST_WAITING), np.int64))


@inlined
def wait(waiting: Waiting, at: int, begin: int, end: int, parent: int) -> None:
    """Let a node wait."""
    waiting.begin[at], waiting.end[at], waiting.parent[at] = begin, end, parent


@inlined
def hang(left: Any, right: Any, parent: int, node: int) -> None:
    """Make a node the child of its parent, given as in `Waiting`; `left` and `right` are the children of all nodes."""
    if flag_in(parent):
        right[number_in(parent)] = node
    else:
        left[number_in(parent)] = node


@inlined
def part_at(key: int, those: I32s, begin: int, end: int, lo: Keys, hi: Keys, spare: I32s) -> tuple[int, int]:
    """Part the intervals from `begin` to `end`; returns where the intervals around the key begin and end."""
    first, last = begin, end
    for i in range(begin, end):
        spare[i] = those[i]
        first += hi[those[i]] < key
        last -= lo[those[i]] > key
    lower, middle, higher = begin, first, last
    for i in range(begin, end):
        if hi[spare[i]] < key:
            those[lower] = spare[i]
            lower += 1
        elif lo[spare[i]] > key:
            those[higher] = spare[i]
            higher += 1
        else:
            those[middle] = spare[i]
            middle += 1
    return first, last
