"""The parameters of the papers' workloads, checked when they are made."""

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
"""Most that the sum of the base events' shares may differ from 1: 3 * 0.3333333333 should count as 1."""


@dataclass(frozen=True, kw_only=True)
class WorkloadConfig(Config):
    """What a workload is made from. Two equal configs give the same workload, value for value (with one NumPy version).

    Attributes
    ----------
    style : "be-gen" or "op-index"
        ``be-gen``: base expressions of equalities are the events, every subscription is derived from one of them and
        matches it (BE-Tree 7.1). ``op-index``: subscriptions independent of the events (OpIndex 7.1); then only the
        operators ``=  <=  >=`` occur, and `match_probability`, `operator_class` and `range_share` play no part.
    subscriptions : int
        How many. A smaller workload is the beginning of a larger one that is otherwise equal.
    dimensions : int
        How many attributes there are: `a0`, `a1`, ...; those with strings are called `s0`, `s1`, ...
    cardinality : int
        How many values an attribute has, at least 2: the numbers 1 to `cardinality`.
    subscription_size : float
        be-gen: the mean number of predicates, each predicate of the event being kept with one probability.
        op-index: the largest number; sizes are uniform from 1 to it.
    event_size : int
        How many attributes each event has.
    match_probability : float
        The share p of the subscriptions that is derived from each event and so matches it. It is a lower bound: others
        match by chance, and where predicates are few and wide (preset ``range``) far more do. There are as many base
        events as p goes into 1, one if p is above 0.5; what is left over is derived from an event that is never offered.
    equality_ratio : float
        The share of ``=`` among the predicates, LIKE aside. The others are drawn evenly from the operator class.
        With class ``min`` all are ``=``, whatever the ratio.
    alpha : float
        Attribute r, counted from 0, is drawn with probability proportional to ``1 / (r + 1) ** alpha``: 0 is uniform,
        above it is Zipf. In style op-index the values follow it too.
    operator_class : "min", "low", "med" or "high"
        ``min`` has =, ``low`` also IN, ``med`` also < <= > >= BETWEEN, ``high`` also <> and NOT IN.
    range_share : float
        The mean width of BETWEEN, as a share of the cardinality, at most 0.5.
    string_share : float
        The share of the attributes that carry strings (`v00042` for 42, so that their order is that of the numbers).
    prefix_share : float
        The share of LIKE 'prefix%' among the predicates on these attributes.
    numbers : "integer" or "float"
        How the values of the other attributes are written. As floats they keep their order, but lie on no grid.
    events : int or None
        How many events `write` writes; None: every base event once (be-gen), 1,000 (op-index). Beyond the number of
        base events they repeat.
    other_events : int
        How many events `write` writes that are drawn in the same way but have no subscriptions derived from them.
    seed : int
        Chooses one of the workloads that these parameters describe.

    Raises
    ------
    WorkloadError
        When a parameter is of the wrong type, outside its range, or does not fit another.

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
    # Bounds keep the working memory of a block at some 200 MB for events of 100 attributes, 2 GB at the very worst.
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
        if self.style == "be-gen" and self.subscription_size > self.event_size:
            raise WorkloadError(
                f"subscription_size is {size}, but a subscription keeps predicates of an event, "
                f"which has {self.event_size} (event_size)"
            )
        if self.style == "op-index" and not self.subscription_size.is_integer():
            raise WorkloadError(f"in style op-index, subscription_size is the largest size: a whole number, not {size}")
        if self.style == "op-index" and self.subscription_size > self.dimensions:
            raise WorkloadError(
                f"subscription_size is {size}, but there are only {self.dimensions} attributes (dimensions)"
            )

    @property
    def base_events(self) -> int:
        """How many base events there are, style be-gen; see `PaperDraws.base_of` for those of a subscription."""
        return (round if self.divides_evenly else math.floor)(1 / self.match_probability)

    @property
    def divides_evenly(self) -> bool:
        """Whether every subscription is derived from one of the base events, without a rest."""
        return abs(round(1 / self.match_probability) * self.match_probability - 1) < _ROUNDING

    @property
    def event_count(self) -> int:
        """How many events the workload offers when no number is given."""
        if self.events is None and self.style == "be-gen":
            return self.base_events
        return super().event_count
