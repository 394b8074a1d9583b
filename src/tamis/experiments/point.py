"""Point: one measurement of an experiment. A figure's plot has one for each contender and value of its axis.

The file of a point is named after everything that decides its result, so two figures share the points that they have in common.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from tamis.experiments.contenders import find_contender
from tamis.workload import WorkloadConfig
from tamis.workload.styles import AnyConfig, config_from_json


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes
    ----------
    contender : str
        What is measured: a name of `tamis.experiments.contenders`.
    workload : WorkloadConfig, AlertsConfig or DetectionConfig
        What it is measured on.
    task : str
        How it is measured: a name of `tamis.experiments.tasks`.
    options : tuple of pairs
        Names and values of options of the index, besides those of the contender.
    """

    contender: str
    workload: AnyConfig
    task: str = "matching"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def index_options(self) -> dict[str, Any]:
        """All options of the index. SIFT has to know the domain of values."""
        domain = {}
        if self.contender == "sift" and isinstance(self.workload, WorkloadConfig):
            domain = {"lowest": 1, "highest": self.workload.cardinality}
        return {**find_contender(self.contender).options, **domain, **dict(self.options)}

    @property
    def name(self) -> str:
        """A name for files, without what may not stand in names of files."""
        digest = sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()
        return f"{self.task}-{self.contender}-{digest[:12]}"

    def to_dict(self) -> dict[str, Any]:
        """The point as JSON has it."""
        return {
            "contender": self.contender,
            "workload": asdict(self.workload),
            "task": self.task,
            "options": dict(self.options),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Point:
        """A point from the output of `to_dict`."""
        workload = config_from_json(json.dumps(given["workload"]))
        return cls(given["contender"], workload, given["task"], tuple(given["options"].items()))
