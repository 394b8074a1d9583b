"""What is subscribed in a broker, as DataFrames: all subscriptions for `build`, their changes for `update_stream`.

                      the driver                                     executors
    broker folder     SQLite, read-only, beside the process that     do not see it: each partition
                      writes; offsets are the numbers of changes     brings its rows along

A change that was overtaken by a later change of the same subscription is not read any more. So a batch that Spark repeats after a
failure may have fewer rows than at first. The missing rows come in a later batch, with their later changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tamis.broker.feed import FEED, ChangeFeed
from tamis.errors import BrokerError, OptionError, shortened
from tamis.spark.frames import ADDED, CHANGE
from tamis.spark.given import checked_session

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.0 and 4.1, where such a trigger reads one batch

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "number bigint, change string, id bigint, subscriber string, name string, expression string, weight double, "
    "valid_from timestamp, valid_until timestamp"
)
"""The columns of `FEED`, as Spark calls their types."""
_NUMBER = "number"
_SOURCE = "tamis-broker"
_CHANGE = "change"
"""The name of the number in an offset."""


def broker_subscriptions(spark: SparkSession, folder: str | os.PathLike[str]) -> DataFrame:
    """The subscriptions of a broker, for `build`. Removed and paused ones are left out.

    Parameters
    ----------
    spark : SparkSession
    folder : path
        The folder of a broker. It may be open meanwhile, here or in another process on this machine.

    Returns
    -------
    DataFrame
        With the columns ``id``, a number, ``subscriber``, ``name``, ``expression``, ``weight``, ``valid_from`` and
        ``valid_until``. If there are no subscriptions, it is empty and has these columns.

    Raises
    ------
    FrameError, BrokerError
    """
    feed = ChangeFeed(folder)
    try:
        batches = feed.between(0, feed.last())
        rows = pa.Table.from_batches((batch.filter(pc.equal(batch[CHANGE], ADDED)) for batch in batches), FEED)
    finally:
        feed.close()
    frame = checked_session(spark).createDataFrame(rows, SCHEMA)
    return frame.drop(_NUMBER, CHANGE)


def broker_changes(spark: SparkSession, folder: str | os.PathLike[str], after: int = 0) -> DataFrame:
    """The changes of the subscriptions of a broker, for `update_stream` with ``order="number"``.

    Parameters
    ----------
    spark : SparkSession
    folder : path
        The folder of a broker. It may be open meanwhile, here or in another process. The driver must see it as a local
        folder, executors need not.
    after : int
        Start after the change with this number. By default, start with all subscriptions.

    Returns
    -------
    DataFrame
        A stream with the columns of `broker_subscriptions`, ``number`` and ``change``. A paused subscription counts as removed.

    Raises
    ------
    FrameError, BrokerError, OptionError
    """
    if not isinstance(after, int) or isinstance(after, bool) or after < 0:
        raise OptionError(f"`after` must be the number of a change, from 0 on, not {shortened(after)}")
    ChangeFeed(folder).close()  # Fail now, not in the first batch, if there is no broker.
    checked_session(spark).dataSource.register(BrokerSource)
    place = str(Path(os.fsdecode(folder)).absolute())
    return spark.readStream.format(_SOURCE).option("path", place).option("after", after).load()


class BrokerSource(DataSource):
    """The data source of `broker_changes`."""

    @classmethod
    def name(cls) -> str:
        return _SOURCE

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
