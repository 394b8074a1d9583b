"""Records: the predicates of a conjunction that are left to check after lists and filter words.

A record has 32-bit words. Word 0 is the row. It has DOUBT set if some predicates are not in the record and keys must be compared.
The *shape* of a record, eight bits beside its place, says which groups of words follow. The least likely predicate of a group
comes first.

    r | s << 4     r ranges, s sets
    n | b << 4     n tests for keys, b tests for bounds: in segments that have wide dimensions
    DONE           nothing is left to check: there is no record, and the place is the row
    LONG           a header says how many there are of each group: see `record_header`

    range      dimension << 16 | first << 8 | width          the event's space minus first, as a byte, is at most width
    set        two words: six spaces, 15 bits of dimension, negated?
    mask       dimension, then eight words of bits by space
    test       see `aspects`: one for each bound of a range, or for each of at most eight keys
    far test   two words: for a dimension that does not fit in a test
    far set    aspect | members << 18 | negated? << 31, then a test for each member: for all other sets of keys
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.aspects import (
    ASPECTS,
    MEMBER,
    NEAR,
    SAME,
    Words,
    aspect_word,
    code_of_space,
    never_named,
    tests_of_codes,
    tests_of_spaces,
)
from tamis.engine.layout.key_numbers import KeyNumbers, number_of_key
from tamis.engine.layout.plan import RANKED, SHORT_SETS, Choice, Plan, deciding, is_settled
from tamis.engine.layout.predicate_codes import (
    CODE,
    EDGE,
    KEYS,
    MASK,
    MASK_WORDS,
    NOT_SET,
    POINT,
    RANGE,
    SET,
    SET_SIZE,
    Coded,
    CodedTable,
    Mask,
    fill_mask,
    read_table,
    spaces_of,
)
from tamis.engine.layout.record_header import (
    BOUNDS,
    FAR_SETS,
    FAR_TESTS,
    GROUPS,
    HEADER_MOST,
    LONG_WORDS,
    MASKS,
    NAMES,
    RANGES,
    SETS,
    header_of,
    write_header,
)
from tamis.engine.layout.scale import CODE_BITS, MISSING, Bytes, Scales, bucket_of, code_in
from tamis.kernels.fields import packed_fields
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I64, U8, U32, U64, UP, I64s
from tamis.kernels.packed import Packed

DOUBT = 1 << 31
"""Set in a row whose keys must be compared."""
PREDICATES_AT = 24
"""In a short record, word 0 has from this bit on the number of predicates that the tests for keys stand for."""
ROW = (1 << PREDICATES_AT) - 1
PLACE_BITS = 24
"""Bits of the place in a reference to a record; the shape lies above."""
UNIT = 4
"""Words per step of a place."""
MOST_ROWS, MOST_WORDS = 1 << PLACE_BITS, UNIT << PLACE_BITS
SHAPES = 256
LONG, DONE = 255, 254
_MOST_IN_SHAPE = 15
_MOST_SIZE = (1 << 16) - 1
"""The most words of a record: its size has 16 bits while the segment is built."""
_NONE = int(Mode.NONE)

_MOST_MEMBERS = 8
"""The most members of a set that become tests. A larger set becomes a far set, which takes fewer steps per member."""
_NO_WORDS = -1
_FEW = 24
"""The most predicates of a record that are sorted by counting. This takes 15 % off the time to write records of ten."""
_GROUP_AT = 56
_MEMBERS_AT = 18


@inlined
def range_word(dimension: int, first: int, last: int) -> np.uint32:
    return U32((dimension << 16) | (first << 8) | (last - first))


@inlined
def range_holds(word: np.uint32, space: Bytes) -> bool:
    """Whether an event satisfies a range word; `space` has its space in each dimension."""
    return U8(space[UP(word >> U32(16))] - U8(word >> U32(8))) <= U8(word)


@inlined
def set_holds(low: np.uint32, high: np.uint32, space: Bytes) -> bool:
    """Whether an event's space is among the six bytes of a set; if the set is negated, whether it is there and not among them."""
    word = U64(low) | (U64(high) << U64(32))
    s = space[UP((word >> U64(48)) & U64(0x7FFF))]
    # A byte of the difference is zero if the space is a member: the classic test for a zero byte in a word.
    difference = (word ^ (U64(s) * U64(0x010101010101))) | U64(0xFFFF000000000000)
    zero = (difference - U64(0x0101010101010101)) & ~difference & U64(0x808080808080)
    negated = (word >> U64(63)) != U64(0)
    return ((zero != U64(0)) != negated) and s != U8(MISSING)


@inlined
def mask_holds(record: Words, at: int, space: Bytes) -> bool:
    """Whether an event's space is among the bits of a mask."""
    s = I64(space[UP(record[UP(at)])])
    word = record[UP(at + 1 + (s >> 5))]
    return s != MISSING and (word >> U32(s & 31)) & U32(1) != U32(0)


