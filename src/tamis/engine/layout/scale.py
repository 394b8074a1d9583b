"""Scales: the keys of each dimension of a segment, cut into at most 254 spaces.

All ends of intervals that predicates have in a dimension cut its keys into *predicate spaces* (PS-Tree 4): within one, every
predicate is true of all keys or of none. A key becomes the number of its space, a byte, and a predicate becomes
a set of spaces. Where there are more than 254 spaces the dimension is *wide*: it is cut at quantiles of the ends, and what
falls into one of these buckets is told apart by its place on a grid inside it:

    ends          10    20 21     40                 cut c parts keys < c from keys >= c
    space      0     1     2   3       4             number of cuts <= key
    code       bucket << 14 | place << 1 | beside    wide; place = (key >> shift) - (first key of the bucket >> shift)

`beside` is 0 for keys that lie on the grid, whose last bits are 0, of which there is one at a place: where codes of such keys are
equal the keys are. So whole numbers, whose keys end in many zeros, are told apart by their codes alone.

The cuts of a dimension lie in blocks of 16; with more than one block, a block of the first keys of the others comes first.
So a space is found in two steps of 16 comparisons without a branch, which LLVM turns into vector code.

A dimension's number within the segment says how much it is used: the first is the one that most predicates ask about.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.kernel import inlined, inlined_with_arrays, kernel
from tamis.kernels.numbers import F64, I64, U64, UP
from tamis.kernels.sorting import sort_part

MOST_SPACES = 254
MISSING = 255
"""The space of an attribute that an event lacks."""
PLACES = 1 << 13
SPACE_CODES = 2 * PLACES
"""So many codes has a bucket."""
LOWEST_CODE = 1
"""Of all keys below the first cut."""
CODE_BITS = 22
HIGHEST_CODE = (1 << CODE_BITS) - 1
"""No key has it, nor 0: bounds that are at no key are equal to no code."""
BLOCK = 16
_SAMPLE = 1 << 14
_TABLE = 1024
_FULL = -1
_EMPTY = KEY_MIN
"""A place in a table of ends; no end is at the lowest key."""
FARTHEST_WHOLE = 2.0**40
_MOST_WHOLES = 1024


class Scales(NamedTuple):
    """The scales of a segment's dimensions, as kernels read them."""

    local: npt.NDArray[np.int32]
    """Dimension -> its number in the segment; -1 where the segment does not ask about it."""
    spaces: npt.NDArray[np.int32]
    cell: npt.NDArray[np.int64]
    """Number of spaces of the dimensions before this one; one more element at the end."""
    cut: npt.NDArray[np.int64]
    """Where the cuts of a dimension begin."""
    blocks: npt.NDArray[np.int32]
    shift_at: npt.NDArray[np.int64]
    """Where the shifts of a wide dimension begin; -1: it is not wide."""
    cuts: npt.NDArray[np.int64]
    shift: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]
    """How many different ends of intervals the predicates have in the dimension, about."""
    lowest: npt.NDArray[np.int64]
    """Where all cuts lie at whole numbers or right above them: the lowest of these."""
    wholes: npt.NDArray[np.int32]
    """How many whole numbers there are from the lowest to the highest; 0: cuts lie elsewhere too."""
    table_at: npt.NDArray[np.int64]
    table: npt.NDArray[np.uint8]
    """Two spaces for every whole number: its own, and that of the numbers between it and the next."""


