"""`k-index`: a posting list of conjunctions for every size, attribute and value.

Whang et al., Indexing Boolean Expressions, VLDB 2009, as Zhang, Chan and Tan, An Efficient Publish/Subscribe Index for
E-Commerce Databases, VLDB 2014, section 3 with Figure 2, and Sadoghi and Jacobsen, BE-Tree, SIGMOD 2011, section 7.2,
describe it.

Conjunctions are parted by their size K, and within K entered in the list of every (attribute, value) that satisfies one of
their predicates; a range is enumerated (`enumeration`). An event has one list for each of its attributes; a conjunction of size
K is true of it if K of them hold it, so only K up to the event's size can be.

    (K, dimension)    group     0  1  2                         PairMap; dimension * 2 + 1 where cells are gaps
    groups            base      0  8  ..                        its first list; `count` lists, in the order of cells
                      least     1  ..                           its first cell, where all cells have lists, or
                      values   -1  ..                           where its cells are, ascending, in `cell`
    lists             start     0  1  4  ..                     entries of a list: start[l] .. start[l + 1]
    entries           data      S2 S1 S2 S4 ..                  ascending within a list
    conjunctions      doubtful  0  1  ..                        has predicates that no list holds
    always            S7 ..                                     K = 0: nothing to enumerate, looked at for every event

*Conjunction algorithm*, within one K: the lists of the event are sorted by their current conjunction. If the first and the K-th
have the same one, it is found, and all K move on. Otherwise no conjunction before the K-th's can be in K lists: the lists
before the K-th skip forward to it.

Invariants: a list ascends strictly; a conjunction of size K is in lists of K dimensions; what is not in a list is verified.

Departures from the paper
-------------------------
- We have no text of the original. That the lists before the K-th skip to it is our reading of "the conjunction algorithm".
- NOT IN and ``<>`` are true only where there is a value (the strong sense). Instead of a default value for every attribute
  that an event lacks they are verified on what the lists find, and so are IS NULL and, of several conditions on one
  attribute, all but the one with the fewest values. K counts what is enumerated.
- Numbers of events need not be whole nor within the domain, and an event may have several values of an attribute, or intervals:
  lists of one attribute are merged, and what is found is verified.
- Scores and the bitmaps of CNF are left out: Tamis turns subscriptions into conjunctions before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.conjunctions import Conjunctions
from tamis.encoding.events import EventBatch, count_holding, load, unload
from tamis.encoding.kernel import inlined, kernel, lean_kernel
from tamis.encoding.keys import INT_EXACT, KEY_MAX
from tamis.encoding.leaf import Mode
from tamis.encoding.numbers import I64, UP
from tamis.encoding.sorting import sort_unique
from tamis.errors import CapabilityError
from tamis.index.collecting import CANDIDATES, NODES, PREDICATES, collect
from tamis.index.enumeration import (
    NO_GAP,
    SIDES,
    Domains,
    first_cell,
    gap_of,
    is_exact,
    last_cell,
    no_domains,
)
from tamis.index.interface import Capabilities, Matches, Numbers
from tamis.index.options import Options, option
from tamis.index.pair_map import FREE, PairMap, enter, slot_of
from tamis.index.static import StaticIndex

_SOME = int(Mode.SOME)
_GROUPS_AT_ONCE = 1 << 12
_FEWEST_SPARSE = 4
"""Cells of a group have a list each if at most so many of them are there for an entry, else only those that occur."""
_SPAN, _VALUES, _COUNT, _FILL = range(4)
"""What a walk over all entries does."""
_EXHAUSTED = 2**31 - 1
"""The current conjunction of a list at its end."""
_LIST = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class KIndexOptions(Options):
    """`domain` is the lowest and the highest number of attributes with ranges; by default those that subscriptions name."""

    domain: tuple[int, int] | None = option(None, nothing=True, pair=True)
    max_values: int = option(10_000, least=1)


class Groups(NamedTuple):
    """The lists of one K and dimension each."""

    base: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    least: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    cell: npt.NDArray[np.int64]


class Lists(NamedTuple):
    """The index as kernels read it. `sizes` are those K above 0 that occur, ascending."""

    sizes: npt.NDArray[np.int64]
    groups: Groups
    start: npt.NDArray[np.int64]
    data: npt.NDArray[np.int32]
    doubtful: npt.NDArray[np.uint8]
    always: npt.NDArray[np.int32]


class Chosen(NamedTuple):
    """The enumerated predicates of rows, behind one another, and how many each row has."""

    predicates: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


class PostingList(NamedTuple):
    """A list, to be looked at. `gap`: of numbers between the value and the next one."""

    size: int
    dimension: int
    value: int
    gap: bool
    conjunctions: list[int]


class KIndex(StaticIndex):
    """Posting lists by size, attribute and value."""

    name = "k-index"
    summary = "sorted posting lists by size, attribute and value; ranges are enumerated"
    paper = "Whang et al., Indexing Boolean Expressions, VLDB 2009, as in OpIndex section 3 and BE-Tree section 7.2"
    capabilities = Capabilities(dynamic=False, every_predicate=False)
    options_type = KIndexOptions

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._noted = no_domains()
        self._forgetful = False
        self._build(self._rows)

    # -- what it can hold

    def refuse(self, conjunctions: Numbers) -> None:
        refusals = self._refusals(self._surveyed(self._noted, conjunctions))
        if refusals and self._forgetful:  # Ranges that are gone count no longer.
            self._noted, self._forgetful = self._surveyed(no_domains(), self._rows), False
            refusals = self._refusals(self._surveyed(self._noted, conjunctions))
        if refusals:
            number, reason = refusals[0]
            raise CapabilityError(
                f"the index {self.name!r} enumerates the whole numbers of every range; in dimension {number} {reason}. "
                "Hint: ranges of whole numbers, a smaller option 'domain' or a larger 'max_values', or index='auto'"
            )

    def _surveyed(self, noted: Domains, rows: Numbers) -> Domains:
        return noted.surveyed(self.table.view(), rows, self.kind_of, self._domain)

    def _refusals(self, domains: Domains) -> list[tuple[int, str]]:
        return domains.refusals(self._domain, self.options.max_values)

    @property
    def _domain(self) -> tuple[int, int] | None:
        domain = self.options.domain
        if domain is None:
            return None
        low, high = (min(max(each, -INT_EXACT), INT_EXACT) for each in domain)
        return low, high

    def insert(self, conjunctions: Numbers) -> None:
        super().insert(conjunctions)
        self._noted = self._surveyed(self._noted, conjunctions)

    def delete(self, conjunctions: Numbers) -> None:
        super().delete(conjunctions)
        self._forgetful = True

    # -- building

    def _build(self, rows: Numbers) -> None:
        if self._forgetful:
            self._noted, self._forgetful = self._surveyed(no_domains(), rows), False
        table, self._domains = self.table.view(), self._noted.bounded(self._domain)
        doubtful = np.zeros(len(table.start) - 1 if len(rows) else 0, np.uint8)
        chosen = self._choose(table, rows, doubtful)
        self._directory = self._directory_of(table, rows, chosen)
        walk = _Walk(table, rows, chosen, self._domains, self._directory)
        groups, total = walk.groups()
        start = np.zeros(int(groups.count.sum()) + 1, np.int64)
        data = np.empty(total, np.int32)
        walk.count(groups, start)
        np.cumsum(start, out=start)
        walk.fill(groups, start, data)
        sizes = np.unique(chosen.sizes)
        self._lists = Lists(sizes[sizes > 0], groups, start, data, doubtful, rows[chosen.sizes == 0])

    def _choose(self, table: Conjunctions, rows: Numbers, doubtful: npt.NDArray[np.uint8]) -> Chosen:
        """The predicates to enumerate."""
        chosen = np.empty(int((table.start[rows + 1] - table.start[rows]).sum()), np.int64)
        sizes = np.empty(len(rows), np.int64)
        count = _choose(table, rows, self._domains, self.options.max_values + SIDES, chosen, sizes, doubtful)
        return Chosen(chosen[:count].copy(), sizes)

    def _directory_of(self, table: Conjunctions, rows: Numbers, chosen: Chosen) -> PairMap:
        """The number of the group of every (K, dimension)."""
        directory, row, place = PairMap(), 0, 0
        while row < len(rows):
            directory.reserve(max(_GROUPS_AT_ONCE, len(directory)))
            row, place = _enter_groups(table, chosen, self._domains, directory.view(), row, place)
        directory.shrink()
        return directory

    # -- matching

    def _match(self, batch: EventBatch, dimensions: int) -> Matches:
        table, directory = self.table.view(), self._directory.view()
        longest = int(np.diff(batch.start).max(initial=0))

        def match(event: int, counts: Any, out: Any, work: Any) -> int:
            place = (event, dimensions, longest)
            return _match(self._lists, directory, self._domains, table, batch, place, counts, out, work)

        return collect(batch, match)

    # -- looking at it

    def _figures(self) -> dict[str, Any]:
        lists = self._lists
        arrays = [lists.sizes, *lists.groups, lists.start, lists.data, lists.doubtful, lists.always]
        return {
            "bytes": sum(array.nbytes for array in arrays) + self._domains.nbytes + self._directory.nbytes,
            "sizes": len(lists.sizes),
            "groups": len(lists.groups.base),
            "lists": int(np.count_nonzero(np.diff(lists.start))),
            "entries": len(lists.data),
            "always": len(lists.always),
            "verified": int(np.count_nonzero(lists.doubtful)),
        }

    def posting_lists(self) -> Iterator[PostingList]:
        """All lists that are not empty, by size, dimension and value."""
        self.build()
        _, (base, count, least, values, cell), start, data, _, _ = self._lists
        first, second, number, _ = self._directory.view()
        for size, key, group in sorted(
            (int(first[i]), int(second[i]), int(number[i])) for i in np.flatnonzero(number >= 0)
        ):
            for place in range(int(count[group])):
                entries = data[start[base[group] + place] : start[base[group] + place + 1]].tolist()
                if entries:
                    value = least[group] + place if values[group] < 0 else cell[values[group] + place]
                    yield PostingList(size, key >> 1, int(value), bool(key & 1), entries)

    def _check(self) -> None:
        table, lists, domains = self.table.view(), self._lists, self._domains
        start, predicates = table
        doubtful = np.zeros_like(lists.doubtful)
        chosen = self._choose(table, self._rows, doubtful)
        assert np.array_equal(doubtful, lists.doubtful)
        assert lists.always.tolist() == self._rows[chosen.sizes == 0].tolist()
        found: dict[tuple[int, int], list[PostingList]] = {}
        for each in self.posting_lists():
            assert each.conjunctions == sorted(set(each.conjunctions))
            for c in each.conjunctions:
                found.setdefault((c, each.dimension), []).append(each)
        ends = np.cumsum(chosen.sizes)
        for c, size, end in zip(self._rows.tolist(), chosen.sizes.tolist(), ends.tolist(), strict=True):
            mine = chosen.predicates[end - size : end]
            assert len(set(predicates.dimension[mine].tolist())) == size
            assert {d for number, d in found if number == c} == set(predicates.dimension[mine].tolist())
            assert lists.doubtful[c] or size == start[c + 1] - start[c]
            for p in mine.tolist():
                d = int(predicates.dimension[p])
                low, high = (int(domains.low[d]), int(domains.high[d])) if domains.ranged[d] else (None, None)
                for each in found[c, d]:
                    assert each.size == size
                    assert low is None or high is None or low - 1 <= each.value <= high + 1
                cells = {each.value for each in found[c, d] if not each.gap}
                if low is None or high is None:
                    assert cells == set(predicates.lo[predicates.start[p] : predicates.start[p + 1]].tolist())


class _Walk:
    """Goes over all entries: of every row, every chosen predicate, every cell."""

    def __init__(
        self, table: Conjunctions, rows: Numbers, chosen: Chosen, domains: Domains, directory: PairMap
    ) -> None:
        self._entries = (table, rows, chosen, domains, directory.view())
        self._count = len(directory)

    def groups(self) -> tuple[Groups, int]:
        """The groups, and how many entries they have together."""
        limits = np.iinfo(np.int64)
        entries, least, greatest = np.zeros((3, self._count), np.int64)
        least[:], greatest[:] = limits.max, limits.min
        none = np.zeros(0, np.int64)
        nothing = Groups(none, none, none, none, none)
        _walk(*self._entries, nothing, _SPAN, (entries, least, greatest))
        # Beyond the largest number the difference is negative.
        span = greatest - least + 1
        sparse = (span <= 0) | (span > _FEWEST_SPARSE * entries)
        held = np.where(sparse, entries, 0)
        end = np.cumsum(held)
        values = np.where(sparse, end - held, -1)
        owner, cell = np.empty((2, int(held.sum())), np.int64)
        _walk(*self._entries, nothing._replace(values=values.copy()), _VALUES, (owner, cell, none))
        order = np.lexsort((cell, owner))
        owner, cell = owner[order], cell[order]
        distinct = np.ones(len(owner), np.bool_)
        distinct[1:] = (np.diff(owner) != 0) | (np.diff(cell) != 0)
        owner, cell = owner[distinct], cell[distinct]
        count = np.where(sparse, np.bincount(owner, minlength=self._count), span)
        values = np.where(sparse, np.searchsorted(owner, np.arange(self._count)), -1)
        return Groups(np.cumsum(count) - count, count, least, values, cell), int(entries.sum())

    def count(self, groups: Groups, start: npt.NDArray[np.int64]) -> None:
        """How many entries each list has."""
        none = np.zeros(0, np.int64)
        _walk(*self._entries, groups, _COUNT, (start, none, none))

    def fill(self, groups: Groups, start: npt.NDArray[np.int64], data: npt.NDArray[np.int32]) -> None:
        """Write the entries; `start` is where lists end, and then where they begin."""
        _walk(*self._entries, groups, _FILL, (start, data, np.zeros(0, np.int64)))


# -- building


@lean_kernel
def _choose(table: Any, rows: Any, domains: Any, most: int, chosen: Any, sizes: Any, doubtful: Any) -> int:
    """Of the predicates on each dimension choose the one with the fewest values; returns how many were chosen."""
    start, predicates = table
    count = 0
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
def _width(predicates: Any, domains: Any, p: int, most: int) -> int:
    """How many cells a predicate has; -1 if one of its ranges has too many."""
    d = predicates.dimension[p]
    kind, ranged, low, high = domains.kind[d], domains.ranged[d], domains.low[d], domains.high[d]
    width = I64(0)
    for i in range(predicates.start[p], predicates.start[p + 1]):
        first = first_cell(kind, ranged, low, high, predicates.lo[i])
        last = last_cell(kind, ranged, low, high, predicates.hi[i])
        if first <= last:
            cells = last - first + 1
            if not 0 < cells <= most:
                return I64(-1)
            width += cells
    return width


@lean_kernel
def _enter_groups(table: Any, chosen: Any, domains: Any, directory: Any, row: int, place: int) -> tuple[int, int]:
    """Number the groups of rows from one on; returns where the room in the directory ended."""
    predicates = table.predicates
    firsts, seconds, values, count = directory
    while row < len(chosen.sizes):
        size = chosen.sizes[row]
        if 2 * (count[0] + 2 * size) > len(values):
            break
        for i in range(place, place + size):
            p = chosen.predicates[i]
            d = I64(predicates.dimension[p])
            kind, ranged, low, high = domains.kind[d], domains.ranged[d], domains.low[d], domains.high[d]
            gap = False
            for each in range(predicates.start[p], predicates.start[p + 1]):
                gap |= gap_of(kind, ranged, low, high, predicates.lo[each]) != NO_GAP
            for key in range(2 * d, 2 * d + (2 if gap else 1)):
                at = slot_of(firsts, seconds, values, size, key)
                if values[at] == FREE:
                    enter(firsts, seconds, values, count, at, size, key, count[0])
        place += size
        row += 1
    return row, place


@lean_kernel
def _walk(
    table: Any, rows: Any, chosen: Any, domains: Any, directory: Any, groups: Any, step: int, columns: Any
) -> None:
    """Do one step for every entry. Rows descend, so that lists which are filled from their end ascend."""
    predicates = table.predicates
    firsts, seconds, numbers, _ = directory
    place = len(chosen.predicates)
    for row in range(len(rows) - 1, -1, -1):
        c, size = rows[row], chosen.sizes[row]
        for _ in range(size):
            place -= 1
            p = chosen.predicates[place]
            d = I64(predicates.dimension[p])
            kind, ranged, low, high = domains.kind[d], domains.ranged[d], domains.low[d], domains.high[d]
            group = numbers[slot_of(firsts, seconds, numbers, size, 2 * d)]
            # Several intervals may be in one cell: beyond the domain, or in one gap.
            any_yet, reached, last_gap = False, I64(0), I64(NO_GAP)
            for i in range(predicates.start[p], predicates.start[p + 1]):
                first = first_cell(kind, ranged, low, high, predicates.lo[i])
                last = last_cell(kind, ranged, low, high, predicates.hi[i])
                if any_yet and first <= reached:
                    first = reached + 1
                if first <= last:
                    _do(step, group, first, last, c, groups, columns)
                    any_yet, reached = True, last
                gap = gap_of(kind, ranged, low, high, predicates.lo[i])
                if gap not in (NO_GAP, last_gap):
                    gaps = numbers[slot_of(firsts, seconds, numbers, size, 2 * d + 1)]
                    _do(step, gaps, gap, gap, c, groups, columns)
                    last_gap = gap


@inlined
def _do(step: int, group: int, first: int, last: int, c: int, groups: Any, columns: Any) -> None:
    """Do a step for a conjunction in all cells of a group from one to another."""
    if step == _SPAN:
        entries, least, greatest = columns
        entries[group] += last - first + 1
        least[group] = min(least[group], first)
        greatest[group] = max(greatest[group], last)
    elif step == _VALUES:
        owner, cell, _ = columns
        if groups.values[group] >= 0:
            for i in range(last - first + 1):
                owner[groups.values[group]] = group
                cell[groups.values[group]] = first + i
                groups.values[group] += 1
    else:
        start, data, _ = columns
        base, count, least, values, cell = groups
        number = base[group] + _place(count, least, values, cell, group, first)
        for i in range(number, number + last - first + 1):
            if step == _COUNT:
                start[i] += 1
            else:
                start[i] -= 1
                data[start[i]] = c


@inlined
def _place(count: Any, least: Any, values: Any, cell: Any, group: int, first: int) -> int:
    """How many lists of a group are of cells before one."""
    if values[group] < 0:
        if first <= least[group]:
            return I64(0)
        return I64(count[group] if first > least[group] + count[group] - 1 else first - least[group])
    begin = values[group]
    low, high = I64(0), count[group]
    while low < high:
        middle = (low + high) // 2
        if cell[UP(begin + middle)] < first:
            low = middle + 1
        else:
            high = middle
    return low


# -- matching


class Event(NamedTuple):
    """One event, reused: where the values of a dimension are, and of each value the cells, and whether they are exact."""

    first: npt.NDArray[np.int64]
    held: npt.NDArray[np.int64]
    low_cell: npt.NDArray[np.int64]
    high_cell: npt.NDArray[np.int64]
    exact: npt.NDArray[np.bool_]


class Open(NamedTuple):
    """The lists of an event in one K: where each is and ends, and `order`: current conjunction and list, ascending."""

    at: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]


@kernel
def _match(
    lists: Any, directory: Any, domains: Any, table: Any, batch: Any, place: Any, counts: Any, out: Any, work: Any
) -> int:
    """Match events from one on, as `collect` asks for it."""
    number, dimensions, longest = place
    event = Event(
        np.zeros(dimensions, np.int64),
        np.zeros(dimensions, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.bool_),
    )
    opened = Open(np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64))
    mixed, tally = np.empty(0, np.int32), np.zeros(3, np.int64)
    data, total = lists.data, 0
    while number < len(batch.start) - 1:
        tally[:] = 0
        load(batch.start, batch.dimension, number, event.first, event.held)
        size, plain = _locate(domains, batch, number, event)
        filled = _looked_at(lists.always, table, batch, event, out, total, tally)
        for k in lists.sizes:
            if k > size or filled < 0:
                break
            if plain:
                current, many = data, _open(lists, directory, k, batch, number, event, opened)
            else:
                needed = _room(lists, directory, k, batch, number, event)
                if needed > len(mixed):
                    mixed = np.empty(2 * needed, np.int32)
                current, many = mixed, _open_mixed(lists, directory, k, batch, number, event, opened, mixed)
            tally[NODES] += many
            if many >= k:
                filled = _conjunctions(
                    current, opened, k, many, plain, lists.doubtful, table, batch, event, out, filled, tally
                )
        unload(batch.start, batch.dimension, number, event.held)
        if filled < 0:
            break
        for i in range(3):
            work[i] += tally[i]
        counts[number] = filled - total
        total = filled
        number += 1
    return number


@inlined
def _locate(domains: Any, batch: Any, number: int, event: Any) -> tuple[int, bool]:
    """Find the cells of an event's values; how many dimensions it has, and whether each has one value in an exact cell."""
    begin, size, plain = batch.start[number], 0, True
    for v in range(begin, batch.start[number + 1]):
        i, d = v - begin, batch.dimension[v]
        if i == 0 or batch.dimension[v - 1] != d:
            size += 1
        else:
            plain = False
        lo, hi = batch.lo[v], batch.hi[v]
        low_cell, high_cell, exact = lo, hi, True
        if d < len(domains.kind):
            kind, ranged, low, high = domains.kind[d], domains.ranged[d], domains.low[d], domains.high[d]
            low_cell, high_cell = last_cell(kind, ranged, low, high, lo), last_cell(kind, ranged, low, high, hi)
            exact = is_exact(kind, ranged, low, high, lo, hi)
        event.low_cell[i], event.high_cell[i], event.exact[i] = low_cell, high_cell, exact
        plain &= exact and lo == hi
    return size, plain


