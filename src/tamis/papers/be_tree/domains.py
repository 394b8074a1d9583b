"""Domains: which constants of each dimension the tree has seen, where to cut them, and how selective predicates are.

    dimension   0     1         2
    kind        INT   NUMBER    UNKNOWN      the kind of its keys: see `KeyKind`
    lo, hi      1 8   0.5 99    MAX MIN      from the lowest to the highest key that predicates name, open ends apart
    whole       yes   no        yes          all of them are whole numbers, or next to one, as the ends of `<` and `>` are

A constant outside the domain is a *stray*: it is sorted into an outermost bucket, as if it were the end of the domain. When more
than an eighth of the constants of a dimension are strays, the domain grows well beyond all its constants. All expressions
in the old domain must then be sorted again, so growing must be rare.

The paper's domains are discrete and finite: a bucket is cut in the middle of its values. Keys of numbers are the codes of
doubles, and half of all codes lie between -1 and 1. So we take the middle of the values, not of their codes, unless the values
are very far apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN, KeyKind, bits_of_code, code_of_bits, double_code
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import F64, I64, F64s, I32s, I64s
from tamis.kernels.ranges import span_indices
from tamis.papers.interface import KindOf

_SOME = int(Mode.SOME)
_UNKNOWN, _INTEGER, _NUMBER, _NAME = -1, 0, 1, 2
_KINDS = {KeyKind.INTEGER: _INTEGER, KeyKind.NUMBER: _NUMBER, KeyKind.NAME: _NAME}
_FARTHEST = 2.0**62
_WIDEST = 2.0**53
_FARTHEST_OCTAVES = 128 << 52
"""Distance of codes above which a bucket is cut in the middle of its codes, that is, of its exponents. Halving values would take
a thousand steps from the largest numbers down to those in common use. For whole numbers it takes 53."""
CELLS = 16
"""Cells of the histogram with which `loss="histogram"` estimates."""


class DomainArrays(NamedTuple):
    """Domains as kernels read them. `named` counts constants, `strays` those outside; `seen_*` would include the strays."""

    kind: I64s
    lo: I64s
    hi: I64s
    whole: I64s
    seen_lo: I64s
    seen_hi: I64s
    seen_whole: I64s
    named: I64s
    strays: I64s


_NOTHING_SEEN = (_UNKNOWN, KEY_MAX, KEY_MIN, 1, KEY_MAX, KEY_MIN, 1, 0, 0)
_FEWEST_STRAYS = 8
"""A domain grows when more than one in this many constants is a stray."""


class Domains:
    """The domains of all dimensions."""

    def __init__(self, kind_of: KindOf, lo: int | None, hi: int | None) -> None:
        self._kind_of = kind_of
        self._given = lo, hi
        self._columns = tuple(GrowingArray(np.int64) for _ in DomainArrays._fields)

    def __len__(self) -> int:
        return len(self._columns[0])

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns)

    def view(self) -> DomainArrays:
        return DomainArrays(*(column.view() for column in self._columns))

    def learn(self, table: Conjunctions, rows: I32s) -> I32s:
        """Take in the constants of some rows; returns the dimensions whose domain has changed."""
        dimensions = _dimensions(table, rows)
        missing = int(dimensions.max(initial=-1)) + 1 - len(self)
        if missing > 0:
            for column, fill in zip(self._columns, _NOTHING_SEEN, strict=True):
                column.grow(missing, fill=fill)
        domains = self.view()
        unknown = dimensions[domains.kind[dimensions] == _UNKNOWN]
        for dimension in unknown.tolist():
            domains.kind[dimension] = _KINDS[self._kind_of(dimension)]
        before = [column[dimensions] for column in (domains.lo, domains.hi, domains.whole)]
        _see(table, rows, domains)
        _learn(dimensions, domains)
        self._give(dimensions, domains)
        after = [column[dimensions] for column in (domains.lo, domains.hi, domains.whole)]
        return dimensions[np.any([old != new for old, new in zip(before, after, strict=True)], axis=0)]

    def _give(self, dimensions: I32s, domains: DomainArrays) -> None:
        """Set the domains that the options give. Dimensions of names get none: their labels are not known beforehand."""
        for ends, given in zip((domains.lo, domains.hi), self._given, strict=True):
            if given is not None:
                ends[dimensions[domains.kind[dimensions] == _NUMBER]] = double_code(float(given))
                ends[dimensions[domains.kind[dimensions] == _INTEGER]] = given


def _dimensions(table: Conjunctions, rows: I32s) -> I32s:
    """The dimensions of some rows."""
    predicates = span_indices(table.start[rows], table.start[rows + 1] - table.start[rows])
    return np.unique(table.predicates.dimension[predicates])


@lean_kernel
def _see(table: Conjunctions, rows: I32s, domains: DomainArrays) -> None:
    """Note the lowest and highest constant of each dimension, and how many are strays."""
    predicates, seen_lo, seen_hi = table.predicates, domains.seen_lo, domains.seen_hi
    for c in rows:
        for p in range(table.start[c], table.start[c + 1]):
            if predicates.mode[p] != _SOME:
                continue
            d = predicates.dimension[p]
            for i in range(predicates.start[p], predicates.start[p + 1]):
                for end, outward in ((predicates.lo[i], -1), (predicates.hi[i], 1)):
                    if KEY_MIN < end < KEY_MAX:
                        fits = I64(1)
                        if domains.kind[d] == _NUMBER and domains.whole[d]:
                            fits = max(_is_whole(end), _is_whole(end + outward))
                        domains.named[d] += 1
                        domains.strays[d] += not domains.lo[d] <= end <= domains.hi[d] or fits == 0
                        seen_lo[d], seen_hi[d] = min(seen_lo[d], end), max(seen_hi[d], end)
                        domains.seen_whole[d] = min(domains.seen_whole[d], fits)


@lean_kernel
def _learn(dimensions: I32s, domains: DomainArrays) -> None:
    """Widen domains. The first rows set a domain exactly.

    Later, many strays make a domain twice as wide as its constants need, on the side where there are strays. Strays on both sides
    double it twice, so that it becomes four times as wide: first downward, then upward.
    """
    lo, hi = domains.lo, domains.hi
    for d in dimensions:
        if _FEWEST_STRAYS * domains.strays[d] <= domains.named[d]:
            continue
        low, high = min(lo[d], domains.seen_lo[d]), max(hi[d], domains.seen_hi[d])
        if lo[d] <= hi[d]:
            if low < lo[d]:
                low = _beyond(domains.kind[d], low, high, -1)
            if high > hi[d]:
                high = _beyond(domains.kind[d], low, high, 1)
        lo[d], hi[d], domains.whole[d] = low, high, min(domains.whole[d], domains.seen_whole[d])
        domains.strays[d] = 0


@inlined
def _beyond(kind: int, lo: int, hi: int, direction: int) -> int:
    """The end of a domain that is twice as wide as from lo to hi, downward or upward."""
    end = lo if direction < 0 else hi
    width = _width(kind, lo, hi)
    if kind == _NUMBER:
        value = value_of(kind, end) + direction * width
        return I64(_key_of(value)) if np.isfinite(value) else I64(end)
    return I64(end) if np.abs(F64(end) + direction * width) >= _FARTHEST else I64(end) + direction * I64(width)


@inlined
def value_of(kind: int, key: int) -> float:
    """The number that a key stands for, as a double."""
    if kind == _NUMBER:
        return I64(bits_of_code(key)).view(np.float64)
    return F64(key)


@inlined
def _key_of(value: float) -> int:
    return code_of_bits(F64(value).view(np.int64))


@inlined
def _is_whole(key: int) -> int:
    value = value_of(_NUMBER, key)
    return I64(value == np.floor(value))


@inlined
def _width(kind: int, lo: int, hi: int) -> float:
    return value_of(kind, hi) - value_of(kind, lo) if lo <= hi else F64(-1.0)


@inlined
def middle(kind: int, whole: int, lo: int, hi: int) -> int:
    """The key at which to cut the bucket from lo to hi, lo < hi, in halves: the highest of the lower half."""
    between = lo // 2 + hi // 2 + (lo % 2) * (hi % 2)
    if kind != _NUMBER:
        return between
    low, high = value_of(kind, lo), value_of(kind, hi)
    cut = low / 2 + high / 2
    # The key of 0 is 0. The two keys next to it are the ends of `> 0` and `< 0`.
    far = not whole and (lo > 1 or hi < -1) and hi - lo > _FARTHEST_OCTAVES
    if high - low > _WIDEST or far:
        cut = value_of(kind, between)
    return min(max(_key_of(np.floor(cut) if whole else cut), lo), hi - 1)


@inlined
def behind(kind: int, whole: int, cut: int, hi: int) -> int:
    """Where the upper half begins."""
    if kind == _NUMBER and whole:
        return min(max(_key_of(value_of(kind, cut) + 1.0), cut + 1), hi)  # above 2**53, adding one may change nothing
    return cut + 1


@inlined
def share(kind: int, whole: int, lo: int, hi: int, low: int, high: int) -> float:
    """About which share of the domain from lo to hi lies in the interval from low to high."""
    unit = F64(1.0) if kind == _INTEGER or (kind == _NUMBER and whole) else F64(0.0)
    all_of_it = _width(kind, lo, hi) + unit
    part = _width(kind, max(lo, low), min(hi, high)) + unit
    if not (all_of_it > 0 and np.isfinite(all_of_it)):
        return F64(1.0)
    return min(max(part / all_of_it, 0.0), 1.0)


@inlined
def cells(kind: int, lo: int, hi: int, low: int, high: int) -> float:
    """The share of a histogram's cells over the domain that an interval touches."""
    if hi <= lo:
        return F64(1.0)
    first = np.floor(share(kind, 0, lo, hi, lo, max(lo, low)) * CELLS)
    last = np.floor(share(kind, 0, lo, hi, lo, min(hi, high)) * CELLS)
    return (min(last, F64(CELLS - 1)) - min(first, F64(CELLS - 1)) + 1) / CELLS


@lean_kernel
def order_predicates(
    table: Conjunctions, rows: I32s, domains: DomainArrays, shares: F64s, order: I64s, sizes: I32s
) -> None:
    """Order the predicates of each row, the most selective first: SOME (a value in a set), then NONE, then ABSENT."""
    kind, lo, hi, whole = domains.kind, domains.lo, domains.hi, domains.whole
    predicates = table.predicates
    end = 0
    for r in range(len(rows)):
        c, begin = rows[r], end
        sizes[r] = table.start[c + 1] - table.start[c]
        for p in range(table.start[c], table.start[c + 1]):
            d, mode = predicates.dimension[p], predicates.mode[p]
            part = F64(1.0) + mode
            if mode == _SOME:
                part = F64(0.0)
                for i in range(predicates.start[p], predicates.start[p + 1]):
                    part += share(kind[d], whole[d], lo[d], hi[d], predicates.lo[i], predicates.hi[i])
                part = min(part, 1.0)
            at = end
            while at > begin and shares[at - 1] > part:
                shares[at], order[at] = shares[at - 1], order[at - 1]
                at -= 1
            shares[at], order[at] = part, p
            end += 1
