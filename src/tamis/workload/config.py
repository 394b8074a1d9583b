"""The parameters of the papers' workloads. The constructor checks them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from tamis.errors import WorkloadError
from tamis.workload.parameters import Config

Style = Literal["be-gen", "op-index"]
OperatorClass = Literal["min", "low", "med", "high"]
Numbers = Literal["integer", "float"]

BE_GEN_ONLY = ("match_probability", "operator_class", "range_share")
"""Parameters without effect in style op-index."""

_ROUNDING = 1e-9
"""The largest difference from 1 of the sum of the base events' shares: 3 * 0.3333333333 should count as 1."""


class BaseEvents:
    """The number of base events of a config with a match probability: every subscription is derived from one of them."""

    match_probability: float

    @property
    def base_events(self) -> int:
        """The number of base events. `DerivedDraws.base_of` tells the base event of a subscription."""
        return (round if self.divides_evenly else math.floor)(1 / self.match_probability)

    @property
    def divides_evenly(self) -> bool:
        """Whether every subscription is derived from one of the base events, so that none remain."""
        return abs(round(1 / self.match_probability) * self.match_probability - 1) < _ROUNDING


def check_derived_size(subscription_size: float, event_size: int) -> None:
    """Refuse subscriptions that are larger than the events that they are derived from."""
    if subscription_size > event_size:
        raise WorkloadError(
            f"subscription_size is {subscription_size:g}, but a subscription keeps predicates of an event, "
            f"which has {event_size} (event_size)"
        )


@dataclass(frozen=True, kw_only=True)
class WorkloadConfig(BaseEvents, Config):
    """The parameters of a workload. Two equal configs give exactly the same workload, with the same NumPy version.

    Attributes
    ----------
    style : "be-gen" or "op-index"
        ``be-gen``: the events are base expressions of equalities. Every subscription is derived from one of them and
        matches it (BE-Tree 7.1). ``op-index``: subscriptions are independent of the events (OpIndex 7.1). They have only
        the operators ``=  <=  >=``, and `match_probability`, `operator_class` and `range_share` have no effect.
    subscriptions : int
        The number of subscriptions. A smaller workload is the beginning of a larger one with equal other parameters.
    dimensions : int
        The number of attributes: `a0`, `a1`, ... The names of attributes with strings begin with `s`: `s0`, `s1`, ...
    cardinality : int
        The number of values of an attribute, at least 2. The values are the numbers 1 to `cardinality`.
    subscription_size : float
        be-gen: the mean number of predicates. Each predicate of the event is kept with the same probability.
        op-index: the largest number of predicates. Sizes are uniform from 1 to this number.
    event_size : int
        The number of attributes of each event.
    match_probability : float
        The share p of the subscriptions that are derived from each event and so match it. It is a lower bound: other
        subscriptions match by chance, far more if predicates are few and wide (preset ``range``). There are 1 / p base
        events, rounded down. The remaining subscriptions are derived from an event that the workload never offers.
    equality_ratio : float
        The share of ``=`` among the predicates other than LIKE. The other operators of the class are equally likely.
        With class ``min`` all predicates are ``=``, whatever the ratio.
    alpha : float
        Attribute r, counted from 0, is drawn with probability proportional to ``1 / (r + 1) ** alpha``: 0 is uniform,
        above 0 is Zipf. In style op-index the values follow the same law.
    operator_class : "min", "low", "med" or "high"
        ``min`` has =, ``low`` also IN, ``med`` also < <= > >= BETWEEN, ``high`` also <> and NOT IN.
    range_share : float
        The mean width of BETWEEN, as a share of the cardinality, at most 0.5.
    string_share : float
        The share of the attributes with strings. The string of 42 is `v00042`, so strings sort like the numbers.
    prefix_share : float
        The share of LIKE 'prefix%' among the predicates on attributes with strings.
    numbers : "integer" or "float"
        The type of the values of the other attributes. Floats keep the order of the integers, but are not evenly spaced.
    events : int or None
        The number of events that `write` writes. None: every base event once (be-gen), or 1,000 (op-index). A larger
        number than that of the base events repeats them.
    other_events : int
        The number of other events that `write` writes: drawn in the same way, but without derived subscriptions.
    seed : int
        Chooses one of the workloads that these parameters describe.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type, is outside its range, or contradicts another.

    Examples
    --------
    >>> WorkloadConfig(subscriptions=1_000, match_probability=0.01).base_events
    100
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "style": get_args(Style),
        "operator_class": get_args(OperatorClass),
        "numbers": get_args(Numbers),
    }
    # These bounds keep the working memory of a block at some 200 MB for events of 100 attributes, and 2 GB at worst.
    whole: ClassVar[Mapping[str, tuple[int, int]]] = {
        "dimensions": (1, 1_000_000),
        "cardinality": (2, 10_000_000),
        "event_size": (1, 1_000),
    }
    real: ClassVar[Mapping[str, tuple[float, float]]] = {
        "subscription_size": (1, 1_000),
        "match_probability": (1e-9, 1),
        "equality_ratio": (0, 1),
        "alpha": (0, 10),
        "range_share": (0, 0.5),
        "string_share": (0, 1),
        "prefix_share": (0, 1),
    }

    style: Style = "be-gen"
    subscriptions: int = 1_000_000
    dimensions: int = 100
    cardinality: int = 100
    subscription_size: float = 10
    event_size: int = 30
    match_probability: float = 0.001
    equality_ratio: float = 0.4
    alpha: float = 0.0
    operator_class: OperatorClass = "med"
    range_share: float = 0.12
    string_share: float = 0.0
    prefix_share: float = 0.0
    numbers: Numbers = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_sizes()
        if self.prefix_share > 0 and self.string_share == 0:
            raise WorkloadError("prefix_share needs attributes with strings. Hint: set string_share above 0")

    def _check_sizes(self) -> None:
        size = f"{self.subscription_size:g}"
        if self.event_size > self.dimensions:
            raise WorkloadError(
                f"event_size is {self.event_size}, but there are only {self.dimensions} attributes (dimensions)"
            )
        if self.style == "be-gen":
            check_derived_size(self.subscription_size, self.event_size)
        if self.style == "op-index" and not self.subscription_size.is_integer():
            raise WorkloadError(f"in style op-index, subscription_size is the largest size: a whole number, not {size}")
        if self.style == "op-index" and self.subscription_size > self.dimensions:
            raise WorkloadError(
                f"subscription_size is {size}, but there are only {self.dimensions} attributes (dimensions)"
            )

    @property
    def event_count(self) -> int:
        """The number of events that the workload offers by default."""
        if self.events is None and self.style == "be-gen":
            return self.base_events
        return super().event_count
