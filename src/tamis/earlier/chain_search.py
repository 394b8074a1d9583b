"""EXISTS with an equality: walk the chain of the earlier events with the same value, until one satisfies the rest.

    EXISTS (SELECT 1 FROM history h WHERE h.item = item AND h.price > price)
                                          chain         test: NUMBER, from the key behind price to the last one

Most walks end after a few events. With chains of 300 events that all have to be looked at, a walk takes a third of the time of
finding all their positions and holding arrays of them against each test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.earlier.attribute_index import Wanted
from tamis.earlier.column import Column
from tamis.earlier.key_chains import NOBODY, KeyChains, place_of, read_chains
from tamis.earlier.key_ranges import MISSING, ODD
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.fields import reader_of, words_in
from tamis.kernels.kernel import brief_kernel, inlined
from tamis.kernels.numbers import I8s, I64s
from tamis.kernels.packed import Packed

NO, YES, OPEN = range(3)
_LONGEST = 4096
"""Events of a chain that are looked at. A longer one may have a better index beside it."""
_ALL_KEYS = [(KEY_MIN, KEY_MAX)]
IS_NULL: Wanted = {MISSING: _ALL_KEYS}
IS_NOT_NULL: Wanted = dict.fromkeys(range(MISSING + 1, ODD), _ALL_KEYS)


class Test(NamedTuple):
    """What EXISTS asks of one attribute, with the same keys for all events that ask."""

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


@inlined
def passes(words: Packed, tests: int, position: int) -> int:
    """Whether an event satisfies all tests. OPEN if an odd value decides."""
    odd = False
    for at in range(0, _TEST * tests, _TEST):
        test = _read_test(words[at:])
        domain = test.domains[position]
        if domain == ODD:
            odd = True
        elif not _holds(words, test, domain, test.keys[position]):
            return NO
    return OPEN if odd else YES


@brief_kernel
def some_of_chain(
    chains: Packed, domain: int, key: int, first: int, end: int, words: Packed, tests: int, longest: int
) -> int:
    """Whether an event of a chain satisfies all tests. OPEN if an odd value decides, or the chain is too long."""
    table, before = read_chains(chains)
    place = place_of(table, domain, key)
    position = table.latest[place] if table.domains[place] != MISSING else NOBODY
    found = NO
    while position >= first:
        if longest == 0:
            return OPEN
        longest -= 1
        of_event = passes(words, tests, position) if position < end else NO
        if of_event == YES:
            return YES
        found = max(found, of_event)
        position = before[position]
    return found


def packed_tests(tests: Sequence[Test]) -> Packed:
    """Tests as `passes` reads them."""
    words: list[int] = []
    ranges: list[int] = []
    for column, wanted, negated in tests:
        start = _TEST * len(tests) + len(ranges)
        for domain, pairs in wanted.items():
            for lo, hi in pairs:
                ranges += domain, lo, hi
        words += column.place
        words += negated, start, _TEST * len(tests) + len(ranges)
    return np.array(words + ranges, np.int64)


def search(chains: KeyChains, sought: Sought, tests: Sequence[Test]) -> int:
    """Whether an event with a key satisfies some tests."""
    return some_of_chain(chains.packed, *sought, packed_tests(tests), len(tests), _LONGEST)
