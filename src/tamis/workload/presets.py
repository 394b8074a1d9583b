"""Named workloads: the default columns of the papers, and the shapes that our own benchmarks use.

Where a paper's table marks its defaults in bold, the bold is lost in the text that we have; what the prose repeats is the
paper's, the rest ours: for PS-Tree alpha, cardinality, sizes, match probability and equality ratio, for OpIndex
the middle of each row.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tamis.errors import WorkloadError, did_you_mean
from tamis.workload.config import WorkloadConfig, known_parameters

_DENSE = WorkloadConfig(
    dimensions=100, cardinality=100, subscription_size=10, event_size=30, match_probability=0.001, equality_ratio=0.4
)

PRESETS = MappingProxyType(
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
    }
)
"""Name of a preset -> its config, with 1,000,000 subscriptions and seed 1."""


def preset(name: str, **changes: Any) -> WorkloadConfig:
    """The config of a preset, with some parameters changed.

    >>> preset("zipf", subscriptions=10_000).dimensions
    1000
    """
    if name not in PRESETS:
        known = list(PRESETS)
        raise WorkloadError(f"no workload {name!r}{did_you_mean(name, known)}; there are: {', '.join(known)}")
    return replace(PRESETS[name], **known_parameters(changes))
