"""The tasks of executors: match events against mapped segments, and name the matches.

This module does not use Spark. A task is an object that is sent to the executors. It turns an iterator of record batches into
another one, for `DataFrame.mapInArrow`.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import combined
from tamis.encoding.events.asked import Asked
from tamis.encoding.events.json_lines import wrong_lines
from tamis.engine.matching.results import TooMuchFoundError
from tamis.engine.top_k import keep_heaviest
from tamis.engine.version import Accelerator
from tamis.errors import EventError, TableError
from tamis.kernels.numbers import Bools, I64s
from tamis.language.schema import Schema
from tamis.matcher.event_input import right_rows, wrong_rows
from tamis.matcher.json_input import json_lines
from tamis.matcher.naming import pieces
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import SegmentFiles
from tamis.spark.segment_files import EXPRESSION, ID, MOST_OPEN, WEIGHT, OpenSegment, is_open, moments_of, open_segment
from tamis.spark.tallies import (
    CANDIDATES,
    EVENTS,
    FETCHED,
    FETCHED_BYTES,
    HITS,
    MATCHING,
    NAMING,
    OPENED,
    OPENING,
    Tally,
    count,
    timed,
)
from tamis.spark.tallies import MATCHES as PAIRS

SUBSCRIPTION, MATCHES, RANK = "subscription", "matches", "rank"
"""Columns of results."""
RANKED_WEIGHT = "__tamis_weight"
"""The name of the weight in `carry`, even if subscriptions have no such column."""
GROUP = "__tamis_group"
"""The column with an event's group of segments, if there are several groups."""

_EVENTS = 1024
"""Most events matched at a time."""
_ROWS = 1 << 18
"""Rows returned at a time."""
_BLOCK = 1 << 16
"""Events that are matched with a segment before the next one, on a card, or if not all segments can be open. A card has a price
of some milliseconds for each call, and opening a segment takes as long as matching some thousands of events."""

_HINT = (
    "Hint: skip_wrong=True leaves out wrong events, and wrong_events lists them; for a stream, wrong=FOLDER does both"
)

Rows = I64s


class TaskLimits(NamedTuple):
    """What bounds the memory of a task, however many subscriptions match."""

    pairs: int = 1 << 22
    """Most pairs named at a time. Fewer events are matched at a time if they are known to have more pairs."""
    most_pairs: int = 1 << 29
    """Most pairs if suddenly every subscription matches: some gigabytes, at 4 to 8 bytes a pair. Less would be slow: a call takes
    one to two milliseconds besides the matching (measured with a list, and with 100 columns)."""
    open: int = MOST_OPEN
    """Most segments that are open at a time."""


class SegmentMatches(NamedTuple):
    """Matches with the rows of one segment."""

    segment: OpenSegment
    event: Rows
    row: Rows
    rank: Rows | None = None
    """The place of each match among those of its event, from 1, if they were ranked."""

    def where(self, holds: Bools) -> SegmentMatches:
        """The matches for which `holds` is true."""
        rank = None if self.rank is None else self.rank[holds]
        return self._replace(event=self.event[holds], row=self.row[holds], rank=rank)


