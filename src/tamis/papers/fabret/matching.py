"""The event matching algorithm, in its two phases.

1. Set the bits of the predicates that the event satisfies, and collect the lists of clusters whose access predicate is one of
   them, or, by a look-up in each multi-attribute hash table, a conjunction of them.
2. Test the subscriptions of these clusters, bit by bit.

After an event, only the words that it changed are reset, not the whole vector.

An event's value may be an interval, which no hash table can look up. Then each predicate on its dimension is evaluated. If a
table has such a dimension, or one with several values in the event, all its access predicates are evaluated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import holds
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import UP
from tamis.papers.fabret.access import ALWAYS, NO_ACCESS, NO_CLUSTER, NO_TABLE
from tamis.papers.fabret.bit_vector import FREE, NONE_LEFT, WORD, WORDS, bit_of, is_equality, is_set
from tamis.papers.fabret.clusters import check_cluster
from tamis.papers.fabret.points import NOBODY
from tamis.papers.fabret.ranges import NO_NODE
from tamis.papers.parts import pair_map
from tamis.papers.parts.collecting import CANDIDATES, NODES, PREDICATES

_ODD = -2
"""Stands for the equality of a dimension where the event has several values or an interval."""
_INTERVAL = -3

SATISFIED, LOOKUPS, LISTS, CLUSTERS = range(4)
"""Places of counters: hits of predicates and look-ups in tables in phase 1, access predicates and clusters in phase 2."""
PHASES = 4


class Scratch(NamedTuple):
    """Notes of a kernel about one event."""

    first: npt.NDArray[np.int64]
    present: npt.NDArray[np.int64]
    chosen: npt.NDArray[np.int32]
    touched: npt.NDArray[np.int32]
    lists: npt.NDArray[np.int32]
    odd: npt.NDArray[np.bool_]


def scratch_of(dimensions: int, words: int, values: int, accesses: int, tables: int) -> Scratch:
    """Scratch for events with these numbers of dimensions and values, and an index with these numbers of parts."""
    return Scratch(
        np.zeros(dimensions, np.int64),
        np.zeros(dimensions, np.int64),
        np.full(dimensions, NOBODY, np.int32),
        np.empty(2 * words + values + 1, np.int32),
        np.empty(accesses + 1, np.int32),
        np.zeros(tables, np.bool_),
    )


@inlined
def _hit(bits: Any, rest: Any, touched: Any, count: int, literal: int) -> int:
    """Note that a value lies in a predicate's intervals; returns how many words were touched."""
    word = UP(literal >> 7)
    bit = bit_of(literal >> 1)
    before = bits[word]
    if literal & 1:
        bits[word] = before & ~bit
        return count
    if before == rest[word]:
        touched[UP(count)] = word
        count += 1
    bits[word] = before | bit
    return count


@inlined
def _stab(
    node: int,
    key: int,
    center: Any,
    begin: Any,
    end: Any,
    left: Any,
    right: Any,
    low: Any,
    high: Any,
    of_low: Any,
    of_high: Any,
    bits: Any,
    rest: Any,
    touched: Any,
    count: int,
) -> tuple[int, int]:
    """Hit the ranges of a tree that contain a key; returns how many words were touched, and how many ranges were hit."""
    hits = 0
    while node != NO_NODE:
        if key < center[node]:
            at = begin[node]
            while at < end[node] and low[UP(at)] <= key:
                count = _hit(bits, rest, touched, count, of_low[UP(at)])
                at += 1
            hits += at - begin[node]
            node = left[node]
        else:
            at = end[node] - 1
            while at >= begin[node] and high[UP(at)] >= key:
                count = _hit(bits, rest, touched, count, of_high[UP(at)])
                at -= 1
            hits += end[node] - 1 - at
            node = right[node]
    return count, hits


