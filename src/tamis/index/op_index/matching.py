"""Matching by counting down (Algorithm 2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events import count_holding, load, unload
from tamis.encoding.kernel import lean_kernel, merged
from tamis.encoding.numbers import UP
from tamis.index.collecting import CANDIDATES, NODES, PREDICATES
from tamis.index.op_index.entries import NE
from tamis.index.op_index.lists import NO_LIST
from tamis.index.op_index.probes import ask, lower, operands_between, prepare, segment_of

DEAD = 1 << 30
"""The size of a subscription that was deleted: no event has so many values."""


class CounterArrays(NamedTuple):
    """V as kernels read it; `number` is by pivot."""

    number: npt.NDArray[np.int32]
    begin: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    initial: npt.NDArray[np.int32]
    conjunction: npt.NDArray[np.int32]
    verified: npt.NDArray[np.bool_]


@merged
def _scan(
    operator: int,
    v: int,
    d: int,
    lo: int,
    hi: int,
    least: Any,
    most: Any,
    first: int,
    last: int,
    attributes: Any,
    operands: Any,
    pointers: Any,
    left: Any,
    zeros: Any,
    zero: int,
) -> tuple[int, int]:
    """Lower the counters of the entries of a segment that are true of a value; how many are zero now, and were looked at."""
    low, high = operands_between(operator, lo, hi, least[v], most[v])
    first = lower(attributes, operands, first, last, d, low)
    i = first
    while i < last and attributes[UP(i)] == d and operands[UP(i)] <= high:
        if operator != NE or not lo <= operands[UP(i)] <= hi:
            counter = pointers[UP(i)]
            left[UP(counter)] -= 1
            if left[UP(counter)] == 0:
                zeros[UP(zero)] = counter
                zero += 1
        i += 1
    return zero, i - first


@lean_kernel
def match_events(
    lists: Any,
    counters: Any,
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
    l_number, l_begin, attributes, operands, pointers, directory, signature = lists
    v_number, v_begin, v_size, initial, conjunction, verified = counters
    row_start, predicates = table
    p_dimension, p_mode, p_start, p_lo, p_hi = predicates
    start, dimension, lo, hi = batch
    segments, bits, words = shape
    leads, least, most, segment, equal_word, equal_mask, attribute_word, attribute_mask, hits = probes
    left, zeros, first, count = scratch
    filled = 0
    for e in range(event, len(start) - 1):
        before = filled
        candidates, tested, nodes = len(rest), 0, 0
        begin, end = start[e], start[e + 1]
        load(start, dimension, e, first, count)
        plain = prepare(
            begin, end, dimension, lo, hi, segments, bits, words, leads, least, most, segment, equal_word, equal_mask,
            attribute_word, attribute_mask,
        )  # fmt: skip
        for c in rest:
            size = row_start[c + 1] - row_start[c]
            held = count_holding(
                row_start[c], row_start[c + 1], p_dimension, p_mode, p_start, p_lo, p_hi, lo, hi, first, count
            )
            tested += min(held + 1, size)
            if held == size:
                if filled < len(out):
                    out[filled] = c
                filled += 1
        for a in range(begin, end):
            pivot = dimension[a]
            if not leads[a - begin] or pivot >= len(v_number) or v_number[pivot] == NO_LIST:
                continue
            base, size = v_begin[v_number[pivot]], v_size[v_number[pivot]]
            for i in range(size):
                left[i] = initial[base + i]
            zero = 0
            asked = ask(
                pivot, end - begin, l_number, signature, segments * words, leads, equal_word, equal_mask,
                attribute_word, attribute_mask, hits,
            )  # fmt: skip
            for h in range(asked):
                v, operator, from_, to = segment_of(hits[h], pivot, l_number, l_begin, directory, segments, segment)
                if from_ < to:
                    nodes += 1
                    zero, looked = _scan(
                        operator, v, dimension[begin + v], lo[begin + v], hi[begin + v], least, most, from_, to,
                        attributes, operands, pointers, left, zeros, zero,
                    )  # fmt: skip
                    tested += looked
            for i in range(size):
                candidates += left[i] != initial[base + i] and initial[base + i] < DEAD
            for i in range(zero):
                c = conjunction[base + zeros[i]]
                if not plain or verified[base + zeros[i]]:
                    size_of = row_start[c + 1] - row_start[c]
                    held = count_holding(
                        row_start[c], row_start[c + 1], p_dimension, p_mode, p_start, p_lo, p_hi, lo, hi, first, count
                    )
                    tested += min(held + 1, size_of)
                    if held < size_of:
                        continue
                if filled < len(out):
                    out[filled] = c
                filled += 1
        unload(start, dimension, e, count)
        if filled > len(out):
            return e
        counts[e] = filled - before
        work[CANDIDATES] += candidates
        work[PREDICATES] += tested
        work[NODES] += nodes
    return len(start) - 1
