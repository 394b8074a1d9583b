"""`scan`: tests every conjunction against every event, up to the first predicate that fails.

It is the baseline of the papers (SCAN) and the yardstick of the other indexes. Its order makes it a fair one: the most selective
predicate of a conjunction is tested first. The bounds of this predicate lie in columns of their own, which are read from front to
back. Only survivors are looked up in the table. Selectivity comes from the events that `observe` saw before the conjunction was
inserted. Without events, it comes from operators and the width of their value sets (see `parts.past_events`).

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

from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.evaluation import EventPlaces, event_places, load_event, predicate_holds, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import kernel, lean_kernel
from tamis.kernels.numbers import UP, I32s, I64s
from tamis.kernels.ranges import span_indices
from tamis.papers.interface import Counters, Index, Matches
from tamis.papers.parts.past_events import History, by_selectivity

_DEAD = -1
_ANY = -2
_SOME = int(Mode.SOME)
_LOWEST_ROOM = 1024


class _Firsts(NamedTuple):
    """The most selective predicate of each conjunction."""

    dimension: I32s
    lo: I64s
    hi: I64s


class _Scratch(NamedTuple):
    """One event by dimension."""

    places: EventPlaces
    lowest: I64s
    """Its lowest and highest key: lowest > highest if it has no value there."""
    highest: I64s


class _Out(NamedTuple):
    """Pairs of event and conjunction, and how many predicates were evaluated."""

    events: I64s
    found: I32s
    evaluated: I64s


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

    def insert(self, conjunctions: I32s) -> None:
        missing = len(self.table) - len(self._dimension)
        if missing > 0:
            self._dimension.grow(missing, fill=_DEAD)
            self._lo.grow(missing, fill=KEY_MIN)
            self._hi.grow(missing, fill=KEY_MAX)
        table = self.table.view()
        self._order.grow(max(0, len(table.predicates.dimension) - len(self._order)))
        chosen, start = by_selectivity(table, conjunctions, self.history)
        self._order.view()[span_indices(table.start[conjunctions], np.diff(start))] = chosen
        _choose_first(table, conjunctions, self._order.view(), self._firsts())
        self._count += len(conjunctions)

    def _firsts(self) -> _Firsts:
        return _Firsts(self._dimension.view(), self._lo.view(), self._hi.view())

    def delete(self, conjunctions: I32s) -> None:
        self._dimension.view()[conjunctions] = _DEAD
        self._count -= len(conjunctions)
        if self._count == 0:
            self._clear()

    def observe(self, batch: EventBatch, dimensions: int) -> None:
        self.history.observe(batch)

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        events: list[I64s] = []
        found: list[I32s] = []
        evaluated = np.zeros(1, np.int64)
        scratch = _Scratch(event_places(dimensions), np.full(dimensions, KEY_MAX), np.full(dimensions, KEY_MIN))
        firsts, order, table = self._firsts(), self._order.view(), self.table.view()
        event, conjunction, room = 0, 0, _LOWEST_ROOM
        while event < len(batch.start) - 1:
            out = _Out(np.empty(room, np.int64), np.empty(room, np.int32), evaluated)
            event, conjunction, filled = _scan(firsts, order, table, batch, event, conjunction, scratch, out)
            events.append(out.events[:filled])
            found.append(out.found[:filled])
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
def _choose_first(table: Conjunctions, conjunctions: I32s, order: I32s, firsts: _Firsts) -> None:
    """Note the most selective predicate of each conjunction that limits the values to a set."""
    predicates = table.predicates
    for c in conjunctions:
        firsts.dimension[c], firsts.lo[c], firsts.hi[c] = _ANY, KEY_MIN, KEY_MAX
        for i in range(table.start[c], table.start[c + 1]):
            p = order[i]
            if predicates.mode[p] == _SOME:
                firsts.dimension[c] = predicates.dimension[p]
                firsts.lo[c] = predicates.lo[predicates.start[p]]
                firsts.hi[c] = predicates.hi[predicates.start[p + 1] - 1]
                break


# Not a lean kernel: that one took 1.09 times as long.
@kernel
def _scan(
    firsts: _Firsts,
    order: I32s,
    table: Conjunctions,
    batch: EventBatch,
    event: int,
    c: int,
    scratch: _Scratch,
    out: _Out,
) -> tuple[int, int, int]:
    """Scan from an event and a conjunction on, until the output is full; returns where the scan stopped."""
    tested, filled = 0, 0
    while event < len(batch.start) - 1:
        load_event(batch, event, scratch.places)
        # `engine.delta` does the same. Sharing the helpers, or only the tuple of both arrays, made a scan take 1.14 to 1.27 times
        # as long, in each of five forms.
        for v in range(batch.start[event], batch.start[event + 1]):
            d = batch.dimension[v]
            scratch.lowest[d] = min(scratch.lowest[d], batch.lo[v])
            scratch.highest[d] = max(scratch.highest[d], batch.hi[v])
        while c < len(firsts.dimension) and filled < len(out.found):
            d = firsts.dimension[UP(c)]
            if d >= 0:
                tested += 1
                matched = firsts.lo[UP(c)] <= scratch.highest[UP(d)] and scratch.lowest[UP(d)] <= firsts.hi[UP(c)]
            else:
                matched = d == _ANY
            if matched:
                for i in range(table.start[c], table.start[c + 1]):
                    tested += 1
                    if not predicate_holds(order[i], table.predicates, batch, scratch.places):
                        matched = False
                        break
                if matched:
                    out.events[filled] = event
                    out.found[filled] = c
                    filled += 1
            c += 1
        unload_event(batch, event, scratch.places)
        for v in range(batch.start[event], batch.start[event + 1]):
            scratch.lowest[batch.dimension[v]] = KEY_MAX
            scratch.highest[batch.dimension[v]] = KEY_MIN
        if c < len(firsts.dimension):
            break
        event += 1
        c = 0
    out.evaluated[0] += tested
    return event, c, filled
