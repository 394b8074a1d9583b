"""Matching by lists of leaves: MatchEvent (Alg. 5), with signatures or without."""

from __future__ import annotations

from typing import Any

from tamis.encoding.dimensions.keys import KEY_MIN
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import UP
from tamis.papers.parts.collecting import note_event
from tamis.papers.parts.records import load_event, unload_event
from tamis.papers.ps_tree.forest import leaf_of_key
from tamis.papers.ps_tree.nodes import NONE
from tamis.papers.ps_tree.signatures import hash_of, is_in
from tamis.papers.ps_tree.verifying import BLOCK, fetch, locate, verify

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
    """A `collecting.Kernel`. If `hashes` is 0, signatures are not read."""
    v_start, v_dimension, v_lo, v_hi = batch
    (key, first, values), leaf_of, met, _, seen, leaf_seen, stamp, block, places, counted, elements = scratch
    begins, sizes, _, data, _ = lists
    at, size, words = records
    filled = 0
    while event < len(v_start) - 1:
        begin, end = v_start[event], v_start[event + 1]
        plain = load_event(begin, end, v_dimension, v_lo, v_hi, key, first, values)
        stamp[0] += 1
        many = _lists_met(event, batch, plain, first, forest, flat, sizes, leaf_of, met, leaf_seen, stamp[0], elements)
        kept, looked, tested = filled, 0, 0
        place = 0, 0, 0
        while filled >= 0 and (place[0] < many or place[1] < place[2]):
            n, some, place = _next_block(
                met, many, begins, sizes, data, plain, signatures, signed, key, leaf_of, seen, stamp[0], block, place
            )
            looked += some
            if plain:
                locate(block, n, at, size, places, counted)
                for j in range(n):
                    fetch(words, places[UP(j)])
                n = _in_all_signatures(block, n, places, counted, words, signatures, signed, leaf_of)
            filled, more = verify(
                block, n, plain, places, counted, words, key, table, v_lo, v_hi, first, values, out, filled
            )
            tested += more
        for v in range(begin, end):
            leaf_of[v_dimension[v]] = NONE
        unload_event(begin, end, v_dimension, key, values)
        if filled < 0:
            break
        note_event(event, filled - kept, looked, tested, many, counts, work)
        event += 1
    return event


@inlined
def _lists_met(
    event: int,
    batch: Any,
    plain: bool,
    first: Any,
    forest: Any,
    flat: Any,
    sizes: Any,
    leaf_of: Any,
    met: Any,
    leaf_seen: Any,
    stamp: int,
    elements: Any,
) -> int:
    """Note the lists that an event meets: the list of all events, lists of wide predicates, lists of leaves; returns how many."""
    leaves, (v_start, v_dimension, v_lo, v_hi) = forest.trees.leaves, batch
    many = 0
    if len(sizes) > 1 and sizes[1] > 0:
        met[0] = 1
        many = 1
    for v in range(v_start[event], v_start[event + 1]):
        d = v_dimension[v]
        wide = 2 * d + 3
        if first[d] == v and wide < len(sizes) and sizes[wide] > 0:
            met[many] = wide
            many += 1
        leaf = leaf_of_key(forest, flat[0], flat[1], flat[2], d, v_lo[v], elements)
        leaf_of[d] = leaf
        while leaf != NONE and (plain or leaves.lo[leaf] <= v_hi[v]):
            if plain or leaf_seen[leaf] != stamp:
                leaf_seen[leaf] = stamp
                met[many] = 2 * leaf
                many += 1
            if plain:
                break
            leaf = leaves.next[leaf]
    return many


@inlined
def _next_block(
    met: Any,
    many: int,
    begins: Any,
    sizes: Any,
    data: Any,
    plain: bool,
    signatures: Any,
    signed: Any,
    key: Any,
    leaf_of: Any,
    seen: Any,
    stamp: int,
    block: Any,
    place: Any,
) -> tuple[int, int, Any]:
    """Fill a block with candidates from the lists that an event meets; for a plain event, those that pass the first signature.

    Returns how many there are, how many were visited, and where to go on: the next list, and the place in the last one.
    """
    hashes = signatures[3]
    i, q, stop = place
    n, looked = 0, 0
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
                elif not _is_signed(signatures, leaf_of[UP(second)], hash_of(c)):
                    continue
        else:
            if seen[c] == stamp:
                continue
            seen[c] = stamp
            looked += 1
        block[UP(n)] = c
        n += 1
    return n, looked, (i, q, stop)


@inlined
def _is_signed(signatures: Any, leaf: int, mixed: Any) -> bool:
    """Whether a leaf's signature may contain the conjunction with this hash."""
    begin, bits, words, hashes = signatures
    if leaf == NONE or begin[UP(leaf)] == NONE:
        return False
    return is_in(words, begin[UP(leaf)], bits[UP(leaf)], mixed, hashes)


@inlined
def _in_all_signatures(
    block: Any, n: int, places: Any, counted: Any, words: Any, signatures: Any, signed: Any, leaf_of: Any
) -> int:
    """Keep the candidates of a block that also pass their other signatures; returns how many are left."""
    if signatures[3] == 0:
        return n
    kept = 0
    for j in range(n):
        c, place = block[UP(j)], places[UP(j)]
        mixed, passed = hash_of(c), True
        for _ in range(1, signed[UP(c)]):
            place += 1 + 2 * ((words[UP(place)] & _HALF) >> 2)
            if not _is_signed(signatures, leaf_of[UP(words[UP(place)] >> 32)], mixed):
                passed = False
                break
        if passed:
            block[UP(kept)], places[UP(kept)], counted[UP(kept)] = c, places[UP(j)], counted[UP(j)]
            kept += 1
    return kept
