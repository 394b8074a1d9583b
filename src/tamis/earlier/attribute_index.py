"""The values that the events of one history have for one attribute, in order.

A comparison of a new event with an earlier value y holds if y lies in certain ranges: `price < y` holds for all y above the
price. So ANY asks whether some key lies in the ranges, and ALL whether some key lies outside of them. Most answers follow from
the lowest and the highest key alone. Others take a binary search in each block that may have a key in the range.

An event enters by its place in the column. Blocks get their summaries, and their keys an order, when a join first needs them. So
an event that no join looks at costs nothing here. Summarizing takes 3 ns an event, ordering takes 50 ns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.earlier.block_summary import (
    BLOCK,
    HIGH,
    HIGH_AT,
    LOW,
    LOW_AT,
    NOWHERE,
    OF_DOMAIN,
    SUMMARY,
    Line,
    Summaries,
    find,
    summarize,
    summarize_blocks,
)
from tamis.earlier.column import Column
from tamis.earlier.key_chains import KeyChains
from tamis.earlier.key_ranges import DOMAINS, MISSING, ODD, KeyRange, outside
from tamis.kernels.numbers import Bools, I64s
from tamis.language.evaluate import Truth, conjunction, disjunction
from tamis.language.operators import Quantifier

_NOTHING = np.zeros(0, np.int64)
_ALL_OF_THEM = 2**62
_MANY = 1024
_OF_DOMAINS = range(1, ODD)
"""The domains whose values have keys."""

Wanted = dict[int, list[KeyRange]]
"""The keys that satisfy a comparison, by domain. Values of a domain that is not there cannot be compared."""


class AttributeIndex:
    """The values of one attribute in a line of events."""

    def __init__(self, column: Column, *, block: int = BLOCK) -> None:
        self.column = column
        self._size = block
        self.changes = column.changes
        self._by = Summaries(_NOTHING, _NOTHING, _NOTHING)
        self._blocks, self._ordered = 0, 0
        self._stale: set[int] = set()
        """Blocks that an event left early."""
        self._line = Line(np.zeros(0, np.int8), _NOTHING, np.zeros(0, np.uint8), 0, 0)
        self._summary = np.zeros(SUMMARY, np.int64)
        self._numbers: list[int] = [NOWHERE] * SUMMARY
        """The same as a list."""
        self._present: list[tuple[int, int, int]] = []
        self._chains: KeyChains | None = None
        """Look-ups of single keys, if events leave in order of arrival."""
        self.counts: list[int] = []
        """The number of events of each domain."""

    def forget(self) -> None:
        """Forget all blocks, since positions changed."""
        self._blocks, self._ordered, self._numbers = 0, 0, [NOWHERE] * SUMMARY
        self._stale.clear()

    def drop(self, count: int) -> None:
        """Forget the first positions, a multiple of the size of a block. The others move down."""
        blocks = count // self._size
        if blocks > self._blocks:
            self.forget()
            return
        numbers, sorted_keys, places = self._by
        by = Summaries(numbers[SUMMARY * blocks :].copy(), sorted_keys[count:].copy(), places[count:] - count)
        for place in (LOW_AT, HIGH_AT):
            by.numbers[place::OF_DOMAIN] -= count
        for at in range(0, SUMMARY, OF_DOMAIN):
            self._numbers[at + LOW_AT] -= count
            self._numbers[at + HIGH_AT] -= count
        self._by, self._blocks, self._ordered = by, self._blocks - blocks, max(self._ordered - blocks, 0)
        self._stale = {block - blocks for block in self._stale if block >= blocks}

    def left_early(self, position: int) -> None:
        """Note that an event left while an earlier one stays."""
        self._stale.add(position // self._size)

    def follow(self, line: Line, chains: KeyChains | None = None) -> None:
        """Take the present line, and chains of its keys if there are any."""
        self._chains = chains
        self._cover(line)
        summarize(line, self._size, self._blocks, self._by.numbers, self._summary)
        self._numbers = numbers = self._summary.tolist()
        self.counts = numbers[::OF_DOMAIN]
        self._present = [
            (domain, numbers[OF_DOMAIN * domain + LOW], numbers[OF_DOMAIN * domain + HIGH])
            for domain in _OF_DOMAINS
            if self.counts[domain]
        ]

    def core(self, line: Line) -> I64s:
        """The summary of a line. To ask for more, `follow` a line first."""
        summary = np.empty(SUMMARY, np.int64)
        self._cover(line)
        summarize(line, self._size, self._blocks, self._by.numbers, summary)
        return summary

    def _cover(self, line: Line) -> None:
        """Take a line, and let its blocks have summaries."""
        if self.changes != self.column.changes:
            self.forget()
            self.changes = self.column.changes
        self._line = line
        blocks = line.end // self._size
        if blocks > self._blocks or self._stale:
            self._summarize(blocks)

    def is_shown(self, domain: int, wanted: KeyRange, inside: bool, first: int) -> bool:
        """Whether the event that had the lowest or the highest key is there, and this key is `inside` of a range, or is not.

        The line may have other events since `follow` was called, from position `first` on, and no gaps.
        """
        (lo, hi), numbers, at = wanted, self._numbers, OF_DOMAIN * domain
        return (numbers[at + LOW_AT] >= first and (lo <= numbers[at + LOW] <= hi) is inside) or (
            numbers[at + HIGH_AT] >= first and (lo <= numbers[at + HIGH] <= hi) is inside
        )

    def _summarize(self, blocks: int) -> None:
        """Summarize new blocks, and those that an event left early."""
        if SUMMARY * blocks > len(self._by.numbers):
            room = blocks + blocks // 2 + 1
            by = Summaries(
                np.empty(SUMMARY * room, np.int64),
                np.empty(self._size * room, np.int64),
                np.empty(self._size * room, np.int64),
            )
            by.numbers[: SUMMARY * self._blocks] = self._by.numbers[: SUMMARY * self._blocks]
            ordered = self._size * self._ordered
            by.sorted_keys[:ordered], by.places[:ordered] = self._by.sorted_keys[:ordered], self._by.places[:ordered]
            self._by = by
        for block in self._stale:
            summarize_blocks(self._line, self._size, block, min(block + 1, self._blocks), self._by.numbers)
        self._stale.clear()
        summarize_blocks(self._line, self._size, self._blocks, blocks, self._by.numbers)
        self._blocks = max(blocks, self._blocks)

    def _order(self) -> None:
        """Order the keys of the blocks that have summaries only."""
        size = self._size
        start = self._ordered
        if start < self._blocks:
            keys = self._line.keys[start * size : self._blocks * size].reshape(-1, size)
            order = np.argsort(keys, axis=1, kind="stable")
            part = slice(start * size, self._blocks * size)
            self._by.sorted_keys[part] = np.take_along_axis(keys, order, axis=1).ravel()
            self._by.places[part] = (order + (np.arange(start, self._blocks) * size)[:, None]).ravel()
        self._ordered = self._blocks

    def _find(self, domain: int, lo: int, hi: int, most: int, found: I64s) -> int:
        self._order()
        return int(find(self._line, self._size, self._blocks, self._by, domain, lo, hi, most, found))

    def has(self, domain: int, lo: int, hi: int) -> bool:
        """Whether some event of a domain has a key between two keys, or one of them."""
        for present, low, high in self._present:
            if present == domain:
                if high < lo or low > hi or lo > hi:
                    return False
                if lo <= low or high <= hi:
                    return True
                if lo == hi and self._chains is not None:
                    self._chains.follow(self._line.end)
                    return self._chains.latest(domain, lo, self._line.end) >= self._line.first
                return self._find(domain, lo, hi, 1, _NOTHING) > 0
        return False

    def truth(self, quantifier: Quantifier, wanted: Wanted, *, negated: bool) -> Truth:
        """The truth of a comparison with all events that are not odd. `negated`: it holds for keys that are not wanted."""
        yes = no = False
        unknown = self.counts[MISSING] > 0
        for domain, low, high in self._present:
            ranges = wanted.get(domain)
            if ranges is None:
                unknown = True
            elif len(ranges) == 1:
                [(lo, hi)] = ranges
                yes = yes or self.has(domain, lo, hi)
                no = no or low < lo or high > hi or lo > hi
            else:
                yes = yes or any(self.has(domain, *each) for each in ranges)
                no = no or any(self.has(domain, *each) for each in outside(ranges))
        if negated:
            yes, no = no, yes
        truths = [truth for truth, there in ((True, yes), (False, no), (None, unknown)) if there]
        return disjunction(truths) if quantifier is Quantifier.ANY else conjunction(truths)

    def count(self, wanted: Wanted) -> int:
        """About how many events `candidates` gives. More than a thousand with one key count as a thousand."""
        return self.counts[ODD] + sum(
            self._count(domain, lo, hi)
            for domain, _, _ in self._present
            for lo, hi in wanted.get(domain, ())
            if lo <= hi
        )

    def _count(self, domain: int, lo: int, hi: int) -> int:
        if lo == hi and self._chains is not None:
            self._chains.follow(self._line.end)
            return self._chains.length(domain, lo, self._line.first, self._line.end, _MANY)
        return self._find(domain, lo, hi, _ALL_OF_THEM, _NOTHING)

    def candidates(self, wanted: Wanted) -> I64s:
        """The positions of the events with a value in the ranges, and of odd events. A position may come twice."""
        found = [self.odd()] if self.counts[ODD] else []
        for domain, _, _ in self._present:
            for lo, hi in wanted.get(domain, ()):
                if lo == hi and self._chains is not None:
                    self._chains.follow(self._line.end)
                    found.append(self._chains.positions(domain, lo, self._line.first, self._line.end))
                elif lo <= hi:
                    positions = np.empty(self._find(domain, lo, hi, _ALL_OF_THEM, _NOTHING), np.int64)
                    self._find(domain, lo, hi, _ALL_OF_THEM, positions)
                    found.append(positions)
        return np.concatenate(found) if found else _NOTHING

    def few(self, wanted: Wanted, most: int) -> I64s | None:
        """`candidates` for a single key, if there are chains and at most `most` events have the key."""
        if self._chains is None or self.counts[ODD]:
            return None
        found: I64s | None = None
        for domain, low, high in self._present:
            for lo, hi in wanted.get(domain, ()):
                if low <= lo <= high or low <= hi <= high:
                    if lo != hi or found is not None:
                        return None
                    self._chains.follow(self._line.end)
                    found = self._chains.few(domain, lo, self._line.first, self._line.end, most)
                    if found is None:
                        return None
                elif lo < low and hi > high:
                    return None
        return _NOTHING if found is None else found

    def odd(self) -> I64s:
        """The positions of odd events."""
        line = self._line
        is_odd = line.domains[line.first : line.end] == ODD
        if len(line.alive):
            is_odd = is_odd & (line.alive[line.first : line.end] != 0)
        return np.flatnonzero(is_odd) + line.first


def holds(column: Column, positions: I64s, wanted: Wanted, *, negated: bool) -> tuple[Bools, Bools]:
    """Whether each event satisfies a comparison, and whether it is odd. The comparison is not TRUE of odd ones here."""
    domains, keys = column.domains[positions], column.keys[positions]
    satisfied = np.zeros(len(positions), np.bool_)
    for domain, ranges in wanted.items():
        of_domain = domains == domain
        if not of_domain.any():
            continue
        inside: Any = np.zeros(len(positions), np.bool_)
        for lo, hi in ranges:
            inside |= (keys >= lo) & (keys <= hi)
        satisfied |= of_domain & (~inside if negated else inside)
    return satisfied, domains == ODD


assert MISSING == 0
assert DOMAINS == ODD + 1
