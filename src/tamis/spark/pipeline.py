"""The whole pipeline: from raw files to an index, matches, counts, statistics and a page about them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import FileError
from tamis.spark.addresses import address, local_path, pattern
from tamis.spark.attribute_statistics import statistics
from tamis.spark.building import build
from tamis.spark.contents import subscriptions as subscriptions_of
from tamis.spark.event_checks import wrong_among, wrong_result
from tamis.spark.frames import quoted, subscription_frame
from tamis.spark.given import checked_session
from tamis.spark.index_folder import IndexFolder
from tamis.spark.match_task import MATCHES, SUBSCRIPTION
from tamis.spark.matching import MatchOptions, checked_attributes, matched, moment_now
from tamis.spark.raw_files import RawRows, check_raw, failures_of_spark, mixed_columns, read_raw
from tamis.spark.segment_files import EXPRESSION, ID, WEIGHT
from tamis.spark.summary_page import Summary, summary_page
from tamis.spark.tallies import CANDIDATES, FETCHED, HITS, MATCHING, NAMING, OPENED, OPENING
from tamis.spark.work_counters import work_counters
from tamis.storage.replacing import replacing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OURS = (
    "index",
    "matches",
    "counts",
    "statistics",
    "rejected",
    "bad_subscriptions",
    "bad_events",
    "wrong_events",
    "summary.html",
    "summary.json",
)
_SHOWN = 20
_WORK = (CANDIDATES, OPENED, FETCHED, HITS, OPENING, MATCHING, NAMING)
"""Counters of the job that matches, as figures of the run."""

UNUSED = ("rejected subscriptions", "bad lines of subscriptions", "bad lines of events", "wrong events")
"""Figures of a run that count unusable input."""


# Users give these one by one: each is an option of the job.
def run_pipeline(
    spark: SparkSession,
    subscriptions: str | os.PathLike[str],
    events: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    event_id: str = "id",
    attributes: Iterable[str] | None = None,
    keep: Iterable[str] = (),
    carry: Iterable[str] = (),
    k: int | None = None,
    time_column: str | None = None,
    shards: int | str = "auto",
    subscription_format: str | None = None,
    event_format: str | None = None,
    event_schema: str | None = None,
    overwrite: bool = False,
) -> Summary:
    """Match events from raw files with subscriptions from raw files.

    Parameters
    ----------
    spark : SparkSession
    subscriptions, events : path
        Files or folders of Parquet, JSON (one object per line) or CSV (with the names in the first line). The columns are
        the same as for `build` and `match`.
    output : path
        A new folder. It gets these as Parquet: the index, the matches, the number of matches of each subscription, statistics
        of the events, rejected subscriptions, lines that cannot be read, and wrong events. It also gets a page about the run,
        `summary.html`.
    event_id, attributes, keep, carry, k, time_column : optional
        As in `match`, where `time_column` is called `time`.
    shards : int or "auto"
        As in `build`.
    subscription_format, event_format : str, optional
        ``parquet``, ``json`` or ``csv``. By default, the names of the files decide.
    event_schema : str, optional
        Columns of events and their types, as Spark writes them: ``id long, price double``. A line with another value is then a
        bad line. By default, one text among numbers makes the whole column text.
    overwrite : bool
        If True, delete the output of an earlier run.

    Raises
    ------
    FileError, FrameError, OptionError, IndexFolderError
    """
    begun = time.perf_counter()
    checked_session(spark)
    earlier = check_inputs(subscriptions, events, output, subscription_format, event_format, overwrite=overwrite)
    folder = local_path(output)
    given = read_raw(spark, subscriptions, subscription_format)
    raw = read_raw(spark, events, event_format, event_schema)
    options = MatchOptions.of(event_id, attributes, keep, carry, k, time_column, None, skip_wrong=True)
    carried = [field.name for field in subscription_frame(given.rows).carried]
    options = replace(options, attributes=checked_attributes(raw.rows, carried, options))
    wrong_result(raw.rows, _of_wrong(options))
    _empty(folder, earlier)  # Not earlier: a wrong file or column must not delete the old results.
    with failures_of_spark("has failed", folder):
        bad_subscriptions = _written_if_any(spark, given.bad, folder / "bad_subscriptions")
        bad_events = _written_if_any(spark, raw.bad, folder / "bad_events")
        built = build(
            given.rows, folder / "index", shards, events=raw.rows, attributes=options.attributes, event_id=event_id
        )
        if built.rejected:
            built.rejections.write.parquet(address(folder / "rejected"))
        figures = {
            "rejected subscriptions": built.rejected,
            "bad lines of subscriptions": bad_subscriptions,
            "bad lines of events": bad_events,
            **_write_matches(raw.rows, folder, built.version, options),
        }
        found = statistics(raw.rows, options.attributes, event_id=event_id)
        found.coalesce(1).write.parquet(address(folder / "statistics"))
        return _reported(spark, folder, raw, figures, begun)


def _of_wrong(options: MatchOptions) -> MatchOptions:
    """The options for listing wrong events: no column beside id and reason."""
    return replace(options, keep=(), carry=())


def _write_matches(events: DataFrame, folder: Path, version: int, options: MatchOptions) -> dict[str, Any]:
    """Match events, write matches and wrong events, and return figures about them."""
    index = IndexFolder(folder / "index")
    manifest = index.manifest(version)
    begun = time.perf_counter()
    with work_counters(events.sparkSession) as counters:
        matched(events, index, manifest, options, moment_now(), counters).write.parquet(address(folder / "matches"))
        done = counters.sums()
    seconds = round(time.perf_counter() - begun, 2)
    work = {name: done[name] for name in _WORK}
    wrong = wrong_among(events, index, manifest, _of_wrong(options))
    count = _written_if_any(events.sparkSession, wrong, folder / "wrong_events")
    return {"wrong events": count, "seconds to match": seconds, **work}


def check_inputs(
    subscriptions: str | os.PathLike[str],
    events: str | os.PathLike[str],
    output: str | os.PathLike[str],
    subscription_format: str | None = None,
    event_format: str | None = None,
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Check the paths of `run_pipeline`, as far as possible without Spark.

    Returns
    -------
    list of Path
        The files and folders that an earlier run has written to `output`.

    Raises
    ------
    FileError, OptionError, IndexFolderError
    """
    earlier = _earlier(local_path(output), overwrite)
    check_raw(subscriptions, subscription_format)
    check_raw(events, event_format)
    return earlier