def scales_of(predicates: Predicates) -> Scales:
    """The scales that these predicates need."""
    dimension, _, start, lo, hi = predicates
    uses = np.bincount(dimension, minlength=1)
    order = np.argsort(-uses, kind="stable")
    count = int(np.count_nonzero(uses))
    local = np.full(len(uses), -1, np.int32)
    local[order[:count]] = np.arange(count, dtype=np.int32)
    # To collect all ends takes several times as long as to look each up, unless there are too many dimensions for the caches.
    tables = np.full(_TABLE * count if _TABLE * count <= len(lo) else 0, _EMPTY, np.int64)
    distinct = np.full(count, 0 if len(tables) else _FULL, np.int64)
    _find_distinct(local, dimension, start, lo, hi, tables, distinct)
    numbers = np.zeros(count, np.int64)
    _count_ends(local, dimension, start, lo, hi, distinct, numbers)
    first = np.concatenate(([0], np.cumsum(numbers)))
    ends = np.empty(int(first[-1]), np.int64)
    _collect_ends(local, dimension, start, lo, hi, distinct, first[:count].copy(), ends)
    cuts = np.empty(int(np.minimum(np.maximum(numbers, distinct), MOST_SPACES - 1).sum()), np.int64)
    cut_counts, wide = np.zeros(count, np.int32), np.zeros(count, np.bool_)
    _cut(first, ends, tables, cuts, cut_counts, wide, distinct)
    blocks = np.maximum((cut_counts + BLOCK - 1) // BLOCK, 1).astype(np.int32)
    sizes = np.where(blocks > 1, blocks + 1, 1).astype(np.int64) * BLOCK
    place = np.cumsum(sizes) - sizes
    laid_out = np.full(int(sizes.sum()), KEY_MAX, np.int64)
    shift_at = np.full(count, -1, np.int64)
    shift_at[wide] = np.arange(int(wide.sum())) * (MOST_SPACES + 1)
    shift = np.zeros(int(wide.sum()) * (MOST_SPACES + 1), np.uint8)
    _lay_out(cuts, cut_counts, place, blocks, shift_at, first, ends, laid_out, shift)
    spaces = (cut_counts + 1).astype(np.int32)
    cell = np.concatenate(([0], np.cumsum(spaces, dtype=np.int64)))
    lowest, wholes = np.zeros(count, np.int64), np.zeros(count, np.int32)
    _find_wholes(cuts, cut_counts, wide, lowest, wholes)
    table_at = np.cumsum(2 * wholes, dtype=np.int64) - 2 * wholes
    table = np.empty(2 * int(wholes.sum(dtype=np.int64)), np.uint8)
    _tabulate(laid_out, place, blocks, lowest, wholes, table_at, table)
    return Scales(
        local, spaces, cell, place, blocks, shift_at, laid_out, shift, distinct, lowest, wholes, table_at, table
    )


@inlined
def space_of(cuts: Any, at: int, blocks: int, key: int) -> int:
    """How many cuts of a dimension are at or below a key. Blocks are filled up with the highest key, which is no cut."""
    key = min(key, KEY_MAX - 1)
    space = 0
    if blocks > 1:
        for i in range(BLOCK):
            space += I64(cuts[np.uintp(at + i)] <= key)
        at += BLOCK + BLOCK * space
        space *= BLOCK
    for i in range(BLOCK):
        space += I64(cuts[np.uintp(at + i)] <= key)
    return space


@inlined
def first_key(cuts: Any, at: int, blocks: int, space: int) -> int:
    """The first key of a space that has one below it."""
    return cuts[np.uintp(at + (BLOCK if blocks > 1 else 0) + space - 1)]


@inlined
def code_of(cuts: Any, at: int, blocks: int, shift: Any, shift_at: int, space: int, key: int) -> int:
    """The code of a key of a wide dimension that lies in the bucket `space`."""
    if space == 0:
        return LOWEST_CODE
    bits = I64(shift[np.uintp(shift_at + space)])
    place = U64(key >> bits) - U64(first_key(cuts, at, blocks, space) >> bits)
    if place >= U64(PLACES):
        return SPACE_CODES * space + SPACE_CODES - 1
    return SPACE_CODES * space + I64(place << U64(1)) + I64(not on_grid(key, bits))


@inlined
def on_grid(key: int, bits: int) -> bool:
    """Whether a key lies on the grid of a bucket with this shift."""
    return (key >> bits) << bits == key


@inlined
def number_of(key: int) -> float:
    """The double whose code a key is, whatever it is the key of: a function that ascends, and so can be looked up by.

    -1 would be the code of -0.0, which compares equal to 0.0: it goes with its neighbour below.
    """
    key = -2 if key == -1 else key
    return I64(key if key >= 0 else key ^ KEY_MAX).view(np.float64)


@inlined
def table_space(table: Any, at: int, lowest: int, wholes: int, key: int) -> int:
    """The space of a key by the table of whole numbers: below and above all of them are the spaces at either end."""
    number = number_of(key)
    place = np.floor(number)
    if not place >= lowest:
        # Keys of no number are above all, or below: their sign tells.
        return 0 if key < 0 or number < lowest else table[UP(at + 2 * wholes - 1)]
    if place >= lowest + wholes:
        return table[UP(at + 2 * wholes - 1)]
    return table[UP(at + 2 * (I64(place) - lowest) + I64(number != place))]


@inlined
def locate(key: int, d: int, scales: Any) -> int:
    """The space of a key in a dimension of the segment."""
    if scales.wholes[d] > 0:
        return I64(table_space(scales.table, scales.table_at[d], scales.lowest[d], I64(scales.wholes[d]), key))
    return space_of(scales.cuts, scales.cut[d], I64(scales.blocks[d]), key)


@inlined
def code_of_whole(number: int) -> int:
    """The key of a whole number."""
    key = F64(number).view(np.int64)
    return key if key >= 0 else key ^ KEY_MAX


@kernel
def _find_wholes(cuts: Any, counts: Any, wide: Any, lowest: Any, wholes: Any) -> None:
    """Find the dimensions whose cuts lie at whole numbers or right above them, close together."""
    begin = 0
    for d in range(len(counts)):
        low, high, fits = 0, 0, counts[d] > 0 and not wide[d]
        for i in range(begin, begin + counts[d]):
            number = number_of(cuts[i])
            if not abs(number) < FARTHEST_WHOLE:
                fits = False
                break
            whole = I64(np.round(number))
            key = code_of_whole(whole)
            if cuts[i] != key and cuts[i] != key + 1:
                fits = False
                break
            low, high = (whole, whole) if i == begin else (min(low, whole), max(high, whole))
        if fits and high - low < _MOST_WHOLES:
            lowest[d], wholes[d] = low, high - low + 1
        begin += counts[d]


@kernel
def _tabulate(cuts: Any, place: Any, blocks: Any, lowest: Any, wholes: Any, table_at: Any, table: Any) -> None:
    for d in range(len(wholes)):
        for i in range(wholes[d]):
            key = code_of_whole(lowest[d] + i)
            table[table_at[d] + 2 * i] = space_of(cuts, place[d], blocks[d], key)
            table[table_at[d] + 2 * i + 1] = space_of(cuts, place[d], blocks[d], key + 1)


@kernel
def _find_distinct(local: Any, dimension: Any, start: Any, lo: Any, hi: Any, tables: Any, distinct: Any) -> None:
    """Put the ends of every dimension that has a table into it; tell how many there are, or _FULL where they are too many."""
    if len(tables) == 0:
        return
    for p in range(len(dimension)):
        d = local[dimension[p]]
        count = distinct[d]
        for i in range(start[p], start[p + 1]):
            if lo[i] != KEY_MIN and count != _FULL:
                count = _put(lo[i], tables, d * _TABLE, count)
            if hi[i] != KEY_MAX and count != _FULL:
                count = _put(hi[i] + 1, tables, d * _TABLE, count)
        distinct[d] = count


@inlined
def _put(end: int, tables: Any, at: int, count: int) -> int:
    """Put an end into the table that lies there and has so many; returns how many it has then, or _FULL."""
    slot = I64((U64(end) * U64(0x9E3779B97F4A7C15)) >> U64(54))
    while tables[UP(at + slot)] != _EMPTY and tables[UP(at + slot)] != end:
        slot = (slot + 1) & (_TABLE - 1)
    if tables[UP(at + slot)] == end:
        return count
    if count == MOST_SPACES - 1:
        return _FULL
    tables[UP(at + slot)] = end
    return count + 1


@kernel
def _count_ends(local: Any, dimension: Any, start: Any, lo: Any, hi: Any, distinct: Any, numbers: Any) -> None:
    """How many ends there are to collect: those of dimensions in which too many are different, or for which there is no table."""
    if not (distinct == _FULL).any():
        return
    for p in range(len(dimension)):
        d = local[dimension[p]]
        count = 0
        for i in range(start[p], start[p + 1]):
            count += I64(lo[i] != KEY_MIN) + I64(hi[i] != KEY_MAX)
        numbers[d] += count * I64(distinct[d] == _FULL)


@kernel
def _collect_ends(local: Any, dimension: Any, start: Any, lo: Any, hi: Any, distinct: Any, at: Any, ends: Any) -> None:
    """The ends that were counted, grouped by dimension."""
    if len(ends) == 0:
        return
    for p in range(len(dimension)):
        d = local[dimension[p]]
        if distinct[d] != _FULL:
            continue
        to = at[d]
        for i in range(start[p], start[p + 1]):
            if lo[i] != KEY_MIN:
                ends[to] = lo[i]
                to += 1
            if hi[i] != KEY_MAX:
                ends[to] = hi[i] + 1
                to += 1
        at[d] = to


@kernel
def _cut(first: Any, ends: Any, tables: Any, cuts: Any, counts: Any, wide: Any, distinct: Any) -> None:
    """Choose the cuts of every dimension: all, or quantiles where there are too many; tell how many ends differ."""
    own = np.empty(_TABLE, np.int64)
    filled = 0
    for d in range(len(counts)):
        begin, end = first[d], first[d + 1]
        table, count = own, distinct[d]
        if len(tables) > 0:
            table = tables[d * _TABLE : (d + 1) * _TABLE]
        else:
            count = _distinct(ends, begin, end, own)
        if count == _FULL:
            wide[d] = True
            step = (end - begin + _SAMPLE - 1) // _SAMPLE
            sample = _sorted_sample(ends, begin, end, step)
            distinct[d] = _differ(sample, end - begin)
            count = 0
            for i in range(MOST_SPACES - 1):
                key = sample[i * (len(sample) - 1) // (MOST_SPACES - 2)]
                if count == 0 or cuts[filled + count - 1] != key:
                    cuts[filled + count] = key
                    count += 1
        else:
            place = 0
            for slot in range(_TABLE):
                if table[slot] != _EMPTY:
                    cuts[filled + place] = table[slot]
                    place += 1
            sort_part(cuts, filled, filled + count)
            distinct[d] = count
        counts[d] = count
        filled += count


@inlined_with_arrays
def _sorted_sample(ends: Any, begin: int, end: int, step: int) -> Any:
    """One of so many ends, and the lowest, in order. By hand: what NumPy has for it takes Numba two seconds to compile."""
    sample = np.empty((end - begin + step - 1) // step + 1, np.int64)
    for i in range(len(sample) - 1):
        sample[i] = ends[begin + i * step]
    lowest = ends[begin]
    for i in range(begin, end):
        lowest = min(lowest, ends[i])
    sample[len(sample) - 1] = lowest
    sort_part(sample, 0, len(sample))
    return sample


@inlined
def _differ(sample: Any, count: int) -> int:
    """About how many of so many ends differ, by a sorted sample of them: those that are in it once stand for others like them."""
    once, several = 0, 0
    begin = 0
    for i in range(1, len(sample) + 1):
        if i == len(sample) or sample[i] != sample[begin]:
            once += i - begin == 1
            several += i - begin > 1
            begin = i
    return several + once * count // len(sample)


@inlined
def _distinct(ends: Any, begin: int, end: int, table: Any) -> int:
    """Put the distinct ends into a hash table; returns how many, or _FULL when they are too many."""
    table[:] = _EMPTY
    count = 0
    for i in range(begin, end):
        count = _put(ends[i], table, 0, count)
        if count == _FULL:
            break
    return count


@kernel
def _lay_out(
    cuts: Any, counts: Any, place: Any, blocks: Any, shift_at: Any, first: Any, ends: Any, out: Any, shift: Any
) -> None:
    """Lay cuts out in blocks, and find the shifts of wide dimensions."""
    begin = 0
    for d in range(len(counts)):
        at = place[d]
        count = counts[d]
        if blocks[d] > 1:
            for b in range(1, blocks[d]):
                out[at + b - 1] = cuts[begin + b * BLOCK]
            at += BLOCK
        for i in range(count):
            out[at + i] = cuts[begin + i]
        if shift_at[d] >= 0:
            last = ends[first[d]]
            for i in range(first[d], first[d + 1]):
                last = max(last, ends[i])
            for i in range(count):
                highest = cuts[begin + i + 1] - 1 if i + 1 < count else last
                bits = 0
                while U64(highest >> bits) - U64(cuts[begin + i] >> bits) >= U64(PLACES):
                    bits += 1
                shift[shift_at[d] + i + 1] = bits
        begin += count
