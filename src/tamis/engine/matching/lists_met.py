"""Which lists and runs of a segment an event meets.

The functions append lists and runs to the arrays of `Met`. They take and return how many lists and runs there are, because a
kernel has no object that could keep these counts.
"""

from __future__ import annotations

from tamis.engine.layout.lists import find_point, home_of
from tamis.engine.layout.lookup import (
    ABOUT,
    AT,
    BEGIN,
    BLOCKS,
    CELL,
    HAS_RUNS,
    LOWEST,
    PRESENCE,
    SIDES,
    WHOLES,
    Lookup,
    list_at,
)
from tamis.engine.layout.plan import RANKED
from tamis.engine.layout.runs import LOWER_RUN, UPPER_RUN, Runs, lowest_begin
from tamis.engine.layout.scale import MISSING, space_of, table_space
from tamis.engine.layout.segment_build import Body
from tamis.engine.matching.scratch import LoadedEvent, Met, Values
from tamis.kernels.bits import first_half, second_half
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64, UP, Bools, I64s, U32s
from tamis.kernels.sorting import first_above

LISTS_PER_VALUE = 8
"""The most lists that an event meets by one value, plus the lists that every event meets."""


# -- where to look


@inlined
def local_dimension(lookup: Lookup, dimension: int) -> int:
    """The segment's number of a dimension of the matcher. -1: the segment has no predicate on it."""
    return I64(lookup.local[UP(dimension)]) if dimension < len(lookup.local) else -1


@inlined
def space_at(lookup: Lookup, dimension: int, key: int) -> int:
    """The space of a key."""
    line = ABOUT * dimension
    at, blocks = lookup.about[UP(line + AT)], lookup.about[UP(line + BLOCKS)]
    if blocks == 0:
        return I64(table_space(lookup.table, at, lookup.about[UP(line + LOWEST)], lookup.about[UP(line + WHOLES)], key))
    return space_of(lookup.cuts, at, blocks, key)


# -- lists


@inlined
def lists_of_several(values: Values, count: int, body: Body, event: LoadedEvent, met: Met) -> tuple[int, int, int]:
    """Note all lists of an event that is not single-valued, and the runs in them.

    Returns how many lists there are, how many of them have no row in common, and how many runs. The lists without a common row
    come first. The other lists belong to dimensions in which the event has several values: a row may be in many of these lists.
    """
    about, begins, bounds, run_lists = body.lookup.about, body.directory.begin, body.directory.bounds, body.runs.list
    lists, runs = 0, 0
    for i in range(count):
        dimension, s = I64(event.touched[UP(i)]), I64(event.first[UP(i)])
        if dimension < RANKED and not event.several[UP(dimension)]:
            line = ABOUT * dimension
            lists, runs = add_list(begins, run_lists, about[UP(line + CELL)] + s, lists, runs, met)
            lists = add_presence(about, bounds, line, s, s, lists, met)
            key = event.low[UP(dimension)]
            home = home_of(dimension, key, body.points.table)
            lists, runs = add_point(body, dimension, key, home, lists, runs, met)
    lists, runs = add_list(begins, run_lists, body.cells + body.dimensions, lists, runs, met)
    once = lists
    for i in range(count):
        dimension = I64(event.touched[UP(i)])
        if dimension >= RANKED or event.several[UP(dimension)]:
            first, last = I64(event.first[UP(i)]), I64(event.last[UP(i)])
            lists = add_presence(about, bounds, ABOUT * dimension, first, last, lists, met)
    lists, runs = _several_lists(values, body, event.several, lists, runs, met)
    return lists, once, runs


@inlined
def _several_lists(values: Values, body: Body, several: Bools, lists: int, runs: int, met: Met) -> tuple[int, int]:
    """Note the lists of the spaces and points that the event touches in dimensions in which it has several values."""
    points = body.points
    for v in range(values.begin, values.end):
        dimension = local_dimension(body.lookup, values.dimension[UP(v)])
        if dimension < 0 or (dimension < RANKED and not several[UP(dimension)]):
            continue
        low, high = values.low[UP(v)], values.high[UP(v)]
        s, t = space_at(body.lookup, dimension, low), space_at(body.lookup, dimension, high)
        first, upto = points.start[UP(dimension)], points.start[UP(dimension + 1)]
        if first < upto:
            if low == high:
                home = home_of(dimension, low, points.table)
                first = I64(find_point(dimension, low, home, points))
                upto = first + I64(first >= 0)
            else:
                first = first_above(points.key, first, upto, low - 1)
                upto = first_above(points.key, first, upto, high)
        room = lists + (t - s + 1) + (upto - first) + LISTS_PER_VALUE
        if room > len(met.begin):
            return -room, 0
        for at in range(s, t + 1):
            number = body.lookup.about[UP(ABOUT * dimension + CELL)] + at
            lists, runs = _add_again(body.directory.begin, body.runs.list, number, lists, runs, met)
        for at in range(max(first, 0), upto):
            number = body.cells + body.dimensions + 1 + at
            lists, runs = _add_again(body.directory.begin, body.runs.list, number, lists, runs, met)
    return lists, runs


