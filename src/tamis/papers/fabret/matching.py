"""The event matching algorithm, in its two phases.

1. Set the bits of the predicates that the event satisfies, and collect the lists of clusters whose access predicate is one of
   them, or, by a look-up in each multi-attribute hash table, a conjunction of them.
2. Test the subscriptions of these clusters, bit by bit.

After an event, only the words that it changed are reset, not the whole vector.

An event's value may be an interval, which no hash table can look up. Then each predicate on its dimension is evaluated. If a
table has such a dimension, or one with several values in the event, all its access predicates are evaluated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.evaluation import EventPlaces, event_places, load_event, predicate_holds, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.bits import WORD, bit_of, clear_bit, flag_in, has_bit, number_in, word_of
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import UP, Bools, I32s, I64s
from tamis.papers.fabret.access import ALWAYS, MADE, NO_ACCESS, NO_CLUSTER, NO_TABLE, AccessArrays
from tamis.papers.fabret.bit_vector import FREE, NONE_LEFT, WORDS, BitArrays, Words, is_equality
from tamis.papers.fabret.clusters import ClusterArrays, ClusterPlace, check_cluster
from tamis.papers.fabret.points import NOBODY, PointArrays
from tamis.papers.fabret.ranges import NO_NODE, TreeArrays
from tamis.papers.parts import pair_map
from tamis.papers.parts.collecting import Output, note_event

_ODD = -2
"""Stands for the equality of a dimension where the event has several values or an interval."""
_INTERVAL = -3

SATISFIED, LOOKUPS, LISTS, CLUSTERS = range(4)
"""Places of counters: hits of predicates and look-ups in tables in phase 1, access predicates and clusters in phase 2."""
PHASES = 4


class IndexArrays(NamedTuple):
    """An index as kernels take it."""

    bits: BitArrays
    points: PointArrays
    trees: TreeArrays
    accesses: AccessArrays
    clusters: ClusterArrays
    schema_start: I64s
    """The attributes of multi-attribute hash table t: ``schema_start[t]`` to ``schema_start[t + 1]``."""
    attribute: I32s
    predicates: Predicates
    """The predicates of the table of conjunctions."""


class Scratch(NamedTuple):
    """Notes of a kernel about one event."""

    places: EventPlaces
    chosen: I32s
    """Dimension -> the id of the equality that its value satisfies, or NOBODY, _ODD, _INTERVAL."""
    touched: I32s
    """Words of the bit vector that may differ from rest."""
    lists: I32s
    """Access predicates that are satisfied."""
    odd: Bools
    """Table -> whether the event has its schema, but cannot be looked up in it."""


def scratch_of(dimensions: int, words: int, values: int, accesses: int, tables: int) -> Scratch:
    """Scratch for events with these numbers of dimensions and values, and an index with these numbers of parts."""
    return Scratch(
        event_places(dimensions),
        np.full(dimensions, NOBODY, np.int32),
        np.empty(2 * words + values + 1, np.int32),
        np.empty(accesses + 1, np.int32),
        np.zeros(tables, np.bool_),
    )


@inlined
def _hit(literal: int, bits: Words, rest: Words, touched: I32s, count: int) -> int:
    """Note that a value lies in a predicate's intervals; returns how many words were touched."""
    number, negated = number_in(literal), flag_in(literal)
    word, bit = UP(word_of(number)), bit_of(number)
    before = bits[word]
    if negated:
        bits[word] = before & ~bit
        return count
    if before == rest[word]:
        touched[UP(count)] = word
        count += 1
    bits[word] = before | bit
    return count


@merged
def _begin_dimension(d: int, bits: BitArrays, touched: I32s, count: int) -> int:
    """Set the bits that any value of a dimension sets; returns how many words were touched."""
    if bits.absent[d] != NONE_LEFT:
        touched[count] = word_of(bits.absent[d])
        count += 1
        clear_bit(bits.bits, bits.absent[d])
    word = bits.block[d]
    while word != NONE_LEFT:
        touched[count] = word
        count += 1
        bits.bits[word] = bits.fill[word]
        word = bits.following[word]
    return count


