"""The parameters of a workload of detection rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tamis.workload.parameters import Config


@dataclass(frozen=True, kw_only=True)
class DetectionConfig(Config):
    """The parameters of a workload of detection rules. Two equal configs give the same workload.

    Attributes
    ----------
    style : "detection"
    subscriptions : int
        The number of rules. A smaller workload is the beginning of a larger one with equal other parameters.
    planted_share : float
        The share of planted events, which are spread evenly. The first one satisfies rule 0, the next rule 1, and so on. After
        the last rule comes rule 0 again. Events that are not planted are drawn like the other events.
    events : int or None
        The number of events that `write` writes. None: 1,000.
    other_events : int
        The number of other events that `write` writes. None of them is planted; of a thousand, a few satisfy a rule.
    seed : int
        Chooses one of the workloads that these parameters describe.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type or is outside its range.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"style": ("detection",)}
    real: ClassVar[Mapping[str, tuple[float, float]]] = {"planted_share": (0, 1)}

    style: Literal["detection"] = "detection"
    subscriptions: int = 4_000
    planted_share: float = 1.0
