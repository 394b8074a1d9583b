"""Deriving subscriptions from base events (BE-Tree 7.1): each keeps some predicates of its event and turns some into others."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Protocol

import numpy as np

from tamis.kernels.numbers import Bools, I32s, I64s, U8s
from tamis.workload.arrays import EventArrays, PredicateArrays, offsets
from tamis.workload.config import OperatorClass
from tamis.workload.draw import SUBSCRIPTION_BLOCK, Draws, Stream
from tamis.workload.implied import IMPLIED, Literals, implied_literals, implied_operators

KEPT_EVENT_BLOCKS = 500
"""Blocks of base events kept for reuse: half a million events, some 180 MB at 30 attributes."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio's fractional part, as a share of 2**64."""


class DerivedParameters(Protocol):
    """The parameters of a config that deriving needs."""

    @property
    def seed(self) -> int: ...
    @property
    def subscriptions(self) -> int: ...
    @property
    def subscription_size(self) -> float: ...
    @property
    def event_size(self) -> int: ...
    @property
    def cardinality(self) -> int: ...
    @property
    def match_probability(self) -> float: ...
    @property
    def equality_ratio(self) -> float: ...
    @property
    def operator_class(self) -> OperatorClass: ...
    @property
    def range_share(self) -> float: ...
    @property
    def base_events(self) -> int: ...
    @property
    def divides_evenly(self) -> bool: ...


class DerivedDraws(Draws):
    """Draws subscriptions that are derived from events.

    A subscription's number determines its base event (`base_of`), so a worker that makes some of the blocks draws only the base
    events that it needs.
    """

    def __init__(self, config: DerivedParameters) -> None:
        super().__init__(config.seed, config.subscriptions, config.event_size)
        self._parameters = config
        self._base_block = lru_cache(KEPT_EVENT_BLOCKS)(lambda block: self._event_block(Stream.EVENTS, block))

    def events(self, rows: I64s) -> EventArrays:
        """The events with these numbers. The base events repeat."""
        return self._pick(rows % self._parameters.base_events, self._base_block)

    def base_of(self, subscriptions: I64s) -> I64s:
        """The number of the base event of each of these subscriptions.

        The base events take turns. If their number times the match probability is less than 1, the multiples of the golden
        ratio, modulo 1, choose the base event: they fill each share evenly. The remaining subscriptions get the event after the
        last base event.
        """
        config = self._parameters
        if config.divides_evenly:
            return subscriptions % config.base_events
        fractions = (subscriptions.astype(np.uint64) * _GOLDEN) / 2.0**64
        return np.minimum(fractions / config.match_probability, config.base_events).astype(np.int64)

    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        config = self._parameters
        base = self._bases(self.base_of(first + np.arange(SUBSCRIPTION_BLOCK)))
        kept = self._keep(rng, base)
        attribute, values = base.attribute[kept], base.value[kept]
        operators = implied_operators(rng, len(values), config.equality_ratio, IMPLIED[config.operator_class])
        prefix = self._prefixes(rng, attribute, operators)
        literals = implied_literals(rng, operators, values, config.cardinality, config.range_share)
        return predicates(kept, attribute, operators, literals, prefix)

    def _bases(self, rows: I64s) -> EventArrays:
        """What the subscriptions of the base events with these numbers are derived from: usually the events themselves."""
        return self._pick(rows, self._base_block)

    def _keep(self, rng: np.random.Generator, base: EventArrays) -> Bools:
        """Which predicates of its event each subscription keeps: each with the same probability, and at least one."""
        rows, size = base.attribute.shape
        kept: Bools = rng.random((rows, size)) < _keep_probability(size, self._parameters.subscription_size)
        empty = np.flatnonzero(~kept.any(axis=1))
        kept[empty, rng.integers(0, size, len(empty))] = True
        return kept

    def _prefixes(self, rng: np.random.Generator, attribute: I32s, operators: U8s) -> U8s:
        """Turn some predicates into LIKE, in place. Returns how many characters each pattern keeps, 0 for the others."""
        return np.zeros(len(attribute), np.uint8)

    @abstractmethod
    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        """EVENT_BLOCK events."""


def predicates(kept: Bools, attribute: I32s, operators: U8s, literals: Literals, prefix: U8s) -> PredicateArrays:
    """The arrays of some subscriptions. `kept` has a row for each, with one true value for each of its predicates."""
    ptr = offsets(np.count_nonzero(kept, axis=1))
    return PredicateArrays(ptr, attribute, operators, literals.ptr, literals.values, prefix)


def _keep_probability(size: int, mean: float) -> float:
    """The probability p that keeps `mean` of `size` predicates, at least one: size p + (1 - p)**size = mean."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if size * middle + (1 - middle) ** size < mean:
            low = middle
        else:
            high = middle
    return high