@merged
def _stab(d: int, key: int, trees: TreeArrays, bits: BitArrays, touched: I32s, count: int) -> tuple[int, int]:
    """Hit the ranges of a tree that contain a key; returns how many words were touched, and how many ranges were hit."""
    nodes, hits, node = trees.nodes, 0, trees.root[d]
    while node != NO_NODE:
        begin, end = nodes.begin[node], nodes.end[node]
        if key < nodes.center[node]:
            at = begin
            while at < end and trees.low[UP(at)] <= key:
                count = _hit(trees.of_low[UP(at)], bits.bits, bits.rest, touched, count)
                at += 1
            hits += at - begin
            node = nodes.left[node]
        else:
            at = end - 1
            while at >= begin and trees.high[UP(at)] >= key:
                count = _hit(trees.of_high[UP(at)], bits.bits, bits.rest, touched, count)
                at -= 1
            hits += end - 1 - at
            node = nodes.right[node]
    return count, hits


@merged
def _test_new(d: int, key: int, index: IndexArrays, touched: I32s, count: int) -> tuple[int, int]:
    """Test the ranges that are not in the tree yet; returns how many words were touched, and how many ranges were hit."""
    bits, members, predicates, hits = index.bits, index.trees.members, index.predicates, 0
    for m in range(members.begin[d] + index.trees.built[d], members.begin[d] + members.size[d]):
        p = bits.exemplar[members.data[m]]
        for k in range(predicates.start[p], predicates.start[p + 1]):
            lo, hi = predicates.lo[k], predicates.hi[k]
            if lo <= key <= hi and lo != hi:
                count = _hit(2 * members.data[m] + predicates.mode[p], bits.bits, bits.rest, touched, count)
                hits += 1
    return count, hits


@merged
def _satisfy(
    event: int, index: IndexArrays, batch: EventBatch, scratch: Scratch, listed: int
) -> tuple[int, int, int, bool]:
    """Phase 1: set the bits of the predicates that the values of an event satisfy, and note the lists of single equalities.

    Returns how many words were touched, how many lists there are, how many bits were set, and whether there are intervals, which
    are left out.
    """
    bits, points, accesses = index.bits, index.points, index.accesses
    places, chosen, touched = scratch.places, scratch.chosen, scratch.touched
    n, hits, intervals = 0, 0, False
    for v in range(batch.start[event], batch.start[event + 1]):
        d, key = batch.dimension[v], batch.lo[v]
        if d >= len(bits.block):
            continue
        if places.first[d] == v:
            n = _begin_dimension(d, bits, touched, n)
        elif chosen[d] != _INTERVAL:
            chosen[d] = _ODD
        if key != batch.hi[v]:
            chosen[d], intervals = _INTERVAL, True
            continue
        point = pair_map.value_of(points.map, d, key)
        if point != pair_map.FREE:
            number = points.equality[UP(point)]
            if number != NOBODY and not has_bit(bits.bits, number):
                n = _hit(2 * number, bits.bits, bits.rest, touched, n)
                hits += 1
                access = accesses.single[number]
                if access != NO_ACCESS and accesses.head[access] != NO_CLUSTER:
                    scratch.lists[listed] = access
                    listed += 1
                if places.first[d] == v:
                    chosen[d] = number
            first, size = points.lists.begin[point], points.lists.size[point]
            for i in range(first, first + size):
                n = _hit(points.lists.data[UP(i)], bits.bits, bits.rest, touched, n)
            hits += size
        n, stabbed = _stab(d, key, index.trees, bits, touched, n)
        n, more = _test_new(d, key, index, touched, n)
        hits += stabbed + more
    return n, listed, hits, intervals


@merged
def _evaluate_intervals(
    index: IndexArrays, batch: EventBatch, scratch: Scratch, n: int, listed: int
) -> tuple[int, int]:
    """Evaluate every predicate on dimensions where the event has an interval; returns words touched, and lists."""
    bits, predicates, single = index.bits, index.predicates, index.accesses.single
    for number in range(bits.totals[WORDS] * WORD):
        p = bits.exemplar[number]
        if p == FREE or bits.references[number] == 0 or scratch.chosen[predicates.dimension[p]] != _INTERVAL:
            continue
        if not predicate_holds(p, predicates, batch, scratch.places):
            clear_bit(bits.bits, number)
        elif not has_bit(bits.bits, number):
            n = _hit(2 * number, bits.bits, bits.rest, scratch.touched, n)
            if is_equality(predicates, p) and single[number] != NO_ACCESS:
                scratch.lists[listed] = single[number]
                listed += 1
    return n, listed


