"""Delivering what Spark found to a broker: every micro-batch is told once.

executors    pairs of an event and a subscription    ->  each event as JSON text, with the numbers of its subscriptions
driver       the texts of a batch                    ->  one transaction: events, matches, the number of the batch
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.broker import Broker
from tamis.broker.delivering import StoredText
from tamis.broker.event_text import event_text
from tamis.broker.table_rows import ColumnReader, spread
from tamis.errors import EventError, FrameError, LockedError, OptionError, shortened
from tamis.kernels.numbers import I64s
from tamis.spark.event_values import run_starts
from tamis.spark.frames import can_hand_over, event_attributes, holds_all, map_in_arrow, quoted
from tamis.spark.match_task import SUBSCRIPTION
from tamis.spark.matching import MatchOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HINT = "Hint: `keep` of match_stream names the columns of events to store"
_ELSEWHERE = (
    "with Spark Connect, another process delivers the matches. Hint: give the folder of the broker to `to_broker`, and close "
    "the broker here"
)


def to_broker(broker: str | os.PathLike[str] | Broker, *, source: str | None = None) -> ToBroker:
    """A function for `deliver` of `match_stream`: it puts the matches of a micro-batch into the queues of a broker, once.

    The index must have been built from `broker_subscriptions` or `broker_changes` of the same broker. An event is stored with all
    its columns; `keep` of `match_stream` chooses fewer. Null is a missing attribute. Events that nobody wants are not stored.

    Parameters
    ----------
    broker : path or Broker
        The folder of a broker, which stays open until this process ends. If the driver has opened the broker, give the
        broker itself. With Spark Connect, a server calls this function, so it needs the folder.
    source : str, optional
        The name of the stream. By default, `match_stream` uses the unique id in its checkpoint. A batch whose number is not
        above that of the last batch with this name is skipped. So use a new name with a new checkpoint.

    Raises
    ------
    OptionError
    """
    if not isinstance(broker, str | os.PathLike | Broker):
        raise OptionError(f"a folder or a broker is needed, not {shortened(broker)}")
    if source is not None and (not isinstance(source, str) or not source):
        raise OptionError(f"`source` must be the name of a stream, not {shortened(source)}")
    return ToBroker(broker if isinstance(broker, Broker) else str(Path(os.fsdecode(broker)).absolute()), source)


@dataclass(frozen=True)
class ToBroker:
    """Delivers micro-batches to a broker."""

    broker: str | Broker
    source: str | None = None
    columns: tuple[str, ...] | None = None
    """The columns of matches that are the event; None: all but that of subscriptions."""
    holder: str | None = None
    """The one column that holds all attributes, if there is one."""

    def __getstate__(self) -> dict[str, Any]:
        if isinstance(self.broker, Broker):
            raise OptionError(_ELSEWHERE)
        return vars(self)

    def of_stream(self, events: DataFrame, options: MatchOptions, query: str) -> ToBroker:
        """This function for one stream, with the unique id of its query.

        Raises
        ------
        OptionError
            Another process would have to use this process's broker.
        """
        if isinstance(self.broker, Broker) and type(events).__module__.startswith("pyspark.sql.connect."):
            raise OptionError(_ELSEWHERE)
        attributes = _attributes(events, options)
        is_held = len(attributes) == 1 and holds_all(events.schema[attributes[0]].dataType)
        return replace(
            self,
            source=query if self.source is None else self.source,
            columns=(options.event_id, *options.keep),
            holder=attributes[0] if is_held and attributes[0] in options.keep else None,
        )

    def has(self, batch: int) -> bool:
        """Whether a batch was delivered."""
        last = self._opened().last_batch(self._source)
        return last is not None and batch <= last

    def __call__(self, matches: DataFrame, batch: int) -> None:
        check_ids(matches.schema[SUBSCRIPTION].dataType.simpleString())
        if self.has(batch):
            return
        columns = self.columns or tuple(name for name in matches.columns if name != SUBSCRIPTION)
        frame = matches.select(SUBSCRIPTION, *map(quoted, columns))
        found = map_in_arrow(frame, EventTexts(columns, self.holder), "event string, subscriptions array<bigint>")
        self._opened().deliver(together(found.toArrow()), source=self._source, batch=batch)

    @property
    def _source(self) -> str:
        if self.source is None:
            raise OptionError("a stream needs a name. Hint: to_broker(..., source='orders')")
        return self.source

    def _opened(self) -> Broker:
        return self.broker if isinstance(self.broker, Broker) else opened(self.broker)


def check_ids(id_type: str) -> None:
    """Raise a FrameError if the ids of an index cannot be numbers of a broker's subscriptions."""
    if id_type != "bigint":
        raise FrameError(
            f"the ids of the index are {id_type}, but a broker numbers its subscriptions. Hint: build the index from "
            "tamis.spark.broker_subscriptions"
        )


