"""Checks and casts the columns of DataFrames of subscriptions and events."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tamis.encoding.columns import has_kind
from tamis.encoding.events.asked import Asked
from tamis.encoding.events.event_columns import is_wanted
from tamis.errors import FrameError, did_you_mean
from tamis.spark.segment_files import FORMS, ID, VALID_FROM, VALID_UNTIL, WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

BUCKET = "__tamis_bucket"
CHANGE = "change"
ADDED, REMOVED = "added", "removed"
REASON = "reason"
"""The column of rejected rows that says what is wrong."""

MEANT = (ID, *FORMS, WEIGHT, VALID_FROM, VALID_UNTIL)
"""Columns of subscriptions that are never carried: each has a meaning."""
_OURS = {CHANGE: "changes have a column of this name", REASON: "rejected rows get a column of this name"}
"""Names that a carried column must not have -> the reason."""


class SubscriptionFrame(NamedTuple):
    """A DataFrame of subscriptions whose columns have the types that we store."""

    frame: DataFrame
    form: str
    id_type: str
    carried: list[StructField]


def subscription_frame(frame: DataFrame, also: Sequence[str] = ()) -> SubscriptionFrame:
    """Check the columns of subscriptions, and cast the columns with a meaning.

    `also` are further columns that are not carried.

    Raises
    ------
    FrameError
    """
    schema = frame.schema
    check_unique(frame)
    for name in schema.names:
        if name.lower() in _OURS and name not in also:
            raise FrameError(f"a column is called {name!r}, but {_OURS[name.lower()]}. Hint: rename or drop it")
    forms = [name for name in FORMS if name in schema.names]
    missing = [name for name in (ID, *also) if name not in schema.names]
    if missing or len(forms) != 1:
        wanted = [repr(name) for name in (ID, *also)]
        raise FrameError(
            f"subscriptions need the columns {', '.join(wanted)} and either 'expression' or 'predicates'; "
            f"the columns are: {', '.join(schema.names) or 'none'}"
        )
    form = forms[0]
    id_type = _id_type(schema[ID].dataType)
    if form == "expression" and schema[form].dataType.simpleString() != "string":
        raise FrameError(f"the column 'expression' must be SQL text, not {schema[form].dataType.simpleString()}")
    carried = [field for field in schema.fields if field.name not in (*MEANT, *also)]
    columns = [_column(ID).cast(id_type).alias(ID), _widened(schema, form)]
    columns += [_number(schema, name) for name in (WEIGHT,) if name in schema.names]
    columns += [_moment(schema, name) for name in (VALID_FROM, VALID_UNTIL) if name in schema.names]
    columns += [_column(name) for name in also]
    columns += [_column(field.name) for field in carried]
    return SubscriptionFrame(frame.select(*columns), form, id_type, carried)


def _widened(schema: StructType, name: str) -> Column:
    """A column with its numbers in one wide type, so that later changes fit the index that was built."""
    given = schema[name].dataType.simpleString()
    wide = re.sub(r"\b(tinyint|smallint|int)\b", "bigint", re.sub(r"\bfloat\b", "double", given))
    return _column(name) if wide == given else _column(name).cast(wide).alias(name)


def _number(schema: StructType, name: str) -> Column:
    given = schema[name].dataType.simpleString()
    if given in ("string", "boolean", "binary"):
        raise FrameError(f"the column {name!r} must be a number, not {given}")
    return _column(name).cast("double").alias(name)


def _moment(schema: StructType, name: str) -> Column:
    """A column of times, unchanged. Spark would read dates and times without a zone in the session's zone, but they are UTC."""
    given = schema[name].dataType.simpleString()
    if not given.startswith(("timestamp", "date")):
        raise FrameError(f"the column {name!r} must be a timestamp, not {given}")
    return _column(name)


