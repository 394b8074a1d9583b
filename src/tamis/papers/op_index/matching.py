"""Matching by counting down (Algorithm 2), and by clearing bits (section 6.1).

Both go through the same lists in the same way. A subscription has a counter, or a bitmap if there are `BitmapArrays`. If these
are None, Numba leaves out the code for bitmaps. The code for counters must compile with bitmaps too, though it never runs then.
`table` is the table of conjunctions. With bitmaps it is the table of clauses, and `BitmapArrays` say which conjunction has which.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import holds, load, unload
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import U64, UP
from tamis.papers.op_index.entries import NE
from tamis.papers.op_index.lists import NO_LIST
from tamis.papers.op_index.probes import ask, lower, operands_between, prepare, segment_of
from tamis.papers.parts.collecting import CANDIDATES, NODES, PREDICATES, is_true

DEAD = 1 << 30
"""The size of a deleted subscription: larger than the number of values in any event."""
GONE = -1
"""The conjunction of a counter or bitmap whose subscription was deleted."""
NOTHING = -1


class CounterArrays(NamedTuple):
    """V as kernels read it; `number` is by pivot. `initial` are counters, or words of bitmaps."""

    number: npt.NDArray[np.int32]
    begin: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    initial: npt.NDArray[Any]
    conjunction: npt.NDArray[np.int32]
    verified: npt.NDArray[np.bool_]


class BitmapArrays(NamedTuple):
    """The arrays that only bitmaps need.

    The subscription of a word in V has `words` words there from `first` on. The pivots of a conjunction are in `pivots`, from
    `place` on; conjunction c is the clauses ``clause[start[c]]`` to ``clause[start[c + 1] - 1]``.
    """

    first: npt.NDArray[np.int32]
    words: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    pivots: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    clause: npt.NDArray[np.int32]


class Scratch(NamedTuple):
    """Scratch of matching: for a pivot, V and the places that are zero; for an event, its values' places and the work."""

    left: npt.NDArray[Any]
    zeros: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]
    held: npt.NDArray[np.int64]
    tally: npt.NDArray[np.int64]


def scratch_for(longest: int, dtype: npt.DTypeLike, dimensions: int) -> Scratch:
    """Scratch for at most `longest` counters of a pivot."""
    first, held = np.zeros((2, dimensions), np.int64)
    return Scratch(np.empty(longest, dtype), np.empty(longest, np.int32), first, held, np.zeros(3, np.int64))


@lean_kernel
def match_events(
    lists: Any,
    counters: Any,
    bitmaps: Any,
    table: Any,
    rest: Any,
    batch: Any,
    shape: Any,
    probes: Any,
    scratch: Any,
    event: int,
    counts: Any,
    out: Any,
    work: Any,
) -> int:
    """Algorithm 2, for every event from one on."""
    start, dimension, lo, hi = batch
    segments, bits, words = shape
    leads, least, most, segment, equal_word, equal_mask, attribute_word, attribute_mask, _ = probes
    filled = 0
    for e in range(event, len(start) - 1):
        before = filled
        begin, end = start[e], start[e + 1]
        load(start, dimension, e, scratch.first, scratch.held)
        plain = prepare(
            begin, end, dimension, lo, hi, segments, bits, words, leads, least, most, segment, equal_word, equal_mask,
            attribute_word, attribute_mask,
        )  # fmt: skip
        scratch.tally[:] = 0
        scratch.tally[CANDIDATES] = len(rest)
        for c in rest:
            if _is_true(c, table, bitmaps, batch, scratch):
                filled = _write(out, filled, c)
        for a in range(begin, end):
            pivot = dimension[a]
            if leads[a - begin] and pivot < len(counters.number) and counters.number[pivot] != NO_LIST:
                zero = _count_down(pivot, begin, end, lists, counters, bitmaps, batch, shape, probes, scratch)
                base = counters.begin[counters.number[pivot]]
                for i in range(zero):
                    c = _ended(scratch.zeros[i], base, pivot, counters, bitmaps, scratch)
                    if c != NOTHING and (
                        (plain and not counters.verified[base + scratch.zeros[i]])
                        or _is_true(c, table, bitmaps, batch, scratch)
                    ):
                        filled = _write(out, filled, c)
        unload(start, dimension, e, scratch.held)
        if filled > len(out):
            return e
        counts[e] = filled - before
        for i in range(len(work)):
            work[i] += scratch.tally[i]
    return len(start) - 1


@inlined
def _write(out: Any, filled: int, c: int) -> int:
    """Write a conjunction if there is room; count it in any case."""
    if filled < len(out):
        out[filled] = c
    return filled + 1


