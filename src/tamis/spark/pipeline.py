"""The whole way at once: raw files in, an index, matches, counts, statistics and a page about them out."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import FileError, OptionError
from tamis.spark.attribute_statistics import statistics
from tamis.spark.building import build
from tamis.spark.contents import subscriptions as subscriptions_of
from tamis.spark.manifest import local_path
from tamis.spark.match_task import MATCHES, SUBSCRIPTION
from tamis.spark.matching import match
from tamis.spark.segment_files import ID
from tamis.spark.summary_page import Summary, summary_page
from tamis.storage.replacing import replacing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("parquet", "json", "csv")
_ENDINGS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}
_OURS = ("index", "matches", "counts", "statistics", "rejected", "bad_events", "summary.html", "summary.json")
_CORRUPT = "__tamis_corrupt"
_SHOWN = 20


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
    overwrite: bool = False,
) -> Summary:
    """Match all events of raw files with all subscriptions of others.

    Parameters
    ----------
    spark : SparkSession
    subscriptions, events : path
        Files or folders of Parquet, JSON (a line each) or CSV (with a first line of names). Columns are those that `build` and
        `match` take.
    output : path
        A new folder. It gets the index, the matches, how many each subscription has, statistics of the events, what was
        rejected, all as Parquet, and a page about all of it, `summary.html`.
    event_id, attributes, keep, carry, k, time_column : optional
        As in `match`, where the last is called `time`.
    shards : int or "auto"
        As in `build`.
    subscription_format, event_format : str, optional
        ``parquet``, ``json`` or ``csv``, if names of files do not tell.
    overwrite : bool
        Whether what an earlier run wrote to `output` is deleted.

    Raises
    ------
    FileError, FrameError, OptionError, IndexFolderError
    """
    begun = time.perf_counter()
    folder = _emptied(local_path(output), overwrite)
    given = _read(spark, subscriptions, subscription_format)
    read = _read(spark, events, event_format)
    bad = 0
    if _CORRUPT in read.columns:
        read = read.cache()  # Spark does not tell bad lines from others if nothing else is asked for.
        wrong = read.where(f"{_CORRUPT} IS NOT NULL").select(_CORRUPT).withColumnRenamed(_CORRUPT, "line")
        wrong.write.parquet(str(folder / "bad_events"))
        bad = spark.read.parquet(str(folder / "bad_events")).count()
        read = read.where(f"{_CORRUPT} IS NULL").drop(_CORRUPT)
    built = build(given, folder / "index", shards, events=read, attributes=attributes)
    if built.rejected:
        built.rejections.write.parquet(str(folder / "rejected"))
    matched = time.perf_counter()
    found = match(
        read, folder / "index", event_id, attributes=attributes, keep=keep, carry=carry, k=k, time=time_column
    )
    found.write.parquet(str(folder / "matches"))
    pairs = spark.read.parquet(str(folder / "matches"))
    seconds = time.perf_counter() - matched
    _counts(spark, folder, pairs).write.parquet(str(folder / "counts"))
    statistics(read, attributes).coalesce(1).write.parquet(str(folder / "statistics"))
    summary = _summary(spark, folder, read.count(), pairs.count(), built.rejected, bad, seconds, begun)
    with replacing(str(folder / "summary.json")) as stream:
        stream.write(json.dumps(summary.figures, indent=1).encode())
    with replacing(str(folder / "summary.html")) as stream:
        stream.write(summary_page(summary).encode())
    return summary


def _counts(spark: SparkSession, folder: Path, pairs: DataFrame) -> DataFrame:
    """How many events each subscription has, those without any included."""
    from pyspark.sql import functions as F  # noqa: N812

    counted = pairs.groupBy(SUBSCRIPTION).agg(F.count("*").alias(MATCHES))
    all_of_them = subscriptions_of(spark, folder / "index").withColumnRenamed(ID, SUBSCRIPTION)
    joined = all_of_them.join(counted, SUBSCRIPTION, "left").fillna(0, [MATCHES])
    others = [name for name in joined.columns if name not in (SUBSCRIPTION, MATCHES)]
    return joined.select(SUBSCRIPTION, MATCHES, *(F.col(f"`{name}`") for name in others))


def _summary(
    spark: SparkSession,
    folder: Path,
    events: int,
    pairs: int,
    rejected: int,
    bad: int,
    match_seconds: float,
    begun: float,
) -> Summary:
    from pyspark.sql import functions as F  # noqa: N812

    counts = spark.read.parquet(str(folder / "counts"))
    by_size = counts.groupBy(
        F.length(F.col(MATCHES).cast("string")).alias("digits"), (F.col(MATCHES) == 0).alias("none")
    )
    sizes = [(row.digits, row.none, row["count"]) for row in by_size.count().orderBy("digits", "none").collect()]
    most = counts.orderBy(F.col(MATCHES).desc(), SUBSCRIPTION).limit(_SHOWN).collect()
    found = spark.read.parquet(str(folder / "statistics")).orderBy("attribute", "kind").collect()
    figures: dict[str, Any] = {
        "subscriptions": counts.count(),
        "events": events,
        "matches": pairs,
        "subscriptions without a match": counts.where(F.col(MATCHES) == 0).count(),
        "rejected subscriptions": rejected,
        "bad events": bad,
        "seconds to match": round(match_seconds, 2),
        "seconds in all": round(time.perf_counter() - begun, 2),
    }
    return Summary(
        figures,
        [(str(row[SUBSCRIPTION]), row[MATCHES]) for row in most],
        [
            ("none" if none else _range(digits), count)
            for digits, none, count in sorted(sizes, key=lambda s: (not s[1], s[0]))
        ],
        [row.asDict(recursive=True) for row in found],
    )


def _range(digits: int) -> str:
    low = 10 ** (digits - 1)
    return f"{low:,} to {10 * low - 1:,}"


def _emptied(folder: Path, overwrite: bool) -> Path:
    there = [folder / name for name in _OURS if (folder / name).exists()]
    if there and not overwrite:
        raise FileError("an earlier run has written to it. Hint: another folder, or overwrite it", path=str(folder))
    for path in there:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot be written: {error.strerror}", path=str(folder)) from None
    return folder


def _read(spark: SparkSession, path: str | os.PathLike[str], given: str | None) -> DataFrame:
    place = local_path(path)
    if not place.exists():
        raise FileError("is not there", path=str(place))
    kind = _format(place) if given is None else given
    if kind not in FORMATS:
        raise OptionError(f"the format is one of {', '.join(FORMATS)}, not {kind!r}")
    if kind == "parquet":
        return spark.read.parquet(str(place))
    if kind == "json":
        return spark.read.option("columnNameOfCorruptRecord", _CORRUPT).json(str(place))
    # A line with too many or too few fields would lose some of them in silence.
    return spark.read.csv(str(place), header=True, inferSchema=True, mode="FAILFAST")


def _format(path: Path) -> str:
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    found = {_ENDINGS[file.suffix.lower()] for file in files if file.suffix.lower() in _ENDINGS}
    if len(found) != 1:
        what = "several formats" if found else "no format that we know"
        raise FileError(f"names of files tell {what}. Hint: say which: {', '.join(FORMATS)}", path=str(path))
    return found.pop()