def _column(name: str) -> Column:
    """A column by its name, which may have any characters."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    return F.col(quoted(name))


def quoted(name: str) -> str:
    """A name quoted for Spark: without quotes, a dot would mean a field."""
    return "`" + name.replace("`", "``") + "`"


def _id_type(kind: DataType) -> str:
    given = kind.simpleString()
    if given in ("string", "bigint"):
        return given
    if given in ("int", "smallint", "tinyint"):
        return "bigint"
    raise FrameError(f"the column 'id' of subscriptions must be strings or whole numbers, not {given}")


def check_unique(frame: DataFrame) -> None:
    """Raise a FrameError if two columns have the same name, or names that are the same to Spark."""
    clash = clashing(frame, frame.schema.names)
    if clash is not None and clash[0] == clash[1]:
        raise FrameError(f"two columns are called {clash[0]!r}. Hint: rename or drop one")
    if clash is not None:
        raise FrameError(
            f"Spark does not tell the columns {clash[0]!r} and {clash[1]!r} apart. "
            "Hint: rename or drop one, or set spark.sql.caseSensitive"
        )


def clashing(frame: DataFrame, names: Iterable[str]) -> tuple[str, str] | None:
    """Two of these names that are the same to the session of a DataFrame, if there are any."""
    exact = str(frame.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"
    seen: dict[str, str] = {}
    for name in names:
        plain = name if exact else name.lower()
        if plain in seen:
            return seen[plain], name
        seen[plain] = name
    return None


def event_attributes(
    frame: DataFrame, event_id: str | None, attributes: Iterable[str] | None, aside: Iterable[str] = ()
) -> list[str]:
    """The columns of events that are attributes: the named ones, the one column that holds all attributes, or all columns.

    Parameters
    ----------
    frame : DataFrame
    event_id : str or None
        The column with the ids; None: a column `id`, if there is one.
    attributes : list of str or None
    aside : list of str
        Columns with another purpose. They may stand beside a column that holds all attributes.

    Raises
    ------
    FrameError
        If a column does not exist.
    """
    schema = frame.schema
    check_unique(frame)
    if event_id is None and ID in schema.names:
        event_id = ID
    asked = None if attributes is None else list(attributes)
    for name in [*(asked or []), *([] if event_id is None else [event_id])]:
        if name not in schema.names:
            close = did_you_mean(name, schema.names) or f"; they have: {', '.join(schema.names) or 'none'}"
            raise FrameError(f"events have no column {name!r}{close}")
    if asked is None:
        asked = _all_attributes(schema, event_id, set(aside))
    if not asked:
        raise FrameError(
            "events have no attributes. Hint: use columns, a map, or a list of structs of attribute and value"
        )
    return asked


def _all_attributes(schema: StructType, event_id: str | None, aside: set[str]) -> list[str]:
    """The one column that holds all attributes, or else all columns."""
    columns = [name for name in schema.names if name != event_id]
    columns = [name for name in columns if name not in aside] or columns
    if len(columns) == 1 and holds_all(schema[columns[0]].dataType):
        return columns
    return list(schema.names)


def asked_columns(schema: StructType, attributes: Sequence[str], asked: Asked) -> tuple[str, ...]:
    """The columns of events that some subscription asks about. The other columns are not even read.

    Raises
    ------
    FrameError
        If Spark cannot convert one of these columns to Arrow.
    """
    if len(attributes) == 1 and holds_all(schema[attributes[0]].dataType):
        arrow_type(schema, attributes[0])
        return tuple(attributes)
    columns = [name for name in attributes if asked.has(name) or asked.leads_to(name)]
    kinds = [arrow_type(schema, name) for name in columns]
    wanted = [name for name, kind in zip(columns, kinds, strict=True) if is_wanted(name, kind, asked)]
    if len(wanted) == 1 and holds_all(schema[wanted[0]].dataType):
        # A single column would count as the column of all attributes. A second column prevents that.
        beside = [name for name in attributes if name not in wanted and can_hand_over(schema, name)]
        wanted += beside[:1]
    return tuple(wanted)


def check_values(schema: StructType, columns: Sequence[str], asked: Asked) -> None:
    """Fail early if all values of a column will be wrong.

    Raises
    ------
    FrameError
    """
    for name in columns:
        kind = arrow_type(schema, name)
        if asked.has(name) and not (pa.types.is_nested(kind) or pa.types.is_null(kind) or has_kind(kind)):
            raise FrameError(
                f"the column {name!r} of events, {schema[name].dataType.simpleString()}, has no meaning as a value, but "
                "subscriptions ask about it. Hint: name the columns to match in `attributes`"
            )


def can_hand_over(schema: StructType, name: str) -> bool:
    """Whether Spark can convert a column to Arrow."""
    try:
        arrow_type(schema, name)
    except FrameError:
        return False
    return True


def holds_all(kind: DataType) -> bool:
    """Whether a single column of this type has all attributes of an event: a map, or a list of attributes and values."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, MapType):
        return True
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    return sorted(kind.elementType.names) == ["attribute", "value"]


def arrow_type(schema: StructType, name: str) -> pa.DataType:
    """The type of a column in Arrow.

    Raises
    ------
    FrameError
        If Spark cannot convert it.
    """
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_type

    kind = schema[name].dataType
    # Newer versions of Spark need the time zone as an argument.
    zone: Any = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}
    try:
        return to_arrow_type(kind, **zone)
    except PySparkTypeError:
        raise FrameError(f"Spark cannot hand over the column {name!r}, {kind.simpleString()}, as Arrow") from None


def id_type_of(name: str) -> DataType:
    """The type of ids that is named in a manifest."""
    from pyspark.sql.types import LongType, StringType

    return StringType() if name == "string" else LongType()


def type_of(text: str) -> DataType:
    """A Spark type from its JSON in a manifest."""
    from pyspark.sql.types import StructType

    field = {"name": "it", "type": json.loads(text), "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]})["it"].dataType


Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Named:
    """Wraps a task and gives columns back their original names."""

    task: Callable[[Batches], Batches]
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        return self.task(batch.rename_columns(list(self.names)) for batch in batches)


def map_in_arrow(frame: DataFrame, task: Callable[[Batches], Batches], schema: StructType | str) -> DataFrame:
    """`DataFrame.mapInArrow` that also works for columns with a dot in their names."""
    from pyspark.sql import functions as F  # noqa: N812

    names = tuple(frame.columns)
    numbered = frame.select(*(F.col(quoted(name)).alias(f"column{place}") for place, name in enumerate(names)))
    return numbered.mapInArrow(Named(task, names), schema)
