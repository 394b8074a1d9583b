"""Matching a stream: every micro-batch is matched with one version of the index, and delivered once.

before a batch      its version and its time are written beside the checkpoint, then it is matched
a batch again       after a failure Spark repeats a batch with the same events: same version, same time
delivery            see `stream_output`: a batch that is there is complete, and is not written again
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import ConflictError, FrameError, IndexFolderError, OptionError, shortened
from tamis.spark.addresses import address, protocol_of
from tamis.spark.broker_sink import ToBroker, check_ids, keeping_events
from tamis.spark.event_checks import wrong_among, wrong_result
from tamis.spark.frames import clashing
from tamis.spark.given import checked_frame
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import new_name
from tamis.spark.matching import MatchOptions, matched, moment_now, needed_attributes
from tamis.spark.segment_files import asked_attributes
from tamis.spark.store import Store, open_store
from tamis.spark.stream_output import BATCH, ParquetFolders, StoredBatches, batches_at
from tamis.spark.task_card import gpu_share
from tamis.spark.updating import update
from tamis.spark.work_counters import work_counters

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
    counters: dict[str, float] | None = None
    """What the tasks did, see `work_counters`. None if the batch did not finish."""


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
    json: str | None = None,
    device: str | None = None,
) -> StreamingQuery:
    """Match a stream of events. Every micro-batch uses the version of the index that is current when the batch begins.

    Parameters
    ----------
    events : DataFrame
        A streaming DataFrame. `event_id`, `attributes`, `keep`, `carry`, `k`, `time`, `memory`, `json` and `device` are as in
        `match`. With `to_broker`, all columns of events are kept by default, and `json` cannot be given.
    index : path
        The folder or the address that `build` and `update` publish to. The stream uses new versions without a restart.
    checkpoint : path
        A folder or an address for Spark's checkpoint. It also has a record of each batch, see `batch_records`.
    output : path
        A folder or an address for the matches as Parquet. `read_output` reads them, with the number of the micro-batch as
        `batch`. Every pair is in it once, even if processes are killed and restarted. A folder can be read as it is.
    deliver : callable
        A function to call instead, with the matches of a batch (a DataFrame) and the number of the batch. After a failure,
        Spark may call the function again with the same batch. The function must then skip or replace its earlier output.
        `to_broker` gives such a function: it puts matches into the queues of a broker, each batch once.
    wrong : path, optional
        A folder or an address for wrong events, with the columns of `wrong_events`, written like `output`. The stream goes on
        without these events, and reads each batch twice to find them. By default, the first wrong event stops the stream with an
        error.
    trigger : dict, optional
        What `DataStreamWriter.trigger` takes, such as ``{"processingTime": "1 second"}`` or ``{"availableNow": True}``.
    name : str, optional
        Name of the query.

    Raises
    ------
    FrameError, OptionError, IndexFolderError
    """
    _check_target(output, deliver, json)
    if not checked_frame(events, "events").isStreaming:
        raise FrameError("events are not a stream. Hint: tamis.spark.match takes other DataFrames")
    folder = IndexFolder.of(index, events.sparkSession)
    kept, skips = () if keep is None else keep, wrong is not None
    options = MatchOptions.of(event_id, attributes, kept, carry, k, time, memory, device, skip_wrong=skips, json=json)
    gpu_share(events.sparkSession, options.device)
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
    beside = open_store(places.checkpoint)
    query = _query_id(beside)
    deliver = deliver.of_stream(events, options, query) if isinstance(deliver, ToBroker) else deliver
    sink = deliver if places.output is None else batches_at("output", places.output, query)
    assert sink is not None
    wrong_sink = None if places.wrong is None else batches_at("wrong", places.wrong, query)
    matcher = BatchMatcher(folder, beside, options, sink, wrong_sink)
    return _started(events, matcher, checkpoint, trigger, name)


def _check_target(output: object, deliver: object, json: str | None) -> None:
    """Check where matches go.

    Raises
    ------
    OptionError
    """
    if (output is None) == (deliver is None):
        raise OptionError("give either `output`, a folder, or `deliver`, a function, for the matches")
    if deliver is not None and not callable(deliver):
        raise OptionError(f"`deliver` must be a function of a DataFrame and a number, not {shortened(deliver)}")
    if isinstance(deliver, ToBroker) and json is not None:
        raise OptionError("`to_broker` needs attributes in columns. Hint: from_json makes columns of JSON")


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
    folder = IndexFolder.of(index, changes.sparkSession)
    folder.manifest()
    updater = BatchUpdater(folder.address, _query_id(open_store(_place(checkpoint, "checkpoint"))), order)
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
    place = _place(checkpoint, "checkpoint")
    location = address(place) if protocol_of(place) == "file" else place
    writer = stream.writeStream.foreachBatch(carry_out).option("checkpointLocation", location)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    if name is not None:
        writer = writer.queryName(name)
    return writer.start()


def _place(path: str | os.PathLike[str], what: str) -> str:
    """A path or an address of a stream, in one form."""
    try:
        return open_store(path).address
    except IndexFolderError as error:
        raise OptionError(f"`{what}`: {error}") from None


class _Places(NamedTuple):
    """The folders and addresses of a stream."""

    checkpoint: str
    output: str | None
    wrong: str | None


def _places(
    checkpoint: str | os.PathLike[str], output: str | os.PathLike[str] | None, wrong: str | os.PathLike[str] | None
) -> _Places:
    """The folders and addresses of a stream.

    Raises
    ------
    OptionError
        Its driver is missing, or one is within another: readers of the outer one would read both.
    """
    places = _Places(
        _place(checkpoint, "checkpoint"),
        None if output is None else _place(output, "output"),
        None if wrong is None else _place(wrong, "wrong"),
    )
    there = {name: place for name, place in places._asdict().items() if place is not None}
    for (name, place), (other, around) in permutations(there.items(), 2):
        if f"{place}/".startswith(f"{around}/"):
            raise OptionError(f"`{name}`, {place}, is within `{other}`, {around}. Hint: use folders side by side")
    return places


def _check_batch_column(option: str, events: DataFrame, written: list[str]) -> None:
    """Raise an OptionError if a written column has the name of the column of batch numbers."""
    clash = clashing(events, [BATCH, *written])
    if clash is not None and BATCH in clash:
        raise OptionError(
            f"in `{option}` the column {BATCH!r} is the number of a batch. Hint: rename {clash[1]!r} of the events"
        )


_RECORDS, _QUERY = "tamis-batches", "tamis-query"


def batch_records(checkpoint: str | os.PathLike[str]) -> list[BatchRecord]:
    """The versions that the micro-batches of a query used, in order, and what their tasks did. Batches that began but did not
    finish are included."""
    store = open_store(checkpoint)
    names = sorted(each.name for each in store.names(_RECORDS) if each.name.endswith(".json"))
    return [BatchRecord(**json.loads(store.read(name))) for name in names]


def batch_record(checkpoint: Store, batch: int) -> BatchRecord | None:
    """The record of a batch, if the batch has begun."""
    try:
        return BatchRecord(**json.loads(checkpoint.read(_record_name(batch))))
    except FileNotFoundError:
        return None


def _query_id(checkpoint: Store) -> str:
    """The unique id of a checkpoint's query: a number of a batch has a meaning only together with it."""
    try:
        return checkpoint.read(_QUERY).decode()
    except FileNotFoundError:
        checkpoint.prepare([_RECORDS])
    with suppress(FileExistsError):  # Another process begins the same query now.
        checkpoint.create(_QUERY, new_name().encode())
    return checkpoint.read(_QUERY).decode()


