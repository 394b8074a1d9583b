"""Work that is divided into buckets: a task makes the segments of a bucket and reports, the driver combines the reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encoding.columns import combined
from tamis.spark.build_progress import told_progress
from tamis.spark.frames import BUCKET, Batches, map_in_arrow
from tamis.spark.manifest import SegmentFiles
from tamis.spark.segment_files import ID, stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class BucketReport:
    """The result of a task for one bucket.

    Attributes
    ----------
    segments : tuple of SegmentFiles
        All segments of the bucket from now on.
    rejected : int
        Number of rejected rows.
    rejected_name : str or None
        The file with the rejected rows.
    added, replaced, removed : int
        Numbers of subscriptions that are new, that have changed, and that are gone.
    """

    bucket: int
    segments: tuple[SegmentFiles, ...]
    rejected: int
    rejected_name: str | None
    added: int
    replaced: int = 0
    removed: int = 0

    def to_batch(self) -> pa.RecordBatch:
        """The report in the form that a task returns."""
        return pa.RecordBatch.from_pydict({"report": [json.dumps(asdict(self))]})

    @staticmethod
    def from_json(text: str) -> BucketReport:
        given = json.loads(text)
        return BucketReport(**{**given, "segments": tuple(SegmentFiles(**segment) for segment in given["segments"])})


class JobReport(NamedTuple):
    """The result for all buckets; `added` and the other counts are sums."""

    buckets: tuple[tuple[SegmentFiles, ...], ...]
    rejected_names: tuple[str, ...]
    rejected: int
    added: int
    replaced: int
    removed: int


def run_in_buckets(
    frame: DataFrame, task: Callable[[Batches], Batches], buckets: Sequence[tuple[SegmentFiles, ...]]
) -> JobReport:
    """Divide rows into buckets, and let executors run a task on each. A bucket without rows stays as it is."""
    with told_progress(frame.sparkSession, task, len(buckets)) as told:
        rows = map_in_arrow(dealt(frame, len(buckets)), told, "report string").collect()
    reports = [BucketReport.from_json(row.report) for row in rows]
    after = {report.bucket: report.segments for report in reports}
    return JobReport(
        buckets=tuple(after.get(number, before) for number, before in enumerate(buckets)),
        rejected_names=tuple(report.rejected_name for report in reports if report.rejected_name is not None),
        rejected=sum(report.rejected for report in reports),
        added=sum(report.added for report in reports),
        replaced=sum(report.replaced for report in reports),
        removed=sum(report.removed for report in reports),
    )


def dealt(frame: DataFrame, buckets: int) -> DataFrame:
    """Rows with the number of their bucket; all rows of a bucket are in one partition."""
    from pyspark.sql import functions as F  # noqa: N812

    # Spark's partition has the same number, so each task has one bucket. Nothing relies on this.
    numbered = frame.withColumn(BUCKET, F.pmod(F.hash(F.col(ID)), F.lit(buckets)))
    return numbered.repartition(buckets, F.col(ID))


def by_bucket(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """All rows of a partition, bucket by bucket."""
    everything = list(batches)
    if not everything:
        return
    table = pa.Table.from_batches(everything)
    everything.clear()
    table = stored(table)
    numbers = combined(table[BUCKET]).to_numpy()
    table = table.drop_columns([BUCKET])
    for bucket in np.unique(numbers).tolist():
        yield bucket, table.filter(pa.array(numbers == bucket)) if (numbers != bucket).any() else table
