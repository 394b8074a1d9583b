"""Matching by counting down (Algorithm 2), and by clearing bits (section 6.1).

Both go through the same lists in the same way. A subscription has a counter, or a bitmap if there are `BitmapArrays`. If these
are None, Numba leaves out the code for bitmaps. The code for counters must compile with bitmaps too, though it never runs then.
`table` is the table of conjunctions. With bitmaps it is the table of factors, and `BitmapArrays` say which conjunction has which.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.evaluation import EventPlaces, event_places, load_event, predicate_holds, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.bits import bit_of, word_of
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import UP, Bools, I32s, I64s
from tamis.papers.op_index.entries import NE
from tamis.papers.op_index.lists import NO_LIST, ListArrays, Shape
from tamis.papers.op_index.probes import ListSegment, Probes, ask, lower, operands_between, prepare, segment_of
from tamis.papers.parts.collecting import CANDIDATES, NODES, PREDICATES, Output, is_true, note_event

DEAD = 1 << 30
"""The size of a deleted subscription: larger than the number of values in any event."""
GONE = -1
"""The conjunction of a counter or bitmap whose subscription was deleted."""
NOTHING = -1


class CounterArrays(NamedTuple):
    """V as kernels read it; `number` is by pivot. `initial` are counters, or words of bitmaps."""

    number: I32s
    begin: I64s
    size: I64s
    initial: npt.NDArray[Any]
    conjunction: I32s
    verified: Bools


class BitmapArrays(NamedTuple):
    """The arrays that only bitmaps need.

    The subscription of a word in V has `words` words there from `first` on. The pivots of a conjunction are in `pivots`, from
    `place` on; conjunction c is the factors ``factor[start[c]]`` to ``factor[start[c + 1] - 1]``.
    """

    first: I32s
    words: I32s
    place: I32s
    pivots: I32s
    start: I64s
    factor: I32s


class OpIndexArrays(NamedTuple):
    """The index as kernels read it. `rest` are the conjunctions without a pivot."""

    lists: ListArrays
    shape: Shape
    counters: CounterArrays
    bitmaps: BitmapArrays | None
    table: Conjunctions
    rest: I32s


class Scratch(NamedTuple):
    """Scratch of matching: for a pivot, V and the places that are zero; for an event, its values' places and the work."""

    left: npt.NDArray[Any]
    zeros: I32s
    places: EventPlaces
    tally: I64s


def scratch_for(longest: int, dtype: npt.DTypeLike, dimensions: int) -> Scratch:
    """Scratch for at most `longest` counters of a pivot."""
    left, zeros = np.empty(longest, dtype), np.empty(longest, np.int32)
    return Scratch(left, zeros, event_places(dimensions), np.zeros(3, np.int64))


@lean_kernel
def match_events(
    index: OpIndexArrays, batch: EventBatch, probes: Probes, scratch: Scratch, event: int, output: Output
) -> int:
    """Algorithm 2, for every event from one on: a kernel for `collect`."""
    counters, bitmaps, table, tally = index.counters, index.bitmaps, index.table, scratch.tally
    filled = 0
    for e in range(event, len(batch.start) - 1):
        before = filled
        load_event(batch, e, scratch.places)
        single_valued = prepare(e, batch, index.shape, probes)
        tally[:] = 0
        tally[CANDIDATES] = len(index.rest)
        for c in index.rest:
            if _is_true(c, table, bitmaps, batch, scratch):
                filled = _write(output.matches, filled, c)
        for a in range(batch.start[e], batch.start[e + 1]):
            pivot = batch.dimension[a]
            leads = probes.leads[a - batch.start[e]]
            if leads and pivot < len(counters.number) and counters.number[pivot] != NO_LIST:
                zero = _count_down(pivot, e, index, batch, probes, scratch)
                base = counters.begin[counters.number[pivot]]
                for i in range(zero):
                    c = _ended(scratch.zeros[i], base, pivot, counters, bitmaps, scratch)
                    if c != NOTHING and (
                        (single_valued and not counters.verified[base + scratch.zeros[i]])
                        or _is_true(c, table, bitmaps, batch, scratch)
                    ):
                        filled = _write(output.matches, filled, c)
        unload_event(batch, e, scratch.places)
        if filled > len(output.matches):
            return e
        note_event(e, filled - before, tally[CANDIDATES], tally[PREDICATES], tally[NODES], output)
    return len(batch.start) - 1


@inlined
def _write(matches: I32s, filled: int, c: int) -> int:
    """Write a conjunction if there is room; count it in any case."""
    if filled < len(matches):
        matches[filled] = c
    return filled + 1


