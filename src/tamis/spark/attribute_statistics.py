"""Statistics of events: how often attributes occur, and how their values are distributed. An aggregation in Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tamis.encoding.columns import Column
from tamis.encoding.events.asked import EVERYTHING
from tamis.encoding.events.event_table import checked_columns
from tamis.kernels.numbers import Bools
from tamis.language.values import Kind
from tamis.spark.frames import can_hand_over, event_attributes, map_in_arrow, quoted
from tamis.spark.given import checked_frame, listed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUANTILES = 20
_FREQUENT = 20
_ACCURACY = 10_000
_KEYS = ["attribute", "kind"]

_SCHEMA = "attribute string, kind string, number double, text string, first boolean, events bigint"


def statistics(events: DataFrame, attributes: Iterable[str] | None = None, *, event_id: str | None = None) -> DataFrame:
    """Figures about every attribute of events, with a row for each kind of its values.

    Parameters
    ----------
    events : DataFrame
        Events in any form that `match` takes. Values outside the language are left out.
    attributes : list of str, optional
        The columns that are attributes. By default, all columns.
    event_id : str, optional
        The column with the ids of events. It may be beside a column that has all attributes. By default, `id` if there is such
        a column.

    Returns
    -------
    DataFrame
        The columns are:

        - `attribute` and `kind`: number, string, boolean or timestamp
        - `events` and `presence`: the number and the share of events that have the attribute
        - `distinct`: the number of different values, estimated
        - `quantiles` of numbers and timestamps (in microseconds), from the lowest to the highest value: the same number of
          values lies between any two neighbours
        - `frequent`: the most frequent values as text, with their counts

    Raises
    ------
    FrameError, OptionError
    """
    from pyspark.sql import functions as F  # noqa: N812

    checked_frame(events, "events")
    attributes = None if attributes is None else listed(attributes, "attributes")
    chosen = [name for name in event_attributes(events, event_id, attributes) if can_hand_over(events.schema, name)]
    frame = events.select(*(quoted(name) for name in chosen))
    values = map_in_arrow(frame, ValuesTask(tuple(chosen)), _SCHEMA)
    shares = [step / _QUANTILES for step in range(_QUANTILES + 1)]
    figures = values.groupBy(*_KEYS).agg(
        F.sum(F.col("first").cast("long")).alias("events"),
        F.sum("events").alias("all"),
        F.approx_count_distinct("text").alias("distinct"),
        F.percentile_approx("number", shares, _ACCURACY).alias("quantiles"),
    )
    total = figures.where("attribute IS NULL").select(F.col("all").alias("total"))
    joined = figures.where("attribute IS NOT NULL").join(_frequent(values), _KEYS).crossJoin(total)
    presence = (F.col("events") / F.col("total")).alias("presence")
    return joined.select(*_KEYS, "events", presence, "distinct", "quantiles", "frequent").orderBy(*_KEYS)


def _frequent(values: DataFrame) -> DataFrame:
    """The most frequent values of each attribute and kind."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    counted = values.where("attribute IS NOT NULL").groupBy(*_KEYS, "text").count()
    order = Window.partitionBy(*_KEYS).orderBy(F.col("count").desc(), "text")
    ranked = counted.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= _FREQUENT)
    listed = F.array_sort(F.collect_list(F.struct("rank", F.col("text").alias("value"), "count")))
    shown = F.transform(listed, lambda each: F.struct(each.value.alias("value"), each["count"].alias("count")))
    return ranked.groupBy(*_KEYS).agg(shown.alias("frequent"))


@dataclass(frozen=True)
class ValuesTask:
    """Returns every value of every event: as text, and as a number if numbers can represent its order.

    Rows without an attribute count the events.
    """

    attributes: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            events = pa.Table.from_batches([batch]).select(self.attributes)
            yield _rows("", None, pa.nulls(1, pa.float64()), pa.nulls(1, pa.string()), [False], len(events))
            seen: dict[tuple[str, Kind], Bools] = {}
            for column in checked_columns(events, EVERYTHING, None):
                if not isinstance(column, Column):
                    continue  # A value outside the language does not count.
                there = seen.setdefault((column.attribute, column.kind), np.zeros(len(events), np.bool_))
                first = ~there[column.rows]
                first &= np.append(True, column.rows[1:] != column.rows[:-1])
                there[column.rows] = True
                yield _rows(column.attribute, column.kind, *_values(column), first, 0)


def _values(column: Column) -> tuple[pa.Array, pa.Array]:
    """Values as numbers, and as text."""
    if column.kind is Kind.STRING:
        values = column.values
        if isinstance(values, pa.DictionaryArray):
            values = values.dictionary_decode()
        return pa.nulls(len(values), pa.float64()), values.cast(pa.string())
    values = pa.array(column.values)
    if column.kind is Kind.TIMESTAMP:
        return values.cast(pa.float64(), safe=False), values.cast(pa.timestamp("us")).cast(pa.string())
    if column.kind is Kind.BOOLEAN:
        return pa.nulls(len(values), pa.float64()), values.cast(pa.bool_()).cast(pa.string())
    return values.cast(pa.float64(), safe=False), values.cast(pa.string())


def _rows(
    attribute: str, kind: Kind | None, numbers: pa.Array, texts: pa.Array, first: Iterable[bool], events: int
) -> pa.RecordBatch:
    count = len(numbers)
    return pa.RecordBatch.from_pydict(
        {
            "attribute": pa.array([attribute or None] * count, pa.string()),
            "kind": pa.array([None if kind is None else kind.value] * count, pa.string()),
            "number": numbers,
            "text": texts,
            "first": pa.array(first, pa.bool_()),
            "events": pa.array([events] * count, pa.int64()),
        }
    )
