"""Scales: the keys of each dimension of a segment, cut into at most 254 spaces.

Predicates have intervals of keys. The ends of all intervals in a dimension cut its keys into *predicate spaces* (PS-Tree 4).
Within one space, every predicate is true of all keys or of none. A key becomes the number of its space, a byte, and a predicate
becomes a set of spaces. A dimension with more than 254 spaces is *wide*: it is cut at quantiles of the ends into buckets. Codes
tell the keys of a bucket apart by their place on a grid:

    ends          10    20 21     40                 cut c parts keys < c from keys >= c
    space      0     1     2   3       4             number of cuts <= key
    code       bucket << 14 | place << 1 | beside    wide; place = (key >> shift) - (first key of the bucket >> shift)

`beside` is 0 for keys on the grid, whose last bits are 0. Each place has one such key, so two of them are equal if their codes
are. Whole numbers have keys that end in many zeros, so their codes alone tell them apart.

The cuts of a dimension lie in blocks of 16. If there are several blocks, one more block comes first: the first keys of all blocks
but the first. So a space is found in two steps of 16 comparisons without a branch, which LLVM turns into vector code.

Dimensions are numbered within the segment by use: most predicates ask about the first one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.hashing import SEED
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import F64, I64, U64, UP, Bools, I32s, I64s, U8s
from tamis.kernels.sorting import sort_part

MOST_SPACES = 254
MISSING = 255
"""The space of an attribute that an event lacks."""
PLACES = 1 << 13
PER_WHOLE = 2
"""Spaces of a whole number in `Scales.table`."""
SPACE_CODES = 2 * PLACES
"""Codes of a bucket."""
LOWEST_CODE = 1
"""The code of all keys below the first cut."""
CODE_BITS = 22
HIGHEST_CODE = (1 << CODE_BITS) - 1
"""A code that no key has. No key has code 0 either. A bound that excludes no key has one of these codes, so it is never tied."""
CUTS_PER_BLOCK = 16
_SAMPLE = 1 << 14
"""The most ends of a wide dimension from which its quantiles are computed."""
_TABLE_BITS = 10
_TABLE = 1 << _TABLE_BITS
"""Places in the hash table of a dimension's ends."""
_FULL = -1
_EMPTY = KEY_MIN
"""A free place in such a table. No end is the lowest key."""
FARTHEST_WHOLE = 2.0**40
_MOST_WHOLES = 1024

Keys = I64s
Dimensions = I32s
Bytes = U8s


class Scales(NamedTuple):
    """The scales of a segment's dimensions, as kernels read them."""

    local: Dimensions
    """Dimension of the matcher -> its number in the segment; -1: the segment does not ask about it."""
    spaces: I32s
    cell: I64s
    """Number of spaces of all dimensions before this one; one more element at the end."""
    cut: I64s
    """Where the cuts of a dimension begin."""
    blocks: I32s
    shift_at: I64s
    """Where the shifts of a wide dimension begin; -1: it is not wide."""
    cuts: Keys
    shift: Bytes
    ends: I64s
    """How many different ends of intervals the predicates have in the dimension; in a wide one, an estimate."""
    lowest: I64s
    """The lowest whole number at which there is a cut, if all cuts are at whole numbers or right above them."""
    wholes: I32s
    """How many whole numbers there are from the lowest to the highest cut; 0: some cuts lie elsewhere."""
    table_at: I64s
    table: Bytes
    """Two spaces for every whole number: its own, and that of the numbers between it and the next."""


class _Ends(NamedTuple):
    """The ends of all intervals: for each lower end its key, for each upper end the key behind it.

    The distinct ends of a dimension are in a hash table. If they are too many, all of its ends are collected.
    """

    table: Keys
    """A hash table of _TABLE places for each dimension. Empty: there are too many dimensions."""
    distinct: I64s
    """Dimension -> how many ends are in its table; _FULL: too many, or there are no tables. `_cut` writes `Scales.ends` here."""
    start: I64s
    """Dimension -> where its collected ends begin; one more element at the end."""
    key: Keys
    """The collected ends."""


