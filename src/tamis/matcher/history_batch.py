"""Deciding the joins of a batch: all rows that ask, together; what is left, row by row.

parts of the batch -->  (row, slot) pairs whose slot has a rest  --by stretch-->  `RowDecisions`
                                                                 --by row-->      `EventJoins`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tamis.earlier.chunks import Chunk
from tamis.earlier.join_table import Always, EventJoins, JoinTable
from tamis.earlier.marks import without_places
from tamis.earlier.retained import Intake
from tamis.earlier.row_decisions import RowDecisions
from tamis.earlier.row_programs import OPEN, TRUE
from tamis.earlier.shelf import Window
from tamis.kernels.bits import first_half, halves, second_half
from tamis.kernels.numbers import Bools, I64s
from tamis.language.expression import Expression
from tamis.matcher.naming import pieces
from tamis.matcher.store import Part

_MOST_PAIRS = 1 << 20
"""Pairs of a row and an expression that are decided together, if joins precede nothing. Only a single row may have more."""
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
    """The histories of the rows of a batch."""

    firsts: I64s
    """The position of the first earlier event of each row."""
    base: int
    """The position of the first row."""
    stretches: list[tuple[int, int]]


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


class Asked(NamedTuple):
    """The slots of a part that have a rest."""

    places: I64s
    """Places among the slots of the part."""
    numbers: I64s
    """The numbers of their rests."""
    rows: I64s
    """The rows of their events, ascending."""


def asking_in(part: Part, table: JoinTable) -> Asked:
    """The slots of a part that have a rest."""
    places, numbers = table.with_rest(part.slots)
    return Asked(places, numbers.astype(np.int64), rows_of(part, places))


class BatchJoins:
    """The joins of a batch of events over one history without gaps. The events are not retained yet."""

    def __init__(self, table: JoinTable, window: Window, chunk: Chunk, plan: BatchPlan) -> None:
        self._table, self._window, self._chunk = table, window, chunk
        self._firsts, self._base, self._all = plan
        self._always: Sequence[Always] = ()
        self._stretches: list[tuple[I64s, RowDecisions]] = []
        """The rows that ask, and their decisions."""

    def decide(self, parts: Sequence[Part], asked: Sequence[Asked], always: Sequence[Always]) -> Iterator[Part]:
        """The parts with the slots that events satisfy. A part with many slots becomes several."""
        self._always = always
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
                yield from self._with_always(part, of_part)
            else:
                yield without(part, of_part.places[~self._hold(of_part.numbers, of_part.rows)])
        self._table.decided += sum(decisions.decided for _, decisions in self._stretches)
        self._table.held += sum(decisions.held for _, decisions in self._stretches)

    def _rest(self, number: int) -> Expression:
        """The rest with a number, or for a negative one what is decided for every event, counted from -1 down."""
        return self._table.rest(number) if number >= 0 else self._always[-1 - number].expression

    def _hold(self, numbers: I64s, rows: I64s) -> Bools:
        """Whether the rest with each number holds for its row. Rows ascend."""
        truths = np.full(len(rows), OPEN, np.int8)
        for of, decisions in self._stretches:
            inside = slice(*np.searchsorted(rows, (of[0], of[-1] + 1)).tolist())
            if inside.start < inside.stop:
                distinct, which = np.unique(numbers[inside], return_inverse=True)
                rests = list(map(self._rest, distinct.tolist()))
                truths[inside] = decisions.truths(rests, which, np.searchsorted(of, rows[inside]))
        holds: Bools = truths == TRUE
        for places, joins in self._one_by_one(np.flatnonzero(truths == OPEN), rows):
            holds[places] = [joins.truth(self._rest(number)) is True for number in numbers[places].tolist()]
        return holds

    def _one_by_one(self, places: I64s, rows: I64s) -> Iterator[tuple[I64s, EventJoins]]:
        """The places of each row, row after row, and what decides joins for it."""
        if not len(places):
            return
        distinct, starts = np.unique(rows[places], return_index=True)
        events = self._chunk.events(distinct.tolist(), self._table.attributes())
        for row, event, of_row in zip(distinct.tolist(), events, np.split(places, starts[1:]), strict=True):
            joins = EventJoins(event, self._window.at(int(self._firsts[row]), self._base + row))
            yield of_row, joins
            self._table.note(joins)

    def _kept(self, part: Part, asked: Asked) -> tuple[Part, list[I64s]]:
        """The part without the slots whose rest does not hold, and for each of `always` the places of rows where it holds."""
        count, size = len(part.counts), len(self._always)
        holds: list[list[I64s]] = [[] for _ in self._always]
        gone = []
        step = max(_MOST_PAIRS // size, 1)
        for start in range(0, count, step):
            rows = part.first + np.arange(start, min(start + step, count))
            mine = slice(*np.searchsorted(asked.rows, (rows[0], rows[-1] + 1)).tolist())
            numbers = np.concatenate([asked.numbers[mine], np.tile(-1 - np.arange(size), len(rows))])
            of_pairs = np.concatenate([asked.rows[mine], np.repeat(rows, size)])
            order = np.argsort(of_pairs, kind="stable")
            found = np.empty(len(order), np.bool_)
            found[order] = self._hold(numbers[order], of_pairs[order])
            places = asked.places[mine]
            gone.append(places[~found[: len(places)]])
            for of, of_rows in zip(holds, found[len(places) :].reshape(-1, size).T, strict=True):
                of.append(start + np.flatnonzero(of_rows))
        return without(part, np.concatenate(gone)), list(map(np.concatenate, holds))

    def _with_always(self, part: Part, asked: Asked) -> Iterator[Part]:
        """The part with the slots that were kept, and those of what holds without a constant part."""
        always, count = self._always, len(part.counts)
        part, holds = self._kept(part, asked)
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


def plan_of(intake: Intake, shortest: int, asks: int) -> BatchPlan | None:
    """How to decide a batch together; None if its histories have gaps, or too few pairs of a row and a rest ask in a stretch."""
    if asks < shortest:
        return None
    firsts = intake.firsts()
    stretches = None if firsts is None else stretches_of(firsts, intake.base, shortest)
    if firsts is None or stretches is None or asks < shortest * len(stretches):
        return None
    return BatchPlan(firsts, intake.base, stretches)