@merged
def _count_down(
    pivot: int,
    begin: int,
    end: int,
    lists: Any,
    counters: Any,
    bitmaps: Any,
    batch: Any,
    shape: Any,
    probes: Any,
    scratch: Any,
) -> int:
    """Go through the lists of a pivot; returns how many counters or words are zero."""
    l_number, l_begin, attributes, operands, pointers, directory, signature = lists
    leads, least, most, segment, equal_word, equal_mask, attribute_word, attribute_mask, hits = probes
    _, dimension, lo, hi = batch
    left, zeros, _, _, tally = scratch
    base, size = counters.begin[counters.number[pivot]], counters.size[counters.number[pivot]]
    for i in range(size):
        left[UP(i)] = counters.initial[UP(base + i)]
    zero, tested, nodes = 0, 0, 0
    asked = ask(
        pivot, end - begin, l_number, signature, shape.segments * shape.words, leads, equal_word, equal_mask,
        attribute_word, attribute_mask, hits,
    )  # fmt: skip
    for h in range(asked):
        v, operator, from_, to = segment_of(hits[h], pivot, l_number, l_begin, directory, shape.segments, segment)
        if from_ < to:
            nodes += 1
            low, high = operands_between(operator, lo[begin + v], hi[begin + v], least[v], most[v])
            zero, looked = _scan(
                operator, dimension[begin + v], lo[begin + v], hi[begin + v], low, high, from_, to,
                attributes, operands, pointers, left, zeros, zero, bitmaps,
            )  # fmt: skip
            tested += looked
    tally[PREDICATES] += tested
    tally[NODES] += nodes
    tally[CANDIDATES] += _lowered(base, size, pivot, counters, bitmaps, scratch)
    return zero


@merged
def _scan(
    operator: int,
    d: int,
    lo: int,
    hi: int,
    low: int,
    high: int,
    first: int,
    last: int,
    attributes: Any,
    operands: Any,
    pointers: Any,
    left: Any,
    zeros: Any,
    zero: int,
    bitmaps: Any,
) -> tuple[int, int]:
    """Count down for the entries of a segment that are true of a value; returns how many are zero, and how many were visited."""
    first = lower(attributes, operands, first, last, d, low)
    i = first
    while i < last and attributes[UP(i)] == d and operands[UP(i)] <= high:
        if operator != NE or not lo <= operands[UP(i)] <= hi:
            zero = _lower_one(pointers[UP(i)], left, zeros, zero, bitmaps)
        i += 1
    return zero, i - first


@inlined
def _lower_one(pointer: int, left: Any, zeros: Any, zero: int, bitmaps: Any) -> int:
    """Lower a counter, or clear the bit of a clause in its word; returns how many have become zero."""
    if bitmaps is None:
        left[UP(pointer)] -= 1
        if left[UP(pointer)] == 0:
            zeros[UP(zero)] = pointer
            zero += 1
        return zero
    word, mask = pointer >> 6, U64(1) << U64(pointer & 63)
    if left[UP(word)] & mask:
        left[UP(word)] &= ~mask
        if left[UP(word)] == 0:
            zeros[UP(zero)] = word
            zero += 1
    return zero


@inlined
def _lowered(base: int, size: int, pivot: int, counters: Any, bitmaps: Any, scratch: Any) -> int:
    """How many subscriptions of a pivot were touched, without those that another pivot of the event counts."""
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
        touched += some and c != GONE and _is_first(c, pivot, bitmaps, scratch.held)
        i += bitmaps.words[base + i]
    return touched


@inlined
def _ended(place: int, base: int, pivot: int, counters: Any, bitmaps: Any, scratch: Any) -> int:
    """The conjunction of a zero counter or word; NOTHING if it is gone, not complete, or found under another pivot."""
    c: int = counters.conjunction[base + place]
    if bitmaps is None:
        return c
    done = c != GONE and bitmaps.first[base + place] == place  # The first of several words stands for all.
    for word in range(place, place + bitmaps.words[base + place]):
        done = done and scratch.left[word] == 0
    return c if done and _is_first(c, pivot, bitmaps, scratch.held) else NOTHING


@inlined
def _is_first(c: int, pivot: int, bitmaps: Any, held: Any) -> bool:
    """Whether this is the conjunction's first pivot in the event: the conjunction is found under the others too."""
    at = bitmaps.place[c]
    while held[bitmaps.pivots[at]] == 0:
        at += 1
    first: bool = bitmaps.pivots[at] == pivot
    return first


@inlined
def _is_true(c: int, table: Any, bitmaps: Any, batch: Any, scratch: Any) -> bool:
    """Whether a conjunction is true of the event that was laid out by `load`."""
    if bitmaps is None:
        true, tested = is_true(c, table, batch.lo, batch.hi, scratch.first, scratch.held)
        scratch.tally[PREDICATES] += tested
        return true
    for k in range(bitmaps.start[c], bitmaps.start[c + 1]):  # noqa: SIM110 - a kernel
        if not _has_true(bitmaps.clause[k], table, batch, scratch):
            return False
    return True


@inlined
def _has_true(clause: int, clauses: Any, batch: Any, scratch: Any) -> bool:
    """Whether some predicate of a disjunction is true."""
    start, (dimension, mode, begin, lo, hi) = clauses
    for p in range(start[clause], start[clause + 1]):
        scratch.tally[PREDICATES] += 1
        d = dimension[p]
        if holds(mode[p], lo, hi, begin[p], begin[p + 1], batch.lo, batch.hi, scratch.first[d], scratch.held[d]):
            return True
    return False
