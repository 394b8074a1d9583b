"""What executors do with events: match them against mapped segments, and name the matches.

Here is nothing of Spark: a task is an object that travels to the executors and turns an iterator of record batches into
another, as `DataFrame.mapInArrow` wants it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import combined
from tamis.spark.manifest import IndexFolder, Segment
from tamis.spark.segment_files import ID, OpenSegment, moments_of, open_segment

SUBSCRIPTION, MATCHES = "subscription", "matches"
"""Columns of results."""
RANKED_WEIGHT = "__tamis_weight"
"""In `carry`: the weight, whether subscriptions have such a column or not."""
GROUP = "__tamis_group"
"""The column that says which group of segments an event is to meet, where there are several."""

# So many events are matched at a time, and so many rows are handed over: memory stays bounded however many match.
_EVENTS = 1024
_ROWS = 1 << 18

Rows = npt.NDArray[np.int64]


class Found(NamedTuple):
    """Matches with the rows of one segment."""

    segment: OpenSegment
    event: Rows
    row: Rows


@dataclass(frozen=True)
class MatchTask:
    """Matches events; hands over their ids, those of the subscriptions, and other columns of both.

    Attributes
    ----------
    path : str
        The folder of the index.
    groups : tuple of tuple of Segment
        Each event meets all segments of its group, which `GROUP` names if there are several.
    event_id : str
        The column of events with their ids.
    attributes : tuple of str
        The columns of events that are matched.
    keep, carry : tuple of str
        Columns of events and of subscriptions to hand over.
    k : int or None
        Only so many subscriptions of each event.
    time : str or None
        The column of events with the moment that subscriptions must be valid at.
    moment : int
        That moment in microseconds, if no column has it.
    """

    path: str
    groups: tuple[tuple[Segment, ...], ...]
    event_id: str
    attributes: tuple[str, ...]
    keep: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    k: int | None = None
    time: str | None = None
    moment: int = 0
    names: tuple[str, ...] = field(default=())
    """What the columns that are handed over are called."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for events, segments in self._parts(batches):
            for found in self._found(events, segments):
                yield from self._named(events, found)

    def _parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Table, tuple[Segment, ...]]]:
        """Some events at a time, and the segments that they are to meet."""
        for batch in batches:
            table = pa.Table.from_batches([batch])
            if len(self.groups) == 1:
                parts = [(table, self.groups[0])]
            else:
                groups = combined(table[GROUP]).to_numpy()
                parts = [(table.filter(pa.array(groups == each)), self.groups[each]) for each in np.unique(groups)]
            for events, segments in parts:
                for start in range(0, len(events), _EVENTS):
                    yield events.slice(start, _EVENTS), segments

    def _found(self, events: pa.Table, segments: tuple[Segment, ...]) -> Iterator[Found]:
        """The matches of some events, segment by segment."""
        folder, asked = IndexFolder(self.path), events.select(self.attributes)
        found = (self._found_in(open_segment(folder, segment), asked, events) for segment in segments)
        return found if self.k is None else iter(heaviest(list(found), self.k))

    def _found_in(self, segment: OpenSegment, asked: pa.Table, events: pa.Table) -> Found:
        # What is not valid must not take the place of what is.
        matched = segment.matcher.match_batch(asked, threads=1, k=None if segment.expires else self.k)
        found = Found(segment, matched["event"].to_numpy(), matched["subscription"].to_numpy())
        return found if not segment.expires else _valid(found, self._times(events))

    def _times(self, events: pa.Table) -> Rows:
        """When each event happened, in microseconds."""
        if self.time is None:
            return np.full(len(events), self.moment)
        return moments_of(combined(events[self.time]), _NEVER)

    def _named(self, events: pa.Table, found: Found) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(found.event), _ROWS):
            event, row = (pa.array(part[start : start + _ROWS]) for part in (found.event, found.row))
            columns = [combined(events[self.event_id]).take(event), found.segment.take(ID, row)]
            columns += [combined(events[name]).take(event) for name in self.keep]
            columns += [self._carried(found.segment, name, row) for name in self.carry]
            yield pa.RecordBatch.from_arrays(columns, names=list(self.names))

    @staticmethod
    def _carried(segment: OpenSegment, name: str, rows: pa.Array) -> pa.Array:
        if name == RANKED_WEIGHT:
            return pa.array(segment.weights).take(rows)
        return segment.take(name, rows)


class CountTask(MatchTask):
    """Matches events; hands over how many each subscription has, of those that this task saw."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts: dict[int, tuple[OpenSegment, Rows]] = {}
        for events, segments in self._parts(batches):
            for segment, _, rows in self._found(events, segments):
                _, sums = counts.setdefault(id(segment), (segment, np.zeros(len(segment.columns), np.int64)))
                sums += np.bincount(rows, minlength=len(sums))
        for segment, sums in counts.values():
            rows = np.flatnonzero(sums)
            columns = [segment.take(ID, rows), pa.array(sums[rows])]
            columns += [segment.take(name, rows) for name in self.carry]
            yield pa.RecordBatch.from_arrays(columns, names=list(self.names))


_NEVER = np.iinfo(np.int64).min
"""The time of an event that has none: only subscriptions without any bound are valid then."""


def _valid(found: Found, times: Rows) -> Found:
    """Those matches whose subscription is valid when the event happens: from its beginning on, up to its end."""
    begins, ends = (bound[found.row] for bound in found.segment.validity)
    time = times[found.event]
    bounds = np.iinfo(np.int64)
    valid = ((begins == bounds.min) | (begins <= time)) & ((ends == bounds.max) | ((time < ends) & (time != _NEVER)))
    return found._replace(event=found.event[valid], row=found.row[valid])


def heaviest(found: list[Found], k: int) -> list[Found]:
    """The `k` matches of each event that weigh most; of equal ones those with the lower ids."""
    place = np.repeat(np.arange(len(found)), [len(each.event) for each in found])
    if not len(place):
        return []
    table = pa.table(
        {
            "event": pa.array(np.concatenate([each.event for each in found])),
            "weight": pa.array(np.concatenate([each.segment.weights[each.row] for each in found])),
            "id": pa.concat_arrays([each.segment.take(ID, each.row) for each in found]),
        }
    )
    order = pc.sort_indices(
        table, sort_keys=[("event", "ascending"), ("weight", "descending"), ("id", "ascending")]
    ).to_numpy()
    event = table["event"].to_numpy()[order]
    first = np.flatnonzero(np.append(True, event[1:] != event[:-1]))
    rank = np.arange(len(event)) - np.repeat(first, np.diff(np.append(first, len(event))))
    kept = np.zeros(len(place), np.bool_)
    kept[order[rank < k]] = True
    starts = np.searchsorted(place, np.arange(len(found) + 1))
    parts = (kept[start:end] for start, end in itertools.pairwise(starts.tolist()))
    return [each._replace(event=each.event[part], row=each.row[part]) for each, part in zip(found, parts, strict=True)]
