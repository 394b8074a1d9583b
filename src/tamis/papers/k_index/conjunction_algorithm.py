"""The conjunction algorithm of the k-index: find the conjunctions that are in K of an event's sorted lists."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX
from tamis.encoding.events.event_batch import load, unload
from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.numbers import I64, UP
from tamis.kernels.sorting import sort_unique
from tamis.papers.k_index.enumeration import is_exact, last_cell
from tamis.papers.k_index.posting import place_of
from tamis.papers.parts.collecting import CANDIDATES, NODES, PREDICATES, is_true
from tamis.papers.parts.pair_map import FREE, slot_of

_EXHAUSTED = 2**31 - 1
"""The current conjunction of a list at its end."""
_LIST = 0xFFFFFFFF


class Event(NamedTuple):
    """One event, in reused arrays: the values of each dimension, and for each value its cells and whether they are exact."""

    first: npt.NDArray[np.int64]
    held: npt.NDArray[np.int64]
    low_cell: npt.NDArray[np.int64]
    high_cell: npt.NDArray[np.int64]
    exact: npt.NDArray[np.bool_]


class Open(NamedTuple):
    """The lists of an event in one K: current place and end of each, and `order`: current conjunction and list, ascending."""

    at: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]


@kernel
def match_events(lists: Any, domains: Any, table: Any, batch: Any, place: Any, counts: Any, out: Any, work: Any) -> int:
    """Match events from one on: a kernel for `collect`."""
    number: int = place[0]
    _, dimensions, longest = place
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
                current, many = data, _open(lists, k, batch, number, event, opened)
            else:
                needed = _room(lists, k, batch, number, event)
                if needed > len(mixed):
                    mixed = np.empty(2 * needed, np.int32)
                current, many = mixed, _open_mixed(lists, k, batch, number, event, opened, mixed)
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
    """Find the cells of an event's values. Returns how many dimensions it has, and if each has one value in an exact cell."""
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
    """Evaluate the conjunctions in `always` and write the true ones; returns how much of `out` is filled then."""
    for c in always:
        if _is_true(table, c, batch, event, tally):
            if filled == len(out):
                return -1
            out[filled] = c
            filled += 1
    tally[CANDIDATES] += len(always)
    return filled


@inlined
def _is_true(table: Any, c: int, batch: Any, event: Any, tally: Any) -> Any:
    true, evaluated = is_true(c, table, batch.lo, batch.hi, event.first, event.held)
    tally[PREDICATES] += evaluated
    return true


@inlined
def _group(directory: Any, k: int, dimension: int, gap: int) -> int:
    """The group of a size and a dimension; FREE if there is none."""
    firsts, seconds, numbers, _ = directory
    group: int = numbers[UP(slot_of(firsts, seconds, numbers, k, 2 * I64(dimension) + gap))]
    return group


@inlined
def _entries(groups: Any, start: Any, group: int, low_cell: int, high_cell: int) -> tuple[int, int]:
    """Where the entries of a range of cells begin and end."""
    base, width, least, values, cell = groups
    first = base[group] + place_of(width, least, values, cell, group, low_cell)
    behind = base[group] + width[group]
    if high_cell < KEY_MAX:
        behind = base[group] + place_of(width, least, values, cell, group, high_cell + 1)
    return start[UP(first)], start[UP(behind)]


@inlined
def _open(lists: Any, k: int, batch: Any, number: int, event: Any, opened: Any) -> int:
    """Open the list of each value of an event whose cells are exact; returns how many there are."""
    many, begin = 0, batch.start[number]
    for i in range(batch.start[number + 1] - begin):
        group = _group(lists.directory, k, batch.dimension[begin + i], 0)
        if group != FREE:
            first, behind = _entries(lists.groups, lists.start, group, event.low_cell[i], event.low_cell[i])
            if first < behind:
                opened.at[many], opened.end[many] = first, behind
                many += 1
    return many


@inlined
def _room(lists: Any, k: int, batch: Any, number: int, event: Any) -> int:
    """How many entries all lists of an event have."""
    room, begin = 0, batch.start[number]
    for i in range(batch.start[number + 1] - begin):
        for gap in range(1 if event.exact[i] else 2):
            group = _group(lists.directory, k, batch.dimension[begin + i], gap)
            if group != FREE:
                first, behind = _entries(lists.groups, lists.start, group, event.low_cell[i], event.high_cell[i])
                room += behind - first
    return room


@inlined
def _open_mixed(lists: Any, k: int, batch: Any, number: int, event: Any, opened: Any, mixed: Any) -> int:
    """Merge the lists of cells and gaps of each dimension of an event, and open the merged lists; returns how many."""
    many, written, i, begin = 0, 0, 0, batch.start[number]
    while i < batch.start[number + 1] - begin:
        d, since, sorted_yet = batch.dimension[begin + i], written, True
        while i < batch.start[number + 1] - begin and batch.dimension[begin + i] == d:
            for gap in range(1 if event.exact[i] else 2):
                group = _group(lists.directory, k, d, gap)
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
    """The conjunction algorithm: write conjunctions in `k` lists; returns how much of `out` is filled, -1 if it is too small."""
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
    """The first place behind `at` whose conjunction is not before `target`; `end` if there is none."""
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
