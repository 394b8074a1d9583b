"""Matching a stream: every micro-batch is matched with one version of the index, and delivered once.

before a batch      its version and its time are written beside the checkpoint, then it is matched
a batch again       after a failure Spark repeats a batch with the same events: same version, same time
delivery            a folder per batch that appears in one step when it is complete; an existing folder is not written again
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import ConflictError, FrameError, IndexFolderError, OptionError, shortened
from tamis.spark.broker_sink import ToBroker, check_ids, keeping_events
from tamis.spark.event_checks import wrong_among, wrong_result
from tamis.spark.frames import clashing
from tamis.spark.given import checked_frame
from tamis.spark.manifest import IndexFolder, address, local_path, new_name
from tamis.spark.matching import MatchOptions, matched, moment_now, needed_attributes
from tamis.spark.segment_files import asked_attributes
from tamis.spark.updating import update
from tamis.storage.replacing import replacing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Deliver = Callable[["DataFrame", int], None]


class BatchRecord(NamedTuple):
    """The version that a micro-batch was matched with."""

    batch: int
    version: int
    moment: int
    """The time at which subscriptions had to be valid, in microseconds since 1970, if the events have no time."""


# Users give these one by one: each is an option of the job.
def match_stream(
    events: DataFrame,
    index: str | os.PathLike[str],
    event_id: str = "id",
    *,
    checkpoint: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    deliver: Deliver | None = None,
    attributes: Iterable[str] | None = None,
    keep: Iterable[str] | None = None,
    carry: Iterable[str] = (),
    k: int | None = None,
    time: str | None = None,
    memory: int | None = None,
    wrong: str | os.PathLike[str] | None = None,
    trigger: dict[str, Any] | None = None,
    name: str | None = None,
) -> StreamingQuery:
    """Match a stream of events. Every micro-batch uses the version of the index that is current when the batch begins.

    Parameters
    ----------
    events : DataFrame
        A streaming DataFrame. `event_id`, `attributes`, `keep`, `carry`, `k`, `time` and `memory` are as in `match`. With
        `to_broker`, all columns of events are kept by default.
    index : path
        The folder that `build` and `update` publish to. The stream uses new versions without a restart.
    checkpoint : path
        A folder for Spark's checkpoint. It also has a record of each batch, see `batch_records`.
    output : path
        A folder for the matches as Parquet. It has a folder ``batch=N`` for each micro-batch, so `batch` is a column when you
        read it. Every pair is in it once, even if processes are killed and restarted.
    deliver : callable
        A function to call instead, with the matches of a batch (a DataFrame) and the number of the batch. After a failure,
        Spark may call the function again with the same batch. The function must then skip or replace its earlier output.
        `to_broker` gives such a function: it puts matches into the queues of a broker, each batch once.
    wrong : path, optional
        A folder for wrong events, with the columns of `wrong_events`, written like `output`. The stream goes on without these
        events, and reads each batch twice to find them. By default, the first wrong event stops the stream with an error.
    trigger : dict, optional
        What `DataStreamWriter.trigger` takes, such as ``{"processingTime": "1 second"}`` or ``{"availableNow": True}``.
    name : str, optional
        Name of the query.

    Raises
    ------
    FrameError, OptionError, IndexFolderError
    """
    if (output is None) == (deliver is None):
        raise OptionError("give either `output`, a folder, or `deliver`, a function, for the matches")
    if deliver is not None and not callable(deliver):
        raise OptionError(f"`deliver` must be a function of a DataFrame and a number, not {shortened(deliver)}")
    if not checked_frame(events, "events").isStreaming:
        raise FrameError("events are not a stream. Hint: tamis.spark.match takes other DataFrames")
    folder = IndexFolder(index)
    options = MatchOptions.of(
        event_id, attributes, () if keep is None else keep, carry, k, time, memory, skip_wrong=wrong is not None
    )
    # Fail now, not in the first batch, if columns or options are wrong.
    manifest = folder.manifest()
    if isinstance(deliver, ToBroker):
        check_ids(manifest.id_type)
        options = keeping_events(events, options) if keep is None else options
    needed_attributes(events, manifest, options, asked_attributes(folder, manifest.segments))
    if wrong is not None:
        wrong_result(events, options)
    places = _places(checkpoint, output, wrong)
    if places.output is not None:
        _check_batch_column("output", events, [event_id, *options.keep, *options.carry])
    if places.wrong is not None:
        _check_batch_column("wrong", events, [event_id, *options.keep])
    records = places.checkpoint / _RECORDS
    records.mkdir(parents=True, exist_ok=True)
    query = _query_id(places.checkpoint)
    deliver = deliver.of_stream(events, options, query) if isinstance(deliver, ToBroker) else deliver
    sink = deliver if places.output is None else ParquetFolders("output", str(places.output), query)
    assert sink is not None
    wrong_sink = None if places.wrong is None else ParquetFolders("wrong", str(places.wrong), query)
    matcher = BatchMatcher(str(folder.path), str(records), options, sink, wrong_sink)
    return _started(events, matcher, checkpoint, trigger, name)


def update_stream(
    changes: DataFrame,
    index: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str],
    order: str | None = None,
    trigger: dict[str, Any] | None = None,
    name: str | None = None,
) -> StreamingQuery:
    """Apply a stream of changes, as `update` does. Each micro-batch with changes is published once, as a new version.

    Raises
    ------
    FrameError, OptionError, IndexFolderError
    """
    if not checked_frame(changes, "changes").isStreaming:
        raise FrameError("changes are not a stream. Hint: tamis.spark.update takes other DataFrames")
    folder = IndexFolder(index)
    folder.manifest()
    updater = BatchUpdater(str(folder.path), _query_id(_local_folder(checkpoint, "checkpoint")), order)
    return _started(changes, updater, checkpoint, trigger, name)


def _started(
    stream: DataFrame,
    carry_out: Deliver,
    checkpoint: str | os.PathLike[str],
    trigger: dict[str, Any] | None,
    name: str | None,
) -> StreamingQuery:
    """Start a query that calls a function with every micro-batch."""
    if trigger is not None and not isinstance(trigger, dict):
        raise OptionError(f"`trigger` must be a dict such as {{'availableNow': True}}, not {shortened(trigger)}")
    writer = stream.writeStream.foreachBatch(carry_out).option("checkpointLocation", address(local_path(checkpoint)))
    if trigger is not None:
        writer = writer.trigger(**trigger)
    if name is not None:
        writer = writer.queryName(name)
    return writer.start()


def _local_folder(path: str | os.PathLike[str], what: str) -> Path:
    try:
        return local_path(path)
    except IndexFolderError:
        raise OptionError(
            f"`{what}` must be a folder that the driver and all executors see as files, not {shortened(path)}. Hint: `deliver` "
            "writes matches to any place, and a checkpoint may be on a local disk or on NFS"
        ) from None


class _Places(NamedTuple):
    """The folders of a stream."""

    checkpoint: Path
    output: Path | None
    wrong: Path | None


def _places(
    checkpoint: str | os.PathLike[str], output: str | os.PathLike[str] | None, wrong: str | os.PathLike[str] | None
) -> _Places:
    """The folders of a stream.

    Raises
    ------
    OptionError
        Not all of them are local, or one is within another: readers of the outer one would read both.
    """
    places = _Places(
        _local_folder(checkpoint, "checkpoint"),
        None if output is None else _local_folder(output, "output"),
        None if wrong is None else _local_folder(wrong, "wrong"),
    )
    there = {name: place for name, place in places._asdict().items() if place is not None}
    for (name, place), (other, around) in permutations(there.items(), 2):
        if place.is_relative_to(around):
            raise OptionError(f"`{name}`, {place}, is within `{other}`, {around}. Hint: use folders side by side")
    return places


def _check_batch_column(option: str, events: DataFrame, written: list[str]) -> None:
    """Raise an OptionError if a written column has the name of the column of batch numbers."""
    clash = clashing(events, [_BATCH, *written])
    if clash is not None and _BATCH in clash:
        raise OptionError(
            f"in `{option}` the column {_BATCH!r} is the number of a batch. Hint: rename {clash[1]!r} of the events"
        )


_BATCH = "batch"
_RECORDS, _QUERY = "tamis-batches", "tamis-query"


def batch_records(checkpoint: str | os.PathLike[str]) -> list[BatchRecord]:
    """The versions that the micro-batches of a query used, in order. Batches that began but did not finish are included."""
    files = sorted((local_path(checkpoint) / _RECORDS).glob("*.json"))
    return [BatchRecord(**json.loads(file.read_text())) for file in files]


def _query_id(checkpoint: Path) -> str:
    """The unique id of a checkpoint's query: a number of a batch has a meaning only together with it."""
    path = checkpoint / _QUERY
    if not path.exists():
        checkpoint.mkdir(parents=True, exist_ok=True)
        with replacing(str(path)) as stream:
            stream.write(new_name().encode())
    return path.read_text()


