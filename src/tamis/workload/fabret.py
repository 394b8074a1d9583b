"""The workload of Fabret et al., Filtering Algorithms and Implementation for Very Fast Publish/Subscribe Systems, SIGMOD 2001.

    names           a0  a1  a2  a3  a4  a5  a6  a7  ...  a31
    subscription    [fixed]  .  x   .   x   .   x   ...   .      the fixed names, and some of the unused names
    focus           |<-- focus_names ------->|                   the names that subscriptions may use

Subscriptions and events are drawn independently. The fixed names have the first predicates of all subscriptions: `fixed_equal`
names with ``=``, then `fixed_less` with ``<``, then `fixed_greater` with ``>``. Our copy of the paper has lost the numbers. The
defaults are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tamis.errors import WorkloadError
from tamis.kernels.numbers import Bools, I64s
from tamis.language.operators import Operator
from tamis.workload.arrays import EventArrays, PredicateArrays
from tamis.workload.derived import predicates
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Draws, Stream
from tamis.workload.implied import CODE, Literals, implied_operators
from tamis.workload.parameters import Config, check_limit
from tamis.workload.zipf import Popularity

_LIMIT = 10_000_000
"""The largest value of an attribute, and the most values."""


@dataclass(frozen=True, kw_only=True)
class FabretConfig(Config):
    """The parameters of Fabret's generator, with the paper's names in brackets.

    Two equal configs give exactly the same workload, with the same NumPy version.

    Attributes
    ----------
    style : "fabret"
    subscriptions : int
        The number of subscriptions (n_S). A smaller workload is the beginning of a larger one with equal other parameters.
    dimensions : int
        The number of names (n_t): `a0`, `a1`, ...
    subscription_size : int
        The number of predicates of each subscription (n_P), all on different names.
    fixed_equal, fixed_less, fixed_greater : int
        How many predicates are on fixed names (n_Pfix), by operator: ``=``, ``<`` and ``>``.
    equality_ratio : float
        The share of ``=`` among the predicates on names that are not fixed. The others are ``<`` or ``>``, equally likely.
    lowest, highest : int
        The domain of the values of predicates (l_P, u_P).
    event_size : int
        The number of attributes of each event (n_A).
    fixed_event_size : int
        How many of them are the first names, in every event (n_Afix). The others are drawn.
    event_lowest, event_highest : int
        The domain of the values of events (l_A, u_A).
    subscription_skew, event_skew : float
        The value that is popular at rank r, counted from 0, is drawn with probability proportional to ``1 / (r + 1) ** skew``.
        0 is uniform.
    correlation : float
        The share of the values of events that are drawn with the subscriptions' order of popularity. The others are drawn with
        an order of their own. Without a skew or `few_values`, it has no effect.
    focus_start, focus_names : int
        Subscriptions use `focus_names` names from number `focus_start` on; after the last name comes the first. The fixed names
        are the first of these. 0 for `focus_names`: all names. A change of the focus is a change of the schemas.
    few_values : int
        If above 0, the values on the fixed names of subscriptions are the most popular ones, this many, also in events.
    events, other_events : int
        The numbers of events that `write` writes. All are drawn in the same way. None for `events`: 1,000.
    seed : int
        Chooses one of the workloads that these parameters describe.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type, is outside its range, or contradicts another.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"style": ("fabret",)}
    whole: ClassVar[Mapping[str, tuple[int, int]]] = {
        "dimensions": (1, 100_000),
        "subscription_size": (1, 1_000),
        "fixed_equal": (0, 1_000),
        "fixed_less": (0, 1_000),
        "fixed_greater": (0, 1_000),
        "lowest": (1, _LIMIT),
        "highest": (1, _LIMIT),
        "event_size": (1, 1_000),
        "fixed_event_size": (0, 1_000),
        "event_lowest": (1, _LIMIT),
        "event_highest": (1, _LIMIT),
        "focus_start": (0, 100_000),
        "focus_names": (0, 100_000),
        "few_values": (0, _LIMIT),
    }
    real: ClassVar[Mapping[str, tuple[float, float]]] = {
        "equality_ratio": (0, 1),
        "subscription_skew": (0, 10),
        "event_skew": (0, 10),
        "correlation": (0, 1),
    }

    style: Literal["fabret"] = "fabret"
    subscriptions: int = 1_000_000
    dimensions: int = 32
    subscription_size: int = 5
    fixed_equal: int = 2
    fixed_less: int = 0
    fixed_greater: int = 0
    equality_ratio: float = 1.0
    lowest: int = 1
    highest: int = 35
    event_size: int = 32
    fixed_event_size: int = 0
    event_lowest: int = 1
    event_highest: int = 35
    subscription_skew: float = 0.0
    event_skew: float = 0.0
    correlation: float = 1.0
    focus_start: int = 0
    focus_names: int = 0
    few_values: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_limit("fixed_equal + fixed_less + fixed_greater", self.fixed, "subscription_size", self.subscription_size)
        check_limit("focus_names", self.focus_names, "dimensions", self.dimensions)
        check_limit("focus_start + 1", self.focus_start + 1, "dimensions", self.dimensions)
        name = "focus_names" if self.focus_names else "dimensions"
        check_limit("subscription_size", self.subscription_size, name, self.usable_names)
        check_limit("fixed_event_size", self.fixed_event_size, "event_size", self.event_size)
        check_limit("event_size", self.event_size, "dimensions", self.dimensions)
        check_limit("lowest", self.lowest, "highest", self.highest)
        check_limit("event_lowest", self.event_lowest, "event_highest", self.event_highest)
        least = min(self.highest - self.lowest, self.event_highest - self.event_lowest) + 1
        check_limit("few_values", self.few_values, "the number of values", least)
        if self.few_values and not self.fixed:
            raise WorkloadError("few_values needs fixed names. Hint: set fixed_equal above 0")

    @property
    def fixed(self) -> int:
        """The number of predicates on fixed names."""
        return self.fixed_equal + self.fixed_less + self.fixed_greater

    @property
    def usable_names(self) -> int:
        """The number of names that subscriptions use."""
        return self.focus_names or self.dimensions


