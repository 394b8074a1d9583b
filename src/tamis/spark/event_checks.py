"""Wrong events, such as a timestamp of the year 20000, an attribute given twice, or a value that the schema does not allow."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tamis.encoding.events.asked import Asked
from tamis.errors import FrameError
from tamis.language.schema import Schema
from tamis.spark.frames import REASON, asked_columns, clashing, map_in_arrow, quoted
from tamis.spark.given import checked_frame, checked_index, checked_version
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import Manifest
from tamis.spark.match_task import WrongTask
from tamis.spark.matching import MatchOptions, built_once, checked_attributes
from tamis.spark.segment_files import asked_attributes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def wrong_events(
    events: DataFrame,
    index: str | os.PathLike[str] | DataFrame,
    event_id: str = "id",
    *,
    attributes: Iterable[str] | None = None,
    keep: Iterable[str] = (),
    time: str | None = None,
    version: int | None = None,
    json: str | None = None,
) -> DataFrame:
    """The events that `match` leaves out with `skip_wrong`, with the reasons.

    Without `skip_wrong`, `match` fails at these events. A value never makes an event wrong if no subscription asks about it and
    no schema declares it.

    Parameters
    ----------
    events : DataFrame
        `events`, `event_id`, `attributes`, `keep`, `time` and `json` are as in `match`.
    index : path or DataFrame
        A folder that `build` wrote, or a DataFrame of subscriptions, as in `match`.
    version : int, optional
        Version of the index. By default, the current one.

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
    folder = IndexFolder.of(built_once(index) if isinstance(index, DataFrame) else index, events.sparkSession)
    options = MatchOptions.of(event_id, attributes, keep, (), None, time, None, json=json)
    return wrong_among(events, folder, folder.manifest(checked_version(version)), options)


def wrong_among(events: DataFrame, folder: IndexFolder, manifest: Manifest, options: MatchOptions) -> DataFrame:
    """`wrong_events` for one version of an index; only the `options` about events count.

    Raises
    ------
    FrameError
    """
    result = wrong_result(events, options)
    declared = None if manifest.schema is None else Schema.of(manifest.schema)
    names = asked_attributes(folder, manifest.segments)
    chosen = checked_attributes(events, options.carry, options)
    is_json = options.json is not None
    attributes = chosen if is_json else asked_columns(events.schema, chosen, Asked.names(names, declared))
    needed = dict.fromkeys([options.event_id, *attributes, *options.keep])
    task = WrongTask(options.event_id, attributes, options.keep, names, manifest.schema, tuple(result.names), is_json)
    return map_in_arrow(events.select(*map(quoted, needed)), task, result)


def wrong_result(events: DataFrame, options: MatchOptions) -> StructType:
    """The columns of `wrong_among`.

    Raises
    ------
    FrameError
        If two columns would have the same name.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    checked_attributes(events, options.carry, options)
    fields = [StructField(name, events.schema[name].dataType) for name in (options.event_id, *options.keep)]
    fields.insert(1, StructField(REASON, StringType()))
    clash = clashing(events, [field.name for field in fields])
    if clash is not None:
        raise FrameError(f"the result would have two columns {clash[1]!r}. Hint: rename the column of the events")
    return StructType(fields)
