"""A segment: an immutable index over the rows of some subscriptions, and how a batch is matched against it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions, conjunctions_taken
from tamis.encoding.expressions.programs import ACCEPT, Programs
from tamis.engine.layout.access_path import Access, access_of
from tamis.engine.layout.costs import USUAL_COSTS, Costs
from tamis.engine.layout.forecast import Forecast
from tamis.engine.layout.limits import USUAL_LAYOUT_LIMITS, LayoutLimits
from tamis.engine.layout.lookup import BEGIN
from tamis.engine.layout.record_words import MOST_ROWS
from tamis.engine.layout.scale import MOST_SPACES
from tamis.engine.layout.segment_build import Body, SegmentFullError, build
from tamis.engine.matching.match import NO_ROOM_SLOTS, Matching, RowsCall, match_events, match_rows
from tamis.engine.matching.owners import NamingScratch, OwnerArrays, Owners, Place, numbering_of, slot_numbers
from tamis.engine.matching.results import WORK, Found, Life, Slots, Work
from tamis.engine.matching.thread_scratch import ThreadScratch
from tamis.engine.rows import Rows, distinct, nbytes, without_idle_programs
from tamis.engine.slot_lease import Lease
from tamis.engine.watch import Watch
from tamis.kernels.background import checkpoint
from tamis.kernels.by_address import address_of_kernel
from tamis.kernels.fields import packed_fields
from tamis.kernels.packed import address_of
from tamis.kernels.ranges import span_indices


class Segment:
    """Rows that do not change any more, and the index over them."""

    def __init__(self, table: Conjunctions, owners: Owners, programs: Programs, body: Body, forecast: Forecast) -> None:
        self.table = table
        self.owners = owners
        self.programs = programs
        self.body = body
        self.forecast = forecast
        self.watch = Watch(float(forecast.entries[0]))
        self.owned = int(np.count_nonzero(owners.sole >= 0)) + len(owners.slot)
        """The number of rows, equal rows included."""
        self.lease = Lease()
        for array in _arrays((table, owners, programs, body)):
            # Numba compiles kernels again for read-only arrays, as those of mapped files. So all arrays are read-only.
            array.setflags(write=False)
        self.numbering = numbering_of(owners)
        named = OwnerArrays(owners, body.row, table, programs, self.numbering)
        self.packed = packed_fields(body), packed_fields(named)
        """The body and the owners, packed for kernels."""

    @classmethod
    def of(
        cls,
        rows: Rows,
        sample: EventBatch | None,
        costs: Costs = USUAL_COSTS,
        limits: LayoutLimits = USUAL_LAYOUT_LIMITS,
    ) -> Segment:
        """Build the index over some rows."""
        checkpoint()
        table, owners = distinct(rows)
        checkpoint()
        body, forecast = build(table, sample, slot_numbers(owners.sole, MOST_ROWS), costs, limits)
        return cls(table, owners.by_row(body.row), rows.programs, body, forecast)

    def __len__(self) -> int:
        """The number of distinct conjunctions."""
        return len(self.table.start) - 1

    def rows(self, life: Life) -> Rows:
        """The rows whose owners are alive."""
        owners = self.owners
        alone = np.flatnonzero(owners.sole >= 0)
        shared = np.flatnonzero(owners.sole < 0)
        groups = ~owners.sole[shared]
        sizes = np.diff(owners.start)[groups]
        edges = span_indices(owners.start[:-1][groups], sizes)
        slot = np.concatenate((owners.sole[alone], owners.slot[edges]))
        alive = np.ones(len(slot), np.bool_) if len(life.died) == 0 else life.died[slot] > life.now
        conjunction = np.concatenate((self.body.row[alone], np.repeat(self.body.row[shared], sizes)))[alive]
        program = np.concatenate((np.full(len(alone), ACCEPT, np.int64), owners.program[edges]))
        several = np.concatenate((np.zeros(len(alone), np.bool_), owners.several[edges]))
        table = conjunctions_taken(self.table, conjunction)
        return without_idle_programs(Rows(table, slot[alive], program[alive], several[alive], self.programs))

    def accesses(self, slot: int) -> list[tuple[Access, bool]]:
        """How events find each row of a subscription, and whether a program decides in the end."""
        owners = self.owners
        ours = np.flatnonzero(owners.slot == slot)
        groups = np.searchsorted(owners.start, ours, side="right") - 1
        rows = [*np.flatnonzero(owners.sole == slot), *(np.flatnonzero(owners.sole == ~group)[0] for group in groups)]
        judged = [False] * (len(rows) - len(ours)) + (owners.program[ours] != ACCEPT).tolist()
        return [
            (access_of(self.table, int(self.body.row[row]), self.body, self.forecast), program)
            for row, program in zip(rows, judged, strict=True)
        ]

    def slots(self) -> Slots:
        """The slots of all owners. A slot may occur several times."""
        return np.concatenate((self.owners.sole[self.owners.sole >= 0], self.owners.slot))

    @property
    def nbytes(self) -> int:
        """The bytes of the index, which matching reads."""
        return nbytes((self.body, self.owners, self.numbering))

    @property
    def table_nbytes(self) -> int:
        """The bytes of the rows in keys, which merging reads, and matching only where it must compare keys."""
        return nbytes((self.table, self.programs))

    @property
    def statistics_nbytes(self) -> int:
        """The bytes of the statistics that it was planned with, without the scales that matching reads too."""
        lookup = self.body.lookup
        return nbytes(self.forecast) - nbytes((lookup.local, lookup.cuts, lookup.table, lookup.shift))

    def stats(self) -> dict[str, Any]:
        begin = self.body.directory.begin
        cells, dimensions = self.body.cells, self.body.dimensions
        always = begin[cells + dimensions : cells + dimensions + 2].astype(np.int64) & BEGIN
        return {
            "rows": self.owned,
            "conjunctions": len(self),
            "dimensions": dimensions,
            "wide_dimensions": len(self.body.lookup.shift) // (MOST_SPACES + 1),
            "lists": int(np.count_nonzero(np.diff(begin.astype(np.int64) & BEGIN))),
            "entries": self.body.entries,
            "pairs": self.body.pairs.entries,
            "guards": self.body.guards,
            "runs": len(self.body.runs.list),
            "always": int(always[1] - always[0]),
            "bytes": self.nbytes,
            "table_bytes": self.table_nbytes,
            "statistics_bytes": self.statistics_nbytes,
            "expected": self.watch.expected,
            "observed": self.watch.observed,
            "drift": self.watch.drift,
            "observed_events": self.watch.events,
        }

    def match(self, batch: EventBatch, dimensions: int, life: Life, scratches: ThreadScratch) -> Found:
        """Match a batch, in scratch space of the calling thread."""
        counts = np.zeros(len(batch.start) - 1, np.int64)
        parts: list[Slots] = []
        work = np.zeros(WORK, np.int64)
        scratch = scratches.take(self)
        place = Place(0, 0, 0)
        size = scratch.slots_for(len(counts))
        while place.event < len(counts):
            out = np.empty(size, np.int32)
            body, owners = self.packed
            call = packed_fields(RowsCall(body, scratch.packed_scratch, batch, counts, scratch.rows, work))
            matching = Matching(address_of_kernel(match_rows), call, address_of(call))
            naming = NamingScratch(scratch.places(dimensions), out, scratch.repeated(size))
            place, filled, lack, need = match_events(matching, owners, batch, life, place, naming)
            if filled:
                parts.append(out[:filled])
            if lack == NO_ROOM_SLOTS:
                size *= 2
            elif lack:
                scratch.enlarge(lack, need)
        slots = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
        scratch.note(len(slots), len(counts))
        scratches.give(self, scratch)
        done = Work(*work.tolist())
        self.watch.add(len(counts), done.candidates)
        return Found(counts, slots, done)


def segments_of(rows: Rows, sample: EventBatch | None) -> list[Segment]:
    """Build some rows into as few segments as can hold them."""
    rows = without_idle_programs(rows)
    try:
        return [Segment.of(rows, sample)]
    except SegmentFullError:
        # Rows of one subscription stay together.
        order = np.argsort(rows.slot, kind="stable")
        middle = int(np.searchsorted(rows.slot[order], rows.slot[order[len(order) // 2]]))
        halves = (order[:middle], order[middle:]) if middle else (order[: len(order) // 2], order[len(order) // 2 :])
        return [segment for half in halves for segment in segments_of(rows.taken(half), sample)]


def _arrays(nest: Any) -> list[npt.NDArray[Any]]:
    if isinstance(nest, int):
        return []
    return [nest] if isinstance(nest, np.ndarray) else [array for part in nest for array in _arrays(part)]
