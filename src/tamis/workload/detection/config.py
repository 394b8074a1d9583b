"""The parameters of a workload of detection rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tamis.workload.parameters import Config


@dataclass(frozen=True, kw_only=True)
class DetectionConfig(Config):
    """What a workload of detection rules is made from. Two equal configs give the same workload.

    Attributes
    ----------
    style : "detection"
    subscriptions : int
        How many rules. A smaller workload is the beginning of a larger one that is otherwise equal.
    planted_share : float
        The share of the events that are planted: the first of them satisfies rule 0, the next rule 1, and so on, from the
        start again after the last rule. They are spread evenly. The rest are like the other events.
    events : int or None
        How many events `write` writes; None: 1,000.
    other_events : int
        How many events `write` writes that come as they are. Of a hundred, a few satisfy a rule.
    seed : int
        Chooses one of the workloads that these parameters describe.

    Raises
    ------
    WorkloadError
        When a parameter is of the wrong type or outside its range.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"style": ("detection",)}
    real: ClassVar[Mapping[str, tuple[float, float]]] = {"planted_share": (0, 1)}

    style: Literal["detection"] = "detection"
    subscriptions: int = 4_000
    planted_share: float = 1.0
