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
from tamis.kernels.fields import packed_fields, reader_of, words_in
from tamis.kernels.kernel import brief_kernel, inlined, lean_kernel
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


class RowTest(NamedTuple):
    """The same for rows of a batch, each with keys of its own: those from `los` to `his` of a domain."""

    column: Column
    domains: I8s
    """MISSING if no event satisfies the test for a row."""
    los: I64s
    his: I64s
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


class _RowTest(NamedTuple):
    """A test of rows as packed words."""

    domains: I8s
    keys: I64s
    of_rows: I8s
    los: I64s
    his: I64s
    negated: int


_TEST, _RANGE, _ROW_TEST = words_in(_Test), words_in(_Range), words_in(_RowTest)
_read_test, _read_range, _read_row_test = reader_of(_Test), reader_of(_Range), reader_of(_RowTest)


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
def _passes(words: Packed, tests: int, position: int) -> int:
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


@inlined
def _passes_for(words: Packed, row: int, position: int) -> int:
    """The same for tests of rows."""
    odd = False
    for at in range(0, len(words), _ROW_TEST):
        test = _read_row_test(words[at:])
        domain = test.domains[position]
        if domain == ODD:
            odd = True
        else:
            inside = test.los[row] <= test.keys[position] <= test.his[row]
            if domain == MISSING or domain != test.of_rows[row] or inside == (test.negated != 0):
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
        passes = _passes(words, tests, position) if position < end else NO
        if passes == YES:
            return YES
        found = max(found, passes)
        position = before[position]
    return found


@lean_kernel
def some_of_chains(
    before: I64s, heads: I64s, firsts: I64s, of_rows: Packed, words: Packed, tests: int, out: I8s
) -> None:
    """The same for rows of a batch: each chain goes from a head back to a first position."""
    for row in range(len(heads)):
        position, left, found = heads[row], _LONGEST, NO
        while position >= firsts[row] and found != YES:
            if left == 0:
                found = OPEN
                break
            left -= 1
            passes = _passes_for(of_rows, row, position)
            if passes != NO:
                constant = _passes(words, tests, position)
                if passes == YES or constant == NO:
                    passes = constant
            if passes != NO:
                found = passes
            position = before[position]
        out[row] = found


def _packed(tests: Sequence[Test]) -> Packed:
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
    return some_of_chain(chains.packed, *sought, _packed(tests), len(tests), _LONGEST)


def search_rows(before: I64s, heads: I64s, firsts: I64s, of_rows: Sequence[RowTest], tests: Sequence[Test]) -> I8s:
    """For each row, whether an event of its chain satisfies all tests. A chain goes from a head back to a first position."""
    packed = [np.zeros(0, np.int64)]
    for column, domains, los, his, negated in of_rows:
        packed.append(packed_fields(_RowTest(column.domains, column.keys, domains, los, his, negated)))
    found = np.empty(len(heads), np.int8)
    some_of_chains(before, heads, firsts, np.concatenate(packed), _packed(tests), len(tests), found)
    return found
