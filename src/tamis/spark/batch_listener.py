"""What happened in each micro-batch of a stream, told as soon as it ends: Spark's own times, and the counters of our tasks."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryListener

from tamis.errors import IndexFolderError, OptionError, shortened
from tamis.spark.store import open_store
from tamis.spark.streaming import batch_record

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

_log = logging.getLogger("tamis")

_METADATA = "metadata"
"""The file of a checkpoint in which Spark notes the id of its query."""
_WHOLE, _WORK = "triggerExecution", "addBatch"
"""What Spark calls the time of a batch as a whole, and the part of it that matches and writes."""


class BatchProgress(NamedTuple):
    """A micro-batch that has ended.

    Attributes
    ----------
    batch, version : int
        Its number, and the version of the index.
    rows : int
        Rows that Spark has read.
    seconds : float
        How long it took.
    phases : dict
        Seconds of Spark's own phases, such as ``walCommit`` and ``queryPlanning``. ``addBatch`` is matching and writing.
    counters : dict or None
        What our tasks did, as in `batch_records`.
    """

    batch: int
    version: int
    rows: int
    seconds: float
    phases: dict[str, float]
    counters: dict[str, float] | None

    def __str__(self) -> str:
        done = self.counters or {}
        own = self.seconds - self.phases.get(_WORK, 0.0)
        return (
            f"batch {self.batch} with version {self.version}: {self.rows:,} rows, {done.get('matches', 0):,} matches, "
            f"{self.seconds:.1f} s, of this {own:.1f} s beside matching and writing"
        )


class BatchListener(StreamingQueryListener):
    """Tells each micro-batch of a query of `match_stream`. Give it to ``spark.streams.addListener``.

    Parameters
    ----------
    checkpoint : path
        The checkpoint of the query. Other queries of the session are not told.
    report : callable, optional
        A function that gets a `BatchProgress`. By default, the logger ``tamis`` gets a line. Spark calls the function in a
        thread of its own, soon after the batch has ended.

    Raises
    ------
    IndexFolderError, OptionError
    """

    def __init__(
        self, checkpoint: str | os.PathLike[str], report: Callable[[BatchProgress], object] | None = None
    ) -> None:
        if report is not None and not callable(report):
            raise OptionError(f"`report` must be a function of a BatchProgress, not {shortened(report)}")
        self._checkpoint = open_store(checkpoint)
        self._report = report
        self._query: str | None = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is told."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Tell a batch, if it is one of the query and not just a look for new data."""
        progress = event.progress
        if _WORK not in progress.durationMs or not self._is_own(progress):
            return
        record = batch_record(self._checkpoint, progress.batchId)
        if record is None:
            return
        phases = {name: milliseconds / 1000 for name, milliseconds in progress.durationMs.items()}
        told = BatchProgress(
            batch=record.batch,
            version=record.version,
            rows=progress.numInputRows,
            seconds=phases.pop(_WHOLE, 0.0),
            phases=phases,
            counters=record.counters,
        )
        if self._report is None:
            _log.info("%s", told)
        else:
            self._report(told)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing is told."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Nothing is told."""

    def _is_own(self, progress: StreamingQueryProgress) -> bool:
        if self._query is None:
            try:
                metadata: dict[str, Any] = json.loads(self._checkpoint.read(_METADATA))
            except (FileNotFoundError, IndexFolderError):
                return False
            self._query = metadata["id"]
        return str(progress.id) == self._query
