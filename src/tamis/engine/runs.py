"""Runs: parts of a list that are sorted by a bound.

Where many entries of a list have the same second condition, a range on one dimension that is open on the same side, they are
sorted by its bound: an event's value cuts off a prefix, and what it does not satisfy is never touched.

    symbol = 'A' and price > p      list of A:  p = 1.5  2.0  2.0  7.25 | 9.5  11.0          an event with price = 8

Ranges that have two ends are *bands*: sorted by the lower one, with the upper ones beside.

To find a run and its end costs an event as much as looking at some fifty entries does, whether or not it satisfies any. So runs
are made where that is less than what they save, and where events pass over most of a list anyway (see `guards`) they save little.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events import EventBatch
from tamis.encoding.kernel import kernel, lean_kernel
from tamis.encoding.keys import KEY_MAX, KEY_MIN
from tamis.encoding.numbers import I64, U32, U64
from tamis.encoding.predicates import Predicates
from tamis.engine.coding import Coded
from tamis.engine.forecast import reaches
from tamis.engine.guards import outlook_of
from tamis.engine.lists import Entries
from tamis.engine.plan import ENTRY, RANKED, RECORD, Plan, deciding, hull_of, is_settled
from tamis.engine.scale import Scales
from tamis.engine.second import SECOND
from tamis.engine.statistics import Likelihood

LOWER_RUN, UPPER_RUN, BAND_RUN = 1, 2, 3
"""Classes of runs; bands are parted by width: BAND_RUN + n is of widths from 2**n to 2**(n + 1)."""
RUN = 60.0
"""What finding a run and its end costs, in nanoseconds: see `plan`."""
_SHORTEST = 16
_NONE = -1


class Runs(NamedTuple):
    """Runs in the order of their lists; the entries of run r are `start[r]` to `start[r + 1]`."""

    list: npt.NDArray[np.int64]
    dimension: npt.NDArray[np.int32]
    side: npt.NDArray[np.uint8]
    """LOWER_RUN, UPPER_RUN or BAND_RUN + n."""
    complete: npt.NDArray[np.bool_]
    """Nothing is left to check: `ref` are rows, and there are no filter words to look at."""
    start: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]
    """Ascending within a run: a lower bound, the complement of an upper bound, or the lower end of a band."""
    end: npt.NDArray[np.int64]
    """The upper ends of the entries of bands, one band after another."""
    end_shift: npt.NDArray[np.int64]
    """For each band: what to add to the place of an entry to get that of its upper end."""


_NO_RUNS = Runs(
    np.zeros(0, np.int64),
    np.zeros(0, np.int32),
    np.zeros(0, np.uint8),
    np.zeros(0, np.bool_),
    np.zeros(1, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
)


class Waiting(NamedTuple):
    """For each conjunction: which runs it could be in, and what it costs an event that meets its list."""

    side: npt.NDArray[np.uint32]
    """Dimension << 8 | class of the run that its filter predicate would allow, 0 for none."""
    listed: npt.NDArray[np.float32]
    """Nanoseconds, in the list itself and in the run, which is found besides."""
    in_run: npt.NDArray[np.float32]


def find_runs(
    start: npt.NDArray[np.int64],
    entries: Entries,
    plan: Plan,
    predicates: Predicates,
    coded: Coded,
    scales: Scales,
    likelihood: Likelihood,
    sample: EventBatch | None,
    has_second: bool,
    upto: int,
) -> npt.NDArray[np.uint32]:
    """For each entry of the lists below `upto` the run that it joins: dimension << 8 | class, 0 for none."""
    joined = np.zeros(len(entries.row), np.uint32)
    if not (scales.shift_at >= 0).any():
        return joined
    rows = len(plan.access)
    waiting = Waiting(np.zeros(rows, np.uint32), np.zeros(rows, np.float32), np.zeros(rows, np.float32))
    reach = reaches(plan, coded, scales, likelihood)
    _weigh(start, plan, predicates, coded, scales, likelihood, reach, has_second, waiting)
    outlook = outlook_of(start, entries, plan, coded, scales, likelihood, sample)
    _join(entries, waiting, outlook, RUN, upto, joined)
    return joined


@lean_kernel
def _weigh(
    start: Any,
    plan: Any,
    predicates: Any,
    coded: Any,
    scales: Any,
    likelihood: Any,
    reach: Any,
    has_second: bool,
    waiting: Any,
) -> None:
    """Find the run that the filter predicate of each conjunction would allow, and its costs."""
    _, p_mode, p_start, p_lo, p_hi = predicates
    dimension, first, last, probability = coded.dimension, coded.first, coded.last, coded.probability
    cell, shift_at = scales.cell, scales.shift_at
    cumulative, presence = likelihood
    access, filters, second = plan.access, plan.filter, plan.second
    sides, listed, in_run = waiting
    for row in range(len(sides)):
        p = filters[row]
        if p < 0 or p_mode[p] != 0 or p_start[p + 1] - p_start[p] != 1:
            continue
        d = dimension[p]
        lo, hi = p_lo[p_start[p]], p_hi[p_start[p]]
        if d >= RANKED or shift_at[d] < 0 or lo == hi or (lo == KEY_MIN and hi == KEY_MAX):
            continue
        if hi == KEY_MAX:
            side = LOWER_RUN
        elif lo == KEY_MIN:
            side = UPPER_RUN
        else:
            side = BAND_RUN
            width = U64(hi) - U64(lo)
            while width > U64(1):
                width >>= U64(1)
                side += 1
        sides[row] = (U32(d) << U32(8)) | U32(side)
        passing = 1.0 * probability[p]
        if access[row] >= 0 and dimension[access[row]] == d:
            passing = min(1.0, passing / max(reach[row], 1e-9))
        also = 1.0
        if second[row] >= 0:
            also = hull_of(second[row], dimension[second[row]], first, last, cell, cumulative, presence)
        # The other predicates are checked by the record; where there are none, the run decides all.
        others = start[row + 1] - start[row] - 1 - I64(access[row] >= 0 and access[row] != p)
        in_run[row] = passing * (ENTRY + RECORD * also * I64(others > 0))
        listed[row] = ENTRY + RECORD * passing
        if has_second:
            listed[row] = ENTRY + SECOND + RECORD * passing * also


@kernel
def _join(entries: Any, waiting: Any, outlook: Any, price: float, upto: int, joined: Any) -> None:
    """Mark the entries of one list whose runs save more than their price."""
    lists, rows = entries
    sides, listed, in_run = waiting
    at = 0
    while at < len(lists) and lists[at] < upto:
        end = at
        while end < len(lists) and lists[end] == lists[at]:
            end += 1
        if end - at >= _SHORTEST:
            share = outlook.share if lists[at] < outlook.lists and end - at >= outlook.size else 1.0
            classes = sides[rows[at:end]]
            order = np.argsort(classes)
            begin = 0
            for i in range(1, len(order) + 1):
                if i == len(order) or classes[order[i]] != classes[order[begin]]:
                    if classes[order[begin]] != 0 and i - begin >= _SHORTEST:
                        saved = -price
                        for j in range(begin, i):
                            row = rows[at + order[j]]
                            saved += share * listed[row] - in_run[row]
                        if saved > 0.0:
                            for j in range(begin, i):
                                joined[at + order[j]] = classes[order[j]]
                    begin = i
        at = end


def sorted_runs(
    entries: Entries,
    joined: npt.NDArray[np.uint32],
    start: Any,
    plan: Plan,
    predicates: Any,
    coded: Coded,
    scales: Scales,
) -> tuple[Runs, npt.NDArray[np.int32]]:
    """Sort entries into the runs that they join; returns the runs, and the conjunctions in their order."""
    side = (joined & U32(0xFF)).astype(np.uint8)
    if len(entries.row) == 0:
        return _NO_RUNS, entries.row
    interval = predicates.start[plan.filter[entries.row]]
    lo, hi = predicates.lo[interval], predicates.hi[interval]
    key = np.where(side == UPPER_RUN, ~hi, lo)
    complete = np.empty(len(entries.row), np.bool_)
    _completes(entries.row, start, plan, predicates.mode, coded, scales, complete)
    order = np.lexsort((key, ~complete, joined, entries.list))
    lists, joined, complete = entries.list[order], joined[order], complete[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (lists[1:] != lists[:-1]) | (joined[1:] != joined[:-1]) | (complete[1:] != complete[:-1])
    first, side = np.flatnonzero(new), side[order]
    banded = side >= BAND_RUN
    runs = Runs(
        lists[first],
        (joined[first] >> U32(8)).astype(np.int32),
        side[first],
        complete[first],
        np.append(first, len(order)),
        key[order],
        hi[order][banded],
        (np.cumsum(banded) - banded - np.arange(len(banded)))[first],
    )
    return runs, entries.row[order]


@lean_kernel
def _completes(rows: Any, start: Any, plan: Any, mode: Any, coded: Any, scales: Any, complete: Any) -> None:
    """Whether list and run decide all predicates of a conjunction."""
    access, way, filters = plan.access, plan.way, plan.filter
    dimension, first, last, exact = coded.dimension, coded.first, coded.last, coded.exact
    spaces, shift_at = scales.spaces, scales.shift_at
    for i in range(len(rows)):
        row = rows[i]
        complete[i] = True
        for p in range(start[row], start[row + 1]):
            choice = deciding(access[row], mode), way[row], filters[row], _NONE
            if not is_settled(p, dimension[p], first, last, exact, spaces, shift_at, choice, True):
                complete[i] = False