@dataclass(frozen=True)
class BatchMatcher:
    """Matches micro-batches. Spark sends it to the process that calls it, which is another one in Spark Connect."""

    path: str
    records: str
    options: MatchOptions
    deliver: Deliver
    wrong: ParquetFolders | None = None

    def __call__(self, events: DataFrame, batch: int) -> None:
        if isinstance(self.deliver, _ONCE) and self.deliver.has(batch):
            return  # It was delivered, but Spark was stopped before it noted that.
        folder = IndexFolder(self.path)
        record = self._recorded(folder, batch)
        manifest = folder.manifest(record.version)
        # Write wrong events before the matches, so that every delivered batch has them.
        if self.wrong is not None and not self.wrong.has(batch):
            self.wrong(wrong_among(events, folder, manifest, self.options), batch)
        self.deliver(matched(events, folder, manifest, self.options, record.moment), batch)

    def _recorded(self, folder: IndexFolder, batch: int) -> BatchRecord:
        """The version and time of this batch. A batch that began before keeps those of its first start.

        Raises
        ------
        IndexFolderError
            If that version does not exist any more, and it is not known what was delivered.
        """
        path = Path(self.records, f"{batch:012}.json")
        versions = folder.versions() or [folder.manifest().version]  # manifest() raises if there is none.
        if path.exists():
            begun = BatchRecord(**json.loads(path.read_text()))
            if begun.version in versions:
                return begun
            listed = self.wrong is not None and self.wrong.has(batch)
            if listed or not isinstance(self.deliver, _ONCE):
                also = f" and {self.wrong.target(batch)}" if self.wrong is not None and listed else ""
                raise IndexFolderError(
                    f"batch {batch} began with version {begun.version} of {folder.path}, which was collected meanwhile. "
                    f"Hint: delete {path}{also} to match the batch with the current version; its matches may differ from "
                    "those of the first try. Set `retain` of collect_garbage longer than the stream may be stopped"
                )
        # Nothing of this batch is in the output, so any version will do.
        record = BatchRecord(batch, versions[-1], moment_now())
        with replacing(str(path)) as stream:
            stream.write(json.dumps(record._asdict()).encode())
        return record


