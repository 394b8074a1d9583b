"""Collects the matches of a batch from a kernel, when their number is not known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tamis.encoding.evaluation import EventPlaces, count_holding
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I32s, I64s
from tamis.papers.interface import Counters, Matches

CANDIDATES, PREDICATES, NODES, FILTERED = range(4)
"""Places of a kernel's counters of work."""

_LOWEST_ROOM = 1 << 10
_HIGHEST_ROOM = 1 << 20
"""Most room for the matches of one call. A single event gets more if it needs more."""


class Output(NamedTuple):
    """What a kernel writes."""

    matches: I32s
    """The matches of each event, one after another."""
    counts: I64s
    """Event -> how many matches it has."""
    work: I64s
    """What was done: CANDIDATES, PREDICATES, NODES and FILTERED are added to."""


Kernel = Callable[[int, Output], int]
"""``(event, output) -> event``: matches events from one on. It stops before the first event whose matches do not fit, without
counting anything of it, and returns this event; the number of events if all fit."""


def collect(batch: EventBatch, match: Kernel, expected: float = 0.0) -> Matches:
    """All matches of a batch; `expected` is a guess of their number. Events that do not fit are matched twice."""
    events = len(batch.start) - 1
    counts, work = np.zeros(events, np.int64), np.zeros(4, np.int64)
    parts: list[I32s] = []
    event, room = 0, max(_LOWEST_ROOM, min(int(expected), _HIGHEST_ROOM))
    while event < events:
        output = Output(np.empty(room, np.int32), counts, work)
        reached = match(event, output)
        if reached == event:
            room *= 4
        else:
            parts.append(output.matches[: int(counts[event:reached].sum())])
            event, room = reached, max(room, min(2 * room, _HIGHEST_ROOM))
    found = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    counters = Counters(*work.tolist())
    return Matches(np.repeat(np.arange(events, dtype=np.int64), counts), found, counters)


@inlined
def note_event(event: int, matched: int, candidates: int, predicates: int, nodes: int, output: Output) -> None:
    """Write the counts of one event."""
    output.counts[event] = matched
    output.work[CANDIDATES] += candidates
    output.work[PREDICATES] += predicates
    output.work[NODES] += nodes


@inlined
def note_filtered(conjunctions: int, output: Output) -> None:
    """Count conjunctions that an event has met, but that a filter has kept from being candidates."""
    output.work[FILTERED] += conjunctions


@inlined
def is_true(c: int, table: Conjunctions, batch: EventBatch, places: EventPlaces) -> tuple[bool, int]:
    """Whether a conjunction of the table is true of the loaded event, and how many predicates were evaluated."""
    held, needed = count_holding(c, table, batch, places), table.start[c + 1] - table.start[c]
    return held == needed, min(held + 1, needed)
