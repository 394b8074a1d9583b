"""Matching one workload: the engine and a scan on the same encoded events, and the methods of the matcher."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import tamis
from benchmarks.memory import Reads
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.event_table import encode_table
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.engine.engine import Engine
from tamis.engine.matching.results import Found
from tamis.engine.rows import Rows, concatenated
from tamis.engine.segment import segments_of
from tamis.experiments.timing import best_of, best_of_each, seconds_of
from tamis.kernels.ranges import span_indices
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.matcher import matcher_over
from tamis.papers.scan import Scan
from tamis.workload import AlertsConfig, AnyConfig, Workload, generate

MOST_SCANNED = 2_000_000
"""The most subscriptions for which a scan is also measured. A scan doubles the memory."""

_MOST_MATCHES, _MOST_EVENTS = 1_000_000, 100
"""Limits of a batch for the measurements with threads: about how many matches it may have, and how many times the events of
other batches. A short batch would spend its few milliseconds on starting and ending threads."""


class Effort(NamedTuple):
    """How much to measure."""

    events: int = 200
    scan_events: int = 10
    passes: int = 7
    budget: float = 0.6
    """The most seconds for the passes of one figure."""
    update_seconds: float = 8.0
    update_rounds: int = 4
    """Rounds to measure changes. The page shows the round with the most changes."""
    rule_events: int = 1_000
    builds: int = 3
    """The most times that the segments are built. See `_BUILD_BUDGET`."""


QUICK = Effort(
    events=10, scan_events=3, passes=1, budget=0.0, update_seconds=0.1, update_rounds=1, rule_events=10, builds=1
)
_BUILD_BUDGET = 15.0
"""Seconds after which the segments are not built again."""


class Loaded:
    """A matcher filled with the subscriptions of a workload."""

    def __init__(self, config: AnyConfig) -> None:
        self.workload: Workload = generate(config)
        self.store = EngineStore()
        self.matcher = matcher_over(self.store)
        table = self.workload.subscriptions()
        self.load_seconds = seconds_of(lambda: self.matcher.add_table(table))

    @property
    def engine(self) -> Engine:
        return self.store.engine

    @contextmanager
    def learning_nothing(self) -> Iterator[None]:
        """Stop the engine from making a new plan in the background, as it does when events change. Planning would use the
        processor on which a second thread is measured."""
        sample = self.store.sample
        due, sample.next = sample.next, sys.maxsize
        try:
            yield
        finally:
            sample.next = due

    def encoded(self, events: pa.Table) -> EventBatch:
        """Events in the form that the engine reads."""
        return encode_table(events, self.store.dimensions).batch

    def match(self, batch: EventBatch) -> Found:
        return self.engine.match(self.engine.version, batch, len(self.store.dimensions))


class Scanned:
    """A scan over the rows of the engine."""

    def __init__(self, rows: Rows) -> None:
        table = ConjunctionTable()
        numbers = table.intern(rows.table)
        self.scan = Scan(table)
        self.scan.insert(np.arange(len(table), dtype=np.int32))
        order = np.argsort(numbers, kind="stable")
        self._slot = rows.slot[order]
        self._count = np.bincount(numbers, minlength=len(table))
        self._start = np.cumsum(self._count) - self._count

    def slots(self, batch: EventBatch, dimensions: int) -> list[npt.NDArray[np.int32]]:
        """The slots that match each event, ascending."""
        found = self.scan.match(batch, dimensions)
        slots = []
        for event in range(len(batch.start) - 1):
            rows = found.conjunction[found.event == event]
            slots.append(np.sort(self._slot[span_indices(self._start[rows], self._count[rows])]))
        return slots


def measure(loaded: Loaded, effort: Effort) -> dict[str, Any]:
    """All figures of a matcher."""
    segments, _, life, _, _ = loaded.engine.version
    count = loaded.workload.config.subscriptions
    rows = concatenated([segment.rows(life) for segment in segments])
    scanned = Scanned(rows) if count <= MOST_SCANNED else None
    return {
        "subscriptions": count,
        "load_seconds": loaded.load_seconds,
        "build_seconds": best_of(lambda: segments_of(rows, None), effort.builds, _BUILD_BUDGET),
        "build_turns": effort.builds,
        "segments": len(segments),
        "index_bytes_each": sum(segment.nbytes for segment in segments) / count,
        "table_bytes_each": sum(segment.table_nbytes for segment in segments) / count,
        "kinds": {kind: _measure_kind(loaded, scanned, kind, effort) for kind in _kinds(loaded.workload)},
        "snapshot": _snapshot(loaded.matcher, next(as_dicts(loaded.workload.other_events(1)))),
    }


def compare(loaded: Loaded, other: Loaded, effort: Effort) -> dict[str, dict[str, float]]:
    """Microseconds of the engine per event in two matchers, for each kind of events. The matchers take turns: on a machine whose
    speed varies, measurements minutes apart are hard to compare."""
    figures = {}
    for kind in _kinds(loaded.workload):
        batches = [(each, each.encoded(events_of(each.workload, kind, effort.events))) for each in (loaded, other)]
        works: dict[str, Callable[[], Any]] = {
            name: partial(each.match, batch) for name, (each, batch) in zip(("this", "other"), batches, strict=True)
        }
        best = best_of_each(works, 4 * effort.passes, effort.budget)
        figures[kind] = {name: seconds / effort.events * 1e6 for name, seconds in best.items()}
    return figures


def _kinds(workload: Workload) -> list[str]:
    """The kinds of events of a workload. Price alerts have only one kind."""
    return ["other"] if isinstance(workload.config, AlertsConfig) else ["planted", "other"]


def events_of(workload: Workload, kind: str, count: int) -> pa.Table:
    return workload.events(count) if kind == "planted" else workload.other_events(count)


def _measure_kind(loaded: Loaded, scanned: Scanned | None, kind: str, effort: Effort) -> dict[str, Any]:
    events = events_of(loaded.workload, kind, effort.events)
    batch = loaded.encoded(events)
    found = loaded.match(batch)
    matches = float(found.counts.mean())
    many = int(np.clip(_MOST_MATCHES / max(1.0, matches), effort.events, _MOST_EVENTS * effort.events))
    large = events_of(loaded.workload, kind, many)
    dicts = list(as_dicts(events))
    matcher, reads = loaded.matcher, Reads()
    works: dict[str, tuple[int, Callable[[], Any]]] = {
        "engine": (effort.events, lambda: loaded.match(batch)),
        "batch": (many, lambda: matcher.match_batch(large, 1)),
        "batch_two_threads": (many, lambda: matcher.match_batch(large, 2)),
        "dict": (effort.events, lambda: [matcher.match(event) for event in dicts]),
        "mappings": (effort.events, lambda: matcher.match_batch(dicts, 1)),
        "count": (many, lambda: matcher.count_batch(large, 1)),
        "reads": (many, reads.by_one_thread),
        "reads_two_threads": (many, reads.by_two_threads),
    }
    # Two threads need many passes: in the best pass, other processes of the machine must disturb neither thread.
    with loaded.learning_nothing():
        best = best_of_each({name: work for name, (_, work) in works.items()}, 4 * effort.passes, effort.budget)
    return {
        "attributes": float(np.diff(batch.start).mean()),
        "matches": matches,
        "candidates": found.work.candidates / effort.events,
        "survivors": found.work.survivors / effort.events,
        "compared": found.work.compared / effort.events,
        "scan": None if scanned is None else _scan_time(loaded, scanned, batch, found, effort),
        **{name: best[name] / count * 1e6 for name, (count, _) in works.items()},
    }


def _scan_time(loaded: Loaded, scanned: Scanned, batch: EventBatch, found: Found, effort: Effort) -> float:
    """Microseconds of a scan per event. Its answers must be equal to the engine's."""
    few = batch._replace(start=batch.start[: effort.scan_events + 1])
    dimensions = len(loaded.store.dimensions)
    ends = np.cumsum(found.counts)
    for event, slots in enumerate(scanned.slots(few, dimensions)):
        ours = np.sort(found.slots[ends[event] - found.counts[event] : ends[event]])
        if not np.array_equal(ours, slots):
            raise AssertionError(f"event {event}: the engine found {len(ours)} subscriptions, the scan {len(slots)}")
    seconds = best_of(lambda: scanned.scan.match(few, dimensions), min(2, effort.passes), effort.budget)
    return seconds / effort.scan_events * 1e6


def as_dicts(events: pa.Table) -> Iterator[dict[str, Any]]:
    """Events of an Arrow table as dicts."""
    for pairs in events.column("event").to_pylist():
        yield {pair["attribute"]: _plain(pair["value"]) for pair in pairs}


def _plain(value: Any) -> Any:
    """The plain value. If attributes differ in type, `value` is a struct with one field set."""
    return next(each for each in value.values() if each is not None) if isinstance(value, dict) else value


def _snapshot(matcher: tamis.Matcher, event: dict[str, Any]) -> dict[str, float]:
    """The seconds to save a matcher, and to load it and match a first event."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "matcher.tamis"
        saving = seconds_of(lambda: matcher.save(path))
        loading = seconds_of(lambda: tamis.load(path, mmap=True).match(event))
        size = path.stat().st_size
    return {"save_seconds": saving, "load_seconds": loading, "bytes_each": size / max(1, len(matcher))}
