"""The common part of indexes over trees of predicate spaces: inserting, deleting, and building again."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.papers.interface import Index, Matches
from tamis.papers.parts.collecting import Kernel, collect
from tamis.papers.parts.past_events import History
from tamis.papers.parts.records import Records
from tamis.papers.parts.size import held_bytes
from tamis.papers.parts.slabs import SlabArrays
from tamis.papers.ps_tree.forest import Forest
from tamis.papers.ps_tree.verifying import RowArrays, Scratch, scratch_for

PAPER = (
    "S. Ji, H.-A. Jacobsen: PS-Tree-based Efficient Boolean Expression Matching for High-Dimensional and Dense Workloads. "
    "PVLDB 12(3), 2018"
)


class ForestIndex(Index):
    """An index over a forest. Splits copy entries; when there are too many copies, all conjunctions are inserted again."""

    forest: Forest
    _records: Records
    fewest_entries = 1 << 16
    """Entries up to which an index is not built again, however many each conjunction has."""
    _live: GrowingArray
    _count: int

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.history = History()
        self._scratch: Scratch | None = None
        self._usual = 0.0
        """Matches per event, over recent events."""
        self._clear()

    def __len__(self) -> int:
        """How many conjunctions are in it."""
        return self._count

    def insert(self, conjunctions: I32s) -> None:
        if not len(conjunctions):
            return
        if 0 < self._count < len(conjunctions):
            conjunctions = np.concatenate([self._rows(), conjunctions]).astype(np.int32)
            self._clear()
        self._insert(conjunctions)
        entries, most_each = self._entered()
        if entries > max(self.fewest_entries, 4 * most_each * self._count):
            rows = self._rows()
            self._clear()
            self._insert(rows)

    def delete(self, conjunctions: I32s) -> None:
        if not len(conjunctions):
            return
        self._count -= len(conjunctions)
        if self._count == 0:
            self._scratch = None
            self._clear()
        else:
            self._delete(conjunctions)

    def observe(self, batch: EventBatch, dimensions: int) -> None:
        self.history.observe(batch)
        self.forest.count_anew(self.history)

    def _scratch_for(self, batch: EventBatch, dimensions: int) -> Scratch:
        values = int(np.diff(batch.start).max(initial=0))
        self._scratch = scratch_for(self._scratch, dimensions, self.forest.leaf_numbers, len(self._live), values)
        return self._scratch

    def _row_arrays(self) -> RowArrays:
        return RowArrays(self.table.view(), self._records.view(), self._live.view())

    def _collected(self, batch: EventBatch, kernel: Kernel) -> Matches:
        """The matches that a kernel finds, with the room that recent events needed."""
        events = len(batch.start) - 1
        found = collect(batch, kernel, 1.25 * self._usual * events)
        self._usual = len(found.event) / max(events, 1)
        return found

    def stats(self) -> dict[str, Any]:
        return {"conjunctions": self._count, "bytes": held_bytes(self, self.table)}

    def _check_counters(self, inserted: I64s) -> None:
        """Check that every leaf counts the inserted predicates that cover it."""
        predicates = self.table.view().predicates
        counts = self.forest.covering(predicates, inserted)
        covered = self.forest.covered(predicates, inserted, counts)[0]
        counted = np.bincount(covered, minlength=self.forest.leaf_numbers)
        for dimension in range(len(self.forest.view().roots)):
            for leaf in self.forest.chain(dimension):
                assert self.forest.view().trees.leaves.predicates[leaf] == counted[leaf]

    @abstractmethod
    def _clear(self) -> None:
        """Forget all conjunctions."""

    @abstractmethod
    def _rows(self) -> I32s:
        """All conjunctions in the index."""

    @abstractmethod
    def _insert(self, conjunctions: I32s) -> None: ...

    @abstractmethod
    def _entered(self) -> tuple[int, int]:
        """How many entries there are, and how many a conjunction may have when it is inserted."""

    @abstractmethod
    def _delete(self, conjunctions: I32s) -> None:
        """Drop some conjunctions, but not all."""


@lean_kernel
def drop_dead(lists: SlabArrays, numbers: I64s, live: Bools, entry: int) -> int:
    """Remove conjunctions that are not live any more from some lists; returns how many entries, of `entry` numbers each."""
    begin, size, data = lists.begin, lists.size, lists.data
    dropped = 0
    for number in numbers:
        kept = begin[number]
        for i in range(begin[number], begin[number] + size[number], entry):
            if live[data[i]]:
                for j in range(entry):
                    data[kept + j] = data[i + j]
                kept += entry
        dropped += (begin[number] + size[number] - kept) // entry
        size[number] = kept - begin[number]
    return dropped