@merged
def _count_down(
    pivot: int, event: int, index: OpIndexArrays, batch: EventBatch, probes: Probes, scratch: Scratch
) -> int:
    """Go through the lists of a pivot; returns how many counters or words are zero."""
    counters, first = index.counters, batch.start[event]
    base, size = counters.begin[counters.number[pivot]], counters.size[counters.number[pivot]]
    for i in range(size):
        scratch.left[UP(i)] = counters.initial[UP(base + i)]
    zero, tested, nodes = 0, 0, 0
    asked = ask(pivot, batch.start[event + 1] - first, index.lists, index.shape, probes)
    for h in range(asked):
        segment = segment_of(probes.hits[h], pivot, index.lists, index.shape.segments, probes)
        if segment.begin < segment.end:
            nodes += 1
            zero, looked = _scan(segment, first + segment.value, index, batch, probes, scratch, zero)
            tested += looked
    scratch.tally[PREDICATES] += tested
    scratch.tally[NODES] += nodes
    scratch.tally[CANDIDATES] += _lowered(base, size, pivot, counters, index.bitmaps, scratch)
    return zero


@merged
def _scan(
    segment: ListSegment, v: int, index: OpIndexArrays, batch: EventBatch, probes: Probes, scratch: Scratch, zero: int
) -> tuple[int, int]:
    """Count down for the entries of a segment that are true of a value; returns how many are zero, and how many were visited."""
    attributes, operands, pointers = index.lists.attribute, index.lists.operand, index.lists.pointer
    operator, d, lo, hi = segment.operator, batch.dimension[v], batch.lo[v], batch.hi[v]
    low, high = operands_between(operator, lo, hi, probes.least[segment.value], probes.most[segment.value])
    first = lower(attributes, operands, segment.begin, segment.end, d, low)
    i = first
    while i < segment.end and attributes[UP(i)] == d and operands[UP(i)] <= high:
        if operator != NE or not lo <= operands[UP(i)] <= hi:
            zero = _lower_one(pointers[UP(i)], scratch.left, scratch.zeros, zero, index.bitmaps)
        i += 1
    return zero, i - first


@inlined
def _lower_one(pointer: int, left: npt.NDArray[Any], zeros: I32s, zero: int, bitmaps: BitmapArrays | None) -> int:
    """Lower a counter, or clear the bit of a factor in its word; returns how many have become zero."""
    if bitmaps is None:
        left[UP(pointer)] -= 1
        if left[UP(pointer)] == 0:
            zeros[UP(zero)] = pointer
            zero += 1
        return zero
    word, mask = word_of(pointer), bit_of(pointer)
    if left[UP(word)] & mask:
        left[UP(word)] &= ~mask
        if left[UP(word)] == 0:
            zeros[UP(zero)] = word
            zero += 1
    return zero


@inlined
def _lowered(
    base: int, size: int, pivot: int, counters: CounterArrays, bitmaps: BitmapArrays | None, scratch: Scratch
) -> int:
    """How many subscriptions of a pivot were touched. Subscriptions that another pivot of the event counts are left out."""
    initial, left, touched = counters.initial, scratch.left, 0
    if bitmaps is None:
        for i in range(size):
            # No branch, so the compiler can vectorise. Asking whenever a counter is lowered took a third longer on range.
            whole = initial[UP(base + i)]
            touched += (left[UP(i)] != whole) & (whole < DEAD)
        return touched
    i = 0
    while i < size:
        some = False
        for word in range(i, i + bitmaps.words[base + i]):
            some |= left[word] != initial[base + word]
        c = counters.conjunction[base + i]
        touched += some and c != GONE and _is_first(c, pivot, bitmaps, scratch.places)
        i += bitmaps.words[base + i]
    return touched


@inlined
def _ended(
    place: int, base: int, pivot: int, counters: CounterArrays, bitmaps: BitmapArrays | None, scratch: Scratch
) -> int:
    """The conjunction of a zero counter or word; NOTHING if it is gone, not complete, or found under another pivot."""
    c = counters.conjunction[base + place]
    if bitmaps is None:
        return c
    done = c != GONE and bitmaps.first[base + place] == place  # The first of several words stands for all.
    for word in range(place, place + bitmaps.words[base + place]):
        done = done and scratch.left[word] == 0
    return c if done and _is_first(c, pivot, bitmaps, scratch.places) else NOTHING


@inlined
def _is_first(c: int, pivot: int, bitmaps: BitmapArrays, places: EventPlaces) -> bool:
    """Whether this is the conjunction's first pivot in the event: the conjunction is found under the others too."""
    at = bitmaps.place[c]
    while places.values[bitmaps.pivots[at]] == 0:
        at += 1
    return bitmaps.pivots[at] == pivot


@inlined
def _is_true(c: int, table: Conjunctions, bitmaps: BitmapArrays | None, batch: EventBatch, scratch: Scratch) -> bool:
    """Whether a conjunction is true of the loaded event."""
    if bitmaps is None:
        true, tested = is_true(c, table, batch, scratch.places)
        scratch.tally[PREDICATES] += tested
        return true
    for k in range(bitmaps.start[c], bitmaps.start[c + 1]):  # noqa: SIM110 - a kernel
        if not _has_true(bitmaps.factor[k], table, batch, scratch):
            return False
    return True


@inlined
def _has_true(factor: int, factors: Conjunctions, batch: EventBatch, scratch: Scratch) -> bool:
    """Whether some predicate of a disjunction is true."""
    for p in range(factors.start[factor], factors.start[factor + 1]):
        scratch.tally[PREDICATES] += 1
        if predicate_holds(p, factors.predicates, batch, scratch.places):
            return True
    return False
