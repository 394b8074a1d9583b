"""What matching gives: slots event by event, and how much work it was."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import UP, I32s, I64s

Slots = I32s
Counts = I64s


class Life(NamedTuple):
    """When each slot died, and what time it is. Empty: none has died."""

    died: I64s
    now: int


VISITED, CHECKED, JUDGED = range(3)
"""Where kernels count the work, in the order of `Work`."""


class Work(NamedTuple):
    """How much matching was: entries looked at, records checked, conjunctions or programs judged by their keys."""

    entries: int = 0
    survivors: int = 0
    compared: int = 0

    def plus(self, other: Work) -> Work:
        return Work(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Found(NamedTuple):
    """The slots that each event of a batch satisfies, one event after another."""

    counts: Counts
    slots: Slots
    work: Work


def nothing_found(events: int) -> Found:
    return Found(np.zeros(events, np.int64), np.zeros(0, np.int32), Work())


def together(parts: list[Found], events: int) -> Found:
    """What parts of an index found for the same events; a subscription is found by one of them only."""
    if len(parts) == 1:
        return parts[0]
    work = Work()
    for part in parts:
        work = work.plus(part.work)
    parts = [part for part in parts if len(part.slots)]
    if not parts:
        return nothing_found(events)._replace(work=work)
    if len(parts) == 1:
        return parts[0]._replace(work=work)
    counts = np.sum([part.counts for part in parts], axis=0)
    slots = np.empty(int(counts.sum()), np.int32)
    place = np.cumsum(counts) - counts
    for part in parts:
        _spread(part.counts, part.slots, place, slots)
    return Found(counts, slots, work)


@lean_kernel
def _spread(counts: Counts, slots: Slots, place: Counts, out: Slots) -> None:
    """Copy the slots of every event to its place, which moves on."""
    at = 0
    for event in range(len(counts)):
        to = place[UP(event)]
        for i in range(counts[UP(event)]):
            out[UP(to + i)] = slots[UP(at + i)]
        at += counts[UP(event)]
        place[UP(event)] = to + counts[UP(event)]
