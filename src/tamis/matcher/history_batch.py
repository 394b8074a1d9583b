"""Deciding the joins of a batch: for each distinct rest, all rows that need it at once; what is left, row by row.

parts of the batch -->  (row, slot) pairs whose slot has a rest  --by rest-->  `RowDecisions`
                                                                 --by row-->   `EventJoins`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tamis.earlier.chunks import Chunk
from tamis.earlier.join_table import Always, EventJoins, JoinTable
from tamis.earlier.marks import without_places
from tamis.earlier.retained import Intake
from tamis.earlier.row_decisions import OPEN, TRUE, RowDecisions
from tamis.earlier.shelf import Window
from tamis.kernels.bits import first_half, halves, second_half
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.language.expression import Expression
from tamis.matcher.naming import pieces
from tamis.matcher.store import Part

_FEW = 3
"""So few rows are decided one by one."""
_MOST_MATCHES = 1 << 20
"""Matches of a part, if joins precede nothing. Only a single event may have more. A part takes about 60 bytes a match while it is
made, and 4 later."""


def stretches_of(firsts: I64s, base: int, shortest: int) -> list[tuple[int, int]] | None:
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


def rows_of(part: Part, places: I64s) -> I64s:
    """The rows of the slots at some places of a part."""
    rows: I64s = part.first + np.searchsorted(np.cumsum(part.counts), places, "right")
    return rows


def without(part: Part, gone: I64s) -> Part:
    """The part without the slots at some places, which ascend."""
    if not len(gone):
        return part
    counts = part.counts - np.bincount(rows_of(part, gone) - part.first, minlength=len(part.counts))
    return part._replace(counts=counts, slots=without_places(part.slots, gone))


class _Asked(NamedTuple):
    """The slots of a part that have a rest."""

    places: I64s
    """Places among the slots of the part."""
    numbers: I32s
    """The numbers of their rests."""
    rows: I64s
    """The rows of their events."""


class BatchJoins:
    """The joins of a batch of events over one history without gaps. The events are not retained yet."""

    def __init__(self, table: JoinTable, window: Window, chunk: Chunk, plan: BatchPlan) -> None:
        self._table, self._window, self._chunk = table, window, chunk
        self._firsts, self._base, self._all, self._few = plan
        self._stretches: list[tuple[I64s, RowDecisions]] = []
        """The rows that ask, and their decisions."""

    def decide(self, parts: Sequence[Part], always: Sequence[Always]) -> Iterator[Part]:
        """The parts with the slots that events satisfy. A part with many slots becomes several."""
        asked = list(map(self._asked_of, parts))
        asks = np.full(len(self._firsts), bool(always))
        for each in asked:
            asks[each.rows] = True
        rows = np.flatnonzero(asks)
        for start, end in self._all:
            of = rows[slice(*np.searchsorted(rows, (start, end)).tolist())]
            if len(of):
                decisions = RowDecisions(self._window, self._chunk, self._firsts[of], of, self._base)
                self._stretches.append((of, decisions))
        for part, of_part in zip(parts, asked, strict=True):
            if always and len(part.counts):
                yield from self._with_always(part, of_part, always)
            else:
                yield self._satisfied(part, of_part)
        self._table.decided += sum(decisions.decided for _, decisions in self._stretches)
        self._table.held += sum(decisions.held for _, decisions in self._stretches)

    def _asked_of(self, part: Part) -> _Asked:
        places, numbers = self._table.with_rest(part.slots)
        return _Asked(places, numbers, rows_of(part, places))

    def _satisfied(self, part: Part, asked: _Asked) -> Part:
        """The part without the slots whose rest does not hold."""
        return without(part, asked.places[~self._hold(asked.numbers, asked.rows)])

    def _hold(self, numbers: I32s, rows: I64s) -> Bools:
        """Whether the rest with each number holds for its row."""
        holds = np.zeros(len(numbers), np.bool_)
        is_open = np.ones(len(numbers), np.bool_)
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order], prepend=-2, append=-2))
        for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            if end - start <= self._few:
                continue
            places = order[start:end]
            is_new = np.diff(rows[places], prepend=-1) > 0  # Several slots of a row may have the same rest.
            distinct = rows[places][is_new]
            if len(distinct) > self._few:
                truths = self._truths(self._table.rest(int(numbers[places[0]])), distinct)[np.cumsum(is_new) - 1]
                holds[places], is_open[places] = truths == TRUE, truths == OPEN
        for places, joins in self._one_by_one(np.flatnonzero(is_open), rows):
            holds[places] = self._table.holds(numbers[places].tolist(), joins)
        return holds

    def _truths(self, rest: Expression, rows: I64s) -> I64s:
        truths = np.full(len(rows), OPEN)
        for of, decisions in self._stretches:
            inside = slice(*np.searchsorted(rows, (of[0], of[-1] + 1)).tolist())
            if inside.start < inside.stop:
                truths[inside] = decisions.truths(rest, np.searchsorted(of, rows[inside]))
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

    def _with_always(self, part: Part, asked: _Asked, always: Sequence[Always]) -> Iterator[Part]:
        """The part with the slots that were kept, and those of what holds without a constant part."""
        part = self._satisfied(part, asked)
        count = len(part.counts)
        holds = [self._always_holds(each, part.first + np.arange(count)) for each in always]
        owners = np.repeat(np.arange(count), part.counts)
        sizes = np.bincount(owners, minlength=count)
        for each, rows in zip(always, holds, strict=True):
            sizes[rows] += len(each.slots)
        for start, end in pieces(np.append(0, np.cumsum(sizes)), _MOST_MATCHES):
            inside = slice(*np.searchsorted(owners, (start, end)).tolist())
            of_event, found = [owners[inside] - start], [part.slots[inside]]
            for each, rows in zip(always, holds, strict=True):
                rows = rows[slice(*np.searchsorted(rows, (start, end)).tolist())] - start
                of_event.append(np.repeat(rows, len(each.slots)))
                found.append(np.tile(each.slots, len(rows)))
            pairs = halves(np.concatenate(of_event, dtype=np.int64), np.concatenate(found, dtype=np.int64))
            pairs.sort()  # `np.unique` makes a hash table, which took eight times as long.
            pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]]  # A slot may have both parts.
            counts = np.bincount(first_half(pairs), minlength=end - start)
            satisfied = second_half(pairs).astype(np.int32)
            yield part._replace(first=part.first + start, counts=counts, slots=satisfied)

    def _always_holds(self, each: Always, rows: I64s) -> I64s:
        """The places of the rows for which an expression holds."""
        truths = self._truths(each.expression, rows)
        for [at], joins in self._one_by_one(np.flatnonzero(truths == OPEN), rows):
            truths[at] = TRUE if joins.truth(each.expression) is True else 0
        return np.flatnonzero(truths == TRUE)


def plan_of(intake: Intake, shortest: int) -> BatchPlan | None:
    """How to decide a batch together; None if its histories have gaps, or its stretches are too short."""
    firsts = intake.firsts()
    stretches = None if firsts is None else stretches_of(firsts, intake.base, shortest)
    if firsts is None or stretches is None:
        return None
    return BatchPlan(firsts, intake.base, stretches, min(_FEW, shortest - 1))
