"""Records: what is left to check of a conjunction once lists and filter word have let it through.

32-bit words, most selective predicate first within each group. Word 0 is the row, with DOUBT set where some
predicates are not in the record and keys must be compared. The *shape* of a record, six bits beside its place, says what follows:

    r | s << 4     r range words, s sets
    DONE           nothing is left to check: there is no record, and the place is the row
    LONG           a header of two words: numbers of ranges, sets, masks and keys; of codes, of those with edges, of
                   points and of sets of codes; then ranges, codes (edges first), points, sets of codes, keys, sets, masks

    range   dimension << 16 | first << 8 | width          the event's space minus first, as a byte, is at most width
    set     two words: six spaces, 15 bits of dimension, negated?
    mask    dimension, then eight words of bits by space
    code    two words: low << 24 | width, dimension << 16 | low >> 8          the event's code minus low is at most width
    point   dimension, then two words for the key
    codes   dimension | negated? << 31, then six codes, the last of them repeated
    keys    dimension | number << 16 | negated? << 31, then two words for each key
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.encoding.kernel import inlined
from tamis.encoding.leaf import Mode
from tamis.encoding.numbers import I64, U8, U32, U64, UP
from tamis.engine.coding import (
    CODE,
    CODES,
    EDGE,
    KEYS,
    MASK,
    MASK_WORDS,
    NOT_SET,
    POINT,
    RANGE,
    RAW,
    SET,
    SET_SIZE,
    Coded,
    fill_mask,
    spaces_of,
)
from tamis.engine.plan import DONE, LONG, RANKED, SHORT_SETS, is_settled, short_shape
from tamis.engine.scale import MISSING, code_of, space_of

DOUBT = 1 << 31
"""Set in a row whose keys must be compared."""
ROW = DOUBT - 1
PLACE_BITS = 26
"""A reference to a record is its shape above its place, which has this many bits."""
MOST_WORDS = 1 << PLACE_BITS
NO_CODE = 0xFFFFFFFF
"""The code of an attribute that an event lacks."""
_HEADER_MOST = 255
_MOST_SIZE = (1 << 16) - 1
"""The size of a record has 16 bits while it is built."""
_NONE = int(Mode.NONE)


@inlined
def range_word(dimension: int, first: int, last: int) -> Any:
    return U32((dimension << 16) | (first << 8) | (last - first))


@inlined
def range_holds(word: Any, space: Any) -> bool:
    """Whether an event's spaces satisfy a range word."""
    return U8(space[UP(word >> U32(16))] - U8(word >> U32(8))) <= U8(word)


@inlined
def set_holds(low: Any, high: Any, space: Any) -> bool:
    """Whether an event's space is among the six bytes of a set, or, negated, is there and is not."""
    word = U64(low) | (U64(high) << U64(32))
    s = space[UP((word >> U64(48)) & U64(0x7FFF))]
    # A byte of the difference is zero where the space is a member: the classic test for a zero byte in a word.
    difference = (word ^ (U64(s) * U64(0x010101010101))) | U64(0xFFFF000000000000)
    zero = (difference - U64(0x0101010101010101)) & ~difference & U64(0x808080808080)
    negated = (word >> U64(63)) != U64(0)
    return ((zero != U64(0)) != negated) and s != U8(MISSING)


@inlined
def mask_holds(record: Any, at: int, space: Any) -> bool:
    """Whether an event's space is among the bits of a mask."""
    s = I64(space[UP(record[UP(at)])])
    word = record[UP(at + 1 + (s >> 5))]
    return s != MISSING and (word >> U32(s & 31)) & U32(1) != U32(0)


@inlined
def marked(dimension: int, code: int) -> Any:
    """A code as events are laid out, with the last bits of its dimension in front.

    A word of a record has the same bits there, so that the two need not be parted.
    """
    return U32((U32(dimension) << U32(24)) + U32(code))


@inlined
def code_above(record: Any, at: int, code: Any) -> Any:
    """How far an event's code is above the lowest that a predicate allows: if that is less than nothing, then very far."""
    word = record[UP(at + 1)]
    return U32(code[UP(word >> U32(16))] - ((word << U32(8)) | (record[UP(at)] >> U32(24))))


