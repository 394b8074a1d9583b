"""The shapes of workloads for the engine's benchmark: presets, and for wide domains also variants with few values and floats.

    shape        variants
    dense        dense
    wide-12      wide-12, 100 values | wide-12 | wide-12, floats

A variant is a preset with some parameters changed. The match probability is inversely proportional to the number of
subscriptions. So a planted event is planted for the same number of subscriptions at every size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.workload import AnyConfig, preset

PLANTED_MATCHES = 1_000
"""The number of subscriptions derived from each planted event, at every size."""

_ALERTS_PER_SYMBOL = 1_000


class Variant(NamedTuple):
    """A preset with some parameters changed."""

    name: str
    preset: str
    changes: dict[str, Any]


def _one(name: str) -> list[Variant]:
    return [Variant(name, name, {})]


def _wide(name: str, narrow: bool = True) -> list[Variant]:
    few = [Variant(f"{name}, 100 values", name, {"cardinality": 100})] if narrow else []
    return [*few, Variant(name, name, {}), Variant(f"{name}, floats", name, {"numbers": "float"})]


SHAPES: dict[str, list[Variant]] = {
    **{name: _one(name) for name in ("dense", "sparse", "zipf", "range", "ads", "alerts")},
    # The variant with 100 values is `dense`.
    "wide-dense": _wide("wide-dense", narrow=False),
    **{name: _wide(name) for name in ("wide-range", "wide-12", "wide-12-range")},
}
"""Name of a shape -> its variants."""

RULES = "detection"
"""The shape with texts. It is measured separately: its number of rules is fixed, and other systems are measured too."""


NARROW: dict[str, Variant] = {
    name: SHAPES["dense"][0] if variants[0].name == name else variants[0]
    for name, variants in SHAPES.items()
    if name.startswith("wide")
}
"""Name of a wide shape -> the same shape with 100 values."""


def config_of(variant: Variant, subscriptions: int, seed: int) -> AnyConfig:
    """The config of a variant with `subscriptions` subscriptions."""
    if variant.preset == "alerts":
        scaled: dict[str, Any] = {"symbols": max(1, subscriptions // _ALERTS_PER_SYMBOL)}
    else:
        scaled = {"match_probability": min(1.0, PLANTED_MATCHES / subscriptions)}
    return preset(variant.preset, subscriptions=subscriptions, seed=seed, **scaled, **variant.changes)
