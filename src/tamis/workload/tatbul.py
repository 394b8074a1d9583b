"""The workload of Tatbul's profiles (2001, section 4.1): intervals of one length, around an origin.

    origin                       |
    distance, drawn by Zipf      |----------->|
    interval, closed                          [==========]   length
    document                  x                                uniform over all values that intervals cover

The overlap of a workload is the share of the pairs of subscriptions that intersect: one document could match both. The thesis
does not define its overlap; this is our reading. The expected overlap follows from the length, the skew and the spread, the
number of different distances. So a wanted overlap is reached by choosing the spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from tamis.errors import WorkloadError
from tamis.kernels.numbers import F64s
from tamis.language.operators import Operator
from tamis.workload.arrays import EventArrays, PredicateArrays, offsets
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Draws, Stream
from tamis.workload.implied import CODE
from tamis.workload.parameters import Config
from tamis.workload.zipf import Popularity

USUAL_OVERLAP = 0.1
"""The overlap if a config gives neither the overlap nor the spread: within the 1 to 20 % of the thesis's figure 7."""

MAX_SPREAD = 1_000_000
"""The largest spread. It bounds the time that choosing a spread takes."""

_MEASURED = 2_000
"""The most subscriptions whose pairs `measured_overlap` counts: two million pairs, of which a sample says enough."""


