"""Probes of an event into operator lists: for every value, the segment to search and the bits its signature must have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.bits import bit_of, word_of
from tamis.kernels.kernel import inlined, merged
from tamis.kernels.numbers import I64, U64, UP, Bools, I32s, I64s, U64s
from tamis.kernels.sorting import middle_of
from tamis.papers.op_index.entries import EQ, GE, LE, OPERATORS
from tamis.papers.op_index.lists import NO_LIST, ListArrays, Shape, signature_bit


class Probes(NamedTuple):
    """The probes into lists, for every value of an event.

    `leads` is true for the first value of an attribute; there, `least` and `most` bound all its values. `segment` is the segment
    of the attribute. A segment can only have true entries with `=` if its signature has `equal_mask` in word `equal_word`, and
    true entries of other operators if it has `attribute_mask` in `attribute_word`. A mask of 0 is always present. `hits` is room
    for `ask`.
    """

    leads: Bools
    least: I64s
    most: I64s
    segment: I64s
    equal_word: I64s
    equal_mask: U64s
    attribute_word: I64s
    attribute_mask: U64s
    hits: I32s


def probes_for(values: int) -> Probes:
    """Probes for events of at most `values` values."""
    least, most, segment, equal_word, attribute_word = np.empty((5, values), np.int64)
    equal_mask, attribute_mask = np.empty((2, values), np.uint64)
    leads = np.empty(values, np.bool_)
    hits = np.empty(OPERATORS * values + 1, np.int32)
    return Probes(leads, least, most, segment, equal_word, equal_mask, attribute_word, attribute_mask, hits)


class ListSegment(NamedTuple):
    """A segment of a list, as the paper says, to search for a value.

    `value` is the place of the value in its event, `operator` the operator of the list.
    """

    value: int
    operator: int
    begin: int
    end: int


@inlined
def lower(attributes: I32s, operands: I64s, first: int, last: int, attribute: int, operand: int) -> int:
    """The first entry of a segment that is not before the given attribute and operand."""
    while first < last:
        middle = middle_of(first, last)
        if attributes[UP(middle)] < attribute or (
            attributes[UP(middle)] == attribute and operands[UP(middle)] < operand
        ):
            first = middle + 1
        else:
            last = middle
    return first


@merged
def prepare(event: int, batch: EventBatch, shape: Shape, probes: Probes) -> bool:
    """Lay out the probes of an event; returns whether it is single-valued."""
    dimension, lo, hi = batch.dimension, batch.lo, batch.hi
    leads, least, most, segment = probes.leads, probes.least, probes.most, probes.segment
    begin, single_valued, leader = batch.start[event], True, 0
    for v in range(begin, batch.start[event + 1]):
        i = v - begin
        leads[i] = i == 0 or dimension[v] != dimension[v - 1]
        if leads[i]:
            leader = i
            least[i], most[i] = lo[v], hi[v]
        else:
            least[leader], most[leader] = min(least[leader], lo[v]), max(most[leader], hi[v])
        single_valued &= leads[i] and lo[v] == hi[v]
        segment[i] = dimension[v] % shape.segments
        probes.equal_word[i], probes.equal_mask[i] = 0, U64(0)
        probes.attribute_word[i], probes.attribute_mask[i] = 0, U64(0)
        if shape.bits:
            first = segment[i] * shape.words
            bit = signature_bit(LE, dimension[v], 0, shape.bits)
            probes.attribute_word[i], probes.attribute_mask[i] = first + I64(word_of(bit)), bit_of(bit)
            if lo[v] == hi[v]:
                bit = signature_bit(EQ, dimension[v], lo[v], shape.bits)
                probes.equal_word[i], probes.equal_mask[i] = first + I64(word_of(bit)), bit_of(bit)
    return single_valued


@inlined
def operands_between(operator: int, lo: int, hi: int, least: int, most: int) -> tuple[int, int]:
    """The operands for which a predicate on an attribute may be true; `lo` to `hi` is one value, `least` to `most` all.

    For `!=` this is the whole attribute; the caller leaves out the run of equal operands.
    """
    low = lo if operator == EQ else (least if operator == LE else KEY_MIN)
    high = hi if operator == EQ else (most if operator == GE else KEY_MAX)
    return low, high


@merged
def ask(pivot: int, values: int, lists: ListArrays, shape: Shape, probes: Probes) -> int:
    """Write ``4 * value + operator`` for every list of a pivot and every value that its signatures let pass; returns how many.

    All signatures are read before the first segment is searched, and without a branch, so the processor overlaps the reads.
    """
    count = 0
    for operator in range(OPERATORS):
        place = pivot * OPERATORS + operator
        if place < len(lists.number) and lists.number[place] != NO_LIST:
            signed = lists.number[place] * (shape.segments * shape.words)
            for v in range(values):
                probes.hits[UP(count)] = v * OPERATORS + operator
                if operator == EQ:
                    word, mask = lists.signature[UP(signed + probes.equal_word[v])], probes.equal_mask[v]
                    count += (mask == 0) | (word & mask != 0)
                else:
                    word, mask = lists.signature[UP(signed + probes.attribute_word[v])], probes.attribute_mask[v]
                    count += ((mask == 0) | (word & mask != 0)) & probes.leads[v]
    return count


@merged
def segment_of(hit: int, pivot: int, lists: ListArrays, segments: int, probes: Probes) -> ListSegment:
    """Decode a hit of `ask`."""
    value, operator = hit // OPERATORS, hit % OPERATORS
    number = lists.number[pivot * OPERATORS + operator]
    listed, begin = number * (segments + 1) + probes.segment[value], lists.begin[number]
    return ListSegment(value, operator, begin + lists.directory[UP(listed)], begin + lists.directory[UP(listed + 1)])