@dataclass(frozen=True)
class MatchTask:
    """Matches events; returns the ids of events and subscriptions, and other columns of both.

    Attributes
    ----------
    folder : IndexFolder
        The index.
    groups : tuple of tuple of SegmentFiles
        Each event is matched with all segments of its group. The column `GROUP` names the group if there are several.
    event_id : str
        The column of events with their ids.
    attributes : tuple of str
        The columns of events that are matched.
    keep, carry : tuple of str
        Columns of events and of subscriptions to return.
    k : int or None
        Most subscriptions returned for each event.
    time : str or None
        The column of events with the time at which subscriptions must be valid.
    moment : int
        This time in microseconds, if no column has it.
    schema : dict or None
        The declared schema of attributes.
    skip_wrong : bool
        Whether wrong events are left out; otherwise they are an error.
    asked : frozenset of str
        The attributes that subscriptions of any group ask about, so that an event is wrong for all groups or for none.
    form : str
        The column that subscriptions were given in, from which `carry` takes expressions.
    """

    folder: IndexFolder
    groups: tuple[tuple[SegmentFiles, ...], ...]
    event_id: str
    attributes: tuple[str, ...]
    keep: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    k: int | None = None
    time: str | None = None
    moment: int = 0
    schema: dict[str, Any] | None = None
    skip_wrong: bool = False
    asked: frozenset[str] = frozenset()
    json: bool = False
    """Whether the one column in `attributes` has events as JSON."""
    gpu_share: float | None = None
    """The share of a card that each task has; None: tasks match on the CPU."""
    form: str = EXPRESSION
    names: tuple[str, ...] = field(default=())
    """What the columns that are handed over are called."""
    limits: TaskLimits = field(default_factory=TaskLimits)
    counters: Any = None
    """The accumulator that gets the tally in the end, if somebody wants it."""
    tally: Tally = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for events, found in self._found(batches):
            yield from self._named(events, found)
        self._hand_over()

    def _hand_over(self) -> None:
        """Give the tally of this task to the driver."""
        for name, number in zip((FETCHED, FETCHED_BYTES, HITS), self.folder.fetched, strict=True):
            count(self.tally, name, number)
        if self.counters is not None:
            self.counters.add(self.tally)

    def _opened(self, segment: SegmentFiles) -> OpenSegment:
        if is_open(self.folder, segment):
            return open_segment(self.folder, segment, self.limits.open)
        count(self.tally, OPENED, 1)
        with timed(self.tally, OPENING):
            return open_segment(self.folder, segment, self.limits.open)

    def _found(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Table, SegmentMatches]]:
        """All matches, in parts: some events with some rows of one segment at a time."""
        parts = PartSizes(self.limits, learns=self.k is None, on_card=self.gpu_share is not None)
        for block, segments in self._blocks(batches):
            events = right_rows(block, self._wrong(block)) if self.skip_wrong else block
            count(self.tally, EVENTS, len(events))
            found = self._met(events, segments, parts)
            for each in found if self.k is None else _heaviest_of(found, self.k, self.limits.pairs):
                yield events, each

    def _blocks(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Table, tuple[SegmentFiles, ...]]]:
        """Blocks of events, each with the segments to match."""
        waiting: dict[int, list[pa.Table]] = defaultdict(list)
        for batch in batches:
            for group, events in self._by_group(pa.Table.from_batches([batch])):
                tables, size = waiting[group], self._block_size(group)
                tables.append(events)
                if sum(map(len, tables)) >= size:
                    yield from self._cut(waiting.pop(group), group)
        for group, tables in waiting.items():
            yield from self._cut(tables, group)

    def _by_group(self, events: pa.Table) -> list[tuple[int, pa.Table]]:
        if len(self.groups) == 1:
            return [(0, events)]
        groups = combined(events[GROUP]).to_numpy()
        return [(each, events.filter(pa.array(groups == each))) for each in np.unique(groups).tolist()]

    def _block_size(self, group: int) -> int:
        """How many events are matched with a segment before the next one: a few, unless segments cannot all be open."""
        if self.gpu_share is None and len(self.groups[group]) <= self.limits.open:
            return _EVENTS
        # The matches with the largest weights of each event stay in memory until all segments are done.
        return _BLOCK if self.k is None else min(_BLOCK, max(_EVENTS, self.limits.pairs // self.k))

    def _cut(self, tables: list[pa.Table], group: int) -> Iterator[tuple[pa.Table, tuple[SegmentFiles, ...]]]:
        events, size = pa.concat_tables(tables), self._block_size(group)
        for start in range(0, len(events), size):
            yield events.slice(start, size), self.groups[group]

    def _met(self, events: pa.Table, segments: tuple[SegmentFiles, ...], parts: PartSizes) -> Iterator[SegmentMatches]:
        """The matches of some events, segment by segment, in parts that are not too large."""
        for segment in segments:
            opened = self._opened(segment)
            lives = opened.living(self.folder, segment)
            # A subscription that is not valid, or removed, must not take the place of a valid one.
            limit = self.k if lives is None and not opened.expires else None
            start = 0
            while start < len(events):
                part, pairs = events.slice(start, parts.size(segment)), 0
                try:
                    for found in self.found_in(opened, part, limit):
                        pairs += len(found.event)
                        living = found if lives is None else found.where(lives[found.row])
                        valid = _valid(living, self._times(part)) if opened.expires else living
                        yield valid._replace(event=valid.event + start)
                except TooMuchFoundError:  # Before anything was found.
                    parts.halve(segment, len(part))
                    continue
                parts.note(segment, len(part), pairs)
                start += len(part)

    def found_in(self, segment: OpenSegment, events: pa.Table, limit: int | None) -> Iterator[SegmentMatches]:
        """The matches of events in one segment, removed subscriptions included, in pieces of a bounded number of pairs.

        Raises
        ------
        EventError, TableError, TooMuchFoundError
        """
        before, card = segment.matcher.candidates, self._card()
        try:
            with timed(self.tally, MATCHING):
                if self.json:
                    counts, slots = segment.matcher.match_json(events[self.attributes[0]], limit, card)
                else:
                    counts, slots = segment.matcher.match(events.select(self.attributes), limit, card)
        except (EventError, TableError):
            wrong = self._wrong(events)
            if not wrong:
                raise
            row, reason = next(iter(wrong.items()))
            which = events[self.event_id][row].as_py()
            raise EventError(f"the event whose {self.event_id} is {which!r}: {reason}. {_HINT}") from None
        count(self.tally, CANDIDATES, segment.matcher.candidates - before)
        ends = np.append(0, np.cumsum(counts))
        for first, last in pieces(ends, self.limits.pairs):
            event = np.repeat(np.arange(first, last), counts[first:last])
            yield SegmentMatches(segment, event, segment.matcher.ids(slots[ends[first] : ends[last]]))

    def _card(self) -> Accelerator | None:
        """What matches on the card of this task, if it has one."""
        if self.gpu_share is None:
            return None
        from tamis.spark.task_card import task_card

        return task_card(self.gpu_share)

    def _wrong(self, events: pa.Table) -> dict[int, str]:
        return _wrong_among(events, self.attributes, self.asked, self.schema, self.json)

    def _times(self, events: pa.Table) -> Rows:
        """When each event happened, in microseconds."""
        if self.time is None:
            return np.full(len(events), self.moment)
        return moments_of(combined(events[self.time]), _NEVER)

    def _named(self, events: pa.Table, found: SegmentMatches) -> Iterator[pa.RecordBatch]:
        count(self.tally, PAIRS, len(found.event))
        for start in range(0, len(found.event), _ROWS):
            with timed(self.tally, NAMING):
                columns = self._columns(events, found, slice(start, start + _ROWS))
            yield pa.RecordBatch.from_arrays(columns, names=list(self.names))

    def _columns(self, events: pa.Table, found: SegmentMatches, part: slice) -> list[pa.Array]:
        """The columns of some matches."""
        event, row = pa.array(found.event[part]), pa.array(found.row[part])
        columns = [combined(events[self.event_id]).take(event), found.segment.take(ID, row)]
        if found.rank is not None:
            columns.append(pa.array(found.rank[part], pa.int32()))
        columns += [combined(events[name]).take(event) for name in self.keep]
        return columns + [self._carried(found.segment, name, row) for name in self.carry]

    def _carried(self, segment: OpenSegment, name: str, rows: pa.Array) -> pa.Array:
        if name in (RANKED_WEIGHT, WEIGHT):
            return pa.array(segment.weights).take(rows)
        if name == EXPRESSION:
            return segment.texts(self.folder, self.form).take(rows)
        return segment.take(name, rows)


class PartSizes:
    """How many events are matched with a segment at a time, so that their matches do not take too much memory.

    For a small segment, all events. For a larger one, few events at first, then more while few subscriptions match. Memory
    always suffices, even if all subscriptions match. With `k`, the number of matches is not known, and nothing is learned.

    A card counts matches before it takes memory for them. So it gets many events at first, and fewer when they match too much.
    """

    def __init__(self, limits: TaskLimits, *, learns: bool, on_card: bool = False) -> None:
        self._limits = limits
        self._learns = learns and not on_card
        self._on_card = on_card
        self._sizes: dict[str, int] = {}

    def size(self, segment: SegmentFiles) -> int:
        if segment.name not in self._sizes:
            pairs = self._limits.pairs if self._learns else self._limits.most_pairs
            first = max(1, min(_EVENTS, pairs // segment.living))
            self._sizes[segment.name] = _BLOCK if self._on_card else first
        return self._sizes[segment.name]

    def halve(self, segment: SegmentFiles, events: int) -> None:
        """Note that `events` events match too much for a card."""
        self._sizes[segment.name] = max(1, events // 2)

    def note(self, segment: SegmentFiles, events: int, pairs: int) -> None:
        """Learn that `events` events had `pairs` matches."""
        if self._learns:
            most = min(_EVENTS, self._limits.most_pairs // segment.living, 2 * self._sizes[segment.name])
            self._sizes[segment.name] = max(1, min(most, self._limits.pairs * events // max(pairs, 1)))


class CountTask(MatchTask):
    """Matches events; returns how many events of this task each subscription matches."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        segments = {segment.name: segment for group in self.groups for segment in group}
        counts: dict[str, Rows] = {}
        for _, found in self._found(batches):
            opened = found.segment
            if opened.name not in counts:
                counts[opened.name] = np.zeros(len(opened.columns), np.int64)
            np.add.at(counts[opened.name], found.row, 1)
            count(self.tally, PAIRS, len(found.row))
        for name, sums in counts.items():
            segment = self._opened(segments[name])
            rows = np.flatnonzero(sums)
            columns = [segment.take(ID, rows), pa.array(sums[rows])]
            columns += [self._carried(segment, name, pa.array(rows)) for name in self.carry]
            yield pa.RecordBatch.from_arrays(columns, names=list(self.names))
        self._hand_over()


@dataclass(frozen=True)
class WrongTask:
    """Returns the ids of wrong events, the reasons, and columns to keep."""

    event_id: str
    attributes: tuple[str, ...]
    keep: tuple[str, ...]
    asked: frozenset[str]
    schema: dict[str, Any] | None
    names: tuple[str, ...]
    """What the columns that are handed over are called."""
    json: bool = False
    """Whether the one column in `attributes` has events as JSON."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            events = pa.Table.from_batches([batch])
            wrong = _wrong_among(events, self.attributes, self.asked, self.schema, self.json)
            rows = pa.array(list(wrong), pa.int64())
            columns = [combined(events[name]).take(rows) for name in (self.event_id, *self.keep)]
            columns.insert(1, pa.array(list(wrong.values()), pa.string()))
            yield pa.RecordBatch.from_arrays(columns, names=list(self.names))


def _wrong_among(
    events: pa.Table, attributes: Sequence[str], asked: frozenset[str], schema: dict[str, Any] | None, json: bool
) -> dict[int, str]:
    """Rows that are wrong, and why."""
    declared = None if schema is None else Schema.of(schema)
    if json:
        lines = json_lines(events[attributes[0]])
        wrong = wrong_lines(lines, Asked.names(asked, declared), declared)
        return {int(lines.numbers[row]): str(error) for row, error in wrong.items()}
    return wrong_rows(events.select(attributes), Asked.names(asked, declared), declared)


_NEVER = np.iinfo(np.int64).min
"""The time of an event without a time: only subscriptions without bounds are valid then."""


def _valid(found: SegmentMatches, times: Rows) -> SegmentMatches:
    """The matches whose subscription is valid at the time of the event: from its beginning on, before its end."""
    begins, ends = (bound[found.row] for bound in found.segment.validity)
    time = times[found.event]
    bounds = np.iinfo(np.int64)
    valid = ((begins == bounds.min) | (begins <= time)) & ((ends == bounds.max) | ((time < ends) & (time != _NEVER)))
    return found.where(valid)


def _heaviest_of(found: Iterable[SegmentMatches], k: int, pairs: int) -> list[SegmentMatches]:
    """The `k` matches with the largest weights of each event. At most about `pairs` more are in memory."""
    kept: list[SegmentMatches] = []
    fresh = 0
    for each in found:
        kept.append(each)
        fresh += len(each.event)
        if fresh > pairs:
            kept, fresh = heaviest(kept, k), 0
    return heaviest(kept, k)


def heaviest(found: list[SegmentMatches], k: int) -> list[SegmentMatches]:
    """The `k` matches of each event with the largest weights, ranked; for equal weights, those with the lower ids."""
    place = np.repeat(np.arange(len(found)), [len(each.event) for each in found])
    if not len(place):
        return []
    event = np.concatenate([each.event for each in found])
    weight = np.concatenate([each.segment.weights[each.row] for each in found])
    ids = pa.concat_arrays([each.segment.take(ID, each.row) for each in found])
    table = pa.table({"event": pa.array(event), "id": ids})
    order = pc.sort_indices(table, sort_keys=[("event", "ascending"), ("id", "ascending")]).to_numpy()
    counts = np.bincount(event)
    sizes, heavy = keep_heaviest(counts, np.arange(len(order), dtype=np.int32), weight[order], k)
    rank = np.zeros(len(place), np.int64)
    rank[order[heavy]] = np.arange(len(heavy)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    starts = np.searchsorted(place, np.arange(len(found) + 1))
    parts = (rank[start:end] for start, end in itertools.pairwise(starts.tolist()))
    return [each._replace(rank=part).where(part > 0) for each, part in zip(found, parts, strict=True)]
