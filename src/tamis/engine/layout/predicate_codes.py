"""Predicates on the scales of a segment: what each is in spaces, and how likely it is to be true.

    kind       said of an event with one value in the dimension
    RANGE      its space lies from `first` to `last`; 255 to 255 is "missing"
    SET        its space is one of at most six;  NOT_SET: it is there and none of at most six;  MASK: any other set of spaces
    CODE       wide: its code lies between two codes, and that decides
    EDGE       the same, but where its code equals one of the two, keys must be compared
    POINT      wide: its key is this one
    KEYS       wide: its key is one of at most 255; or, negated, it is there and is none of them
    RAW        wide, and not one interval and not single keys: the predicate itself must be evaluated

The *hull*, from `first` to `last`, is a necessary condition for every kind, and sufficient where `exact` says so. None of this
is said of a dimension in which an event has several values: there, keys are compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.scale import (
    HIGHEST_CODE,
    MISSING,
    SPACE_CODES,
    Scales,
    code_of,
    first_key,
    locate,
    on_grid,
    space_of,
)
from tamis.engine.layout.statistics import Likelihood
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I64, U64

RANGE, SET, NOT_SET, MASK, CODE, EDGE, POINT, KEYS, RAW = range(9)
MOST_KEYS = 255
SET_SIZE = 6
MASK_WORDS = 4

_SOME = int(Mode.SOME)
_NONE = int(Mode.NONE)
_ABSENT = int(Mode.ABSENT)


class Coded(NamedTuple):
    """Predicates on scales, in columns beside those of their keys."""

    dimension: npt.NDArray[np.int32]
    """Number within the segment."""
    first: npt.NDArray[np.uint8]
    last: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.uint8]
    exact: npt.NDArray[np.bool_]
    probability: npt.NDArray[np.float32]
    low: npt.NDArray[np.uint32]
    """Codes of the ends, of CODE and EDGE; empty where no dimension is wide."""
    high: npt.NDArray[np.uint32]
    enrolled: npt.NDArray[np.bool_]
    """By dimension: whether keys that are named in it need numbers, see `roll`."""
    edges: npt.NDArray[np.bool_]
    """By dimension: whether it has an EDGE."""


def code_predicates(predicates: Predicates, scales: Scales, likelihood: Likelihood) -> Coded:
    """Find the spaces of all predicates."""
    count = len(predicates.dimension)
    codes = count if (scales.shift_at >= 0).any() else 0
    coded = Coded(
        scales.local[predicates.dimension],
        np.empty(count, np.uint8),
        np.empty(count, np.uint8),
        np.empty(count, np.uint8),
        np.empty(count, np.bool_),
        np.empty(count, np.float32),
        np.zeros(codes, np.uint32),
        np.zeros(codes, np.uint32),
        np.zeros(len(scales.spaces), np.bool_),
        np.zeros(len(scales.spaces), np.bool_),
    )
    _code(predicates, scales, likelihood, coded)
    return coded


@lean_kernel
def _code(predicates: Any, scales: Any, likelihood: Any, coded: Any) -> None:
    _, p_mode, p_start, p_lo, p_hi = predicates
    spaces, cell, cut, blocks = scales.spaces, scales.cell, scales.cut, scales.blocks
    shift_at, cuts, shift, ends = scales.shift_at, scales.cuts, scales.shift, scales.ends
    cumulative, presence = likelihood
    dimension, first, last, kind, exact, probability, low, high, enrolled, edges = coded
    for p in range(len(dimension)):
        d = dimension[p]
        at, top, base = cut[d], spaces[d] - 1, cell[d]
        begin, end = p_start[p], p_start[p + 1]
        exact[p] = True
        kind[p] = RANGE
        if p_mode[p] == _ABSENT:
            first[p] = last[p] = MISSING
            probability[p] = 1.0 - presence[d]
            continue
        if shift_at[d] < 0:
            if p_mode[p] == _SOME and end - begin == 1:
                f, g = spaces_of(p_lo[begin], p_hi[begin], d, scales)
                probability[p] = cumulative[base + g + 1] - cumulative[base + f]
            else:
                f, g, kind[p], members, likely = _several(p_lo, p_hi, begin, end, d, scales, cumulative)
                probability[p] = likely
                if p_mode[p] == _NONE:
                    f, g, kind[p] = _opposite(f, g, kind[p], members, top)
                    probability[p] = presence[d] - likely
                exact[p] = kind[p] == RANGE
            first[p], last[p] = f, g
            continue
        f, g, c, z, kind[p], exact[p] = _interval(
            p_lo[begin], p_hi[end - 1], cuts, at, blocks[d], shift, shift_at[d], top
        )
        first[p], last[p], low[p], high[p] = f, g, c, z
        if end - begin > 1 or p_mode[p] == _NONE:
            kind[p], exact[p] = _kind_of_several(p_lo, p_hi, begin, end), False
        if kind[p] in (POINT, KEYS) and not enrolled[d]:
            for i in range(begin, end):
                enrolled[d] |= not _is_told_by_code(p_lo[i], cuts, at, blocks[d], shift, shift_at[d])
        edges[d] |= kind[p] == EDGE
        total = 0.0
        for i in range(begin, end):
            total += _wide_likelihood(
                p_lo[i], p_hi[i], cuts, at, blocks[d], shift, shift_at[d], top, cumulative, base, ends[d]
            )
        probability[p] = min(total, presence[d])
        if p_mode[p] == _NONE:
            first[p], last[p] = 0, top
            probability[p] = presence[d] - probability[p]


@inlined
def _kind_of_several(lo: Any, hi: Any, begin: int, end: int) -> int:
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
def _is_told_by_code(key: int, cuts: Any, at: int, blocks: int, shift: Any, shift_at: int) -> bool:
    """Whether no other key of a wide dimension has the same code."""
    space = space_of(cuts, at, blocks, key)
    code = code_of(cuts, at, blocks, shift, shift_at, space, key)
    return space > 0 and on_grid(key, I64(shift[shift_at + space])) and _decides(code)


@merged
def spaces_of(lo: int, hi: int, d: int, scales: Any) -> tuple[int, int]:
    """First and last space of an interval."""
    f = 0 if lo == KEY_MIN else locate(lo, d, scales)
    if lo == hi:
        return f, f
    g = scales.spaces[d] - 1 if hi == KEY_MAX else locate(hi, d, scales)
    return f, g


@inlined
def _several(
    lo: Any, hi: Any, begin: int, end: int, d: int, scales: Any, cumulative: Any
) -> tuple[int, int, int, int, float]:
    """First and last space of some intervals, the kind of predicate that holds them, how many they are, how likely."""
    base = scales.cell[d]
    first, last, members, likely = scales.spaces[d] - 1, 0, 0, 0.0
    for i in range(begin, end):
        f, g = spaces_of(lo[i], hi[i], d, scales)
        first, last = min(first, f), g
        members += g - f + 1
        likely += cumulative[base + g + 1] - cumulative[base + f]
    if members == last - first + 1:
        return first, last, RANGE, members, likely
    return first, last, SET if members <= SET_SIZE else MASK, members, likely


@inlined
def _opposite(first: int, last: int, kind: int, members: int, top: int) -> tuple[int, int, int]:
    """The same for all other spaces."""
    if kind == RANGE and first == 0:
        return last + 1, top, RANGE
    if kind == RANGE and last == top:
        return 0, first - 1, RANGE
    return 0, top, NOT_SET if members <= SET_SIZE else MASK


@inlined
def fill_mask(mode: int, lo: Any, hi: Any, begin: int, end: int, d: int, scales: Any, mask: Any) -> None:
    """The spaces in which a predicate is true of a single value, as bits."""
    for i in range(MASK_WORDS):
        mask[i] = U64(0)
    for i in range(begin, end):
        f, g = spaces_of(lo[i], hi[i], d, scales)
        for s in range(f, g + 1):
            mask[s >> 6] |= U64(1) << U64(s & 63)
    if mode == _NONE:
        for s in range(scales.spaces[d]):
            mask[s >> 6] ^= U64(1) << U64(s & 63)


@inlined
def has_space(mask: Any, space: int) -> bool:
    return (mask[space >> 6] >> U64(space & 63)) & U64(1) != U64(0)


@inlined
def _interval(
    lo: int, hi: int, cuts: Any, at: int, blocks: int, shift: Any, shift_at: int, top: int
) -> tuple[int, int, int, int, int, bool]:
    """Buckets and codes of the ends of an interval in a wide dimension, its kind, and whether buckets decide it.

    Codes decide what is at or above a key that lies on the grid, or right behind one that does; and below likewise.
    """
    f, c, first_exact, low_exact = 0, 0, True, True
    if lo != KEY_MIN:
        f = space_of(cuts, at, blocks, lo)
        c = code_of(cuts, at, blocks, shift, shift_at, f, lo)
        bits = I64(shift[shift_at + f])
        first_exact = f > 0 and first_key(cuts, at, blocks, f) == lo
        low_exact = first_exact or (f > 0 and _decides(c) and (on_grid(lo, bits) or on_grid(lo - 1, bits)))
    g, z, last_exact, high_exact = top, HIGHEST_CODE, True, True
    if hi != KEY_MAX:
        g = space_of(cuts, at, blocks, hi)
        z = code_of(cuts, at, blocks, shift, shift_at, g, hi)
        bits = I64(shift[shift_at + g])
        last_exact = g < top and first_key(cuts, at, blocks, g + 1) == hi + 1
        high_exact = last_exact or (g > 0 and _decides(z) and (on_grid(hi, bits) or on_grid(hi + 1, bits)))
    kind = CODE if low_exact and high_exact else EDGE
    if _is_point(lo, hi):
        kind = POINT
    return f, g, c, z, kind, first_exact and last_exact


@inlined
def _decides(code: int) -> bool:
    """Whether a code is not the one that all keys behind the end of the grid have."""
    return code & (SPACE_CODES - 1) != SPACE_CODES - 1


@inlined
def _wide_likelihood(
    lo: int,
    hi: int,
    cuts: Any,
    at: int,
    blocks: int,
    shift: Any,
    shift_at: int,
    top: int,
    cumulative: Any,
    base: int,
    ends: int,
) -> float:
    """The likelihood of an interval: whole buckets and shares of those at its ends, at least that of one key in its bucket."""
    f, part = 0, 0.0
    if lo != KEY_MIN:
        f = space_of(cuts, at, blocks, lo)
        c = code_of(cuts, at, blocks, shift, shift_at, f, lo)
        part = (c & (SPACE_CODES - 1)) / SPACE_CODES
    g, rest = top, 0.0
    if hi != KEY_MAX:
        g = space_of(cuts, at, blocks, hi)
        z = code_of(cuts, at, blocks, shift, shift_at, g, hi)
        rest = 1.0 - ((z & (SPACE_CODES - 1)) + 1) / SPACE_CODES if g > 0 else 0.0
    first_bucket = cumulative[base + f + 1] - cumulative[base + f]
    last_bucket = cumulative[base + g + 1] - cumulative[base + g]
    total = cumulative[base + g + 1] - cumulative[base + f] - part * first_bucket - rest * last_bucket
    return max(total, first_bucket * top / ends)
