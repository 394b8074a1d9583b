"""Contenders: what stands in the papers' plots, under the papers' names.

The figures for memory and time are what a point of a plot may cost. They decide which points fit into the machine, and how long a
run will take. They were measured on the workloads of the papers at 100,000 subscriptions, and are rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tamis.errors import ExperimentError, did_you_mean


class Contender(NamedTuple):
    """Something that matches."""

    label: str
    """Its name in plots."""
    index_name: str
    """Its index: one of the registry, `auto` for our engine, or a library."""
    options: Mapping[str, Any]
    bytes_each: int
    """Bytes of its index for one subscription."""
    build: float
    """Microseconds to take in one subscription."""
    match: float
    """Microseconds of one event for each 1,000 subscriptions."""


LIBRARIES = ("duckdb", "polars")
"""Contenders that are no index: see `tamis.experiments.peers`."""

CONTENDERS: Mapping[str, Contender] = MappingProxyType(
    {
        "tamis": Contender("Tamis", "auto", {}, 200, 6.0, 0.1),
        "scan": Contender("SCAN", "scan", {}, 80, 6.0, 20.0),
        "counting": Contender("Counting", "counting", {}, 400, 15.0, 10.0),
        "sift": Contender("SIFT", "counting", {"method": "enumeration"}, 700, 20.0, 6.0),
        "propagation": Contender("Propagation", "propagation", {"prefetch": False}, 350, 12.0, 6.0),
        "propagation-wp": Contender("Propagation-wp", "propagation", {}, 350, 12.0, 5.0),
        "static": Contender("Static", "static-clustering", {}, 600, 60.0, 5.0),
        "dynamic": Contender("Dynamic", "dynamic-clustering", {}, 800, 80.0, 5.0),
        "k-index": Contender("k-index", "k-index", {}, 1_500, 25.0, 70.0),
        "gryphon": Contender("Gryphon", "gryphon", {}, 300, 15.0, 6.0),
        "be-tree": Contender("BE-Tree", "be-tree", {"batch": False}, 600, 140.0, 4.0),
        "be-tree-b": Contender("BE-B", "be-tree", {}, 600, 16.0, 3.0),
        "op-index": Contender("OpIndex", "op-index", {}, 300, 14.0, 26.0),
        "op-index-bs": Contender("OpIndex-BS", "op-index", {"signatures": False}, 300, 11.0, 15.0),
        "op-index-sorted": Contender("OpIndex, kept sorted", "op-index", {"sort": "always"}, 300, 1_000.0, 26.0),
        "ps-tree": Contender("PS-Tree", "ps-tree", {}, 600, 40.0, 1.0),
        "pst-bloom": Contender("PSTBloom", "pst-bloom", {}, 1_100, 20.0, 1.0),
        "pst-hash": Contender("PSTHash", "pst-hash", {}, 2_200, 30.0, 1.0),
        "pst-hash-cells": Contender(
            "PSTHash, up to 4,096 cells", "pst-hash", {"most_cells": 4_096}, 30_000, 350.0, 2.0
        ),
        "cluster-index": Contender("Cluster Index", "cluster-index", {}, 4_000, 300.0, 10.0),
        "interval-index": Contender("Interval Index", "interval-index", {}, 4_000, 300.0, 5.0),
        "hybrid-index": Contender("Hybrid Index", "hybrid-index", {}, 4_000, 300.0, 8.0),
        "segment-tree": Contender("Segment Tree", "segment-tree", {}, 4_000, 300.0, 5.0),
        "interval-tree": Contender("Interval Tree", "interval-tree", {}, 4_000, 300.0, 5.0),
        "duckdb": Contender("DuckDB", "duckdb", {}, 400, 100.0, 200.0),
        "polars": Contender("polars", "polars", {}, 4_000, 100.0, 300.0),
    }
)


def find_contender(name: str) -> Contender:
    """The contender of this name.

    Raises
    ------
    ExperimentError
    """
    if name not in CONTENDERS:
        known = ", ".join(CONTENDERS)
        raise ExperimentError(
            f"no contender {name!r}{did_you_mean(name, list(CONTENDERS))}; the contenders are: {known}"
        )
    return CONTENDERS[name]
