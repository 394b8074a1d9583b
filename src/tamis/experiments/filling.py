"""Filled contenders: an index, our engine or a library with the subscriptions of a workload, ready to match.

    Filled       what all of them offer
    FilledIndex  an index of the papers
    FilledEngine our engine
    FilledPeer   DuckDB or polars

All of them match events that are encoded, or converted to the library's form, before the clock starts.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.event_table import encode_table
from tamis.engine.matching.results import Found
from tamis.engine.rows import concatenated
from tamis.engine.segment import segments_of
from tamis.experiments.contenders import LIBRARIES
from tamis.experiments.peers import DuckDB, Polars
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.matcher import matcher_over, new_store
from tamis.matcher.paper_store import PaperStore
from tamis.papers.interface import Index, Matches
from tamis.papers.registry import find_index
from tamis.papers.scan import Scan
from tamis.workload import Workload

Pairs = npt.NDArray[np.int64]
"""Pairs of an event and a subscription, as numbers: event * (number of subscriptions) + subscription, ascending."""


class Observed(NamedTuple):
    """Which events an index observes before it is built. None of them is timed."""

    timed: int
    """The first events, which are timed later."""
    observed: int
    """How many of the following events of each kind are observed."""

    def of(self, workload: Workload) -> Iterator[pa.Table]:
        """The events of each kind."""
        for events in (workload.events, workload.other_events):
            yield events(self.timed + self.observed).slice(self.timed)


class Filled(ABC):
    """A contender that holds the subscriptions of a workload."""

    build_seconds: float
    """Seconds to take in all subscriptions, once they are encoded."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.count = workload.config.subscriptions

    @abstractmethod
    def take(self, events: pa.Table) -> Any:
        """Events in the form that `match` takes."""

    @abstractmethod
    def match(self, events: Any) -> Any:
        """Find all matches."""

    @abstractmethod
    def pairs(self, found: Any) -> Pairs:
        """The result of `match` as pairs."""

    @abstractmethod
    def index_bytes(self) -> int | None:
        """The bytes of the index, without the subscriptions themselves. None: the library does not tell."""

    def counters(self, found: Any) -> dict[str, int]:
        """How much work a match was."""
        return {}


class FilledIndex(Filled):
    """An index of the papers."""

    def __init__(self, rows: TableRows, name: str, options: dict[str, Any], observed: Observed) -> None:
        super().__init__(rows.workload)
        self._rows, workload = rows, rows.workload
        self.index = self._rows.index(name, options)
        for events in observed.of(workload):
            self.index.observe(self.take(events), self._rows.dimensions)
        self.index.refuse(self._rows.rows)
        first = self.take(workload.other_events(1))
        begun = time.process_time()
        self.index.insert(self._rows.rows)
        self.index.match(first, self._rows.dimensions)  # static indexes are built now
        self.build_seconds = time.process_time() - begun

    def take(self, events: pa.Table) -> EventBatch:
        return self._rows.encoded(events)

    def match(self, events: EventBatch) -> Matches:
        return self.index.match(events, self._rows.dimensions)

    def pairs(self, found: Matches) -> Pairs:
        return self._rows.pairs(found)

    def index_bytes(self) -> int:
        return int(self.index.stats()["bytes"])

    def counters(self, found: Matches) -> dict[str, int]:
        return found.counters._asdict()


class TableRows:
    """The conjunctions of a workload's subscriptions, in a table. Equal subscriptions share one row."""

    def __init__(self, workload: Workload) -> None:
        store = new_store("scan")
        assert isinstance(store, PaperStore)
        self.subscriptions = workload.subscriptions()
        matcher_over(store).add_table(self.subscriptions)
        self.workload = workload
        self._store = store
        self.dimensions = len(store.dimensions)
        owners = store.owners.view()
        self.rows = np.flatnonzero(owners.owners > 0).astype(np.int32)

    def index(self, name: str, options: dict[str, Any]) -> Index:
        """An empty index over the table."""
        kind = find_index(name)
        assert kind is not None
        return kind(self._store.table, kind.options_type.read(options, name), self._store.index.kind_of)

    @cached_property
    def _scan(self) -> Scan:
        scan = Scan(self._store.table)
        scan.insert(self.rows)
        return scan

    def scanned(self, events: pa.Table) -> Pairs:
        """What a scan of all rows finds."""
        return self.pairs(self._scan.match(self.encoded(events), self.dimensions))

    def encoded(self, events: pa.Table) -> EventBatch:
        """Events as indexes take them."""
        return encode_table(events, self._store.dimensions).batch

    def pairs(self, found: Matches) -> Pairs:
        """Pairs of event and subscription: every owner of the conjunctions that were found."""
        events, slots = self._store.owners.of_matches(found.event, found.conjunction)
        return _pairs(events, slots, self.workload.config.subscriptions)


