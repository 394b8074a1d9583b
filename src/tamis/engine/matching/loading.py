"""Loading an event: its keys become spaces and aspects by dimension. For a single-valued event, loading also notes its lists."""

from __future__ import annotations

from tamis.engine.layout.aspects import NEAR, UNKNOWN, code_of_space, hide, show
from tamis.engine.layout.guards import BLOCK, GUARDED
from tamis.engine.layout.key_numbers import LINE, line_of, may_be_in, number_of_key
from tamis.engine.layout.lists import home_of
from tamis.engine.layout.lookup import (
    ABOUT,
    ALL_NUMBERED,
    AT,
    BLOCKS,
    BRIEF,
    BRIEF_BEGINS,
    BRIEF_PLACE,
    BRIEF_PRESENCE,
    BRIEF_WHOLES,
    CELL,
    NUMBERED,
    SHIFT_AT,
    SHIFTS,
    WHOLE,
    WHOLE_ENDS,
    WHOLE_LIST,
    Lookup,
    list_at,
    read_whole_word,
)
from tamis.engine.layout.pairs import PairScratch, note_cell
from tamis.engine.layout.plan import RANKED
from tamis.engine.layout.scale import FARTHEST_WHOLE, MISSING, code_of, number_of
from tamis.engine.layout.segment_build import ENTRY_WORDS, Body
from tamis.engine.matching.lists_met import (
    add_list,
    add_point,
    add_presence,
    add_runs,
    local_dimension,
    note,
    space_at,
)
from tamis.engine.matching.scratch import LoadedEvent, Met, Values
from tamis.kernels.bits import first_half, second_half
from tamis.kernels.hashing import spread
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import F64, I64, UP, U16s, U32s
from tamis.kernels.prefetch import prefetch


@inlined
def load(values: Values, body: Body, event: LoadedEvent, met: Met) -> tuple[int, bool, int, int]:
    """Load an event, and note its lists if it is single-valued. `met` has room for the lists.

    Returns the number of dimensions in which the event has values, whether it is single-valued, and how many lists and runs were
    noted.
    """
    lookup = body.lookup
    count = _rank(values, lookup, event)
    if count < 0:
        return _load_several(values, lookup, event), False, 0, 0
    lists, runs = 0, 0
    for i in range(count):
        at, line = I64(event.place[UP(i)]), BRIEF * I64(event.origin[UP(i)])
        dimension = second_half(lookup.brief[UP(line + BRIEF_PLACE)])
        event.touched[UP(i)] = dimension
        known = WHOLE * max(at, 0)
        word, ends = lookup.whole[UP(known + WHOLE_LIST)], lookup.whole[UP(known + WHOLE_ENDS)]
        s, begin, end, has_runs, is_long = read_whole_word(word)
        if at < 0:
            s = space_at(lookup, dimension, values.low[UP(values.begin + ~at)])
        if at < 0 or is_long:
            begin, end, has_runs = list_at(body.directory.begin, lookup.about[UP(ABOUT * dimension + CELL)] + s)
        if dimension < RANKED:
            event.space[UP(dimension)] = s
        event.first[UP(i)] = s
        noted = lists
        lists = note(begin, end, lists, met)
        _fetch_list(body.entry, body.guard, begin, end, lists - noted)
        if has_runs:
            runs = add_runs(body.runs.list, lookup.about[UP(ABOUT * dimension + CELL)] + s, runs, met)
        if at < 0:
            lists = add_presence(lookup.about, body.directory.bounds, ABOUT * dimension, s, s, lists, met)
        else:
            # All bounds are in the lines already read for the value and its dimension. Looking them up elsewhere took an eighth
            # to a quarter of the time of events that match nothing.
            presence, begins = lookup.brief[UP(line + BRIEF_PRESENCE)], lookup.brief[UP(line + BRIEF_BEGINS)]
            lists = note(first_half(presence), second_half(presence), lists, met)
            lists = note(first_half(begins), first_half(ends), lists, met)
            lists = note(second_half(begins), second_half(ends), lists, met)
    always = body.cells + body.dimensions
    lists, runs = add_list(body.directory.begin, body.runs.list, always, lists, runs, met)
    return count, True, lists, runs


