"""Predicates on the scales of a segment: what each predicate is in spaces, and how likely it is to be true.

    kind       meaning for an event with one value in the dimension
    RANGE      its space lies from `first` to `last`; 255 to 255 is "missing"
    SET        its space is one of at most six;  NOT_SET: it is there and none of at most six;  MASK: any other set of spaces
    CODE       wide: its code lies between two codes, and that decides
    EDGE       wide: the same, but if its code equals one of the two, keys must be compared
    POINT      wide: its key is this one
    KEYS       wide: its key is one of at most 255; or, negated, it is there and is none of them
    RAW        wide, and neither one interval nor single keys: the predicate itself must be evaluated

The *hull*, from `first` to `last`, is a necessary condition for every kind, and a sufficient one if `exact` is set. None of this
applies to dimensions in which an event has several values: there, keys are compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.scale import (
    HIGHEST_CODE,
    MISSING,
    SPACE_CODES,
    Keys,
    Scales,
    bucket_of,
    code_in,
    code_within,
    first_key,
    locate,
    on_grid,
)
from tamis.engine.layout.statistics import Likelihood
from tamis.kernels.bits import bit_of, set_bit, word_of
from tamis.kernels.fields import packed_fields, reader_of
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I64, U64, UP, Bools, I32s, I64s, U8s, U32s, U64s
from tamis.kernels.packed import Packed

RANGE, SET, NOT_SET, MASK, CODE, EDGE, POINT, KEYS, RAW = range(9)
MOST_KEYS = 255
SET_SIZE = 6
MASK_WORDS = 4
Mask = U64s
"""A bit for each space, in MASK_WORDS words."""

_SOME = int(Mode.SOME)
_NONE = int(Mode.NONE)
_ABSENT = int(Mode.ABSENT)


class Coded(NamedTuple):
    """Predicates on scales, in columns beside those of their keys."""

    dimension: I32s
    """Number within the segment."""
    first: U8s
    last: U8s
    kind: U8s
    exact: Bools
    probability: npt.NDArray[np.float32]
    low: U32s
    """Codes of the ends, for CODE and EDGE; empty if no dimension is wide."""
    high: U32s
    numbered: Bools
    """By dimension: whether keys that predicates name need numbers, see `key_numbers`."""
    edges: Bools
    """By dimension: whether it has an EDGE."""


class CodedTable(NamedTuple):
    """The conjunctions of a segment, and what planning knows about them. Predicates of c: start[c] .. start[c + 1]."""

    start: I64s
    predicates: Predicates
    coded: Coded
    scales: Scales
    likelihood: Likelihood


read_table = reader_of(CodedTable)
"""Kernels take the table packed: taken one by one, its 31 arrays add a quarter of a second to the time to compile a kernel."""


def code_table(table: Conjunctions, scales: Scales, likelihood: Likelihood) -> CodedTable:
    """Find the spaces of all predicates."""
    dimension = table.predicates.dimension
    count, dimensions = len(dimension), len(scales.spaces)
    codes = count if (scales.shift_at >= 0).any() else 0
    coded = Coded(
        scales.local[dimension],
        np.empty(count, np.uint8),
        np.empty(count, np.uint8),
        np.empty(count, np.uint8),
        np.empty(count, np.bool_),
        np.empty(count, np.float32),
        np.zeros(codes, np.uint32),
        np.zeros(codes, np.uint32),
        np.zeros(dimensions, np.bool_),
        np.zeros(dimensions, np.bool_),
    )
    coded_table = CodedTable(table.start, table.predicates, coded, scales, likelihood)
    _code(packed_fields(coded_table))
    return coded_table


@lean_kernel
def _code(packed: Packed) -> None:
    table: CodedTable = read_table(packed)
    mode, coded = table.predicates.mode, table.coded
    for p in range(len(coded.dimension)):
        d = coded.dimension[p]
        coded.exact[p], coded.kind[p] = True, RANGE
        if mode[p] == _ABSENT:
            coded.first[p] = coded.last[p] = MISSING
            coded.probability[p] = 1.0 - table.likelihood.presence[d]
        elif table.scales.shift_at[d] < 0:
            _code_spaces(p, d, table)
        else:
            _code_wide(p, d, table)


@merged
def _code_spaces(p: int, d: int, table: CodedTable) -> None:
    """Code a predicate on a dimension that is not wide."""
    predicates, coded, scales = table.predicates, table.coded, table.scales
    begin, end = predicates.start[p], predicates.start[p + 1]
    if predicates.mode[p] == _SOME and end - begin == 1:
        f, g = spaces_of(predicates.lo[begin], predicates.hi[begin], d, scales)
        coded.probability[p] = likelihood_between(f, g, d, scales, table.likelihood)
    else:
        f, g, coded.kind[p], members, likely = _several(p, d, table)
        coded.probability[p] = likely
        if predicates.mode[p] == _NONE:
            f, g, coded.kind[p] = _opposite(f, g, coded.kind[p], members, scales.spaces[d] - 1)
            coded.probability[p] = table.likelihood.presence[d] - likely
        coded.exact[p] = coded.kind[p] == RANGE
    coded.first[p], coded.last[p] = f, g


@merged
def _code_wide(p: int, d: int, table: CodedTable) -> None:
    """Code a predicate on a wide dimension."""
    predicates, coded, scales = table.predicates, table.coded, table.scales
    begin, end, presence = predicates.start[p], predicates.start[p + 1], table.likelihood.presence[d]
    ends = _ends(predicates.lo[begin], predicates.hi[end - 1], d, scales)
    coded.first[p], coded.last[p], coded.low[p], coded.high[p] = ends.first, ends.last, ends.low, ends.high
    coded.kind[p], coded.exact[p] = _kind_of_interval(predicates.lo[begin], predicates.hi[end - 1], ends, d, scales)
    if end - begin > 1 or predicates.mode[p] == _NONE:
        coded.kind[p], coded.exact[p] = _kind_of_several(predicates.lo, predicates.hi, begin, end), False
    if coded.kind[p] in (POINT, KEYS) and not coded.numbered[d]:
        for i in range(begin, end):
            coded.numbered[d] |= not _has_own_code(predicates.lo[i], d, scales)
    coded.edges[d] |= coded.kind[p] == EDGE
    total = 0.0
    for i in range(begin, end):
        ends = _ends(predicates.lo[i], predicates.hi[i], d, scales)
        total += _wide_likelihood(ends, d, scales, table.likelihood)
    coded.probability[p] = min(total, presence)
    if predicates.mode[p] == _NONE:
        coded.first[p], coded.last[p] = 0, scales.spaces[d] - 1
        coded.probability[p] = presence - coded.probability[p]


@inlined
def likelihood_between(first: int, last: int, d: int, scales: Scales, likelihood: Likelihood) -> float:
    """How likely an event has a value in the spaces from `first` to `last`."""
    base = scales.cell[UP(d)]
    return likelihood.cumulative[UP(base + last + 1)] - likelihood.cumulative[UP(base + first)]


@inlined
def _kind_of_several(lo: Keys, hi: Keys, begin: int, end: int) -> int:
    """The kind of several intervals in a wide dimension, or of one that is excluded."""
    if end - begin > MOST_KEYS:
        return RAW
    for i in range(begin, end):
        if not _is_point(lo[i], hi[i]):
            return RAW
    return KEYS


@inlined
def _is_point(lo: int, hi: int) -> bool:
    return lo == hi and lo != KEY_MAX


@inlined
def _has_own_code(key: int, d: int, scales: Scales) -> bool:
    """Whether no other key of a wide dimension has the same code."""
    bucket = bucket_of(key, d, scales)
    code = code_in(bucket, key, d, scales)
    return bucket > 0 and on_grid(key, I64(scales.shift[scales.shift_at[d] + bucket])) and _decides(code)


@merged
def spaces_of(lo: int, hi: int, d: int, scales: Scales) -> tuple[int, int]:
    """First and last space of an interval."""
    f = 0 if lo == KEY_MIN else locate(lo, d, scales)
    if lo == hi:
        return f, f
    g = scales.spaces[d] - 1 if hi == KEY_MAX else locate(hi, d, scales)
    return f, g


@inlined
def _several(p: int, d: int, table: CodedTable) -> tuple[int, int, int, int, float]:
    """First and last space of the intervals of a predicate, its kind, how many spaces there are, and how likely they are."""
    predicates, scales = table.predicates, table.scales
    first, last, members, likely = scales.spaces[d] - 1, 0, 0, 0.0
    for i in range(predicates.start[p], predicates.start[p + 1]):
        f, g = spaces_of(predicates.lo[i], predicates.hi[i], d, scales)
        first, last = min(first, f), g
        members += g - f + 1
        likely += likelihood_between(f, g, d, scales, table.likelihood)
    if members == last - first + 1:
        return first, last, RANGE, members, likely
    return first, last, SET if members <= SET_SIZE else MASK, members, likely


@inlined
def _opposite(first: int, last: int, kind: int, members: int, top: int) -> tuple[int, int, int]:
    """First and last of all other spaces, and the kind of predicate that holds them."""
    if kind == RANGE and first == 0:
        return last + 1, top, RANGE
    if kind == RANGE and last == top:
        return 0, first - 1, RANGE
    return 0, top, NOT_SET if members <= SET_SIZE else MASK


@inlined
def fill_mask(p: int, d: int, predicates: Predicates, scales: Scales, mask: Mask) -> None:
    """Set the bits of the spaces in which a predicate is true of a single value; `d` is its dimension in the segment."""
    for i in range(MASK_WORDS):
        mask[i] = U64(0)
    for i in range(predicates.start[p], predicates.start[p + 1]):
        f, g = spaces_of(predicates.lo[i], predicates.hi[i], d, scales)
        for s in range(f, g + 1):
            set_bit(mask, s)
    if predicates.mode[p] == _NONE:
        for s in range(scales.spaces[d]):
            mask[UP(word_of(s))] ^= bit_of(s)


class _Ends(NamedTuple):
    """Buckets and codes of the two ends of an interval in a wide dimension."""

    first: int
    low: int
    last: int
    high: int


@inlined
def _ends(lo: int, hi: int, d: int, scales: Scales) -> _Ends:
    first, low, last, high = 0, 0, scales.spaces[d] - 1, HIGHEST_CODE
    if lo != KEY_MIN:
        first = bucket_of(lo, d, scales)
        low = code_in(first, lo, d, scales)
    if hi != KEY_MAX:
        last = bucket_of(hi, d, scales)
        high = code_in(last, hi, d, scales)
    return _Ends(first, low, last, high)


@inlined
def _kind_of_interval(lo: int, hi: int, ends: _Ends, d: int, scales: Scales) -> tuple[int, bool]:
    """The kind of an interval in a wide dimension, and whether buckets decide it.

    A code decides a lower bound if its key, or the key before it, lies on the grid; an upper bound, if its key or the next does.
    """
    at, blocks, top = scales.cut[d], I64(scales.blocks[d]), scales.spaces[d] - 1
    first_exact, low_exact, last_exact, high_exact = True, True, True, True
    if lo != KEY_MIN:
        bits = I64(scales.shift[scales.shift_at[d] + ends.first])
        first_exact = ends.first > 0 and first_key(scales.cuts, at, blocks, ends.first) == lo
        on_its_grid = on_grid(lo, bits) or on_grid(lo - 1, bits)
        low_exact = first_exact or (ends.first > 0 and _decides(ends.low) and on_its_grid)
    if hi != KEY_MAX:
        bits = I64(scales.shift[scales.shift_at[d] + ends.last])
        last_exact = ends.last < top and first_key(scales.cuts, at, blocks, ends.last + 1) == hi + 1
        on_its_grid = on_grid(hi, bits) or on_grid(hi + 1, bits)
        high_exact = last_exact or (ends.last > 0 and _decides(ends.high) and on_its_grid)
    kind = CODE if low_exact and high_exact else EDGE
    if _is_point(lo, hi):
        kind = POINT
    return kind, first_exact and last_exact


@inlined
def _decides(code: int) -> bool:
    """Whether a code is not the one that all keys behind the end of the grid share."""
    return code_within(code) != SPACE_CODES - 1


@inlined
def _wide_likelihood(ends: _Ends, d: int, scales: Scales, likelihood: Likelihood) -> float:
    """The likelihood of an interval: whole buckets and shares of the two at its ends, at least that of one key in its bucket."""
    part = code_within(ends.low) / SPACE_CODES
    rest = 1.0 - (code_within(ends.high) + 1) / SPACE_CODES if ends.last > 0 else 0.0
    first_bucket = likelihood_between(ends.first, ends.first, d, scales, likelihood)
    last_bucket = likelihood_between(ends.last, ends.last, d, scales, likelihood)
    total = likelihood_between(ends.first, ends.last, d, scales, likelihood)
    total = total - part * first_bucket - rest * last_bucket
    return max(total, first_bucket * (scales.spaces[d] - 1) / scales.ends[d])
