"""Events in keys: a batch is a table of (dimension, key interval) values, row by row.

    event       e0             e1       e2
    start       0              3        4     4       values of e: start[e] .. start[e + 1]; e2 has none
    dimension   7    7    12   3
    lo          10   40   5    8
    hi          10   40   5    9                      hi > lo where the value is an Interval

Invariant: the values of one dimension stand next to each other within a row. Only dimensions that predicates ask about occur.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions import Dimension, Dimensions, Facets
from tamis.encoding.kernel import inlined
from tamis.encoding.leaf import Mode
from tamis.language.event import FlatEvent, kind_of_value
from tamis.language.values import Interval, Kind

_SOME = int(Mode.SOME)
_ABSENT = int(Mode.ABSENT)


class EventBatch(NamedTuple):
    """A batch of events as kernels read it."""

    start: npt.NDArray[np.int64]
    dimension: npt.NDArray[np.int32]
    lo: npt.NDArray[np.int64]
    hi: npt.NDArray[np.int64]


class EncodedEvents(NamedTuple):
    """A batch, and how many values had a kind that no predicate on their attribute asks for."""

    batch: EventBatch
    mismatched: int


def has_several(batch: EventBatch) -> bool:
    """Whether some event has several keys in one dimension, which then stand next to each other."""
    repeated = batch.dimension[1:] == batch.dimension[:-1]
    starts = batch.start[1:-1]
    repeated[starts[(starts > 0) & (starts < len(batch.dimension))] - 1] = False  # neighbours of different events
    return bool(repeated.any())


def encode_flat(events: Sequence[FlatEvent], dimensions: Dimensions) -> EncodedEvents:
    """Encode events in the normal form of `language.event`, value by value."""
    writer = _Writer(dimensions)
    for event in events:
        writer.add(event)
    return writer.finish()


class _Writer:
    """Collects the values of event after event."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._facets = dimensions.by_attribute
        self._start = [0]
        self._dimension: list[int] = []
        self._lo: list[int] = []
        self._hi: list[int] = []
        self._mismatched = 0

    def add(self, event: FlatEvent) -> None:
        for attribute, values in event.items():
            facets = self._facets.get(attribute)
            if facets is None:
                continue
            if facets.presence is not None:
                self._put(facets.presence, (0,))
            if len(values) == 1:
                value = values[0]
                # One number for which there is a dimension is by far the most frequent case.
                if (type(value) is int or type(value) is float) and facets.number is not None:
                    key = facets.number.key(value)
                    self._dimension.append(facets.number.number)
                    self._lo.append(key)
                    self._hi.append(key)
                else:
                    self._one_kind(facets, values, value)
            else:
                by_kind: dict[Kind | None, list[Any]] = {}
                for value in values:
                    by_kind.setdefault(kind_of_value(value), []).append(value)
                for same in by_kind.values():
                    self._one_kind(facets, same, same[0])
        self._start.append(len(self._lo))

    def _one_kind(self, facets: Facets, values: Iterable[Any], first: Any) -> None:
        """The values of an attribute that are of one kind."""
        kind = kind_of_value(first)
        assert kind is not None
        if kind is Kind.STRING:
            for text in facets.texts:
                self._put(text, [text.key(value) for value in values])
            for pattern in facets.patterns:
                hits = [pattern.hits(value) for value in values]
                self._put(pattern, sorted(set().union(*hits)))
        else:
            dimension = getattr(facets, kind.value)
            if dimension is not None:
                self._put_scalars(dimension, values)
        if not facets.asks_for(kind) and not facets.only_presence():
            self._mismatched += sum(1 for _ in values)

    def _put_scalars(self, dimension: Dimension, values: Iterable[Any]) -> None:
        for value in values:
            self._dimension.append(dimension.number)
            if isinstance(value, Interval):
                self._lo.append(dimension.key(value.lo))
                self._hi.append(dimension.key(value.hi))
            else:
                key = dimension.key(value)
                self._lo.append(key)
                self._hi.append(key)

    def _put(self, dimension: Dimension, keys: Sequence[int]) -> None:
        self._dimension.extend([dimension.number] * len(keys))
        self._lo.extend(keys)
        self._hi.extend(keys)

    def finish(self) -> EncodedEvents:
        batch = EventBatch(
            np.array(self._start, np.int64),
            np.array(self._dimension, np.int32),
            np.array(self._lo, np.int64),
            np.array(self._hi, np.int64),
        )
        return EncodedEvents(batch, self._mismatched)


@inlined
def load(batch: Any, event: int, first: Any, count: Any) -> None:
    """Note where the values of each dimension of one event lie."""
    for v in range(batch.start[event], batch.start[event + 1]):
        dimension = batch.dimension[v]
        if count[dimension] == 0:
            first[dimension] = v
        count[dimension] += 1


@inlined
def unload(batch: Any, event: int, count: Any) -> None:
    """Forget what `load` noted."""
    for v in range(batch.start[event], batch.start[event + 1]):
        count[batch.dimension[v]] = 0


@inlined
def holds(predicates: Any, p: int, batch: Any, first: Any, count: Any) -> Any:
    """Whether a predicate is true of the event that is loaded."""
    dimension = predicates.dimension[p]
    mode = predicates.mode[p]
    values = count[dimension]
    if mode == _ABSENT:
        return values == 0
    if values == 0:
        return False
    found = False
    for v in range(first[dimension], first[dimension] + values):
        if _meets(predicates.lo, predicates.hi, predicates.start[p], predicates.start[p + 1], batch.lo[v], batch.hi[v]):
            found = True
            break
    return found == (mode == _SOME)


@inlined
def _meets(lows: Any, highs: Any, start: int, end: int, lo: int, hi: int) -> Any:
    """Whether [lo, hi] meets one of the sorted, disjoint intervals start .. end."""
    if end - start == 1:
        return lows[start] <= hi and lo <= highs[start]
    last = end
    while start < end:  # find the first interval that ends at or behind lo
        middle = (start + end) // 2
        if highs[middle] < lo:
            start = middle + 1
        else:
            end = middle
    return start < last and lows[start] <= hi
