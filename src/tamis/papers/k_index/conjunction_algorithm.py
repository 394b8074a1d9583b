"""The conjunction algorithm of the k-index: find the conjunctions that are in K of an event's sorted lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX
from tamis.encoding.evaluation import EventPlaces, event_places, load_event, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.bits import first_half, halves, second_half
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I64, UP, Bools, I32s, I64s
from tamis.kernels.sorting import first_at_least, sort_unique
from tamis.papers.k_index.enumeration import Domains, domain_of, is_exact, last_cell
from tamis.papers.k_index.posting import Lists, place_of
from tamis.papers.parts.collecting import CANDIDATES, NODES, PREDICATES, Output, is_true, note_event
from tamis.papers.parts.pair_map import FREE, value_of

_EXHAUSTED = 2**31 - 1
"""The current conjunction of a list at its end."""


class KIndexArrays(NamedTuple):
    """The index as kernels read it."""

    lists: Lists
    domains: Domains
    table: Conjunctions


class Open(NamedTuple):
    """The lists of an event in one K: current place and end of each, and `order`: current conjunction and list, ascending."""

    at: I64s
    end: I64s
    order: I64s


class Scratch(NamedTuple):
    """Scratch for one event."""

    places: EventPlaces
    low_cell: I64s
    """Value of the event -> its first and its last cell, and whether they are exact."""
    high_cell: I64s
    exact: Bools
    opened: Open
    mixed: I32s
    """Lists that were merged."""
    needed: I64s
    """One number: the length that `mixed` lacked."""
    tally: I64s
    """The work, as in `Output`."""


def scratch_for(dimensions: int, values: int) -> Scratch:
    """Scratch for events of at most `values` values."""
    low_cell, high_cell, at, end, order = np.empty((5, values), np.int64)
    return Scratch(
        event_places(dimensions),
        low_cell,
        high_cell,
        np.empty(values, np.bool_),
        Open(at, end, order),
        np.empty(0, np.int32),
        np.zeros(1, np.int64),
        np.zeros(3, np.int64),
    )


@lean_kernel
def match_events(index: KIndexArrays, batch: EventBatch, scratch: Scratch, event: int, output: Output) -> int:
    """Match events from one on: a kernel for `collect`. It also stops before an event for which `mixed` is too short."""
    tally, total = scratch.tally, 0
    while event < len(batch.start) - 1:
        tally[:] = 0
        load_event(batch, event, scratch.places)
        size, sure = _locate(index.domains, batch, event, scratch)
        filled = _looked_at(index, batch, scratch, output.matches, total)
        for k in index.lists.sizes:
            if k > size or filled < 0:
                break
            if sure:
                many = _open(index.lists, k, batch, event, scratch)
            else:
                many = _open_mixed(index.lists, k, batch, event, scratch)
                filled = filled if many >= 0 else -1
            tally[NODES] += many
            if many >= k:
                filled = _conjunctions(k, many, sure, index, batch, scratch, output.matches, filled)
        unload_event(batch, event, scratch.places)
        if filled < 0:
            break
        note_event(event, filled - total, tally[CANDIDATES], tally[PREDICATES], tally[NODES], output)
        total = filled
        event += 1
    return event


@inlined
def _locate(domains: Domains, batch: EventBatch, event: int, scratch: Scratch) -> tuple[int, bool]:
    """Find the cells of an event's values. Returns how many dimensions it has, and if each has one value in an exact cell."""
    begin, size, sure = batch.start[event], 0, True
    for v in range(begin, batch.start[event + 1]):
        i, d = v - begin, batch.dimension[v]
        if i == 0 or batch.dimension[v - 1] != d:
            size += 1
        else:
            sure = False
        lo, hi = batch.lo[v], batch.hi[v]
        low_cell, high_cell, exact = lo, hi, True
        if d < len(domains.kind):
            domain = domain_of(domains, d)
            low_cell, high_cell = last_cell(domain, lo), last_cell(domain, hi)
            exact = is_exact(domain, lo, hi)
        scratch.low_cell[i], scratch.high_cell[i], scratch.exact[i] = low_cell, high_cell, exact
        sure &= exact and lo == hi
    return size, sure


@merged
def _looked_at(index: KIndexArrays, batch: EventBatch, scratch: Scratch, matches: I32s, filled: int) -> int:
    """Evaluate the conjunctions in `always` and write the true ones; returns how much is filled then, -1 if there is no room."""
    for c in index.lists.always:
        if _is_true(index.table, c, batch, scratch.places, scratch.tally):
            if filled == len(matches):
                return -1
            matches[filled] = c
            filled += 1
    scratch.tally[CANDIDATES] += len(index.lists.always)
    return filled


@inlined
def _is_true(table: Conjunctions, c: int, batch: EventBatch, places: EventPlaces, tally: I64s) -> bool:
    true, evaluated = is_true(c, table, batch, places)
    tally[PREDICATES] += evaluated
    return true


