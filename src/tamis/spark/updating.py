"""Changing an index: only buckets with changes get new files, and most of these files are small.

A task has the changes of one bucket. It writes additions as a small segment, and the rows that older segments have lost. Segments
that are not much larger than the additions are merged with them, and segments that have lost many rows are written again. So a
bucket keeps few segments, each some times larger than the next, and a subscription is rewritten once for each size.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import combined
from tamis.errors import FrameError, OptionError, shortened
from tamis.kernels.numbers import Bools
from tamis.spark.bucket_tasks import BucketReport, by_bucket, run_in_buckets
from tamis.spark.building import now
from tamis.spark.frames import ADDED, CHANGE, MEANT, REMOVED, SubscriptionFrame, subscription_frame, type_of
from tamis.spark.given import checked_frame
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import Manifest, SegmentFiles, without_rows
from tamis.spark.rejected_rows import Rejections, rejected_frame
from tamis.spark.segment_files import (
    FORMS,
    ID,
    WEIGHT,
    Rows,
    living_rows,
    read_sample,
    refused_rows,
    removed_rows,
    segment_columns,
    write_removed,
    write_segment,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIER = 2
"""Most times that a segment may be larger than the additions and smaller segments to be merged with them."""
_MOST_GONE = 0.2
"""Share of removed rows above which a segment is written again."""


class UpdateReport(NamedTuple):
    """What `update` did.

    Attributes
    ----------
    version : int
        The current version: a new one if anything changed.
    added, replaced, removed : int
        Numbers of subscriptions that were added, replaced and removed.
    rejected : int
        Number of changes that were rejected.
    rejections : DataFrame
        The rejected changes, with the `reason`.
    """

    version: int
    added: int
    replaced: int
    removed: int
    rejected: int
    rejections: DataFrame


def update(
    path: str | os.PathLike[str],
    changes: DataFrame,
    *,
    order: str | None = None,
    source: str | None = None,
    batch: int | None = None,
) -> UpdateReport:
    """Apply all correct changes to an index, and publish the result as its next version.

    Parameters
    ----------
    path : path
        The folder or the address of the index.
    changes : DataFrame
        The columns of `build`, and ``change``: ``added`` or ``removed``. An addition replaces the subscription that has its id,
        even if the same changes also remove this id. A wrong addition leaves the old subscription as it is. A removal needs
        only the id.
    order : str, optional
        A column with the order of the changes of an id: the last correct change counts. Changes of earlier calls always came
        before. Without `order`, two additions with the same id are rejected. In a stream, an addition and a removal of the same
        id are rejected, too.
    source, batch : str and int, optional
        The name of the stream of changes, and the number of this batch. A batch that was applied before is not applied again.

    Raises
    ------
    FrameError, OptionError, IndexFolderError, ConflictError
    """
    if (source is None) != (batch is None):
        raise OptionError("give both `source` and `batch`, or none: the name of the stream and the number of the batch")
    checked_frame(changes, "changes")
    spark = changes.sparkSession
    folder = IndexFolder.of(path, spark)
    manifest = folder.manifest()
    given = _changes_frame(changes, manifest, order)
    if source is not None and batch is not None and manifest.applied.get(source, -1) >= batch:
        return UpdateReport(manifest.version, 0, 0, 0, 0, rejected_frame(spark, folder, given.frame.schema, []))
    folder.prepare()
    task = UpdateTask(folder, manifest, order, source is not None)
    job = run_in_buckets(given.frame, task, manifest.buckets)
    version = manifest.version
    applied = manifest.applied if source is None or batch is None else {**manifest.applied, source: batch}
    if job.buckets != manifest.buckets or applied != manifest.applied:
        version += 1
        after = replace(manifest, buckets=job.buckets, applied=applied, rejected=job.rejected_names)
        folder.publish(replace(after, version=version, published=now()))
    rejections = rejected_frame(spark, folder, given.frame.schema, job.rejected_names)
    return UpdateReport(version, job.added, job.replaced, job.removed, job.rejected, rejections)


def _changes_frame(changes: DataFrame, manifest: Manifest, order: str | None) -> SubscriptionFrame:
    """Changes with the columns that the index was built with."""
    from pyspark.sql import functions as F  # noqa: N812

    if not set(FORMS) & set(changes.columns):
        changes = changes.withColumn(manifest.form, F.lit(None).cast(manifest.form_type))
    given = subscription_frame(changes, _apart(manifest, order))
    if given.form != manifest.form:
        raise FrameError(
            f"the subscriptions of the index are in the column {manifest.form!r}, but those of the changes are in {given.form!r}"
        )
    if given.id_type != manifest.id_type:
        raise FrameError(f"the ids of the index are {manifest.id_type}, but those of the changes are {given.id_type}")
    form_type = given.frame.schema[given.form].dataType.simpleString()
    if form_type != manifest.form_type:
        raise FrameError(
            f"the column {given.form!r} of the index is {manifest.form_type}, but that of the changes is {form_type}. "
            "Hint: cast it, or build the index from SQL text, which compares with values of all kinds"
        )
    types = {field.name: field.dataType for field in given.carried}
    for name, kind in types.items():
        if name not in manifest.columns:
            known = ", ".join(manifest.columns) or "none"
            raise FrameError(f"the index carries no column {name!r}; it carries: {known}. Hint: drop it")
        stored = type_of(manifest.columns[name])
        if kind.simpleString() != stored.simpleString():  # whether it may have nulls does not matter
            raise FrameError(f"the column {name!r} of the index is {stored.simpleString()}, not {kind.simpleString()}")
    missing = [name for name in manifest.columns if name not in types]
    nothing = [F.lit(None).cast(type_of(manifest.columns[name])).alias(name) for name in missing]
    return given._replace(frame=given.frame.select("*", *nothing))


def _apart(manifest: Manifest, order: str | None) -> list[str]:
    """The columns that changes have and subscriptions do not."""
    return [CHANGE] if order is None or order in MEANT or order in manifest.columns else [CHANGE, order]


@dataclass(frozen=True)
class UpdateTask:
    """Applies the changes of each bucket that it gets."""

    folder: IndexFolder
    manifest: Manifest
    order: str | None
    is_stream: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, changes in by_bucket(batches):
            bucket = Bucket(self.folder, self.manifest, number)
            yield bucket.changed(changes, self.order, self.is_stream).to_batch()


class Bucket:
    """The segments of a bucket, and the operations that change them."""

    def __init__(self, folder: IndexFolder, manifest: Manifest, number: int) -> None:
        self._folder = folder
        self._manifest = manifest
        self._number = number
        self._segments = manifest.buckets[number]

    def changed(self, changes: pa.Table, order: str | None, is_stream: bool) -> BucketReport:
        """Apply changes."""
        rejections = Rejections(changes)
        _reject_unclear(rejections, changes, order, is_stream)
        clear = rejections.left()
        came = combined(clear[ID]).slice(0, 0)
        if order is not None:
            # The result is the same as applying one change after another, however a stream is divided into batches. So the last
            # correct change counts. Removing an id that was added just before is not an error.
            clear = self._right_of_several(clear, rejections)
            came = combined(clear.filter(pc.equal(clear[CHANGE], ADDED))[ID])
            clear = _last_changes(clear, order)
        is_added = pc.equal(clear[CHANGE], ADDED)
        added = clear.filter(is_added).sort_by(ID)
        fresh, refused = self._written(added.drop_columns(_apart(self._manifest, order)))
        rejections.add(added, refused)
        if refused:
            added = added.take(pa.array(np.setdiff1d(np.arange(len(added)), [row for row, _ in refused])))
        removed = clear.filter(pc.invert(is_added))
        there = [self._found(segment, clear) for segment in self._segments]
        known = pa.concat_arrays([came, *(ids for _, ids in there)])
        unknown = np.flatnonzero(~_is_in(removed[ID], known)).tolist()
        rejections.add(removed, [(row, "no subscription has this id") for row in unknown])
        # An id that is added again is not removed. An id whose new form is wrong keeps the old form.
        removed = removed.filter(pa.array(~_is_in(removed[ID], combined(clear.filter(is_added)[ID]))))
        found = [rows[_is_in(ids, combined(added[ID]))] for rows, ids in there]
        gone = [rows[_is_in(ids, combined(removed[ID]))] for rows, ids in there]
        left = [
            self._without(segment, np.concatenate([rows, more]))
            for segment, rows, more in zip(self._segments, found, gone, strict=True)
        ]
        replaced = sum(map(len, found))
        return BucketReport(
            bucket=self._number,
            segments=tuple(self._merged(left, fresh)),
            rejected=len(rejections),
            rejected_name=rejections.write(self._folder),
            added=len(added) - replaced,
            replaced=replaced,
            removed=sum(map(len, gone)),
        )

    def _right_of_several(self, changes: pa.Table, rejections: Rejections) -> pa.Table:
        """Changes without the wrong additions of ids that have several changes."""
        counts = changes[ID].value_counts()
        often = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
        asked = pc.and_(pc.is_in(changes[ID], often), pc.equal(changes[CHANGE], ADDED))
        rows = np.flatnonzero(np.array(asked, bool))
        manifest = self._manifest
        refused = refused_rows(changes.take(pa.array(rows)), manifest.form, manifest.schema)
        wrong = rows[[row for row, _ in refused]]
        rejections.add(changes, [(row, reason) for row, (_, reason) in zip(wrong.tolist(), refused, strict=True)])
        return changes.take(pa.array(np.setdiff1d(np.arange(len(changes)), wrong)))

    def _written(self, rows: pa.Table) -> tuple[SegmentFiles | None, list[tuple[int, str]]]:
        if not len(rows):
            return None, []
        manifest = self._manifest
        sample = read_sample(self._folder, manifest.sample)
        return write_segment(self._folder, rows, manifest.form, manifest.schema, sample)

    def _found(self, segment: SegmentFiles, changes: pa.Table) -> tuple[Rows, pa.Array]:
        """The living rows of a segment whose ids are those of some changes, and these ids."""
        ids = combined(segment_columns(self._folder, segment)[ID])
        is_there = _is_in(ids, combined(changes[ID]))
        is_there &= ids.is_valid().to_numpy(zero_copy_only=False)
        is_there[removed_rows(self._folder, segment)] = False
        rows = np.flatnonzero(is_there)
        return rows, ids.take(pa.array(rows))

    def _without(self, segment: SegmentFiles, rows: Rows) -> SegmentFiles:
        if not len(rows):
            return segment
        gone = np.union1d(removed_rows(self._folder, segment), rows)
        return without_rows(segment, *write_removed(self._folder, gone), len(gone))

    def _merged(self, segments: list[SegmentFiles], fresh: SegmentFiles | None) -> list[SegmentFiles]:
        """The segments of the bucket, after merging the ones worth it into one."""
        total = 0 if fresh is None else fresh.rows
        chosen = [] if fresh is None else [fresh]
        kept = []
        for segment in sorted(segments, key=lambda segment: segment.living):
            if segment.living <= _TIER * total or segment.removed > _MOST_GONE * segment.rows:
                chosen.append(segment)
                total += segment.living
            else:
                kept.append(segment)
        if len(chosen) == 1 and not chosen[0].removed:
            return [*kept, *chosen]
        living = [living_rows(self._folder, segment) for segment in chosen if segment.living]
        if not living:
            return kept
        rows = pa.concat_tables(living, promote_options="default").sort_by(ID)
        if WEIGHT in rows.column_names:  # some of the segments may have no weights
            place = rows.column_names.index(WEIGHT)
            rows = rows.set_column(place, WEIGHT, rows[WEIGHT].fill_null(0.0))
        merged, refused = self._written(rows)
        if refused:
            raise AssertionError(f"a subscription was taken in before and is refused now: {refused[0][1]}")
        return kept if merged is None else [*kept, merged]


def _is_in(ids: pa.Array | pa.ChunkedArray, others: pa.Array) -> Bools:
    """Which ids are among others."""
    return np.array(pc.is_in(ids, others), bool)


def _last_changes(changes: pa.Table, order: str) -> pa.Table:
    """The last change of each id; two, if an addition and a removal are last together."""
    ids, places = changes[ID].to_pylist(), changes[order].to_pylist()
    last: dict[Any, Any] = {}
    for identifier, place in zip(ids, places, strict=True):
        if identifier not in last or place > last[identifier]:
            last[identifier] = place
    return changes.filter(pa.array([place == last[each] for each, place in zip(ids, places, strict=True)], pa.bool_()))


def _reject_unclear(rejections: Rejections, changes: pa.Table, order: str | None, is_stream: bool) -> None:
    """Reject rows without a change, an id or a place in the order. Also reject several changes of one id if it is not clear which
    one is meant: additions, and in a stream, additions and removals."""
    added: dict[Any, list[int]] = {}
    removed: dict[Any, list[int]] = {}
    places = itertools.repeat(0, len(changes)) if order is None else changes[order].to_pylist()
    given = zip(changes[ID].to_pylist(), changes[CHANGE].to_pylist(), places, strict=True)
    for row, (identifier, word, place) in enumerate(given):
        if identifier is None:
            rejections.reject([row], "id is null")
        elif place is None or place != place:
            rejections.reject([row], f"{order} is {'null' if place is None else 'NaN'}")
        elif word in (ADDED, REMOVED):
            (added if word == ADDED else removed).setdefault((identifier, place), []).append(row)
        else:
            rejections.reject([row], f"the change must be {ADDED!r} or {REMOVED!r}, not {word!r}")
    for when, rows in added.items():
        if len(rows) > 1:
            rejections.reject(rows, f"the id {when[0]!r} is added {len(rows)} times")
        elif is_stream and when in removed:
            reason = f"the id {when[0]!r} is added and removed at once. Hint: `order` names a column with the order of changes"
            rejections.reject(rows + removed[when], reason)


def collect_garbage(path: str | os.PathLike[str], retain: timedelta = timedelta(days=1)) -> int:
    """Delete old versions and all files that no version needs. Returns the number of deleted files.

    A version is old if another version replaced it longer than `retain` ago. Running jobs, and streams that repeat a batch,
    still need their version. Set `retain` longer than these take.

    Raises
    ------
    OptionError, IndexFolderError
    """
    if not isinstance(retain, timedelta):
        raise OptionError(f"`retain` must be a timedelta, such as timedelta(days=1), not {shortened(retain)}")
    folder = IndexFolder(path)
    manifests = folder.manifests()
    before = datetime.now(UTC) - retain
    old = [manifest for manifest, next_one in itertools.pairwise(manifests) if next_one.published_at < before]
    kept = {name for manifest in manifests if manifest not in old for name in manifest.files}
    deleted = 0
    for manifest in old:
        folder.forget(manifest.version)
        deleted += 1
    for name in folder.files(before):
        if name not in kept:
            folder.delete(name)
            deleted += 1
    return deleted