@inlined
def far_set_holds(record: Words, at: int, seen: Words) -> bool:
    """Whether one of the tests of a far set holds; if the set is negated, whether there is a key and none holds."""
    header = record[UP(at)]
    shown = seen[UP(header & U32((1 << _MEMBERS_AT) - 1))]
    found = U32(0)
    for i in range(far_set_size(header)):
        found |= U32(record[UP(at + 1 + i)] == shown)
    return (found != header >> U32(31)) & (shown & U32((1 << CODE_BITS) - 1) != U32(0))


@inlined
def far_set_size(header: np.uint32) -> int:
    """The number of tests of a far set."""
    return I64((header >> U32(_MEMBERS_AT)) & U32(0xFF))


@inlined
def order_of(begin: int, end: int, probability: npt.NDArray[np.float32], order: I64s) -> None:
    """Sort predicate numbers by probability, the least likely first. Equally likely ones keep their order."""
    if end - begin <= _FEW:
        # Counting how many come before each one takes no branch that a processor could only guess.
        for p in range(begin, end):
            mine, place = probability[UP(p)], 0
            for other in range(begin, p):
                place += I64(probability[UP(other)] <= mine)
            for other in range(p + 1, end):
                place += I64(probability[UP(other)] < mine)
            order[UP(place)] = p
        return
    for p in range(begin, end):
        place = p - begin
        while place > 0 and probability[order[place - 1]] > probability[p]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = p


class RecordScratch(NamedTuple):
    """What is needed to write the record of a conjunction."""

    order: I64s
    """The predicates that the record holds, the least likely first, with their groups."""
    mask: Mask
    counts: I64s
    """Group -> its number of words; of sets, masks and far sets: how many there are."""


def record_scratch(table: CodedTable) -> RecordScratch:
    """Scratch for the conjunctions of a table."""
    longest = int(np.diff(table.start).max(initial=1))
    return RecordScratch(np.empty(longest, np.int64), np.empty(MASK_WORDS, np.uint64), np.empty(GROUPS, np.int64))


def most_words(table: CodedTable) -> int:
    """How many words all records together may take."""
    kind, start = table.coded.kind, table.start
    masks = np.count_nonzero((kind == SET) | (kind == NOT_SET) | (kind == MASK))
    count = len(start) - 1
    return (LONG_WORDS + 2 * UNIT) * count + 4 * int(start[-1]) + len(table.predicates.lo) + 2 * MASK_WORDS * int(masks)


def order_in_lists(table: CodedTable, plan: Plan) -> Words:
    """Conjunction -> 24 bits to sort the entries of a list by. Records that are alike are checked in the same number of steps."""
    order = np.empty(len(plan.access), np.uint32)
    _order(packed_fields(table), plan, np.empty(GROUPS, np.int64), order)
    return order


@lean_kernel
def _order(packed: Packed, plan: Plan, counts: I64s, order: Words) -> None:
    table: CodedTable = read_table(packed)
    predicates, coded, scales = table.predicates, table.coded, table.scales
    for c in range(len(order)):
        access, filtered = plan.access[c], plan.filter[c]
        choice = Choice(deciding(access, predicates.mode), plan.way[c], filtered, plan.second[c], False)
        counts[:] = 0
        for p in range(table.start[c], table.start[c + 1]):
            if not is_settled(p, coded, scales, choice):
                _count(p, predicates, coded, scales, counts)
        dimension = coded.dimension[filtered] if filtered >= 0 else 0
        shape, _, _ = _shape(counts, len(scales.shift) > 0)
        order[c] = (shape << 16) | (dimension & 0xFFFF)


@merged
def write_record(
    conjunction: int,
    choice: Choice,
    table: CodedTable,
    numbers: KeyNumbers,
    scratch: RecordScratch,
    out: Words,
    at: int,
) -> tuple[int, int]:
    """Write the record of a conjunction at a place, without its row; returns its shape and its number of words.

    The record leaves out predicates that `choice` decides, see `is_settled`.
    """
    coded, order, counts = table.coded, scratch.order, scratch.counts
    begin, end = table.start[conjunction], table.start[conjunction + 1]
    order_of(begin, end, coded.probability, order)
    left, doubt = _select(end - begin, choice, table, scratch)
    out[at] = U32(DOUBT if doubt else 0)
    if left == 0 and not doubt:
        return DONE, 0
    shape, before, between = _shape(counts, len(table.scales.shift) > 0)
    to, named = at + (LONG_WORDS if shape == LONG else 1), 0
    for group in range(GROUPS):
        if counts[group] == 0:
            continue
        first = to + (before if group == NAMES else between if group == BOUNDS else 0)
        end = first
        for i in range(left):
            if order[i] >> _GROUP_AT == group:
                p = order[i] & ((1 << _GROUP_AT) - 1)
                if group == RANGES:
                    # Most are ranges, and a call costs several times as much as this: arrays are passed by value.
                    out[end] = range_word(I64(coded.dimension[p]), I64(coded.first[p]), I64(coded.last[p]))
                    end += 1
                else:
                    end = _write_predicate(p, group, table, numbers, scratch.mask, out, end)
                named += group == NAMES
        for w in range(to, first):
            out[w] = never_named(out[first]) if group == NAMES else out[first]
        to = end
    if shape == LONG:
        write_header(header_of(counts, named), out, at)
    else:
        out[at] |= U32(named << PREDICATES_AT)
    if to - at > _MOST_SIZE:
        # Comparing keys takes as long.
        out[at] = U32(DOUBT)
        return 0, 1
    return shape, to - at


