"""Drawing the workloads of the papers: subscriptions derived from events (be-gen) or independent of them (op-index)."""

from __future__ import annotations

import numpy as np

from tamis.kernels.numbers import I32s, I64s, U8s
from tamis.language.operators import Operator
from tamis.workload.arrays import EventArrays, PredicateArrays
from tamis.workload.config import WorkloadConfig
from tamis.workload.derived import DerivedDraws, predicates
from tamis.workload.domain import PaperDomain
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Stream
from tamis.workload.implied import CODE, Literals, implied_operators
from tamis.workload.zipf import Popularity


class PaperDraws(DerivedDraws):
    """Draws the subscriptions and events of a config."""

    def __init__(self, config: WorkloadConfig, domain: PaperDomain) -> None:
        super().__init__(config)
        self._config = config
        self._domain = domain
        self._attributes = Popularity(config.dimensions, config.alpha)
        self._values = Popularity(config.cardinality, config.alpha if config.style == "op-index" else 0.0)

    def events(self, rows: I64s) -> EventArrays:
        """The events with these numbers. In style be-gen, the base events repeat."""
        return super().events(rows) if self._config.style == "be-gen" else self._pick(rows, self._base_block)

    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        return super()._subscription_block(rng, first) if self._config.style == "be-gen" else self._independent(rng)

    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        rng = self._rng(stream, block)
        attribute = self._attributes.draw_distinct(rng, EVENT_BLOCK, self._config.event_size)
        return EventArrays(attribute.astype(np.int32), 1 + self._values.draw(rng, attribute.shape))

    def _independent(self, rng: np.random.Generator) -> PredicateArrays:
        """Style op-index: sizes are uniform, attributes and operands drawn by popularity, `<=` and `>=` equally likely."""
        largest = int(self._config.subscription_size)
        sizes = rng.integers(1, largest + 1, SUBSCRIPTION_BLOCK)
        kept = np.arange(largest) < sizes[:, None]
        attribute = self._attributes.draw_distinct(rng, SUBSCRIPTION_BLOCK, largest)[kept].astype(np.int32)
        operators = implied_operators(rng, len(attribute), self._config.equality_ratio, (Operator.LE, Operator.GE))
        prefix = self._prefixes(rng, attribute, operators)
        operands = 1 + self._values.draw(rng, (len(attribute),))
        return predicates(kept, attribute, operators, Literals(np.arange(len(operands) + 1), operands), prefix)

    def _prefixes(self, rng: np.random.Generator, attribute: I32s, operators: U8s) -> U8s:
        prefix = super()._prefixes(rng, attribute, operators)
        if self._config.prefix_share > 0:
            like = self._domain.strings[attribute] & (rng.random(len(attribute)) < self._config.prefix_share)
            operators[like] = CODE[Operator.LIKE]
            prefix[like] = rng.integers(1, self._domain.digits + 1, np.count_nonzero(like))
        return prefix
