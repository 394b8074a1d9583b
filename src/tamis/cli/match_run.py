"""One pass over files of events: match, write, keep count."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tamis.cli.diagnostics import Diagnostics, counted
from tamis.cli.event_files import Batch, EventFiles
from tamis.cli.match_files import MatchWriter
from tamis.errors import EventError, FileError, TableError, WrongEventsError

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.matcher.matcher import Matcher


class Pace:
    """The number of events matched at once: few enough to show progress and to keep their matches in memory."""

    def __init__(self) -> None:
        self.events = 1024

    def learn(self, seconds: float, matches: int) -> None:
        """Adapt the number to the time and the matches of the last events."""
        if seconds > 0.6 or matches > 2_000_000:
            self.events = max(1, self.events // 2)
        elif seconds < 0.2 and matches < 500_000:
            self.events *= 2


class MatchRun:
    """Matches the events of files and writes the matches.

    Parameters
    ----------
    count : bool
        Whether to write how many matches each event has, instead of the matches.
    k : int, optional
        Matches of each event to write, the largest weights first; by default all, in no order.
    device : str
        What matches: ``"cpu"``, or a card.
    """

    def __init__(
        self,
        matcher: Matcher,
        files: EventFiles,
        diagnostics: Diagnostics,
        *,
        count: bool = False,
        k: int | None = None,
        device: str = "cpu",
    ) -> None:
        self._device = device
        self._matcher = matcher
        self._files = files
        self._diagnostics = diagnostics
        self._count = count
        self._k = k
        self._pace = Pace()
        self._events = 0
        self._matches = 0
        self._started: float | None = None

    def match_all(self, writer: MatchWriter, batch_size: int) -> None:
        """Match and write all events.

        Raises
        ------
        FileError
            For the first bad line, if the diagnostics stop at it; all events before it are matched and written.
        """
        self._diagnostics.progress("matching", 0)
        self._started = time.perf_counter()
        read = 0.0
        for batch in self._files.batches(batch_size, until_error=self._diagnostics.stops):
            read, read_before = self._files.share() or 0.0, read
            errors = [*batch.errors, *self._write(writer, batch, read_before, read)]
            for error in sorted(errors, key=lambda error: error.line or 0):
                self._diagnostics.bad_line(error)
        writer.finish(self._schema())

    def summary(self) -> str:
        """A line about the work so far."""
        seconds = 0.0 if self._started is None else time.perf_counter() - self._started
        done = (
            f"{counted(self._events, 'event')} against {counted(len(self._matcher), 'subscription')}: "
            f"{counted(self._matches, 'match', 'matches')} in {seconds:.1f} s"
        )
        if self._events:
            done += f", {self._events / seconds:,.0f} events/s"
        if self._diagnostics.bad_lines:
            done += f"; {counted(self._diagnostics.bad_lines, 'bad line')} skipped"
        return done

    def stopped(self) -> str:
        """A line about the work done before an error stopped it."""
        return "stopped before the first event" if self._started is None else f"stopped after {self.summary()}"

    def hint(self) -> str | None:
        """A hint about a likely mistake, or None."""
        mismatched = self._matcher.stats()["mismatched"]
        if not mismatched:
            return None
        return (
            f"{counted(mismatched, 'value')} of events did not have the kind that subscriptions compare with, so no "
            "predicate could be TRUE for them. Hint: --schema checks kinds and reads timestamps"
        )

    def _schema(self) -> pa.Schema:
        import pyarrow as pa

        second = self._matcher.match_batch([]).schema.field("subscription")
        if self._count:
            second = pa.field("matches", pa.int64())
        file = [pa.field("file", pa.string())] if self._files.several else []
        return pa.schema([pa.field("event", self._files.id_type), *file, pa.field("line", pa.int64()), second])

    def _write(self, writer: MatchWriter, batch: Batch, read_before: float, read: float) -> list[FileError]:
        """Match a batch and write it; returns the errors of wrong events, only the first if bad lines stop the work.

        `read_before` and `read` are the shares of the file that were read before the batch and with it.
        """
        errors = []
        start = 0
        while start < len(batch):
            end = min(start + self._pace.events, len(batch))
            began, before = time.perf_counter(), self._matches
            for result in self._matched(batch.part(start, end)):
                if not isinstance(result, FileError):
                    writer.write(result)
                    continue
                errors.append(result)
                if self._diagnostics.stops:
                    return errors
            self._pace.learn(time.perf_counter() - began, self._matches - before)
            done = f"{counted(self._events, 'event')}, {counted(self._matches, 'match', 'matches')}"
            share = read_before + (read - read_before) * end / len(batch)
            self._diagnostics.progress(done, share if read else None)
            start = end
        return errors

    def _matched(self, batch: Batch) -> Iterator[pa.Table | FileError]:
        """The matches of a batch. A refused batch is halved until the wrong event is alone."""
        try:
            matches = self._matches_of(batch)
        except WrongEventsError as error:
            yield from self._around(batch, error.problems)
        except EventError as error:
            if len(batch) > 1:
                half = len(batch) // 2
                yield from self._matched(batch.part(0, half))
                yield from self._matched(batch.part(half, len(batch)))
                return
            message = str(error).removeprefix("event 0, ").removeprefix("event 0: ")
            yield FileError(message, path=batch.file, line=batch.lines[0])
        except TableError as error:
            raise FileError(str(error), path=batch.file) from None
        else:
            yield matches

    def _around(self, batch: Batch, problems: Mapping[int, EventError]) -> Iterator[pa.Table | FileError]:
        """The matches of right lines of JSON, and the errors of wrong ones; if these stop the work, up to the first."""
        rows = list(problems)
        if self._diagnostics.stops:
            rows = rows[:1]
            yield from self._matched(batch.part(0, rows[0]))
        else:
            yield from self._matched(batch.without(rows))
        for row in rows:
            yield FileError(batch.problem(row, problems[row]), path=batch.file, line=batch.lines[row])

    def _matches_of(self, batch: Batch) -> pa.Table:
        """The matches of a batch with the id and the place of each event."""
        import pyarrow as pa

        places = {"event": batch.ids}
        if self._files.several:
            places["file"] = pa.array([batch.file] * len(batch), pa.string())
        events = pa.table({**places, "line": pa.array(batch.lines, pa.int64())})
        if self._count:
            counts = self._matcher.count_batch(batch.events, device=self._device)
            self._matches += int(counts.sum())
            found = events.append_column("matches", pa.array(counts))
        else:
            pairs = self._matcher.match_batch(batch.events, k=self._k, device=self._device)
            self._matches += pairs.num_rows
            found = events.take(pairs["event"]).append_column("subscription", pairs["subscription"])
        self._events += len(batch)
        return found
