"""The roll: numbers for the keys that predicates name in a wide dimension whose codes do not tell them apart.

Of doubles, strings and large whole numbers many share a code, so `price = 19.99` would have to compare keys. Instead, an event's
key is looked up once, and then compared by its number: a record needs one word for it, and a set one for each member.

The keys of a dimension lie in a hash table of lines, eight keys each; a key that finds its line full goes to the next. Its
place is its number. Lines are left three eighths empty, so that one line is looked at, seldom two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.kernel import inlined, kernel
from tamis.encoding.keys import KEY_MAX
from tamis.encoding.numbers import I64, U64, UP
from tamis.encoding.predicates import Predicates
from tamis.engine.aspects import UNKNOWN
from tamis.engine.coding import KEYS, POINT, RAW, Coded
from tamis.engine.scale import HIGHEST_CODE

LINE = 8
_IN_A_LINE = 5
_FREE = KEY_MAX
"""No predicate names it."""
_FIRST = UNKNOWN + 1


class Roll(NamedTuple):
    """The lines of dimension d are `start[d]` to `start[d + 1]`; there are none where codes tell keys apart."""

    start: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]


def enrol(predicates: Predicates, coded: Coded) -> Roll:
    """Number the keys that POINT and KEYS name where `coded.enrolled` says so; where they are too many, these become RAW."""
    dimensions = len(coded.enrolled)
    start = np.zeros(dimensions + 1, np.int64)
    if not coded.enrolled.any():
        return Roll(start, np.zeros(0, np.int64))
    counts = np.zeros(dimensions, np.int64)
    _count(coded, predicates.start, counts)
    first = np.concatenate(([0], np.cumsum(counts)))
    named = np.empty(int(first[-1]), np.int64)
    _collect(coded, predicates.start, predicates.lo, first[:-1].copy(), named)
    keys = []
    for d in np.flatnonzero(counts).tolist():
        distinct = np.unique(named[first[d] : first[d + 1]])
        lines = -(-len(distinct) // _IN_A_LINE)
        if lines * LINE > HIGHEST_CODE - _FIRST:
            coded.enrolled[d] = False
            coded.kind[(coded.dimension == d) & ((coded.kind == POINT) | (coded.kind == KEYS))] = RAW
            continue
        start[d + 1] = lines
        keys.append((d, distinct))
    np.cumsum(start, out=start)
    roll = Roll(start, np.full(LINE * int(start[-1]), _FREE))
    for d, distinct in keys:
        _fill(distinct, int(start[d]), int(start[d + 1]), roll.key)
    return roll


@kernel
def _count(coded: Any, start: Any, counts: Any) -> None:
    dimension, kind, enrolled = coded.dimension, coded.kind, coded.enrolled
    for p in range(len(kind)):
        if kind[p] in (POINT, KEYS) and enrolled[dimension[p]]:
            counts[dimension[p]] += start[p + 1] - start[p]


@kernel
def _collect(coded: Any, start: Any, lo: Any, at: Any, named: Any) -> None:
    dimension, kind, enrolled = coded.dimension, coded.kind, coded.enrolled
    for p in range(len(kind)):
        d = dimension[p]
        if kind[p] in (POINT, KEYS) and enrolled[d]:
            for i in range(start[p], start[p + 1]):
                named[at[d]] = lo[i]
                at[d] += 1


@inlined
def line_of(key: int, begin: int, end: int) -> int:
    """The line of a dimension, whose lines are `begin` to `end`, in which a key lies if that is not full."""
    mixed = U64(key) * U64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> U64(32))) * U64(0xD6E8FEB86659FD93)
    return begin + I64(((mixed >> U64(32)) * U64(end - begin)) >> U64(32))


@kernel
def _fill(keys: Any, begin: int, end: int, table: Any) -> None:
    for key in keys:
        line = line_of(key, begin, end)
        at = line * LINE
        while table[at] != _FREE:
            at += 1
            if at == end * LINE:
                at = begin * LINE
        table[at] = key


@inlined
def number_on_roll(key: int, begin: int, end: int, table: Any) -> int:
    """The number of a key, UNKNOWN if no predicate names it."""
    line = line_of(key, begin, end)
    while key != _FREE:
        place = -1
        for i in range(LINE):
            place = i if table[UP(line * LINE + i)] == key else place
        if place >= 0:
            return _FIRST + (line - begin) * LINE + place
        if table[UP(line * LINE + LINE - 1)] == _FREE:
            break
        line = begin if line + 1 == end else line + 1
    return UNKNOWN
