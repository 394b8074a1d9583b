"""Workloads as Spark jobs: executors make the same subscriptions and events as `tamis.workload`, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.errors import FrameError
from tamis.spark.given import checked_session
from tamis.workload import EVENT_BLOCK, AnyConfig, Workload, generate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENT_ID = "id"


def generate_subscriptions(spark: SparkSession, config: AnyConfig, partitions: int | None = None) -> DataFrame:
    """The subscriptions of a workload: `id`, and `predicates` or `expression`, ready for `build`.

    Parameters
    ----------
    spark : SparkSession
    config : WorkloadConfig, AlertsConfig or DetectionConfig
        See `tamis.workload.preset`.
    partitions : int, optional
        Number of tasks. By default, Spark decides.
    """
    checked_session(spark)
    workload = generate(config)
    return _blocks(spark, workload.blocks, partitions, _Subscriptions(workload), workload.subscription_schema)


def generate_events(
    spark: SparkSession,
    config: AnyConfig,
    count: int,
    *,
    wide: bool = False,
    other: bool = False,
    partitions: int | None = None,
) -> DataFrame:
    """The first events of a workload, numbered in the column `id`.

    Parameters
    ----------
    spark : SparkSession
    config : WorkloadConfig, AlertsConfig or DetectionConfig
    count : int
        Number of events.
    wide : bool
        If True, make one column per attribute instead of one column for all attributes.
    other : bool
        If True, return events from which no subscription is derived, see `tamis.workload.Workload.other_events`.
    partitions : int, optional
        Number of tasks. By default, Spark decides.
    """
    checked_session(spark)
    if not isinstance(count, int) or count < 0:
        raise FrameError(f"the number of events must be a whole number of at least 0, not {count!r}")
    workload = generate(config)
    schema = workload.event_schema(wide=wide)
    if EVENT_ID in schema.names:
        raise FrameError(f"the workload already has an attribute {EVENT_ID!r}")
    schema = schema.insert(0, pa.field(EVENT_ID, pa.int64()))
    return _blocks(spark, -(-count // EVENT_BLOCK), partitions, _Events(workload, count, wide, other), schema)


def _blocks(
    spark: SparkSession, blocks: int, partitions: int | None, make: Callable[[int], pa.RecordBatch], schema: pa.Schema
) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    numbers = spark.range(0, blocks, 1, partitions) if partitions is not None else spark.range(blocks)
    return numbers.mapInArrow(_Task(make), from_arrow_schema(schema))


@dataclass(frozen=True)
class _Task:
    """Makes the blocks with the numbers that it gets."""

    make: Callable[[int], pa.RecordBatch]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch.column(0).to_pylist():
                yield self.make(block)


@dataclass(frozen=True)
class _Subscriptions:
    workload: Workload

    def __call__(self, block: int) -> pa.RecordBatch:
        return self.workload.subscription_block(block)


@dataclass(frozen=True)
class _Events:
    workload: Workload
    count: int
    wide: bool
    other: bool

    def __call__(self, block: int) -> pa.RecordBatch:
        batch = self.workload.event_block(block, self.count, wide=self.wide, other=self.other)
        first = block * EVENT_BLOCK
        numbers = pa.array(range(first, first + len(batch)), pa.int64())
        return pa.RecordBatch.from_arrays([numbers, *batch.columns], names=[EVENT_ID, *batch.schema.names])