@inlined
def _shape(counts: I64s, wide: bool) -> tuple[int, int, int]:
    """The shape of a record with these `RecordScratch.counts`, and how many words of padding come before NAMES and BOUNDS.

    In segments that have wide dimensions, padding fills up units. So there are fewer shapes, and more records of one shape, which
    are checked faster.
    """
    first, second = (NAMES, BOUNDS) if wide else (RANGES, SETS)
    for group in range(GROUPS):
        if counts[group] > 0 and group not in (first, second):
            return LONG, 0, 0
    a, b = counts[first], counts[second]
    before, between = 0, 0
    if wide and max(a, b) <= _MOST_IN_SHAPE - UNIT:
        before = (a & 1) if b > 0 else (UNIT - 1 - a) & (UNIT - 1) if a > 0 else 0
        between = (UNIT - 1 - a - before - b) & (UNIT - 1) if b > 0 else 0
    shape = (a + before) | ((b + between) << 4)
    if max(a, b) > _MOST_IN_SHAPE or shape >= DONE:
        return LONG, 0, 0
    return shape, before, between


@inlined
def _group(p: int, predicates: Predicates, coded: Coded, scales: Scales) -> int:
    """The group of the words of a predicate; _NO_WORDS: keys must be compared."""
    kind, d = coded.kind[p], coded.dimension[p]
    if d >= RANKED:
        return _NO_WORDS
    near = d < NEAR and len(scales.shift) > 0
    if kind == RANGE:
        single = coded.first[p] == coded.last[p]
        return (NAMES if single else BOUNDS) if near else RANGES
    if kind == SET and near:
        return NAMES
    if kind in (SET, NOT_SET):
        return SETS if d < SHORT_SETS else MASKS
    if kind == MASK:
        return MASKS
    if kind in (CODE, EDGE):
        return BOUNDS if near else FAR_TESTS
    if kind == POINT:
        return NAMES if near else FAR_TESTS
    if kind == KEYS:
        few = predicates.start[p + 1] - predicates.start[p] <= _MOST_MEMBERS
        return NAMES if near and few and predicates.mode[p] != _NONE else FAR_SETS
    return _NO_WORDS


@inlined
def _count(p: int, predicates: Predicates, coded: Coded, scales: Scales, counts: I64s) -> int:
    """Count the words of a predicate in its group, see `RecordScratch.counts`; returns the group."""
    group = _group(p, predicates, coded, scales)
    if group in (NAMES, BOUNDS, FAR_TESTS):
        counts[group] += _number_of_tests(p, predicates, coded, scales)
    elif group != _NO_WORDS:
        counts[group] += 1
    return group


@inlined
def _number_of_tests(p: int, predicates: Predicates, coded: Coded, scales: Scales) -> int:
    kind = coded.kind[p]
    begin, end = predicates.start[p], predicates.start[p + 1]
    if kind in (POINT, KEYS):
        return end - begin
    if kind == SET:
        members = 0
        for i in range(begin, end):
            f, g = spaces_of(predicates.lo[i], predicates.hi[i], coded.dimension[p], scales)
            members += g - f + 1
        return members
    _, _, _, other = _tests(p, coded, scales)
    return 2 if other > 0 else 1


@inlined
def _tests(p: int, coded: Coded, scales: Scales) -> tuple[int, int, int, int]:
    """The two tests of a predicate that is an interval, see `tests_of_spaces`."""
    if coded.kind[p] == RANGE:
        return tests_of_spaces(I64(coded.first[p]), I64(coded.last[p]), scales.spaces[coded.dimension[p]] - 1)
    return tests_of_codes(I64(coded.low[p]), I64(coded.high[p]))