@inlined
def _looked_at(always: Any, table: Any, batch: Any, event: Any, out: Any, filled: int, tally: Any) -> int:
    """Write those that are looked at for every event and are true of this one; returns how much of `out` is filled then."""
    for c in always:
        if _is_true(table, c, batch, event, tally):
            if filled == len(out):
                return -1
            out[filled] = c
            filled += 1
    tally[CANDIDATES] += len(always)
    return filled


@inlined
def _is_true(table: Any, c: int, batch: Any, event: Any, tally: Any) -> bool:
    start, (dimension, mode, intervals, lo, hi) = table
    begin, end = start[c], start[c + 1]
    true = count_holding(begin, end, dimension, mode, intervals, lo, hi, batch.lo, batch.hi, event.first, event.held)
    tally[PREDICATES] += min(true + 1, end - begin)
    return true == end - begin


@inlined
def _group(directory: Any, k: int, dimension: int, gap: int) -> int:
    """The group of a size and a dimension; FREE if there is none."""
    firsts, seconds, numbers, _ = directory
    group: int = numbers[UP(slot_of(firsts, seconds, numbers, k, 2 * I64(dimension) + gap))]
    return group


@inlined
def _entries(groups: Any, start: Any, group: int, low_cell: int, high_cell: int) -> tuple[int, int]:
    """Where the entries of the cells from one to another begin and end."""
    base, count, least, values, cell = groups
    first = base[group] + _place(count, least, values, cell, group, low_cell)
    behind = base[group] + count[group]
    if high_cell < KEY_MAX:
        behind = base[group] + _place(count, least, values, cell, group, high_cell + 1)
    return start[UP(first)], start[UP(behind)]


