"""Events that are wrong: a timestamp of the year 20000, an attribute given twice, a value that the schema does not allow."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tamis.errors import FrameError
from tamis.spark.frames import REASON, clashing, map_in_arrow, quoted
from tamis.spark.given import checked_frame, checked_index, plain_version
from tamis.spark.manifest import IndexFolder
from tamis.spark.match_task import WrongTask
from tamis.spark.matching import MatchOptions, checked_attributes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def wrong_events(
    events: DataFrame,
    index: str | os.PathLike[str] | DataFrame,
    event_id: str = "id",
    *,
    attributes: Iterable[str] | None = None,
    keep: Iterable[str] = (),
    time: str | None = None,
    version: int | None = None,
) -> DataFrame:
    """The events that `match` leaves out with `skip_wrong`, and why.

    Without it, `match` fails at them, but for strings that are not UTF-8 where no subscription asks about the attribute.

    Parameters
    ----------
    events : DataFrame
        It, `event_id`, `attributes`, `keep` and `time` are as in `match`.
    index : path or DataFrame
        What `build` wrote: its schema says what is declared of attributes. Subscriptions declare nothing.
    version : int, optional
        Of the index; by default the current one.

    Returns
    -------
    DataFrame
        The id of the event under its own name and `reason`, then the columns of `keep`.

    Raises
    ------
    FrameError, OptionError, IndexFolderError
    """
    from pyspark.sql import DataFrame

    checked_frame(events, "events")
    index = checked_index(index)
    options = MatchOptions.of(event_id, attributes, keep, (), None, time, None)
    if isinstance(index, DataFrame):
        return wrong_among(events, None, options)
    return wrong_among(events, IndexFolder(index).manifest(plain_version(version)).schema, options)


def wrong_among(events: DataFrame, schema: dict[str, Any] | None, options: MatchOptions) -> DataFrame:
    """`wrong_events`, where a schema is declared or none; of `options` only those count that concern events.

    Raises
    ------
    FrameError
    """
    from pyspark.sql.types import StringType, StructField, StructType

    attributes = checked_attributes(events, options.carry, options)
    fields = [StructField(name, events.schema[name].dataType) for name in (options.event_id, *options.keep)]
    fields.insert(1, StructField(REASON, StringType()))
    names = tuple(field.name for field in fields)
    clash = clashing(events, names)
    if clash is not None:
        raise FrameError(f"the result would have two columns {clash[1]!r}. Hint: rename that of the events")
    needed = dict.fromkeys([options.event_id, *attributes, *options.keep])
    task = WrongTask(options.event_id, attributes, options.keep, schema, names)
    return map_in_arrow(events.select(*map(quoted, needed)), task, StructType(fields))
