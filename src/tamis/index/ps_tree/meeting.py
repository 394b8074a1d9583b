"""Matching by cells: MatchEvent (Alg. 7), many keys at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.kernel import lean_kernel
from tamis.encoding.numbers import UP
from tamis.encoding.prefetch import prefetch
from tamis.index.collecting import CANDIDATES, NODES, PREDICATES
from tamis.index.pair_map import FREE, home_of, mixed_of, slot_from
from tamis.index.ps_tree.cells import ENTRY, may_have, pair_key
from tamis.index.ps_tree.forest import leaf_of_key
from tamis.index.ps_tree.nodes import NONE
from tamis.index.ps_tree.verifying import BLOCK, failing_any, failing_plain, fetch
from tamis.index.records import load_event, unload_event

_KEYS = 512
"""So many keys are looked up together."""
_MANY = 1 << 16
"""An event with more keys than this, and more than there are conjunctions, looks at all of those."""


class KeyScratch(NamedTuple):
    """Keys, where they belong, and what cells they have."""

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
    f_start, f_lo, f_leaf = flat
    (firsts, seconds, slots, _), (begins, sizes, _, data, _), (_, cell_counts, _, _, _), bits = cells
    k_first, k_second, k_home, k_cell = keys
    words = records.words
    leaves = forest.trees.leaves
    filled = 0
    while event < len(v_start) - 1:
        begin, end = v_start[event], v_start[event + 1]
        plain = load_event(begin, end, v_dimension, v_lo, v_hi, key, first, values)
        stamp[0] += 1
        many = 0
        for v in range(begin, end):
            d = v_dimension[v]
            leaf = leaf_of_key(forest, f_start, f_lo, f_leaf, d, v_lo[v], elements)
            while leaf != NONE and leaves.lo[leaf] <= v_hi[v]:
                if cell_counts[leaf] > 0 and (plain or leaf_seen[leaf] != stamp[0]):
                    leaf_seen[leaf] = stamp[0]
                    met[many], met_dimension[many] = leaf, d
                    many += 1
                if plain:
                    break
                leaf = leaves.next[leaf]
        combinations = np.float64(many)
        for i in range(1, n):
            combinations *= np.float64(many - i) / (i + 1)
        every = combinations > _MANY and combinations > len(live)
        kept, looked, tested, visited = filled, 0, 0, 0
        i, j, k = 0, 1, 2
        hit, hits, q, stop = 0, 0, 0, len(live) if every else 0
        more = True
        while more and filled >= 0:
            c_count = 0
            while c_count < BLOCK:
                if q < stop:
                    if every:
                        c = q
                        q += 1
                        if not live[c]:
                            continue
                    else:
                        c, places[UP(c_count)], counted[UP(c_count)] = data[UP(q)], data[UP(q + 1)], data[UP(q + 2)]
                        q += ENTRY
                        if plain:
                            fetch(words, places[UP(c_count)])
                        elif seen[c] == stamp[0]:
                            continue
                        else:
                            seen[c] = stamp[0]
                    block[UP(c_count)] = c
                    c_count += 1
                    continue
                if every:
                    more = False
                    break
                if hit < hits:
                    cell = k_cell[UP(hit)]
                    hit += 1
                    q = begins[UP(cell)]
                    stop = q + sizes[UP(cell)]
                    continue
                # The next keys: where they belong is fetched for all, then looked at.
                m = 0
                while m < _KEYS and i + n <= many:
                    a, b, c = i, j, k
                    if n == 1:
                        i += 1
                    elif n == 2:
                        j += 1
                        if j == many:
                            i += 1
                            j = i + 1
                    else:
                        k += 1
                        if k == many:
                            j += 1
                            if j + 1 >= many:
                                i += 1
                                j = i + 1
                            k = j + 1
                    if n > 1:
                        if n == 3:
                            if met_dimension[UP(b)] > met_dimension[UP(c)]:
                                b, c = c, b
                            if met_dimension[UP(a)] > met_dimension[UP(b)]:
                                a, b = b, a
                            if met_dimension[UP(b)] > met_dimension[UP(c)]:
                                b, c = c, b
                            if met_dimension[UP(b)] == met_dimension[UP(c)]:
                                continue
                        elif met_dimension[UP(a)] > met_dimension[UP(b)]:
                            a, b = b, a
                        if met_dimension[UP(a)] == met_dimension[UP(b)]:
                            continue
                    third = met[UP(c)] if n == 3 else 0
                    second = met[UP(b)] if n > 1 else 0
                    high, low = pair_key(n, met[UP(a)], second, third)
                    mixed = mixed_of(high, low)
                    if not may_have(bits, mixed):
                        continue
                    home = home_of(mixed, len(slots))
                    k_first[UP(m)], k_second[UP(m)], k_home[UP(m)] = high, low, home
                    prefetch(slots, home)
                    prefetch(firsts, home)
                    prefetch(seconds, home)
                    m += 1
                if m == 0:
                    more = False
                    break
                hit, hits = 0, 0
                for x in range(m):
                    slot = slot_from(firsts, seconds, slots, k_first[UP(x)], k_second[UP(x)], k_home[UP(x)])
                    if slots[UP(slot)] != FREE:
                        cell = slots[UP(slot)]
                        k_cell[UP(hits)] = cell
                        hits += 1
                        prefetch(begins, cell)
                        prefetch(sizes, cell)
                for x in range(hits):
                    prefetch(data, begins[UP(k_cell[UP(x)])])
                visited += hits
            looked += c_count
            for x in range(c_count):
                c = block[UP(x)]
                if plain and not every:
                    needed = counted[UP(x)]
                    held = failing_plain(words, places[UP(x)], needed, key)
                else:
                    held, needed = failing_any(c, table.start, table.predicates, v_lo, v_hi, first, values)
                tested += min(held + 1, needed)
                if held == needed:
                    if filled == len(out):
                        filled = -1
                        break
                    out[UP(filled)] = c
                    filled += 1
        unload_event(begin, end, v_dimension, key, values)
        if filled < 0:
            break
        counts[event] = filled - kept
        work[CANDIDATES] += looked
        work[PREDICATES] += tested
        work[NODES] += visited
        event += 1
    return event
