"""Runs: parts of a list that are sorted by a bound.

Where the filter predicates of many entries of a list are ranges on one dimension that are open on the same side, they are
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

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.costs import ENTRY, RECORD, RUN, SECOND_WORD
from tamis.engine.layout.forecast import reaches
from tamis.engine.layout.guards import outlook_of
from tamis.engine.layout.lists import Entries
from tamis.engine.layout.plan import RANKED, SOME, Plan, deciding, hull_of, is_settled
from tamis.engine.layout.predicate_codes import Coded
from tamis.engine.layout.scale import MISSING, Scales
from tamis.engine.layout.statistics import Likelihood
from tamis.kernels.kernel import kernel, lean_kernel
from tamis.kernels.numbers import I64, U32, U64

LOWER_RUN, UPPER_RUN, BAND_RUN = 1, 2, 3
"""Classes of runs; bands are parted by width: BAND_RUN + n is of widths from 2**n to 2**(n + 1)."""
_SHORTEST = 16
"""Entries, whatever they would save."""
_NONE = -1


class Runs(NamedTuple):
    """Runs in the order of their lists; the entries of run r are `start[r]` to `start[r + 1]`."""

    list: npt.NDArray[np.int64]
    dimension: npt.NDArray[np.int32]
    side: npt.NDArray[np.uint8]
    """LOWER_RUN, UPPER_RUN or BAND_RUN + n."""
    complete: npt.NDArray[np.bool_]
    """Nothing is left to check: references are rows, and there are no filter words to look at."""
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
    """For each conjunction: which run it could be in, and what it costs an event that meets its list."""

    kind: npt.NDArray[np.uint32]
    """Dimension << 8 | is anything left to check? << 7 | class of the run that its filter predicate would allow, 0 for none."""
    listed: npt.NDArray[np.float32]
    """Nanoseconds, in the list itself and in the run, which is found besides."""
    in_run: npt.NDArray[np.float32]
    guarded: npt.NDArray[np.bool_]
    """Whether it asks about dimensions that events may lack, besides that of its list."""


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
    """For each entry of the lists below `upto` the kind of run that it joins, see `Waiting`; 0 for none."""
    joined = np.zeros(len(entries.row), np.uint32)
    if not (scales.shift_at >= 0).any():
        return joined
    rows = len(plan.access)
    waiting = Waiting(
        np.zeros(rows, np.uint32), np.zeros(rows, np.float32), np.zeros(rows, np.float32), np.zeros(rows, np.bool_)
    )
    reach = reaches(plan, coded, scales, likelihood)
    _weigh(start, plan, predicates, coded, scales, likelihood, reach, has_second, waiting)
    if not waiting.kind.any():
        return joined
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
    dimension, first, last, exact = coded.dimension, coded.first, coded.last, coded.exact
    spaces, cell, shift_at = scales.spaces, scales.cell, scales.shift_at
    cumulative, presence = likelihood
    access, way, filters, second = plan.access, plan.way, plan.filter, plan.second
    kinds, listed, in_run, guarded = waiting
    for row in range(len(kinds)):
        p = filters[row]
        if p < 0 or p_mode[p] != SOME or p_start[p + 1] - p_start[p] != 1:
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
        own = dimension[access[row]] if access[row] >= 0 else _NONE
        passing = 1.0 * coded.probability[p]
        if own == d:
            passing = min(1.0, passing / max(reach[row], 1e-9))
        also = 1.0
        if second[row] >= 0:
            also = hull_of(second[row], dimension[second[row]], first, last, cell, cumulative, presence)
        choice = deciding(access[row], p_mode), way[row], p, second[row]
        complete, recorded = True, False
        for q in range(start[row], start[row + 1]):
            settled = is_settled(q, dimension[q], first, last, exact, spaces, shift_at, choice, True)
            recorded = recorded or not settled
            complete = complete and settled and q != second[row]
            guarded[row] = guarded[row] or (dimension[q] != own and first[q] != MISSING)
        kinds[row] = (U32(d) << U32(8)) | (U32(not complete) << U32(7)) | U32(side)
        in_run[row] = passing * (ENTRY + RECORD * also * I64(recorded))
        listed[row] = ENTRY + RECORD * passing
        if has_second:
            listed[row] = ENTRY + SECOND_WORD + RECORD * passing * also


@kernel
def _join(entries: Any, waiting: Any, outlook: Any, price: float, upto: int, joined: Any) -> None:
    """Mark the entries of each list whose runs save more than their price."""
    lists, rows = entries
    kinds, listed, in_run, guarded = waiting
    at = 0
    while at < len(lists) and lists[at] < upto:
        end = at
        while end < len(lists) and lists[end] == lists[at]:
            end += 1
        if end - at >= _SHORTEST:
            share = outlook.share if lists[at] < outlook.lists and end - at >= outlook.size else 1.0
            own = kinds[rows[at:end]]
            order = np.argsort(own)
            begin = 0
            for i in range(1, len(order) + 1):
                if i == len(order) or own[order[i]] != own[order[begin]]:
                    if own[order[begin]] != 0 and i - begin >= _SHORTEST:
                        saved = -price
                        for j in range(begin, i):
                            row = rows[at + order[j]]
                            saved += (share if guarded[row] else 1.0) * listed[row] - in_run[row]
                        if saved > 0.0:
                            for j in range(begin, i):
                                joined[at + order[j]] = own[order[j]]
                    begin = i
        at = end


def sorted_runs(
    entries: Entries, joined: npt.NDArray[np.uint32], plan: Plan, predicates: Predicates
) -> tuple[Runs, npt.NDArray[np.int32]]:
    """Sort entries into the runs that they join; returns the runs, and the conjunctions in their order."""
    side = (joined & U32(0x7F)).astype(np.uint8)
    if len(entries.row) == 0:
        return _NO_RUNS, entries.row
    interval = predicates.start[plan.filter[entries.row]]
    lo, hi = predicates.lo[interval], predicates.hi[interval]
    key = np.where(side == UPPER_RUN, ~hi, lo)
    order = np.lexsort((key, joined, entries.list))
    lists, joined, side = entries.list[order], joined[order], side[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (lists[1:] != lists[:-1]) | (joined[1:] != joined[:-1])
    first = np.flatnonzero(new)
    banded = side >= BAND_RUN
    runs = Runs(
        lists[first],
        (joined[first] >> U32(8)).astype(np.int32),
        side[first],
        (joined[first] & U32(0x80)) == 0,
        np.append(first, len(order)),
        key[order],
        hi[order][banded],
        (np.cumsum(banded) - banded - np.arange(len(banded)))[first],
    )
    return runs, entries.row[order]
