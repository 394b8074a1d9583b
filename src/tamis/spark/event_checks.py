"""Events that are wrong: a timestamp of the year 20000, an attribute given twice, a value that the schema does not allow."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tamis.errors import FrameError
from tamis.spark.frames import REASON, clashing, map_in_arrow, quoted
from tamis.spark.manifest import IndexFolder, Manifest
from tamis.spark.match_task import WrongTask
from tamis.spark.matching import MatchOptions, checked_attributes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def wrong_events(
    events: DataFrame,
    index: str | os.PathLike[str],
    event_id: str = "id",
    *,
    attributes: Iterable[str] | None = None,
    keep: Iterable[str] = (),
    time: str | None = None,
    version: int | None = None,
) -> DataFrame:
    """The events that `match` fails at, or leaves out with `skip_wrong`, and why.

    Parameters
    ----------
    events : DataFrame
        It, `event_id`, `attributes`, `keep` and `time` are as in `match`.
    index : path
        What `build` wrote: its schema says what is declared of attributes.
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
    options = MatchOptions.of(event_id, attributes, keep, (), None, time, None)
    return wrong_among(events, IndexFolder(index).manifest(version), options)


def wrong_among(events: DataFrame, manifest: Manifest, options: MatchOptions) -> DataFrame:
    """`wrong_events`, for one version of an index."""
    from pyspark.sql.types import StringType, StructField, StructType

    attributes = checked_attributes(events, manifest.columns, options)
    fields = [StructField(name, events.schema[name].dataType) for name in (options.event_id, *options.keep)]
    fields.insert(1, StructField(REASON, StringType()))
    names = tuple(field.name for field in fields)
    clash = clashing(events, names)
    if clash is not None:
        raise FrameError(f"the result would have two columns {clash[1]!r}. Hint: rename that of the events")
    needed = dict.fromkeys([options.event_id, *attributes, *options.keep])
    task = WrongTask(options.event_id, attributes, options.keep, manifest.schema, names)
    return map_in_arrow(events.select(*map(quoted, needed)), task, StructType(fields))
