"""The data source of `broker_changes`. Spark starts some processes that import this module, so it imports little.

                      the driver                                     executors
    broker folder     SQLite, read-only, beside the process that     do not see it: each partition
                      writes; offsets are the numbers of changes     brings its rows along

A change that was overtaken by a later change of the same subscription is not read any more. So a batch that Spark repeats after a
failure may have fewer rows than at first. The missing rows come in a later batch, with their later changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tamis.errors import BrokerError

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.0 and 4.1, where such a trigger reads one batch

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


if TYPE_CHECKING:
    from tamis.broker.feed import ChangeFeed

NAME = "tamis-broker"
SCHEMA = (
    "number bigint, change string, id bigint, subscriber string, name string, expression string, weight double, "
    "valid_from timestamp, valid_until timestamp"
)
"""The columns of the feed, as Spark calls their types."""
_CHANGE = "change"
"""The name of the number in an offset."""


class BrokerSource(DataSource):
    """The data source of `broker_changes`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> ChangeReader:  # noqa: N802 - Spark's name
        return ChangeReader(self.options["path"], int(self.options["after"]))


class Rows(InputPartition):
    """Rows of the feed as bytes in Arrow's format, which executors get with their tasks."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        super().__init__(sink.getvalue().to_pybytes())

    def batches(self) -> Iterator[pa.RecordBatch]:
        return iter(pa.ipc.open_stream(self.value))


class ChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the feed on the driver. Offsets are numbers of changes."""

    def __init__(self, path: str, after: int) -> None:
        self._path = path
        self._after = after
        self._most: int | None = None
        """The last change that was there when a query with the trigger `availableNow` began."""
        self._opened: ChangeFeed | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Spark also sends a reader to executors, to decode rows.
        return {**vars(self), "_opened": None}

    @property
    def _feed(self) -> ChangeFeed:
        from tamis.broker.feed import ChangeFeed

        if self._opened is None:
            self._opened = ChangeFeed(self._path)
        return self._opened

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {_CHANGE: self._after}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._most = self._feed.last()

    # Spark 4.0 and 4.1 give no arguments.
    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        return {_CHANGE: self._feed.last() if self._most is None else self._most}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Rows]:
        if end[_CHANGE] < start[_CHANGE]:
            raise BrokerError(
                f"the last change of {self._path} has the number {end[_CHANGE]}, but this stream has read change "
                f"{start[_CHANGE]}: the folder was restored from a backup. Hint: build the index again, and start the stream "
                "with a new checkpoint"
            )
        return [Rows(batch) for batch in self._feed.between(start[_CHANGE], end[_CHANGE])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        return partition.batches()

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()
