"""The two phases of `counting` on one event: find the satisfied predicates, and count the hits of their conjunctions."""

from __future__ import annotations

from typing import Any

from tamis.encoding.events.event_batch import load, unload
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, UP
from tamis.papers.parts.collecting import is_true, note_event
from tamis.papers.parts.pair_map import FREE, slot_of

# Kinds of predicates. The kinds before PRESENT have a bound, and an order for each dimension.
EQUAL, AT_LEAST, AT_MOST, PRESENT, ABSENT = range(5)
KINDS, ORDERED = 5, 3
ALWAYS = -1
"""Stands for the dimension and kind of the list of conjunctions that need no hit."""
_KILLED = -(2**30)
"""Value of a hit counter that can never reach its need."""


@inlined
def _hit(number: int, begin: Any, size: Any, data: Any, hits: Any, visited: Any, count: int) -> int:
    """Add a hit to all conjunctions of a predicate, and note the predicate if there is room; returns how many were visited."""
    for i in range(begin[UP(number)], begin[UP(number)] + size[UP(number)]):
        hits[UP(data[UP(i)])] += 1
    visited[UP(min(count, len(visited) - 1))] = number
    return count + 1


@inlined
def _kill(number: int, begin: Any, size: Any, data: Any, hits: Any, visited: Any, count: int) -> int:
    for i in range(begin[number], begin[number] + size[number]):
        hits[data[i]] = _KILLED
    visited[min(count, len(visited) - 1)] = number
    return count + 1


@inlined
def _first_not_below(data: Any, bound: Any, low: int, high: int, key: int) -> int:
    """The first place of an order, from `low` to `high`, whose bound is not below a key."""
    while low < high:
        middle = (low + high) // 2
        if bound[data[middle]] < key:
            low = middle + 1
        else:
            high = middle
    return low


@lean_kernel
def match_by_hits(
    index: Any, counters: Any, table: Any, batch: Any, scratch: Any, event: int, counts: Any, out: Any, work: Any
) -> int:
    pairs, lists, orders, bound = index
    begin, size, _room, data, _end = lists
    need, hits, visited = counters
    v_start, v_dimension, v_lo, v_hi = batch
    first, count = scratch
    filled = 0
    always = pairs.value[slot_of(pairs.first, pairs.second, pairs.value, I64(ALWAYS), 0)]
    for e in range(event, len(v_start) - 1):
        load(v_start, v_dimension, e, first, count)
        before, candidates = filled, 0
        nodes, predicates, plain = _satisfied(
            pairs, begin, size, data, orders, bound, hits, visited, v_start[e], v_start[e + 1], batch, count
        )
        total = 0
        for i in range(min(nodes, len(visited))):
            total += size[visited[i]]
        if always != FREE:
            for i in range(begin[always], begin[always] + size[always]):
                if hits[data[i]] == 0:
                    candidates += 1
                    if filled < len(out):
                        out[filled] = data[i]
                    filled += 1
        # Find counters with hits: go through all counters, or through the visited lists again if these are shorter.
        sweep = nodes > len(visited) or 2 * total > len(need)
        for i in range(1 if sweep else nodes):
            at = 0 if sweep else begin[visited[i]]
            end = len(need) if sweep else at + size[visited[i]]
            for j in range(at, end):
                c = j if sweep else I64(data[UP(j)])
                had = hits[UP(c)]
                if had == 0:
                    continue
                candidates += 1
                hits[UP(c)] = 0
                if had < need[UP(c)] or need[UP(c)] == 0:
                    continue
                if not plain:
                    true, tested = is_true(c, table, v_lo, v_hi, first, count)
                    predicates += tested
                    if not true:
                        continue
                if filled < len(out):
                    out[filled] = c
                filled += 1
        unload(v_start, v_dimension, e, count)
        if filled > len(out):
            return e
        note_event(e, filled - before, candidates, predicates, nodes, counts, work)
    return len(v_start) - 1


@inlined
def _satisfied(
    pairs: Any, begin: Any, size: Any, data: Any, orders: Any, bound: Any, hits: Any, visited: Any,
    v: int, end: int, batch: Any, count: Any,
) -> tuple[int, int, bool]:  # fmt: skip
    """Find the satisfied predicates of an event and count hits. How many, how many were evaluated, whether it is plain."""
    firsts, seconds, values, _pairs = pairs
    o_begin, o_size, _room, order, _end = orders
    _start, v_dimension, v_lo, v_hi = batch
    nodes, predicates, plain = 0, 0, True
    at = v
    while at < end:  # attributes that must be absent: before any hit is counted
        number = values[slot_of(firsts, seconds, values, I64(v_dimension[at]) * KINDS + ABSENT, 0)]
        if number != FREE:
            nodes = _kill(number, begin, size, data, hits, visited, nodes)
        at += count[v_dimension[at]]
    while v < end:
        d = I64(v_dimension[v])
        low, high = v_lo[v], v_hi[v]
        plain &= count[d] == 1 and low == high
        for i in range(v, v + count[d]):
            low, high = min(low, v_lo[i]), max(high, v_hi[i])
            predicates += 1
            if v_lo[i] == v_hi[i]:
                number = values[slot_of(firsts, seconds, values, d * KINDS + EQUAL, v_lo[i])]
                if number != FREE:
                    nodes = _hit(number, begin, size, data, hits, visited, nodes)
            elif d * ORDERED + EQUAL < len(o_begin):
                at = o_begin[d * ORDERED + EQUAL]
                last = at + o_size[d * ORDERED + EQUAL]
                at = _first_not_below(order, bound, at, last, v_lo[i])
                while at < last and bound[order[at]] <= v_hi[i]:
                    nodes = _hit(order[at], begin, size, data, hits, visited, nodes)
                    predicates, at = predicates + 1, at + 1
        v += count[d]
        number = values[slot_of(firsts, seconds, values, d * KINDS + PRESENT, 0)]
        if number != FREE:
            nodes = _hit(number, begin, size, data, hits, visited, nodes)
            predicates += 1
        if d * ORDERED + AT_LEAST < len(o_begin):
            at = o_begin[d * ORDERED + AT_LEAST]
            last = at + o_size[d * ORDERED + AT_LEAST]
            while at < last and bound[order[at]] <= high:
                nodes = _hit(order[at], begin, size, data, hits, visited, nodes)
                predicates, at = predicates + 1, at + 1
            predicates += at < last
        if d * ORDERED + AT_MOST < len(o_begin):
            at = o_begin[d * ORDERED + AT_MOST]
            last = at + o_size[d * ORDERED + AT_MOST]
            while last > at and bound[order[last - 1]] >= low:
                nodes = _hit(order[last - 1], begin, size, data, hits, visited, nodes)
                predicates, last = predicates + 1, last - 1
            predicates += last > at
    return nodes, predicates, plain
