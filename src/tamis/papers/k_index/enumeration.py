"""Ranges as sets of values: indexes with a posting list per value enumerate ``<``, ``>`` and BETWEEN.

The domain of a dimension is the whole numbers from `low` to `high`, and one more on either side that stands for everything
beyond. Each of these values is a *cell*:

    constants        2             6
    cells        1   2   3   4   5   6   7          1: below 2, 7: above 6
    x >= 3               3   4   5   6   7
    x < 4        1   2   3

Events are not bound to the domain. A number that is not whole, 3.5, is in the *gap* behind 3. A range that contains 3.5 may
contain 3 too: then it is in that cell. Or it begins within the gap, as ``x > 3`` does: then it is noted in the gap itself. So
the cell and the gap together have all ranges around 3.5, and also ranges that end at 3. Conjunctions found in a gap, or beyond
the domain, must be verified. For whole numbers of the domain the cells are exact.

Dimensions without ranges need no domain: their cells are the keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import INT_EXACT, KEY_MAX, KEY_MIN, KeyKind, double_value
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, Bools, I32s, I64s, U8s
from tamis.papers.interface import KindOf

Flags = Bools
NO_GAP = KEY_MIN
SIDES = 2
"""Number of cells that stand for values beyond the domain: one below, one above."""

_SOME = int(Mode.SOME)
_KINDS = list(KeyKind)
_NUMBER = _KINDS.index(KeyKind.NUMBER)
_NAME = _KINDS.index(KeyKind.NAME)
_UNKNOWN = 255
_FRACTION_BITS, _BIAS = 52, 1023
_LEADING = 1 << _FRACTION_BITS


class Domains(NamedTuple):
    """Facts about each dimension, from the predicates of some conjunctions.

    kind         the place of its KeyKind                    ranged       whether some predicate has a range
    low, high    the lowest and the highest whole constant; low > high if there is none
    upward       the least beginning of a range without an end
    downward     the greatest end of a range without a beginning
    widest       the number of values in the largest other range
    broken       a key that ends a range but is not a whole number; KEY_MIN if there is none
    """

    kind: U8s
    ranged: U8s
    low: I64s
    high: I64s
    upward: I64s
    downward: I64s
    widest: I64s
    broken: I64s

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self)

    def surveyed(self, table: Conjunctions, rows: I32s, kind_of: KindOf, domain: tuple[int, int] | None) -> Domains:
        """These domains, extended by more conjunctions."""
        dimension = table.predicates.dimension
        size = int(dimension.max()) + 1 if len(rows) and len(dimension) else 0
        more = _unknown(max(size - len(self.kind), 0))
        columns: Iterable[Any] = zip(self, more, strict=True)
        joined = Domains(*(np.concatenate(column) for column in columns))
        seen = np.zeros(len(joined.kind), np.bool_)
        _mark(table, rows, seen)
        for number in np.flatnonzero(seen & (joined.kind == _UNKNOWN)).tolist():
            joined.kind[number] = _KINDS.index(kind_of(number))
        _survey(table, rows, joined, *(domain or (KEY_MIN, KEY_MAX)))
        return joined

    def bounded(self, domain: tuple[int, int] | None) -> Domains:
        """The same with the domain of every dimension in `low` and `high`."""
        unbounded = self.low > self.high
        low, high = np.where(unbounded, 0, self.low), np.where(unbounded, 0, self.high)
        if domain is not None:
            given = self.kind != _NAME
            low, high = np.where(given, domain[0], low), np.where(given, domain[1], high)
        return self._replace(low=low, high=high)

    def refusals(self, domain: tuple[int, int] | None, most: int) -> list[tuple[int, str]]:
        """Dimensions with ranges that cannot be enumerated, each with the reason."""
        bounded = self.bounded(domain)
        wide = self.widest > most
        wide |= _more(np.maximum(self.upward, bounded.low), bounded.high, most) & (self.upward < KEY_MAX)
        wide |= _more(bounded.low, np.minimum(self.downward, bounded.high), most) & (self.downward > KEY_MIN)
        names = self.kind == _NAME
        names &= (self.upward < KEY_MAX) | (self.downward > KEY_MIN) | wide
        broken = self.broken > KEY_MIN
        wrong = np.flatnonzero(names | broken | wide).tolist()
        return [(number, self._reason(number, names, broken, bounded, most)) for number in wrong]

    def _reason(self, number: int, names: Flags, broken: Flags, bounded: Domains, most: int) -> str:
        if names[number]:
            return "a range of strings has no list of values"
        if broken[number]:
            value = double_value(int(self.broken[number]))
            # An excluded bound is stored as the number next to it. With few digits it prints as the bound again.
            return f"a range ends at {value:.15g}, which is not a whole number below 2**53"
        low, high = int(bounded.low[number]), int(bounded.high[number])
        return f"a range within {low:,} .. {high:,} has more than {most:,} values"


class Domain(NamedTuple):
    """The domain of one dimension, as in `Domains`."""

    kind: int
    ranged: int
    low: int
    high: int


def no_domains() -> Domains:
    """The domains of no dimensions."""
    return _unknown(0)


def _unknown(count: int) -> Domains:
    """The domains of `count` dimensions before anything is known."""

    def full(value: int) -> I64s:
        return np.full(count, value, np.int64)

    return Domains(
        np.full(count, _UNKNOWN, np.uint8),
        np.zeros(count, np.uint8),
        full(KEY_MAX),
        full(KEY_MIN),
        full(KEY_MAX),
        full(KEY_MIN),
        full(0),
        full(KEY_MIN),
    )


def _more(first: I64s, last: I64s, most: int) -> Flags:
    """Whether there are more than `most` values from `first` to `last`, both included."""
    return (last >= first) & (last.view(np.uint64) - first.view(np.uint64) >= most)


@lean_kernel
def _mark(table: Conjunctions, rows: I32s, seen: Flags) -> None:
    for c in rows:
        for p in range(table.start[c], table.start[c + 1]):
            seen[table.predicates.dimension[p]] = True


@lean_kernel
def _survey(table: Conjunctions, rows: I32s, domains: Domains, least: int, most: int) -> None:
    predicates = table.predicates
    for c in rows:
        for p in range(table.start[c], table.start[c + 1]):
            if predicates.mode[p] == _SOME:
                d = predicates.dimension[p]
                for i in range(predicates.start[p], predicates.start[p + 1]):
                    _note(domains, d, predicates.lo[i], predicates.hi[i], least, most)


@inlined
def _note(domains: Domains, d: int, lo: int, hi: int, least: int, most: int) -> None:
    """Note one interval of a predicate. The domain, if it is given, is from `least` to `most`."""
    kind = domains.kind[d]
    first, last = KEY_MIN, KEY_MAX
    if lo > KEY_MIN:
        first, whole = floored(kind, lo)
        if not whole and lo < hi:
            _, is_next_whole = floored(kind, lo - 1)
            if not is_next_whole:
                domains.broken[d] = lo
        if whole or lo < hi:
            domains.low[d] = min(domains.low[d], first)
            domains.high[d] = max(domains.high[d], first)
    if hi < KEY_MAX and lo < hi:
        last, whole = floored(kind, hi)
        if not whole:
            last += 1
            _, is_next_whole = floored(kind, hi + 1)
            if not is_next_whole:
                domains.broken[d] = hi
        domains.low[d] = min(domains.low[d], last)
        domains.high[d] = max(domains.high[d], last)
    if lo < hi:
        domains.ranged[d] = 1
        if lo > KEY_MIN and hi < KEY_MAX:
            first, last = max(first, least), min(last, most)
            domains.widest[d] = max(domains.widest[d], values_between(first, last))
        elif lo > KEY_MIN:
            domains.upward[d] = min(domains.upward[d], first)
        elif hi < KEY_MAX:
            domains.downward[d] = max(domains.downward[d], last)


@inlined
def floored(kind: int, key: int) -> tuple[int, bool]:
    """The largest whole number that is not above a key, and whether the key is that number.

    Numbers of 2**53 and more come after all others and count as not whole: their keys may be labels.
    """
    if kind != _NUMBER:
        return key, True
    # The magnitude of code -1 is 0: it is not a value, but ends ranges below 0.
    magnitude = key if key >= 0 else ~key
    exponent = (magnitude >> _FRACTION_BITS) - _BIAS
    whole, exact = I64(0), magnitude == 0 and key >= 0
    if exponent > _FRACTION_BITS:
        whole = I64(INT_EXACT)
    elif exponent >= 0:
        digits = (magnitude & (_LEADING - 1)) | _LEADING
        whole = digits >> (_FRACTION_BITS - exponent)
        exact = whole << (_FRACTION_BITS - exponent) == digits
    if key < 0:
        whole = -whole if exact else -whole - 1
    return whole, exact


@inlined
def values_between(first: int, last: int) -> int:
    """How many whole numbers there are from one to another, at most KEY_MAX."""
    if last < first:
        return I64(0)
    # A signed difference may overflow, and compilers assume that it never does.
    span = U64(I64(last)) - U64(I64(first))
    return I64(KEY_MAX) if span >= U64(KEY_MAX) else I64(span) + 1


@inlined
def domain_of(domains: Domains, d: int) -> Domain:
    """The domain of a dimension."""
    return Domain(domains.kind[d], domains.ranged[d], domains.low[d], domains.high[d])


@inlined
def first_cell(domain: Domain, lo: int) -> int:
    """The first cell of a predicate's interval that begins at a key."""
    if not domain.ranged:
        return lo
    cell, exact = floored(domain.kind, lo)
    if cell < domain.low:
        return domain.low - 1
    if cell > domain.high:
        return domain.high + 1
    return cell if exact else cell + 1


@inlined
def last_cell(domain: Domain, hi: int) -> int:
    """The last cell of a predicate's interval that ends at a key; the cell of a value."""
    if not domain.ranged:
        return hi
    cell, exact = floored(domain.kind, hi)
    if cell < domain.low:
        return domain.low - 1
    return domain.high + 1 if cell > domain.high or (cell == domain.high and not exact) else cell


@inlined
def gap_of(domain: Domain, lo: int) -> int:
    """The number of the domain behind which a key lies in the gap; NO_GAP if it is in none."""
    if not domain.ranged:
        return NO_GAP
    cell, exact = floored(domain.kind, lo)
    return NO_GAP if exact or cell < domain.low or cell >= domain.high else cell


@inlined
def is_exact(domain: Domain, lo: int, hi: int) -> bool:
    """Whether the cell of an event's value has exactly the predicates that are true of it."""
    if not domain.ranged:
        return True
    cell, exact = floored(domain.kind, lo)
    return lo == hi and exact and domain.low <= cell <= domain.high
