"""EXISTS with an equality, for one event: walk the chain of the earlier events with the same value, until one satisfies the rest.

    EXISTS (SELECT 1 FROM history h WHERE h.item = item AND h.price > price)
                                          chain         test: NUMBER, from the key behind price to the last one

With chains of 300 events, this takes a third of the time of finding all their positions and holding arrays of them against each
test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.earlier.attribute_index import Wanted
from tamis.earlier.column import Column
from tamis.earlier.key_chains import NOBODY, KeyChains, Table, place_of
from tamis.earlier.key_ranges import MISSING, ODD
from tamis.kernels.fields import reader_of, words_in
from tamis.kernels.kernel import brief_kernel, inlined
from tamis.kernels.numbers import I8s, I64s
from tamis.kernels.packed import Packed

NO, YES, OPEN = range(3)
_LONGEST = 4096
"""Events of a chain that are looked at. A longer one may have a better index beside it."""


class Test(NamedTuple):
    """What EXISTS asks of one attribute."""

    column: Column
    wanted: Wanted
    negated: bool


class Sought(NamedTuple):
    """A key, and the position of the first event that may have it. Those from `end` on count no more."""

    domain: int
    key: int
    first: int
    end: int


class _Test(NamedTuple):
    """A test as packed words. The packed ranges of all tests follow the tests."""

    domains: I8s
    keys: I64s
    negated: int
    start: int
    """The word of its first range."""
    end: int


class _Range(NamedTuple):
    domain: int
    lo: int
    hi: int


_TEST, _RANGE = words_in(_Test), words_in(_Range)
_read_test, _read_range = reader_of(_Test), reader_of(_Range)


@inlined
def _holds(words: Packed, test: _Test, domain: int, key: int) -> bool:
    comparable = inside = False
    for at in range(test.start, test.end, _RANGE):
        wanted = _read_range(words[at:])
        if wanted.domain == domain:
            comparable = True
            inside |= wanted.lo <= key <= wanted.hi
    return comparable and inside != (test.negated != 0)


@brief_kernel
def some_of_chain(table: Table, before: I64s, sought: Sought, words: Packed, tests: int, longest: int) -> int:
    """Whether an event of a chain satisfies all tests. OPEN if an odd value decides, or the chain is too long."""
    place = place_of(table, sought.domain, sought.key)
    position = table.latest[place] if table.domains[place] != MISSING else NOBODY
    found = NO
    while position >= sought.first:
        if longest == 0:
            return OPEN
        longest -= 1
        fits, odd, at = position < sought.end, False, 0
        while fits and at < _TEST * tests:
            test = _read_test(words[at:])
            domain = test.domains[position]
            if domain == ODD:
                odd = True
            else:
                fits = _holds(words, test, domain, test.keys[position])
            at += _TEST
        if fits and not odd:
            return YES
        if fits:
            found = OPEN
        position = before[position]
    return found


def search(chains: KeyChains, sought: Sought, tests: Sequence[Test]) -> int:
    """Whether an event with a key satisfies some tests."""
    words: list[int] = []
    ranges: list[int] = []
    for column, wanted, negated in tests:
        start = _TEST * len(tests) + len(ranges)
        for domain, pairs in wanted.items():
            for lo, hi in pairs:
                ranges += domain, lo, hi
        words += column.place
        words += negated, start, _TEST * len(tests) + len(ranges)
    given = np.array(words + ranges, np.int64)
    return int(some_of_chain(chains.table, chains.before, sought, given, len(tests), _LONGEST))
