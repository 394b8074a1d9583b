"""The table of conjunctions: in columns, growing at its end, each distinct conjunction once.

    conjunction   0         1      2
    start         0         2      3      6        predicates of c: start[c] .. start[c + 1]

The predicates of a conjunction are in canonical order without repetition, so equal conjunctions have equal rows. A hash table
with open addressing finds the equal one. The empty conjunction is true of every event.

An index reads this table and never writes to it. Its caller says which conjunctions to insert and delete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.expressions.predicates import GrowingPredicates, Predicates, joined_predicates, joined_starts, taken
from tamis.kernels.growing import GrowingArray
from tamis.kernels.hashing import SEED, fold, joined_ends
from tamis.kernels.kernel import inlined, kernel, lean_kernel
from tamis.kernels.numbers import Bools, I32s, I64s, U64s
from tamis.kernels.prefetch import prefetch
from tamis.kernels.ranges import span_indices

Hashes = U64s

_EMPTY = -1
_LOWEST_CAPACITY = 64
_FETCHED = 16
"""How many hashes ahead the place of a hash is fetched."""


class Conjunctions(NamedTuple):
    """Conjunctions as kernels read them."""

    start: I64s
    predicates: Predicates


class ConjunctionTable:
    """All conjunctions that were added, numbered from 0. `swept` makes a table of the needed ones."""

    def __init__(self) -> None:
        self._start = GrowingArray(np.int64)
        self._start.append(0)
        self._predicates = GrowingPredicates()
        self._hashes = GrowingArray(np.uint64)
        self._by_hash = np.full(_LOWEST_CAPACITY, _EMPTY, np.int32)

    def __len__(self) -> int:
        return len(self._hashes)

    @property
    def nbytes(self) -> int:
        return self._start.nbytes + self._predicates.nbytes + self._hashes.nbytes + self._by_hash.nbytes

    def view(self) -> Conjunctions:
        return Conjunctions(self._start.view(), self._predicates.view())

    def intern(self, added: Conjunctions) -> I32s:
        """The number of each conjunction, added if there is no equal one yet."""
        fresh_form = canonical(added)
        hashes = hash_conjunctions(fresh_form)
        self._reserve(len(self) + len(hashes))
        numbers = np.empty(len(hashes), np.int32)
        fresh = np.empty(len(hashes), np.int32)
        count = _intern(fresh_form, hashes, self.view(), self._hashes.view(), self._by_hash, numbers, fresh)
        self._append(fresh_form, hashes, fresh[:count])
        return numbers

    def relabel(self, dimension: int, relabelling: Relabelling) -> None:
        """Change the keys of a dimension to its new labels. Equal conjunctions stay equal; their hashes change."""
        self._predicates.relabel(dimension, relabelling)
        _hash(self.view(), self._hashes.view())
        self._by_hash = _filled(len(self._by_hash), self._hashes.view())

    def swept(self, kept: npt.NDArray[Any], change: Callable[[Predicates], None]) -> tuple[Self, I32s]:
        """A new table of some rows, whose predicates `change` has changed in place; and the numbers of these rows there."""
        rows = conjunctions_taken(self.view(), kept)
        change(rows.predicates)
        table = type(self)()
        return table, table.intern(rows)

    def _append(self, added: Conjunctions, hashes: Hashes, fresh: I32s) -> None:
        rows = conjunctions_taken(added, fresh)
        self._start.extend(rows.start[1:] + len(self._predicates))
        self._predicates.extend(rows.predicates)
        self._hashes.extend(hashes[fresh])

    def _reserve(self, count: int) -> None:
        """Keep the hash table at most half full."""
        capacity = len(self._by_hash)
        while capacity < 2 * count:
            capacity *= 2
        if capacity > len(self._by_hash):
            self._by_hash = _filled(capacity, self._hashes.view())


def conjunctions_taken(table: Conjunctions, rows: npt.NDArray[Any]) -> Conjunctions:
    """Some rows of a table, in the order of `rows`."""
    counts = np.diff(table.start)[rows]
    predicates = taken(table.predicates, span_indices(table.start[rows], counts))
    return Conjunctions(np.append(0, np.cumsum(counts)), predicates)


def joined_conjunctions(tables: Sequence[Conjunctions]) -> Conjunctions:
    """The conjunctions of all tables, one after another."""
    if len(tables) == 1:
        return tables[0]
    return Conjunctions(
        joined_starts([table.start for table in tables]), joined_predicates([table.predicates for table in tables])
    )


def _filled(capacity: int, hashes: Hashes) -> I32s:
    by_hash = np.full(capacity, _EMPTY, np.int32)
    _fill(by_hash, hashes)
    return by_hash


@lean_kernel
def sort_predicates(added: Conjunctions, order: I64s, start: I64s) -> int:
    """Write the canonical order of all predicates, conjunction by conjunction; returns how many remain."""
    kept = 0
    start[0] = 0
    for c in range(len(added.start) - 1):
        first, last = added.start[c], added.start[c + 1]
        count = last - first
        for i in range(count):
            order[kept + i] = first + i
        gap = count // 2
        while gap > 0:  # Shell sort: conjunctions are short, but some have thousands of predicates.
            for i in range(gap, count):
                moving = order[kept + i]
                j = i
                while j >= gap and _order(added.predicates, order[kept + j - gap], added.predicates, moving) > 0:
                    order[kept + j] = order[kept + j - gap]
                    j -= gap
                order[kept + j] = moving
            gap //= 2
        unique = 0
        for i in range(count):
            if (
                unique == 0
                or _order(added.predicates, order[kept + unique - 1], added.predicates, order[kept + i]) != 0
            ):
                order[kept + unique] = order[kept + i]
                unique += 1
        kept += unique
        start[c + 1] = kept
    return kept


@inlined
def _order(left: Predicates, p: int, right: Predicates, q: int) -> int:
    """Compare two predicates by dimension, mode, number of intervals, intervals: -1, 0 if they are equal, or 1."""
    difference = np.int64(left.dimension[p]) - np.int64(right.dimension[q])
    if difference == 0:
        difference = np.int64(left.mode[p]) - np.int64(right.mode[q])
    if difference == 0:
        difference = (left.start[p + 1] - left.start[p]) - (right.start[q + 1] - right.start[q])
    if difference != 0:
        return -1 if difference < 0 else 1
    other = right.start[q]
    for i in range(left.start[p], left.start[p + 1]):
        if left.lo[i] != right.lo[other]:
            return -1 if left.lo[i] < right.lo[other] else 1
        if left.hi[i] != right.hi[other]:
            return -1 if left.hi[i] < right.hi[other] else 1
        other += 1
    return 0


def canonical(added: Conjunctions) -> Conjunctions:
    """The same conjunctions with their predicates sorted and repetitions removed."""
    order = np.empty(len(added.predicates.dimension), np.int64)
    start = np.empty_like(added.start)
    kept = sort_predicates(added, order, start)
    if kept == len(order) and (np.diff(order) == 1).all():
        return added  # Canonical already: a copy would double the memory of a large table.
    return Conjunctions(start, taken(added.predicates, order[:kept]))


def hash_conjunctions(table: Conjunctions) -> Hashes:
    """A hash of each canonical conjunction. Equal conjunctions have equal hashes."""
    hashes = np.empty(len(table.start) - 1, np.uint64)
    _hash(table, hashes)
    return hashes


@kernel
def all_differ(hashes: Hashes) -> bool:
    """Whether no two hashes are equal. Hashes 0 and 1 count as equal."""
    size = 2
    while size < 2 * len(hashes):
        size *= 2
    table = np.zeros(size, np.uint64)
    mask = np.uint64(size - 1)
    for i in range(len(hashes)):
        prefetch(table, np.int64(hashes[min(i + _FETCHED, len(hashes) - 1)] & mask))
        mine = max(hashes[i], np.uint64(1))  # 0 marks an empty place.
        at = mine & mask
        while table[at] != np.uint64(0):
            if table[at] == mine:
                return False
            at = (at + np.uint64(1)) & mask
        table[at] = mine
    return True


@kernel
def equal_conjunctions(table: Conjunctions, order: npt.NDArray[np.intp], same: Bools) -> None:
    """Clear `same` of the conjunctions that differ from the one before them in `order`."""
    for i in range(1, len(order)):
        if same[i] and not _equal(table, order[i - 1], table, order[i]):
            same[i] = False


@kernel
def _hash(conjunctions: Conjunctions, hashes: Hashes) -> None:
    predicates = conjunctions.predicates
    for c in range(len(conjunctions.start) - 1):
        state = SEED
        for p in range(conjunctions.start[c], conjunctions.start[c + 1]):
            name = np.uint64(predicates.dimension[p]) * np.uint64(4) + np.uint64(predicates.mode[p])
            if predicates.start[p] == predicates.start[p + 1]:
                state = fold(state, name)
            for i in range(predicates.start[p], predicates.start[p + 1]):
                state = fold(state, joined_ends(predicates.lo[i], predicates.hi[i]) + name)
        hashes[c] = state


@kernel
def _intern(
    added: Conjunctions,
    hashes: Hashes,
    table: Conjunctions,
    table_hashes: Hashes,
    by_hash: I32s,
    numbers: I32s,
    fresh: I32s,
) -> int:
    """Find or place every conjunction; `fresh` gets the rows that are new, in the order of their numbers. Returns their count."""
    mask = np.uint64(len(by_hash) - 1)
    old = len(table_hashes)
    count = 0
    for c in range(len(hashes)):
        at = hashes[c] & mask
        while True:
            number = by_hash[at]
            if number == _EMPTY:
                by_hash[at] = old + count
                numbers[c] = old + count
                fresh[count] = c
                count += 1
                break
            if number < old:
                equal = table_hashes[number] == hashes[c] and _equal(table, number, added, c)
            else:
                row = fresh[number - old]
                equal = hashes[row] == hashes[c] and _equal(added, row, added, c)
            if equal:
                numbers[c] = number
                break
            at = (at + np.uint64(1)) & mask
    return count


@inlined
def _equal(left: Conjunctions, c: int, right: Conjunctions, d: int) -> bool:
    if left.start[c + 1] - left.start[c] != right.start[d + 1] - right.start[d]:
        return False
    other = right.start[d]
    for p in range(left.start[c], left.start[c + 1]):
        if _order(left.predicates, p, right.predicates, other) != 0:
            return False
        other += 1
    return True


@kernel
def _fill(by_hash: I32s, hashes: Hashes) -> None:
    mask = np.uint64(len(by_hash) - 1)
    for number in range(len(hashes)):
        at = hashes[number] & mask
        while by_hash[at] != _EMPTY:
            at = (at + np.uint64(1)) & mask
        by_hash[at] = number
