"""Elementary intervals (4.1.2): the endpoints of an attribute's intervals, and the open gaps between them.

    endpoints   2, 5, 18, 30
    cells       (-inf, 2)  [2, 2]  (2, 5)  [5, 5]  (5, 18)  [18, 18]  (18, 30)  [30, 30]  (30, +inf)

n distinct endpoints give 2n + 1 cells, disjoint and ascending. A gap between neighbouring keys holds no key and is left out; such
a gap lies between `< 5` and `>= 5`. Every interval covers a cell entirely or not at all. It covers the cells `first` to `last`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I32s, I64s
from tamis.papers.tatbul.profiles import Intervals
from tamis.papers.tatbul.vectors import Vectors, enter, room_for


class Cells(NamedTuple):
    """The elementary intervals of all attributes: attribute a has ``start[a]`` to ``start[a + 1]``, closed in keys."""

    start: I64s
    lo: I64s
    hi: I64s
    first: I64s
    """The first cell of each interval."""
    last: I64s


def cells_of(intervals: Intervals) -> Cells:
    """The elementary intervals of all attributes."""
    attributes = len(intervals.start) - 1
    owner = np.repeat(np.arange(attributes), np.diff(intervals.start))
    has_lo, has_hi = intervals.lo != KEY_MIN, intervals.hi != KEY_MAX
    end_owner = np.concatenate([owner[has_lo], owner[has_hi]])
    end = np.concatenate([intervals.lo[has_lo], intervals.hi[has_hi]])
    order = np.lexsort((end, end_owner))
    end_owner, end, places = end_owner[order], end[order], np.empty(len(order), np.int64)
    fresh = np.ones(len(end), np.bool_)
    fresh[1:] = (end_owner[1:] != end_owner[:-1]) | (end[1:] != end[:-1])
    places[order] = np.cumsum(fresh) - 1
    end_owner, end = end_owner[fresh], end[fresh]

    # With n endpoints before those of attribute a, its 2m + 1 cells begin at 2n + a; the cell of endpoint i is 2i + 1 + a.
    counts = np.bincount(end_owner, minlength=attributes)
    start = 2 * np.append(0, np.cumsum(counts)) + np.arange(attributes + 1)
    points = 2 * np.arange(len(end)) + 1 + end_owner
    lo, hi = np.full(int(start[-1]), KEY_MIN), np.full(int(start[-1]), KEY_MAX)
    lo[points] = hi[points] = end
    hi[points - 1] = end - 1
    highest = end == KEY_MAX
    lo[points[~highest] + 1] = end[~highest] + 1
    kept = (lo <= hi) & (hi != KEY_MIN)  # no value has KEY_MIN
    kept[points[highest] + 1] = False
    rank = np.append(0, np.cumsum(kept))
    first, last = start[owner].copy(), start[owner + 1] - 1
    split = int(has_lo.sum())
    first[has_lo] = points[places[:split]]
    last[has_hi] = points[places[split:]]
    return Cells(rank[start], lo[kept], hi[kept], rank[first], rank[last + 1] - 1)


def vectors_of_cells(
    intervals: Intervals, cells: Cells, profiles: int, most_at_once: int = 1 << 25
) -> tuple[Vectors, I64s]:
    """The vectors of the profiles that cover each cell, and the numbers of these cells; uncovered cells are left out.

    `profiles` is how many profiles there are. At most `most_at_once` profiles of cells are laid out at a time before they become
    vectors.
    """
    sizes = np.bincount(cells.first, minlength=len(cells.lo) + 1) - np.bincount(
        cells.last + 1, minlength=len(cells.lo) + 1
    )
    sizes = np.cumsum(sizes)[:-1]
    place = np.append(0, np.cumsum(sizes))
    all_covered = np.flatnonzero(sizes)
    made = room_for(profiles, sizes[all_covered])
    begin, entered = 0, 0
    while begin < len(sizes):
        end = max(begin + 1, int(np.searchsorted(place, place[begin] + most_at_once, side="right")) - 1)
        attribute = np.searchsorted(cells.start, [begin, end - 1], side="right") - 1
        data = np.empty(int(place[end] - place[begin]), np.int32)
        own = slice(intervals.start[attribute[0]], intervals.start[attribute[1] + 1])
        place_of = place[begin:end] - place[begin]
        _fill(intervals.profile[own], cells.first[own], cells.last[own], begin, place_of, data)
        covered = np.flatnonzero(sizes[begin:end]) + begin
        enter(made, entered, np.append(place[covered], place[end]) - place[begin], data)
        begin, entered = end, entered + len(covered)
    return made, all_covered


@lean_kernel
def _fill(profile: I32s, first: I64s, last: I64s, begin: int, place: I64s, data: I32s) -> None:
    """Write the profiles of the cells from `begin` on, by cell."""
    for i in range(len(profile)):
        for cell in range(max(first[i] - begin, 0), min(last[i] + 1 - begin, len(place))):
            data[place[cell]] = profile[i]
            place[cell] += 1
