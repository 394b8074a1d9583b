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
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tamis.encoding.events.asked import Asked
from tamis.errors import FrameError, OptionError, shortened
from tamis.language.schema import Schema
from tamis.matcher.options import plain_limit
from tamis.spark.addresses import local_path, protocol_of
from tamis.spark.building import build
from tamis.spark.frames import (
    asked_columns,
    check_values,
    clashing,
    event_attributes,
    id_type_of,
    map_in_arrow,
    quoted,
    type_of,
)
from tamis.spark.given import checked_count, checked_device, checked_frame, checked_index, checked_version, listed
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import Manifest, SegmentFiles, new_name
from tamis.spark.match_task import GROUP, MATCHES, RANK, RANKED_WEIGHT, SUBSCRIPTION, CountTask, MatchTask
from tamis.spark.segment_files import EXPRESSION, WEIGHT, asked_attributes
from tamis.spark.task_card import gpu_share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from tamis.spark.work_counters import Accumulated, Observed

_EVENT = "__tamis_event"
"""A number that distinguishes events with the same id."""
_KEY = "__tamis_key"
FOLDER = "spark.tamis.folder"
"""The setting of a session with the folder for indexes that `match` builds for one call."""
_TIMES = ("timestamp", "timestamp_ntz", "date")
"""Types of times. A time without a zone is UTC, and a date is its midnight."""


# Users give these one by one: each is an option of the job.
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
    skip_wrong: bool = False,
    json: str | None = None,
    device: str | None = None,
) -> DataFrame:
    """Return all pairs of an event and a subscription that the event satisfies.

    Parameters
    ----------
    events : DataFrame
        Either each attribute is a column; structs and maps are flattened to dotted names, and arrays are several values. Or one
        column has all attributes, as ``map<string, V>`` or ``array<struct<attribute: string, value: V>>``. Then there
        are no other columns but the id and those of `keep` and `time`. Columns that no subscription asks about are not read.
    index : path or DataFrame
        A folder or an address that `build` wrote to, or a DataFrame of subscriptions. For subscriptions, `match` builds an index
        for this call, and a wrong subscription is an error. The session's setting ``spark.tamis.folder`` names the folder or the
        address for this index, by default the folder for temporary files. Executors on other machines need the setting.
    event_id : str
        The column of events with their ids. They need not be unique.
    attributes : list of str, optional
        The columns that are attributes. By default, all columns.
    keep : list of str
        Columns of events to return with each pair.
    carry : list of str
        Columns of subscriptions to return with each pair. ``expression`` is the subscription as text, ``weight`` its weight.
    k : int, optional
        Return only the `k` subscriptions with the largest weights for each event, and their `rank`, from 1. For equal weights,
        lower ids win.
    counts : bool
        If True, return the number of events of each subscription instead of pairs. Subscriptions without events are left out.
    time : str, optional
        The column of events with the time at which subscriptions must be valid: a timestamp, or a date (its midnight, UTC). By
        default, this time is now.
    version : int, optional
        Version of the index. By default, the current one.
    memory : int, optional
        Bytes of the index that an executor maps at a time. By default, half of this machine's memory. A larger index is divided
        into groups, and each event is sent to all groups.
    skip_wrong : bool
        If True, leave out wrong events. Otherwise a wrong event is an error. `wrong_events` lists wrong events with the reasons.
    json : str, optional
        The column, a string or binary, that has each event as a JSON object. It means what `Matcher.match_json` says, and only
        attributes that subscriptions ask about are read. Null and blank texts are no events. Other columns are no attributes.
    device : str, optional
        ``"gpu"`` matches on the card that Spark gives to each task. By default, tasks match on the CPU.

    Returns
    -------
    DataFrame
        The id of the event under its own name and `subscription`, with `k` also `rank`, then the columns of `keep` and of
        `carry`. With `counts`: `subscription`, `matches`, then the columns of `carry`.

    Raises
    ------
    FrameError, OptionError, IndexFolderError
    """
    from pyspark.sql import DataFrame

    checked_frame(events, "events")
    index = checked_index(index)

    folder = IndexFolder.of(built_once(index) if isinstance(index, DataFrame) else index, events.sparkSession)
    options = MatchOptions.of(
        event_id, attributes, keep, carry, k, time, memory, device, counts=counts, skip_wrong=skip_wrong, json=json
    )
    return matched(events, folder, folder.manifest(checked_version(version)), options, moment_now())


