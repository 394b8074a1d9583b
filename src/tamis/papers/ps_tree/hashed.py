"""`pst-hash`: a hash table of conjunctions, by the spaces of N of their predicates (PSTHash).

S. Ji, H.-A. Jacobsen: PS-Tree-based Efficient Boolean Expression Matching for High-Dimensional and Dense Workloads. PVLDB
12(3), 2018: section 6, with the trees of section 4 and the access predicates of section 3.3.

    S1  a1 = 1   a2 = -1   a3 < 0         spaces   a1   1-3 [-128,1)   1-2 [1,1]    1-1 (1,127]
    S2  a1 = 1   a2 = -1   a3 > 0                  a2   2-3            2-2 [-1,-1]  2-1
    S3  a1 = 1   a2 < -1   a3 = 0                  a3   3-3            3-2 [0,0]    3-1
    S4  a1 < 1   a2 = -1   a3 = 0         cells    1-2 2-2 {S1,S2}     1-2 3-2 {S3}     2-2 3-2 {S4}

    role      predicate of the table -> ACCESS: it is in a tree, and decided by the cell; 0: verified
    cells     see `cells`
    records   the predicates to verify, the most selective first
    small     a PSTBloom for conjunctions with fewer than N predicates on different dimensions, or with too many cells

A single-valued event has a leaf in each of its dimensions and looks up all combinations of N leaves (Alg. 7). Each step handles
many keys at a time: fetch places, fetch lists, fetch records. Leaves without a cell are left out. Any other event may have
several leaves in a dimension; stamps mark the conjunctions that it has met. If an event has more keys than there are
conjunctions, it tests all conjunctions instead.

Invariants: a conjunction is in the cells of all combinations of the leaves that its access predicates cover, or in
`small`. The predicate counter of a leaf is the number of access predicates that cover it.

Departures from the paper: a conjunction that would be in more than `most_cells` cells is in `small` too. `observe` counts events,
and newly cut leaves count past events again. If a batch is larger than the index, the index is built again with both: all cuts
first, then the cells. When leaves merge, the cells of the leaf that goes are dropped: the cells of the other leaf have the same
conjunctions. Bits say whether a cell may exist before the hash table is read (`cells`). The leaves of values are found as in
`lists`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import Bools, I32s, I64s, U8s
from tamis.kernels.ranges import span_indices
from tamis.papers.interface import Counters, Matches
from tamis.papers.options import Options, option
from tamis.papers.parts.past_events import by_selectivity
from tamis.papers.parts.records import Records
from tamis.papers.ps_tree.bloom import BloomOptions, PSTBloom
from tamis.papers.ps_tree.cells import Cells
from tamis.papers.ps_tree.covering import gathered
from tamis.papers.ps_tree.forest import Forest, Log
from tamis.papers.ps_tree.forest_index import PAPER, ForestIndex
from tamis.papers.ps_tree.meeting import key_scratch, match_cells

_ABSENT = int(Mode.ABSENT)
_MOST_DIMENSIONS = 3
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class HashOptions(BloomOptions):
    """The options of `pst-hash`."""

    access_predicates: int = option(2, least=1, most=_MOST_DIMENSIONS)
    """N, the number of predicates that make the key of a cell: 1, 2 or 3."""
    most_cells: int = option(64, least=1)
    """Most cells of a conjunction when it is inserted."""


class PSTHash(ForestIndex):
    """Conjunctions in cells."""

    name = "pst-hash"
    summary = "a hash table by the predicate spaces of two predicates of each conjunction"
    paper = PAPER + ", sections 3, 4 and 6"
    options_type: ClassVar[type[Options]] = HashOptions

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._keys = key_scratch()

    def _clear(self) -> None:
        self._n = self.options.access_predicates
        self.forest = Forest(walk=self.options.search == "walk")
        self.cells = Cells(self._n)
        self.small = PSTBloom(self.table, self._small_options(), self.kind_of, self.name_of)
        self.small.history = self.history
        self._records = Records()
        self._role = GrowingArray(np.uint8)
        self._live = GrowingArray(np.bool_)
        self._in_small = GrowingArray(np.bool_)
        self._count = 0

    def _small_options(self) -> BloomOptions:
        options = self.options
        return BloomOptions(**{name: getattr(options, name) for name in BloomOptions.__dataclass_fields__})

    # -- inserting

    def _entered(self) -> tuple[int, int]:
        return self.cells.entries, self.options.most_cells

    def _rows(self) -> I32s:
        return np.flatnonzero(self._live.view() | self._in_small.view()).astype(np.int32)

    def _insert(self, conjunctions: I32s) -> None:
        table = self.table.view()
        for column in (self._live, self._in_small):
            column.grow(max(0, len(self.table) - len(column)), fill=False)
        self._role.grow(max(0, len(table.predicates.dimension) - len(self._role)), fill=0)
        order, start = by_selectivity(table, conjunctions, self.history)
        role = self._role.view()
        access = np.empty((len(conjunctions), self._n), np.int64)
        fits = np.empty(len(conjunctions), np.bool_)
        _choose(table.predicates, order, start, access, fits)
        fits &= self._cut(table, access, fits)
        role[access[fits]] = 1
        rows = np.flatnonzero(fits)
        rows = rows[self._by_cell(table, access[rows])]
        inside = conjunctions[rows]
        self._records.put(table, inside, *_others(role, order, start, rows))
        for first in range(0, len(inside), _AT_ONCE):
            part = inside[first : first + _AT_ONCE]
            keys, owners = self._keys_of(table, part)
            records = self._records.view()
            entries = np.column_stack([part, records.at[part], records.size[part]]).astype(np.int32)
            self.cells.enter(keys, entries[owners])
        self._live.view()[inside] = True
        self.small.insert(conjunctions[~fits])
        self._in_small.view()[conjunctions[~fits]] = True
        self._count += len(conjunctions)

    def _cut(self, table: Conjunctions, access: I64s, fits: Bools) -> Bools:
        """Cut the spaces of access predicates; returns which conjunctions have few enough cells. Undoes the other cuts."""
        chosen, most = access[fits].ravel(), self.options.most_cells
        # The owner of a predicate is its place in `chosen`.
        predicates, source, place = gathered(table.predicates, chosen, np.arange(len(chosen), dtype=np.int32))
        every = np.arange(len(source))
        log = self.forest.cut(predicates, every, self.history)
        self.forest.copy_chains(len(chosen))
        self.cells.reserve(self.forest.leaf_numbers)
        if len(self.history):
            self.forest.recount(np.concatenate(log), self.history)
        self.cells.split(log)
        counts = np.empty(len(chosen), np.int64)
        counts[place] = self.forest.covering(predicates, every, most)
        few = counts.reshape(-1, self._n).astype(np.float64).prod(axis=1) <= most
        kept = np.repeat(few, self._n)[place]
        self._follow_merges(self.forest.release(predicates, every[~kept]))
        self.forest.copy_chains(len(chosen))
        self.forest.count_predicates(predicates, every[kept], 1)
        result = np.zeros(len(fits), np.bool_)
        result[np.flatnonzero(fits)[few]] = True
        return result

    def _follow_merges(self, log: Log) -> None:
        self.cells.merge(log)

    def _by_cell(self, table: Conjunctions, access: I64s) -> npt.NDArray[np.intp]:
        """An order that puts conjunctions of one cell together, so that their records are neighbours in memory."""
        chosen = np.sort(access, axis=1).ravel()  # predicates of a conjunction are in the order of their dimensions
        counts = self.forest.covering(table.predicates, chosen)
        leaves, start = self.forest.covered(table.predicates, chosen, counts)
        return np.lexsort(leaves[start[:-1]].reshape(-1, self._n).T[::-1])

    def _keys_of(self, table: Conjunctions, inside: I32s) -> tuple[I32s, npt.NDArray[np.intp]]:
        """The keys of all cells of some conjunctions, and for each key the place of its conjunction in `inside`."""
        chosen = self._access_of(table, inside)
        counts = self.forest.covering(table.predicates, chosen)
        leaves, start = self.forest.covered(table.predicates, chosen, counts)
        sizes = counts.reshape(-1, self._n).prod(axis=1)
        keys = np.empty((int(sizes.sum()), self._n), np.int32)
        _combine(leaves, start, keys)
        return keys, np.repeat(np.arange(len(inside)), sizes)

    def _access_of(self, table: Conjunctions, inside: I32s) -> I64s:
        """The N access predicates of each conjunction, in the order of their dimensions."""
        chosen = span_indices(table.start[inside], table.start[inside + 1] - table.start[inside])
        return chosen[self._role.view()[chosen] == 1]

    # -- deleting

    def _delete(self, conjunctions: I32s) -> None:
        table = self.table.view()
        small = self._in_small.view()[conjunctions]
        self.small.delete(conjunctions[small])
        self._in_small.view()[conjunctions[small]] = False
        inside = conjunctions[~small]
        self._live.view()[inside] = False
        self.cells.remove(self._keys_of(table, inside)[0], self._live.view())
        words = len(self._records.view().words)
        self._records.remove(inside)
        if len(self._records.view().words) < words:
            self.cells.relocate(self._records.view())
        chosen = self._access_of(table, inside)
        self.forest.count_predicates(table.predicates, chosen, -1)
        self._follow_merges(self.forest.release(table.predicates, chosen))
        self._role.view()[chosen] = 0

    # -- matching

    def observe(self, batch: EventBatch, dimensions: int) -> None:
        super().observe(batch, dimensions)
        self.small.forest.count_anew(self.history)

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        events = len(batch.start) - 1
        self.forest.flatten(events)
        scratch = self._scratch_for(batch, dimensions)
        kernel = partial(
            match_cells, self.forest.view(), self.cells.view(), self._row_arrays(), batch, scratch, self._keys
        )
        found = self._collected(batch, kernel)
        if not len(self.small):
            return found
        return _together(events, found, self.small.match(batch, dimensions))

    # -- about it

    def stats(self) -> dict[str, Any]:
        return {
            **super().stats(),
            "leaves": self.forest.leaves,
            "cells": len(self.cells),
            "entries": self.cells.entries,
            "small": len(self.small),
        }

    def check(self) -> None:
        self.forest.check(self.history)
        self.cells.check(self._records.view())
        self.small.check()
        live, small = self._live.view(), self._in_small.view()
        assert np.count_nonzero(live) + np.count_nonzero(small) == self._count
        assert not (live & small).any()
        assert len(self.small) == np.count_nonzero(small)
        table, inside = self.table.view(), np.flatnonzero(live).astype(np.int32)
        expected: dict[tuple[int, ...], list[int]] = {}
        for key, owner in zip(*self._keys_of(table, inside), strict=True):
            expected.setdefault(tuple(key.tolist()), []).append(int(inside[owner]))
        assert self.cells.items() == expected
        chosen = self._access_of(table, inside)
        assert np.count_nonzero(self._role.view()) == len(chosen) == self._n * len(inside)
        self._check_counters(chosen)


def _together(events: int, left: Matches, right: Matches) -> Matches:
    """The matches of two indexes that share nothing."""
    event = np.empty(len(left.event) + len(right.event), np.int64)
    conjunction = np.empty(len(event), np.int32)
    both = Matches(event, conjunction, Counters(*map(sum, zip(left.counters, right.counters, strict=True))))
    _merge(events, left, right, both)
    return both


@lean_kernel
def _merge(events: int, left: Matches, right: Matches, both: Matches) -> None:
    i, j = 0, 0
    for e in range(events):
        while i < len(left.event) and left.event[i] == e:
            both.event[i + j], both.conjunction[i + j] = e, left.conjunction[i]
            i += 1
        while j < len(right.event) and right.event[j] == e:
            both.event[i + j], both.conjunction[i + j] = e, right.conjunction[j]
            j += 1


def _others(role: U8s, order: I64s, start: I64s, rows: npt.NDArray[np.intp]) -> tuple[I64s, I32s]:
    """The predicates in the records of some conjunctions, and how many each record has."""
    counts = start[rows + 1] - start[rows]
    chosen = order[span_indices(start[rows], counts)]
    kept = role[chosen] == 0
    before = np.append(0, np.cumsum(kept))
    ends = np.cumsum(counts)
    return chosen[kept], (before[ends] - before[ends - counts]).astype(np.int32)


@lean_kernel
def _choose(predicates: Predicates, order: I64s, start: I64s, access: I64s, fits: Bools) -> None:
    """Choose the most selective predicates of each conjunction on N different dimensions, if it has predicates on N."""
    n = access.shape[1]
    for i in range(len(fits)):
        found = 0
        for j in range(start[i], start[i + 1]):
            p = order[j]
            if found == n or predicates.mode[p] == _ABSENT:
                break
            new = True
            for k in range(found):
                new &= predicates.dimension[access[i, k]] != predicates.dimension[p]
            if new:
                access[i, found] = p
                found += 1
        fits[i] = found == n


@lean_kernel
def _combine(leaves: I64s, start: I64s, keys: I32s) -> None:
    """Write all combinations of leaves for each group of N consecutive predicates."""
    n, at = keys.shape[1], 0
    for first in range(0, len(start) - 1, n):
        total = 1
        for i in range(n):
            total *= start[first + i + 1] - start[first + i]
        for number in range(total):
            rest = number
            for i in range(n - 1, -1, -1):
                size = start[first + i + 1] - start[first + i]
                keys[at, i] = leaves[start[first + i] + rest % size]
                rest //= size
            at += 1
