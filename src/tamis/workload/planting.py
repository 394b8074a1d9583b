"""Events that satisfy chosen subscriptions, for workloads whose subscriptions are drawn independently of events.

event         b=1  c=5  d=2  e=9  .        as it was drawn
subscription  a=7  AND  d IN (3, 4)        the one that it is planted for
planted       a=7  d=3  e=9  .    .        its first values replaced; a later value of the same attribute is left out
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from tamis.kernels.numbers import I32s, I64s
from tamis.workload.arrays import EventArrays, PredicateArrays, offsets, runs
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Draws, Stream
from tamis.workload.text.lines import first_places

_KEPT_BLOCKS = 8
"""Blocks of subscriptions kept for planting: each serves up to 10,000 events."""


class PlantedParameters(Protocol):
    """The parameters of a config that planting needs."""

    @property
    def seed(self) -> int: ...
    @property
    def subscriptions(self) -> int: ...
    @property
    def planted_share(self) -> float: ...


class Pairs(NamedTuple):
    """Events of different sizes: event i has the pairs of attribute and value from ptr[i] to ptr[i + 1]."""

    ptr: I64s
    attribute: I32s
    value: I64s


class PlantedDraws(Draws):
    """Draws independent subscriptions and events. A share of the events is planted: the first for subscription 0, and so on.

    The first literal of every predicate must be a value that satisfies it.
    """

    def __init__(self, config: PlantedParameters, event_size: int) -> None:
        super().__init__(config.seed, config.subscriptions, event_size)
        self._planted_share = config.planted_share
        self._kept_block = lru_cache(_KEPT_BLOCKS)(self.subscriptions)

    @abstractmethod
    def _drawn_events(self, stream: Stream, block: int) -> EventArrays:
        """EVENT_BLOCK events, none of them planted."""

    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        events = self._drawn_events(stream, block)
        return self._planted(events, block) if stream == Stream.EVENTS else events

    def _planted(self, events: EventArrays, block: int) -> EventArrays:
        number = block * EVENT_BLOCK + np.arange(EVENT_BLOCK)
        before, after = (np.floor(self._planted_share * each).astype(np.int64) for each in (number, number + 1))
        rows = np.flatnonzero(after > before)
        if not len(rows):
            return events
        wanted = self._values_of(before[rows] % self._subscriptions)
        sizes = np.diff(wanted.ptr)
        row = np.repeat(rows, sizes)
        column = runs(np.zeros(len(rows), np.int64), sizes)
        attribute, value = events.attribute.copy(), events.value.copy()
        attribute[row, column], value[row, column] = wanted.attribute, wanted.value
        return _distinct(EventArrays(attribute, value))

    def _values_of(self, subscriptions: I64s) -> Pairs:
        """For each of these subscriptions, values that satisfy its predicates."""
        blocks, within = np.divmod(subscriptions, SUBSCRIPTION_BLOCK)
        sizes, starts = np.empty(len(blocks), np.int64), np.empty(len(blocks), np.int64)
        parts: list[PredicateArrays] = []
        before = 0
        for block in np.unique(blocks).tolist():
            part, here = self._kept_block(block), blocks == block
            sizes[here] = np.diff(part.ptr)[within[here]]
            starts[here] = before + part.ptr[within[here]]
            before += len(part.attribute)
            parts.append(part)
        places = runs(starts, sizes)
        attribute = np.concatenate([part.attribute for part in parts])
        value = np.concatenate([part.literals[part.literal_ptr[:-1]] for part in parts])
        return Pairs(offsets(sizes), attribute[places], value[places])


def first_pairs(owner: I64s, attribute: I64s, value: I64s, rows: int) -> Pairs:
    """Pairs of some events, of which the first one with each attribute counts. Owners ascend."""
    places = first_places(owner, attribute, int(attribute.max(initial=0)) + 1)
    sizes = np.bincount(owner[places], minlength=rows)
    return Pairs(offsets(sizes), attribute[places].astype(np.int32), value[places])


def padded(pairs: Pairs, width: int) -> EventArrays:
    """Events with a row for each: its first `width` pairs. Attributes are -1 where an event has fewer."""
    sizes = np.minimum(np.diff(pairs.ptr), width)
    used = np.arange(width) < sizes[:, None]
    places = runs(pairs.ptr[:-1], sizes)
    attribute = np.full(used.shape, -1, np.int32)
    value = np.zeros(used.shape, np.int64)
    attribute[used] = pairs.attribute[places]
    value[used] = pairs.value[places]
    return EventArrays(attribute, value)


def _distinct(events: EventArrays) -> EventArrays:
    """The same events with the first value of each attribute, without gaps."""
    used = events.attribute >= 0
    owner = np.nonzero(used)[0]
    rows, width = used.shape
    return padded(first_pairs(owner, events.attribute[used].astype(np.int64), events.value[used], rows), width)
