"""How far a build or an update is: lines of the log, from the logger ``tamis``, while tasks finish shards."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.spark.tallies import BUILT
from tamis.spark.work_counters import Accumulated, is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LINES = 20
"""Most lines for one build, however many shards it has."""

_log = logging.getLogger("tamis")

Batches = Iterator[pa.RecordBatch]
Task = Callable[[Batches], Batches]


class Progress:
    """Says how many shards are done, each time that a further twentieth of them is."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._said = 0

    def reached(self, done: int) -> None:
        line = done * min(_LINES, self._total) // self._total
        if line > self._said:
            self._said = line
            _log.info("%s of %s shards are done", f"{done:,}", f"{self._total:,}")


@contextmanager
def told_progress(spark: SparkSession, task: Task, shards: int) -> Iterator[Task]:
    """A task that makes a row of each shard, so that the log says how many are done."""
    progress = Progress(shards)
    if not is_connect(spark):
        with Accumulated(spark, lambda sums: progress.reached(int(sums.get(BUILT, 0)))) as counters:
            yield CountedTask(task, counters.accumulator)
        return

    def handler(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        # The last stage of the job has one task for each shard.
        made = [stage.num_completed_tasks for stage in stages or () if stage.num_tasks == shards]
        progress.reached(made[-1] if made else 0)

    session: Any = spark  # Only sessions of Connect have handlers.
    session.registerProgressHandler(handler)
    try:
        yield task
    finally:
        session.removeProgressHandler(handler)


@dataclass(frozen=True)
class CountedTask:
    """A task whose rows are counted."""

    task: Task
    accumulator: Any

    def __call__(self, batches: Batches) -> Batches:
        for batch in self.task(batches):
            yield batch
            self.accumulator.add({BUILT: batch.num_rows})
