"""Probes of an event into operator lists: for every value, the segment to search and the bits its signature must have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.kernel import inlined, merged
from tamis.kernels.numbers import U64, UP
from tamis.papers.op_index.entries import EQ, GE, LE, OPERATORS
from tamis.papers.op_index.lists import NO_LIST, signature_bit


class Probes(NamedTuple):
    """The probes into lists, for every value of an event.

    `leads` is true for the first value of an attribute; there, `least` and `most` bound all its values. `segment` is the segment
    of the attribute. A segment can only have true entries with `=` if its signature has `equal_mask` in word `equal_word`, and
    true entries of other operators if it has `attribute_mask` in `attribute_word`. A mask of 0 is always present. `hits` is room
    for `ask`.
    """

    leads: npt.NDArray[np.bool_]
    least: npt.NDArray[np.int64]
    most: npt.NDArray[np.int64]
    segment: npt.NDArray[np.int64]
    equal_word: npt.NDArray[np.int64]
    equal_mask: npt.NDArray[np.uint64]
    attribute_word: npt.NDArray[np.int64]
    attribute_mask: npt.NDArray[np.uint64]
    hits: npt.NDArray[np.int32]


def probes_for(values: int) -> Probes:
    """Probes for events of at most `values` values."""
    least, most, segment, equal_word, attribute_word = np.empty((5, values), np.int64)
    equal_mask, attribute_mask = np.empty((2, values), np.uint64)
    leads = np.empty(values, np.bool_)
    hits = np.empty(OPERATORS * values + 1, np.int32)
    return Probes(leads, least, most, segment, equal_word, equal_mask, attribute_word, attribute_mask, hits)


@inlined
def lower(attributes: Any, operands: Any, first: int, last: int, attribute: int, operand: int) -> int:
    """The first entry of a segment that is not before the given attribute and operand."""
    while first < last:
        middle = (first + last) >> 1
        if attributes[UP(middle)] < attribute or (
            attributes[UP(middle)] == attribute and operands[UP(middle)] < operand
        ):
            first = middle + 1
        else:
            last = middle
    return first


@inlined
def prepare(
    begin: int,
    end: int,
    dimension: Any,
    lo: Any,
    hi: Any,
    segments: int,
    bits: int,
    words: int,
    leads: Any,
    least: Any,
    most: Any,
    segment: Any,
    equal_word: Any,
    equal_mask: Any,
    attribute_word: Any,
    attribute_mask: Any,
) -> bool:
    """Lay out the probes of an event; returns whether it is plain."""
    plain = True
    leader = 0
    for v in range(begin, end):
        i = v - begin
        leads[i] = i == 0 or dimension[v] != dimension[v - 1]
        if leads[i]:
            leader = i
            least[i], most[i] = lo[v], hi[v]
        else:
            least[leader], most[leader] = min(least[leader], lo[v]), max(most[leader], hi[v])
        plain &= leads[i] and lo[v] == hi[v]
        segment[i] = dimension[v] % segments
        equal_word[i], equal_mask[i] = 0, U64(0)
        attribute_word[i], attribute_mask[i] = 0, U64(0)
        if bits:
            bit = signature_bit(LE, dimension[v], 0, bits)
            attribute_word[i], attribute_mask[i] = segment[i] * words + (bit >> 6), U64(1) << U64(bit & 63)
            if lo[v] == hi[v]:
                bit = signature_bit(EQ, dimension[v], lo[v], bits)
                equal_word[i], equal_mask[i] = segment[i] * words + (bit >> 6), U64(1) << U64(bit & 63)
    return plain


@inlined
def operands_between(operator: int, lo: int, hi: int, least: int, most: int) -> tuple[int, int]:
    """The operands for which a predicate on an attribute may be true; `lo` to `hi` is one value, `least` to `most` all.

    For `!=` this is the whole attribute; the caller leaves out the run of equal operands.
    """
    low = lo if operator == EQ else (least if operator == LE else KEY_MIN)
    high = hi if operator == EQ else (most if operator == GE else KEY_MAX)
    return low, high


@merged
def ask(
    pivot: int,
    values: int,
    l_number: Any,
    signature: Any,
    width: int,
    leads: Any,
    equal_word: Any,
    equal_mask: Any,
    attribute_word: Any,
    attribute_mask: Any,
    hits: Any,
) -> int:
    """Write ``4 * value + operator`` for every list of a pivot and every value that its signatures let pass; returns how many.

    All signatures are read before the first segment is searched, and without a branch, so the processor overlaps the reads.
    `width` is the number of words of a list.
    """
    count = 0
    for operator in range(OPERATORS):
        place = pivot * OPERATORS + operator
        if place < len(l_number) and l_number[place] != NO_LIST:
            signed = l_number[place] * width
            for v in range(values):
                hits[UP(count)] = v * OPERATORS + operator
                if operator == EQ:
                    word, mask = signature[UP(signed + equal_word[v])], equal_mask[v]
                    count += (mask == 0) | (word & mask != 0)
                else:
                    word, mask = signature[UP(signed + attribute_word[v])], attribute_mask[v]
                    count += ((mask == 0) | (word & mask != 0)) & leads[v]
    return count


@inlined
def segment_of(
    hit: int, pivot: int, l_number: Any, l_begin: Any, directory: Any, segments: int, segment: Any
) -> tuple[int, int, int, int]:
    """Decode a hit of `ask`: the place of the value in its event, the operator, and the bounds of the segment."""
    v, operator = hit // OPERATORS, hit % OPERATORS
    number = l_number[pivot * OPERATORS + operator]
    listed = number * (segments + 1) + segment[v]
    return v, operator, l_begin[number] + directory[UP(listed)], l_begin[number] + directory[UP(listed + 1)]
