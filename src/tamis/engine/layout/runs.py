"""Runs: parts of a list that are sorted by a bound.

Many entries of a list may have filter predicates that are ranges on one dimension, open on the same side. These entries are
sorted by the bound. An event's value cuts off a prefix, and the event never touches the entries that it does not satisfy.

    symbol = 'A' and price > p      list of A:  p = 1.5  2.0  2.0  7.25 | 9.5  11.0          an event with price = 8

Ranges with two ends form *bands*: they are sorted by the lower end, and the upper ends lie beside.

Finding a run and its end costs an event as much as visiting about fifty entries, even if the event satisfies none. So runs are
made if they save more than that. They save little if events skip most of a list anyway (see `guards`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.costs import ENTRY, RECORD, SECOND_WORD, Costs
from tamis.engine.layout.forecast import reaches
from tamis.engine.layout.guards import GuardedLists, Outlook
from tamis.engine.layout.lists import Entries
from tamis.engine.layout.plan import RANKED, SOME, Choice, Plan, deciding, hull_of, is_settled
from tamis.engine.layout.predicate_codes import CodedTable, read_table
from tamis.engine.layout.scale import MISSING, Keys
from tamis.kernels.fields import packed_fields
from tamis.kernels.kernel import inlined, kernel, lean_kernel
from tamis.kernels.numbers import I64, U32, U64, Bools, F64s, I32s, I64s, U8s, U32s
from tamis.kernels.packed import Packed

LOWER_RUN, UPPER_RUN, BAND_RUN = 1, 2, 3
"""Sides of runs. Bands are grouped by width: BAND_RUN + n has widths from 2**n to 2**(n + 1)."""
_DIMENSION_AT, _INCOMPLETE = 8, 1 << 7
_SIDE = _INCOMPLETE - 1
_SHORTEST = 16
"""Fewest entries of a run, even if a shorter one would save something."""
_NONE = -1


class Runs(NamedTuple):
    """Runs in the order of their lists. The entries of run r are `start[r]` to `start[r + 1]`."""

    list: I64s
    dimension: I32s
    side: U8s
    """LOWER_RUN, UPPER_RUN or BAND_RUN + n."""
    complete: Bools
    """Nothing is left to check: references are rows, and filter words are not tested."""
    start: I64s
    key: Keys
    """Ascending within a run: a lower bound, the complement of an upper bound, or the lower end of a band."""
    end: Keys
    """The upper ends of the entries of bands, one band after another."""
    end_shift: I64s
    """Run -> what to add to the place of an entry to get the place of its upper end, in a band."""


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

    kind: U32s
    """The kind of the run that its filter predicate allows, see `_kind_of`; 0: none."""
    listed: npt.NDArray[np.float32]
    """Nanoseconds in the list itself."""
    in_run: npt.NDArray[np.float32]
    """Nanoseconds in the run, without finding the run."""
    guarded: Bools
    """Whether it asks about dimensions that events may lack, besides that of its list."""


def find_runs(
    table: CodedTable,
    plan: Plan,
    entries: Entries,
    sample: EventBatch | None,
    has_second: bool,
    upto: int,
    costs: Costs,
) -> U32s:
    """For each entry of the lists below `upto`: the kind of run that it joins (see `Waiting`), 0 if none.

    `has_second`: entries of lists have a second filter word.
    """
    joined = np.zeros(len(entries.conjunction), np.uint32)
    if not (table.scales.shift_at >= 0).any():
        return joined
    rows = len(plan.access)
    waiting = Waiting(
        np.zeros(rows, np.uint32), np.zeros(rows, np.float32), np.zeros(rows, np.float32), np.zeros(rows, np.bool_)
    )
    _weigh(packed_fields(table), plan, reaches(table, plan), has_second, waiting)
    if waiting.kind.any():
        outlook = GuardedLists(table, plan, entries, sample, costs).outlook()
        _join(entries, waiting, outlook, costs.run, upto, joined)
    return joined


@lean_kernel
def _weigh(packed: Packed, plan: Plan, reach: F64s, has_second: bool, waiting: Waiting) -> None:
    """Find the run that the filter predicate of each conjunction would allow, and its costs."""
    table: CodedTable = read_table(packed)
    predicates, coded, scales = table.predicates, table.coded, table.scales
    for row in range(len(waiting.kind)):
        p, second, access = plan.filter[row], plan.second[row], plan.access[row]
        if p < 0 or predicates.mode[p] != SOME or predicates.start[p + 1] - predicates.start[p] != 1:
            continue
        d = coded.dimension[p]
        lo, hi = predicates.lo[predicates.start[p]], predicates.hi[predicates.start[p]]
        if d >= RANKED or scales.shift_at[d] < 0 or lo == hi or (lo == KEY_MIN and hi == KEY_MAX):
            continue
        own = coded.dimension[access] if access >= 0 else _NONE
        passing = 1.0 * coded.probability[p]
        if own == d:
            passing = min(1.0, passing / max(reach[row], 1e-9))
        also = hull_of(second, table) if second >= 0 else 1.0
        choice = Choice(deciding(access, predicates.mode), plan.way[row], p, second, True)
        complete, recorded = True, False
        for q in range(table.start[row], table.start[row + 1]):
            settled = is_settled(q, coded, scales, choice)
            recorded = recorded or not settled
            complete = complete and settled and q != second
            elsewhere = coded.dimension[q] != own and coded.first[q] != MISSING
            waiting.guarded[row] = waiting.guarded[row] or elsewhere
        waiting.kind[row] = _kind_of(d, complete, _side(lo, hi))
        waiting.in_run[row] = passing * (ENTRY + RECORD * also * I64(recorded))
        waiting.listed[row] = ENTRY + RECORD * passing
        if has_second:
            waiting.listed[row] = ENTRY + SECOND_WORD + RECORD * passing * also


@inlined
def _side(lo: int, hi: int) -> int:
    """The side of the run for a range that is not open on both sides."""
    if hi == KEY_MAX:
        return LOWER_RUN
    if lo == KEY_MIN:
        return UPPER_RUN
    side, width = BAND_RUN, U64(hi) - U64(lo)
    while width > U64(1):
        width >>= U64(1)
        side += 1
    return side


@inlined
def _kind_of(dimension: int, complete: bool, side: int) -> np.uint32:
    """dimension << _DIMENSION_AT | _INCOMPLETE, if something is left to check | side."""
    return (U32(dimension) << U32(_DIMENSION_AT)) | (U32(0) if complete else U32(_INCOMPLETE)) | U32(side)


@inlined
def lowest_begin(side: int, key: int) -> int:
    """The lowest lower end that an entry of a run of bands may have if its upper end is not below a key."""
    widest = side - BAND_RUN + 1
    return KEY_MIN if widest >= 63 or key < KEY_MIN + (1 << widest) else key - (1 << widest)


@kernel
def _join(entries: Entries, waiting: Waiting, outlook: Outlook, price: float, upto: int, joined: U32s) -> None:
    """Mark the entries of each list whose runs save more than their price."""
    lists, conjunctions, kinds = entries.list, entries.conjunction, waiting.kind
    listed, in_run, guarded = waiting.listed, waiting.in_run, waiting.guarded
    at = 0
    while at < len(lists) and lists[at] < upto:
        end = at
        while end < len(lists) and lists[end] == lists[at]:
            end += 1
        if end - at >= _SHORTEST:
            share = outlook.share if lists[at] < outlook.lists and end - at >= outlook.size else 1.0
            own = kinds[conjunctions[at:end]]
            order = np.argsort(own)
            begin = 0
            for i in range(1, len(order) + 1):
                if i == len(order) or own[order[i]] != own[order[begin]]:
                    if own[order[begin]] != 0 and i - begin >= _SHORTEST:
                        saved = -price
                        for j in range(begin, i):
                            c = conjunctions[at + order[j]]
                            saved += (share if guarded[c] else 1.0) * listed[c] - in_run[c]
                        if saved > 0.0:
                            for j in range(begin, i):
                                joined[at + order[j]] = own[order[j]]
                    begin = i
        at = end


def sorted_runs(entries: Entries, joined: U32s, plan: Plan, predicates: Predicates) -> tuple[Runs, I32s]:
    """Sort entries into the runs that they join; returns the runs, and the conjunctions of their entries."""
    side = (joined & U32(_SIDE)).astype(np.uint8)
    if len(entries.conjunction) == 0:
        return _NO_RUNS, entries.conjunction
    interval = predicates.start[plan.filter[entries.conjunction]]
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
        (joined[first] >> U32(_DIMENSION_AT)).astype(np.int32),
        side[first],
        (joined[first] & U32(_INCOMPLETE)) == 0,
        np.append(first, len(order)),
        key[order],
        hi[order][banded],
        (np.cumsum(banded) - banded - np.arange(len(banded)))[first],
    )
    return runs, entries.conjunction[order]
