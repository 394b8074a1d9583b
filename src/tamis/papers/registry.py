"""The indexes by name."""

from __future__ import annotations

from importlib import import_module

from tamis.errors import UnknownIndexError, shortened
from tamis.papers.interface import Capabilities, Index

AUTO = "auto"
ENGINE = "engine"
"""Our own engine. It is not an index of this package: it owns its subscriptions, versions and files."""

_ENGINE_SUMMARY = "segments with access paths chosen by cost; the default"

INDEXES: dict[str, str | type[Index]] = {
    "scan": "scan:Scan",
    "counting": "counting.index:Counting",
    "propagation": "fabret.propagation:Propagation",
    "static-clustering": "fabret.static_clustering:StaticClustering",
    "dynamic-clustering": "fabret.dynamic_clustering:DynamicClustering",
    "k-index": "k_index.index:KIndex",
    "gryphon": "gryphon:Gryphon",
    "be-tree": "be_tree:BETree",
    "op-index": "op_index.index:OpIndex",
    "ps-tree": "ps_tree.lists:PSTreeLists",
    "pst-bloom": "ps_tree.bloom:PSTBloom",
    "pst-hash": "ps_tree.hashed:PSTHash",
    "cluster-index": "tatbul.cluster_index:ClusterIndex",
    "interval-index": "tatbul.interval_index:IntervalIndex",
    "hybrid-index": "tatbul.hybrid_index:HybridIndex",
    "segment-tree": "tatbul.segment_tree:SegmentTree",
    "interval-tree": "tatbul.interval_tree:IntervalTree",
}
"""Name -> the class, or its module and name: an index is imported only when it is used."""


def find_index(name: str) -> type[Index] | None:
    """The index of a name; None for the engine, which is also what `auto` means.

    Raises
    ------
    UnknownIndexError
        If no index has this name; the message lists all names.
    """
    if name in (AUTO, ENGINE):
        return None
    if not isinstance(name, str) or name not in INDEXES:
        raise UnknownIndexError(name if isinstance(name, str) else shortened(name), [AUTO, ENGINE, *INDEXES])
    return _loaded(INDEXES[name])


def _loaded(entry: str | type[Index]) -> type[Index]:
    if not isinstance(entry, str):
        return entry
    module, name = entry.split(":")
    index: type[Index] = getattr(import_module(f"tamis.papers.{module}"), name)
    return index


def all_indexes() -> dict[str, type[Index]]:
    """All indexes by name, without the engine."""
    return {name: _loaded(entry) for name, entry in INDEXES.items()}


def summary_of(name: str) -> str:
    """A description of an index in one line."""
    index = find_index(name)
    return _ENGINE_SUMMARY if index is None else index.summary


def indexes() -> dict[str, Capabilities]:
    """All indexes by name, with their capabilities.

    >>> "scan" in indexes()
    True
    """
    return {ENGINE: Capabilities(), **{name: index.capabilities for name, index in all_indexes().items()}}
