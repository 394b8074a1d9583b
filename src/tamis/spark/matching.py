"""Matching a DataFrame of events: every task maps the index and matches its events.

                    one group (the index fits)              several groups
events              partitions as they are                  each event once per group, spread by group
executors           map all segments, match, name           map the segments of a group, match, name
afterwards          nothing                                 top-k over the groups, counts added up
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tamis.errors import FrameError, OptionError
from tamis.matcher.options import plain_limit
from tamis.spark.building import build
from tamis.spark.frames import event_attributes, map_in_arrow, quoted, type_of
from tamis.spark.manifest import IndexFolder, Manifest, Segment
from tamis.spark.match_task import GROUP, MATCHES, RANKED_WEIGHT, SUBSCRIPTION, CountTask, MatchTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_EVENT = "__tamis_event"
"""Tells events apart whose ids may be the same."""
_KEY = "__tamis_key"


def match(
    events: DataFrame,
    index: str | os.PathLike[str] | DataFrame,
    event_id: str = "id",
    *,
    attributes: Iterable[str] | None = None,
    keep: Iterable[str] = (),
    carry: Iterable[str] = (),
    k: int | None = None,
    counts: bool = False,
    time: str | None = None,
    version: int | None = None,
    memory: int | None = None,
) -> DataFrame:
    """All pairs of an event and a subscription that it satisfies.

    Parameters
    ----------
    events : DataFrame
        Attributes are columns, structs are flattened to dotted names, arrays are several values; or one column beside the id
        has all of them, ``map<string, V>`` or ``array<struct<attribute: string, value: V>>``.
    index : path or DataFrame
        What `build` wrote; or subscriptions, of which an index is built for this once: wrong ones are an error then.
    event_id : str
        The column of events with their ids. They need not be unique.
    attributes : list of str, optional
        The columns that are attributes; by default all of them.
    keep : list of str
        Columns of events to hand over with each pair.
    carry : list of str
        Columns of subscriptions to hand over with each pair.
    k : int, optional
        Only so many subscriptions of each event, those that weigh most; of equal ones those with the lower ids.
    counts : bool
        Hand over how many events each subscription has, instead of pairs; those without any are left out.
    time : str, optional
        The column of events with the time at which subscriptions must be valid; by default that is now.
    version : int, optional
        Of the index; by default the current one.
    memory : int, optional
        How many bytes of the index an executor should map at a time; by default half of this machine's memory. A larger index
        is cut into groups, and each event is sent to all of them.

    Returns
    -------
    DataFrame
        The id of the event under its own name and `subscription`, then the columns of `keep` and of `carry`. With `counts`:
        `subscription`, `matches`, then those of `carry`.

    Raises
    ------
    FrameError, OptionError, IndexFolderError
    """
    from pyspark.sql import DataFrame

    folder = IndexFolder(_built_once(index) if isinstance(index, DataFrame) else index)
    moment = int(datetime.now(UTC).timestamp() * 1_000_000)
    manifest = folder.manifest(version)
    return matched(
        events,
        folder,
        manifest,
        event_id=event_id,
        attributes=attributes,
        keep=keep,
        carry=carry,
        k=k,
        counts=counts,
        time=time,
        memory=memory,
        moment=moment,
    )


def matched(
    events: DataFrame,
    folder: IndexFolder,
    manifest: Manifest,
    *,
    event_id: str,
    attributes: Iterable[str] | None,
    keep: Iterable[str],
    carry: Iterable[str],
    k: int | None,
    counts: bool,
    time: str | None,
    memory: int | None,
    moment: int,
) -> DataFrame:
    """The same with a version that was read, at a moment in microseconds."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import DoubleType, LongType, StructField, StructType

    schema = events.schema
    asked = event_attributes(events, event_id, attributes)
    kept, carried = _listed(keep, "keep"), _listed(carry, "carry")
    _check_columns(schema.names, kept, manifest, carried, time)
    if counts and kept:
        raise OptionError("columns of events to keep have no meaning with counts. Hint: carry those of subscriptions")
    groups = grouped(manifest.segments, _half_of_memory() if memory is None else memory) or ((),)
    subscription = StructField(SUBSCRIPTION, _id_type(manifest.id_type))
    fields = [subscription, StructField(MATCHES, LongType())] if counts else [schema[event_id], subscription]
    fields += [schema[name] for name in kept]
    fields += [StructField(name, type_of(manifest.columns[name])) for name in carried]
    result = [field.name for field in fields]
    _check_names(result)
    needed = list(dict.fromkeys([event_id, *asked, *kept, *([] if time is None else [time])]))
    frame = events.select(*(quoted(name) for name in needed))
    ranked = k is not None and len(groups) > 1 and not counts
    if len(groups) > 1:
        if counts and k is not None:
            raise OptionError(
                "counts of the k heaviest need an index that is mapped as a whole. Hint: a larger `memory`, or count the pairs"
            )
        frame = _spread(frame, groups)
    if ranked:
        kept.append(_EVENT)
        fields[len(kept) + 1 : len(kept) + 1] = [StructField(_EVENT, LongType())]
        fields.append(StructField(RANKED_WEIGHT, DoubleType()))
    task = (CountTask if counts else MatchTask)(
        path=str(folder.path),
        groups=groups,
        event_id=event_id,
        attributes=tuple(asked),
        keep=tuple(kept),
        carry=(*carried, RANKED_WEIGHT) if ranked else tuple(carried),
        k=None if k is None else plain_limit(k),
        time=time,
        moment=moment,
        names=tuple(field.name for field in fields),
    )
    found = map_in_arrow(frame, task, StructType([StructField(field.name, field.dataType) for field in fields]))
    if counts:
        sums = [F.sum(MATCHES).alias(MATCHES), *(F.first(quoted(name)).alias(name) for name in carried)]
        return found.groupBy(SUBSCRIPTION).agg(*sums)
    return _heaviest(found, plain_limit(k)).select(*map(quoted, result)) if ranked and k is not None else found


