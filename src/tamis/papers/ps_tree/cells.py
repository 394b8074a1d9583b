"""Cells: the N-dimensional predicate spaces that conjunctions are in, in a hash table (section 6.1).

    table      (leaf, leaf) -> cell              for N = 2; (0, leaf) for N = 1, (leaf << 32 | leaf, leaf) for N = 3
    leaf       cell * N + i -> i-th leaf         in the order of dimensions
    lists      cell -> c place size  c place size ...    conjunctions with the places of their records: with a cell, an
               event can fetch its records at once
    of_leaf    leaf -> cells
    filter     bits: the hash of each cell's key sets one. Most keys without a cell are found here, without a look at the
               table, which is larger than the processor's caches

Numbers of leaves tell dimensions apart, since all trees have their leaves in the same arrays.

Invariants: a cell either is in the table, is in `of_leaf` of each of its leaves and has a conjunction, or its number is free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.bits import WORD, halves, has_bit, set_bit
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, Bools, I32s, I64s, U64s
from tamis.kernels.ranges import span_indices
from tamis.papers.parts.pair_map import FREE, PairArrays, PairMap, enter, mixed_of, pair_place, vacate, value_of
from tamis.papers.parts.records import RecordArrays
from tamis.papers.parts.slabs import SlabArrays, Slabs, take_out
from tamis.papers.ps_tree.forest import Log
from tamis.papers.ps_tree.forest_index import drop_dead

_AT_ONCE = 1 << 16
_FILTER_AT = 24
_BITS_PER_PLACE = 4
ENTRY = 3
"""Numbers in an entry of a list."""
_USED, _FREE = 0, 1
_NO_CELL = -1

Bits = U64s


class CellArrays(NamedTuple):
    """Cells as kernels take them. `state` has how many numbers were used, and the first number that is free."""

    n: int
    table: PairArrays
    leaf: I32s
    lists: SlabArrays
    of_leaf: SlabArrays
    filter: Bits
    state: I64s


class Cells:
    """The cells of N dimensions each."""

    def __init__(self, dimensions: int) -> None:
        self._n = dimensions
        self._table = PairMap()
        self._leaf = GrowingArray(np.int32)
        self._lists = Slabs()
        self._of_leaf = Slabs()
        self._state = np.array([0, _NO_CELL], np.int64)
        self._filter = np.zeros(1, np.uint64)
        self.entries = 0

    def __len__(self) -> int:
        return len(self._table)

    def view(self) -> CellArrays:
        lists, of_leaf = self._lists.view(), self._of_leaf.view()
        return CellArrays(self._n, self._table.view(), self._leaf.view(), lists, of_leaf, self._filter, self._state)

    def reserve(self, leaves: int) -> None:
        """Make room for `leaves` leaves."""
        if leaves > len(self._of_leaf):
            self._of_leaf.add(max(leaves - len(self._of_leaf), len(self._of_leaf) // 2))

    def enter(self, keys: I32s, entries: I32s) -> None:
        """Put entries, a row each, into cells. `keys` has the N leaves of each, in the order of their dimensions."""
        for first in range(0, len(keys), _AT_ONCE):
            cells = self._found(keys[first : first + _AT_ONCE])
            self._lists.extend(np.repeat(cells, ENTRY), entries[first : first + _AT_ONCE].ravel())
        self.entries += len(keys)

    def relocate(self, records: RecordArrays) -> None:
        """Follow records that have moved."""
        _relocate(self._lists.view(), records.at)

    def _found(self, keys: I32s) -> I64s:
        """The cells of some keys; missing cells are made."""
        self._table.reserve(len(keys))
        words = len(self._table.view().value) * _BITS_PER_PLACE // WORD
        if words > len(self._filter):
            self._filter = np.zeros(words, np.uint64)
            _fill_filter(self._table.view(), self._filter)
        used = len(self._lists)
        # Make room as if all keys were new; spare room serves later calls.
        short = int(self._state[_USED]) + len(keys) - used
        if short > 0:
            short = max(short, used // 2)
            self._lists.add(short)
            self._leaf.grow(short * self._n)
        cells, fresh = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        count = _find(self.view(), keys, cells, fresh)
        fresh = fresh[:count]
        for i in range(self._n):
            leaves = self._leaf.view().reshape(-1, self._n)[fresh, i]
            self._of_leaf.extend(leaves.astype(np.int64), fresh.astype(np.int32))
        return cells

    def split(self, log: Log) -> None:
        """Copy the records of spaces that were split to the spaces that were split off."""
        if not len(self):
            return
        sizes = self._of_leaf.view().size
        for old, new in zip(log.first.tolist(), log.second.tolist(), strict=True):
            if sizes[old]:
                cells = self._of_leaf.values(old).astype(np.int64)
                keys = self._leaf.view().reshape(-1, self._n)[cells]
                keys = np.where(keys == old, np.int32(new), keys)
                lists = self._lists.view()
                counts = lists.size[cells].astype(np.int64)
                copied = lists.data[span_indices(lists.begin[cells], counts)].reshape(-1, ENTRY)
                self.enter(np.repeat(keys, counts // ENTRY, axis=0), copied)
                sizes = self._of_leaf.view().size

    def merge(self, log: Log) -> None:
        """Drop the cells of leaves that are gone: the cells of the leaves that took their space have the same conjunctions."""
        for gone in log.first.tolist():
            cells = self._of_leaf.values(gone).astype(np.int64)
            if len(cells):
                self.entries -= int(self._lists.view().size[cells].sum()) // ENTRY
                _drop(self.view(), cells)

    def remove(self, keys: I32s, live: Bools) -> None:
        """Remove conjunctions that are not live any more from the cells of some keys, and free empty cells."""
        cells = np.empty(len(keys), np.int64)
        _look_up(self._table.view(), keys, cells)
        cells = np.unique(cells)
        self.entries -= drop_dead(self._lists.view(), cells, live, ENTRY)
        _drop(self.view(), cells[self._lists.view().size[cells] == 0])

    def items(self) -> dict[tuple[int, ...], list[int]]:
        """All cells: their leaves, and the conjunctions in each."""
        leaf = self._leaf.view().reshape(-1, self._n)
        cells = self._table.view().value
        return {
            tuple(leaf[cell].tolist()): sorted(self._lists.values(cell)[::ENTRY].tolist())
            for cell in cells[cells != FREE].tolist()
        }

    def check(self, records: RecordArrays) -> None:
        """Raise an AssertionError if an invariant does not hold."""
        for cell in range(len(self._lists)):
            entries = self._lists.values(cell).reshape(-1, ENTRY)
            assert (entries[:, 1] == records.at[entries[:, 0]]).all()
            assert (entries[:, 2] == records.size[entries[:, 0]]).all()
        items = self.items()
        assert len(items) == len(self)
        assert sum(map(len, items.values())) == self.entries
        assert all(items.values()), "no cell is empty"
        by_leaf: dict[int, list[int]] = {}
        for key in items:
            first, second = _key_of(self._n, np.array([key], np.int32), 0)
            assert _is_marked(self._filter, first, second)
            for leaf in key:
                by_leaf.setdefault(leaf, []).append(self._table.get(first, second))
        for leaf in range(len(self._of_leaf)):
            assert sorted(self._of_leaf.values(leaf).tolist()) == sorted(by_leaf.get(leaf, []))
        free, seen = int(self._state[_FREE]), 0
        while free != _NO_CELL:
            free, seen = int(self._leaf.view()[free * self._n]), seen + 1
        assert seen + len(self) == self._state[_USED]


@inlined
def pair_key(n: int, a: int, b: int, c: int) -> tuple[int, int]:
    """The key of the first N leaves; the others are ignored."""
    if n == 1:
        return I64(0), I64(a)
    if n == 2:
        return I64(a), I64(b)
    return halves(I64(a), I64(b)), I64(c)


@inlined
def may_have(bits: Bits, hashed: np.uint64) -> bool:
    """Whether there may be a cell whose key has this hash."""
    return has_bit(bits, _filter_bit(hashed, bits))


@inlined
def _set_bit(bits: Bits, first: int, second: int) -> None:
    set_bit(bits, _filter_bit(mixed_of(first, second), bits))


@inlined
def _filter_bit(hashed: np.uint64, bits: Bits) -> np.uint64:
    """The bit of a hash. The number of bits is a power of two."""
    return (hashed >> U64(_FILTER_AT)) & U64(WORD * len(bits) - 1)


@lean_kernel
def _is_marked(bits: Bits, first: int, second: int) -> bool:
    return may_have(bits, mixed_of(first, second))


@lean_kernel
def _fill_filter(table: PairArrays, bits: Bits) -> None:
    for i in range(len(table.value)):
        if table.value[i] != FREE:
            _set_bit(bits, table.first[i], table.second[i])


@inlined
def _key_of(n: int, keys: I32s, i: int) -> tuple[int, int]:
    return pair_key(n, keys[i, 0], keys[i, min(1, n - 1)], keys[i, n - 1])


@lean_kernel
def _find(cells: CellArrays, keys: I32s, found: I64s, fresh: I64s) -> int:
    """Write the cell of each key to `found`, and new cells to `fresh`; returns how many are new."""
    n, table, leaf, state, made = cells.n, cells.table, cells.leaf, cells.state, 0
    for i in range(len(keys)):
        first, second = _key_of(n, keys, i)
        at = pair_place(table, first, second)
        if table.value[at] == FREE:
            cell = state[_FREE]
            if cell == _NO_CELL:
                cell = state[_USED]
                state[_USED] += 1
            else:
                state[_FREE] = leaf[cell * n]
            for j in range(n):
                leaf[cell * n + j] = keys[i, j]
            enter(table, at, first, second, cell)
            _set_bit(cells.filter, first, second)
            fresh[made] = cell
            made += 1
        found[i] = table.value[at]
    return made


@lean_kernel
def _look_up(table: PairArrays, keys: I32s, found: I64s) -> None:
    for i in range(len(keys)):
        first, second = _key_of(keys.shape[1], keys, i)
        found[i] = value_of(table, first, second)


@lean_kernel
def _relocate(lists: SlabArrays, at: I64s) -> None:
    for cell in range(len(lists.begin)):
        for i in range(lists.begin[cell], lists.begin[cell] + lists.size[cell], ENTRY):
            lists.data[i + 1] = at[lists.data[i]]


@lean_kernel
def _drop(cells: CellArrays, gone: I64s) -> None:
    n, leaf, state = cells.n, cells.leaf, cells.state
    for cell in gone:
        at = cell * n
        first, second = pair_key(n, leaf[at], leaf[at + min(1, n - 1)], leaf[at + n - 1])
        vacate(cells.table, pair_place(cells.table, first, second))
        for i in range(n):
            take_out(cells.of_leaf, leaf[at + i], cell)
        cells.lists.size[cell] = 0
        leaf[at] = state[_FREE]
        state[_FREE] = cell
