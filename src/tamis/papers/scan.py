"""`scan`: tests every conjunction against every event, up to the first predicate that fails.

It is the baseline of all five papers (SCAN) and the yardstick of the other indexes. Its order makes it a fair one: the most
selective predicate of a conjunction is tested first. The bounds of this predicate lie in columns of their own, which are read
from front to back; only survivors are looked up in the table. Selectivity comes from the events that `observe` saw before the
conjunction was inserted. Without events, it comes from operators and the width of their value sets (see `parts.past_events`).

    conjunction   0     1       2      3
    dimension     7     DEAD    12     ANY       of the most selective predicate; ANY: nothing to test first
    lo            10            MIN    MIN       its lowest and highest key: necessary, not sufficient,
    hi            10            99     MAX       where it has several intervals

    order         1 0 2    4 3    5    7 6 8     the predicates of the table, within each conjunction the most selective first

Departures from the papers
- BE-Tree, section 7.2, says of its SCAN only that it goes through all subscriptions. The columns, and the order with the most
  selective predicate first, are ours.

Invariants: a row is DEAD unless it was inserted and not deleted; the order of any other row has each of its predicates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.events.event_batch import EventBatch, holds, load, unload
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import kernel, lean_kernel
from tamis.kernels.ranges import run_indices
from tamis.papers.interface import Counters, Index, Matches
from tamis.papers.parts.past_events import History, by_selectivity

_DEAD = -1
_ANY = -2
_SOME = int(Mode.SOME)
_LOWEST_ROOM = 1024


class Scan(Index):
    """Looks at every conjunction."""

    name = "scan"
    summary = "looks at every conjunction; no structure, no surprises"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.history = History()
        self._clear()

    def _clear(self) -> None:
        self._dimension = GrowingArray(np.int32)
        self._lo = GrowingArray(np.int64)
        self._hi = GrowingArray(np.int64)
        self._order = GrowingArray(np.int32)
        self._count = 0

    def insert(self, conjunctions: npt.NDArray[np.int32]) -> None:
        missing = len(self.table) - len(self._dimension)
        if missing > 0:
            self._dimension.grow(missing, fill=_DEAD)
            self._lo.grow(missing, fill=KEY_MIN)
            self._hi.grow(missing, fill=KEY_MAX)
        table = self.table.view()
        self._order.grow(max(0, len(table.predicates.dimension) - len(self._order)))
        chosen, start = by_selectivity(table, conjunctions, self.history)
        self._order.view()[run_indices(table.start[conjunctions], np.diff(start))] = chosen
        _choose_first(table, conjunctions, self._order.view(), self._firsts())
        self._count += len(conjunctions)

    def _firsts(self) -> tuple[npt.NDArray[Any], ...]:
        return self._dimension.view(), self._lo.view(), self._hi.view()

    def delete(self, conjunctions: npt.NDArray[np.int32]) -> None:
        self._dimension.view()[conjunctions] = _DEAD
        self._count -= len(conjunctions)
        if self._count == 0:
            self._clear()

    def observe(self, batch: EventBatch, dimensions: int) -> None:
        self.history.observe(batch)

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        events: list[npt.NDArray[np.int64]] = []
        found: list[npt.NDArray[np.int32]] = []
        evaluated = np.zeros(1, np.int64)
        event, conjunction, room = 0, 0, _LOWEST_ROOM
        while event < len(batch.start) - 1:
            event_part, found_part = np.empty(room, np.int64), np.empty(room, np.int32)
            event, conjunction, filled = _scan(
                self._firsts(),
                self._order.view(),
                self.table.view(),
                batch,
                dimensions,
                (event, conjunction),
                (event_part, found_part, evaluated),
            )
            events.append(event_part[:filled])
            found.append(found_part[:filled])
            room *= 2
        return Matches(
            np.concatenate(events) if events else np.zeros(0, np.int64),
            np.concatenate(found) if found else np.zeros(0, np.int32),
            Counters(candidates=self._count * (len(batch.start) - 1), predicates=int(evaluated[0])),
        )

    def stats(self) -> dict[str, Any]:
        columns = (self._dimension, self._lo, self._hi, self._order, self.history)
        return {"conjunctions": self._count, "bytes": sum(column.nbytes for column in columns)}

    def check(self) -> None:
        live = np.flatnonzero(self._dimension.view() != _DEAD)
        assert len(live) == self._count
        start, order = self.table.view().start, self._order.view()
        assert all(set(order[start[c] : start[c + 1]]) == set(range(start[c], start[c + 1])) for c in live)


@lean_kernel
def _choose_first(table: Any, conjunctions: Any, order: Any, firsts: Any) -> None:
    """Note the most selective predicate of each conjunction that limits the values to a set."""
    dimension, lo, hi = firsts
    predicates = table.predicates
    for c in conjunctions:
        dimension[c], lo[c], hi[c] = _ANY, KEY_MIN, KEY_MAX
        for i in range(table.start[c], table.start[c + 1]):
            p = order[i]
            if predicates.mode[p] == _SOME:
                dimension[c] = predicates.dimension[p]
                lo[c], hi[c] = predicates.lo[predicates.start[p]], predicates.hi[predicates.start[p + 1] - 1]
                break


@kernel
def _scan(
    firsts: Any, order: Any, table: Any, batch: Any, dimensions: int, place: Any, out: Any
) -> tuple[int, int, int]:
    """Scan from an event and a conjunction on, until the output is full; returns where the scan stopped."""
    dimension, lo, hi = firsts
    event, c = place
    events, found, evaluated = out
    conjunction_start, predicates = table
    p_dimension, p_mode, p_start, p_lo, p_hi = predicates
    v_start, v_dimension, v_lo, v_hi = batch
    tested = 0
    first, count = np.zeros(dimensions, np.int64), np.zeros(dimensions, np.int64)
    # The lowest and highest key of the event in each dimension; lowest > highest if the event has no value there.
    lowest, highest = np.full(dimensions, KEY_MAX), np.full(dimensions, KEY_MIN)
    filled = 0
    while event < len(v_start) - 1:
        load(v_start, v_dimension, event, first, count)
        for v in range(v_start[event], v_start[event + 1]):
            d = v_dimension[v]
            lowest[d] = min(lowest[d], v_lo[v])
            highest[d] = max(highest[d], v_hi[v])
        while c < len(dimension) and filled < len(found):
            d = dimension[c]
            if d >= 0:
                tested += 1
                matched = lo[c] <= highest[d] and lowest[d] <= hi[c]
            else:
                matched = d == _ANY
            if matched:
                for i in range(conjunction_start[c], conjunction_start[c + 1]):
                    p = order[i]
                    d = p_dimension[p]
                    tested += 1
                    if not holds(p_mode[p], p_lo, p_hi, p_start[p], p_start[p + 1], v_lo, v_hi, first[d], count[d]):
                        matched = False
                        break
                if matched:
                    events[filled] = event
                    found[filled] = c
                    filled += 1
            c += 1
        unload(v_start, v_dimension, event, count)
        for v in range(v_start[event], v_start[event + 1]):
            lowest[v_dimension[v]] = KEY_MAX
            highest[v_dimension[v]] = KEY_MIN
        if c < len(dimension):
            break
        event += 1
        c = 0
    evaluated[0] += tested
    return event, c, filled