@inlined
def codes_hold(record: Any, at: int, code: Any) -> bool:
    """Whether an event's code is among six, or, negated, is there and is not."""
    header = record[UP(at)]
    dimension = header & U32(0xFFFF)
    wanted = code[UP(dimension)]
    found = U32(0)
    for i in range(SET_SIZE):
        found |= U32(record[UP(at + 1 + i)] == wanted)
    return (found != header >> U32(31)) & (wanted != marked(dimension, NO_CODE))


@inlined
def keys_hold(record: Any, at: int, space: Any, key: Any) -> bool:
    """Whether an event's key is among some, or, negated, is there and is not."""
    header = record[UP(at)]
    dimension = UP(header & U32(0xFFFF))
    if space[dimension] == MISSING:
        return False
    wanted = key[dimension]
    found, count = U32(0), I64((header >> U32(16)) & U32(0x7FFF))
    for w in range(at + 1, at + 1 + 2 * count, 2):
        found |= U32(I64(U64(record[UP(w)]) | (U64(record[UP(w + 1)]) << U64(32))) == wanted)
    return found != header >> U32(31)


@inlined
def order_of(begin: int, end: int, probability: Any, order: Any) -> None:
    """Predicate numbers by probability, the least likely first."""
    for p in range(begin, end):
        place = p - begin
        while place > 0 and probability[order[place - 1]] > probability[p]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = p


def most_words_more(coded: Coded) -> int:
    """How many words the predicates of all records may take besides three each and two for each key."""
    sets = (coded.kind == SET) | (coded.kind == NOT_SET)
    fixed = (coded.kind == MASK) | (coded.kind == CODES) | (sets & (coded.dimension >= SHORT_SETS))
    return 2 * MASK_WORDS * int(np.count_nonzero(fixed))


@inlined
def write_record(
    begin: int,
    end: int,
    choice: Any,
    in_run: bool,
    predicates: Any,
    coded: Any,
    scales: Any,
    scratch: Any,
    out: Any,
    at: int,
) -> tuple[int, int]:
    """Write the record of a conjunction at a place, its row left open; returns its shape and how many words it has.

    What `choice` decides is left out, see `is_settled`. `scratch` has room for the predicates of a conjunction, for a mask, and
    for a number for each kind.
    """
    order, _, counts = scratch
    order_of(begin, end, coded.probability, order)
    left, doubt = _select(end - begin, choice, in_run, coded, scales, order, counts)
    out[at] = U32(DOUBT if doubt else 0)
    if left == 0 and not doubt:
        return DONE, 0
    to = at + 1
    others = counts[MASK] + counts[CODE] + counts[EDGE] + counts[POINT] + counts[CODES] + counts[KEYS]
    shape = LONG if others > 0 else short_shape(counts[RANGE], counts[SET])
    if shape == LONG:
        out[to] = U32(counts[RANGE] | (counts[SET] << 8) | (counts[MASK] << 16) | (counts[KEYS] << 24))
        codes = counts[CODE] + counts[EDGE]
        out[to + 1] = U32(codes | (counts[EDGE] << 8) | (counts[POINT] << 16) | (counts[CODES] << 24))
        to += 2
    for group in (RANGE, EDGE, CODE, POINT, CODES, KEYS, SET, MASK):
        for i in range(left):
            p = order[i]
            if _group(coded.kind[p], coded.dimension[p]) == group:
                to = _write_predicate(p, group, predicates, coded, scales, scratch, out, to)
    if to - at > _MOST_SIZE:
        # Comparing keys takes as long.
        out[at] = U32(DOUBT)
        return short_shape(0, 0), 1
    return shape, to - at


@inlined
def _group(kind: int, d: int) -> int:
    """The kind of words that a predicate becomes; RAW: none."""
    if d >= RANKED:
        return RAW
    if kind in (SET, NOT_SET):
        return SET if d < SHORT_SETS else MASK
    return I64(kind)


