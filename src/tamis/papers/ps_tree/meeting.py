"""Matching by cells: MatchEvent (Alg. 7), many keys at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import UP
from tamis.kernels.prefetch import prefetch
from tamis.papers.parts.collecting import note_event
from tamis.papers.parts.pair_map import FREE, home_of, mixed_of, slot_from
from tamis.papers.parts.records import load_event, unload_event
from tamis.papers.ps_tree.cells import ENTRY, may_have, pair_key
from tamis.papers.ps_tree.forest import leaf_of_key
from tamis.papers.ps_tree.nodes import NONE
from tamis.papers.ps_tree.verifying import BLOCK, fetch, verify

_KEYS = 512
"""Keys looked up at a time."""
_MANY = 1 << 16
"""Number of keys above which an event may test all conjunctions instead: it does if it has more keys than there are of them."""


class KeyScratch(NamedTuple):
    """Keys, their home slots, and their cells."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    home: npt.NDArray[np.int64]
    cell: npt.NDArray[np.int64]


def key_scratch() -> KeyScratch:
    return KeyScratch(*(np.empty(_KEYS, np.int64) for _ in range(4)))


@lean_kernel
def match_cells(
    n: int,
    forest: Any,
    flat: Any,
    cells: Any,
    live: Any,
    records: Any,
    table: Any,
    batch: Any,
    scratch: Any,
    keys: Any,
    event: int,
    counts: Any,
    out: Any,
    work: Any,
) -> int:
    """A `collecting.Kernel`."""
    v_start, v_dimension, v_lo, v_hi = batch
    (key, first, values), _, met, met_dimension, seen, leaf_seen, stamp, block, places, counted, elements = scratch
    pairs, (begins, sizes, _, data, _), (_, cell_counts, _, _, _), bits = cells
    words = records.words
    filled = 0
    while event < len(v_start) - 1:
        begin, end = v_start[event], v_start[event + 1]
        plain = load_event(begin, end, v_dimension, v_lo, v_hi, key, first, values)
        stamp[0] += 1
        many = _leaves_met(
            event, batch, plain, forest, flat, cell_counts, met, met_dimension, leaf_seen, stamp[0], elements
        )
        every = _is_too_many(n, many, len(live))
        kept, looked, tested, visited = filled, 0, 0, 0
        chosen = 0, 1, 2
        hit, hits, q, stop = 0, 0, 0, 0
        more = True
        while more and filled >= 0:
            count = 0
            if every:
                count, q = _next_live(live, q, block)
                more = q < len(live)
            while more and not every and count < BLOCK:
                if q < stop:
                    count, q = _take(data, q, stop, plain, words, seen, stamp[0], block, places, counted, count)
                elif hit < hits:
                    q = begins[UP(keys.cell[UP(hit)])]
                    stop = q + sizes[UP(keys.cell[UP(hit)])]
                    hit += 1
                else:
                    found, chosen = _next_keys(n, many, met, met_dimension, chosen, pairs, bits, keys)
                    more = found > 0
                    hit, hits = 0, _cells_of(found, pairs, begins, sizes, data, keys)
                    visited += hits
            looked += count
            filled, evaluated = verify(
                block, count, plain and not every, places, counted, words, key, table, v_lo, v_hi, first, values, out,
                filled,
            )  # fmt: skip
            tested += evaluated
        unload_event(begin, end, v_dimension, key, values)
        if filled < 0:
            break
        note_event(event, filled - kept, looked, tested, visited, counts, work)
        event += 1
    return event


@inlined
def _leaves_met(
    event: int,
    batch: Any,
    plain: bool,
    forest: Any,
    flat: Any,
    cell_counts: Any,
    met: Any,
    met_dimension: Any,
    leaf_seen: Any,
    stamp: int,
    elements: Any,
) -> int:
    """Note the leaves with cells that an event meets; returns how many."""
    leaves, (v_start, v_dimension, v_lo, v_hi) = forest.trees.leaves, batch
    many = 0
    for v in range(v_start[event], v_start[event + 1]):
        d = v_dimension[v]
        leaf = leaf_of_key(forest, flat[0], flat[1], flat[2], d, v_lo[v], elements)
        while leaf != NONE and (plain or leaves.lo[leaf] <= v_hi[v]):
            if cell_counts[leaf] > 0 and (plain or leaf_seen[leaf] != stamp):
                leaf_seen[leaf] = stamp
                met[many], met_dimension[many] = leaf, d
                many += 1
            if plain:
                break
            leaf = leaves.next[leaf]
    return many