class FabretDraws(Draws):
    """Draws the subscriptions and events of a config."""

    def __init__(self, config: FabretConfig) -> None:
        super().__init__(config.seed, config.subscriptions, config.event_size)
        self._config = config
        order = self._rng(Stream.VALUE_ORDER, 0)
        own = self._rng(Stream.VALUE_ORDER, 1)
        self._order = order.permutation(np.arange(config.lowest, config.highest + 1))
        self._own_order = own.permutation(np.arange(config.event_lowest, config.event_highest + 1))
        inside = (self._order >= config.event_lowest) & (self._order <= config.event_highest)
        shared = self._order[inside]
        self._shared_order = np.concatenate([shared, self._own_order[~np.isin(self._own_order, shared)]])
        self._fixed_names = (config.focus_start + np.arange(config.fixed)) % config.dimensions

    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        config, count = self._config, SUBSCRIPTION_BLOCK
        shape = (count, config.subscription_size)
        free = config.subscription_size - config.fixed
        place = np.empty(shape, np.int64)
        place[:, : config.fixed] = np.arange(config.fixed)
        if free:
            unused = Popularity(config.usable_names - config.fixed, 0)
            place[:, config.fixed :] = config.fixed + unused.draw_distinct(rng, count, free)
        attribute = ((config.focus_start + place) % config.dimensions).astype(np.int32)
        operators = np.empty(shape, np.uint8)
        less, greater = config.fixed_equal, config.fixed_equal + config.fixed_less
        operators[:, :less] = CODE[Operator.EQ]
        operators[:, less:greater] = CODE[Operator.LT]
        operators[:, greater : config.fixed] = CODE[Operator.GT]
        drawn = implied_operators(rng, count * free, config.equality_ratio, (Operator.LT, Operator.GT))
        operators[:, config.fixed :] = drawn.reshape(count, free)
        few = np.broadcast_to(np.arange(config.subscription_size) < config.fixed, shape)
        values = self._order[self._ranks(rng, few, len(self._order), config.subscription_skew)]
        literals = Literals(np.arange(values.size + 1), values.ravel())
        all_kept = np.ones(shape, np.bool_)
        return predicates(all_kept, attribute.ravel(), operators.ravel(), literals, np.zeros(values.size, np.uint8))

    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        config, rng = self._config, self._rng(stream, block)
        attribute = np.empty((EVENT_BLOCK, config.event_size), np.int32)
        attribute[:, : config.fixed_event_size] = np.arange(config.fixed_event_size)
        free = config.event_size - config.fixed_event_size
        if free:
            others = Popularity(config.dimensions - config.fixed_event_size, 0)
            attribute[:, config.fixed_event_size :] = config.fixed_event_size + others.draw_distinct(
                rng, EVENT_BLOCK, free
            )
        few = np.isin(attribute, self._fixed_names)
        ranks = self._ranks(rng, few, len(self._own_order), config.event_skew)
        shared = rng.random(ranks.shape) < config.correlation
        return EventArrays(attribute, np.where(shared, self._shared_order[ranks], self._own_order[ranks]))

    def _ranks(self, rng: np.random.Generator, few: Bools, count: int, skew: float) -> I64s:
        """Ranks of values by popularity. Where `few` holds, only the first `few_values` ranks, if the config asks for it."""
        ranks = Popularity(count, skew).draw(rng, few.shape)
        if self._config.few_values:
            ranks = np.where(few, ranks % self._config.few_values, ranks)
        return ranks
