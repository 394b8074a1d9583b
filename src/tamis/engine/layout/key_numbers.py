"""The roll: numbers for the keys that predicates name in a wide dimension whose codes do not tell them apart.

Of doubles, strings and large whole numbers many share a code, so `price = 19.99` would have to compare keys. Instead, an event's
key is looked up once, and then compared by its number: a record needs one word for it, and a set one for each member.

The keys of a dimension lie in a hash table of lines, eight keys each; a key that finds its line full goes to the next. Its
place is its number. Of every key one byte more of its hash, its mark, lies in a word for each line:

    marks      7f 03 c1 00 00 00 00 00        00: free
    keys       a  b  c  -  -  -  -  -

Most keys of events are named by nobody. For 97 in a hundred of these the word tells so, or where a line is full the next one: no
line, of a table that is too large for the inner caches, is fetched.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.aspects import UNKNOWN
from tamis.engine.layout.predicate_codes import KEYS, POINT, RAW, Coded
from tamis.engine.layout.scale import HIGHEST_CODE
from tamis.kernels.hashing import spread
from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.numbers import I64, U8, U64, UP
from tamis.kernels.packed import aligned_zeros

LINE = 8
_IN_A_LINE = 6
"""So many keys a line has on average; one line in four is full then. The next word lies mostly in the same cache line."""
_FREE = KEY_MAX
"""No predicate names it."""
_FIRST = UNKNOWN + 1
_EACH_BYTE = 0x0101010101010101
_HIGH_BITS = 0x8080808080808080


class Roll(NamedTuple):
    """The lines of dimension d are `start[d]` to `start[d + 1]`; there are none where codes tell keys apart."""

    start: npt.NDArray[np.int64]
    mark: npt.NDArray[np.uint64]
    key: npt.NDArray[np.int64]


def enrol(predicates: Predicates, coded: Coded) -> Roll:
    """Number the keys that POINT and KEYS name where `coded.enrolled` says so; where they are too many, these become RAW."""
    dimensions = len(coded.enrolled)
    start = np.zeros(dimensions + 1, np.int64)
    if not coded.enrolled.any():
        return Roll(start, np.zeros(0, np.uint64), np.zeros(0, np.int64))
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
    marks = np.zeros(LINE * int(start[-1]), np.uint8)
    key = aligned_zeros(len(marks), np.int64)
    key[:] = _FREE
    for d, distinct in keys:
        _fill(distinct, int(start[d]), int(start[d + 1]), marks, key)
    return Roll(start, marks.view("<u8").astype(np.uint64), key)


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
def line_of(mixed: Any, begin: int, end: int) -> int:
    """The line of a dimension, whose lines are `begin` to `end`, in which a key of this hash lies if that is not full."""
    return begin + I64(((mixed >> U64(32)) * U64(end - begin)) >> U64(32))


@inlined
def _mark_of(mixed: Any) -> Any:
    mark = (mixed >> U64(24)) & U64(0xFF)
    return mark + U64(mark == U64(0))


@inlined
def may_be_in(mixed: Any, marks: Any) -> bool:
    """Whether a line that has these marks may have a key of this hash."""
    differ = marks ^ (_mark_of(mixed) * U64(_EACH_BYTE))
    # A byte that is 0 borrows from its highest bit. Those behind it may seem to be 0 too.
    return ((differ - U64(_EACH_BYTE)) & ~differ & U64(_HIGH_BITS)) != U64(0)


@kernel
def _fill(keys: Any, begin: int, end: int, marks: Any, table: Any) -> None:
    for key in keys:
        mixed = spread(key)
        at = line_of(mixed, begin, end) * LINE
        while table[at] != _FREE:
            at += 1
            if at == end * LINE:
                at = begin * LINE
        table[at] = key
        marks[at] = U8(_mark_of(mixed))


@inlined
def number_on_roll(key: int, begin: int, end: int, marks: Any, table: Any) -> int:
    """The number of a key, UNKNOWN if no predicate names it."""
    mixed = spread(key)
    line = line_of(mixed, begin, end)
    while key != _FREE:
        word = marks[UP(line)]
        if may_be_in(mixed, word):
            place = -1
            for i in range(LINE):
                place = i if table[UP(line * LINE + i)] == key else place
            if place >= 0:
                return _FIRST + (line - begin) * LINE + place
        if word >> U64(8 * (LINE - 1)) == U64(0):
            break  # It is not full.
        line = begin if line + 1 == end else line + 1
    return UNKNOWN
