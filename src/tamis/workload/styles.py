"""The styles of workloads, and the config class of each style."""

from __future__ import annotations

from typing import TypeAlias, get_args

from tamis.errors import WorkloadError
from tamis.workload.ads import AdsConfig
from tamis.workload.alerts import AlertsConfig
from tamis.workload.config import WorkloadConfig
from tamis.workload.detection import DetectionConfig
from tamis.workload.fabret import FabretConfig
from tamis.workload.grams import DerivedGramsConfig, GramsConfig
from tamis.workload.keywords import KeywordsConfig
from tamis.workload.parameters import read_parameters
from tamis.workload.prefixes import PrefixesConfig
from tamis.workload.products import ProductsConfig
from tamis.workload.tatbul import TatbulConfig

PredicateConfig: TypeAlias = (
    WorkloadConfig
    | AlertsConfig
    | FabretConfig
    | TatbulConfig
    | AdsConfig
    | GramsConfig
    | DerivedGramsConfig
    | KeywordsConfig
    | ProductsConfig
    | PrefixesConfig
)
"""The configs of workloads whose subscriptions are conjunctions."""

AnyConfig: TypeAlias = PredicateConfig | DetectionConfig

_CLASSES: dict[str, type[AnyConfig]] = {style: kind for kind in get_args(AnyConfig) for style in kind.words["style"]}


def config_from_json(text: str) -> AnyConfig:
    """Read a config from the output of its `to_json`. Without a style it is a `WorkloadConfig`."""
    parameters = read_parameters(text)
    style = parameters.get("style", WorkloadConfig.style)
    if not isinstance(style, str) or style not in _CLASSES:
        raise WorkloadError(f"style must be one of {', '.join(_CLASSES)}, not {style!r}")
    kind = _CLASSES[style]
    return kind(**kind.known(parameters))
