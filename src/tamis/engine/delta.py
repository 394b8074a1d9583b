"""The delta: rows that are not in a segment yet. It is small, and every event looks at all of it.

Columns that grow at their end; what was published of them does not change. The narrowest predicate of each row lies in columns of
its own, which are read first:

    row         0     1     2
    dimension   7     ANY   12       of the narrowest predicate; ANY: nothing to test first
    lo, hi      10 10       MIN 99   its lowest and highest key
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.conjunctions import Conjunctions
from tamis.encoding.events import EventBatch
from tamis.encoding.growing import GrowingArray
from tamis.encoding.kernel import lean_kernel
from tamis.encoding.keys import KEY_MAX, KEY_MIN
from tamis.encoding.predicates import GrowingPredicates
from tamis.encoding.programs import ACCEPT, Programs
from tamis.engine.found import Found, Life, Slots, Work
from tamis.engine.lease import Lease
from tamis.engine.numbers import UP
from tamis.engine.owners import Owners, conjunction_holds, load_event, name_owners, packed_owners, unload_event
from tamis.engine.room import DeltaRoom
from tamis.engine.rows import Rows, concatenated_programs
from tamis.index.scan import ANY, choose_first


class Firsts(NamedTuple):
    """The narrowest predicate of each row."""

    dimension: npt.NDArray[np.int32]
    lo: npt.NDArray[np.int64]
    hi: npt.NDArray[np.int64]


class DeltaView(NamedTuple):
    """What of a delta was there at some moment."""

    firsts: Firsts
    rows: Rows
    owners: Owners

    def living(self, life: Life) -> Rows:
        """The rows whose owners are alive."""
        return self.rows.taken(np.flatnonzero(life.died[self.rows.slot] > life.now))


class Delta:
    """Rows that grow at their end. Only the one writer changes it; views stay as they are."""

    def __init__(self) -> None:
        self.lease = Lease()
        self._start = GrowingArray(np.int64)
        self._start.append(0)
        self._predicates = GrowingPredicates()
        self._slot = GrowingArray(np.int32)
        self._program = GrowingArray(np.int64)
        self._several = GrowingArray(np.bool_)
        self._sole = GrowingArray(np.int32)
        self._group = GrowingArray(np.int64)
        self._group.append(0)
        self._dimension = GrowingArray(np.int32)
        self._lo = GrowingArray(np.int64)
        self._hi = GrowingArray(np.int64)
        self._programs = Programs(*(GrowingPredicates().view(), np.zeros(0, np.int64), np.zeros(0, np.int64)))

    def __len__(self) -> int:
        return len(self._slot)

    def add(self, rows: Rows) -> None:
        """Append rows, of subscriptions that have none here yet."""
        first, count = len(self), rows.number
        self._start.extend(rows.table.start[1:] + (len(self._predicates) - rows.table.start[0]))
        self._predicates.extend(rows.table.predicates)
        self._slot.extend(rows.slot)
        self._several.extend(rows.several)
        program = rows.program
        if len(rows.programs.then):
            self._programs, program = concatenated_programs(self._programs, rows)
        self._program.extend(program)
        numbers = np.arange(first, first + count, dtype=np.int32)
        self._sole.extend(np.where((program == ACCEPT) & ~rows.several, rows.slot, ~numbers))
        self._group.extend(numbers + 1)
        for column in (self._dimension, self._lo, self._hi):
            column.grow(count)
        table = Conjunctions(self._start.view(), self._predicates.view())
        choose_first(table, numbers, self._dimension.view(), self._lo.view(), self._hi.view())

    def slots(self) -> Slots:
        return self._slot.view()

    def view(self) -> DeltaView:
        table = Conjunctions(self._start.view(), self._predicates.view())
        slot, program, several = self._slot.view(), self._program.view(), self._several.view()
        return DeltaView(
            Firsts(self._dimension.view(), self._lo.view(), self._hi.view()),
            Rows(table, slot, program, several, self._programs),
            Owners(self._sole.view(), self._group.view(), slot, program, several),
        )


def match_delta(view: DeltaView, batch: EventBatch, dimensions: int, life: Life, room: DeltaRoom) -> Found:
    """Match a batch against the rows of a delta."""
    events, rows = len(batch.start) - 1, view.rows.number
    counts = np.zeros(events, np.int64)
    parts: list[Slots] = []
    work = np.zeros(3, np.int64)
    numbers = room.numbers(rows)
    scratch = room.event(dimensions)
    given = packed_owners(view.owners, numbers.all, view.rows.table, view.rows.programs)
    event = 0
    while event < events:
        # As many events at a time as surely have room.
        stop = min(events, event + max(1, len(numbers.found) // max(rows, 1)))
        scan_delta(
            view.firsts,
            view.rows.table,
            batch,
            (event, stop),
            (scratch, room.extent(dimensions)),
            counts,
            numbers.found,
            work,
        )
        at = 0
        size = int(counts[event:stop].sum())
        while event < stop:
            out = np.empty(size, np.int32)
            event, at, filled, judged = name_owners(
                given,
                batch,
                life,
                (numbers.found, counts),
                (event, stop, at),
                scratch,
                (out, room.clauses(size)),
            )
            parts.append(out[:filled])
            work[2] += judged
            size = max(2 * size, 1024)
    slots = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
    return Found(counts, slots, Work(*work.tolist()))


@lean_kernel
def scan_delta(
    firsts: Firsts, table: Any, batch: Any, place: Any, scratch: Any, counts: Any, found: Any, work: Any
) -> None:
    """Note the rows that events satisfy; `found` has room for all."""
    dimension, lo, hi = firsts
    start, predicates = table
    v_start, v_dimension, v_lo, v_hi = batch
    event_scratch, (lowest, highest) = scratch
    filled = 0
    for event in range(place[0], place[1]):
        load_event(batch, event, event_scratch)
        for v in range(v_start[event], v_start[event + 1]):
            d = UP(v_dimension[UP(v)])
            lowest[d] = min(lowest[d], v_lo[UP(v)])
            highest[d] = max(highest[d], v_hi[UP(v)])
        before = filled
        for row in range(len(dimension)):
            d = dimension[UP(row)]
            if d == ANY or (lo[UP(row)] <= highest[UP(d)] and lowest[UP(d)] <= hi[UP(row)]):
                work[1] += 1
                if conjunction_holds(row, start, predicates, batch, event_scratch):
                    found[UP(filled)] = row
                    filled += 1
        work[0] += len(dimension)
        counts[event] = filled - before
        unload_event(batch, event, event_scratch)
        for v in range(v_start[event], v_start[event + 1]):
            d = UP(v_dimension[UP(v)])
            lowest[d], highest[d] = KEY_MAX, KEY_MIN
