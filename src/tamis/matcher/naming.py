"""Matches as a table: the row of each event, and the id of each subscription."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.kernel import lean_kernel
from tamis.encoding.numbers import UP
from tamis.matcher.crew import each
from tamis.matcher.store import Matched

# Fewer matches than this are named sooner than another thread begins.
_FEWEST_FOR_THREADS = 1 << 14


def named(matched: Matched, first: int = 0) -> pa.Table:
    """The columns ``event``, where rows are counted from `first` on, and ``subscription``."""
    ends = np.cumsum([0, *(len(slots) for _, slots in matched.parts)]).tolist()
    rows = np.cumsum([first, *(len(counts) for counts, _ in matched.parts)]).tolist()
    names = matched.ids.names(ends[-1])
    if names is None:
        events = np.repeat(np.arange(first, rows[-1]), matched.counts)
        return _table(events, matched.ids.column(matched.slots))
    events, named = np.empty(ends[-1], np.int64), np.empty(ends[-1], names.place.dtype)

    def name(part: int) -> None:
        here = slice(ends[part], ends[part + 1])
        _name(*matched.parts[part], rows[part], names.place, events[here], named[here])

    threads = matched.threads if ends[-1] >= _FEWEST_FOR_THREADS else 1
    each(name, range(len(matched.parts)), threads, [len(slots) for _, slots in matched.parts])
    return _table(events, names.column(named))


def named_in_pieces(matched: Matched, most: int, first: int = 0) -> Iterator[pa.Table]:
    """The same in tables of at most so many rows, more only where one event has them."""
    row = first
    for counts, slots in matched.parts:
        ends = np.append(0, np.cumsum(counts))
        for start, end in pieces(ends, most):
            piece = counts[start:end], slots[ends[start] : ends[end]]
            yield named(matched._replace(parts=[piece]), row + start)
        row += len(counts)


def pieces(ends: npt.NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Events in pieces of at most so many matches, more only where one event has them; those of event i end at ends[i + 1]."""
    start, count = 0, len(ends) - 1
    while start < count:
        end = max(start + 1, int(np.searchsorted(ends, ends[start] + most, "right")) - 1)
        yield start, end
        start = end


def _table(events: Any, subscriptions: pa.Array) -> pa.Table:
    return pa.table({"event": pa.array(events, pa.int64()), "subscription": subscriptions})


@lean_kernel
def _name(counts: Any, slots: Any, row: int, place: Any, events: Any, named: Any) -> None:
    """Write the row of the event of each slot, and what `place` says of the slot."""
    at = 0
    for event in range(len(counts)):
        for _ in range(counts[UP(event)]):
            events[UP(at)] = row + event
            named[UP(at)] = place[UP(slots[UP(at)])]
            at += 1
