"""Named workloads: the default columns of the papers, and the shapes that our own benchmarks use.

The tables of the papers mark defaults in bold, but our copies of the text have lost the bold. If the prose repeats a default, we
use it. The other defaults are ours: for PS-Tree alpha, cardinality, sizes, match probability and equality ratio; for OpIndex the
middle of each row.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, overload

from tamis.errors import WorkloadError, did_you_mean
from tamis.workload.ads import AdsConfig
from tamis.workload.alerts import AlertsConfig
from tamis.workload.config import WorkloadConfig
from tamis.workload.detection import DetectionConfig
from tamis.workload.fabret import FabretConfig
from tamis.workload.grams import DerivedGramsConfig, GramsConfig
from tamis.workload.keywords import KeywordsConfig
from tamis.workload.prefixes import PrefixesConfig
from tamis.workload.products import ProductsConfig
from tamis.workload.styles import AnyConfig
from tamis.workload.tatbul import TatbulConfig

_DENSE = WorkloadConfig(
    dimensions=100, cardinality=100, subscription_size=10, event_size=30, match_probability=0.001, equality_ratio=0.4
)
# Wide domains of a million values. Change `cardinality` to compare with few values, or `numbers` to use floats.
_WIDE = replace(_DENSE, cardinality=1_000_000)
_WIDE_12 = replace(_WIDE, dimensions=12, subscription_size=4, event_size=10)

PRESETS: MappingProxyType[str, AnyConfig] = MappingProxyType(
    {
        # BE-Tree, Table 3, first column.
        "be-tree": WorkloadConfig(
            dimensions=400,
            cardinality=48,
            subscription_size=7,
            event_size=15,
            match_probability=0.01,
            equality_ratio=0.3,
        ),
        # PS-Tree, Table 1: the two defaults for the number of dimensions.
        "ps-tree-dense": _DENSE,
        "ps-tree-sparse": replace(_DENSE, dimensions=30_000),
        # OpIndex, Table 3.
        "op-index": WorkloadConfig(
            style="op-index",
            dimensions=20_000,
            cardinality=800,
            subscription_size=12,
            event_size=60,
            equality_ratio=0.6,
        ),
        "dense": _DENSE,
        "sparse": replace(_DENSE, dimensions=30_000),
        "zipf": replace(_DENSE, dimensions=1_000, alpha=1),
        "range": replace(_DENSE, dimensions=20, subscription_size=5, event_size=15, equality_ratio=0),
        "ads": replace(
            _DENSE,
            dimensions=122,
            cardinality=40,
            subscription_size=9,
            event_size=20,
            equality_ratio=0.3,
            alpha=0.5,
            operator_class="high",
        ),
        "wide-dense": _WIDE,
        "wide-range": replace(_WIDE, equality_ratio=0),
        "wide-12": _WIDE_12,
        "wide-12-range": replace(_WIDE_12, equality_ratio=0),
        "alerts": AlertsConfig(),
        "detection": DetectionConfig(),
        # Fabret et al.: their aging experiment changes from one focus to the other, or to few values.
        "fabret": FabretConfig(),
        "fabret-inequalities": FabretConfig(fixed_equal=1, equality_ratio=0.5),
        "fabret-focus": FabretConfig(focus_names=16),
        "fabret-other-focus": FabretConfig(focus_names=16, focus_start=16),
        "fabret-few-values": FabretConfig(few_values=2),
        # Tatbul, figures 7 and 8; PS-Tree, table 3: 100,000 intervals and points on one attribute.
        "tatbul": TatbulConfig(),
        "ps-tree-intervals": TatbulConfig(
            subscriptions=100_000, dimensions=1, length=100, alpha=0, spread=500_000, events=100_000
        ),
        # PS-Tree, table 2.
        "ps-tree-ads": AdsConfig(),
        # BE-Tree, Table 3, last four columns: DBLP.
        "be-tree-authors": GramsConfig(),
        "be-tree-titles": GramsConfig(text="titles", subscriptions=250_000),
        "be-tree-match-authors": DerivedGramsConfig(),
        "be-tree-match-titles": DerivedGramsConfig(
            text="titles", subscriptions=150_000, subscription_size=30, event_size=43
        ),
        # PS-Tree, figure 15; OpIndex, figure 11.
        "ps-tree-query-log": KeywordsConfig(
            subscriptions=2_100_000, predicates="halves", documents="pages", vocabulary=200_000
        ),
        "op-index-twitter": KeywordsConfig(),
        "op-index-twitter-counts": KeywordsConfig(predicates="counts"),
        "op-index-wikipedia": KeywordsConfig(documents="articles"),
        "op-index-wikipedia-counts": KeywordsConfig(predicates="counts", documents="articles"),
        # OpIndex, figures 12 and 14.
        "op-index-ebay": ProductsConfig(),
        "op-index-ebay-sets": ProductsConfig(conditions="set"),
        "op-index-prefixes": PrefixesConfig(),
    }
)
"""Name of a preset -> its config, with 1,000,000 subscriptions (detection: 4,000) and seed 1."""

PaperPreset = Literal[
    "be-tree",
    "ps-tree-dense",
    "ps-tree-sparse",
    "op-index",
    "dense",
    "sparse",
    "zipf",
    "range",
    "ads",
    "wide-dense",
    "wide-range",
    "wide-12",
    "wide-12-range",
]


@overload
def preset(name: PaperPreset, **changes: Any) -> WorkloadConfig: ...
@overload
def preset(name: Literal["alerts"], **changes: Any) -> AlertsConfig: ...
@overload
def preset(name: Literal["detection"], **changes: Any) -> DetectionConfig: ...
@overload
def preset(name: str, **changes: Any) -> AnyConfig: ...
def preset(name: str, **changes: Any) -> AnyConfig:
    """The config of a preset, with some parameters changed.

    >>> preset("zipf", subscriptions=10_000).dimensions
    1000
    """
    if name not in PRESETS:
        known = list(PRESETS)
        raise WorkloadError(f"no workload {name!r}{did_you_mean(name, known)}; the workloads are: {', '.join(known)}")
    config = PRESETS[name]
    return replace(config, **config.known(changes))
