"""Building an index: ids divide subscriptions into buckets, and a task makes a segment of each bucket."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tamis.encoding.events.asked import Asked
from tamis.errors import OptionError, shortened
from tamis.language.schema import Schema
from tamis.matcher.event_input import right_rows, wrong_rows
from tamis.spark.bucket_tasks import BucketReport, by_bucket, run_in_buckets
from tamis.spark.frames import can_hand_over, event_attributes, quoted, subscription_frame
from tamis.spark.given import checked_frame, listed
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import SAMPLES, Manifest, new_name
from tamis.spark.rejected_rows import Rejections, rejected_frame
from tamis.spark.segment_files import ID, read_sample, write_arrow, write_segment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PER_SHARD = 1_000_000
_MOST_SHARDS = 10_000
_SAMPLED = 4096


class BuildReport(NamedTuple):
    """What `build` did.

    Attributes
    ----------
    version : int
        The version that was published.
    subscriptions : int
        Number of subscriptions in the index.
    shards : int
        Number of shards.
    rejected : int
        Number of rows that were rejected.
    rejections : DataFrame
        The rejected rows, with the `reason`.
    """

    version: int
    subscriptions: int
    shards: int
    rejected: int
    rejections: DataFrame


def build(
    subscriptions: DataFrame,
    path: str | os.PathLike[str],
    shards: int | str = "auto",
    *,
    events: DataFrame | None = None,
    attributes: Iterable[str] | None = None,
    event_id: str | None = None,
    schema: Any = None,
    seed: int = 0,
) -> BuildReport:
    """Build an index from subscriptions and publish it as the next version at `path`.

    Parameters
    ----------
    subscriptions : DataFrame
        With the columns ``id`` (string or whole number) and either ``expression`` (SQL text) or ``predicates``
        (``array<struct<attribute: string, operator: string, values: array<V>>>``). Optional: ``weight``, by which `k` of
        `match` ranks; ``valid_from`` and ``valid_until``. A subscription matches from ``valid_from`` on and before
        ``valid_until``. All other columns are kept for `carry` of `match`.
    path : path
        A folder that the driver and all executors see, or an address such as ``s3://bucket/alerts``. If it has an index, the
        index gets a new version, and running streams use this version from their next batch on.
    shards : int or "auto"
        Number of files for the subscriptions. By default, one per million. Each task builds one file in memory.
    events : DataFrame, optional
        Past events, from which the index learns how frequent values are. Wrong events are left out.
    attributes : list of str, optional
        The columns of `events` that are attributes. By default, all columns, see `match`.
    event_id : str, optional
        The column of `events` with their ids. By default, `id` if there is such a column.
    schema : Schema or mapping, optional
        Declared attributes and kinds. A subscription that violates them is rejected.
    seed : int
        Seed of the sample of events.

    Raises
    ------
    FrameError, OptionError, SchemaError, IndexFolderError, ConflictError
    """
    given = subscription_frame(checked_frame(subscriptions, "subscriptions"))
    if events is not None:
        checked_frame(events, "events")
        attributes = None if attributes is None else listed(attributes, "attributes")
    declared = None if schema is None else Schema.of(schema).to_dict()
    spark = subscriptions.sparkSession
    folder = IndexFolder.of(path, spark)
    # Read the manifest now. If another process publishes meanwhile, this build must fail, not undo that version.
    before = folder.current()
    sampled = None if events is None else _sampled(events, attributes, event_id, declared, seed)
    shards = _shards(given.frame, shards)
    folder.prepare()
    sample = None if sampled is None else _written_sample(folder, sampled)
    task = BuildTask(folder, given.form, declared, sample)
    job = run_in_buckets(given.frame, task, [()] * shards)
    published = folder.publish(
        Manifest(
            version=1 if before is None else before.version + 1,
            published=now(),
            id_type=given.id_type,
            form=given.form,
            form_type=given.frame.schema[given.form].dataType.simpleString(),
            columns={field.name: json.dumps(field.dataType.jsonValue()) for field in given.carried},
            buckets=job.buckets,
            schema=declared,
            sample=sample,
            applied={} if before is None else before.applied,
            rejected=job.rejected_names,
        )
    )
    rejections = rejected_frame(spark, folder, given.frame.schema, job.rejected_names)
    return BuildReport(published.version, published.subscriptions, shards, job.rejected, rejections)


def now() -> str:
    return datetime.now(UTC).isoformat()


def _sampled(
    events: DataFrame,
    attributes: Iterable[str] | None,
    event_id: str | None,
    schema: dict[str, Any] | None,
    seed: int,
) -> pa.Table:
    """A random sample of the events."""
    from pyspark.sql import functions as F  # noqa: N812

    chosen = [name for name in event_attributes(events, event_id, attributes) if can_hand_over(events.schema, name)]
    frame = events.select(*(quoted(name) for name in chosen))
    drawn = frame.orderBy(F.rand(seed)).limit(_SAMPLED).toArrow()
    declared = None if schema is None else Schema.of(schema)
    return right_rows(drawn, wrong_rows(drawn, Asked.names((), declared), declared))


def _written_sample(folder: IndexFolder, sampled: pa.Table) -> str | None:
    """The name of the file with a sample of events; None if there are no events."""
    if not len(sampled):
        return None
    name = new_name()
    folder.put(f"{SAMPLES}/{name}.arrow", lambda path: write_arrow(path, sampled))
    return name


def _shards(frame: DataFrame, shards: int | str) -> int:
    if shards == "auto":
        return max(1, -(-frame.count() // _PER_SHARD))
    if not isinstance(shards, int) or isinstance(shards, bool) or not 1 <= shards <= _MOST_SHARDS:
        raise OptionError(f"shards must be 'auto' or a number from 1 to {_MOST_SHARDS:,}, not {shortened(shards)}")
    return shards


@dataclass(frozen=True)
class BuildTask:
    """Makes a segment of each bucket whose rows it gets."""

    folder: IndexFolder
    form: str
    schema: dict[str, Any] | None
    sample: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        folder = self.folder
        for bucket, rows in by_bucket(batches):
            rejections = Rejections(rows)
            rejections.reject_wrong_ids()
            rows = rejections.left().sort_by(ID)  # For equal weights, the lower id comes first.
            written = write_segment(folder, rows, self.form, self.schema, read_sample(folder, self.sample))
            rejections.add(rows, written.refused)
            segment = written.segment
            yield BucketReport(
                bucket=bucket,
                segments=() if segment is None else (segment,),
                rejected=len(rejections),
                rejected_name=rejections.write(folder),
                added=0 if segment is None else segment.rows,
            ).to_batch()
