"""Tamis on Apache Spark. Needs the extra: ``pip install 'tamis[spark]'``.

Read in this order:

    building              build: subscriptions to an index           manifest       what is at an index's address
    updating              update, collect_garbage: a new version     bucket_tasks   what both do in executors
    index_folder          an index at its address, its versions      store          folders and object stores
    cache                 files of stores, kept on a host's disk     seals          sizes and checksums of files
    segment_files         the files of segments, and open segments   contents       the subscriptions of an index
    matching              match: events with an index                match_task     what executors do with events
    task_card             the card that Spark gives to a task
    streaming             match_stream, update_stream                stream_output  batches as files, read_output
    frames                columns of DataFrames                      addresses      paths and addresses
    broker_feed           what is subscribed in a broker             broker_source  its changes as a stream
    broker_sink           to_broker: matches for its queues          event_values   which rows of matches are one event
    computed_column       columns that Python computes from events
    event_checks          wrong_events: events that cannot be matched
    pair_explanations     explain: why events satisfy subscriptions or not
    rejected_rows         rows that were refused, with the reasons   given          checks of arguments of public functions
    attribute_statistics  statistics: what events look like          workloads      generated workloads, as jobs
    pipeline              run_pipeline: all of it, from raw files    raw_files      raw files as DataFrames
    summary_page          the page that a pipeline writes            session, java  what our own jobs run on
    warming               warm_up: kernels on all hosts            tallies        what a task counts
    work_counters         the tallies of all tasks, added up       build_progress how many shards are done
    batch_listener        what Spark and tasks did in a batch      arrow_files    files of S3 through Arrow's own reader
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.spark.attribute_statistics import statistics
    from tamis.spark.batch_listener import BatchListener, BatchProgress
    from tamis.spark.broker_feed import broker_changes, broker_subscriptions
    from tamis.spark.broker_sink import to_broker
    from tamis.spark.building import BuildReport, build
    from tamis.spark.contents import rejections, subscriptions
    from tamis.spark.event_checks import wrong_events
    from tamis.spark.java import ensure_java
    from tamis.spark.matching import match
    from tamis.spark.pair_explanations import explain
    from tamis.spark.pipeline import run_pipeline
    from tamis.spark.session import start_session
    from tamis.spark.stream_output import read_output
    from tamis.spark.streaming import BatchRecord, batch_records, match_stream, update_stream
    from tamis.spark.updating import UpdateReport, collect_garbage, update
    from tamis.spark.warming import WarmHost, warm_up
    from tamis.spark.workloads import generate_events, generate_subscriptions

_LAZY = {
    "BatchListener": "batch_listener",
    "BatchProgress": "batch_listener",
    "BatchRecord": "streaming",
    "BuildReport": "building",
    "UpdateReport": "updating",
    "WarmHost": "warming",
    "batch_records": "streaming",
    "broker_changes": "broker_feed",
    "broker_subscriptions": "broker_feed",
    "build": "building",
    "collect_garbage": "updating",
    "ensure_java": "java",
    "explain": "pair_explanations",
    "generate_events": "workloads",
    "generate_subscriptions": "workloads",
    "match": "matching",
    "match_stream": "streaming",
    "read_output": "stream_output",
    "rejections": "contents",
    "run_pipeline": "pipeline",
    "start_session": "session",
    "statistics": "attribute_statistics",
    "subscriptions": "contents",
    "to_broker": "broker_sink",
    "update": "updating",
    "update_stream": "streaming",
    "warm_up": "warming",
    "wrong_events": "event_checks",
}

__all__ = [
    "BatchListener",
    "BatchProgress",
    "BatchRecord",
    "BuildReport",
    "UpdateReport",
    "WarmHost",
    "batch_records",
    "broker_changes",
    "broker_subscriptions",
    "build",
    "collect_garbage",
    "ensure_java",
    "explain",
    "generate_events",
    "generate_subscriptions",
    "match",
    "match_stream",
    "read_output",
    "rejections",
    "run_pipeline",
    "start_session",
    "statistics",
    "subscriptions",
    "to_broker",
    "update",
    "update_stream",
    "warm_up",
    "wrong_events",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tamis.spark' has no attribute {name!r}")
    return getattr(import_module(f"tamis.spark.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return __all__
