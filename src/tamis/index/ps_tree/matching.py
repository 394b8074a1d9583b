"""Matching by lists of leaves: MatchEvent (Alg. 5), with signatures or without."""

from __future__ import annotations

from typing import Any

from tamis.encoding.kernel import lean_kernel
from tamis.encoding.keys import KEY_MIN
from tamis.encoding.numbers import UP
from tamis.index.collecting import CANDIDATES, NODES, PREDICATES
from tamis.index.ps_tree.forest import leaf_of_key
from tamis.index.ps_tree.nodes import NONE
from tamis.index.ps_tree.signatures import hash_of, is_in
from tamis.index.ps_tree.verifying import BLOCK, failing_any, failing_plain, fetch, locate
from tamis.index.records import load_event, unload_event

_HALF = 0xFFFFFFFF


@lean_kernel
def match_lists(
    forest: Any,
    flat: Any,
    lists: Any,
    signatures: Any,
    signed: Any,
    records: Any,
    table: Any,
    batch: Any,
    scratch: Any,
    event: int,
    counts: Any,
    out: Any,
    work: Any,
) -> int:
    """A `collecting.Kernel`. Without hashes, signatures are not asked."""
    v_start, v_dimension, v_lo, v_hi = batch
    (key, first, values), leaf_of, met, _, seen, leaf_seen, stamp, block, places, counted, elements = scratch
    f_start, f_lo, f_leaf = flat
    begins, sizes, _, data, _ = lists
    s_begin, s_bits, s_words, hashes = signatures
    at, size, words = records
    leaves = forest.trees.leaves
    filled = 0
    while event < len(v_start) - 1:
        begin, end = v_start[event], v_start[event + 1]
        plain = load_event(begin, end, v_dimension, v_lo, v_hi, key, first, values)
        stamp[0] += 1
        # Which lists: that of every event, those of wide predicates, those of leaves.
        many = 0
        if len(sizes) > 1 and sizes[1] > 0:
            met[0] = 1
            many = 1
        for v in range(begin, end):
            d = v_dimension[v]
            wide = 2 * d + 3
            if first[d] == v and wide < len(sizes) and sizes[wide] > 0:
                met[many] = wide
                many += 1
            leaf = leaf_of_key(forest, f_start, f_lo, f_leaf, d, v_lo[v], elements)
            leaf_of[d] = leaf
            if plain:
                if leaf != NONE:
                    met[many] = 2 * leaf
                    many += 1
            else:
                while leaf != NONE and leaves.lo[leaf] <= v_hi[v]:
                    if leaf_seen[leaf] != stamp[0]:
                        leaf_seen[leaf] = stamp[0]
                        met[many] = 2 * leaf
                        many += 1
                    leaf = leaves.next[leaf]
        kept, looked, tested = filled, 0, 0
        i, q, stop = 0, 0, 0
        while filled >= 0 and (i < many or q < stop):
            n = 0
            while n < BLOCK:
                if q == stop:
                    if i == many:
                        break
                    q = begins[UP(met[UP(i)])]
                    stop = q + sizes[UP(met[UP(i)])]
                    i += 1
                    continue
                c, second = data[UP(q)], data[UP(q + 1)]
                q += 2
                if plain:
                    looked += 1
                    if second != NONE:
                        if hashes == 0 or signed[UP(c)] == 0:
                            if key[UP(second)] == KEY_MIN:
                                continue
                        else:
                            leaf = leaf_of[UP(second)]
                            if leaf == NONE or s_begin[UP(leaf)] == NONE:
                                continue
                            if not is_in(s_words, s_begin[UP(leaf)], s_bits[UP(leaf)], hash_of(c), hashes):
                                continue
                else:
                    if seen[c] == stamp[0]:
                        continue
                    seen[c] = stamp[0]
                    looked += 1
                block[UP(n)] = c
                n += 1
            if plain:
                locate(block, n, at, size, places, counted)
                for j in range(n):
                    fetch(words, places[UP(j)])
            for j in range(n):
                c = block[UP(j)]
                if plain and hashes > 0 and signed[UP(c)] > 1:
                    # The other signatures: a candidate must be in all.
                    place, mixed, passed = places[UP(j)], hash_of(c), True
                    for _ in range(1, signed[UP(c)]):
                        place += 1 + 2 * ((words[UP(place)] & _HALF) >> 2)
                        leaf = leaf_of[UP(words[UP(place)] >> 32)]
                        if leaf == NONE or s_begin[UP(leaf)] == NONE:
                            passed = False
                            break
                        if not is_in(s_words, s_begin[UP(leaf)], s_bits[UP(leaf)], mixed, hashes):
                            passed = False
                            break
                    if not passed:
                        continue
                if plain:
                    needed = counted[UP(j)]
                    held = failing_plain(words, places[UP(j)], needed, key)
                else:
                    held, needed = failing_any(c, table.start, table.predicates, v_lo, v_hi, first, values)
                tested += min(held + 1, needed)
                if held == needed:
                    if filled == len(out):
                        filled = -1
                        break
                    out[UP(filled)] = c
                    filled += 1
        for v in range(begin, end):
            leaf_of[v_dimension[v]] = NONE
        unload_event(begin, end, v_dimension, key, values)
        if filled < 0:
            break
        counts[event] = filled - kept
        work[CANDIDATES] += looked
        work[PREDICATES] += tested
        work[NODES] += many
        event += 1
    return event
