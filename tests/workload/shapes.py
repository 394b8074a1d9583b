"""The presets that every index and Spark are tried with. The other presets are tried with few indexes: all take too long."""

from __future__ import annotations

SHAPES = [
    "ads", "alerts", "be-tree", "dense", "detection", "op-index", "range", "sparse", "wide-12", "wide-12-range", "wide-dense",
    "wide-range", "zipf",
]  # fmt: skip
"""The presets of the PS-Tree paper are equal to dense and sparse, so they are not here."""
