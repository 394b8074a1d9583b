"""A column that a Python function computes from whole events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tamis.errors import FrameError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_computed(
    events: DataFrame, column: str, kind: str, function: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> DataFrame:
    """Events whose attributes are columns, with one column more.

    Parameters
    ----------
    kind : str
        The type of the column: a struct.
    function : callable
        Takes an event as a dictionary, nested as the row is, and returns the fields of the struct.

    Raises
    ------
    FrameError
        When the events have such a column, or have all attributes in one column.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType, MapType

    from tamis.spark.frames import quoted

    if column in events.columns:
        raise FrameError(f"events have a column {column!r}, but it is computed. Hint: rename it")
    if any(isinstance(field.dataType, MapType | ArrayType) for field in events.schema) and len(events.columns) <= 2:
        raise FrameError("attributes can be computed only from events whose attributes are columns")
    compute = functions.udf(lambda row: function(row.asDict(recursive=True)), kind)
    return events.withColumn(
        column, compute(functions.struct(*(functions.col(quoted(name)) for name in events.columns)))
    )
