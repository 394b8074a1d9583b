"""How one conjunction of a segment is found: its access path, planned once more.

Segments do not keep plans, which would take as much memory as the lists. They keep what plans were made from, which is small (see
`forecast`), so the planner gives the same answer again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import Conjunctions, conjunctions_taken
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.forecast import Forecast, reaches
from tamis.engine.layout.guards import count_entries
from tamis.engine.layout.lookup import ABOUT, BEGIN, SIDES
from tamis.engine.layout.pairs import enter_pairs, entries_like, plan_pairs
from tamis.engine.layout.plan import ALWAYS, LOWER, PAIRS, POINTS, PRESENCE, UPPER, Plan, plan_rows
from tamis.engine.layout.predicate_codes import MASK_WORDS, RANGE, CodedTable, code_table, fill_mask
from tamis.engine.layout.second_filter import choose_second
from tamis.engine.layout.segment_build import Body
from tamis.kernels.bits import first_half, has_bit, second_half
from tamis.kernels.ranges import span_indices

_NONE = -1


class Access(NamedTuple):
    """The access path of one conjunction. Likelihoods are the ones expected when the segment was built."""

    way: int
    access: Leaf | None
    other: Leaf | None
    """The other predicate of a pair."""
    filter: Leaf | None
    second: Leaf | None
    """The second filter, if the segment has second filters."""
    rest: tuple[Leaf, ...]
    lists: int
    entries: int
    """How many entries these lists have, those of other conjunctions too."""
    reach: float
    """How likely an event meets the lists."""
    passing: float
    """How likely it passes the filter."""
    cost: float
    """Nanoseconds per event."""


def access_of(conjunctions: Conjunctions, row: int, body: Body, forecast: Forecast) -> Access:
    """How a conjunction of a segment is found."""
    table = code_table(conjunctions_taken(conjunctions, np.array([row])), forecast.scales, forecast.likelihood)
    plan, _ = plan_rows(table, forecast.list_costs.copy())  # Numba would compile again for an array that is read-only.
    if body.pairs.entries:
        plan, _ = plan_pairs(table, plan)
    paired = plan.way[0] == PAIRS
    if len(body.second) or paired:
        choose_second(table, plan)
    leaves = _leaves(table.predicates)
    access, filtered, second = int(plan.access[0]), int(plan.filter[0]), int(plan.second[0])
    other = _NONE
    if paired:
        other, filtered, second = filtered, second, _NONE
    lists, entries = _size_of_lists(plan, table, body)
    return Access(
        int(plan.way[0]),
        leaves[access] if access >= 0 else None,
        leaves[other] if other >= 0 else None,
        leaves[filtered] if filtered >= 0 else None,
        leaves[second] if second >= 0 else None,
        tuple(leaf for p, leaf in enumerate(leaves) if p not in (access, other, filtered, second)),
        lists,
        entries,
        float(reaches(table, plan)[0]),
        float(table.coded.probability[filtered]) if filtered >= 0 else 1.0,
        float(plan.cost[0]),
    )


def _leaves(predicates: Predicates) -> list[Leaf]:
    bounds = list(zip(predicates.lo.tolist(), predicates.hi.tolist(), strict=True))
    start = predicates.start.tolist()
    columns = zip(predicates.dimension.tolist(), predicates.mode.tolist(), start[:-1], start[1:], strict=True)
    return [Leaf(dimension, Mode(mode), tuple(bounds[begin:end])) for dimension, mode, begin, end in columns]


def _size_of_lists(plan: Plan, table: CodedTable, body: Body) -> tuple[int, int]:
    """How many lists a plan of one conjunction has, and how many entries these lists have."""
    way, p = int(plan.way[0]), int(plan.access[0])
    if way == PAIRS:
        return entries_like(body.pairs, enter_pairs(table, plan)[0])
    if way not in (UPPER, LOWER):
        lists = _lists(way, p, table, body)
        return len(lists), sum(_size(body, number) for number in lists)
    d = int(table.coded.dimension[p])
    sides = int(body.lookup.about[ABOUT * d + SIDES])
    at = first_half(sides) if way == LOWER else second_half(sides)
    return 1, int(body.directory.bounds[at + int(table.scales.spaces[d])]) - int(body.directory.bounds[at])


def _lists(way: int, p: int, table: CodedTable, body: Body) -> list[int]:
    """The numbers of the lists in which a predicate is entered: see `lists`."""
    if way == ALWAYS:
        return [body.cells + body.dimensions]
    predicates, coded, scales = table.predicates, table.coded, table.scales
    d = int(coded.dimension[p])
    if way == PRESENCE:
        return [body.cells + d]
    if way == POINTS:
        ours = slice(predicates.start[p], predicates.start[p + 1])
        first, last = body.points.start[d : d + 2].tolist()
        keys = body.points.key[first:last]
        begin, end = (
            np.searchsorted(keys, predicates.lo[ours]),
            np.searchsorted(keys, predicates.hi[ours], side="right"),
        )
        at_point = body.cells + body.dimensions + 1 + first
        return [at_point + number for number in span_indices(begin, end - begin).tolist()]
    mask = np.full(MASK_WORDS, ~np.uint64(0))
    if coded.kind[p] != RANGE and scales.shift_at[d] < 0:
        fill_mask(p, d, predicates, scales, mask)
    spaces = range(int(coded.first[p]), int(coded.last[p]) + 1)
    return [int(scales.cell[d]) + s for s in spaces if has_bit(mask, s)]


def _size(body: Body, number: int) -> int:
    """The number of entries of a list, those of its runs too."""
    begin, end = (int(bound) & BEGIN for bound in body.directory.begin[number : number + 2])
    runs = slice(*np.searchsorted(body.runs.list, [number, number + 1]))
    lengths = np.diff(body.runs.start)[runs]
    return count_entries(body.entry[2 * begin : 2 * end : 2], body.dimensions) + int(lengths.sum())