@dataclass(frozen=True, kw_only=True)
class TatbulConfig(Config):
    """The parameters of Tatbul's intervals. Two equal configs give exactly the same workload, with the same NumPy version.

    Attributes
    ----------
    style : "tatbul"
    subscriptions : int
        The number of subscriptions. A smaller workload is the beginning of a larger one with equal other parameters.
    dimensions : int
        The number of attributes: `a0`, `a1`, ... Every subscription and every event has all of them.
    length : int
        The length of the intervals. Ends are integers and closed: a length of 10 covers 11 integers.
    alpha : float
        Distance r from the origin is drawn with probability proportional to ``1 / (r + 1) ** alpha``: 0 is uniform, above 0 is
        Zipf. The side is drawn uniformly.
    overlap : float or None
        The share of the pairs of subscriptions that intersect, as an expectation. The spread that comes closest is chosen.
    spread : int or None
        The number of different distances. With a spread, the overlap follows: leave out `overlap`. If both are None, the
        overlap is 0.1.
    events, other_events : int
        The numbers of events that `write` writes. All are drawn in the same way.
    seed : int
        Chooses one of the workloads that these parameters describe.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type, is outside its range, or contradicts another.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"style": ("tatbul",)}
    whole: ClassVar[Mapping[str, tuple[int, int]]] = {
        "dimensions": (1, 1_000),
        "length": (0, 1_000_000),
        "spread": (1, MAX_SPREAD),
    }
    real: ClassVar[Mapping[str, tuple[float, float]]] = {"alpha": (0, 10), "overlap": (0, 1)}
    optional: ClassVar[tuple[str, ...]] = ("events", "overlap", "spread")

    style: Literal["tatbul"] = "tatbul"
    subscriptions: int = 1_000
    dimensions: int = 2
    length: int = 10
    alpha: float = 1.0
    overlap: float | None = None
    spread: int | None = None
    events: int | None = 50
    other_events: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.overlap is not None and self.spread is not None:
            raise WorkloadError("overlap and spread exclude each other. Hint: leave out one of them")

    @property
    def used_spread(self) -> int:
        """The number of different distances: `spread`, or the one that is chosen for the overlap."""
        if self.spread is not None:
            return self.spread
        overlap = USUAL_OVERLAP if self.overlap is None else self.overlap
        return spread_for(overlap, self.length, self.alpha, self.dimensions)

    @property
    def expected_overlap(self) -> float:
        """The share of the pairs of subscriptions that intersect, as an expectation."""
        return _expected_overlap(self.used_spread, self.length, self.alpha, self.dimensions)


@lru_cache(1_000)
def spread_for(overlap: float, length: int, alpha: float, dimensions: int) -> int:
    """The spread with the expected overlap that comes closest. A larger spread has a smaller overlap."""
    low, high = 1, 2
    while high < MAX_SPREAD and _expected_overlap(high, length, alpha, dimensions) > overlap:
        low, high = high, min(2 * high, MAX_SPREAD)
    least = _expected_overlap(high, length, alpha, dimensions)
    if least > overlap:
        raise WorkloadError(
            f"overlap {overlap:g} cannot be reached: with length {length} and alpha {alpha:g}, it is at least {least:.2g}. "
            "Hint: make the length or alpha smaller"
        )
    while high - low > 1:
        middle = (low + high) // 2
        if _expected_overlap(middle, length, alpha, dimensions) > overlap:
            low = middle
        else:
            high = middle
    return min((low, high), key=lambda spread: abs(_expected_overlap(spread, length, alpha, dimensions) - overlap))


def _expected_overlap(spread: int, length: int, alpha: float, dimensions: int) -> float:
    """The probability that two intervals intersect in all attributes: that their starts differ by at most `length`."""
    side: F64s = np.arange(1, spread + 1, dtype=np.float64) ** -alpha
    starts = np.concatenate([side[:0:-1] / 2, side[:1], side[1:] / 2]) / side.sum()
    up_to = np.concatenate([[0.0], np.cumsum(starts)])
    place = np.arange(len(starts))
    near = up_to[np.minimum(place + length + 1, len(starts))] - up_to[np.maximum(place - length, 0)]
    return float(starts @ near) ** dimensions


def measured_overlap(arrays: PredicateArrays) -> float:
    """The share of the pairs of subscriptions that intersect in all attributes, counted over the first 2,000 subscriptions.

    The subscriptions must be a workload of this style: ``BETWEEN`` on the same attributes, in the same order.
    """
    count = min(len(arrays.ptr) - 1, _MEASURED)
    if count < 2:
        raise WorkloadError("the overlap needs at least two subscriptions")
    dimensions = int(arrays.ptr[1])
    ends = arrays.literals[: 2 * dimensions * count].reshape(count, dimensions, 2)
    intersecting = np.ones((count, count), np.bool_)
    for attribute in range(dimensions):
        low, high = ends[:, attribute, 0], ends[:, attribute, 1]
        intersecting &= (low[:, None] <= high) & (low <= high[:, None])
    return float(np.count_nonzero(intersecting) - count) / (count * (count - 1))


class TatbulDraws(Draws):
    """Draws the subscriptions and events of a config."""

    def __init__(self, config: TatbulConfig) -> None:
        super().__init__(config.seed, config.subscriptions, config.dimensions)
        self._config = config
        self._spread = config.used_spread
        self._distances = Popularity(self._spread, config.alpha)

    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        shape = (SUBSCRIPTION_BLOCK, self._config.dimensions)
        side = np.where(rng.random(shape) < 0.5, -1, 1)
        start = self._spread + side * self._distances.draw(rng, shape)
        count = start.size
        return PredicateArrays(
            ptr=offsets(np.full(SUBSCRIPTION_BLOCK, self._config.dimensions)),
            attribute=np.tile(np.arange(self._config.dimensions, dtype=np.int32), SUBSCRIPTION_BLOCK),
            operator=np.full(count, CODE[Operator.BETWEEN], np.uint8),
            literal_ptr=offsets(np.full(count, 2)),
            literals=np.column_stack([start.ravel(), start.ravel() + self._config.length]).ravel(),
            prefix=np.zeros(count, np.uint8),
        )

    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        rng = self._rng(stream, block)
        attribute = np.tile(np.arange(self._config.dimensions, dtype=np.int32), (EVENT_BLOCK, 1))
        return EventArrays(attribute, rng.integers(1, 2 * self._spread + self._config.length, attribute.shape))
