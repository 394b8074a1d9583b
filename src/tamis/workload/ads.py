"""Advertisements and sessions, with the sizes of the PS-Tree paper's display ads (section 7.4).

The paper gives only the sizes: 122 attributes, 1 to 56 predicates, 8 on average, events of 20. The data is not public. Here an
advertisement is derived from a session, as in BE-Gen. One that is larger than its session also asks for attributes that the
session lacks, so no session matches it.

    session's order of attributes      7  0  3  12  5  ...  88 | 41  2  60  ...
                                       the session's own (20)  | others
    advertisement of 3 predicates         x      x   x         |
    advertisement of 22 predicates     x  x  x   x  x  ...  x  | x   x
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, get_args

import numpy as np

from tamis.errors import WorkloadError
from tamis.kernels.numbers import Bools, F64s, I64s
from tamis.workload.arrays import EventArrays
from tamis.workload.config import BaseEvents, OperatorClass
from tamis.workload.derived import KEPT_EVENT_BLOCKS, DerivedDraws
from tamis.workload.draw import EVENT_BLOCK, Stream
from tamis.workload.parameters import Config
from tamis.workload.zipf import Popularity


@dataclass(frozen=True, kw_only=True)
class AdsConfig(BaseEvents, Config):
    """The parameters of a workload of advertisements. Two equal configs give exactly the same workload, with the same NumPy.

    Attributes
    ----------
    style : "ads"
    subscriptions : int
        The number of advertisements. A smaller workload is the beginning of a larger one with equal other parameters.
    dimensions : int
        The number of attributes: `a0`, `a1`, ...
    cardinality : int
        The number of values of an attribute, at least 2. The values are the numbers 1 to `cardinality`, drawn uniformly.
    subscription_size : float
        The mean number of predicates. The numbers follow a geometric law from 1 to `largest_size`.
    largest_size : int
        The largest number of predicates of an advertisement.
    event_size : int
        The number of attributes of each session.
    match_probability : float
        The share of the advertisements that are derived from each session. Those that are not larger than it match it.
    equality_ratio, operator_class, range_share
        The operators, as in style be-gen.
    alpha : float
        The skew of the popularity of attributes. 0 is uniform.
    events : int or None
        The number of events that `write` writes. None: every base event once.
    other_events : int
        The number of other events that `write` writes: no advertisements are derived from them.
    seed : int
        Chooses one of the workloads that these parameters describe.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type, is outside its range, or contradicts another.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"style": ("ads",), "operator_class": get_args(OperatorClass)}
    whole: ClassVar[Mapping[str, tuple[int, int]]] = {
        "dimensions": (1, 10_000),
        "cardinality": (2, 10_000_000),
        "largest_size": (1, 1_000),
        "event_size": (1, 1_000),
    }
    real: ClassVar[Mapping[str, tuple[float, float]]] = {
        "subscription_size": (1, 1_000),
        "match_probability": (1e-9, 1),
        "equality_ratio": (0, 1),
        "range_share": (0, 0.5),
        "alpha": (0, 10),
    }

    style: Literal["ads"] = "ads"
    subscriptions: int = 3_000_000
    dimensions: int = 122
    cardinality: int = 40
    subscription_size: float = 8
    largest_size: int = 56
    event_size: int = 20
    match_probability: float = 0.001
    equality_ratio: float = 0.3
    operator_class: OperatorClass = "high"
    range_share: float = 0.12
    alpha: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, size in (("event_size", self.event_size), ("largest_size", self.largest_size)):
            if size > self.dimensions:
                raise WorkloadError(f"{name} is {size}, but there are only {self.dimensions} attributes (dimensions)")
        if self.subscription_size > (self.largest_size + 1) / 2:
            raise WorkloadError(
                f"subscription_size is {self.subscription_size:g}: above the middle of the sizes from 1 to "
                f"{self.largest_size} (largest_size)"
            )

    @property
    def event_count(self) -> int:
        """The number of events that the workload offers by default."""
        return self.base_events if self.events is None else self.events


class AdDraws(DerivedDraws):
    """Draws the advertisements and sessions of a config."""

    def __init__(self, config: AdsConfig) -> None:
        super().__init__(config)
        self._config = config
        self._width = max(config.event_size, config.largest_size)
        self._attributes = Popularity(config.dimensions, config.alpha)
        self._size_shares = np.cumsum(_size_shares(config.largest_size, config.subscription_size))
        self._wide_block = lru_cache(KEPT_EVENT_BLOCKS)(lambda block: self._sessions(Stream.EVENTS, block))

    def _bases(self, rows: I64s) -> EventArrays:
        return self._pick(rows, self._wide_block, self._width)

    def _keep(self, rng: np.random.Generator, base: EventArrays) -> Bools:
        rows, own = len(base.value), self._config.event_size
        sizes = 1 + np.searchsorted(self._size_shares, rng.random(rows) * self._size_shares[-1], side="right")
        kept: Bools = np.arange(self._width) < sizes[:, None]
        # Of the session's own attributes, any; the others only if these are not enough.
        kept[:, :own] = np.argsort(np.argsort(rng.random((rows, own)), axis=1), axis=1) < sizes[:, None]
        return kept

    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        sessions, size = self._sessions(stream, block), self._config.event_size
        return EventArrays(sessions.attribute[:, :size], sessions.value[:, :size])

    def _sessions(self, stream: Stream, block: int) -> EventArrays:
        """Sessions, each continued with attributes that it lacks."""
        rng = self._rng(stream, block)
        attribute = self._attributes.draw_distinct(rng, EVENT_BLOCK, self._width)
        return EventArrays(
            attribute.astype(np.int32), rng.integers(1, self._config.cardinality, attribute.shape, endpoint=True)
        )


def _size_shares(largest: int, mean: float) -> F64s:
    """The shares of the sizes from 1 to `largest`: a geometric law that is cut off, with this mean."""
    sizes = np.arange(1, largest + 1, dtype=np.float64)
    low, high = 0.0, 1.0  # each share is the one before, multiplied by a number in between
    for _ in range(60):
        middle = (low + high) / 2
        shares = middle ** (sizes - 1)
        if shares @ sizes < mean * shares.sum():
            low = middle
        else:
            high = middle
    result: F64s = high ** (sizes - 1)
    result /= result.sum()
    return result