@inlined
def _evaluate_intervals(
    ids: int,
    exemplar: Any,
    references: Any,
    p_dimension: Any,
    p_mode: Any,
    p_start: Any,
    p_lo: Any,
    p_hi: Any,
    v_lo: Any,
    v_hi: Any,
    first: Any,
    present: Any,
    chosen: Any,
    single: Any,
    bits: Any,
    rest: Any,
    touched: Any,
    count: int,
    lists: Any,
    listed: int,
) -> tuple[int, int]:
    """Evaluate every predicate on dimensions where the event has an interval; returns words touched, and lists."""
    for number in range(ids):
        p = exemplar[number]
        if p == FREE or references[number] == 0 or chosen[p_dimension[p]] != _INTERVAL:
            continue
        d = p_dimension[p]
        word, bit = number >> 6, bit_of(number)
        if not holds(p_mode[p], p_lo, p_hi, p_start[p], p_start[p + 1], v_lo, v_hi, first[d], present[d]):
            bits[word] &= ~bit
        elif not is_set(bits, number):
            count = _hit(bits, rest, touched, count, 2 * number)
            if is_equality(p_mode, p_start, p_lo, p_hi, p) and single[number] != NO_ACCESS:
                lists[listed] = single[number]
                listed += 1
    return count, listed


@inlined
def _look_up(
    tables: Any,
    attributes: Any,
    firsts: Any,
    seconds: Any,
    values: Any,
    single: Any,
    chosen: Any,
    present: Any,
    odd: Any,
    lists: Any,
    listed: int,
) -> tuple[int, int, int]:
    """Look an event up in all tables whose schema it has; returns how many lists there are, look-ups, and odd tables."""
    lookups, strange = 0, 0
    for t in range(len(tables) - 1):
        odd[t] = False
        there = tables[t + 1] > tables[t]
        for a in range(tables[t], tables[t + 1]):
            d = attributes[a]
            if present[d] == 0:
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
            for a in range(tables[t], tables[t + 1]):
                number = chosen[attributes[a]]
                if number == NOBODY:
                    access = NO_ACCESS
                elif access == ALWAYS:
                    access = single[number]
                else:
                    access = values[pair_map.slot_of(firsts, seconds, values, access, number)]
                if access == NO_ACCESS:
                    break
            if access != NO_ACCESS:
                lists[listed] = access
                listed += 1
    return listed, lookups, strange


@inlined
def _try_all(
    made: int, parent: Any, predicate: Any, table: Any, head: Any, odd: Any, bits: Any, lists: Any, listed: int
) -> int:
    """Try every access predicate of the tables that the event could not be looked up in; returns how many lists there are."""
    for access in range(1, made):
        if parent[access] == NO_ACCESS or table[access] == NO_TABLE or head[access] == NO_CLUSTER:
            continue
        if odd[table[access]]:
            above = access
            while above != ALWAYS and is_set(bits, predicate[above]):
                above = parent[above]
            if above == ALWAYS:
                lists[listed] = access
                listed += 1
    return listed


@merged
def _satisfy(
    v_begin: int,
    v_end: int,
    v_dimension: Any,
    v_lo: Any,
    v_hi: Any,
    predicate_index: Any,
    p_mode: Any,
    p_start: Any,
    p_lo: Any,
    p_hi: Any,
    head: Any,
    single: Any,
    scratch: Any,
    listed: int,
) -> tuple[int, int, int, bool]:
    """Phase 1: set the bits of the predicates that the values of an event satisfy, and note the lists of single equalities.

    Returns how many words were touched, how many lists there are, how many bits were set, and whether there are intervals, which
    are left out.
    """
    exemplar, _, _, _, bits, rest, fill, following, block, absent, _, _, _ = predicate_index.bits
    firsts, seconds, values, _ = predicate_index.points.map
    equality = predicate_index.points.equality
    list_begin, list_size, _, list_data, _ = predicate_index.points.lists
    members, built, root, center, t_begin, t_end, left, right, low, high, of_low, of_high = predicate_index.trees
    member_begin, member_size, _, member_data, _ = members
    first, present, chosen, touched, lists, _ = scratch
    n, hits, intervals = 0, 0, False
    for v in range(v_begin, v_end):
        d = v_dimension[v]
        if d >= len(block):
            continue
        if present[d] == 0:
            first[d] = v
            if absent[d] != NONE_LEFT:
                touched[n] = absent[d] >> 6
                n += 1
                bits[absent[d] >> 6] &= ~bit_of(absent[d])
            word = block[d]
            while word != NONE_LEFT:
                touched[n] = word
                n += 1
                bits[word] = fill[word]
                word = following[word]
        elif chosen[d] != _INTERVAL:
            chosen[d] = _ODD
        present[d] += 1
        if v_lo[v] != v_hi[v]:
            chosen[d], intervals = _INTERVAL, True
            continue
        key = v_lo[v]
        point = values[UP(pair_map.slot_of(firsts, seconds, values, d, key))]
        if point != pair_map.FREE:
            number = equality[UP(point)]
            if number != NOBODY and not is_set(bits, number):
                n = _hit(bits, rest, touched, n, 2 * number)
                hits += 1
                if single[number] != NO_ACCESS and head[single[number]] != NO_CLUSTER:
                    lists[listed] = single[number]
                    listed += 1
                if present[d] == 1:
                    chosen[d] = number
            for i in range(list_begin[point], list_begin[point] + list_size[point]):
                n = _hit(bits, rest, touched, n, list_data[UP(i)])
            hits += list_size[point]
        n, stabbed = _stab(
            root[d], key, center, t_begin, t_end, left, right, low, high, of_low, of_high, bits, rest, touched, n
        )
        hits += stabbed
        for m in range(member_begin[d] + built[d], member_begin[d] + member_size[d]):
            p = exemplar[member_data[m]]
            for k in range(p_start[p], p_start[p + 1]):
                if p_lo[k] <= key <= p_hi[k] and p_lo[k] != p_hi[k]:
                    n = _hit(bits, rest, touched, n, 2 * member_data[m] + p_mode[p])
                    hits += 1
    return n, listed, hits, intervals


