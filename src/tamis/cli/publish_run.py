"""One pass over files of events: publish, print receipts, keep count."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.cli.diagnostics import Diagnostics, counted
from tamis.cli.event_files import Batch, EventFiles
from tamis.cli.json_output import write_objects
from tamis.errors import EventError, FileError, QueueFullError, TableError

if TYPE_CHECKING:
    from datetime import datetime

    from tamis.broker.answer_json import JsonObject
    from tamis.broker.answers import Receipt
    from tamis.broker.broker import Broker
    from tamis.language.schema import Schema


class PublishOptions(NamedTuple):
    """What is the same for all events. `has_keys`: the id of an event is its key. The others as of `Broker.publish`."""

    valid_until: datetime | None = None
    has_keys: bool = False
    k: int | None = None
    schema: Schema | None = None
    with_matches: bool = False


class PublishRun:
    """Publishes the events of files. A receipt is printed when its event is safe on disk."""

    def __init__(self, broker: Broker, files: EventFiles, diagnostics: Diagnostics, options: PublishOptions) -> None:
        self._broker = broker
        self._files = files
        self._diagnostics = diagnostics
        self._options = options
        self._events = 0
        self._matches = 0
        self._started = time.perf_counter()

    def publish_all(self, batch_size: int) -> None:
        """Publish all events.

        Raises
        ------
        FileError
            For the first bad line, if the diagnostics stop at it, and for an event that a full queue refuses. All events before
            it are published.
        """
        for batch in self._files.batches(batch_size, until_error=self._diagnostics.stops):
            errors = list(batch.errors)
            for error in self._publish(batch):
                errors.append(error)
                if self._diagnostics.stops:
                    break
            for error in sorted(errors, key=lambda error: error.line or 0):
                self._diagnostics.bad_line(error)
            self._diagnostics.progress(self._counts(), self._files.share())
        self._diagnostics.clear()

    def summary(self) -> str:
        """A line about the work so far."""
        seconds = time.perf_counter() - self._started
        done = f"{self._counts()} in {seconds:.1f} s"
        if self._events:
            done += f", {self._events / seconds:,.0f} events/s"
        if self._diagnostics.bad_lines:
            done += f"; {counted(self._diagnostics.bad_lines, 'bad line')} skipped"
        return done

    def _counts(self) -> str:
        return f"{counted(self._events, 'event')}, {counted(self._matches, 'match', 'matches')}"

    def _publish(self, batch: Batch) -> Iterator[FileError]:
        """Publish a batch; yields the errors of wrong events. A refused batch is halved until the wrong event is alone."""
        if not len(batch):
            return
        try:
            receipts = self._receipts(batch)
        except (EventError, QueueFullError) as error:
            if len(batch) > 1:
                half = len(batch) // 2
                yield from self._publish(batch.part(0, half))
                yield from self._publish(batch.part(half, len(batch)))
                return
            wrong = FileError(_without_number(error), path=batch.file, line=batch.lines[0])
            if isinstance(error, QueueFullError):  # The event is right, so skipping it would lose it.
                raise wrong from None
            yield wrong
        except TableError as error:
            raise FileError(str(error), path=batch.file) from None
        else:
            self._events += len(batch)
            self._matches += sum(len(receipt.matches) for receipt in receipts)
            write_objects(self._told(batch, receipts))

    def _receipts(self, batch: Batch) -> Sequence[Receipt]:
        options = self._options
        if options.schema is not None:
            _check_kinds(batch.events, options.schema)
        keys = list(map(str, batch.ids.to_pylist())) if options.has_keys else None
        return self._broker.publish_many(batch.events, valid_until=options.valid_until, keys=keys, k=options.k)

    def _told(self, batch: Batch, receipts: Sequence[Receipt]) -> Iterator[JsonObject]:
        from tamis.broker.answer_json import receipt_json

        file = {"file": batch.file} if self._files.several else {}
        for line, receipt in zip(batch.lines, receipts, strict=True):
            yield {**file, "line": line, **receipt_json(receipt, with_matches=self._options.with_matches)}


def _check_kinds(events: Any, schema: Schema) -> None:
    """Compare events with a declared schema.

    Raises
    ------
    EventError
    """
    from tamis.broker.table_rows import row_events
    from tamis.language.event import flatten

    for row, event in enumerate(events if isinstance(events, list) else row_events(events)):
        schema.check_event(flatten(event), row)


def _without_number(error: Exception) -> str:
    """The message without the number of the event in its batch. The caller knows the line."""
    return str(error).removeprefix("event 0, ").removeprefix("event 0: ")