@inlined
def _entries(lists: Lists, group: int, low_cell: int, high_cell: int) -> tuple[int, int]:
    """Where the entries of a range of cells begin and end."""
    groups, start = lists.groups, lists.start
    base = groups.base[group]
    first, behind = base + place_of(groups, group, low_cell), base + groups.width[group]
    if high_cell < KEY_MAX:
        behind = base + place_of(groups, group, high_cell + 1)
    return start[UP(first)], start[UP(behind)]


@merged
def _open(lists: Lists, k: int, batch: EventBatch, event: int, scratch: Scratch) -> int:
    """Open the list of each value of an event whose cells are exact; returns how many there are."""
    many, begin = 0, batch.start[event]
    for i in range(batch.start[event + 1] - begin):
        group = value_of(lists.directory, k, 2 * I64(batch.dimension[begin + i]))
        if group != FREE:
            first, behind = _entries(lists, group, scratch.low_cell[i], scratch.low_cell[i])
            if first < behind:
                scratch.opened.at[many], scratch.opened.end[many] = first, behind
                many += 1
    return many


@merged
def _open_mixed(lists: Lists, k: int, batch: EventBatch, event: int, scratch: Scratch) -> int:
    """Merge the lists of cells and gaps of each dimension of an event, and open the merged lists.

    Returns how many there are, -1 if `mixed` is too short. Then `needed` has how long it must be.
    """
    mixed, begin, end = scratch.mixed, batch.start[event], batch.start[event + 1]
    many, written, v = 0, 0, begin
    while v < end:
        d, since, sorted_yet = batch.dimension[v], written, True
        while v < end and batch.dimension[v] == d:
            for gap in range(1 if scratch.exact[v - begin] else 2):
                group = value_of(lists.directory, k, 2 * I64(d) + gap)
                if group != FREE:
                    first, behind = _entries(lists, group, scratch.low_cell[v - begin], scratch.high_cell[v - begin])
                    if written + behind - first > len(mixed):
                        scratch.needed[0] = written + behind - first
                        return -1
                    for entry in range(first, behind):
                        c = lists.data[UP(entry)]
                        sorted_yet &= written == since or mixed[UP(written - 1)] < c
                        mixed[UP(written)] = c
                        written += 1
            v += 1
        if written > since:
            if not sorted_yet:
                written = since + sort_unique(mixed, since, written)
            scratch.opened.at[many], scratch.opened.end[many] = since, written
            many += 1
    return many


@merged
def _conjunctions(
    k: int, many: int, sure: bool, index: KIndexArrays, batch: EventBatch, scratch: Scratch, matches: I32s, filled: int
) -> int:
    """The conjunction algorithm: write conjunctions in `k` lists; returns how much is filled, -1 if there is no room."""
    at, end, order = scratch.opened.at, scratch.opened.end, scratch.opened.order
    current = index.lists.data if sure else scratch.mixed
    rounds, skips = 0, 0
    _sort_lists(current, at, order, many)
    while first_half(order[UP(k - 1)]) < _EXHAUSTED:
        target, moving = first_half(order[UP(k - 1)]), k - 1
        rounds += 1
        if first_half(order[0]) == target:
            if (sure and not index.lists.doubtful[UP(target)]) or _is_true(
                index.table, target, batch, scratch.places, scratch.tally
            ):
                if filled == len(matches):
                    return -1
                matches[filled] = target
                filled += 1
            target, moving = target + 1, k
        for i in range(moving - 1, -1, -1):
            if first_half(order[UP(i)]) < target:
                each = second_half(order[UP(i)])
                at[UP(each)] = _skipped(current, at[UP(each)], end[UP(each)], target)
                following = I64(_EXHAUSTED)
                if at[UP(each)] < end[UP(each)]:
                    following = I64(current[UP(at[UP(each)])])
                _sink(order, i, many, halves(following, each))
                skips += 1
    scratch.tally[CANDIDATES] += rounds
    scratch.tally[PREDICATES] += skips
    return filled


@inlined
def _sort_lists(current: I32s, at: I64s, order: I64s, many: int) -> None:
    """Sort the lists by their first conjunction."""
    for i in range(many):
        order[UP(i)] = halves(I64(current[UP(at[UP(i)])]), i)
        for j in range(i, 0, -1):
            if order[UP(j - 1)] < order[UP(j)]:
                break
            order[UP(j - 1)], order[UP(j)] = order[UP(j)], order[UP(j - 1)]


@inlined
def _skipped(current: I32s, at: int, end: int, target: int) -> int:
    """The first place behind `at` whose conjunction is not before `target`; `end` if there is none."""
    step = 1
    while at + step < end and current[UP(at + step)] < target:
        at += step
        step *= 2
    return first_at_least(current, at + 1, min(at + step, end), target)


@inlined
def _sink(order: I64s, i: int, many: int, word: int) -> None:
    """Replace the i-th by a larger one, and let it sink to where it belongs."""
    while i + 1 < many and order[UP(i + 1)] < word:
        order[UP(i)] = order[UP(i + 1)]
        i += 1
    order[UP(i)] = word
