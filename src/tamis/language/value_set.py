"""Sets of scalars of one kind, as unions of spans with open or closed ends.

A set is described by its *cuts*, the places on the line where membership changes. A cut stands just before or just after
a key:  (3, BEFORE) | 3 | (3, AFTER).

    a < 3            member ──────┤(3, BEFORE)                          below=True
    a BETWEEN 3, 5         (3, BEFORE)├──────┤(5, AFTER)                below=False
    a <> 3           ─────────────┤3├──────────────                     below=True

Keys are numbers and strings themselves, and microseconds for dates and datetimes. The line is taken as dense: between
any two keys there may be another, so 1 < a < 2 is not empty.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from tamis.language.values import Kind, Scalar, to_microseconds

BEFORE, AFTER = False, True

Cut: TypeAlias = tuple[Any, bool]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)


class Span(NamedTuple):
    """A run of the line from one cut to another; None is the end of the line."""

    lo: Cut | None
    hi: Cut | None

    @property
    def is_point(self) -> bool:
        return self.lo is not None and self.hi == (self.lo[0], AFTER) and self.lo[1] is BEFORE


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Some scalars of one kind. `below`: whether values below all cuts are in the set. Cuts ascend, and no two are equal."""

    below: bool
    cuts: tuple[Cut, ...]

    def __bool__(self) -> bool:
        """Whether there is any value in the set."""
        return self.below or bool(self.cuts)

    def spans(self) -> Iterator[Span]:
        """The runs of members, ascending."""
        cuts: list[Cut | None] = [None, *self.cuts] if self.below else [*self.cuts]
        if len(cuts) % 2:
            cuts.append(None)
        return (Span(lo, hi) for lo, hi in zip(cuts[::2], cuts[1::2], strict=True))


NOTHING = ValueSet(False, ())

# Every kind's line: no string is below the empty one, and there are only two booleans.
EVERYTHING: dict[Kind, ValueSet] = {
    Kind.NUMBER: ValueSet(True, ()),
    Kind.STRING: ValueSet(False, (("", BEFORE),)),
    Kind.BOOLEAN: ValueSet(False, ((False, BEFORE), (False, AFTER), (True, BEFORE), (True, AFTER))),
    Kind.TIMESTAMP: ValueSet(True, ()),
}


def at_least(needed: int, sets: Sequence[ValueSet]) -> ValueSet:
    """The values that are in `needed` or more of the sets."""
    depth = sum(one.below for one in sets)
    below = inside = depth >= needed
    steps: dict[Cut, int] = {}
    for one in sets:
        member = one.below
        for cut in one.cuts:
            member = not member
            steps[cut] = steps.get(cut, 0) + (1 if member else -1)
    cuts = []
    for cut in sorted(steps):
        depth += steps[cut]
        if (depth >= needed) is not inside:
            inside = not inside
            cuts.append(cut)
    return ValueSet(below, tuple(cuts))


def union(sets: Sequence[ValueSet]) -> ValueSet:
    return at_least(1, sets)


def intersection(sets: Sequence[ValueSet]) -> ValueSet:
    return at_least(len(sets), sets)


def is_within(one: ValueSet, other: ValueSet) -> bool:
    """Whether all values of the first set are in the second."""
    for lo, hi in one.spans():
        place = 0 if lo is None else bisect_right(other.cuts, lo)
        if (place % 2 == 1) is other.below:
            return False
        # The span of the other set that holds `lo` must not end before `hi`.
        if place < len(other.cuts) and (hi is None or other.cuts[place] < hi):
            return False
    return True


def complement(one: ValueSet, kind: Kind) -> ValueSet:
    """The values of the kind that are not in the set."""
    return intersection([EVERYTHING[kind], ValueSet(not one.below, one.cuts)])


def points(values: Sequence[Scalar]) -> ValueSet:
    """Exactly these values."""
    keys = sorted({key_of(value) for value in values})
    return ValueSet(False, tuple((key, side) for key in keys for side in (BEFORE, AFTER)))


def below(value: Scalar, side: bool, kind: Kind) -> ValueSet:
    """All values below a value, and the value itself if `side` is AFTER."""
    start = EVERYTHING[kind]
    cut = (key_of(value), side)
    if start.below:
        return ValueSet(True, (cut,))
    return ValueSet(False, (start.cuts[0], cut)) if start.cuts[0] < cut else NOTHING


def above(value: Scalar, side: bool) -> ValueSet:
    """All values above a value, and the value itself if `side` is BEFORE."""
    return ValueSet(False, ((key_of(value), side),))


def between(lo: Scalar, hi: Scalar) -> ValueSet:
    """The values from one to another, both included; none if they are in the wrong order."""
    first, last = key_of(lo), key_of(hi)
    return ValueSet(False, ((first, BEFORE), (last, AFTER))) if first <= last else NOTHING


def starting_with(prefix: str) -> ValueSet:
    """The strings with a prefix: by code point they are a span."""
    end = string_after(prefix)
    return ValueSet(False, ((prefix, BEFORE),) if end is None else ((prefix, BEFORE), (end, BEFORE)))


def string_after(prefix: str) -> str | None:
    """The first string above all that start with the prefix; None if there is none."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    # Half a surrogate pair is not a character: U+E000 follows U+D7FF.
    return stem[:-1] + chr(0xE000 if following == 0xD800 else following)


def prefix_of(span: Span) -> str | None:
    """The prefix, if a span of strings is all strings with one."""
    if span.lo is None or span.lo[1] is AFTER:
        return None
    prefix: str = span.lo[0]
    end = string_after(prefix)
    return prefix if span.hi == (None if end is None else (end, BEFORE)) else None


def key_of(value: Scalar) -> Any:
    """The place of a scalar on its kind's line."""
    return to_microseconds(value) if isinstance(value, date) else value


def literal_at(key: Any, kind: Kind) -> Scalar:
    """The scalar at a place of the line; a midnight is a date."""
    if kind is not Kind.TIMESTAMP:
        scalar: Scalar = key
        return scalar
    moment = _EPOCH + timedelta(microseconds=key)
    return moment.date() if moment.time() == datetime.min.time() else moment
