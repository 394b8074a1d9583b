"""Matching by cells: MatchEvent (Alg. 7), many keys at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import UP, Bools, I32s, I64s
from tamis.kernels.prefetch import prefetch
from tamis.papers.parts.collecting import Output, note_event
from tamis.papers.parts.pair_map import FREE, PairArrays, home_of, mixed_of, pair_place_from
from tamis.papers.parts.records import Words, fetch
from tamis.papers.parts.slabs import SlabArrays
from tamis.papers.ps_tree.cells import ENTRY, Bits, CellArrays, may_have, pair_key
from tamis.papers.ps_tree.covering import ForestArrays
from tamis.papers.ps_tree.verifying import (
    BLOCK,
    RowArrays,
    Scratch,
    begin_event,
    end_event,
    meet_leaves,
    verify,
)

_KEYS = 512
"""Keys looked up at a time."""
_MANY = 1 << 16
"""Number of keys above which an event may test all conjunctions instead: it does if it has more keys than there are of them."""


class KeyScratch(NamedTuple):
    """Keys, where they belong in the table, and the cells that were found."""

    first: I64s
    second: I64s
    home: I64s
    cell: I64s


class _Combination(NamedTuple):
    """The places in `met` of the leaves of a key, ascending. Only the first N count."""

    a: int
    b: int
    c: int


class _Place(NamedTuple):
    """Where to go on: the next combination of leaves, the next of the cells that were found, and what is left of the last."""

    chosen: _Combination
    hit: int
    hits: int
    at: int
    stop: int


def key_scratch() -> KeyScratch:
    return KeyScratch(*(np.empty(_KEYS, np.int64) for _ in range(4)))


@lean_kernel
def match_cells(
    forest: ForestArrays,
    cells: CellArrays,
    rows: RowArrays,
    batch: EventBatch,
    scratch: Scratch,
    keys: KeyScratch,
    event: int,
    output: Output,
) -> int:
    """A `collecting.Kernel`."""
    filled = 0
    while event < len(batch.start) - 1:
        single_valued = begin_event(batch, event, scratch)
        many = _leaves_met(event, single_valued, forest, cells.of_leaf.size, batch, scratch)
        every = _is_too_many(cells.n, many, len(rows.live))
        kept, looked, tested, visited = filled, 0, 0, 0
        count, c, place = BLOCK, 0, _Place(_Combination(0, 1, 2), 0, 0, 0, 0)
        while count == BLOCK and filled >= 0:
            if every:
                count, c = _next_live(rows.live, c, scratch.block.conjunction)
            else:
                count, found, place = _next_block(place, many, single_valued, cells, rows.records.words, scratch, keys)
                visited += found
            looked += count
            filled, evaluated = verify(count, single_valued and not every, rows, batch, scratch, output.matches, filled)
            tested += evaluated
        end_event(batch, event, scratch)
        if filled < 0:
            break
        note_event(event, filled - kept, looked, tested, visited, output)
        event += 1
    return event


@merged
def _leaves_met(
    event: int, single_valued: bool, forest: ForestArrays, cell_counts: I32s, batch: EventBatch, scratch: Scratch
) -> int:
    """Note the leaves with cells that an event meets; returns how many."""
    many = 0
    for v in range(batch.start[event], batch.start[event + 1]):
        before, end = many, meet_leaves(v, single_valued, forest, batch, scratch, many)
        for i in range(before, end):
            if cell_counts[scratch.met[i]] > 0:
                scratch.met[many], scratch.met_dimension[many] = scratch.met[i], scratch.met_dimension[i]
                many += 1
    return many


@inlined
def _is_too_many(n: int, many: int, conjunctions: int) -> bool:
    """Whether `many` leaves have more combinations of N than are worth looking up."""
    combinations = np.float64(many)
    for i in range(1, n):
        combinations *= np.float64(many - i) / (i + 1)
    return bool(combinations > _MANY and combinations > conjunctions)


@inlined
def _next_live(live: Bools, c: int, block: I32s) -> tuple[int, int]:
    """Fill a block with conjunctions that are in cells, from one on; returns how many, and where to go on."""
    count = 0
    while c < len(live) and count < BLOCK:
        if live[c]:
            block[UP(count)] = c
            count += 1
        c += 1
    return count, c


@merged
def _next_block(
    place: _Place, many: int, single_valued: bool, cells: CellArrays, words: Words, scratch: Scratch, keys: KeyScratch
) -> tuple[int, int, _Place]:
    """Fill the block with the entries of the cells that an event meets.

    Returns how many there are, fewer than BLOCK if they are the last, how many more cells were found, and where to go on.
    """
    chosen, hit, hits, at, stop = place.chosen, place.hit, place.hits, place.at, place.stop
    count, visited = 0, 0
    while count < BLOCK:
        if at < stop:
            count, at = _take(at, stop, single_valued, cells.lists.data, words, scratch, count)
        elif hit < hits:
            at = cells.lists.begin[UP(keys.cell[UP(hit)])]
            stop = at + cells.lists.size[UP(keys.cell[UP(hit)])]
            hit += 1
        else:
            found, chosen = _next_keys(
                cells.n, many, chosen, cells.table, cells.filter, scratch.met, scratch.met_dimension, keys
            )
            if found == 0:
                break
            hit, hits = 0, _cells_of(found, cells.table, cells.lists, keys)
            visited += hits
    return count, visited, _Place(chosen, hit, hits, at, stop)


@merged
def _take(
    at: int, stop: int, single_valued: bool, data: I32s, words: Words, scratch: Scratch, count: int
) -> tuple[int, int]:
    """Take entries of a cell into the block; returns how many the block has then, and where to go on in the cell."""
    block, seen, stamp = scratch.block, scratch.seen, scratch.stamp[0]
    while at < stop and count < BLOCK:
        c, block.place[UP(count)], block.size[UP(count)] = data[UP(at)], data[UP(at + 1)], data[UP(at + 2)]
        at += ENTRY
        if single_valued:
            fetch(words, block.place[UP(count)])
        elif seen[c] == stamp:
            continue
        else:
            seen[c] = stamp
        block.conjunction[UP(count)] = c
        count += 1
    return count, at


@inlined
def _next_keys(
    n: int,
    many: int,
    chosen: _Combination,
    table: PairArrays,
    bits: Bits,
    met: I32s,
    met_dimension: I32s,
    keys: KeyScratch,
) -> tuple[int, _Combination]:
    """Write the keys of the next combinations of leaves, without most keys that have no cell, and fetch their homes.

    Returns how many keys, and the combination that comes next.
    """
    m = 0
    while m < _KEYS and chosen.a + n <= many:
        a, b, c, differ = _by_dimension(n, chosen, met_dimension)
        chosen = _after(n, many, chosen)
        if not differ:
            continue
        second = met[UP(b)] if n > 1 else 0
        third = met[UP(c)] if n == 3 else 0
        high, low = pair_key(n, met[UP(a)], second, third)
        mixed = mixed_of(high, low)
        if may_have(bits, mixed):
            home = home_of(mixed, len(table.value))
            keys.first[UP(m)], keys.second[UP(m)], keys.home[UP(m)] = high, low, home
            prefetch(table.value, home)
            prefetch(table.first, home)
            prefetch(table.second, home)
            m += 1
    return m, chosen


@inlined
def _after(n: int, many: int, chosen: _Combination) -> _Combination:
    """The next combination of N out of `many`."""
    i, j, k = chosen.a, chosen.b, chosen.c
    if n == 1:
        return _Combination(i + 1, j, k)
    if n == 2:
        return _Combination(i, j + 1, k) if j + 1 < many else _Combination(i + 1, i + 2, k)
    if k + 1 < many:
        return _Combination(i, j, k + 1)
    return _Combination(i, j + 1, j + 2) if j + 2 < many else _Combination(i + 1, i + 2, i + 3)


@inlined
def _by_dimension(n: int, chosen: _Combination, dimension: I32s) -> tuple[int, int, int, bool]:
    """A combination in the order of dimensions, and whether these differ."""
    a, b, c = chosen.a, chosen.b, chosen.c
    if n == 3:
        if dimension[UP(b)] > dimension[UP(c)]:
            b, c = c, b
        if dimension[UP(a)] > dimension[UP(b)]:
            a, b = b, a
        if dimension[UP(b)] > dimension[UP(c)]:
            b, c = c, b
        return a, b, c, dimension[UP(a)] != dimension[UP(b)] and dimension[UP(b)] != dimension[UP(c)]
    if n == 2:
        if dimension[UP(a)] > dimension[UP(b)]:
            a, b = b, a
        return a, b, c, dimension[UP(a)] != dimension[UP(b)]
    return a, b, c, True


@inlined
def _cells_of(count: int, table: PairArrays, lists: SlabArrays, keys: KeyScratch) -> int:
    """Look up the keys, and fetch the entries of their cells; returns how many keys have cells."""
    hits = 0
    for x in range(count):
        cell = table.value[UP(pair_place_from(table, keys.first[UP(x)], keys.second[UP(x)], keys.home[UP(x)]))]
        if cell != FREE:
            keys.cell[UP(hits)] = cell
            prefetch(lists.begin, cell)
            prefetch(lists.size, cell)
            hits += 1
    for x in range(hits):
        prefetch(lists.data, lists.begin[UP(keys.cell[UP(x)])])
    return hits
