"""Terms of profiles: their values and numbers, and how they lead to the lists and the trie of SIFT's methods."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN, double_values
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I64, Bools, F64s, I32s, I64s
from tamis.papers.parts.pair_map import FREE, PairArrays, PairMap, enter, pair_place, value_of

_SOME = int(Mode.SOME)
_MOST_PATHS = 128
_CHUNK = 1 << 18
"""Terms entered at once. The hash table reserves room for all of them, though most are already known."""


class Terms(NamedTuple):
    """The terms of profiles: predicate p of profile i, ``start[i] <= p < start[i + 1]``, has the values of its ranges."""

    start: I64s
    dimension: I64s
    values: I64s
    """How many values each predicate has."""
    ranges: I64s
    lo: I64s
    hi: I64s


def whole_part(keys: I64s, is_number: Bools) -> F64s:
    """The whole part of the values of keys that are numbers."""
    doubles = double_values(keys)
    # The lowest and highest keys are not codes of doubles.
    doubles = np.where(np.isnan(doubles), np.where(keys < 0, -np.inf, np.inf), doubles)
    return np.floor(np.where(is_number, doubles, keys.astype(np.float64)))


@lean_kernel
def write_ranges(predicates: Predicates, chosen: I64s, ranges: I64s, lo: I64s, hi: I64s, of: I64s) -> None:
    """Write the key intervals that the chosen predicates allow. For NONE it is the complement, with parts that may be empty."""
    for i in range(len(chosen)):
        first, last = predicates.start[chosen[i]], predicates.start[chosen[i] + 1]
        at = ranges[i]
        if predicates.mode[chosen[i]] == _SOME:
            for interval in range(first, last):
                lo[at], hi[at] = predicates.lo[interval], predicates.hi[interval]
                at += 1
        else:
            # If nothing is left at an end, the neighbouring key stands for it: an extra term does no harm.
            begin = KEY_MIN
            for interval in range(first, last):
                lo[at], hi[at] = begin, max(predicates.lo[interval], KEY_MIN + 1) - 1
                begin = min(predicates.hi[interval], KEY_MAX - 1) + 1
                at += 1
            lo[at], hi[at] = begin, KEY_MAX
        for j in range(ranges[i], ranges[i + 1]):
            of[j] = i


@lean_kernel
def part_ranges(ranges: I64s, lo: I64s, hi: I64s, values: I64s) -> None:
    """Make the ranges of each predicate disjoint, and count their values."""
    for p in range(len(values)):
        for i in range(ranges[p], ranges[p + 1]):
            if i > ranges[p] and lo[i] <= hi[i - 1]:
                lo[i] = hi[i - 1] + 1
                hi[i] = max(hi[i], hi[i - 1])
            values[p] += hi[i] - lo[i] + 1


def chunks(counts: I64s) -> list[tuple[int, int]]:
    """Runs of elements whose counts add up to about `_CHUNK`, with at least one element each."""
    before = np.append(0, np.cumsum(counts))
    inner = np.searchsorted(before[:-1], np.arange(_CHUNK, int(before[-1]), _CHUNK))
    return list(pairwise(np.unique([0, *inner, len(counts)]).tolist()))


def counted(terms: Terms) -> tuple[PairMap, I64s]:
    """A number for every distinct term, and how often it occurs."""
    pairs = PairMap()
    frequency = np.zeros(0, np.int64)
    for first, last in chunks(terms.values):
        more = int(terms.values[first:last].sum())
        pairs.reserve(more)
        frequency = np.append(frequency[: len(pairs)], np.zeros(more, np.int64))
        _count_terms(terms, first, last, pairs.view(), frequency)
    pairs.shrink()
    return pairs, frequency[: len(pairs)].copy()


@lean_kernel
def _count_terms(terms: Terms, first: int, last: int, pairs: PairArrays, frequency: I64s) -> None:
    for p in range(first, last):
        for i in range(terms.ranges[p], terms.ranges[p + 1]):
            for value in range(terms.lo[i], terms.hi[i] + 1):
                at = pair_place(pairs, terms.dimension[p], value)
                if pairs.value[at] == FREE:
                    enter(pairs, at, terms.dimension[p], value, pairs.size[0])
                frequency[pairs.value[at]] += 1


@lean_kernel
def rarest(terms: Terms, pairs: PairArrays, frequency: I64s, keys: I64s) -> None:
    """Find the predicate of each profile whose terms occur least often together; -1 if it has no terms."""
    for i in range(len(keys)):
        keys[i] = -1
        least = I64(0)
        for p in range(terms.start[i], terms.start[i + 1]):
            occurrences = I64(0)
            for j in range(terms.ranges[p], terms.ranges[p + 1]):
                for value in range(terms.lo[j], terms.hi[j] + 1):
                    occurrences += frequency[value_of(pairs, terms.dimension[p], value)]
            if keys[i] < 0 or occurrences < least:
                keys[i], least = p, occurrences


@lean_kernel
def fill_lists(terms: Terms, pairs: PairArrays, place: I64s, rows: I32s, lists: I32s) -> None:
    for i in range(len(rows)):
        for j in range(terms.ranges[i], terms.ranges[i + 1]):
            for value in range(terms.lo[j], terms.hi[j] + 1):
                number = value_of(pairs, terms.dimension[i], value)
                lists[place[number]] = rows[i]
                place[number] += 1


# -- the trie


def stays(terms: Terms, level: int, node: I64s, profile: I64s, paths: I64s, nodes: int) -> Bools:
    """Which profiles need not, or cannot, go on from the nodes that they have reached."""
    alone = np.bincount(node, minlength=nodes)[node] == 1
    next_predicate = terms.start[profile] + level
    ended = next_predicate >= terms.start[profile + 1]
    values = np.where(ended, 0, np.append(terms.values, 0)[np.where(ended, -1, next_predicate)])
    stays: Bools = ((level > 0) & (alone | (paths * values > _MOST_PATHS))) | ended
    return stays


@lean_kernel
def grow(
    terms: Terms, level: int, pairs: PairArrays, edges: PairArrays, node: I64s, profile: I64s, nodes: int, child: I64s
) -> int:
    """Move profiles down by one predicate, to a child for each of its values; returns the new number of nodes."""
    at = 0
    for i in range(len(node)):
        p = terms.start[profile[i]] + level
        for j in range(terms.ranges[p], terms.ranges[p + 1]):
            for value in range(terms.lo[j], terms.hi[j] + 1):
                number = value_of(pairs, terms.dimension[p], value)
                place = pair_place(edges, node[i], number)
                if edges.value[place] == FREE:
                    enter(edges, place, node[i], number, nodes)
                    nodes += 1
                child[at] = edges.value[place]
                at += 1
    return nodes