def keeping_events(events: DataFrame, options: MatchOptions) -> MatchOptions:
    """Options with which matches have all columns of their events. The same columns are attributes as before.

    Raises
    ------
    FrameError
    """
    for name in events.columns:
        if not can_hand_over(events.schema, name):
            kind = events.schema[name].dataType.simpleString()
            raise FrameError(f"Spark cannot hand over the column {name!r}, {kind}, as Arrow. {_HINT}")
    keep = tuple(name for name in events.columns if name != options.event_id)
    return replace(options, attributes=_attributes(events, options), keep=keep)


def _attributes(events: DataFrame, options: MatchOptions) -> tuple[str, ...]:
    aside = [*options.keep, *([] if options.time is None else [options.time])]
    return tuple(event_attributes(events, options.event_id, options.attributes, aside))


@dataclass(frozen=True)
class EventTexts:
    """Makes texts of events. The first column has the subscriptions. Pairs of one event mostly follow each other."""

    columns: tuple[str, ...]
    holder: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            starts = run_starts([batch[name] for name in self.columns])
            firsts = batch.take(pa.array(starts))
            columns = [ColumnReader(firsts[name].type, name).values(firsts[name]) for name in self.columns]
            texts = pa.array([self._text(row) for row in zip(*columns, strict=True)], pa.string())
            ends = pa.array(np.append(starts, len(batch)), pa.int32())
            numbers = pa.ListArray.from_arrays(ends, batch[SUBSCRIPTION])
            yield pa.record_batch([texts, numbers], names=["event", "subscriptions"])

    def _text(self, row: tuple[Any, ...]) -> str:
        event = {name: value for name, value in zip(self.columns, row, strict=True) if value is not None}
        if self.holder is not None:
            event.update(spread(event.pop(self.holder, None)))
        try:
            return event_text(event)
        except EventError as error:
            raise EventError(f"{error.reason}. {_HINT}", attribute=error.attribute) from None


def together(found: pa.Table) -> list[tuple[StoredText, I64s]]:
    """Events with all their subscriptions. Equal events are told apart by subscriptions that come several times."""
    parts: dict[str, list[I64s]] = {}
    for batch in found.to_batches():
        ends = batch["subscriptions"].offsets.to_numpy()
        numbers = batch["subscriptions"].values.to_numpy()
        for place, text in enumerate(batch["event"].to_pylist()):
            parts.setdefault(text, []).append(numbers[ends[place] : ends[place + 1]])
    matched = []
    for text, lists in parts.items():
        numbers, counts = np.unique(np.concatenate(lists), return_counts=True)
        matched += [(StoredText(text), numbers[counts > copy]) for copy in range(counts.max())]
    return matched


_OPEN: dict[Path, Broker] = {}
_DOOR = threading.Lock()


def opened(path: str) -> Broker:
    """The broker in a folder, which stays open until this process ends.

    Raises
    ------
    BrokerError
    LockedError
        It is open already, in this process or in another one.
    """
    key = Path(path).resolve()
    with _DOOR:
        if key not in _OPEN:
            try:
                _OPEN[key] = Broker(key)
            except LockedError as error:
                who = str(error).partition(". Hint")[0]
                raise LockedError(
                    f"{who}, so no matches can be delivered. Hint: if that is this process, {os.getpid()}, give its broker to "
                    "`to_broker` instead of the folder. Otherwise close the broker there"
                ) from None
            atexit.register(_OPEN[key].close)
        return _OPEN[key]
