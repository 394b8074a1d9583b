"""Which lists and runs of a segment an event meets.

An event is laid out by dimension in the first arrays of `Scratch`, here called `event`; the lists and runs that it meets are
noted in the next ones, here `met`. Functions return how many they noted, or minus the room that they lack.
"""

from __future__ import annotations

from typing import Any

from tamis.encoding.dimensions.keys import KEY_MIN
from tamis.engine.layout.aspects import NEAR, UNKNOWN, code_of_space, hide, show
from tamis.engine.layout.guards import BLOCK, GUARDED
from tamis.engine.layout.key_numbers import LINE, line_of, may_be_in, number_on_roll, roll_hash
from tamis.engine.layout.lists import find_point, slot_of
from tamis.engine.layout.pairs import note_cell
from tamis.engine.layout.plan import RANKED
from tamis.engine.layout.runs import BAND_RUN, LOWER_RUN, UPPER_RUN
from tamis.engine.layout.scale import FARTHEST_WHOLE, MISSING, code_of, number_of, space_of, table_space
from tamis.engine.layout.segment_build import (
    ALL_ENROLLED,
    AT,
    BLOCKS,
    BRIEF,
    CELL,
    ENROLLED,
    HAS_RUNS,
    LOWEST,
    PRESENCE,
    SHIFT_AT,
    SHIFTS,
    SIDES,
    WHOLE_MOST,
    WHOLE_RUNS,
    WHOLES,
)
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import F64, I64, UP
from tamis.kernels.prefetch import prefetch

MOST_LISTS = 8
"""An event meets at most so many lists by one value, those of all events included."""
_BEGIN = HAS_RUNS - 1


# -- the event