@merged
def _select(count: int, choice: Choice, table: CodedTable, scratch: RecordScratch) -> tuple[int, bool]:
    """Keep the predicates that the record holds, of the first `count` in `order`, with their groups. Count their words.

    Returns how many are kept, and whether others must be decided by comparing keys.
    """
    order, counts = scratch.order, scratch.counts
    for group in range(GROUPS):
        counts[group] = 0
    left, doubt, most = 0, False, 0
    for i in range(count):
        p = order[i]
        if is_settled(p, table.coded, table.scales, choice):
            continue
        group = _count(p, table.predicates, table.coded, table.scales, counts)
        if group == _NO_WORDS:
            doubt = True
            continue
        most = max(most, counts[group])
        order[left] = p | (group << _GROUP_AT)
        left += 1
    if most > HEADER_MOST:
        for group in range(GROUPS):
            counts[group] = 0
        return 0, True
    return left, doubt


@inlined
def _write_predicate(
    p: int, group: int, table: CodedTable, numbers: KeyNumbers, mask: Mask, out: Words, to: int
) -> int:
    """Write the words of one predicate that is not a range; returns where they end."""
    predicates, coded, scales = table.predicates, table.coded, table.scales
    d = I64(coded.dimension[p])
    begin, end = predicates.start[p], predicates.start[p + 1]
    aspect = ASPECTS * d
    if group in (NAMES, BOUNDS, FAR_TESTS):
        if coded.kind[p] in (POINT, KEYS):
            for i in range(begin, end):
                member = MEMBER if i + 1 < end else SAME
                to = _write_test(aspect + member, _number(predicates.lo[i], d, scales, coded, numbers), group, out, to)
            return to
        if coded.kind[p] == SET:
            return _write_spaces(p, d, predicates, scales, out, to)
        first, value, second, other = _tests(p, coded, scales)
        to = _write_test(aspect + first, value, group, out, to)
        return _write_test(aspect + second, other, group, out, to) if other > 0 else to
    if group == FAR_SETS:
        negated = 1 if predicates.mode[p] == _NONE else 0
        out[to] = U32((aspect + SAME) | ((end - begin) << _MEMBERS_AT) | (negated << 31))
        for i in range(begin, end):
            out[to + 1 + i - begin] = aspect_word(aspect + SAME, _number(predicates.lo[i], d, scales, coded, numbers))
        return to + 1 + end - begin
    if group == MASKS:
        fill_mask(p, d, predicates, scales, mask)
        out[to] = U32(d)
        for m in range(MASK_WORDS):
            _write_long(mask[m], out, to + 1 + 2 * m)
        return to + 1 + 2 * MASK_WORDS
    word = _set_word(p, d, predicates, scales)
    word |= (U64(d) << U64(48)) | (U64(coded.kind[p] == NOT_SET) << U64(63))
    _write_long(word, out, to)
    return to + 2


@inlined
def _write_test(aspect: int, value: int, group: int, out: Words, to: int) -> int:
    if group == FAR_TESTS:
        out[to] = U32(aspect)
        to += 1
    out[to] = aspect_word(aspect, value)
    return to + 1


@inlined
def _write_spaces(p: int, d: int, predicates: Predicates, scales: Scales, out: Words, to: int) -> int:
    """Write a test for each space of a set; returns where they end."""
    end = predicates.start[p + 1]
    for i in range(predicates.start[p], end):
        f, g = spaces_of(predicates.lo[i], predicates.hi[i], d, scales)
        for s in range(f, g + 1):
            member = MEMBER if i + 1 < end or s < g else SAME
            out[to] = aspect_word(ASPECTS * d + member, code_of_space(s))
            to += 1
    return to


@inlined
def _number(key: int, d: int, scales: Scales, coded: Coded, numbers: KeyNumbers) -> int:
    """The number of a key of a wide dimension, see `aspects`."""
    if coded.numbered[d]:
        return number_of_key(key, numbers.start[d], numbers.start[d + 1], numbers.mark, numbers.key)
    return code_in(bucket_of(key, d, scales), key, d, scales)


@inlined
def _write_long(word: np.uint64, out: Words, to: int) -> None:
    """Write 64 bits as two words, the lower one first."""
    out[to], out[to + 1] = U32(word & U64(0xFFFFFFFF)), U32(word >> U64(32))


@inlined
def _set_word(p: int, d: int, predicates: Predicates, scales: Scales) -> np.uint64:
    """The spaces of a set in six bytes; the last space is repeated."""
    word, member, count = U64(0), U64(0), 0
    for i in range(predicates.start[p], predicates.start[p + 1]):
        f, g = spaces_of(predicates.lo[i], predicates.hi[i], d, scales)
        for s in range(f, g + 1):
            member = U64(s)
            word |= member << U64(8 * count)
            count += 1
    for i in range(count, SET_SIZE):
        word |= member << U64(8 * i)
    return word