_TRIES = 5


@dataclass(frozen=True)
class BatchUpdater:
    """Applies micro-batches of changes."""

    path: str
    source: str
    order: str | None

    def __call__(self, changes: DataFrame, batch: int) -> None:
        if changes.isEmpty():
            return
        for tries_left in reversed(range(_TRIES)):
            try:
                update(self.path, changes, order=self.order, source=self.source, batch=batch)
                return
            except ConflictError:  # Another process has published meanwhile: try again with its version.
                if not tries_left:
                    raise


@dataclass(frozen=True)
class ParquetFolders:
    """Writes each batch to its own folder, which exists completely or not at all.

    Raises
    ------
    OptionError
        If the folder has the batches of another query.
    """

    option: str
    """The option that names this folder, for messages."""
    path: str
    query: str

    def has(self, batch: int) -> bool:
        """Whether a batch was delivered."""
        target = self.target(batch)
        if target.exists():
            self._check_own(target)
        return target.exists()

    def target(self, batch: int) -> Path:
        return Path(self.path, f"{_BATCH}={batch}")

    def __call__(self, matches: DataFrame, batch: int) -> None:
        folder = Path(self.path)
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(f".{_BATCH}={batch}.*"):
            shutil.rmtree(part, ignore_errors=True)
        part = folder / f".{_BATCH}={batch}.{new_name()}"
        matches.write.parquet(address(part))
        (part / _QUERY_MARK).write_text(self.query)
        os.rename(part, self.target(batch))

    def _check_own(self, target: Path) -> None:
        mark = target / _QUERY_MARK
        if not mark.exists() or mark.read_text() != self.query:
            raise OptionError(
                f"{target} exists and was written by a query with another checkpoint: these events would be lost. "
                f"Hint: use another folder for `{self.option}`, or the checkpoint of the other query"
            )


# Spark does not read files whose names begin with an underscore.
_QUERY_MARK = "_tamis_query"

_ONCE = (ParquetFolders, ToBroker)
"""What delivers each batch once: completely or not at all."""
