"""The shapes of workload that the engine is measured on: presets, and for wide domains the same with few values and floats.

    shape        variants
    dense        dense
    wide-12      wide-12, 100 values | wide-12 | wide-12, floats

A variant is a preset with some parameters changed. The matching probability goes down as the number of subscriptions goes
up, so that an event planted for some subscriptions is planted for as many of them at every size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.workload import AnyConfig, preset

PLANTED_MATCHES = 1_000
"""Subscriptions for which each planted event is planted, at every size."""

_ALERTS_PER_SYMBOL = 1_000


class Variant(NamedTuple):
    """A preset with changes."""

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
    # With 100 values it is `dense`.
    "wide-dense": _wide("wide-dense", narrow=False),
    **{name: _wide(name) for name in ("wide-range", "wide-12", "wide-12-range")},
}
"""Name of a shape -> its variants."""

RULES = "detection"
"""The shape of text, which is measured apart: its number of rules is fixed, and other systems are asked too."""


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
