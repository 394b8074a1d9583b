"""What is subscribed in a broker, as DataFrames: all subscriptions for `build`, their changes for `update_stream`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tamis.broker.feed import FEED, ChangeFeed
from tamis.errors import OptionError, shortened
from tamis.spark.frames import ADDED, CHANGE
from tamis.spark.given import checked_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBER = "number"


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
    from tamis.spark.broker_source import SCHEMA

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
    from tamis.spark.broker_source import NAME, BrokerSource

    if not isinstance(after, int) or isinstance(after, bool) or after < 0:
        raise OptionError(f"`after` must be the number of a change, from 0 on, not {shortened(after)}")
    ChangeFeed(folder).close()  # Fail now, not in the first batch, if there is no broker.
    checked_session(spark).dataSource.register(BrokerSource)
    place = str(Path(os.fsdecode(folder)).absolute())
    return spark.readStream.format(NAME).option("path", place).option("after", after).load()