class FilledEngine(Filled):
    """Our engine."""

    def __init__(self, rows: TableRows, observed: Observed) -> None:
        super().__init__(rows.workload)
        self._store = EngineStore()
        matcher = matcher_over(self._store)
        matcher.add_table(rows.subscriptions)
        # Observed as the other indexes are: the engine learns how common values are, and builds its segments by that.
        for events in observed.of(rows.workload):
            matcher.match_batch(events, 1)
        self._store.sample.next = sys.maxsize  # No new plan is made in the background while it is timed.
        segments, deltas, life, _, _ = self._store.engine.version
        # Few subscriptions lie in a delta, and none was removed. What segments of them would take is measured all the same.
        parts = [segment.rows(life) for segment in segments] + [view.rows for _, view in deltas]
        built = concatenated(parts)
        begun = time.process_time()
        segments_of(built, None)
        self.build_seconds = time.process_time() - begun

    def take(self, events: pa.Table) -> EventBatch:
        return encode_table(events, self._store.dimensions).batch

    def match(self, events: EventBatch) -> Found:
        engine = self._store.engine
        return engine.match(engine.version, events, len(self._store.dimensions))

    def pairs(self, found: Found) -> Pairs:
        return _pairs(np.repeat(np.arange(len(found.counts)), found.counts), found.slots, self.count)

    def index_bytes(self) -> int | None:
        return sum(segment.nbytes for segment in self._store.engine.version.segments) or None

    def counters(self, found: Found) -> dict[str, int]:
        return {"candidates": int(found.work.candidates), "predicates": int(found.work.compared)}


class FilledPeer(Filled):
    """DuckDB or polars."""

    def __init__(self, rows: TableRows, name: str) -> None:
        super().__init__(rows.workload)
        self._wide = name == "polars"
        table = rows.subscriptions
        begun = time.process_time()
        self._peer = Polars(table) if self._wide else DuckDB(table)
        self.build_seconds = time.process_time() - begun
        self._taken: pa.Table | None = None

    def take(self, events: pa.Table) -> pa.Table:
        return self._with_columns(events) if self._wide else events

    def _with_columns(self, events: pa.Table) -> pa.Table:
        """Events with a column for each attribute."""
        columns: dict[str, list[Any]] = {name: [None] * len(events) for name in self.workload.attribute_names}
        for row, pairs in enumerate(events.column("event").to_pylist()):
            for pair in pairs:
                columns[pair["attribute"]][row] = pair["value"]
        return pa.table(columns)

    def match(self, events: pa.Table) -> pa.Table:
        if events is not self._taken:  # The library makes tables of its own of them. The first pass is not timed.
            self._peer.take(events)
            self._taken = events
        return self._peer.match()

    def pairs(self, found: pa.Table) -> Pairs:
        events, subscriptions = (found.column(name).to_numpy() for name in ("event", "subscription"))
        return _pairs(events, subscriptions, self.count)

    def index_bytes(self) -> None:
        return None


def filled(rows: TableRows, index: str, options: dict[str, Any], observed: Observed) -> Filled:
    """A contender with this index, our engine (`auto`) or a library, filled with the subscriptions of a workload."""
    if index in LIBRARIES:
        return FilledPeer(rows, index)
    return FilledEngine(rows, observed) if index == "auto" else FilledIndex(rows, index, options, observed)


def _pairs(events: npt.NDArray[Any], subscriptions: npt.NDArray[Any], count: int) -> Pairs:
    return np.sort(events.astype(np.int64) * count + subscriptions)
