"""Chains of events with equal keys: where the latest event with a key is, and for each event the one before it with its key.

    position   4     5     6     7          table   9 -> 7    12 -> 6    (a hash table with open addressing)
    key        9     12    12    9
    before     -1    -1    5     4

An event that leaves as the first of all needs no work: a chain ends where positions are below the first one. So chains serve
events that leave in order of arrival. The table forgets keys when it is made again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.earlier.column import Column
from tamis.earlier.key_ranges import MISSING, ODD
from tamis.kernels.fields import packed_fields, reader_of
from tamis.kernels.growing import GrowingArray
from tamis.kernels.hashing import spread_pair
from tamis.kernels.kernel import brief_kernel, inlined
from tamis.kernels.numbers import I64, U64, I8s, I64s
from tamis.kernels.packed import Packed

NOBODY = -1
_SMALLEST = 64


class Table(NamedTuple):
    """The latest event with each key."""

    keys: I64s
    domains: I64s
    """MISSING where the table is empty."""
    latest: I64s
    """The position of the latest event."""


class ChainArrays(NamedTuple):
    """What kernels read of chains."""

    table: Table
    before: I64s


read_chains = reader_of(ChainArrays)


@inlined
def place_of(table: Table, domain: int, key: int) -> int:
    """The place of a key, or the empty place where it would be."""
    mask = len(table.keys) - 1
    place: int = I64(spread_pair(I64(domain), I64(key)) & U64(mask))
    while table.domains[place] != MISSING and (table.keys[place] != key or table.domains[place] != domain):
        place = (place + 1) & mask
    return place


@brief_kernel
def enter(table: Table, before: I64s, domains: I8s, keys: I64s, start: int, end: int, used: int) -> tuple[int, int]:
    """Enter the events between two positions; returns the next position and the used places. Stops when half of them are used."""
    for position in range(start, end):
        domain = I64(domains[position])
        before[position] = NOBODY
        if domain in (MISSING, ODD):
            continue
        if 2 * used >= len(table.keys):
            return position, used
        place = place_of(table, domain, keys[position])
        if table.domains[place] == MISSING:
            table.domains[place], table.keys[place] = domain, keys[position]
            used += 1
        else:
            before[position] = table.latest[place]
        table.latest[place] = position
    return end, used


@brief_kernel
def latest_of(chains: Packed, domain: int, key: int, end: int) -> int:
    table, before = read_chains(chains)
    place = place_of(table, domain, key)
    position = table.latest[place] if table.domains[place] != MISSING else NOBODY
    while position >= end:
        position = before[position]
    return position


@inlined
def _length(before: I64s, head: int, first: int, most: int) -> int:
    count = 0
    while head >= first and count < most:
        count += 1
        head = before[head]
    return count


@brief_kernel
def length(before: I64s, head: int, first: int, most: int) -> int:
    """The number of events of a chain, but at most `most`."""
    return _length(before, head, first, most)


@brief_kernel
def write_lengths(before: I64s, heads: I64s, firsts: I64s, most: int, lengths: I64s) -> None:
    """Write the number of events of each chain, but at most `most`."""
    for chain in range(len(heads)):
        lengths[chain] = _length(before, heads[chain], firsts[chain], most)


@brief_kernel
def walk(before: I64s, heads: I64s, firsts: I64s, positions: I64s, owners: I64s) -> None:
    """Write the positions of all chains, each from its head back to its first, and the chain of each."""
    count = 0
    for chain in range(len(heads)):
        position = heads[chain]
        while position >= firsts[chain]:
            positions[count], owners[count] = position, chain
            count += 1
            position = before[position]


@brief_kernel
def walk_back(table: Table, before: I64s, domain: int, key: int, first: int, end: int, found: I64s) -> int:
    """Write the positions of a chain between two positions; returns how many, or one more than there is room for."""
    place = place_of(table, domain, key)
    position = table.latest[place] if table.domains[place] != MISSING else NOBODY
    count = 0
    while position >= first and count <= len(found):
        if position < end:
            if count < len(found):
                found[count] = position
            count += 1
        position = before[position]
    return count


def lengths(before: I64s, heads: I64s, firsts: I64s, most: int) -> I64s:
    """The number of events of each chain, but at most `most`."""
    found = np.empty(len(heads), np.int64)
    write_lengths(before, heads, firsts, most, found)
    return found


def walked(before: I64s, heads: I64s, firsts: I64s, count: int) -> tuple[I64s, I64s]:
    """The positions of all chains, which have `count` events together, and the chain of each."""
    positions, owners = np.empty(count, np.int64), np.empty(count, np.int64)
    walk(before, heads, firsts, positions, owners)
    return positions, owners


class KeyChains:
    """The chains of one column."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.floor = 0
        """The events before this position left."""
        self._changes = -1
        self._before = GrowingArray(np.int64)
        self._packed_of: tuple[Table | None, I64s | None] = None, None
        self._forget(0, _SMALLEST)

    def _forget(self, first: int, places: int) -> None:
        self.table = Table(np.zeros(places, np.int64), np.zeros(places, np.int64), np.zeros(places, np.int64))
        self._used, self._done = 0, first

    def follow(self, end: int) -> I64s:
        """Enter the events up to a position. Returns the position before each event, with its key."""
        if self._done >= end and self._changes == self.column.changes:
            return self.before
        first = self.floor
        if self._changes != self.column.changes:
            self._changes = self.column.changes
            self._forget(first, len(self.table.keys))  # About as many keys as before.
        self._done = max(self._done, first)
        self._before.grow(max(end - len(self._before), 0), fill=NOBODY)
        before = self.before
        while self._done < end:
            self._done, self._used = enter(
                self.table, before, self.column.domains, self.column.keys, self._done, end, self._used
            )
            if self._done < end:
                self._grow(first)
        return before

    def _grow(self, first: int) -> None:
        """Make the table again, for the living events alone, with room for as many again."""
        latest = self.table.latest[(self.table.domains != MISSING) & (self.table.latest >= first)]
        places = _SMALLEST
        while places < 4 * (len(latest) + 1):
            places *= 2
        done = self._done
        self._forget(first, places)
        nobody, keys = np.empty(len(latest), np.int64), self.column.keys[latest]
        _, self._used = enter(self.table, nobody, self.column.domains[latest], keys, 0, len(latest), 0)
        taken = self.table.domains != MISSING
        self.table.latest[taken] = latest[self.table.latest[taken]]
        self._done = done

    def drop(self, count: int) -> None:
        """Forget the first positions. The others move down."""
        if self._done < count:
            self._forget(0, len(self.table.keys))
            return
        self._before.drop(count)
        self._before.view()[:] -= count
        self.table.latest[:] -= count
        self._done -= count

    def is_valid(self) -> bool:
        """Whether the events that were entered have the same keys and positions."""
        return self._changes == self.column.changes

    @property
    def before(self) -> I64s:
        """The position of the event before each event, with its key."""
        view: I64s = self._before.view()
        return view

    @property
    def packed(self) -> Packed:
        """`ChainArrays`, packed, with the room behind `before`. They hold until events are entered or dropped."""
        table, before = self._packed_of
        if table is not self.table or before is not self._before.data:
            self._packed = packed_fields(ChainArrays(self.table, self._before.data))
            self._packed_of = self.table, self._before.data
        return self._packed

    @property
    def end(self) -> int:
        """The position behind the last event that was entered."""
        return self._done

    def latest(self, domain: int, key: int, end: int) -> int:
        """The position of the latest event with a key before position `end`, or NOBODY. It may have left."""
        return latest_of(self.packed, domain, key, end)

    def length(self, domain: int, key: int, first: int, end: int, most: int) -> int:
        """The number of events with a key between two positions, but at most `most`."""
        return int(length(self.before, self.latest(domain, key, end), first, most))

    def positions(self, domain: int, key: int, first: int, end: int) -> I64s:
        """The positions of the events with a key between two positions, the latest first."""
        head, firsts = np.array([self.latest(domain, key, end)]), np.array([first])
        count = int(lengths(self.before, head, firsts, end)[0])
        return walked(self.before, head, firsts, count)[0]

    def few(self, domain: int, key: int, first: int, end: int, most: int) -> I64s | None:
        """The same, if there are at most `most` events."""
        found = np.empty(most, np.int64)
        count = walk_back(self.table, self.before, domain, key, first, end, found)
        return found[:count] if count <= most else None
