"""Numbers for the keys that predicates name in wide dimensions, if codes do not tell these keys apart.

Many doubles, strings and large whole numbers share a code, so `price = 19.99` would have to compare keys. Instead, an event's
key is looked up once and then compared by its number. A record needs one word for it, and a set one word for each member.

The keys of a dimension lie in a hash table of lines, eight keys each. If the line of a key is full, the key goes to the next one.
Its place is its number. Each line also has a word of marks. A mark is one more byte of a key's hash:

    marks      7f 03 c1 00 00 00 00 00        00: free
    keys       a  b  c  -  -  -  -  -

Most keys of events are named by no predicate. The marks show this for 97 % of them without reading a line of keys. This saves
time, since the table of keys is too large for the inner caches. If a line is full, the marks of the next line are read too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX
from tamis.engine.layout.aspects import UNKNOWN
from tamis.engine.layout.predicate_codes import KEYS, POINT, RAW, CodedTable, read_table
from tamis.engine.layout.scale import HIGHEST_CODE, Bytes, Keys
from tamis.kernels.bits import has_zero_byte, in_each_byte
from tamis.kernels.fields import packed_fields
from tamis.kernels.hashing import share_of, spread
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U8, U64, UP, I64s, U64s
from tamis.kernels.packed import Packed, aligned_zeros

LINE = 8
"""Keys in a line."""
_IN_A_LINE = 6
"""Keys in a line on average: one line in four is full. The marks of the next line are mostly in the same cache line."""
_FREE = KEY_MAX
"""A free place. This key is never numbered."""
_FIRST = UNKNOWN + 1
MOST_NUMBERS = HIGHEST_CODE - _FIRST
"""The most numbers that a test can name, free ones included."""
_MARK_BITS, _MARK_AT = 8, 24


class KeyNumbers(NamedTuple):
    """The lines of dimension d are `start[d]` to `start[d + 1]`. There are none if codes tell its keys apart."""

    start: I64s
    mark: U64s
    key: Keys


def number_keys(table: CodedTable, most: int = MOST_NUMBERS) -> KeyNumbers:
    """Number the keys that POINT and KEYS name in `numbered` dimensions.

    If a dimension would have more than `most` numbers, these predicates become RAW.
    """
    coded = table.coded
    dimensions = len(coded.numbered)
    start = np.zeros(dimensions + 1, np.int64)
    if not coded.numbered.any():
        return KeyNumbers(start, np.zeros(0, np.uint64), np.zeros(0, np.int64))
    counts = np.zeros(dimensions, np.int64)
    packed = packed_fields(table)
    _count(packed, counts)
    first = np.concatenate(([0], np.cumsum(counts)))
    named = np.empty(int(first[-1]), np.int64)
    _collect(packed, first[:-1].copy(), named)
    keys = []
    for d in np.flatnonzero(counts).tolist():
        distinct = np.unique(named[first[d] : first[d + 1]])
        lines = -(-len(distinct) // _IN_A_LINE)
        if lines * LINE > most:
            coded.numbered[d] = False
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
    return KeyNumbers(start, marks.view("<u8").astype(np.uint64), key)


@lean_kernel
def _count(packed: Packed, counts: I64s) -> None:
    """Count the named keys of each dimension, repetitions too."""
    table: CodedTable = read_table(packed)
    coded, start = table.coded, table.predicates.start
    for p in range(len(coded.kind)):
        d = coded.dimension[p]
        if coded.kind[p] in (POINT, KEYS) and coded.numbered[d]:
            counts[d] += start[p + 1] - start[p]


@lean_kernel
def _collect(packed: Packed, at: I64s, named: Keys) -> None:
    """Collect the keys that were counted, grouped by dimension; `at` says where those of each dimension begin."""
    table: CodedTable = read_table(packed)
    coded, start = table.coded, table.predicates.start
    for p in range(len(coded.kind)):
        d = coded.dimension[p]
        if coded.kind[p] in (POINT, KEYS) and coded.numbered[d]:
            for i in range(start[p], start[p + 1]):
                named[at[d]] = table.predicates.lo[i]
                at[d] += 1


@inlined
def line_of(mixed: np.uint64, begin: int, end: int) -> int:
    """The line of a key with this hash, unless it is full, in a dimension whose lines are `begin` to `end`."""
    return begin + I64(share_of(mixed, end - begin))


@inlined
def _mark_of(mixed: np.uint64) -> np.uint64:
    """A byte of a hash, but never 0: that is the mark of a free place."""
    mark = (mixed >> U64(_MARK_AT)) & U64((1 << _MARK_BITS) - 1)
    return mark + U64(mark == U64(0))


@inlined
def may_be_in(mixed: np.uint64, marks: np.uint64) -> bool:
    """Whether a line with these marks may have a key with this hash."""
    return has_zero_byte(marks ^ in_each_byte(_mark_of(mixed)))


@inlined
def _is_full(marks: np.uint64) -> bool:
    """Whether a line with these marks has a key in its last place."""
    return marks >> U64(_MARK_BITS * (LINE - 1)) != U64(0)


@lean_kernel
def _fill(keys: Keys, begin: int, end: int, marks: Bytes, table: Keys) -> None:
    """Put the keys of a dimension into its lines."""
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
def number_of_key(key: int, begin: int, end: int, marks: U64s, table: Keys) -> int:
    """The number of a key in a dimension whose lines are `begin` to `end`; UNKNOWN if no predicate names it."""
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
        if not _is_full(word):
            break
        line = begin if line + 1 == end else line + 1
    return UNKNOWN