@inlined
def _select(
    count: int, choice: Any, in_run: bool, coded: Any, scales: Any, order: Any, counts: Any
) -> tuple[int, bool]:
    """Keep, of the first `count` in `order`, the predicates that the record holds, and count them by kind of words.

    Returns how many they are, and whether some that are left out must be evaluated on their keys.
    """
    for group in range(len(counts)):
        counts[group] = 0
    left, doubt, most = 0, False, 0
    for i in range(count):
        p = order[i]
        d = coded.dimension[p]
        if is_settled(p, d, coded.first, coded.last, coded.exact, scales.spaces, scales.shift_at, choice, in_run):
            continue
        group = _group(coded.kind[p], d)
        if group == RAW:
            doubt = True
            continue
        counts[group] += 1
        most = max(most, counts[group])
        order[left] = p
        left += 1
    # Codes with and without edges are counted together in the header.
    if max(most, counts[CODE] + counts[EDGE]) > _HEADER_MOST:
        for group in range(len(counts)):
            counts[group] = 0
        return 0, True
    return left, doubt


@inlined
def _write_predicate(
    p: int, group: int, predicates: Any, coded: Any, scales: Any, scratch: Any, out: Any, to: int
) -> int:
    """Write the words of one predicate; returns where they end."""
    _, p_mode, p_start, p_lo, p_hi = predicates
    d = I64(coded.dimension[p])
    begin, end = p_start[p], p_start[p + 1]
    if group == RANGE:
        out[to] = range_word(d, I64(coded.first[p]), I64(coded.last[p]))
        return to + 1
    if group == POINT:
        out[to] = U32(d)
        _write_long(U64(p_lo[begin]), out, to + 1)
        return to + 3
    negated = 1 if p_mode[p] == _NONE else 0
    if group == CODES:
        out[to] = U32(d | (negated << 31))
        for i in range(SET_SIZE):
            out[to + 1 + i] = marked(d, _code(p_lo[min(begin + i, end - 1)], d, scales))
        return to + 1 + SET_SIZE
    if group == KEYS:
        out[to] = U32(d | ((end - begin) << 16) | (negated << 31))
        for i in range(begin, end):
            _write_long(U64(p_lo[i]), out, to + 1 + 2 * (i - begin))
        return to + 1 + 2 * (end - begin)
    if group == MASK:
        mask = scratch[1]
        fill_mask(p_mode[p], p_lo, p_hi, begin, end, d, scales, mask)
        out[to] = U32(d)
        for m in range(MASK_WORDS):
            _write_long(mask[m], out, to + 1 + 2 * m)
        return to + 1 + 2 * MASK_WORDS
    if group == SET:
        word = _set_word(p_lo, p_hi, begin, end, d, scales)
        word |= (U64(d) << U64(48)) | (U64(coded.kind[p] == NOT_SET) << U64(63))
    else:
        low = coded.low[p]
        word = (U64(d) << U64(48)) | (U64(low) << U64(24)) | U64(coded.high[p] - low)
    _write_long(word, out, to)
    return to + 2


@inlined
def _code(key: int, d: int, scales: Any) -> int:
    """The code of a key of a wide dimension."""
    at, blocks = scales.cut[d], I64(scales.blocks[d])
    space = space_of(scales.cuts, at, blocks, key)
    return code_of(scales.cuts, at, blocks, scales.shift, scales.shift_at[d], space, key)


@inlined
def _write_long(word: Any, out: Any, to: int) -> None:
    """64 bits as two words, the lower first."""
    out[to], out[to + 1] = U32(word & U64(0xFFFFFFFF)), U32(word >> U64(32))


@inlined
def _set_word(lo: Any, hi: Any, begin: int, end: int, d: int, scales: Any) -> Any:
    """The spaces of a few intervals in six bytes; the last is repeated."""
    word, member, count = U64(0), U64(0), 0
    for i in range(begin, end):
        f, g = spaces_of(lo[i], hi[i], d, scales)
        for s in range(f, g + 1):
            member = U64(s)
            word |= member << U64(8 * count)
            count += 1
    for i in range(count, SET_SIZE):
        word |= member << U64(8 * i)
    return word
