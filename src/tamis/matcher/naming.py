"""Matches as a table with the row of the event and the id of the subscription."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.engine.matching.results import are_lazy
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import UP, I32s, I64s
from tamis.matcher.crew import each
from tamis.matcher.ids import Names
from tamis.matcher.store import Part


class Named(NamedTuple):
    """The matches of some events: the row of the event, and `names.place` of the slot."""

    events: I64s
    places: npt.NDArray[Any]
    names: Names


def named_at_hand(part: Part) -> Named | Part:
    """Name matches, if all ids are at hand. Otherwise `table_of` lays the ids out once, when it knows all matches."""
    return part if part.names is None else _named(part, part.names)


def table_of(parts: Sequence[Named | Part], threads: int = 1) -> pa.Table:
    """Results of `named_at_hand` as a table with the columns ``event``, the row, and ``subscription``, the id."""
    named = [part for part in parts if isinstance(part, Named)]
    waiting = [part for part in parts if isinstance(part, Part)]
    if waiting:  # Then no part is named.
        names = waiting[0].ids.names(sum(len(part.slots) for part in waiting))
        if names is None:
            slots = np.concatenate([part.slots for part in waiting])
            return _table(list(map(_events, waiting)), [waiting[0].ids.few_names(slots)])
        named = each(lambda part: _named(part, names), waiting, threads)
    return _table([part.events for part in named], [part.names.column(part.places) for part in named])


def named_in_pieces(part: Part, most: int) -> Iterator[pa.Table]:
    """A part in tables of at most `most` rows. Only a single event may have more."""
    ends = np.append(0, np.cumsum(part.counts))
    for start, end in pieces(ends, most):
        slots = part.slots[ends[start] : ends[end]]
        piece = part._replace(first=part.first + start, counts=part.counts[start:end], slots=slots)
        yield table_of([named_at_hand(piece)])


def pieces(ends: I64s, most: int) -> Iterator[tuple[int, int]]:
    """Events in pieces of at most `most` matches. Only a single event may have more. Matches of event i end at ends[i + 1]."""
    start, count = 0, len(ends) - 1
    while start < count:
        end = max(start + 1, int(np.searchsorted(ends, ends[start] + most, "right")) - 1)
        yield start, end
        start = end


def _named(part: Part, names: Names) -> Named:
    if are_lazy(part.slots):
        return Named(*part.slots.named(part.first, names.place), names)
    events, places = np.empty(len(part.slots), np.int64), np.empty(len(part.slots), names.place.dtype)
    _name(part.counts, part.slots, part.first, names.place, events, places)
    return Named(events, places, names)


def _events(part: Part) -> I64s:
    """The row of each match."""
    rows = np.arange(part.first, part.first + len(part.counts))
    return np.repeat(rows, part.counts)


def _table(events: list[I64s], subscriptions: list[pa.Array]) -> pa.Table:
    columns = [pa.chunked_array([pa.array(rows) for rows in events]), pa.chunked_array(subscriptions)]
    return pa.Table.from_arrays(columns, ["event", "subscription"])


@lean_kernel
def _name(counts: I64s, slots: I32s, row: int, place: I32s, events: I64s, named: I32s) -> None:
    """Write the row of the event, and the place of the slot, for each match."""
    at = 0
    for event in range(len(counts)):
        for _ in range(counts[UP(event)]):
            events[UP(at)] = row + event
            named[UP(at)] = place[UP(slots[UP(at)])]
            at += 1