@inlined
def _open(lists: Any, directory: Any, k: int, batch: Any, number: int, event: Any, opened: Any) -> int:
    """Open the list of each value of an event whose cells are exact; returns how many there are."""
    many, begin = 0, batch.start[number]
    for i in range(batch.start[number + 1] - begin):
        group = _group(directory, k, batch.dimension[begin + i], 0)
        if group != FREE:
            first, behind = _entries(lists.groups, lists.start, group, event.low_cell[i], event.low_cell[i])
            if first < behind:
                opened.at[many], opened.end[many] = first, behind
                many += 1
    return many


@inlined
def _room(lists: Any, directory: Any, k: int, batch: Any, number: int, event: Any) -> int:
    """How many entries all lists of an event have."""
    room, begin = 0, batch.start[number]
    for i in range(batch.start[number + 1] - begin):
        for gap in range(1 if event.exact[i] else 2):
            group = _group(directory, k, batch.dimension[begin + i], gap)
            if group != FREE:
                first, behind = _entries(lists.groups, lists.start, group, event.low_cell[i], event.high_cell[i])
                room += behind - first
    return room


@inlined
def _open_mixed(
    lists: Any, directory: Any, k: int, batch: Any, number: int, event: Any, opened: Any, mixed: Any
) -> int:
    """Merge the lists of each dimension of an event, in cells and gaps, and open the outcome; returns how many there are."""
    many, written, i, begin = 0, 0, 0, batch.start[number]
    while i < batch.start[number + 1] - begin:
        d, since, sorted_yet = batch.dimension[begin + i], written, True
        while i < batch.start[number + 1] - begin and batch.dimension[begin + i] == d:
            for gap in range(1 if event.exact[i] else 2):
                group = _group(directory, k, d, gap)
                if group != FREE:
                    low_cell, high_cell = event.low_cell[i], event.high_cell[i]
                    first, behind = _entries(lists.groups, lists.start, group, low_cell, high_cell)
                    for entry in range(first, behind):
                        c = lists.data[UP(entry)]
                        sorted_yet &= written == since or mixed[UP(written - 1)] < c
                        mixed[UP(written)] = c
                        written += 1
            i += 1
        if written > since:
            if not sorted_yet:
                written = since + sort_unique(mixed, since, written)
            opened.at[many], opened.end[many] = since, written
            many += 1
    return many


