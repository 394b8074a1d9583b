"""How many retained events are where on the line of each attribute, and which needs this satisfies.

The ends of all constraints cut the keys of an attribute into *cells*, as in the paper's Interval Index. Each cell counts the
retained events that it holds. A constraint is some *stretches* of cells: "some" asks for an event in one of them,
"none" for no event in any.

    price      missing | odd |  .. 10) | 10 | (10 .. 20) | 20 | (20 ..   | strings | ...       domain by domain, see `key_ranges`
    events        1       0        4      0        7       1       9          0
    some price < 20                <--------------------->                                      satisfied
    no price = 10                         <->                                                   satisfied

An event that comes or leaves changes one cell of each attribute: a binary search and three additions. Nothing is noted of
constraints. They are looked up when a need is asked for: sums over 64 and 4,096 cells leave out what is empty.

The other way is a bit for each need, kept up with each event. There, one event would switch thousands of bounds on a price,
though few of them are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tamis.earlier.column import Column
from tamis.earlier.event_log import EventLog
from tamis.earlier.key_ranges import DOMAINS, DOMAINS_OF, MISSING, ODD, TEXT, KeyRange, Range, outside
from tamis.earlier.needs import Constraint, Need
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.kernel import brief_kernel, inlined
from tamis.kernels.numbers import Bools, I8s, I32s, I64s
from tamis.kernels.sorting import first_above
from tamis.language.value_set import EVERYTHING, Span, ValueSet, complement
from tamis.language.values import Kind

UNPLANNED = -1
"""The row of a need that the tally does not know."""
_BLOCK, _GROUP = 64, 4096
"""Cells whose sum is kept."""
_FEW = 16
"""Needs whose attributes are found one by one."""

Stretches = list[tuple[int, int, int]]
"""The domain, the lowest and the highest key of each stretch."""


class Cells(NamedTuple):
    """Where cells begin. The *place* of an attribute and a domain counts attributes, and in each of them domains."""

    starts: I64s
    """The first key of each cell, but for the first cell of a place. Ascending by place."""
    start_at: I64s
    """By place: where its starts begin. One more at the end."""
    cell_at: I64s
    """By place: its first cell."""


class Counts(NamedTuple):
    """The number of events in each cell, in each block and in each group of cells."""

    cells: I64s
    blocks: I64s
    groups: I64s


class Rows(NamedTuple):
    """Needs by row, in arrays that point to ranges of the next one."""

    clause_at: I64s
    member_at: I64s
    """By clause."""
    members: I64s
    """Constraints of clauses."""
    stretch_at: I64s
    """By constraint."""
    low: I64s
    """The first cell of each stretch."""
    high: I64s
    is_some: Bools
    """By constraint."""


class Moves(NamedTuple):
    """The positions of events that came, and of events that left. Each end is behind the last one."""

    came: int
    came_end: int
    left: int
    left_end: int


@inlined
def _add(cells: Cells, counts: Counts, place: int, key: int, step: int) -> None:
    first = cells.start_at[place]
    cell = cells.cell_at[place] + first_above(cells.starts, first, cells.start_at[place + 1], key) - first
    counts.cells[cell] += step
    counts.blocks[cell // _BLOCK] += step
    counts.groups[cell // _GROUP] += step


@brief_kernel
def count(cells: Cells, counts: Counts, attribute: int, domains: I8s, keys: I64s, positions: I64s, step: int) -> None:
    """Add a step to the cells of some events."""
    for position in positions:
        _add(cells, counts, attribute * DOMAINS + domains[position], keys[position], step)


@brief_kernel
def count_moves(cells: Cells, counts: Counts, attribute: int, domains: I8s, keys: I64s, moves: Moves) -> None:
    """Count events that came, and no longer count those that left."""
    for position in range(moves.came, moves.came_end):
        _add(cells, counts, attribute * DOMAINS + domains[position], keys[position], 1)
    for position in range(moves.left, moves.left_end):
        _add(cells, counts, attribute * DOMAINS + domains[position], keys[position], -1)


@inlined
def _has_some(counts: Counts, low: int, high: int) -> bool:
    """Whether some event is in the cells between two, both included."""
    at = low
    while at <= high:
        if at % _GROUP == 0 and counts.groups[at // _GROUP] == 0:
            at += _GROUP
        elif at % _BLOCK == 0 and counts.blocks[at // _BLOCK] == 0:
            at += _BLOCK
        elif counts.cells[at]:
            return True
        else:
            at += 1
    return False


@inlined
def _holds(rows: Rows, counts: Counts, constraint: int) -> bool:
    for stretch in range(rows.stretch_at[constraint], rows.stretch_at[constraint + 1]):
        if _has_some(counts, rows.low[stretch], rows.high[stretch]):
            return bool(rows.is_some[constraint])
    return not rows.is_some[constraint]


@brief_kernel
def satisfied(rows: Rows, counts: Counts, asked: I32s, only_some: bool, found: Bools) -> None:
    """Whether each of some needs is satisfied. `only_some`: constraints of the other kind count as satisfied."""
    for place in range(len(asked)):
        row = asked[place]
        found[place] = True
        if row == UNPLANNED:
            continue
        for clause in range(rows.clause_at[row], rows.clause_at[row + 1]):
            holds = False
            for member in range(rows.member_at[clause], rows.member_at[clause + 1]):
                constraint = rows.members[member]
                holds = (only_some and not rows.is_some[constraint]) or _holds(rows, counts, constraint)
                if holds:
                    break
            if not holds:
                found[place] = False
                break


class Tally:
    """Some needs, and the counts that decide them. It counts no events at first."""

    def __init__(self, needs: Mapping[int, Need], log: EventLog) -> None:
        self._row_of = np.full(max(needs, default=-1) + 3, UNPLANNED, np.int32)
        """By the number of a need. The last two places are those of -1 and -2."""
        self._row_of[list(needs)] = np.arange(len(needs))
        self._places: dict[Constraint, int] = {}
        clauses = [clause for need in needs.values() for clause in need]
        members = [self._places.setdefault(each, len(self._places)) for clause in clauses for each in clause]
        self.attributes = list(dict.fromkeys(each.attribute for each in self._places))
        place_of = {name: place for place, name in enumerate(self.attributes)}
        asked = [frozenset(place_of[each.attribute] for clause in need for each in clause) for need in needs.values()]
        distinct = {each: each for each in asked}
        self._asked = [distinct[each] for each in asked]
        """The places of the attributes of each row."""
        self._columns = [log.column(name) for name in self.attributes]
        self._moves = [_pinned(column, self._places) for column in self._columns]
        """How often the keys of strings had moved."""
        stretches = [
            _stretches(log.column(each.attribute), each, DOMAINS * place_of[each.attribute]) for each in self._places
        ]
        of = np.array([stretch for each in stretches for stretch in each], np.int64).reshape(-1, 3)
        self.cells, low, high = _cells(of, DOMAINS * len(self.attributes))
        size = len(self.cells.starts) + DOMAINS * len(self.attributes)
        self.counts = Counts(
            np.zeros(size, np.int64), np.zeros(size // _BLOCK + 1, np.int64), np.zeros(size // _GROUP + 1, np.int64)
        )
        self._rows = Rows(
            _ends(len(need) for need in needs.values()),
            _ends(map(len, clauses)),
            np.array(members, np.int64),
            _ends(map(len, stretches)),
            low,
            high,
            np.array([each.is_some for each in self._places], np.bool_),
        )

    def __len__(self) -> int:
        """The number of needs."""
        return len(self._rows.clause_at) - 1

    def has_cells_of(self, place: int, column: Column) -> bool:
        """Whether the cells of an attribute are those of its column, as this is now."""
        return self._columns[place] is column and self._moves[place] == column.text_moves

    def places_of(self, rows: I32s) -> Collection[int] | None:
        """The places of the attributes that the needs of a few rows ask about. None for many rows: all."""
        planned = rows[rows != UNPLANNED].tolist()
        return None if len(planned) > _FEW else {place for row in planned for place in self._asked[row]}

    @property
    def constraints(self) -> int:
        """The number of distinct constraints."""
        return len(self._places)

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for part in (self.cells, self.counts, self._rows) for each in part) + self._row_of.nbytes

    def count(self, attribute: int, column: Column, positions: I64s, step: int) -> None:
        """Count events that came, or with the step -1 events that left."""
        count(self.cells, self.counts, attribute, column.domains, column.keys, positions, step)

    def move(self, attribute: int, column: Column, moves: Moves) -> None:
        """The same for events at neighbouring positions."""
        count_moves(self.cells, self.counts, attribute, column.domains, column.keys, moves)

    def clear(self, attribute: int) -> None:
        """Forget the events of an attribute."""
        place = DOMAINS * attribute
        behind = self.cells.cell_at[place + DOMAINS] if place + DOMAINS < len(self.cells.cell_at) else None
        self.counts.cells[self.cells.cell_at[place] : behind] = 0
        for sums, size in ((self.counts.blocks, _BLOCK), (self.counts.groups, _GROUP)):
            found = np.add.reduceat(self.counts.cells, np.arange(0, len(self.counts.cells), size))
            sums[: len(found)] = found

    def rows(self, needs: I32s) -> I32s:
        """The rows of needs by their numbers."""
        rows: I32s = self._row_of[np.minimum(needs, len(self._row_of) - 1)]
        return rows

    def satisfied(self, rows: I32s, *, only_some: bool = False) -> Bools:
        """Whether the need of each row is satisfied. An unplanned one is."""
        found = np.empty(len(rows), np.bool_)
        satisfied(self._rows, self.counts, rows, only_some, found)
        return found

    def holds(self, constraint: Constraint) -> bool | None:
        """Whether a constraint holds; None if no need has it."""
        place = self._places.get(constraint)
        if place is None:
            return None
        rows = self._rows
        part = slice(rows.stretch_at[place], rows.stretch_at[place + 1])
        some = any(
            self.counts.cells[low : high + 1].any()
            for low, high in zip(rows.low[part].tolist(), rows.high[part].tolist(), strict=True)
        )
        return bool(some) is constraint.is_some


def _ends(sizes: Iterable[int]) -> I64s:
    """Where ranges of some sizes begin, and where the last one ends."""
    return np.append(0, np.cumsum(np.fromiter(sizes, np.int64))).astype(np.int64)


def _cells(stretches: I64s, places: int) -> tuple[Cells, I64s, I64s]:
    """The cells between the ends of all stretches, and the first and last cell of each stretch."""
    place, low, high = stretches.T
    has_low, has_high = low > KEY_MIN, high < KEY_MAX
    of = np.concatenate([place[has_low], place[has_high]])
    starts = np.concatenate([low[has_low], high[has_high] + 1])
    order = np.lexsort((starts, of))
    of, starts = of[order], starts[order]
    is_new = np.ones(len(starts), np.bool_)
    is_new[1:] = (of[1:] != of[:-1]) | (starts[1:] != starts[:-1])
    of, starts = of[is_new], starts[is_new]
    start_at = np.searchsorted(of, np.arange(places + 1)).astype(np.int64)
    cells = Cells(starts, start_at, start_at[:-1] + np.arange(places))
    first, last = np.empty(len(place), np.int64), np.empty(len(place), np.int64)
    for each in np.unique(place).tolist():
        among, own = place == each, starts[start_at[each] : start_at[each + 1]]
        for ends, found in ((low, first), (high, last)):
            found[among] = cells.cell_at[each] + np.searchsorted(own, ends[among], "right")
    return cells, first, last


def _pinned(column: Column, constraints: Iterable[Constraint]) -> int:
    """Give keys to the strings of all constraints on a column, in order if one of them asks for it."""
    texts: set[str] = set()
    is_ordered = False
    for each in constraints:
        values = dict(each.values).get(Kind.STRING) if each.attribute == column.attribute else None
        if values is not None:
            named = _named(values)
            is_ordered = is_ordered or named is None
            texts.update(str(key) for key, _ in values.cuts)
    column.pin(texts, ordered=is_ordered)
    return column.text_moves


def _named(values: ValueSet) -> tuple[list[Span], bool] | None:
    """The strings that a set consists of, or all of which it lacks; None if it has other ends."""
    for found, negated in ((values, False), (complement(values, Kind.STRING), True)):
        spans = list(found.spans())
        if all(span.is_point for span in spans):
            return spans, negated
    return None


def _stretches(column: Column, constraint: Constraint, place: int) -> Stretches:
    """The stretches of a constraint, with the place of its attribute."""
    found = [(MISSING, KEY_MIN, KEY_MAX)] if constraint.missing else []
    if constraint.is_some:
        found.append((ODD, KEY_MIN, KEY_MAX))
    for kind, values in constraint.values:
        if values == EVERYTHING[kind]:
            found += [(domain, KEY_MIN, KEY_MAX) for domain in DOMAINS_OF[kind]]
        elif kind is Kind.STRING and (named := _named(values)) is not None:
            found += [(TEXT, *each) for each in _text_ranges(column, *named)]
        else:
            ranges = column.ranges({kind: [_range(span) for span in values.spans()]})
            found += [(domain, *each) for domain, pairs in ranges.items() for each in pairs]
    return [(place + domain, lo, hi) for domain, lo, hi in found if lo <= hi]


def _text_ranges(column: Column, points: list[Span], negated: bool) -> list[KeyRange]:
    [ranges] = column.ranges({Kind.STRING: [_range(span) for span in points]}).values()
    return list(outside(ranges)) if negated else ranges


def _range(span: Span) -> Range:
    lo, hi = span
    return Range(
        None if lo is None else lo[0],
        None if hi is None else hi[0],
        lo is not None and lo[1],
        hi is not None and not hi[1],
    )
