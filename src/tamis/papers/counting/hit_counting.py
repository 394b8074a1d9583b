"""The two phases of `counting` on one event: find the satisfied predicates, and count the hits of their conjunctions."""

from __future__ import annotations

from typing import NamedTuple

from tamis.encoding.evaluation import EventPlaces, load_event, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, UP, I32s, I64s
from tamis.kernels.sorting import first_not_below
from tamis.papers.parts.collecting import Output, is_true, note_event
from tamis.papers.parts.pair_map import FREE, PairArrays, value_of
from tamis.papers.parts.slabs import SlabArrays

# Kinds of predicates. The kinds before PRESENT have a bound, and an order for each dimension.
EQUAL, AT_LEAST, AT_MOST, PRESENT, ABSENT = range(5)
KINDS, ORDERED = 5, 3
ALWAYS = -1
"""Stands for the dimension and kind of the list of conjunctions that need no hit."""
_KILLED = -(2**30)
"""Value of a hit counter that can never reach its need."""


class PredicateIndex(NamedTuple):
    """The predicate index and the association, drawn in `index`, over a table of conjunctions."""

    table: Conjunctions
    pairs: PairArrays
    """(dimension and kind, bound) -> number of the predicate."""
    lists: SlabArrays
    orders: SlabArrays
    bound: I64s


class HitCounters(NamedTuple):
    """The hits that each conjunction needs and has, and the predicates that an event satisfies."""

    need: I32s
    hits: I32s
    visited: I32s


@inlined
def _hit(number: int, lists: SlabArrays, counters: HitCounters, count: int) -> int:
    """Add a hit to all conjunctions of a predicate, and note the predicate if there is room; returns how many were visited."""
    begin = lists.begin[UP(number)]
    for i in range(begin, begin + lists.size[UP(number)]):
        counters.hits[UP(lists.data[UP(i)])] += 1
    counters.visited[UP(min(count, len(counters.visited) - 1))] = number
    return count + 1


@inlined
def _kill(number: int, lists: SlabArrays, counters: HitCounters, count: int) -> int:
    begin = lists.begin[number]
    for i in range(begin, begin + lists.size[number]):
        counters.hits[lists.data[i]] = _KILLED
    counters.visited[min(count, len(counters.visited) - 1)] = number
    return count + 1


@lean_kernel
def match_by_hits(
    index: PredicateIndex, counters: HitCounters, batch: EventBatch, places: EventPlaces, event: int, output: Output
) -> int:
    need, hits, visited = counters.need, counters.hits, counters.visited
    begin, size, data, out = index.lists.begin, index.lists.size, index.lists.data, output.matches
    filled = 0
    always = value_of(index.pairs, I64(ALWAYS), 0)
    for e in range(event, len(batch.start) - 1):
        load_event(batch, e, places)
        before, candidates = filled, 0
        nodes, predicates, single_valued = _satisfied(e, index, counters, batch, places.values)
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
                if not single_valued:
                    true, tested = is_true(c, index.table, batch, places)
                    predicates += tested
                    if not true:
                        continue
                if filled < len(out):
                    out[filled] = c
                filled += 1
        unload_event(batch, e, places)
        if filled > len(out):
            return e
        note_event(e, filled - before, candidates, predicates, nodes, output)
    return len(batch.start) - 1


@inlined
def _satisfied(
    event: int, index: PredicateIndex, counters: HitCounters, batch: EventBatch, values: I64s
) -> tuple[int, int, bool]:
    """Find the satisfied predicates of an event and count hits. How many, how many evaluated, whether it is single-valued."""
    pairs, lists, order, bound = index.pairs, index.lists, index.orders.data, index.bound
    nodes, predicates, single_valued = 0, 0, True
    v, end = batch.start[event], batch.start[event + 1]
    at = v
    while at < end:  # attributes that must be absent: before any hit is counted
        number = value_of(pairs, I64(batch.dimension[at]) * KINDS + ABSENT, 0)
        if number != FREE:
            nodes = _kill(number, lists, counters, nodes)
        at += values[batch.dimension[at]]
    while v < end:
        d = I64(batch.dimension[v])
        low, high = batch.lo[v], batch.hi[v]
        single_valued &= values[d] == 1 and low == high
        for i in range(v, v + values[d]):
            low, high = min(low, batch.lo[i]), max(high, batch.hi[i])
            predicates += 1
            if batch.lo[i] == batch.hi[i]:
                number = value_of(pairs, d * KINDS + EQUAL, batch.lo[i])
                if number != FREE:
                    nodes = _hit(number, lists, counters, nodes)
            else:
                at, last = _order_of(index.orders, d, EQUAL)
                at = first_not_below(order, bound, at, last, batch.lo[i])
                while at < last and bound[order[at]] <= batch.hi[i]:
                    nodes = _hit(order[at], lists, counters, nodes)
                    predicates, at = predicates + 1, at + 1
        v += values[d]
        number = value_of(pairs, d * KINDS + PRESENT, 0)
        if number != FREE:
            nodes = _hit(number, lists, counters, nodes)
            predicates += 1
        at, last = _order_of(index.orders, d, AT_LEAST)
        while at < last and bound[order[at]] <= high:
            nodes = _hit(order[at], lists, counters, nodes)
            predicates, at = predicates + 1, at + 1
        predicates += at < last
        at, last = _order_of(index.orders, d, AT_MOST)
        while last > at and bound[order[last - 1]] >= low:
            nodes = _hit(order[last - 1], lists, counters, nodes)
            predicates, last = predicates + 1, last - 1
        predicates += last > at
    return nodes, predicates, single_valued


@inlined
def _order_of(orders: SlabArrays, d: int, kind: int) -> tuple[int, int]:
    """Where the order of a dimension and kind begins and ends."""
    number = d * ORDERED + kind
    if number >= len(orders.begin):
        return I64(0), I64(0)
    return orders.begin[number], orders.begin[number] + orders.size[number]
