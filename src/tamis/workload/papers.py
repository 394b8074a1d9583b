"""Drawing the workloads of the papers: subscriptions derived from events (be-gen) or independent of them (op-index)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tamis.kernels.numbers import Bools, I32s, I64s, U8s
from tamis.language.operators import Operator
from tamis.workload.arrays import EventArrays, PredicateArrays, offsets
from tamis.workload.config import WorkloadConfig
from tamis.workload.domain import PaperDomain
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Draws, Stream
from tamis.workload.implied import CODE, IMPLIED, Literals, implied_literals, implied_operators
from tamis.workload.zipf import Popularity

_KEPT_EVENT_BLOCKS = 500
"""Blocks of base events kept for reuse: half a million events, some 180 MB at 30 attributes."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio's fractional part, as a share of 2**64."""


class PaperDraws(Draws):
    """Draws the subscriptions and events of a config.

    A subscription's number determines its base event (`base_of`), so a worker that makes some of the blocks draws only the base
    events that it needs.
    """

    def __init__(self, config: WorkloadConfig, domain: PaperDomain) -> None:
        super().__init__(config.seed, config.subscriptions, config.event_size)
        self._config = config
        self._domain = domain
        self._attributes = Popularity(config.dimensions, config.alpha)
        self._values = Popularity(config.cardinality, config.alpha if config.style == "op-index" else 0.0)
        self._base_block = lru_cache(_KEPT_EVENT_BLOCKS)(lambda block: self._event_block(Stream.EVENTS, block))

    def events(self, rows: I64s) -> EventArrays:
        """The events with these numbers. In style be-gen, the base events repeat."""
        if self._config.style == "be-gen":
            rows = rows % self._config.base_events
        return self._pick(rows, self._base_block)

    def base_of(self, subscriptions: I64s) -> I64s:
        """The number of the base event of each of these subscriptions.

        The base events take turns. If their number times the match probability is less than 1, the multiples of the golden
        ratio, modulo 1, choose the base event: they fill each share evenly. The remaining subscriptions get the event after the
        last base event.
        """
        if self._config.divides_evenly:
            return subscriptions % self._config.base_events
        fractions = (subscriptions.astype(np.uint64) * _GOLDEN) / 2.0**64
        return np.minimum(fractions / self._config.match_probability, self._config.base_events).astype(np.int64)

    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        return self._derived(rng, first) if self._config.style == "be-gen" else self._independent(rng)

    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        rng = self._rng(stream, block)
        attribute = self._attributes.draw_distinct(rng, EVENT_BLOCK, self._config.event_size)
        return EventArrays(attribute.astype(np.int32), 1 + self._values.draw(rng, attribute.shape))

    def _derived(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        """Style be-gen: each subscription keeps some predicates of its base event and turns some into implied ones."""
        config = self._config
        base = self._pick(self.base_of(first + np.arange(SUBSCRIPTION_BLOCK)), self._base_block)
        kept = _keep(rng, SUBSCRIPTION_BLOCK, config.event_size, config.subscription_size)
        attribute, values = base.attribute[kept], base.value[kept]
        others = IMPLIED[config.operator_class]
        operators = implied_operators(rng, len(values), config.equality_ratio, others)
        prefix = self._prefixes(rng, attribute, operators)
        literals = implied_literals(rng, operators, values, config.cardinality, config.range_share)
        return _predicates(kept, attribute, operators, literals, prefix)

    def _independent(self, rng: np.random.Generator) -> PredicateArrays:
        """Style op-index: sizes are uniform, attributes and operands drawn by popularity, `<=` and `>=` equally likely."""
        largest = int(self._config.subscription_size)
        sizes = rng.integers(1, largest + 1, SUBSCRIPTION_BLOCK)
        kept = np.arange(largest) < sizes[:, None]
        attribute = self._attributes.draw_distinct(rng, SUBSCRIPTION_BLOCK, largest)[kept].astype(np.int32)
        operators = implied_operators(rng, len(attribute), self._config.equality_ratio, (Operator.LE, Operator.GE))
        prefix = self._prefixes(rng, attribute, operators)
        operands = 1 + self._values.draw(rng, (len(attribute),))
        return _predicates(kept, attribute, operators, Literals(np.arange(len(operands) + 1), operands), prefix)

    def _prefixes(self, rng: np.random.Generator, attribute: I32s, operators: U8s) -> U8s:
        """Turn some predicates on strings into LIKE, in place. Returns how many digits each pattern keeps, 0 for the others."""
        prefix = np.zeros(len(attribute), np.uint8)
        if self._config.prefix_share > 0:
            like = self._domain.strings[attribute] & (rng.random(len(attribute)) < self._config.prefix_share)
            operators[like] = CODE[Operator.LIKE]
            prefix[like] = rng.integers(1, self._domain.digits + 1, np.count_nonzero(like))
        return prefix


def _predicates(kept: Bools, attribute: I32s, operators: U8s, literals: Literals, prefix: U8s) -> PredicateArrays:
    """The arrays of some subscriptions. `kept` has a row for each, with one true value for each of its predicates."""
    ptr = offsets(np.count_nonzero(kept, axis=1))
    return PredicateArrays(ptr, attribute, operators, literals.ptr, literals.values, prefix)


def _keep(rng: np.random.Generator, rows: int, size: int, mean: float) -> Bools:
    """Which predicates of its event each subscription keeps: each with the same probability, and at least one."""
    kept = rng.random((rows, size)) < _keep_probability(size, mean)
    empty = np.flatnonzero(~kept.any(axis=1))
    kept[empty, rng.integers(0, size, len(empty))] = True
    return kept


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