@inlined
def _conjunctions(
    current: Any,
    opened: Any,
    k: int,
    many: int,
    plain: bool,
    doubtful: Any,
    table: Any,
    batch: Any,
    event: Any,
    out: Any,
    filled: int,
    tally: Any,
) -> int:
    """The conjunction algorithm: write what is in `k` lists; returns how much of `out` is filled then, -1 if that is too little."""
    at, end, order = opened
    rounds, skips = 0, 0
    for i in range(many):
        order[UP(i)] = I64(current[UP(at[UP(i)])]) << 32 | i
        for j in range(i, 0, -1):
            if order[UP(j - 1)] < order[UP(j)]:
                break
            order[UP(j - 1)], order[UP(j)] = order[UP(j)], order[UP(j - 1)]
    while order[UP(k - 1)] >> 32 < _EXHAUSTED:
        target, moving = order[UP(k - 1)] >> 32, k - 1
        rounds += 1
        if order[0] >> 32 == target:
            if (plain and not doubtful[UP(target)]) or _is_true(table, target, batch, event, tally):
                if filled == len(out):
                    return -1
                out[filled] = target
                filled += 1
            target, moving = target + 1, k
        for i in range(moving - 1, -1, -1):
            if order[UP(i)] >> 32 < target:
                each = order[UP(i)] & _LIST
                at[UP(each)] = _skipped(current, at[UP(each)], end[UP(each)], target)
                following = I64(_EXHAUSTED)
                if at[UP(each)] < end[UP(each)]:
                    following = I64(current[UP(at[UP(each)])])
                _sink(order, i, many, following << 32 | each)
                skips += 1
    tally[CANDIDATES] += rounds
    tally[PREDICATES] += skips
    return filled


@inlined
def _skipped(current: Any, at: int, end: int, target: int) -> int:
    """The first place from `at` on, where the list is before `target`, with something that is not; `end` if there is none."""
    step = 1
    while at + step < end and current[UP(at + step)] < target:
        at += step
        step *= 2
    end = min(at + step, end)
    at += 1
    while at < end:
        middle = (at + end) // 2
        if current[UP(middle)] < target:
            at = middle + 1
        else:
            end = middle
    return at


@inlined
def _sink(order: Any, i: int, many: int, word: int) -> None:
    """Replace the i-th by a larger one, and let it sink to where it belongs."""
    while i + 1 < many and order[UP(i + 1)] < word:
        order[UP(i)] = order[UP(i + 1)]
        i += 1
    order[UP(i)] = word