def _spread(frame: DataFrame, groups: tuple[tuple[Segment, ...], ...]) -> DataFrame:
    """Each event once for every group, in partitions of which a group has the more, the more subscriptions it has."""
    from pyspark.sql import functions as F  # noqa: N812

    spark = frame.sparkSession
    total = max(len(groups), int(spark.conf.get("spark.sql.shuffle.partitions") or 0))
    sizes = [sum(segment.living for segment in group) for group in groups]
    parts = [max(1, round(total * size / sum(sizes))) for size in sizes]
    keys = _keys_by_partition(spark, sum(parts))
    keys_of = [keys[sum(parts[:group]) :][: parts[group]] for group in range(len(groups))]
    numbered = frame.withColumn(_EVENT, F.monotonically_increasing_id())
    copies = numbered.withColumn(GROUP, F.explode(F.array(*(F.lit(group) for group in range(len(groups))))))
    of_group = F.element_at(F.array(*(F.array(*map(F.lit, own)) for own in keys_of)), F.col(GROUP) + 1)
    key = F.element_at(of_group, (F.col(_EVENT) % F.size(of_group)).cast("int") + 1)
    return copies.withColumn(_KEY, key).repartition(sum(parts), F.col(_KEY)).drop(_KEY)


def _keys_by_partition(spark: SparkSession, partitions: int) -> list[int]:
    """For each partition a number that Spark's hash sends there, so that every task gets its share and none gets two."""
    from pyspark.sql import functions as F  # noqa: N812

    found: dict[int, int] = {}
    start = 0
    while len(found) < partitions:
        numbers = spark.range(start, start + 20 * partitions, 1, 1)
        for row in numbers.select("id", F.pmod(F.hash("id"), F.lit(partitions)).alias("partition")).collect():
            found.setdefault(row.partition, row.id)
        start += 20 * partitions
    return [found[partition] for partition in range(partitions)]


def _heaviest(found: DataFrame, k: int) -> DataFrame:
    """Of the heaviest of each group, the heaviest of all."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    order = Window.partitionBy(_EVENT).orderBy(F.col(RANKED_WEIGHT).desc(), F.col(SUBSCRIPTION))
    return found.withColumn(_KEY, F.row_number().over(order)).where(F.col(_KEY) <= k)


def _built_once(subscriptions: DataFrame) -> str:
    """The folder of an index of subscriptions, which lives as long as this process."""
    folder = tempfile.mkdtemp(prefix="tamis-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    report = build(subscriptions, folder)
    if report.rejected:
        (first,) = report.rejections.orderBy("id").take(1)
        raise FrameError(
            f"{report.rejected:,} subscriptions are wrong, such as {first.id!r}: {first.reason}. "
            "Hint: tamis.spark.build takes the others in and hands these over"
        )
    return folder


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _listed(names: Iterable[str], what: str) -> list[str]:
    if isinstance(names, str):
        raise OptionError(f"`{what}` is a list of columns. Hint: {what}=[{names!r}]")
    return list(names)


def _check_columns(there: list[str], kept: list[str], manifest: Manifest, carried: list[str], time: str | None) -> None:
    for name in [*kept, *([] if time is None else [time])]:
        if name not in there:
            raise FrameError(f"events have no column {name!r}; they have: {', '.join(there)}")
    for name in carried:
        if name not in manifest.columns:
            known = ", ".join(manifest.columns) or "none"
            raise FrameError(f"subscriptions of the index have no column {name!r} to carry; they have: {known}")


def _check_names(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FrameError(f"the result would have two columns {twice[0]!r}. Hint: rename that of the events")


def _id_type(name: str) -> DataType:
    from pyspark.sql.types import LongType, StringType

    return StringType() if name == "string" else LongType()


def grouped(segments: Sequence[Segment], memory: int) -> tuple[tuple[Segment, ...], ...]:
    """Segments in groups of at most so many bytes, if they have them; the largest first into the fullest that has room."""
    groups: list[list[Segment]] = []
    sizes: list[int] = []
    for segment in sorted(segments, key=lambda segment: (-segment.bytes, segment.name)):
        room = [(size, place) for place, size in enumerate(sizes) if size + segment.bytes <= memory]
        if room:
            _, place = max(room)
            groups[place].append(segment)
            sizes[place] += segment.bytes
        else:
            groups.append([segment])
            sizes.append(segment.bytes)
    return tuple(map(tuple, groups))
