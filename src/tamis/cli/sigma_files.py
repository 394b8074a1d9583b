"""One pass of Sigma rules over files of events, and the lines that it writes."""

from __future__ import annotations

import json
import os
import sys
import time as clock
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from tamis.cli.byte_stream import PACKED_ENDS
from tamis.cli.diagnostics import Diagnostics, counted
from tamis.cli.event_files import Batch, EventFiles, expanded
from tamis.cli.match_files import STDOUT
from tamis.cli.match_run import Pace
from tamis.cli.whole_file import whole_file
from tamis.errors import EventError, FileError, OptionError

if TYPE_CHECKING:
    from tamis.sigma import Finding, Rule, RuleSet

_TEXTS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
_ENDS = (*_TEXTS, *(text + packed for text in _TEXTS for packed in PACKED_ENDS), ".parquet", ".pq")
"""Endings of the files that are read from a folder of events."""

BATCH = 10_000
"""Events that are read at a time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Place(NamedTuple):
    """Where an event stands: its id, its file and its line."""

    event: str | int
    file: str
    line: int


def event_files(given: Sequence[str]) -> list[str]:
    """All files of paths, patterns and folders.

    Raises
    ------
    FileError
        If there is no such file, or none in a folder.
    """
    found: list[str] = []
    for path in given or ["-"]:
        found += _files_below(path) if os.path.isdir(path) else expanded([path])
    return expanded(found)


def _files_below(folder: str) -> list[str]:
    found = sorted(
        os.path.join(inner, name)
        for inner, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(_ENDS)
    )
    if not found:
        raise FileError("the folder has no files of events (.jsonl, .json, .csv, .parquet)", path=folder)
    return found


@contextmanager
def open_lines(path: str) -> Iterator[BinaryIO]:
    """Stdout, or a file that appears when the block ends without an error."""
    if path != STDOUT:
        with whole_file(path) as stream:
            yield stream
        return
    if sys.stdout is None:
        raise FileError("is closed", path="stdout")
    yield sys.stdout.buffer


class SigmaRun:
    """Matches the events of files and writes the matches as JSON lines."""

    def __init__(self, rules: RuleSet, files: EventFiles, diagnostics: Diagnostics, *, time: str | None) -> None:
        from tamis.sigma import Detector

        try:
            self._detector = Detector(rules, time=time)
        except OptionError as error:
            raise OptionError(f"{error}. Hint: --time FIELD") from None
        self._files = files
        self._diagnostics = diagnostics
        self._rules = len(rules)
        self._ends = {rule.id: _end_of(rule) for rule in rules.rules}
        self._pace = Pace()
        self._events = 0
        self._matches = 0
        self._untimed = 0
        self._started = clock.perf_counter()

    def match_all(self, stream: BinaryIO) -> None:
        """Match all events, then correlate.

        Raises
        ------
        FileError
            For the first bad line, if the diagnostics stop at it; all events before it are matched and written.
        """
        for batch in self._files.batches(BATCH, until_error=self._diagnostics.stops):
            errors = list(batch.errors)
            start = 0
            while start < len(batch):
                end = min(start + self._pace.events, len(batch))
                began, before = clock.perf_counter(), self._matches
                errors += self._match(stream, batch.part(start, end))
                stream.flush()
                self._pace.learn(clock.perf_counter() - began, self._matches - before)
                self._diagnostics.progress(
                    f"{counted(self._events, 'event')}, {counted(self._matches, 'match', 'matches')}",
                    self._files.share(),
                )
                start = end
            for error in sorted(errors, key=lambda error: error.line or 0):
                self._diagnostics.bad_line(error)
        for finding in self._detector.correlated():
            self._matches += 1
            stream.write(_line(self._place(finding.occurrence.place), _found(finding)))
        stream.flush()

    def summary(self) -> str:
        """A line about the work so far."""
        seconds = clock.perf_counter() - self._started
        done = (
            f"{counted(self._events, 'event')} against {counted(self._rules, 'rule')}: "
            f"{counted(self._matches, 'match', 'matches')} in {seconds:.1f} s"
        )
        if self._diagnostics.bad_lines:
            done += f"; {counted(self._diagnostics.bad_lines, 'bad line')} skipped"
        return done

    def _match(self, stream: BinaryIO, batch: Batch) -> list[FileError]:
        """Match some events and write their matches; returns the errors. A refused batch is halved until the event is alone."""
        events = batch.mappings()
        places = [Place(own, batch.file, line) for own, line in zip(batch.ids.to_pylist(), batch.lines, strict=True)]
        try:
            found = self._detector.match(events, places)
        except EventError as error:
            if len(batch) > 1:
                half = len(batch) // 2
                first = self._match(stream, batch.part(0, half))
                if first and self._diagnostics.stops:
                    return first
                return first + self._match(stream, batch.part(half, len(batch)))
            message = str(error).removeprefix("event 0, ").removeprefix("event 0: ")
            return [FileError(message, path=batch.file, line=batch.lines[0])]
        self._events += len(batch)
        self._matches += len(found)
        stream.write(b"".join(_line(self._place(place), self._ends[rule.id]) for place, rule in found))
        untimed, self._untimed = self._detector.untimed[self._untimed :], len(self._detector.untimed)
        return [FileError(each.reason, path=each.place.file, line=each.place.line) for each in untimed]

    def _place(self, place: Place) -> dict[str, Any]:
        own: dict[str, Any] = {"event": place.event}
        if self._files.several:
            own["file"] = place.file
        return {**own, "line": place.line}


def _end_of(rule: Rule) -> dict[str, Any]:
    return {"rule": rule.id, "title": rule.title, "level": rule.level, "tags": list(rule.tags)}


def _found(finding: Finding) -> dict[str, Any]:
    correlation = finding.correlation
    return {
        "rule": correlation.id,
        "title": correlation.title,
        "level": correlation.level,
        "tags": list(correlation.tags),
        "group": finding.group,
        "number": finding.number,
        "since": _written(finding.since),
        "until": _written(finding.occurrence.moment),
    }


def _written(moment: int) -> str:
    return (_EPOCH + timedelta(microseconds=moment)).isoformat().replace("+00:00", "Z")


def _line(place: dict[str, Any], end: dict[str, Any]) -> bytes:
    return (json.dumps({**place, **end}, default=str) + "\n").encode("ascii")
