"""Records: the predicates of a conjunction that are left to check after lists and filter words. `record_words` draws them."""

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
from tamis.engine.layout.record_words import (
    DONE,
    DOUBT,
    LONG,
    MASK_SIZE,
    MOST_IN_SHAPE,
    SET_WORDS,
    UNIT,
    far_set_word,
    predicates_word,
    range_word,
    set_of,
    shape_with,
    space_in_set,
    write_long,
)
from tamis.engine.layout.scale import Scales, bucket_of, code_in
from tamis.kernels.fields import packed_fields
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I64, U32, U64, UP, I32s, I64s
from tamis.kernels.packed import Packed

_MOST_SIZE = (1 << 16) - 1
"""The most words of a record: its size has 16 bits while the segment is built."""
_NONE = int(Mode.NONE)

_MOST_MEMBERS = 8
"""The most members of a set that become tests. A larger set becomes a far set, which takes fewer steps per member."""
_NO_WORDS = -1
_FEW = 24
"""The most predicates of a record that are sorted by counting. This takes 15 % off the time to write records of ten."""
_GROUP_AT = 56
_DIMENSION_BITS, _ORDER_BITS = 16, 24


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
    """The predicates that the record holds, the least likely first: group << _GROUP_AT | predicate."""
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


def order_of_entries(groups: I64s, conjunctions: I32s, table: CodedTable, plan: Plan) -> I64s:
    """The order of entries by group, their list or bucket. Within a group, records that are alike, which are checked in the same
    number of steps, are neighbours."""
    order = np.empty(len(plan.access), np.uint32)
    _order(packed_fields(table), plan, np.empty(GROUPS, np.int64), order)
    return np.argsort((groups.astype(np.uint64) << U64(_ORDER_BITS)) | order[conjunctions])


@lean_kernel
def _order(packed: Packed, plan: Plan, counts: I64s, order: Words) -> None:
    """Conjunction -> shape of its record << _DIMENSION_BITS | dimension of its filter predicate."""
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
        order[c] = (shape << _DIMENSION_BITS) | (dimension & ((1 << _DIMENSION_BITS) - 1))


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
            if _group_in(order[i]) == group:
                p = _predicate_in(order[i])
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
        out[at] |= predicates_word(named)
    if to - at > _MOST_SIZE:
        # Comparing keys takes as long.
        out[at] = U32(DOUBT)
        return 0, 1
    return shape, to - at


@inlined
def _in_group(p: int, group: int) -> int:
    """A predicate with its group."""
    return p | (group << _GROUP_AT)


@inlined
def _group_in(word: int) -> int:
    return word >> _GROUP_AT


@inlined
def _predicate_in(word: int) -> int:
    return word & ((1 << _GROUP_AT) - 1)


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
    if wide and max(a, b) <= MOST_IN_SHAPE - UNIT:
        # The row takes one word.
        before = a % 2 if b > 0 else (UNIT - 1 - a) % UNIT if a > 0 else 0
        between = (UNIT - 1 - a - before - b) % UNIT if b > 0 else 0
    shape = shape_with(a + before, b + between)
    if max(a, b) > MOST_IN_SHAPE or shape >= DONE:
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
        order[left] = _in_group(p, group)
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
        out[to] = far_set_word(aspect + SAME, end - begin, predicates.mode[p] == _NONE)
        for i in range(begin, end):
            out[to + 1 + i - begin] = aspect_word(aspect + SAME, _number(predicates.lo[i], d, scales, coded, numbers))
        return to + 1 + end - begin
    if group == MASKS:
        fill_mask(p, d, predicates, scales, mask)
        out[to] = U32(d)
        for m in range(MASK_WORDS):
            write_long(mask[m], out, to + 1 + 2 * m)
        return to + MASK_SIZE
    write_long(set_of(_spaces_of_set(p, d, predicates, scales), d, coded.kind[p] == NOT_SET), out, to)
    return to + SET_WORDS


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
def _spaces_of_set(p: int, d: int, predicates: Predicates, scales: Scales) -> np.uint64:
    """The spaces of a set in six bytes; the last space is repeated."""
    spaces, member, count = U64(0), 0, 0
    for i in range(predicates.start[p], predicates.start[p + 1]):
        f, g = spaces_of(predicates.lo[i], predicates.hi[i], d, scales)
        for s in range(f, g + 1):
            member = s
            spaces |= space_in_set(member, count)
            count += 1
    for i in range(count, SET_SIZE):
        spaces |= space_in_set(member, i)
    return spaces