class _Cuts(NamedTuple):
    """The cuts of all dimensions, one dimension after another, in ascending order."""

    key: Keys
    number: I32s
    """Dimension -> how many cuts it has."""
    wide: Bools


def scales_of(predicates: Predicates) -> Scales:
    """The scales that these predicates need."""
    uses = np.bincount(predicates.dimension, minlength=1)
    order = np.argsort(-uses, kind="stable")
    count = int(np.count_nonzero(uses))
    local = np.full(len(uses), -1, np.int32)
    local[order[:count]] = np.arange(count, dtype=np.int32)
    ends = _ends_of(predicates, local, count)
    cuts = _cuts_of(ends, count)
    blocks = np.maximum((cuts.number + CUTS_PER_BLOCK - 1) // CUTS_PER_BLOCK, 1).astype(np.int32)
    sizes = np.where(blocks > 1, blocks + 1, 1).astype(np.int64) * CUTS_PER_BLOCK
    wides = int(cuts.wide.sum())
    shift_at = np.full(count, -1, np.int64)
    shift_at[cuts.wide] = np.arange(wides) * (MOST_SPACES + 1)
    lowest, wholes = np.zeros(count, np.int64), np.zeros(count, np.int32)
    _find_wholes(cuts, lowest, wholes)
    scales = Scales(
        local,
        spaces=(cuts.number + 1).astype(np.int32),
        cell=np.concatenate(([0], np.cumsum(cuts.number + 1, dtype=np.int64))),
        cut=np.cumsum(sizes) - sizes,
        blocks=blocks,
        shift_at=shift_at,
        cuts=np.full(int(sizes.sum()), KEY_MAX, np.int64),
        shift=np.zeros(wides * (MOST_SPACES + 1), np.uint8),
        ends=ends.distinct,
        lowest=lowest,
        wholes=wholes,
        table_at=np.cumsum(PER_WHOLE * wholes, dtype=np.int64) - PER_WHOLE * wholes,
        table=np.empty(PER_WHOLE * int(wholes.sum(dtype=np.int64)), np.uint8),
    )
    _lay_out(cuts, ends, scales)
    _tabulate(scales)
    return scales


def _ends_of(predicates: Predicates, local: Dimensions, count: int) -> _Ends:
    # Collecting all ends takes several times as long as looking each up, unless there are too many dimensions for the caches.
    table = np.full(_TABLE * count if _TABLE * count <= len(predicates.lo) else 0, _EMPTY, np.int64)
    distinct = np.full(count, 0 if len(table) else _FULL, np.int64)
    _find_distinct(predicates, local, table, distinct)
    numbers = np.zeros(count, np.int64)
    _count_ends(predicates, local, distinct, numbers)
    start = np.concatenate(([0], np.cumsum(numbers)))
    key = np.empty(int(start[-1]), np.int64)
    _collect_ends(predicates, local, distinct, start[:-1].copy(), key)
    return _Ends(table, distinct, start, key)


def _cuts_of(ends: _Ends, count: int) -> _Cuts:
    most = np.minimum(np.maximum(np.diff(ends.start), ends.distinct), MOST_SPACES - 1)
    cuts = _Cuts(np.empty(int(most.sum()), np.int64), np.zeros(count, np.int32), np.zeros(count, np.bool_))
    _cut(ends, np.empty(_TABLE, np.int64), np.empty(_SAMPLE + 1, np.int64), cuts)
    return cuts


@inlined
def space_of(cuts: Keys, at: int, blocks: int, key: int) -> int:
    """How many cuts of a dimension are at or below a key. Blocks are padded with the highest key, which is no cut."""
    key = min(key, KEY_MAX - 1)
    space = 0
    if blocks > 1:
        for i in range(CUTS_PER_BLOCK):
            space += I64(cuts[np.uintp(at + i)] <= key)
        at += CUTS_PER_BLOCK + CUTS_PER_BLOCK * space
        space *= CUTS_PER_BLOCK
    for i in range(CUTS_PER_BLOCK):
        space += I64(cuts[np.uintp(at + i)] <= key)
    return space


@inlined
def first_key(cuts: Keys, at: int, blocks: int, space: int) -> int:
    """The first key of a space that is not the lowest one."""
    return cuts[np.uintp(at + (CUTS_PER_BLOCK if blocks > 1 else 0) + space - 1)]


@inlined
def code_of(cuts: Keys, at: int, blocks: int, shift: Bytes, shift_at: int, space: int, key: int) -> int:
    """The code of a key of a wide dimension that lies in the bucket `space`."""
    if space == 0:
        return LOWEST_CODE
    bits = I64(shift[np.uintp(shift_at + space)])
    place = U64(key >> bits) - U64(first_key(cuts, at, blocks, space) >> bits)
    if place >= U64(PLACES):
        return SPACE_CODES * space + SPACE_CODES - 1
    return SPACE_CODES * space + 2 * I64(place) + I64(not on_grid(key, bits))


@inlined
def code_within(code: int) -> int:
    """A code without its bucket."""
    return code & (SPACE_CODES - 1)


@inlined
def on_grid(key: int, bits: int) -> bool:
    """Whether a key lies on the grid of a bucket with this shift."""
    return (key >> bits) << bits == key


@inlined
def number_of(key: int) -> float:
    """The double that has this key. Keys of other kinds of values are taken for keys of doubles: only the order matters.

    Key -1 would be that of -0.0, which is equal to 0.0. It is treated like the key below.
    """
    key = -2 if key == -1 else key
    return I64(key if key >= 0 else key ^ KEY_MAX).view(np.float64)


@inlined
def table_space(table: Bytes, at: int, lowest: int, wholes: int, key: int) -> int:
    """The space of a key by the table of whole numbers. Keys below or above all of them are in the first or the last space."""
    number = number_of(key)
    place = np.floor(number)
    if not place >= lowest:
        # A key that is no number (NaN) is below all numbers if it is negative, else above all.
        return 0 if key < 0 or number < lowest else table[UP(at + PER_WHOLE * wholes - 1)]
    if place >= lowest + wholes:
        return table[UP(at + PER_WHOLE * wholes - 1)]
    return table[UP(at + PER_WHOLE * (I64(place) - lowest) + I64(number != place))]


@inlined
def locate(key: int, d: int, scales: Scales) -> int:
    """The space of a key in a dimension of the segment."""
    if scales.wholes[d] > 0:
        return I64(table_space(scales.table, scales.table_at[d], scales.lowest[d], I64(scales.wholes[d]), key))
    return bucket_of(key, d, scales)


@inlined
def bucket_of(key: int, d: int, scales: Scales) -> int:
    """The space of a key, found by comparing it with cuts: the one way in wide dimensions."""
    return space_of(scales.cuts, scales.cut[d], I64(scales.blocks[d]), key)


@inlined
def code_in(bucket: int, key: int, d: int, scales: Scales) -> int:
    """The code of a key of a wide dimension that lies in this bucket."""
    at, blocks = scales.cut[d], I64(scales.blocks[d])
    return code_of(scales.cuts, at, blocks, scales.shift, scales.shift_at[d], bucket, key)


@inlined
def code_of_whole(number: int) -> int:
    """The key of a whole number."""
    key = F64(number).view(np.int64)
    return key if key >= 0 else key ^ KEY_MAX


@lean_kernel
def _find_wholes(cuts: _Cuts, lowest: I64s, wholes: I32s) -> None:
    """Find the dimensions whose cuts lie at whole numbers or right above them, close together."""
    begin = 0
    for d in range(len(cuts.number)):
        end = begin + cuts.number[d]
        low, high, fits = 0, 0, end > begin and not cuts.wide[d]
        for i in range(begin, end):
            number = number_of(cuts.key[i])
            if not abs(number) < FARTHEST_WHOLE:
                fits = False
                break
            whole = I64(np.round(number))
            key = code_of_whole(whole)
            if cuts.key[i] != key and cuts.key[i] != key + 1:
                fits = False
                break
            low, high = (whole, whole) if i == begin else (min(low, whole), max(high, whole))
        if fits and high - low < _MOST_WHOLES:
            lowest[d], wholes[d] = low, high - low + 1
        begin = end


@lean_kernel
def _tabulate(scales: Scales) -> None:
    """Fill the tables of whole numbers."""
    for d in range(len(scales.wholes)):
        for i in range(scales.wholes[d]):
            key, at = code_of_whole(scales.lowest[d] + i), scales.table_at[d] + PER_WHOLE * i
            scales.table[at] = bucket_of(key, d, scales)
            scales.table[at + 1] = bucket_of(key + 1, d, scales)


@lean_kernel
def _find_distinct(predicates: Predicates, local: Dimensions, table: Keys, distinct: I64s) -> None:
    """Put the ends of every dimension into its table, if there are tables."""
    if len(table) == 0:
        return
    for p in range(len(predicates.dimension)):
        d = local[predicates.dimension[p]]
        count = distinct[d]
        for i in range(predicates.start[p], predicates.start[p + 1]):
            lo, hi = predicates.lo[i], predicates.hi[i]
            if lo != KEY_MIN and count != _FULL:
                count = _put(lo, table, d * _TABLE, count)
            if hi != KEY_MAX and count != _FULL:
                count = _put(hi + 1, table, d * _TABLE, count)
        distinct[d] = count


@inlined
def _put(end: int, table: Keys, at: int, count: int) -> int:
    """Put an end into the table at `at`, which has `count` ends; returns the new count, or _FULL."""
    place = I64((U64(end) * SEED) >> U64(64 - _TABLE_BITS))
    while table[UP(at + place)] != _EMPTY and table[UP(at + place)] != end:
        place = (place + 1) % _TABLE
    if table[UP(at + place)] == end:
        return count
    if count == MOST_SPACES - 1:
        return _FULL
    table[UP(at + place)] = end
    return count + 1


@lean_kernel
def _count_ends(predicates: Predicates, local: Dimensions, distinct: I64s, numbers: I64s) -> None:
    """Count the ends to collect, those of _FULL dimensions."""
    fulls = 0
    for d in range(len(distinct)):
        fulls += I64(distinct[d] == _FULL)
    if fulls == 0:
        return
    for p in range(len(predicates.dimension)):
        d = local[predicates.dimension[p]]
        count = 0
        for i in range(predicates.start[p], predicates.start[p + 1]):
            count += I64(predicates.lo[i] != KEY_MIN) + I64(predicates.hi[i] != KEY_MAX)
        numbers[d] += count * I64(distinct[d] == _FULL)


@lean_kernel
def _collect_ends(predicates: Predicates, local: Dimensions, distinct: I64s, at: I64s, ends: Keys) -> None:
    """Collect the ends that were counted, grouped by dimension; `at` says where those of each dimension begin."""
    if len(ends) == 0:
        return
    for p in range(len(predicates.dimension)):
        d = local[predicates.dimension[p]]
        if distinct[d] != _FULL:
            continue
        to = at[d]
        for i in range(predicates.start[p], predicates.start[p + 1]):
            lo, hi = predicates.lo[i], predicates.hi[i]
            if lo != KEY_MIN:
                ends[to] = lo
                to += 1
            if hi != KEY_MAX:
                ends[to] = hi + 1
                to += 1
        at[d] = to


@lean_kernel
def _cut(ends: _Ends, own: Keys, sample: Keys, cuts: _Cuts) -> None:
    """Choose the cuts of every dimension: all ends, or quantiles if there are too many; estimate how many ends differ.

    `own` has room for one table, for dimensions without a table; `sample` for the ends of which quantiles are computed.
    """
    filled = 0
    for d in range(len(cuts.number)):
        begin, end = ends.start[d], ends.start[d + 1]
        table, at, count = own, 0, ends.distinct[d]
        if len(ends.table) > 0:
            table, at = ends.table, d * _TABLE
        else:
            count = _distinct(ends.key, begin, end, own)
        if count == _FULL:
            cuts.wide[d] = True
            size = _sorted_sample(ends.key, begin, end, sample)
            ends.distinct[d] = _differ(sample, size, end - begin)
            count = 0
            for i in range(MOST_SPACES - 1):
                key = sample[i * (size - 1) // (MOST_SPACES - 2)]
                if count == 0 or cuts.key[filled + count - 1] != key:
                    cuts.key[filled + count] = key
                    count += 1
        else:
            place = filled
            for i in range(at, at + _TABLE):
                if table[i] != _EMPTY:
                    cuts.key[place] = table[i]
                    place += 1
            sort_part(cuts.key, filled, filled + count)
            ends.distinct[d] = count
        cuts.number[d] = count
        filled += count


@inlined
def _sorted_sample(ends: Keys, begin: int, end: int, sample: Keys) -> int:
    """Write a sorted sample of ends, with the lowest; returns its size. By hand: NumPy's way takes two seconds to compile."""
    step = (end - begin + _SAMPLE - 1) // _SAMPLE
    size = 0
    lowest = ends[begin]
    for i in range(begin, end, step):
        sample[size] = ends[i]
        size += 1
    for i in range(begin, end):
        lowest = min(lowest, ends[i])
    sample[size] = lowest
    sort_part(sample, 0, size + 1)
    return size + 1


@inlined
def _differ(sample: Keys, size: int, count: int) -> int:
    """Estimate how many of `count` ends differ, from a sorted sample. An end that occurs once in it stands for others."""
    once, several = 0, 0
    begin = 0
    for i in range(1, size + 1):
        if i == size or sample[i] != sample[begin]:
            once += i - begin == 1
            several += i - begin > 1
            begin = i
    return several + once * count // size


@inlined
def _distinct(ends: Keys, begin: int, end: int, table: Keys) -> int:
    """Put the distinct ends into a hash table; returns how many, or _FULL if they are too many."""
    table[:] = _EMPTY
    count = 0
    for i in range(begin, end):
        count = _put(ends[i], table, 0, count)
        if count == _FULL:
            break
    return count


@lean_kernel
def _lay_out(cuts: _Cuts, ends: _Ends, scales: Scales) -> None:
    """Lay cuts out in blocks, and find the shifts of wide dimensions."""
    begin = 0
    for d in range(len(cuts.number)):
        at, count = scales.cut[d], cuts.number[d]
        if scales.blocks[d] > 1:
            for b in range(1, scales.blocks[d]):
                scales.cuts[at + b - 1] = cuts.key[begin + b * CUTS_PER_BLOCK]
            at += CUTS_PER_BLOCK
        for i in range(count):
            scales.cuts[at + i] = cuts.key[begin + i]
        if scales.shift_at[d] >= 0:
            last = ends.key[ends.start[d]]
            for i in range(ends.start[d], ends.start[d + 1]):
                last = max(last, ends.key[i])
            for i in range(count):
                lowest = cuts.key[begin + i]
                highest = cuts.key[begin + i + 1] - 1 if i + 1 < count else last
                bits = 0
                while U64(highest >> bits) - U64(lowest >> bits) >= U64(PLACES):
                    bits += 1
                scales.shift[scales.shift_at[d] + i + 1] = bits
        begin += count
