"""How one conjunction of a segment is found: its access path, planned once more.

Plans are not kept, which would take as much memory as the lists themselves; what they were made from is small and is kept (see
`forecast`), and the planner gives the same answer again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import Conjunctions, conjunctions_taken
from tamis.engine.layout.forecast import Forecast, reaches
from tamis.engine.layout.guards import count_entries
from tamis.engine.layout.pairs import enter_pairs, entries_like, plan_pairs
from tamis.engine.layout.plan import ALWAYS, LOWER, PAIRS, POINTS, PRESENCE, UPPER, Plan, plan_rows
from tamis.engine.layout.predicate_codes import MASK_WORDS, RANGE, Coded, code_predicates, fill_mask, has_space
from tamis.engine.layout.scale import Scales
from tamis.engine.layout.second_filter import choose_second
from tamis.engine.layout.segment_build import HAS_RUNS, SIDES, Body
from tamis.kernels.ranges import run_indices

_WHOLE = HAS_RUNS - 1
_NONE = -1


class Access(NamedTuple):
    """The access path of one conjunction; likelihoods are of events, as they were expected when the segment was built."""

    way: int
    access: Leaf | None
    other: Leaf | None
    """The other one of a pair."""
    filter: Leaf | None
    second: Leaf | None
    """The second filter, where the segment has them."""
    rest: tuple[Leaf, ...]
    lists: int
    entries: int
    """How many the lists have, with those of other conjunctions."""
    reach: float
    """That an event meets the lists."""
    passing: float
    """That it passes the filter."""
    cost: float
    """Nanoseconds per event."""


def access_of(table: Conjunctions, row: int, body: Body, forecast: Forecast) -> Access:
    """How a row of a segment's table is found."""
    start, predicates = conjunctions_taken(table, np.array([row]))
    scales, likelihood, list_costs, _ = _writable(forecast)
    coded = code_predicates(predicates, scales, likelihood)
    plan, _ = plan_rows(start, predicates, coded, scales, likelihood, list_costs)
    if body.pairs.entries:
        plan, _ = plan_pairs(start, plan, predicates, coded, scales, likelihood)
    paired = plan.way[0] == PAIRS
    if len(body.second) or paired:
        choose_second(start, plan, coded, scales, likelihood)
    leaves = _leaves(Conjunctions(start, predicates), 0)
    access, filtered, second = int(plan.access[0]), int(plan.filter[0]), int(plan.second[0])
    other = _NONE
    if paired:
        other, filtered, second = filtered, second, _NONE
    lists, entries = _size_of_lists(plan, Conjunctions(start, predicates), coded, scales, body)
    return Access(
        int(plan.way[0]),
        leaves[access] if access >= 0 else None,
        leaves[other] if other >= 0 else None,
        leaves[filtered] if filtered >= 0 else None,
        leaves[second] if second >= 0 else None,
        tuple(leaf for p, leaf in enumerate(leaves) if p not in (access, other, filtered, second)),
        lists,
        entries,
        float(reaches(plan, coded, scales, likelihood)[0]),
        float(coded.probability[filtered]) if filtered >= 0 else 1.0,
        float(plan.cost[0]),
    )


def _leaves(table: Conjunctions, row: int) -> list[Leaf]:
    """The predicates of a conjunction."""
    start, (dimension, mode, begin, lo, hi) = table
    return [
        Leaf(
            int(dimension[p]),
            Mode(int(mode[p])),
            tuple(zip(lo[begin[p] : begin[p + 1]].tolist(), hi[begin[p] : begin[p + 1]].tolist(), strict=True)),
        )
        for p in range(int(start[row]), int(start[row + 1]))
    ]


def _size_of_lists(plan: Plan, table: Conjunctions, coded: Coded, scales: Scales, body: Body) -> tuple[int, int]:
    """How many lists a plan of one conjunction has, and how many entries these."""
    way, p = int(plan.way[0]), int(plan.access[0])
    if way == PAIRS:
        return entries_like(body.pairs, enter_pairs(table.start, plan, table.predicates, coded, scales)[0])
    if way not in (UPPER, LOWER):
        lists = _lists(way, p, table, coded, scales, body)
        return len(lists), sum(_size(body, number) for number in lists)
    d = int(coded.dimension[p])
    sides = int(body.lookup.about[d * 8 + SIDES])
    at = sides >> 32 if way == LOWER else sides & 0xFFFFFFFF
    return 1, int(body.directory.bounds[at + int(scales.spaces[d])]) - int(body.directory.bounds[at])


def _lists(way: int, p: int, table: Conjunctions, coded: Coded, scales: Scales, body: Body) -> list[int]:
    """The numbers of the lists in which a predicate is entered: see `lists`."""
    if way == ALWAYS:
        return [body.cells + body.dimensions]
    d = int(coded.dimension[p])
    if way == PRESENCE:
        return [body.cells + d]
    _, (_, mode, start, lo, hi) = table
    if way == POINTS:
        ours = slice(start[p], start[p + 1])
        first, last = body.points.start[d : d + 2].tolist()
        keys = body.points.key[first:last]
        begin, end = np.searchsorted(keys, lo[ours]), np.searchsorted(keys, hi[ours], side="right")
        at_point = body.cells + body.dimensions + 1 + first
        return [at_point + number for number in run_indices(begin, end - begin).tolist()]
    mask = np.full(MASK_WORDS, ~np.uint64(0))
    if coded.kind[p] != RANGE and scales.shift_at[d] < 0:
        fill_mask(mode[p], lo, hi, start[p], start[p + 1], d, scales, mask)
    spaces = range(int(coded.first[p]), int(coded.last[p]) + 1)
    return [int(scales.cell[d]) + s for s in spaces if has_space(mask, s)]


def _size(body: Body, number: int) -> int:
    """The entries of a list, those of its runs too."""
    begin, end = (int(bound) & _WHOLE for bound in body.directory.begin[number : number + 2])
    runs = slice(*np.searchsorted(body.runs.list, [number, number + 1]))
    lengths = np.diff(body.runs.start)[runs]
    return count_entries(body.entry[2 * begin : 2 * end : 2], body.dimensions) + int(lengths.sum())


def _writable(nest: Any) -> Any:
    """The same with arrays that may be written to, for which the kernels are compiled."""
    if isinstance(nest, np.ndarray):
        return nest if nest.flags.writeable else nest.copy()
    return type(nest)(*map(_writable, nest)) if isinstance(nest, tuple) else nest