@merged
def _look_up(index: IndexArrays, scratch: Scratch, listed: int) -> tuple[int, int, int]:
    """Look an event up in all tables whose schema it has; returns how many lists there are, look-ups, and odd tables."""
    accesses, starts, chosen, odd = index.accesses, index.schema_start, scratch.chosen, scratch.odd
    lookups, strange = 0, 0
    for t in range(len(starts) - 1):
        odd[t] = False
        there = starts[t + 1] > starts[t]
        for a in range(starts[t], starts[t + 1]):
            d = index.attribute[a]
            if scratch.places.values[d] == 0:
                there = False
                break
            odd[t] |= chosen[d] < NOBODY
        if not there:
            odd[t] = False
        elif odd[t]:
            strange += 1
        else:
            lookups += 1
            access = ALWAYS
            for a in range(starts[t], starts[t + 1]):
                number = chosen[index.attribute[a]]
                if number == NOBODY:
                    access = NO_ACCESS
                elif access == ALWAYS:
                    access = accesses.single[number]
                else:
                    access = pair_map.value_of(accesses.map, access, number)
                if access == NO_ACCESS:
                    break
            if access != NO_ACCESS:
                scratch.lists[listed] = access
                listed += 1
    return listed, lookups, strange


@merged
def _try_all(accesses: AccessArrays, bits: Words, scratch: Scratch, listed: int) -> int:
    """Try every access predicate of the tables that the event could not be looked up in; returns how many lists there are."""
    for access in range(1, accesses.counts[MADE]):
        if accesses.parent[access] == NO_ACCESS or accesses.head[access] == NO_CLUSTER:
            continue
        table = accesses.table[access]
        if table != NO_TABLE and scratch.odd[table]:
            above = access
            while above != ALWAYS and has_bit(bits, accesses.predicate[above]):
                above = accesses.parent[above]
            if above == ALWAYS:
                scratch.lists[listed] = access
                listed += 1
    return listed


@merged
def _check_lists(
    lists: I32s, listed: int, index: IndexArrays, ahead: bool, out: I32s, filled: int
) -> tuple[int, int, int, int]:
    """Phase 2: test the subscriptions of clusters whose access predicate is satisfied, and append the matches.

    Returns where these end, how many subscriptions and predicates were tested, and how many clusters were visited.
    """
    clusters, bits = index.clusters, index.bits.bits
    candidates, tested, visited = 0, 0, 0
    for i in range(listed):
        cluster = index.accesses.head[lists[i]]
        while cluster != NO_CLUSTER:
            place = ClusterPlace(clusters.data, clusters.begin[cluster], clusters.room[cluster], clusters.size[cluster])
            filled, more = check_cluster(place, clusters.columns[cluster], bits, ahead, out, filled)
            visited += 1
            candidates += place.size
            tested += more
            cluster = clusters.following[cluster]
    return filled, candidates, tested, visited


@lean_kernel
def match(
    index: IndexArrays, batch: EventBatch, scratch: Scratch, ahead: bool, phases: I64s, event: int, output: Output
) -> int:
    """The event matching algorithm for events from one on: a kernel for `collect`."""
    bits, accesses, filled = index.bits, index.accesses, 0
    for e in range(event, len(batch.start) - 1):
        listed, lookups, before = 0, 0, filled
        if accesses.head[ALWAYS] != NO_CLUSTER:
            scratch.lists[0] = ALWAYS
            listed = 1
        load_event(batch, e, scratch.places)
        n, listed, hits, intervals = _satisfy(e, index, batch, scratch, listed)
        if intervals:
            n, listed = _evaluate_intervals(index, batch, scratch, n, listed)
        if len(index.schema_start) > 1:
            listed, lookups, strange = _look_up(index, scratch, listed)
            if strange > 0:
                listed = _try_all(accesses, bits.bits, scratch, listed)
        filled, candidates, tested, visited = _check_lists(scratch.lists, listed, index, ahead, output.matches, filled)
        for i in range(n):
            word = UP(scratch.touched[i])
            bits.bits[word] = bits.rest[word]
        for v in range(batch.start[e], batch.start[e + 1]):
            scratch.chosen[batch.dimension[v]] = NOBODY
        unload_event(batch, e, scratch.places)
        if filled > len(output.matches):
            return e
        note_event(e, filled - before, candidates, tested, visited + lookups, output)
        phases[SATISFIED] += hits
        phases[LOOKUPS] += lookups
        phases[LISTS] += listed
        phases[CLUSTERS] += visited
    return len(batch.start) - 1