def _reported(spark: SparkSession, folder: Path, raw: RawRows, figures: dict[str, Any], begun: float) -> Summary:
    """Count matches, and write the summary of the run."""
    pairs = spark.read.parquet(pattern(folder / "matches"))
    _counts(spark, folder, pairs).write.parquet(address(folder / "counts"))
    counted = {"events": raw.rows.count(), "matches": pairs.count()}
    summary = _summary(spark, folder, {**counted, **figures}, _notes(raw), begun)
    with replacing(str(folder / "summary.json")) as stream:
        stream.write(json.dumps(summary.figures, indent=1).encode())
    with replacing(str(folder / "summary.html")) as stream:
        stream.write(summary_page(summary).encode())
    return summary


def _counts(spark: SparkSession, folder: Path, pairs: DataFrame) -> DataFrame:
    """How many events each subscription has, including subscriptions without events."""
    from pyspark.sql import functions as F  # noqa: N812

    counted = pairs.groupBy(SUBSCRIPTION).agg(F.count("*").alias(MATCHES))
    # Drop columns of users that have the names of our columns.
    given = subscriptions_of(spark, folder / "index").drop(SUBSCRIPTION, MATCHES, EXPRESSION, WEIGHT)
    joined = given.withColumnRenamed(ID, SUBSCRIPTION).join(counted, SUBSCRIPTION, "left").fillna(0, [MATCHES])
    others = [name for name in joined.columns if name not in (SUBSCRIPTION, MATCHES)]
    return joined.select(SUBSCRIPTION, MATCHES, *(F.col(quoted(name)) for name in others))


def _written_if_any(spark: SparkSession, rows: DataFrame | None, place: Path) -> int:
    """Write unusable rows, if there are any; returns how many."""
    if rows is None or rows.isEmpty():
        return 0
    rows.write.parquet(address(place))
    return spark.read.parquet(pattern(place)).count()


def _notes(raw: RawRows) -> list[str]:
    """Hints for the user: columns that should perhaps be numbers."""
    mixed = mixed_columns(raw.rows) if raw.guessed else {}
    return [
        f"Of {count:,} values of {name!r}, only {like:,} are numbers, so all of them are read as text. No number equals a text. "
        f"Hint: an event schema with {name} as double reports the other values as bad lines"
        for name, (like, count) in mixed.items()
    ]


def _summary(spark: SparkSession, folder: Path, given: dict[str, Any], notes: list[str], begun: float) -> Summary:
    from pyspark.sql import functions as F  # noqa: N812

    counts = spark.read.parquet(pattern(folder / "counts"))
    by_size = counts.groupBy(
        F.length(F.col(MATCHES).cast("string")).alias("digits"), (F.col(MATCHES) == 0).alias("none")
    )
    most = counts.orderBy(F.col(MATCHES).desc(), SUBSCRIPTION).limit(_SHOWN).collect()
    found = spark.read.parquet(pattern(folder / "statistics")).orderBy("attribute", "kind").collect()
    figures: dict[str, Any] = {
        "subscriptions": counts.count(),
        "subscriptions without a match": counts.where(F.col(MATCHES) == 0).count(),
        **given,
        "seconds in all": round(time.perf_counter() - begun, 2),
    }
    return Summary(
        figures,
        [(str(row[SUBSCRIPTION]), row[MATCHES]) for row in most],
        _sizes({0 if row.none else row.digits: row["count"] for row in by_size.count().collect()}),
        [row.asDict(recursive=True) for row in found],
        notes,
    )


def _sizes(by_digits: dict[int, int]) -> list[tuple[str, int]]:
    """Ranges of match counts, by number of digits, with their number of subscriptions; 0 digits is no match. No gaps."""
    return [
        (_range(digits) if digits else "none", by_digits.get(digits, 0))
        for digits in range(min(by_digits, default=0), max(by_digits, default=-1) + 1)
    ]


def _range(digits: int) -> str:
    low = 10 ** (digits - 1)
    return f"{low:,} to {10 * low - 1:,}"


def _earlier(folder: Path, overwrite: bool) -> list[Path]:
    """The output of an earlier run, if it may be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise FileError("is a file, but the results need a folder", path=str(folder))
    there = [folder / name for name in _OURS if (folder / name).exists()]
    if there and not overwrite:
        raise FileError(
            "the folder has the results of an earlier run. Hint: choose another folder, or overwrite the results (--overwrite)",
            path=str(folder),
        )
    return there


def _empty(folder: Path, earlier: list[Path]) -> None:
    for path in earlier:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot be written: {error.strerror}", path=str(folder)) from None
