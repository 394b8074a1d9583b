"""Why events satisfy subscriptions or not: each pair meets its event and its subscription, and a task explains it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.broker.table_rows import row_events, spread
from tamis.encoding.columns import combined
from tamis.encoding.events.asked import Asked
from tamis.encoding.events.json_reader import read_event
from tamis.errors import EventError, FrameError, TableError
from tamis.language.explain import explain as explained
from tamis.language.expression import Expression
from tamis.language.parser import parse
from tamis.matcher.json_input import encoded
from tamis.spark.contents import subscriptions
from tamis.spark.frames import clashing, holds_all, quoted
from tamis.spark.given import checked_frame, checked_version
from tamis.spark.index_folder import IndexFolder
from tamis.spark.match_task import SUBSCRIPTION
from tamis.spark.matching import MatchOptions, needed_attributes
from tamis.spark.segment_files import EXPRESSION, ID, asked_attributes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MATCHED, EXPLANATION = "matched", "explanation"
"""Columns of results."""
_NO_EVENT = "no event has this id"
_EVENT, _WANTED, _ID, _TEXT, _KEY = (f"__tamis_{name}" for name in ("event", "wanted", "id", "text", "key"))
_VALUES, _THERE = "__tamis_values", "__tamis_there"


# Users give these one by one.
def explain(
    pairs: DataFrame,
    events: DataFrame,
    index: str | os.PathLike[str],
    event_id: str = "id",
    *,
    attributes: Iterable[str] | None = None,
    version: int | None = None,
    json: str | None = None,
) -> DataFrame:
    """Explain pairs of events and subscriptions: the truth of every part of the subscription, and the event's values.

    Parameters
    ----------
    pairs : DataFrame
        With the column that `event_id` names and ``subscription``, as `match` returns them. Pairs that do not match are
        explained, too. Other columns are ignored.
    events : DataFrame
        `events`, `event_id`, `attributes` and `json` are as in `match`. If several events have one id, each is explained.
    index : path
        The folder or the address of the index.
    version : int, optional
        Version of the index. By default, the current one.

    Returns
    -------
    DataFrame
        The id of the event under its own name, `subscription`, `matched` (true or false), and `explanation` as text, as
        `Matcher.explain` writes it. If there is no such event or subscription, `matched` is null, and the text says so.

    Raises
    ------
    FrameError, OptionError, IndexFolderError
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import BooleanType, StringType, StructField, StructType

    spark = checked_frame(pairs, "pairs").sparkSession
    checked_frame(events, "events")
    folder = IndexFolder.of(index, spark)
    manifest = folder.manifest(checked_version(version))
    options = MatchOptions.of(event_id, attributes, (), (), None, None, None, skip_wrong=True, json=json)
    asked = asked_attributes(folder, manifest.segments)
    columns = needed_attributes(events, manifest, options, asked)
    fields = [_pair_field(pairs, event_id), _pair_field(pairs, SUBSCRIPTION)]
    fields += [StructField(MATCHED, BooleanType()), StructField(EXPLANATION, StringType())]
    clash = clashing(events, [field.name for field in fields])
    if clash is not None:
        raise FrameError(
            f"the result would have two columns {clash[1]!r}. Hint: rename the column with the ids of events"
        )
    given_type = "string" if fields[1].dataType.simpleString() == "string" else "bigint"
    if given_type != manifest.id_type:
        raise FrameError(
            f"the ids of the index are {manifest.id_type}, but the column 'subscription' of pairs is {given_type}"
        )
    wanted = pairs.select(F.col(quoted(event_id)).alias(_EVENT), F.col(SUBSCRIPTION).alias(_WANTED))
    listed = subscriptions(spark, index, manifest.version)
    texts = listed.select(F.col(ID).alias(_ID), F.col(EXPRESSION).alias(_TEXT))
    values = F.struct(F.lit(True).alias(_THERE), *(F.col(quoted(name)) for name in columns))
    given = events.select(F.col(quoted(event_id)).alias(_KEY), values.alias(_VALUES))
    met = wanted.join(texts, F.col(_WANTED) == F.col(_ID), "left").join(given, F.col(_EVENT) == F.col(_KEY), "left")
    holder = columns[0] if len(columns) == 1 and holds_all(events.schema[columns[0]].dataType) else None
    names = (event_id, SUBSCRIPTION, MATCHED, EXPLANATION)
    task = ExplainTask(names, holder) if json is None else ExplainTask(names, json, asked)
    return met.select(_EVENT, _WANTED, _TEXT, _VALUES).mapInArrow(task, StructType(fields))


def _pair_field(pairs: DataFrame, name: str) -> Any:
    """The column of pairs with the ids of events or of subscriptions.

    Raises
    ------
    FrameError
    """
    if name not in pairs.columns:
        raise FrameError(f"pairs need the column {name!r}; they have: {', '.join(pairs.columns) or 'none'}")
    return pairs.schema[name]


@dataclass(frozen=True)
class ExplainTask:
    """Explains pairs that have met their events and the texts of their subscriptions.

    Attributes
    ----------
    names : tuple of str
        What the columns that are handed over are called.
    holder : str or None
        The one column that holds all attributes, if there is one.
    asked : frozenset of str or None
        If that column has events as JSON: the attributes that subscriptions of the index ask about.
    """

    names: tuple[str, ...]
    holder: str | None
    asked: frozenset[str] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read = functools.lru_cache(parse)
        for batch in batches:
            table = pa.Table.from_batches([batch])
            found = [
                self._explained(read, text, event)
                for text, event in zip(table[_TEXT].to_pylist(), self._events(table), strict=True)
            ]
            columns = [combined(table[_EVENT]), combined(table[_WANTED])]
            columns += [
                pa.array([each[0] for each in found], pa.bool_()),
                pa.array([each[1] for each in found], pa.string()),
            ]
            yield pa.RecordBatch.from_arrays(columns, names=list(self.names))

    def _events(self, table: pa.Table) -> Iterator[dict[str, Any] | str]:
        """The event of each row, or what is wrong."""
        values = combined(table[_VALUES])
        rows = pa.Table.from_arrays(values.flatten(), names=[field.name for field in values.type])
        for row in range(len(rows)):
            try:
                (event,) = row_events(rows.slice(row, 1))
                is_there = event.pop(_THERE, None) is not None
                yield self._whole(event) if is_there else _NO_EVENT
            except (EventError, TableError) as error:
                yield f"the event is wrong: {error}"

    def _whole(self, event: dict[str, Any]) -> dict[str, Any] | str:
        """An event with all its attributes, from the columns that were handed over.

        Raises
        ------
        EventError
        """
        if self.holder is None:
            return event
        held = event.get(self.holder)
        if self.asked is None:
            return spread(held)
        text = encoded(held or b"")
        asked = Asked.names(self.asked)
        return read_event(text, lambda: asked) if text.strip() else _NO_EVENT

    @staticmethod
    def _explained(read: Any, text: str | None, event: dict[str, Any] | str) -> tuple[bool | None, str]:
        if text is None:
            return None, "no subscription has this id"
        if isinstance(event, str):
            return None, event
        expression: Expression = read(text)
        try:
            why = explained(expression, event)
        except EventError as error:
            return None, f"the event is wrong: {error}"
        return why.matched, str(why)