def _record_name(batch: int) -> str:
    """The record of a batch, beside the checkpoint."""
    return f"{_RECORDS}/{batch:012}.json"


@dataclass(frozen=True)
class BatchMatcher:
    """Matches micro-batches. Spark sends it to the process that calls it, which is another one in Spark Connect."""

    folder: IndexFolder
    checkpoint: Store
    options: MatchOptions
    deliver: Deliver
    wrong: ParquetFolders | StoredBatches | None = None

    def __call__(self, events: DataFrame, batch: int) -> None:
        if isinstance(self.deliver, _ONCE) and self.deliver.has(batch):
            return  # It was delivered, but Spark was stopped before it noted that.
        folder = self.folder
        record = self._recorded(folder, batch)
        manifest = folder.manifest(record.version)
        # Write wrong events before the matches, so that every delivered batch has them.
        if self.wrong is not None and not self.wrong.has(batch):
            self.wrong(wrong_among(events, folder, manifest, self.options), batch)
        with work_counters(events.sparkSession) as counters:
            self.deliver(matched(events, folder, manifest, self.options, record.moment, counters), batch)
            self._note(record._replace(counters=counters.sums()))

    def _recorded(self, folder: IndexFolder, batch: int) -> BatchRecord:
        """The version and time of this batch. A batch that began before keeps those of its first start.

        Raises
        ------
        IndexFolderError
            If that version does not exist any more, and it is not known what was delivered.
        """
        name = _record_name(batch)
        begun = batch_record(self.checkpoint, batch)
        if begun is not None:
            if folder.has(begun.version):
                return begun
            listed = self.wrong is not None and self.wrong.has(batch)
            if listed or not isinstance(self.deliver, _ONCE):
                also = f" and {self.wrong.target(batch)}" if self.wrong is not None and listed else ""
                raise IndexFolderError(
                    f"batch {batch} began with version {begun.version} of {folder.address}, which was collected meanwhile. "
                    f"Hint: delete {self.checkpoint.address}/{name}{also} to match the batch with the current version; its "
                    "matches may differ from those of the first try. Set `retain` of collect_garbage longer than the stream may "
                    "be stopped"
                )
        # Nothing of this batch is in the output, so any version will do.
        record = BatchRecord(batch, folder.manifest().version, moment_now())
        self._note(record)
        return record

    def _note(self, record: BatchRecord) -> None:
        self.checkpoint.replace(_record_name(record.batch), json.dumps(record._asdict()).encode())


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


_ONCE = (ParquetFolders, StoredBatches, ToBroker)
"""What delivers each batch once: completely or not at all."""
