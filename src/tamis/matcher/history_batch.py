"""Deciding the joins of a batch: for each distinct rest, all rows that need it at once; what is left, row by row.

parts of the batch -->  (row, slot) pairs whose slot has a rest  --by rest-->  `RowDecisions`
                                                                 --by row-->   `EventJoins`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tamis.earlier.chunks import Chunk
from tamis.earlier.join_table import NO_REST, Always, EventJoins, JoinTable
from tamis.earlier.retained import Intake
from tamis.earlier.row_decisions import OPEN, TRUE, RowDecisions
from tamis.earlier.shelf import Window
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.language.expression import Expression
from tamis.matcher.store import Part

_FEW = 3
"""Rows that are decided one by one faster than together."""


def segments(firsts: I64s, base: int, shortest: int) -> list[tuple[int, int]] | None:
    """Stretches of rows, of which no row leaves before the last one has come. None if they are too short."""
    found, start = [], 0
    while start < len(firsts):
        end = int(np.searchsorted(firsts, base + start, "right"))
        if end - start < shortest and end < len(firsts):
            return None
        found.append((start, end))
        start = end
    return found


class BatchPlan(NamedTuple):
    """The rows of a batch, and their histories."""

    firsts: I64s
    """The position of the first earlier event of each row."""
    base: int
    """The position of the first row."""
    stretches: list[tuple[int, int]]
    few: int
    """Rows that are decided one by one although they need the same rest."""


class BatchJoins:
    """The joins of a batch of events over one history without gaps. The events are not retained yet."""

    def __init__(self, table: JoinTable, window: Window, chunk: Chunk, plan: BatchPlan) -> None:
        self._table, self._window, self._chunk = table, window, chunk
        self._firsts, self._base, self._all, self._few = plan
        self._stretches: dict[tuple[int, int], RowDecisions] = {}

    def _of(self, stretch: tuple[int, int]) -> RowDecisions:
        found = self._stretches.get(stretch)
        if found is None:
            start, end = stretch
            found = RowDecisions(self._window, self._chunk, self._firsts[start:end], self._base + start, start)
            self._stretches[stretch] = found
        return found

    def decide(self, part: Part, always: Sequence[Always]) -> Part:
        """The part with the slots that events satisfy."""
        numbers = self._table.numbers(part.slots)
        asked = np.flatnonzero(numbers != NO_REST)
        if not len(asked) and not always:
            return part
        ends = np.cumsum(part.counts)
        rows = part.first + np.searchsorted(ends, asked, "right")
        kept = np.ones(len(part.slots), np.bool_)
        kept[asked] = self._hold(numbers[asked], rows)
        if always:
            return self._with_always(part, kept, always)
        gone = np.bincount(np.searchsorted(ends, np.flatnonzero(~kept), "right"), minlength=len(ends))
        return part._replace(counts=part.counts - gone, slots=part.slots[kept])

    def _hold(self, numbers: I32s, rows: I64s) -> Bools:
        """Whether the rest with each number holds for its row."""
        holds = np.zeros(len(numbers), np.bool_)
        is_open = np.ones(len(numbers), np.bool_)
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order], prepend=-2, append=-2))
        for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            if end - start > self._few:
                places = order[start:end]
                truths = self._truths(self._table.rest(int(numbers[places[0]])), rows[places])
                holds[places], is_open[places] = truths == TRUE, truths == OPEN
        for places, joins in self._one_by_one(np.flatnonzero(is_open), rows):
            holds[places] = self._table.holds(numbers[places].tolist(), joins)
        return holds

    def _truths(self, rest: Expression, rows: I64s) -> I64s:
        truths = np.full(len(rows), OPEN)
        for stretch in self._all:
            inside = slice(*np.searchsorted(rows, stretch).tolist())
            if inside.start < inside.stop:
                decisions = self._of(stretch)
                truths[inside] = decisions.truths(rest, rows[inside] - stretch[0])
        return truths

    def _one_by_one(self, places: I64s, rows: I64s) -> Iterator[tuple[I64s, EventJoins]]:
        """The places of each row, row after row, and what decides joins for it."""
        if not len(places):
            return
        places = places[np.argsort(rows[places], kind="stable")]
        distinct, starts = np.unique(rows[places], return_index=True)
        events = self._chunk.events(distinct.tolist(), self._table.attributes())
        for row, event, of_row in zip(distinct.tolist(), events, np.split(places, starts[1:]), strict=True):
            joins = EventJoins(event, self._window.at(int(self._firsts[row]), self._base + row))
            yield of_row, joins
            self._table.note(joins)

    def _with_always(self, part: Part, kept: Bools, always: Sequence[Always]) -> Part:
        """The part with the slots that were kept, and those of what holds without a constant part."""
        count = len(part.counts)
        rows = np.arange(part.first, part.first + count)
        of_event, slots = [np.repeat(np.arange(count), part.counts)[kept]], [part.slots[kept]]
        for each in always:
            truths = self._truths(each.expression, rows)
            for [at], joins in self._one_by_one(np.flatnonzero(truths == OPEN), rows):
                truths[at] = TRUE if joins.truth(each.expression) is True else 0
            holds = np.flatnonzero(truths == TRUE)
            of_event.append(np.repeat(holds, len(each.slots)))
            slots.append(np.tile(each.slots, len(holds)))
        # A slot may have both parts.
        pairs = np.unique(np.concatenate(of_event) << 32 | np.concatenate(slots).astype(np.int64))
        counts = np.bincount(pairs >> 32, minlength=count)
        return part._replace(counts=counts, slots=(pairs & 0xFFFF_FFFF).astype(np.int32))

    def count_decided(self) -> None:
        """Count the joins that were decided for many rows at once."""
        self._table.decided += sum(each.decided for each in self._stretches.values())
        self._table.held += sum(each.held for each in self._stretches.values())


def plan_of(intake: Intake, shortest: int) -> BatchPlan | None:
    """How to decide a batch together; None if its histories have gaps, or its stretches are too short."""
    firsts = intake.firsts()
    stretches = None if firsts is None else segments(firsts, intake.base, shortest)
    if firsts is None or stretches is None:
        return None
    return BatchPlan(firsts, intake.base, stretches, min(_FEW, shortest - 1))