@inlined
def _is_too_many(n: int, many: int, conjunctions: int) -> bool:
    """Whether `many` leaves have more combinations of N than are worth looking up."""
    combinations = np.float64(many)
    for i in range(1, n):
        combinations *= np.float64(many - i) / (i + 1)
    return bool(combinations > _MANY and combinations > conjunctions)


@inlined
def _next_live(live: Any, q: int, block: Any) -> tuple[int, int]:
    """Fill a block with conjunctions that are in cells, from one on; returns how many, and where to go on."""
    count = 0
    while q < len(live) and count < BLOCK:
        if live[q]:
            block[UP(count)] = q
            count += 1
        q += 1
    return count, q


@inlined
def _take(
    data: Any,
    q: int,
    stop: int,
    plain: bool,
    words: Any,
    seen: Any,
    stamp: int,
    block: Any,
    places: Any,
    counted: Any,
    count: int,
) -> tuple[int, int]:
    """Take entries of a cell into a block; returns how many the block has then, and where to go on in the cell."""
    while q < stop and count < BLOCK:
        c, places[UP(count)], counted[UP(count)] = data[UP(q)], data[UP(q + 1)], data[UP(q + 2)]
        q += ENTRY
        if plain:
            fetch(words, places[UP(count)])
        elif seen[c] == stamp:
            continue
        else:
            seen[c] = stamp
        block[UP(count)] = c
        count += 1
    return count, q


@inlined
def _next_keys(
    n: int, many: int, met: Any, met_dimension: Any, chosen: Any, pairs: Any, bits: Any, keys: Any
) -> tuple[int, Any]:
    """Write the keys of the next combinations of leaves, without most keys that have no cell, and fetch their home slots.

    Returns how many keys, and the combination that comes next.
    """
    firsts, seconds, slots, _ = pairs
    k_first, k_second, k_home, _ = keys
    m = 0
    while m < _KEYS and chosen[0] + n <= many:
        a, b, c, differ = _by_dimension(n, chosen, met_dimension)
        chosen = _after(n, many, chosen)
        if not differ:
            continue
        second = met[UP(b)] if n > 1 else 0
        third = met[UP(c)] if n == 3 else 0
        high, low = pair_key(n, met[UP(a)], second, third)
        mixed = mixed_of(high, low)
        if may_have(bits, mixed):
            home = home_of(mixed, len(slots))
            k_first[UP(m)], k_second[UP(m)], k_home[UP(m)] = high, low, home
            prefetch(slots, home)
            prefetch(firsts, home)
            prefetch(seconds, home)
            m += 1
    return m, chosen


@inlined
def _after(n: int, many: int, chosen: Any) -> Any:
    """The next combination of N out of `many`."""
    i, j, k = chosen
    if n == 1:
        return i + 1, j, k
    if n == 2:
        return (i, j + 1, k) if j + 1 < many else (i + 1, i + 2, k)
    if k + 1 < many:
        return i, j, k + 1
    return (i, j + 1, j + 2) if j + 2 < many else (i + 1, i + 2, i + 3)


@inlined
def _by_dimension(n: int, chosen: Any, dimension: Any) -> tuple[int, int, int, bool]:
    """A combination in the order of dimensions, and whether these differ."""
    a, b, c = chosen
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
def _cells_of(count: int, pairs: Any, begins: Any, sizes: Any, data: Any, keys: Any) -> int:
    """Look up the keys, and fetch the entries of their cells; returns how many keys have cells."""
    firsts, seconds, slots, _ = pairs
    k_first, k_second, k_home, k_cell = keys
    hits = 0
    for x in range(count):
        slot = slot_from(firsts, seconds, slots, k_first[UP(x)], k_second[UP(x)], k_home[UP(x)])
        if slots[UP(slot)] != FREE:
            k_cell[UP(hits)] = slots[UP(slot)]
            prefetch(begins, k_cell[UP(hits)])
            prefetch(sizes, k_cell[UP(hits)])
            hits += 1
    for x in range(hits):
        prefetch(data, begins[UP(k_cell[UP(x)])])
    return hits