@dataclass(frozen=True)
class MatchOptions:
    """The options of `match` and `match_stream`."""

    event_id: str
    attributes: tuple[str, ...] | None
    keep: tuple[str, ...]
    carry: tuple[str, ...]
    k: int | None
    time: str | None
    memory: int
    counts: bool
    skip_wrong: bool
    json: str | None
    device: str | None = None

    # As `match` has them.
    @staticmethod
    def of(
        event_id: str,
        attributes: Iterable[str] | None,
        keep: Iterable[str],
        carry: Iterable[str],
        k: int | None,
        time: str | None,
        memory: int | None,
        device: str | None = None,
        *,
        counts: bool = False,
        skip_wrong: bool = False,
        json: str | None = None,
    ) -> MatchOptions:
        """The options, if they are compatible with each other.

        Raises
        ------
        OptionError
        """
        for name, value in (("event_id", event_id), ("time", time), ("json", json)):
            if not isinstance(value, str) and not (name != "event_id" and value is None):
                raise OptionError(f"`{name}` must be the name of a column, not {shortened(value)}")
        if not isinstance(skip_wrong, bool):
            raise OptionError(f"`skip_wrong` must be True or False, not {shortened(skip_wrong)}")
        if json is not None and attributes is not None:
            raise OptionError("`attributes` has no meaning with `json`: subscriptions say which attributes are read")
        kept = listed(keep, "keep")
        if counts and kept:
            raise OptionError("`keep` has no meaning with counts. Hint: use `carry` for columns of subscriptions")
        return MatchOptions(
            event_id=event_id,
            attributes=None if attributes is None else listed(attributes, "attributes"),
            keep=kept,
            carry=listed(carry, "carry"),
            k=None if k is None else plain_limit(k),
            time=time,
            memory=_half_of_memory() if memory is None else checked_count(memory, "memory", "a number of bytes"),
            counts=counts,
            skip_wrong=skip_wrong,
            json=json,
            device=checked_device(device),
        )


def moment_now() -> int:
    """The current time in microseconds since 1970."""
    return int(datetime.now(UTC).timestamp() * 1_000_000)


def matched(
    events: DataFrame,
    folder: IndexFolder,
    manifest: Manifest,
    options: MatchOptions,
    moment: int,
    counters: Accumulated | Observed | None = None,
) -> DataFrame:
    """Match events with one version of an index, at a moment in microseconds. Tasks add to `counters`, if there are any.

    Raises
    ------
    FrameError, OptionError
    """
    asked = asked_attributes(folder, manifest.segments)
    attributes = needed_attributes(events, manifest, options, asked)
    groups = grouped(manifest.segments, options.memory) or ((),)
    if len(groups) > 1 and options.counts and options.k is not None:
        raise OptionError(
            "`counts` with `k` needs an index that is mapped as a whole. Hint: set a larger `memory`, or count the pairs"
        )
    times = () if options.time is None else (options.time,)
    needed = dict.fromkeys([options.event_id, *attributes, *options.keep, *times])
    frame = events.select(*(quoted(name) for name in needed))
    if len(groups) > 1:
        frame = spread_over_groups(frame, groups)
    ranked = len(groups) > 1 and options.k is not None
    keep = (*options.keep, _EVENT) if ranked else options.keep
    carry = (*options.carry, RANKED_WEIGHT) if ranked else options.carry
    schema = _result(frame, manifest, options, keep, carry)
    task = (CountTask if options.counts else MatchTask)(
        folder=folder,
        groups=groups,
        event_id=options.event_id,
        attributes=attributes,
        keep=keep,
        carry=carry,
        k=options.k,
        time=options.time,
        moment=moment,
        schema=manifest.schema,
        skip_wrong=options.skip_wrong,
        asked=asked,
        json=options.json is not None,
        gpu_share=gpu_share(events.sparkSession, options.device),
        form=manifest.form,
        names=tuple(schema.names),
    )
    found = map_in_arrow(frame, task, schema) if counters is None else counters.matched(frame, task, schema)
    if options.counts:
        return _summed(found, options.carry)
    return _heaviest(found, options.k) if ranked and options.k is not None else found


def needed_attributes(
    events: DataFrame, manifest: Manifest, options: MatchOptions, names: frozenset[str]
) -> tuple[str, ...]:
    """The columns of events that must be read if subscriptions ask about these attributes.

    Raises
    ------
    FrameError
    """
    asked = Asked.names(names, None if manifest.schema is None else Schema.of(manifest.schema))
    chosen = checked_attributes(events, manifest.columns, options)
    if options.json is not None:
        return chosen
    attributes = asked_columns(events.schema, chosen, asked)
    if not options.skip_wrong:
        check_values(events.schema, attributes, asked)
    return attributes


def _result(
    events: DataFrame, manifest: Manifest, options: MatchOptions, keep: Iterable[str], carry: Iterable[str]
) -> StructType:
    """The columns that tasks return."""
    from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

    fields: list[tuple[str, DataType]] = [(SUBSCRIPTION, id_type_of(manifest.id_type))]
    if options.counts:
        fields.append((MATCHES, LongType()))
    else:
        fields.insert(0, (options.event_id, events.schema[options.event_id].dataType))
        if options.k is not None:
            fields.append((RANK, IntegerType()))
    fields += [(name, events.schema[name].dataType) for name in keep]
    stored = {name: type_of(text) for name, text in manifest.columns.items()}
    stored |= {RANKED_WEIGHT: DoubleType(), WEIGHT: DoubleType(), EXPRESSION: StringType()}
    fields += [(name, stored[name]) for name in carry]
    clash = clashing(events, [name for name, _ in fields])
    if clash is not None:
        raise FrameError(
            f"the result would have two columns {clash[1]!r}. Hint: rename that of the events, or leave it out"
        )
    return StructType([StructField(name, kind) for name, kind in fields])