@inlined
def _fetch_list(entry: U32s, guard: U16s, begin: int, end: int, noted: int) -> None:
    """Prefetch a list that was noted. Short lists would arrive too late if the scan of the lists before them fetched them."""
    guarded = I64((end - begin >= GUARDED) & (len(guard) > 0))
    prefetch(guard, begin // BLOCK * guarded)
    prefetch(entry, ENTRY_WORDS * begin * noted * (1 - guarded))


@inlined
def _rank(values: Values, lookup: Lookup, event: LoadedEvent) -> int:
    """Note the dimensions of a single-valued event and the places of its whole numbers in `Lookup.whole`. Prefetch these places.

    Returns the number of dimensions, or -1 if the event is not single-valued.
    """
    count, before = 0, -1
    for v in range(values.begin, values.end):
        d = I64(values.dimension[UP(v)])
        key = values.low[UP(v)]
        if values.high[UP(v)] != key or d == before:
            return -1
        before = d
        d = min(d, len(lookup.brief) // BRIEF - 1)  # The last line is for dimensions not in the segment.
        bounds, word = lookup.brief[UP(BRIEF * d + BRIEF_WHOLES)], lookup.brief[UP(BRIEF * d + BRIEF_PLACE)]
        if word < 0:
            continue
        event.origin[UP(count)] = d
        number = number_of(key)
        number = number if abs(number) < FARTHEST_WHOLE else 0.5
        at = I64(number) - first_half(bounds)
        found = (F64(I64(number)) == number) & (at >= 0) & (at < second_half(bounds))
        at = at + first_half(word) if found else values.begin + ~v
        event.place[UP(count)] = at
        prefetch(lookup.whole, WHOLE * max(at, 0))
        count += 1
    return count


@inlined
def _load_several(values: Values, lookup: Lookup, event: LoadedEvent) -> int:
    """Load an event that is not single-valued. Returns the number of dimensions in which it has values."""
    count, before = 0, -1
    for v in range(values.begin, values.end):
        d, low, high = values.dimension[UP(v)], values.low[UP(v)], values.high[UP(v)]
        dimension = local_dimension(lookup, d)
        if dimension < 0:
            continue
        s, t = space_at(lookup, dimension, low), space_at(lookup, dimension, high)
        if d == before:
            count -= 1
            s, t = min(s, I64(event.first[UP(count)])), max(t, I64(event.last[UP(count)]))
        if dimension < RANKED:
            event.space[UP(dimension)] = s
            event.several[UP(dimension)] = d == before or low != high
        event.touched[UP(count)] = dimension
        event.first[UP(count)], event.last[UP(count)] = s, t
        count += 1
        before = d
    return count


@inlined
def load_wide(
    values: Values, count: int, body: Body, event: LoadedEvent, lists: int, runs: int, met: Met
) -> tuple[int, int]:
    """Load the aspects of a single-valued event, after `load`, and append the lists of its keys."""
    lookup, numbers = body.lookup, body.key_numbers
    _fetch_keys(values, count, body, event)
    for i in range(count):
        dimension, space = I64(event.touched[UP(i)]), I64(event.first[UP(i)])
        line = ABOUT * dimension
        shifts = lookup.about[UP(line + SHIFT_AT)]
        if shifts < 0:
            if dimension < NEAR:
                code = code_of_space(space)
                show(dimension, code, code, event.seen)
            continue
        key = values.low[UP(values.begin + ~I64(event.place[UP(i)]))]
        at, blocks = lookup.about[UP(line + AT)], lookup.about[UP(line + BLOCKS)]
        code = code_of(lookup.cuts, at, blocks, lookup.shift, shifts & SHIFTS, space, key)
        number = code
        if shifts & NUMBERED:
            number = number_of_key(
                key, numbers.start[UP(dimension)], numbers.start[UP(dimension + 1)], numbers.mark, numbers.key
            )
        event.low[UP(dimension)], event.high[UP(dimension)] = key, key
        if dimension < RANKED:
            show(dimension, code, number, event.seen)
        if len(body.points.key) > 0 and not (shifts & ALL_NUMBERED and number == UNKNOWN):
            noted, home = lists, I64(event.point[UP(i)])
            if home < 0:
                home = home_of(dimension, key, body.points.table)  # The line was full, and the next line has the key.
            lists, runs = add_point(body, dimension, key, home, lists, runs, met)
            prefetch(body.entry, 2 * met.begin[UP(noted)] * (lists - noted))
    return lists, runs


@inlined
def _fetch_keys(values: Values, count: int, body: Body, event: LoadedEvent) -> None:
    """Prefetch the lines of the keys of a single-valued event in wide dimensions, then the keys.

    `event.point` gets each key's place in the hash table, or -1 if the key seems to have no list.
    """
    about, points, numbers = body.lookup.about, body.points, body.key_numbers
    for i in range(count):
        dimension = I64(event.touched[UP(i)])
        shifts = about[UP(ABOUT * dimension + SHIFT_AT)]
        if shifts >= 0:
            key = values.low[UP(values.begin + ~I64(event.place[UP(i)]))]
            if shifts & NUMBERED:
                line = line_of(spread(key), numbers.start[UP(dimension)], numbers.start[UP(dimension + 1)])
                prefetch(numbers.mark, line)
            if not shifts & ALL_NUMBERED:
                event.point[UP(i)] = home_of(dimension, key, points.table)
                prefetch(points.table, I64(event.point[UP(i)]))
    for i in range(count):
        dimension = I64(event.touched[UP(i)])
        shifts = about[UP(ABOUT * dimension + SHIFT_AT)]
        if shifts >= 0 and shifts & NUMBERED:
            key = values.low[UP(values.begin + ~I64(event.place[UP(i)]))]
            mixed = spread(key)
            line = line_of(mixed, numbers.start[UP(dimension)], numbers.start[UP(dimension + 1)])
            maybe = may_be_in(mixed, numbers.mark[UP(line)])
            if maybe:
                prefetch(numbers.key, line * LINE)
            if shifts & ALL_NUMBERED:
                event.point[UP(i)] = -1
                if maybe:
                    event.point[UP(i)] = home_of(dimension, key, points.table)
                    prefetch(points.table, I64(event.point[UP(i)]))
    if len(points.key) > 0:
        for i in range(count):
            if about[UP(ABOUT * event.touched[UP(i)] + SHIFT_AT)] >= 0 and event.point[UP(i)] >= 0:
                number = I64(max(points.table[UP(event.point[UP(i)])], 0))
                prefetch(points.key, number)
                prefetch(body.directory.begin, body.cells + body.dimensions + 1 + number)


@inlined
def show_several(values: Values, body: Body, event: LoadedEvent) -> None:
    """Load the aspects of an event that is not single-valued. A dimension with several values gets the aspects of one of them."""
    lookup, numbers = body.lookup, body.key_numbers
    count, before = -1, -1
    for v in range(values.begin, values.end):
        d, low, high = values.dimension[UP(v)], values.low[UP(v)], values.high[UP(v)]
        dimension = local_dimension(lookup, d)
        if dimension < 0:
            continue
        count += d != before
        line, space = ABOUT * dimension, I64(event.first[UP(count)])
        shifts = lookup.about[UP(line + SHIFT_AT)]
        code = code_of_space(space)
        number = code
        if shifts >= 0:
            at, blocks = lookup.about[UP(line + AT)], lookup.about[UP(line + BLOCKS)]
            code = code_of(lookup.cuts, at, blocks, lookup.shift, shifts & SHIFTS, space, low)
            number = code
            if shifts & NUMBERED:
                begin, end = numbers.start[UP(dimension)], numbers.start[UP(dimension + 1)]
                number = number_of_key(low, begin, end, numbers.mark, numbers.key)
            again = d == before
            event.low[UP(dimension)] = min(event.low[UP(dimension)], low) if again else low
            event.high[UP(dimension)] = max(event.high[UP(dimension)], high) if again else high
        if dimension < NEAR or (shifts >= 0 and dimension < RANKED):
            show(dimension, code, number, event.seen)
        before = d


@inlined
def note_cells(
    values: Values, count: int, single_valued: bool, body: Body, scratch: PairScratch, event: LoadedEvent
) -> int:
    """Note the cells of an event, after `load`. Returns their number, or minus the room that they need.

    A single-valued event always has enough room.
    """
    cells = 0
    if single_valued:
        for i in range(count):
            cells = note_cell(body.pairs, scratch, I64(event.touched[UP(i)]), I64(event.first[UP(i)]), cells)
        return cells
    for v in range(values.begin, values.end):
        dimension = local_dimension(body.lookup, values.dimension[UP(v)])
        if dimension < 0:
            continue
        s = space_at(body.lookup, dimension, values.low[UP(v)])
        t = space_at(body.lookup, dimension, values.high[UP(v)])
        if cells + t - s + 2 > len(scratch.cell):
            return -(cells + t - s + 2)
        for space in range(s, t + 1):
            cells = note_cell(body.pairs, scratch, dimension, space, cells)
    return cells


@inlined
def unload(count: int, single_valued: bool, event: LoadedEvent) -> None:
    """Reset the arrays that the event changed."""
    for i in range(count):
        dimension = event.touched[UP(i)]
        if dimension < RANKED:
            event.space[UP(dimension)] = MISSING
    if not single_valued:
        for i in range(count):
            if event.touched[UP(i)] < RANKED:
                event.several[UP(event.touched[UP(i)])] = False
    if len(event.seen) > 0:
        for i in range(count):
            if event.touched[UP(i)] < RANKED:
                hide(I64(event.touched[UP(i)]), event.seen)
