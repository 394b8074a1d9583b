"""Price alerts: ``symbol = s AND price > p``, ``< p`` or ``BETWEEN p AND q``, some with ``AND volume >= v``; quotes as events.

A symbol has a base price, log-normal over the symbols. Quotes stay close to the base price. Alerts wait for prices further away:

    price < p          ....:::|||:::....                                     the distribution of p
    quotes                                      .:|:.
    price > p                                               ....:::|||:::....
                          base / distance        base         base * distance

The overlap of quotes and alerts depends on `distance`. It decides how many alerts a quote satisfies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tamis.kernels.numbers import Bools, I64s
from tamis.language.operators import Operator
from tamis.workload.arrays import EventArrays, PredicateArrays, offsets
from tamis.workload.domain import Domain
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Draws, Stream
from tamis.workload.implied import CODE
from tamis.workload.parameters import Config
from tamis.workload.zipf import Floats, Popularity

_NAMES = ["symbol", "price", "volume"]
_SYMBOL, _PRICE, _VOLUME = range(3)

_POPULARITY_SHIFT = 8
"""The shift of the popularity law. It makes the first symbols differ little: with alpha 2.2, 14 % of all alerts are on the first
symbol, 11 % on the second."""

_ALERT_SPREAD, _QUOTE_SPREAD = 0.25, 0.05
"""Standard deviations of the logarithms of prices: of alerts around their mean distance, of quotes around the base price."""

_LOG_BAND_WIDTHS = math.log(0.003), math.log(0.05)
"""The logarithms of the narrowest and the widest band, as a share of the price. The logarithms of widths are uniform."""

_MAX_VOLUME = 1_000_000


@dataclass(frozen=True, kw_only=True)
class AlertsConfig(Config):
    """The parameters of a workload of price alerts. Two equal configs give the same workload, with the same NumPy version.

    Attributes
    ----------
    style : "alerts"
    subscriptions : int
        The number of subscriptions. A smaller workload is the beginning of a larger one with equal other parameters.
    symbols : int
        The number of symbols: `SYM0000`, `SYM0001`, ...
    alpha : float
        Symbol r, counted from 0, is drawn with probability proportional to ``1 / (r + 8) ** alpha``, for alerts and for
        events: 0 is uniform, above 0 is Pareto. The default is the Pareto law with shape 1.2.
    distance : float
        How far from the base price alerts wait. In ``price > p``, p is around `distance` times the base price; in
        ``price < p``, around the base price divided by `distance`. Near 1, an event satisfies half of these alerts on its
        symbol; at the default, six in a thousand. That is some 300 of a million alerts. With uniform popularity, no symbol
        has many alerts, and it is 5.
    band_share : float
        The share of ``price BETWEEN p AND q``. The other alerts have ``>`` or ``<``, equally likely. Bands are 3 per mille
        to 5 per cent of the price wide and lie where the other alerts do, so an event satisfies few bands.
    volume_share : float
        The share of the alerts that also have ``volume >= v``. On average, half of the events satisfy it.
    events, other_events : int
        The numbers of events that `write` writes: quotes with symbol, price and volume, all drawn in the same way. None for
        `events`: 1,000.
    seed : int
        Chooses one of the workloads that these parameters describe.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type or is outside its range.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"style": ("alerts",)}
    whole: ClassVar[Mapping[str, tuple[int, int]]] = {"symbols": (1, 10_000_000)}
    real: ClassVar[Mapping[str, tuple[float, float]]] = {
        "alpha": (0, 10),
        "distance": (1, 100),
        "band_share": (0, 1),
        "volume_share": (0, 1),
    }

    style: Literal["alerts"] = "alerts"
    subscriptions: int = 1_000_000
    symbols: int = 1_000
    alpha: float = 2.2
    distance: float = 1.88
    band_share: float = 0.2
    volume_share: float = 0.0


class AlertDomain(Domain):
    """The attributes of alerts and quotes. A symbol's string is `SYM` and its number."""

    def __init__(self, config: AlertsConfig) -> None:
        digits = max(4, len(str(config.symbols - 1)))
        super().__init__(list(_NAMES), [True, False, False], floats=True, word=b"SYM", digits=digits)


class AlertDraws(Draws):
    """Draws the alerts and quotes of a config."""

    value_type = np.float64

    def __init__(self, config: AlertsConfig) -> None:
        super().__init__(config.seed, config.subscriptions, len(_NAMES))
        self._config = config
        self._popularity = Popularity(config.symbols, config.alpha, _POPULARITY_SHIFT)
        self._base_price = self._rng(Stream.BASE_PRICES, 0).lognormal(4, 1, config.symbols)

    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        config, count = self._config, SUBSCRIPTION_BLOCK
        symbol = self._popularity.draw(rng, (count,))
        rising = rng.random(count) < 0.5
        band = rng.random(count) < config.band_share
        moved = np.where(rising, config.distance, 1 / config.distance)
        low = self._base_price[symbol] * moved * np.exp(rng.normal(0, _ALERT_SPREAD, count))
        high = low * (1 + np.exp(rng.uniform(*_LOG_BAND_WIDTHS, count)))
        # Volumes are drawn for all alerts, so that `volume_share` changes nothing else.
        volume = np.where(
            rng.random(count) < config.volume_share, rng.integers(0, _MAX_VOLUME, count, endpoint=True), np.nan
        )
        return _predicates(symbol, rising, low, np.where(band, high, np.nan), volume)

    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        rng = self._rng(stream, block)
        symbol = self._popularity.draw(rng, (EVENT_BLOCK,))
        price = self._base_price[symbol] * np.exp(rng.normal(0, _QUOTE_SPREAD, EVENT_BLOCK))
        volume = rng.integers(0, _MAX_VOLUME, EVENT_BLOCK, endpoint=True)
        attribute = np.tile(np.arange(len(_NAMES), dtype=np.int32), (EVENT_BLOCK, 1))
        return EventArrays(attribute, np.column_stack([symbol, price, volume]))


def _predicates(symbol: I64s, rising: Bools, low: Floats, high: Floats, volume: Floats) -> PredicateArrays:
    """Alerts on prices above or below `low`, or from `low` to `high` if `high` is not NaN. Also on `volume`, if it is not NaN."""
    band, more = ~np.isnan(high), ~np.isnan(volume)
    bound = np.where(rising, CODE[Operator.GT], CODE[Operator.LT])
    columns = np.arange(len(_NAMES))
    operators = np.empty((len(symbol), len(_NAMES)), np.uint8)
    operators[:, _SYMBOL] = CODE[Operator.EQ]
    operators[:, _PRICE] = np.where(band, CODE[Operator.BETWEEN], bound)
    operators[:, _VOLUME] = CODE[Operator.GE]
    # First give each alert all predicates and all literals, then remove the unused ones.
    predicate = (columns < _VOLUME) | more[:, None]
    literals = np.column_stack([symbol, low, high, volume])
    counts = np.where((columns == _PRICE) & band[:, None], 2, 1)[predicate]
    attribute = np.broadcast_to(columns.astype(np.int32), predicate.shape)[predicate]
    return PredicateArrays(
        ptr=offsets(np.count_nonzero(predicate, axis=1)),
        attribute=attribute,
        operator=operators[predicate],
        literal_ptr=offsets(counts),
        literals=literals[~np.isnan(literals)],
        prefix=np.zeros(len(attribute), np.uint8),
    )
