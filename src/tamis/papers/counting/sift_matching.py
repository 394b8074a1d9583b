"""Matching by the lists and the trie of SIFT's methods: find the profiles that may match, and evaluate them."""

from __future__ import annotations

from typing import Any

from tamis.encoding.events.event_batch import load, unload
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import UP
from tamis.papers.parts.collecting import is_true, note_event
from tamis.papers.parts.pair_map import FREE, slot_of

ROOT = 0
"""The node of a trie where a search begins."""


@inlined
def _look(those: Any, first: int, last: int, seen: Any, found: Any, count: int) -> int:
    """Note the profiles of a list that were not seen yet."""
    for i in range(first, last):
        c = those[UP(i)]
        if not seen[UP(c)]:
            seen[UP(c)] = True
            found[UP(count)] = c
            count += 1
    return count


@lean_kernel
def match_keys(
    index: Any,
    seen: Any,
    table: Any,
    batch: Any,
    values: Any,
    scratch: Any,
    event: int,
    counts: Any,
    out: Any,
    work: Any,
) -> int:
    (firsts, seconds, numbers, _count), start, lists, always = index
    seen, found = seen
    v_start, v_dimension, _, _ = batch
    first, count = scratch
    filled = 0
    for e in range(event, len(v_start) - 1):
        load(v_start, v_dimension, e, first, count)
        candidates, nodes = _look(always, 0, len(always), seen, found, 0), 0
        for v in range(v_start[e], v_start[e + 1]):
            number = numbers[slot_of(firsts, seconds, numbers, v_dimension[v], values[v])]
            if number != FREE:
                nodes += 1
                candidates = _look(lists, start[number], start[number + 1], seen, found, candidates)
        filled = _evaluate(e, found, candidates, nodes, seen, table, batch, scratch, counts, out, filled, work)
        if filled < 0:
            return e
    return len(v_start) - 1


@lean_kernel
def match_tree(
    index: Any, stacks: Any, seen: Any, table: Any, batch: Any, values: Any, scratch: Any,
    event: int, counts: Any, out: Any, work: Any,
) -> int:  # fmt: skip
    (firsts, seconds, numbers, _count), (e_firsts, e_seconds, e_values, _e_count), start, profiles, always = index
    stack, terms = stacks
    seen, found = seen
    v_start, v_dimension, _, _ = batch
    first, count = scratch
    filled = 0
    for e in range(event, len(v_start) - 1):
        load(v_start, v_dimension, e, first, count)
        candidates, nodes, known = _look(always, 0, len(always), seen, found, 0), 0, 0
        for v in range(v_start[e], v_start[e + 1]):
            number = numbers[slot_of(firsts, seconds, numbers, v_dimension[v], values[v])]
            if number != FREE:
                terms[known] = number
                known += 1
        stack[0], height = ROOT, 1
        while height > 0:
            height -= 1
            node = stack[height]
            nodes += 1
            candidates = _look(profiles, start[node], start[node + 1], seen, found, candidates)
            for t in range(known):
                repeated = False  # several values of an event may be one term
                for u in range(t):
                    repeated |= terms[u] == terms[t]
                child = e_values[slot_of(e_firsts, e_seconds, e_values, node, terms[t])]
                if child != FREE and not repeated:
                    stack[height] = child
                    height += 1
        filled = _evaluate(e, found, candidates, nodes, seen, table, batch, scratch, counts, out, filled, work)
        if filled < 0:
            return e
    return len(v_start) - 1


@inlined
def _evaluate(
    event: int,
    found: Any,
    candidates: int,
    nodes: int,
    seen: Any,
    table: Any,
    batch: Any,
    scratch: Any,
    counts: Any,
    out: Any,
    filled: int,
    work: Any,
) -> int:
    """Evaluate the profiles that may match an event, then clear the scratch. How much is filled, -1 if there is no room."""
    v_start, v_dimension, v_lo, v_hi = batch
    first, count = scratch
    before, evaluated = filled, 0
    for i in range(candidates):
        c = found[i]
        seen[c] = False
        true, tested = is_true(c, table, v_lo, v_hi, first, count)
        evaluated += tested
        if true:
            if filled < len(out):
                out[filled] = c
            filled += 1
    unload(v_start, v_dimension, event, count)
    if filled > len(out):
        return -1
    note_event(event, filled - before, candidates, evaluated, nodes, counts, work)
    return filled
