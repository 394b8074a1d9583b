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
    """A batch, and how often an event had an attribute but no value of a kind that some predicate on it asks for."""

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
                    self._mismatched += len(facets.asked) > 1
                    continue
            by_kind: dict[Kind | None, list[Any]] = {}
            for value in values:
                by_kind.setdefault(kind_of_value(value), []).append(value)
            for kind, same in by_kind.items():
                self._one_kind(facets, kind, same)
            self._mismatched += not facets.asked <= by_kind.keys()
        self._start.append(len(self._lo))

    def _one_kind(self, facets: Facets, kind: Kind | None, values: Iterable[Any]) -> None:
        """The values of an attribute that are of one kind."""
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


# The helpers below take arrays, not the tuples that hold them, and kernels unpack those tuples before their loops: taking an
# array out of a tuple counts references, which made a scan of substring subscriptions six times slower.


@inlined
def load(start: Any, dimension: Any, event: int, first: Any, count: Any) -> None:
    """Note where the values of each dimension of one event lie."""
    for v in range(start[event], start[event + 1]):
        d = dimension[v]
        if count[d] == 0:
            first[d] = v
        count[d] += 1


@inlined
def unload(start: Any, dimension: Any, event: int, count: Any) -> None:
    """Forget what `load` noted."""
    for v in range(start[event], start[event + 1]):
        count[dimension[v]] = 0


@inlined
def holds(mode: int, lows: Any, highs: Any, begin: int, end: int, lo: Any, hi: Any, first: int, count: int) -> Any:
    """Whether a predicate is true of an event.

    `lows`, `highs` from `begin` to `end` are the intervals of the predicate; `lo`, `hi` from `first` on are the `count` values
    of the event in the predicate's dimension.
    """
    if mode == _ABSENT:
        return count == 0
    if count == 0:
        return False
    found = False
    for v in range(first, first + count):
        at, last = begin, end
        while at < last:  # find the first interval that ends at or behind lo
            middle = (at + last) // 2
            if highs[middle] < lo[v]:
                at = middle + 1
            else:
                last = middle
        if at < end and lows[at] <= hi[v]:
            found = True
            break
    return found == (mode == _SOME)