def _summed(found: DataFrame, carried: Sequence[str]) -> DataFrame:
    """The counts of all tasks together."""
    from pyspark.sql import functions as F  # noqa: N812

    others = [F.first(quoted(name)).alias(name) for name in carried]
    return found.groupBy(SUBSCRIPTION).agg(F.sum(MATCHES).alias(MATCHES), *others)


def spread_over_groups(frame: DataFrame, groups: tuple[tuple[SegmentFiles, ...], ...]) -> DataFrame:
    """Each event once for every group. Groups with more subscriptions get more partitions."""
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
    # A long, like the numbers of `_keys_by_partition`: Spark hashes an int differently.
    key = F.element_at(of_group, (F.col(_EVENT) % F.size(of_group)).cast("int") + 1).cast("bigint")
    return copies.withColumn(_KEY, key).repartition(sum(parts), F.col(_KEY)).drop(_KEY)


def _keys_by_partition(spark: SparkSession, partitions: int) -> list[int]:
    """For each partition, a number that Spark's hash sends there, so that every task gets exactly one share."""
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
    """The `k` matches with the largest weights of each event, from those of each group. Spark ranks them, since no process has
    all groups."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    order = Window.partitionBy(_EVENT).orderBy(F.col(RANKED_WEIGHT).desc(), F.col(SUBSCRIPTION))
    ranked = found.withColumn(RANK, F.row_number().over(order)).where(F.col(RANK) <= k)
    return ranked.drop(_EVENT, RANKED_WEIGHT)


def built_once(subscriptions: DataFrame) -> str:
    """The folder of an index of subscriptions, which lives as long as this process."""
    # If executors are on other machines, they must see this folder too.
    setting = subscriptions.sparkSession.conf.get(FOLDER, None)
    if setting is not None and protocol_of(setting) != "file":
        folder = f"{setting.rstrip('/')}/tamis-{new_name()}"
        atexit.register(IndexFolder(folder).remove)
    else:
        folder = _temporary(setting)
    report = build(subscriptions, folder)
    if report.rejected:
        (first,) = report.rejections.orderBy("id").take(1)
        raise FrameError(
            f"{report.rejected:,} subscriptions are wrong, such as {first.id!r}: {first.reason}. "
            "Hint: tamis.spark.build accepts the others and returns these"
        )
    return folder


def _temporary(setting: str | None) -> str:
    """A new folder on disk, which lives as long as this process."""
    try:
        folder = tempfile.mkdtemp(prefix="tamis-", dir=None if setting is None else local_path(setting))
    except OSError as error:
        raise OptionError(
            f"the folder {setting} from the setting {FOLDER} cannot be written: {error.strerror}"
        ) from None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def checked_attributes(events: DataFrame, carried: Collection[str], options: MatchOptions) -> tuple[str, ...]:
    """The columns of events to match. Checks that all columns in `options` exist; subscriptions have the columns `carried`.

    Raises
    ------
    FrameError
    """
    schema = events.schema
    aside = [*options.keep, *([] if options.time is None else [options.time])]
    for name in aside:
        if name not in schema.names:
            raise FrameError(f"events have no column {name!r}; they have: {', '.join(schema.names)}")
    if options.time is not None:
        kind = schema[options.time].dataType.simpleString()
        if kind not in _TIMES:
            raise FrameError(
                f"the column {options.time!r} says when events happened and must be a timestamp or a date, not {kind}. "
                "Hint: to_timestamp converts strings, timestamp_seconds converts numbers"
            )
    there = [*carried, EXPRESSION, WEIGHT]
    for name in options.carry:
        if name not in there:
            known = ", ".join(there)
            raise FrameError(f"subscriptions of the index have no column {name!r} to carry; they have: {known}")
    if options.json is not None:
        event_attributes(events, options.event_id, [options.json])
        kind = schema[options.json].dataType.simpleString()
        if kind not in ("string", "binary"):
            raise FrameError(f"the column {options.json!r} must have JSON, a string or binary, not {kind}")
        return (options.json,)
    return tuple(event_attributes(events, options.event_id, options.attributes, aside))


def grouped(segments: Sequence[SegmentFiles], memory: int) -> tuple[tuple[SegmentFiles, ...], ...]:
    """Segments in groups of at most `memory` bytes: each, the largest first, goes into the fullest group with room."""
    segments = [replace(segment, asked=None) for segment in segments]  # Tasks do not need it, and it is long.
    groups: list[list[SegmentFiles]] = []
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