@inlined
def load(
    values: Any, lookup: Any, directory: Any, entries: Any, runs: Any, sizes: Any, event: Any, met: Any
) -> tuple[int, bool, int, int]:
    """Lay out an event, and note its lists while it is plain; there is room for them.

    Returns in how many dimensions it has values, whether it is plain, and how many lists and runs were noted if so.
    """
    count = _rank(values, lookup, event)
    if count < 0:
        return _lay_out_several(values, lookup, event), False, 0, 0
    v_begin, v_lo = values[0], values[3]
    entry, _, guard = entries
    about, whole, brief = lookup[1], lookup[5], lookup[6]
    space, touched, first, place, origin = event[0], event[5], event[6], event[8], event[9]
    lists, passed = 0, 0
    for i in range(count):
        at, told = I64(place[UP(i)]), BRIEF * I64(origin[UP(i)])
        dimension = brief[UP(told + 1)] & 0xFFFFFFFF
        touched[UP(i)] = dimension
        word, ends = whole[UP(2 * max(at, 0))], whole[UP(2 * max(at, 0) + 1)]
        size = (word >> 9) & WHOLE_MOST
        s, begin, end, has_runs = word & 0xFF, word >> 32, (word >> 32) + size, word & WHOLE_RUNS != 0
        if at < 0:
            s = _space(lookup, dimension, v_lo[UP(v_begin + ~at)])
        if at < 0 or size == WHOLE_MOST:
            begin, end, has_runs = _list(directory[0], about[UP(dimension * 8 + CELL)] + s)
        if dimension < RANKED:
            space[UP(dimension)] = s
        first[UP(i)] = s
        noted = lists
        lists = _note(begin, end, lists, met)
        # Where lists are short, those that are fetched while others are scanned come too late.
        guarded = I64((end - begin >= GUARDED) & (len(guard) > 0))
        prefetch(guard, begin // BLOCK * guarded)
        prefetch(entry, 2 * begin * (lists - noted) * (1 - guarded))
        if has_runs:
            passed = _add_runs(runs, about[UP(dimension * 8 + CELL)] + s, passed, met)
        if at < 0:
            lists = _add_presence(about, directory[1], dimension * 8, s, s, lists, met)
        else:
            # All of it lies where the value and its dimension were looked up: to look up bounds elsewhere took an eighth to a
            # quarter of the time of events that match nothing.
            presence, begins = brief[UP(told + 2)], brief[UP(told + 3)]
            lists = _note(presence >> 32, presence & _BEGIN, lists, met)
            lists = _note(begins >> 32, ends >> 32, lists, met)
            lists = _note(begins & 0xFFFFFFFF, ends & 0xFFFFFFFF, lists, met)
    lists, passed = add_list(directory[0], runs, sizes[0] + sizes[1], lists, passed, met)
    return count, True, lists, passed


@inlined
def _rank(values: Any, lookup: Any, event: Any) -> int:
    """Note the dimensions of a plain event and where its whole numbers are looked up, which is fetched.

    Returns how many dimensions there are, -1 if it is not plain.
    """
    v_begin, v_end, v_dimension, v_lo, v_hi = values
    whole, brief = lookup[5], lookup[6]
    place, origin = event[8], event[9]
    count, before = 0, -1
    for v in range(v_begin, v_end):
        d = I64(v_dimension[UP(v)])
        key = v_lo[UP(v)]
        if v_hi[UP(v)] != key or d == before:
            return -1
        before = d
        d = min(d, len(brief) // BRIEF - 1)  # The last of them is none of the segment's.
        bounds, word = brief[UP(BRIEF * d)], brief[UP(BRIEF * d + 1)]
        if word < 0:
            continue
        origin[UP(count)] = d
        number = number_of(key)
        number = number if abs(number) < FARTHEST_WHOLE else 0.5
        at = I64(number) - (bounds >> 32)
        found = (F64(I64(number)) == number) & (at >= 0) & (at < bounds & 0xFFFFFFFF)
        at = at + (word >> 32) if found else v_begin + ~v
        place[UP(count)] = at
        prefetch(whole, 2 * max(at, 0))
        count += 1
    return count


@inlined
def _lay_out_several(values: Any, lookup: Any, event: Any) -> int:
    """Lay out an event that is not plain; returns in how many dimensions it has values."""
    v_begin, v_end, v_dimension, v_lo, v_hi = values
    local = lookup[0]
    space, several, _, _, _, touched, first, last, _, _ = event
    count, before = 0, -1
    for v in range(v_begin, v_end):
        d = v_dimension[UP(v)]
        dimension = _dimension(local, d)
        if dimension < 0:
            continue
        s, t = _space(lookup, dimension, v_lo[UP(v)]), _space(lookup, dimension, v_hi[UP(v)])
        if d == before:
            count -= 1
            s, t = min(s, I64(first[UP(count)])), max(t, I64(last[UP(count)]))
        if dimension < RANKED:
            space[UP(dimension)] = s
            several[UP(dimension)] = d == before or v_lo[UP(v)] != v_hi[UP(v)]
        touched[UP(count)] = dimension
        first[UP(count)], last[UP(count)] = s, t
        count += 1
        before = d
    return count


@inlined
def load_wide(
    values: Any,
    count: int,
    lookup: Any,
    directory: Any,
    entry: Any,
    points: Any,
    roll: Any,
    runs: Any,
    sizes: Any,
    event: Any,
    noted: Any,
    met: Any,
) -> tuple[int, int]:
    """Lay out the aspects of a plain event that was loaded, and note the lists of its keys.

    `noted` says how many lists and runs it has; the numbers are returned.
    """
    v_begin, v_lo = values[0], values[3]
    about, cuts, shift = lookup[1], lookup[2], lookup[4]
    seen, low, high, touched, first, slot, place = event[2], event[3], event[4], event[5], event[6], event[7], event[8]
    lines, marks, enrolled = roll
    lists, passed = noted
    _fetch_keys(values, count, about, directory[0], points, roll, sizes, event)
    for i in range(count):
        dimension, space = I64(touched[UP(i)]), I64(first[UP(i)])
        line = dimension * 8
        shifts = about[UP(line + SHIFT_AT)]
        if shifts < 0:
            if dimension < NEAR:
                code = code_of_space(space)
                show(dimension, code, code, seen)
            continue
        key = v_lo[UP(v_begin + ~I64(place[UP(i)]))]
        code = code_of(cuts, about[UP(line + AT)], about[UP(line + BLOCKS)], shift, shifts & SHIFTS, space, key)
        number = code
        if shifts & ENROLLED:
            number = number_on_roll(key, lines[UP(dimension)], lines[UP(dimension + 1)], marks, enrolled)
        low[UP(dimension)], high[UP(dimension)] = key, key
        if dimension < RANKED:
            show(dimension, code, number, seen)
        if len(points[1]) > 0 and not (shifts & ALL_ENROLLED and number == UNKNOWN):
            noted_before, at = lists, I64(slot[UP(i)])
            if at < 0:
                at = slot_of(dimension, key, points[2])  # The line was full, and the next one has it.
            lists, passed = _add_point(directory[0], points, runs, sizes, dimension, key, at, lists, passed, met)
            prefetch(entry, 2 * met[0][UP(noted_before)] * (lists - noted_before))
    return lists, passed


@inlined
def _fetch_keys(
    values: Any, count: int, about: Any, begins: Any, points: Any, roll: Any, sizes: Any, event: Any
) -> None:
    """Fetch what is known of the keys of a plain event in wide dimensions: first where that would lie, then what lies there.

    Noted is where the table of points tells of each, or -1 where it seems to have no list.
    """
    v_begin, v_lo = values[0], values[3]
    touched, slot, place = event[5], event[7], event[8]
    _, keys, table = points
    lines, marks, enrolled = roll
    for i in range(count):
        dimension = I64(touched[UP(i)])
        shifts = about[UP(dimension * 8 + SHIFT_AT)]
        if shifts >= 0:
            key = v_lo[UP(v_begin + ~I64(place[UP(i)]))]
            if shifts & ENROLLED:
                prefetch(marks, line_of(roll_hash(key), lines[UP(dimension)], lines[UP(dimension + 1)]))
            if not shifts & ALL_ENROLLED:
                slot[UP(i)] = slot_of(dimension, key, table)
                prefetch(table, I64(slot[UP(i)]))
    for i in range(count):
        dimension = I64(touched[UP(i)])
        shifts = about[UP(dimension * 8 + SHIFT_AT)]
        if shifts >= 0 and shifts & ENROLLED:
            key = v_lo[UP(v_begin + ~I64(place[UP(i)]))]
            mixed = roll_hash(key)
            line = line_of(mixed, lines[UP(dimension)], lines[UP(dimension + 1)])
            maybe = may_be_in(mixed, marks[UP(line)])
            if maybe:
                prefetch(enrolled, line * LINE)
            if shifts & ALL_ENROLLED:
                slot[UP(i)] = -1
                if maybe:
                    slot[UP(i)] = slot_of(dimension, key, table)
                    prefetch(table, I64(slot[UP(i)]))
    if len(keys) > 0:
        for i in range(count):
            if about[UP(touched[UP(i)] * 8 + SHIFT_AT)] >= 0 and slot[UP(i)] >= 0:
                number = I64(max(table[UP(slot[UP(i)])], 0))
                prefetch(keys, number)
                prefetch(begins, sizes[0] + sizes[1] + 1 + number)


@inlined
def show_several(values: Any, lookup: Any, roll: Any, event: Any) -> None:
    """Lay out the aspects of an event that is not plain: of dimensions with several values, those of one of them."""
    v_begin, v_end, v_dimension, v_lo, v_hi = values
    local, about, cuts, _, shift, _, _ = lookup
    seen, low, high, first = event[2], event[3], event[4], event[6]
    lines, marks, enrolled = roll
    count, before = -1, -1
    for v in range(v_begin, v_end):
        d, key = v_dimension[UP(v)], v_lo[UP(v)]
        dimension = _dimension(local, d)
        if dimension < 0:
            continue
        count += d != before
        line, space = dimension * 8, I64(first[UP(count)])
        shifts = about[UP(line + SHIFT_AT)]
        code = code_of_space(space)
        number = code
        if shifts >= 0:
            code = code_of(cuts, about[UP(line + AT)], about[UP(line + BLOCKS)], shift, shifts & SHIFTS, space, key)
            number = code
            if shifts & ENROLLED:
                number = number_on_roll(key, lines[UP(dimension)], lines[UP(dimension + 1)], marks, enrolled)
            low[UP(dimension)] = min(low[UP(dimension)], key) if d == before else key
            high[UP(dimension)] = max(high[UP(dimension)], v_hi[UP(v)]) if d == before else v_hi[UP(v)]
        if dimension < NEAR or (shifts >= 0 and dimension < RANKED):
            show(dimension, code, number, seen)
        before = d


@inlined
def _list(begins: Any, number: int) -> tuple[int, int, bool]:
    """Begin and end of a list, and whether it has runs."""
    begin = I64(begins[UP(number)])
    return begin & _BEGIN, I64(begins[UP(number + 1)]) & _BEGIN, begin & HAS_RUNS != 0


@inlined
def _dimension(local: Any, dimension: int) -> int:
    """The number that a dimension of the matcher has in the segment, -1 if that does not ask about it."""
    return I64(local[UP(dimension)]) if dimension < len(local) else -1


@inlined
def _space(lookup: Any, dimension: int, key: int) -> int:
    _, about, cuts, table, _, _, _ = lookup
    line = dimension * 8
    at, blocks = about[UP(line + AT)], about[UP(line + BLOCKS)]
    if blocks == 0:
        return I64(table_space(table, at, about[UP(line + LOWEST)], about[UP(line + WHOLES)], key))
    return space_of(cuts, at, blocks, key)


@inlined
def unload(count: int, plain: bool, event: Any) -> None:
    """Forget the event."""
    space, several, seen, touched = event[0], event[1], event[2], event[5]
    for i in range(count):
        if touched[UP(i)] < RANKED:
            space[UP(touched[UP(i)])] = MISSING
    if not plain:
        for i in range(count):
            if touched[UP(i)] < RANKED:
                several[UP(touched[UP(i)])] = False
    if len(seen) > 0:
        for i in range(count):
            if touched[UP(i)] < RANKED:
                hide(I64(touched[UP(i)]), seen)


# -- pairs


@inlined
def note_cells(values: Any, count: int, plain: bool, lookup: Any, pairs: Any, scratch: Any, event: Any) -> int:
    """Note the cells of an event that was laid out; returns how many, or minus the room that they need. A plain one has it."""
    v_begin, v_end, v_dimension, v_lo, v_hi = values
    local = lookup[0]
    touched, first = event[5], event[6]
    cells = 0
    if plain:
        for i in range(count):
            cells = note_cell(pairs, scratch, I64(touched[UP(i)]), I64(first[UP(i)]), cells)
        return cells
    for v in range(v_begin, v_end):
        dimension = _dimension(local, v_dimension[UP(v)])
        if dimension < 0:
            continue
        s, t = _space(lookup, dimension, v_lo[UP(v)]), _space(lookup, dimension, v_hi[UP(v)])
        if cells + t - s + 2 > len(scratch[0]):
            return -(cells + t - s + 2)
        for space in range(s, t + 1):
            cells = note_cell(pairs, scratch, dimension, space, cells)
    return cells


# -- lists


@inlined
def lists_of_several(
    values: Any, count: int, lookup: Any, directory: Any, points: Any, runs: Any, sizes: Any, event: Any, met: Any
) -> tuple[int, int, int]:
    """Note all lists of an event that is not plain, and the runs in them.

    Returns how many lists there are, how many of these come first, by each of which another part of the rows is found, and how
    many runs. By the others, those of dimensions in which the event has several values, rows may be found again and again.
    """
    about = lookup[1]
    begins, bounds = directory
    several, low, touched, first, last = event[1], event[3], event[5], event[6], event[7]
    lists, passed = 0, 0
    for i in range(count):
        dimension, s = I64(touched[UP(i)]), I64(first[UP(i)])
        if dimension < RANKED and not several[UP(dimension)]:
            line = dimension * 8
            lists, passed = add_list(begins, runs, about[UP(line + CELL)] + s, lists, passed, met)
            lists = _add_presence(about, bounds, line, s, s, lists, met)
            key = low[UP(dimension)]
            slot = slot_of(dimension, key, points[2])
            lists, passed = _add_point(begins, points, runs, sizes, dimension, key, slot, lists, passed, met)
    lists, passed = add_list(begins, runs, sizes[0] + sizes[1], lists, passed, met)
    once = lists
    for i in range(count):
        dimension = I64(touched[UP(i)])
        if dimension >= RANKED or several[UP(dimension)]:
            lists = _add_presence(about, bounds, dimension * 8, I64(first[UP(i)]), I64(last[UP(i)]), lists, met)
    lists, passed = _several_lists(values, lookup, directory, points, runs, sizes, several, lists, passed, met)
    return lists, once, passed


@inlined
def _add_point(
    begins: Any,
    points: Any,
    runs: Any,
    sizes: Any,
    dimension: int,
    key: int,
    slot: int,
    lists: int,
    passed: int,
    met: Any,
) -> tuple[int, int]:
    """Note the list of a key that has its own; it would lie from this slot on."""
    start, keys, table = points
    if len(keys) > 0 and start[UP(dimension)] < start[UP(dimension + 1)]:
        number = I64(find_point(dimension, key, slot, start, keys, table))
        if number >= 0:
            lists, passed = add_list(begins, runs, sizes[0] + sizes[1] + 1 + number, lists, passed, met)
    return lists, passed


@inlined
def _several_lists(
    values: Any,
    lookup: Any,
    directory: Any,
    points: Any,
    runs: Any,
    sizes: Any,
    several: Any,
    lists: int,
    passed: int,
    met: Any,
) -> tuple[int, int]:
    """Note the lists of the spaces and points that the event touches in dimensions in which it has several values."""
    v_begin, v_end, v_dimension, v_lo, v_hi = values
    local, about = lookup[0], lookup[1]
    begins = directory[0]
    point_start, point_key, point_table = points
    cells, dimensions = sizes
    for v in range(v_begin, v_end):
        dimension = _dimension(local, v_dimension[UP(v)])
        if dimension < 0 or (dimension < RANKED and not several[UP(dimension)]):
            continue
        s, t = _space(lookup, dimension, v_lo[UP(v)]), _space(lookup, dimension, v_hi[UP(v)])
        number, upto = point_start[UP(dimension)], point_start[UP(dimension + 1)]
        if number < upto:
            if v_lo[UP(v)] == v_hi[UP(v)]:
                slot = slot_of(dimension, v_lo[UP(v)], point_table)
                number = I64(find_point(dimension, v_lo[UP(v)], slot, point_start, point_key, point_table))
                upto = number + I64(number >= 0)
            else:
                number = first_above(point_key, number, upto, v_lo[UP(v)] - 1)
                upto = first_above(point_key, number, upto, v_hi[UP(v)])
        room = lists + (t - s + 1) + (upto - number) + MOST_LISTS
        if room > len(met[0]):
            return -room, 0
        for at in range(s, t + 1):
            lists, passed = _add_again(begins, runs, about[UP(dimension * 8 + CELL)] + at, lists, passed, met)
        for at in range(max(number, 0), upto):
            lists, passed = _add_again(begins, runs, cells + dimensions + 1 + at, lists, passed, met)
    return lists, passed


@inlined
def _add_presence(about: Any, bounds: Any, line: int, first: int, last: int, lists: int, met: Any) -> int:
    """Note the list of a dimension, and the prefixes of its sorted bounds that its lowest and highest space satisfy."""
    here = about[UP(line + PRESENCE)]
    lists = _note((here >> 32) & _BEGIN, here & _BEGIN, lists, met)
    sides = about[UP(line + SIDES)]
    if sides != 0:
        lists = _add_prefix(bounds, sides & 0xFFFFFFFF, first, lists, met)
        lists = _add_prefix(bounds, sides >> 32, last, lists, met)
    return lists


@inlined
def _add_prefix(bounds: Any, at: int, space: int, lists: int, met: Any) -> int:
    """Note the satisfied prefix of the sorted bounds that lie at `at`."""
    return _note(I64(bounds[UP(at)]), I64(bounds[UP(at + 1 + space)]), lists, met)


@inlined
def _note(first: int, last: int, lists: int, met: Any) -> int:
    """Note a list, unless it is empty, without a branch."""
    begin, end = met[0], met[1]
    begin[UP(lists)], end[UP(lists)] = first, last
    return lists + I64(last > first)


@inlined
def add_list(begins: Any, run_lists: Any, number: int, lists: int, runs: int, met: Any) -> tuple[int, int]:
    """Note a list unless it is empty, and its runs."""
    begin, end, has_runs = _list(begins, number)
    lists = _note(begin, end, lists, met)
    if has_runs:
        runs = _add_runs(run_lists, number, runs, met)
    return lists, runs


@inlined
def _add_again(begins: Any, run_lists: Any, number: int, lists: int, runs: int, met: Any) -> tuple[int, int]:
    """The same for a list that may have been noted before: its runs, for which there would be no room, are not noted again."""
    begin, end, has_runs = _list(begins, number)
    lists = _note(begin, end, lists, met)
    if has_runs:
        for i in range(runs):
            has_runs = has_runs and run_lists[UP(met[2][UP(i)])] != number
    if has_runs:
        runs = _add_runs(run_lists, number, runs, met)
    return lists, runs


# -- runs


@inlined
def presence_runs(about: Any, run_lists: Any, cells: int, touched: Any, count: int, runs: int, met: Any) -> int:
    """Note the runs in the lists of the event's dimensions."""
    for i in range(count):
        if about[UP(touched[UP(i)] * 8 + PRESENCE)] >> 32 & HAS_RUNS:
            runs = _add_runs(run_lists, cells + touched[UP(i)], runs, met)
    return runs


@inlined
def _add_runs(run_lists: Any, number: int, runs: int, met: Any) -> int:
    """Note the runs of a list."""
    run = met[2]
    r = first_above(run_lists, 0, len(run_lists), number - 1)
    while r < len(run_lists) and run_lists[UP(r)] == number:
        run[UP(runs)] = r
        runs += 1
        r += 1
    return runs


@inlined
def bound_runs(runs: Any, count: int, event: Any, met: Any) -> int:
    """Find the part of each run that was met whose condition may hold; returns how many entries these are."""
    space, low, high = event[0], event[3], event[4]
    _, _, run, run_begin, run_end = met
    entries = 0
    for i in range(count):
        run_begin[UP(i)], run_end[UP(i)] = _bounds(runs, run[UP(i)], space, low, high)
        entries += run_end[UP(i)] - run_begin[UP(i)]
    return entries


@inlined
def _bounds(runs: Any, r: int, space: Any, low: Any, high: Any) -> tuple[int, int]:
    """The entries of a run whose condition may hold: exactly those that do, but for bands."""
    _, dimensions, sides, _, start, keys, _, _ = runs
    dimension, side = I64(dimensions[UP(r)]), I64(sides[UP(r)])
    begin, end = start[UP(r)], start[UP(r + 1)]
    if space[UP(dimension)] == MISSING:
        return begin, begin
    if side == LOWER_RUN:
        return begin, _gallop(keys, begin, end, high[UP(dimension)])
    if side == UPPER_RUN:
        return begin, _gallop(keys, begin, end, ~low[UP(dimension)])
    widest = side - BAND_RUN + 1
    least = low[UP(dimension)]
    least = KEY_MIN if widest >= 63 or least < KEY_MIN + (1 << widest) else least - (1 << widest)
    upto = first_above(keys, begin, end, high[UP(dimension)])
    return first_above(keys, begin, upto, least), upto


@inlined
def _gallop(keys: Any, begin: int, end: int, key: int) -> int:
    """`first_above` whose cost grows with the answer, not with the run, where that is long."""
    step = 256
    while begin + step <= end and keys[UP(begin + step - 1)] <= key:
        begin += step
        step += step
    return first_above(keys, begin, min(begin + step, end), key)


@inlined
def first_above(keys: Any, begin: int, end: int, key: int) -> int:
    """The first place in ascending keys whose key is above `key`. Nothing that it finds decides how it goes on: several searches,
    one after another, are made at once."""
    left = end - begin
    while left > 0:
        half = (left + 1) // 2
        begin += half * I64(keys[UP(begin + half - 1)] <= key)
        left -= half
    return begin
