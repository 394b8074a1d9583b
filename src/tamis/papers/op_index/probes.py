"""What an event asks of operator lists: for every value, the segment to search and the bits that its signature must have."""

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
    """What is asked of the lists, for every value of an event.

    `leads` is true of the first value of an attribute, where `least` and `most` are those of all its values. `segment` is that
    of the attribute. Entries with `=` that are true of the value can only be there if the signature has `equal_mask` in its word
    `equal_word`, and other ones `attribute_mask` in `attribute_word`; a mask of 0 asks nothing. `hits` is room for `ask`.
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
    """Room for events of so many values."""
    least, most, segment, equal_word, attribute_word = np.empty((5, values), np.int64)
    equal_mask, attribute_mask = np.empty((2, values), np.uint64)
    leads = np.empty(values, np.bool_)
    hits = np.empty(OPERATORS * values + 1, np.int32)
    return Probes(leads, least, most, segment, equal_word, equal_mask, attribute_word, attribute_mask, hits)


@inlined
def lower(attributes: Any, operands: Any, first: int, last: int, attribute: int, operand: int) -> int:
    """The first entry of a segment that is not before this one."""
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
    """Lay out what an event asks; whether it is plain."""
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
    """The operands of which a predicate on an attribute may be true: `lo` to `hi` is one value, `least` to `most` all.

    For `!=` this is the whole attribute, from which the equal run is to be left out.
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
    """Write ``4 * value + operator`` for every list of a pivot and every value that its signatures let pass; how many.

    All are asked before the first segment is searched, and without a branch, so that the processor waits for many signatures at
    once; `width` is how many words a list has.
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
    """Of a signature that `ask` found: the place of the value in its event, the operator, and where its segment lies."""
    v, operator = hit // OPERATORS, hit % OPERATORS
    number = l_number[pivot * OPERATORS + operator]
    listed = number * (segments + 1) + segment[v]
    return v, operator, l_begin[number] + directory[UP(listed)], l_begin[number] + directory[UP(listed + 1)]
