"""The public function of the generator: from a config to its workload."""

from __future__ import annotations

from typing import overload

from tamis.workload.detection import DetectionConfig
from tamis.workload.predicate_workload import PredicateWorkload
from tamis.workload.rule_workload import RuleWorkload
from tamis.workload.styles import AnyConfig, PredicateConfig
from tamis.workload.workload import Workload


@overload
def generate(config: PredicateConfig) -> PredicateWorkload: ...
@overload
def generate(config: DetectionConfig) -> RuleWorkload: ...
@overload
def generate(config: AnyConfig) -> Workload: ...
def generate(config: AnyConfig) -> Workload:
    """The workload of a config. It draws subscriptions and events only when a method needs them.

    >>> from tamis.workload import generate, preset
    >>> workload = generate(preset("dense", subscriptions=20_000))
    >>> workload.subscriptions().num_rows, workload.events(5).num_rows
    (20000, 5)
    """
    return RuleWorkload(config) if isinstance(config, DetectionConfig) else PredicateWorkload(config)