@lean_kernel
def match(
    predicate_index: Any,
    accesses: Any,
    clusters: Any,
    tables: Any,
    predicates: Any,
    batch: Any,
    scratch: Any,
    ahead: bool,
    phases: Any,
    event: int,
    counts: Any,
    out: Any,
    work: Any,
) -> int:
    """The event matching algorithm for events from one on: a kernel for `collect`."""
    exemplar, _, references, _, bits, rest, _, _, block, _, _, _, totals = predicate_index.bits
    a_firsts, a_seconds, a_values, _ = accesses.map
    _, parent, access_predicate, table, head, _, _, single, _, access_counts = accesses
    begin, room, size, columns, next_cluster, _, _, _, _, data, _, _ = clusters
    table_start, attributes = tables
    p_dimension, p_mode, p_start, p_lo, p_hi = predicates
    v_start, v_dimension, v_lo, v_hi = batch
    first, present, chosen, touched, lists, odd = scratch
    filled = 0
    for e in range(event, len(v_start) - 1):
        listed = 0
        if head[ALWAYS] != NO_CLUSTER:
            lists[0] = ALWAYS
            listed = 1
        n, listed, hits, intervals = _satisfy(
            v_start[e], v_start[e + 1], v_dimension, v_lo, v_hi, predicate_index, p_mode, p_start, p_lo, p_hi, head,
            single, scratch, listed,
        )  # fmt: skip
        if intervals:
            n, listed = _evaluate_intervals(
                totals[WORDS] * WORD, exemplar, references, p_dimension, p_mode, p_start, p_lo, p_hi, v_lo, v_hi,
                first, present, chosen, single, bits, rest, touched, n, lists, listed,
            )  # fmt: skip
        lookups = 0
        if len(table_start) > 1:
            listed, lookups, strange = _look_up(
                table_start, attributes, a_firsts, a_seconds, a_values, single, chosen, present, odd, lists, listed
            )
            if strange > 0:
                listed = _try_all(access_counts[0], parent, access_predicate, table, head, odd, bits, lists, listed)
        # Phase 2: the subscriptions of clusters whose access predicate is satisfied.
        before, candidates, tested, visited = filled, 0, 0, 0
        for i in range(listed):
            cluster = head[lists[i]]
            while cluster != NO_CLUSTER:
                visited += 1
                candidates += size[cluster]
                filled, more = check_cluster(
                    bits, data, begin[cluster], room[cluster], size[cluster], columns[cluster], ahead, out, filled
                )
                tested += more
                cluster = next_cluster[cluster]
        for i in range(n):
            bits[UP(touched[i])] = rest[UP(touched[i])]
        for v in range(v_start[e], v_start[e + 1]):
            if v_dimension[v] < len(block):
                present[v_dimension[v]] = 0
                chosen[v_dimension[v]] = NOBODY
        if filled > len(out):
            return e
        counts[e] = filled - before
        work[CANDIDATES] += candidates
        work[PREDICATES] += tested
        work[NODES] += visited + lookups
        phases[SATISFIED] += hits
        phases[LOOKUPS] += lookups
        phases[LISTS] += listed
        phases[CLUSTERS] += visited
    return len(v_start) - 1
