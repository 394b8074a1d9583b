"""Event statistics: how likely an event has some attributes (mu), and how likely it satisfies equalities (nu).

    present     for each dimension, how many recent events had it
    distinct    for each dimension, how many different keys these events had
    seen        (dimension, key) -> how many events had it
    having      for each dimension, a bit for each event that had it

mu(A) is the share of events that have all attributes of A. nu(d = k) is mu(d) times the share of k among the keys of d. Each key
is counted once more than it was seen, so a key never seen is unlikely, but possible. nu is 0 only if no event had d at all. For
several equalities, nu takes keys to be independent, but not attributes. Before the first event, mu is 1, and nu is the share of
`d = k` among the equalities on d of the subscriptions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.kernels.ranges import span_indices
from tamis.papers.parts import pair_map
from tamis.papers.parts.pair_map import PairArrays, PairMap

_MOST = 1024
"""Latest events remembered."""


class StatisticsArrays(NamedTuple):
    """The statistics as kernels take them."""

    events: int
    present: I64s
    distinct: I64s
    seen: PairArrays


class EventStatistics:
    """What was learnt from events."""

    def __init__(self) -> None:
        nothing = np.zeros(0, np.int64)
        self._batch = EventBatch(np.zeros(1, np.int64), np.zeros(0, np.int32), nothing, nothing)
        self._present = self._distinct = nothing
        self.seen = PairMap()
        self._having: Bools = np.zeros((0, 0), np.bool_)
        self._mu: dict[tuple[int, ...], float] = {}

    @property
    def events(self) -> int:
        return len(self._batch.start) - 1

    @property
    def nbytes(self) -> int:
        arrays = (*self._batch, self._present, self._distinct, self._having)
        return self.seen.nbytes + sum(array.nbytes for array in arrays)

    def view(self) -> StatisticsArrays:
        return StatisticsArrays(self.events, self._present, self._distinct, self.seen.view())

    def observe(self, batch: EventBatch, dimensions: int) -> None:
        """Learn from more events."""
        self._batch = _last(_joined(self._batch, batch))
        self._mu = {}
        start, dimension, lo, hi = self._batch
        event = np.repeat(np.arange(self.events), np.diff(start))
        dimensions = max(dimensions, len(self._present))
        self._having = np.zeros((dimensions, self.events), np.bool_)
        self._having[dimension, event] = True
        self._present = self._having.sum(axis=1)
        is_key = lo == hi
        order = np.lexsort((event[is_key], lo[is_key], dimension[is_key]))
        d, key, e = dimension[is_key][order], lo[is_key][order], event[is_key][order]
        other = np.append(True, (d[1:] != d[:-1]) | (key[1:] != key[:-1])) if len(d) else np.zeros(0, np.bool_)
        once = other | np.append(True, e[1:] != e[:-1])[: len(d)]
        first = np.flatnonzero(other)
        counts = np.add.reduceat(once.astype(np.int64), first) if len(first) else np.zeros(0, np.int64)
        self._distinct = np.bincount(d[first], minlength=dimensions).astype(np.int64)
        self.seen = PairMap()
        self.seen.reserve(len(first))
        _count(self.seen.view(), d[first], key[first], counts)

    def mu(self, schema: Sequence[int]) -> float:
        """The probability that an event has all dimensions of a schema."""
        if self.events == 0:
            return 1.0
        key = tuple(schema)
        if key not in self._mu:
            known = max(schema) < len(self._present)
            self._mu[key] = float(self._having[list(schema)].all(axis=0).mean()) if known else 0.0
        return self._mu[key]

    def dependence(self, schema: Sequence[int]) -> float:
        """The factor between the product of the nu of single equalities and the nu of all of them together."""
        if self.events == 0:
            return 1.0
        together = self.mu(schema)
        apart = math.prod(self.mu([d]) for d in schema)
        return together / apart if apart > 0 else 0.0


def _joined(one: EventBatch, other: EventBatch) -> EventBatch:
    used = span_indices(other.start[:-1], np.diff(other.start))
    return EventBatch(
        np.append(one.start, one.start[-1] + np.cumsum(np.diff(other.start))),
        np.concatenate([one.dimension, other.dimension[used]]),
        np.concatenate([one.lo, other.lo[used]]),
        np.concatenate([one.hi, other.hi[used]]),
    )


def _last(batch: EventBatch) -> EventBatch:
    start = batch.start[-_MOST - 1 :]
    used = slice(start[0], None)
    return EventBatch(start - start[0], batch.dimension[used].copy(), batch.lo[used].copy(), batch.hi[used].copy())


@lean_kernel
def _count(seen: PairArrays, dimension: I32s, key: I64s, counts: I64s) -> None:
    for i in range(len(key)):
        pair_map.enter(seen, pair_map.pair_place(seen, dimension[i], key[i]), dimension[i], key[i], counts[i])


@inlined
def nu_of(statistics: StatisticsArrays, d: int, key: int, share: float) -> float:
    """The probability that an event satisfies an equality; it is `share` if no events are known."""
    events = statistics.events
    if events == 0:
        return share
    if d >= len(statistics.present):
        return 0.0
    present, count = statistics.present[d], max(pair_map.value_of(statistics.seen, d, key), 0)
    # Count each key once more than it was seen, and one key that was never seen.
    return present / events * (count + 1) / (present + statistics.distinct[d] + 1)
