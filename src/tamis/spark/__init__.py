"""Tamis on Apache Spark. Needs the extra: ``pip install 'tamis[spark]'``.

building       build: subscriptions to an index in shards         manifest       the folder of an index, its versions
updating       update, collect_garbage: the next version          segment_files  shards on disk and in memory
matching       match: events with an index                        match_task     what executors do with events
streaming      match_stream, update_stream                        frames         columns of DataFrames
java           a Java for Spark to run on
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.spark.building import BuildReport, build
    from tamis.spark.java import ensure_java
    from tamis.spark.matching import match
    from tamis.spark.streaming import BatchRecord, batch_records, match_stream, update_stream
    from tamis.spark.updating import UpdateReport, collect_garbage, update

_LAZY = {
    "BatchRecord": "streaming",
    "BuildReport": "building",
    "UpdateReport": "updating",
    "batch_records": "streaming",
    "build": "building",
    "collect_garbage": "updating",
    "ensure_java": "java",
    "match": "matching",
    "match_stream": "streaming",
    "update": "updating",
    "update_stream": "streaming",
}

__all__ = [
    "BatchRecord",
    "BuildReport",
    "UpdateReport",
    "batch_records",
    "build",
    "collect_garbage",
    "ensure_java",
    "match",
    "match_stream",
    "update",
    "update_stream",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tamis.spark' has no attribute {name!r}")
    return getattr(import_module(f"tamis.spark.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return __all__