@inlined
def add_point(body: Body, dimension: int, key: int, home: int, lists: int, runs: int, met: Met) -> tuple[int, int]:
    """Note the list of a key, if the key has its own list. The table of points has the key at `home` or behind it."""
    points = body.points
    if len(points.key) > 0 and points.start[UP(dimension)] < points.start[UP(dimension + 1)]:
        number = I64(find_point(dimension, key, home, points))
        if number >= 0:
            at = body.cells + body.dimensions + 1 + number
            lists, runs = add_list(body.directory.begin, body.runs.list, at, lists, runs, met)
    return lists, runs


@inlined
def add_presence(about: I64s, bounds: U32s, line: int, first: int, last: int, lists: int, met: Met) -> int:
    """Note the list of a dimension, and the prefixes of its sorted bounds that the spaces `first` and `last` satisfy."""
    here = about[UP(line + PRESENCE)]
    lists = note(first_half(here) & BEGIN, second_half(here), lists, met)
    sides = about[UP(line + SIDES)]
    if sides != 0:
        lists = _add_prefix(bounds, second_half(sides), first, lists, met)
        lists = _add_prefix(bounds, first_half(sides), last, lists, met)
    return lists


@inlined
def _add_prefix(bounds: U32s, at: int, space: int, lists: int, met: Met) -> int:
    """Note the satisfied prefix of the sorted bounds that lie at `at`."""
    return note(I64(bounds[UP(at)]), I64(bounds[UP(at + 1 + space)]), lists, met)


@inlined
def note(first: int, last: int, lists: int, met: Met) -> int:
    """Note a list unless it is empty. This takes no branch."""
    met.begin[UP(lists)], met.end[UP(lists)] = first, last
    return lists + I64(last > first)


@inlined
def add_list(begins: U32s, run_lists: I64s, number: int, lists: int, runs: int, met: Met) -> tuple[int, int]:
    """Note a list unless it is empty, and its runs."""
    begin, end, has_runs = list_at(begins, number)
    lists = note(begin, end, lists, met)
    if has_runs:
        runs = add_runs(run_lists, number, runs, met)
    return lists, runs


@inlined
def _add_again(begins: U32s, run_lists: I64s, number: int, lists: int, runs: int, met: Met) -> tuple[int, int]:
    """`add_list` for a list that may have been noted before. Runs are not noted twice: `met` has no room for that."""
    begin, end, has_runs = list_at(begins, number)
    lists = note(begin, end, lists, met)
    if has_runs:
        for i in range(runs):
            has_runs = has_runs and run_lists[UP(met.run[UP(i)])] != number
    if has_runs:
        runs = add_runs(run_lists, number, runs, met)
    return lists, runs


# -- runs


@inlined
def presence_runs(body: Body, event: LoadedEvent, count: int, runs: int, met: Met) -> int:
    """Note the runs in the lists of the event's dimensions."""
    for i in range(count):
        dimension = event.touched[UP(i)]
        if first_half(body.lookup.about[UP(ABOUT * dimension + PRESENCE)]) & HAS_RUNS:
            runs = add_runs(body.runs.list, body.cells + dimension, runs, met)
    return runs


@inlined
def add_runs(run_lists: I64s, number: int, runs: int, met: Met) -> int:
    """Note the runs of a list."""
    r = first_above(run_lists, 0, len(run_lists), number - 1)
    while r < len(run_lists) and run_lists[UP(r)] == number:
        met.run[UP(runs)] = r
        runs += 1
        r += 1
    return runs


@inlined
def bound_runs(runs: Runs, count: int, event: LoadedEvent, met: Met) -> int:
    """Find the entries of each run whose condition may hold. Returns how many entries these are."""
    entries = 0
    for i in range(count):
        r = met.run[UP(i)]
        dimension = I64(runs.dimension[UP(r)])
        if event.space[UP(dimension)] == MISSING:
            met.run_begin[UP(i)], met.run_end[UP(i)] = runs.start[UP(r)], runs.start[UP(r)]
        else:
            low, high = event.low[UP(dimension)], event.high[UP(dimension)]
            met.run_begin[UP(i)], met.run_end[UP(i)] = bounds_in_run(runs, r, low, high)
        entries += met.run_end[UP(i)] - met.run_begin[UP(i)]
    return entries


@inlined
def bounds_in_run(runs: Runs, r: int, low: int, high: int) -> tuple[int, int]:
    """Begin and end of the entries of a run whose condition may hold. It always holds if the run is not a band.

    `low` and `high` are the ends of the event's values in the dimension of the run.
    """
    side, begin, end = I64(runs.side[UP(r)]), runs.start[UP(r)], runs.start[UP(r + 1)]
    if side == LOWER_RUN:
        return begin, _gallop(runs.key, begin, end, high)
    if side == UPPER_RUN:
        return begin, _gallop(runs.key, begin, end, ~low)
    least = lowest_begin(side, low)
    upto = first_above(runs.key, begin, end, high)
    return first_above(runs.key, begin, upto, least), upto


@inlined
def _gallop(keys: I64s, begin: int, end: int, key: int) -> int:
    """`first_above`, with a cost that depends on the answer and not on the length of the run."""
    step = 256
    while begin + step <= end and keys[UP(begin + step - 1)] <= key:
        begin += step
        step += step
    return first_above(keys, begin, min(begin + step, end), key)
