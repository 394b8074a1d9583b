"""Posting lists: for every size, dimension and cell, the conjunctions of that size with a predicate that is true there.

They are built in walks over all entries, group by group, predicate by predicate, cell by cell. The first walk finds the cells of
each group, another counts the entries of every list, the last writes them. Entries are never sorted: a conjunction may have
hundreds. The lists of a group are near each other, so writing group by group takes a fraction of the time that row by row takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates, taken
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I64, I32s, I64s, U8s
from tamis.kernels.ranges import grouped
from tamis.kernels.sorting import first_at_least
from tamis.papers.k_index.enumeration import (
    NO_GAP,
    SIDES,
    Domains,
    domain_of,
    first_cell,
    gap_of,
    last_cell,
    values_between,
)
from tamis.papers.parts.pair_map import FREE, PairArrays, PairMap, enter, pair_place, value_of

_SOME = int(Mode.SOME)
_GROUPS_AT_ONCE = 1 << 12
_MOST_CELLS = 4
"""Most cells per entry for which every cell of a group has a list. With more cells, only cells that occur have one."""
_SPAN, _VALUES, _COUNT, _FILL = range(4)
"""The steps, one for each walk over all entries."""
_NO_NUMBERS, _NO_CONJUNCTIONS = np.zeros(0, np.int64), np.zeros(0, np.int32)


class Groups(NamedTuple):
    """Groups of lists, one for each K and dimension: `base` is the first list, `width` how many, in the order of cells.

    `values` is where their cells are in `cell`; if it is -1, all cells from `least` on have lists.
    """

    base: I64s
    width: I64s
    least: I64s
    values: I64s
    cell: I64s


class Columns(NamedTuple):
    """What the steps write.

    _SPAN writes the number of entries, and the least and the greatest cell of each group. _VALUES writes the group and the cell
    of each entry, in groups without a list for every cell. _COUNT and _FILL write `start` and `data` of `Lists`.
    """

    entries: I64s = _NO_NUMBERS
    least: I64s = _NO_NUMBERS
    greatest: I64s = _NO_NUMBERS
    owner: I64s = _NO_NUMBERS
    cell: I64s = _NO_NUMBERS
    start: I64s = _NO_NUMBERS
    data: I32s = _NO_CONJUNCTIONS


class Lists(NamedTuple):
    """The lists as kernels read them. `sizes` are the K above 0 that occur, ascending."""

    directory: PairArrays
    groups: Groups
    start: I64s
    data: I32s
    sizes: I64s
    always: I32s
    doubtful: U8s

    @property
    def nbytes(self) -> int:
        columns: list[npt.NDArray[Any]] = [self.start, self.data, self.sizes, self.always, self.doubtful]
        return sum(array.nbytes for array in (*self.directory, *self.groups, *columns))


class Chosen(NamedTuple):
    """The enumerated predicates of rows, one after another, how many each row has, and which conjunctions have others too."""

    predicates: I64s
    sizes: I64s
    doubtful: U8s


class Entered(NamedTuple):
    """The same predicates by group, and within it by conjunction: a copy, so that walks read them one after another."""

    predicates: Predicates
    conjunction: I32s
    size: I64s
    group: I64s


def choose(table: Conjunctions, rows: I32s, domains: Domains, most: int) -> Chosen:
    """The predicates to enumerate: for each dimension the one with the fewest cells.

    A predicate with a range of more than `most` values is not enumerated.
    """
    chosen = np.empty(int((table.start[rows + 1] - table.start[rows]).sum()), np.int64)
    sizes = np.empty(len(rows), np.int64)
    doubtful = np.zeros(len(table.start) - 1 if len(rows) else 0, np.uint8)
    count = _choose(table, rows, domains, most + SIDES, chosen, sizes, doubtful)
    return Chosen(chosen[:count].copy(), sizes, doubtful)


def build(table: Conjunctions, rows: I32s, domains: Domains, most: int) -> Lists:
    """The lists of some conjunctions."""
    chosen = choose(table, rows, domains, most)
    directory, entered = _enter(table, rows, chosen, domains)

    def walk(step: int, groups: Groups, columns: Columns) -> None:
        _walk(entered, domains, directory.view(), groups, step, columns)

    groups, total = _groups(len(directory), walk)
    start, data = np.zeros(int(groups.width.sum()) + 1, np.int64), np.empty(total, np.int32)
    columns = Columns(start=start, data=data)
    walk(_COUNT, groups, columns)
    # Where each list ends; filling it moves that to where it begins.
    np.cumsum(start, out=start)
    walk(_FILL, groups, columns)
    sizes = np.unique(chosen.sizes)
    always = rows[chosen.sizes == 0]
    return Lists(directory.view(), groups, start, data, sizes[sizes > 0], always, chosen.doubtful)


def _enter(table: Conjunctions, rows: I32s, chosen: Chosen, domains: Domains) -> tuple[PairMap, Entered]:
    """The group of every K and dimension, and their predicates."""
    directory, row, place = PairMap(), 0, 0
    group = np.empty(len(chosen.predicates), np.int64)
    while row < len(chosen.sizes):
        directory.reserve(max(_GROUPS_AT_ONCE, len(directory)))
        row, place = _enter_groups(table.predicates, chosen, domains, directory.view(), group, row, place)
    directory.shrink()
    order, sizes = grouped(group), chosen.sizes
    conjunction, size = np.repeat(rows, sizes)[order], np.repeat(sizes, sizes)[order]
    return directory, Entered(taken(table.predicates, chosen.predicates[order]), conjunction, size, group[order])


def _groups(count: int, walk: Callable[[int, Groups, Columns], None]) -> tuple[Groups, int]:
    """The groups, and how many entries they have together."""
    limits = np.iinfo(np.int64)
    entries, least, greatest = np.zeros(count, np.int64), np.full(count, limits.max), np.full(count, limits.min)
    unknown = Groups(*(_NO_NUMBERS for _ in Groups._fields))
    walk(_SPAN, unknown, Columns(entries, least, greatest))
    # The difference is negative if it overflows.
    span = greatest - least + 1
    sparse = (span <= 0) | (span > _MOST_CELLS * entries)
    held = np.where(sparse, entries, 0)
    values = np.where(sparse, np.cumsum(held) - held, -1)
    owner, cell = np.empty(int(held.sum()), np.int64), np.empty(int(held.sum()), np.int64)
    walk(_VALUES, unknown._replace(values=values), Columns(owner=owner, cell=cell))
    order = np.lexsort((cell, owner))
    owner, cell = owner[order], cell[order]
    distinct = np.ones(len(owner), np.bool_)
    distinct[1:] = (owner[1:] != owner[:-1]) | (cell[1:] != cell[:-1])
    owner, cell = owner[distinct], cell[distinct]
    width = np.where(sparse, np.bincount(owner, minlength=count), span)
    values = np.where(sparse, np.searchsorted(owner, np.arange(count)), -1)
    return Groups(np.cumsum(width) - width, width, least, values, cell), int(entries.sum())


@lean_kernel
def _choose(
    table: Conjunctions, rows: I32s, domains: Domains, most: int, chosen: I64s, sizes: I64s, doubtful: U8s
) -> int:
    """Choose the predicate with the fewest values on each dimension; returns how many were chosen."""
    start, predicates, count = table.start, table.predicates, 0
    for i in range(len(rows)):
        c = rows[i]
        before, p, end = count, start[c], start[c + 1]
        while p < end:
            d = predicates.dimension[p]
            best, fewest = I64(-1), I64(0)
            while p < end and predicates.dimension[p] == d:
                if predicates.mode[p] == _SOME:
                    width = _width(predicates, domains, p, most)
                    if width >= 0 and (best < 0 or width < fewest):
                        best, fewest = p, width
                p += 1
            if best >= 0:
                chosen[count] = best
                count += 1
        sizes[i] = count - before
        doubtful[c] = count - before < end - start[c]
    return count


@inlined
def _width(predicates: Predicates, domains: Domains, p: int, most: int) -> int:
    """How many cells a predicate has; -1 if one of its ranges has too many."""
    domain, width = domain_of(domains, predicates.dimension[p]), I64(0)
    for i in range(predicates.start[p], predicates.start[p + 1]):
        cells = values_between(first_cell(domain, predicates.lo[i]), last_cell(domain, predicates.hi[i]))
        if cells > most:
            return I64(-1)
        width += cells
    return width


@lean_kernel
def _enter_groups(
    predicates: Predicates, chosen: Chosen, domains: Domains, directory: PairArrays, group: I64s, row: int, place: int
) -> tuple[int, int]:
    """Number the groups of rows from one on; returns the place where the directory had no more room."""
    while row < len(chosen.sizes):
        size = chosen.sizes[row]
        if 2 * (directory.size[0] + 2 * size) > len(directory.value):
            break
        for i in range(place, place + size):
            p = chosen.predicates[i]
            d = I64(predicates.dimension[p])
            domain, gap = domain_of(domains, d), False
            for each in range(predicates.start[p], predicates.start[p + 1]):
                gap |= gap_of(domain, predicates.lo[each]) != NO_GAP
            for key in range(2 * d, 2 * d + (2 if gap else 1)):
                at = pair_place(directory, size, key)
                if directory.value[at] == FREE:
                    enter(directory, at, size, key, directory.size[0])
            group[i] = value_of(directory, size, 2 * d)
        place += size
        row += 1
    return row, place


@lean_kernel
def _walk(
    entered: Entered, domains: Domains, directory: PairArrays, groups: Groups, step: int, columns: Columns
) -> None:
    """Do one step for every entry. Conjunctions descend: lists are filled from their end, so they ascend."""
    predicates = entered.predicates
    for p in range(len(entered.group) - 1, -1, -1):
        c = entered.conjunction[p]
        d = I64(predicates.dimension[p])
        domain = domain_of(domains, d)
        # Several intervals may be in one cell: beyond the domain, or in one gap.
        any_yet, reached, last_gap = False, I64(0), I64(NO_GAP)
        for i in range(predicates.start[p], predicates.start[p + 1]):
            first, last = first_cell(domain, predicates.lo[i]), last_cell(domain, predicates.hi[i])
            if any_yet and first <= reached:
                first = reached + 1
            if first <= last:
                _do(step, entered.group[p], first, last, c, groups, columns)
                any_yet, reached = True, last
            gap = gap_of(domain, predicates.lo[i])
            if gap not in (NO_GAP, last_gap):
                gaps = value_of(directory, entered.size[p], 2 * d + 1)
                _do(step, gaps, gap, gap, c, groups, columns)
                last_gap = gap


@merged
def _do(step: int, group: int, first: int, last: int, c: int, groups: Groups, columns: Columns) -> None:
    """Do a step for a conjunction in the cells of a group from `first` to `last`."""
    if step == _SPAN:
        columns.entries[group] += last - first + 1
        columns.least[group] = min(columns.least[group], first)
        columns.greatest[group] = max(columns.greatest[group], last)
    elif step == _VALUES:
        if groups.values[group] >= 0:
            for i in range(last - first + 1):
                columns.owner[groups.values[group]] = group
                columns.cell[groups.values[group]] = first + i
                groups.values[group] += 1
    else:
        number = groups.base[group] + place_of(groups, group, first)
        for i in range(number, number + last - first + 1):
            if step == _COUNT:
                columns.start[i] += 1
            else:
                columns.start[i] -= 1
                columns.data[columns.start[i]] = c


@inlined
def place_of(groups: Groups, group: int, first: int) -> int:
    """How many lists of a group are for cells before `first`."""
    width, least, begin = groups.width[group], groups.least[group], groups.values[group]
    if begin < 0:
        if first <= least:
            return 0
        return width if first > least + width - 1 else first - least
    return first_at_least(groups.cell, begin, begin + width, first) - begin
