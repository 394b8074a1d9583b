"""The events of one history, and the truth of joins with them.

Without a key there is one history, whose events are the log itself (`Window`). With a key, each history is a list of numbers
(`Shelf`). A short one is gathered from the columns for each event that asks: so a million keys with ten events each have no
indexes. A long one keeps its values, in an index for each attribute.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Collection
from typing import Any

import numpy as np

from tamis.earlier.attribute_index import AttributeIndex
from tamis.earlier.block_summary import BLOCK, Line
from tamis.earlier.column import Column
from tamis.earlier.event_log import EventLog
from tamis.earlier.key_chains import KeyChains
from tamis.earlier.key_ranges import KeyRange
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import I64s

FEW = 64
"""Events of a history that are gathered for each event that asks. Gathering 16 to 256 took as long as following an index,
within 5 %."""
_ALL = np.zeros(0, np.uint8)


class Events(ABC):
    """The events of one history."""

    def __init__(self, log: EventLog, block: int) -> None:
        self.log, self.block = log, block

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def numbers(self) -> I64s:
        """The numbers of the events, in order of arrival."""

    @abstractmethod
    def positions(self) -> I64s:
        """The positions of all events, as indexes count them."""

    @abstractmethod
    def index(self, attribute: str) -> AttributeIndex:
        """The present values of an attribute."""

    def chained(self, column: Column) -> tuple[KeyChains, int, int] | None:
        """Chains of equal keys, with the first position of the history and the one behind its last; None if there are none."""
        return None

    def chained_before(self, column: Column) -> tuple[KeyChains, int, int] | None:
        """`chained` as it is: the chains may lack the latest events."""
        return None

    def shows(self, column: Column, domain: int, wanted: KeyRange, inside: bool) -> bool:
        """Whether what was found for other events shows that an event has a key `inside` of a range, or one that is not.

        This needs no look at the events that came since. The column may lack them.
        """
        return False

    @abstractmethod
    def log_positions(self, positions: I64s) -> I64s:
        """The positions in the log of events at some positions of the indexes."""

    @abstractmethod
    def indexed(self) -> set[str]:
        """The attributes that have an index."""

    @abstractmethod
    def keep_indexes(self, attributes: Collection[str]) -> None:
        """Drop the indexes of all other attributes."""


class Window(Events):
    """The events of a log, from position `first` on."""

    def __init__(self, log: EventLog, block: int = BLOCK) -> None:
        super().__init__(log, block)
        self.first = 0
        """The number of the first event."""
        self.end = 0
        """The number behind the last event. The log may have more events, whose turn has not come."""
        self.count = 0
        self._indexes: dict[str, AttributeIndex] = {}
        self._chains: dict[str, KeyChains] = {}
        self._rewrites, self._dropped = log.rewrites, log.dropped

    def __len__(self) -> int:
        return self.count

    def _bounds(self) -> tuple[int, int]:
        return (self.log.position(self.first), self.log.position(self.end)) if self.count else (0, 0)

    def positions(self) -> I64s:
        positions, alive = np.arange(*self._bounds()), self.log.alive()
        return positions[alive[positions] != 0] if len(alive) else positions

    def numbers(self) -> I64s:
        return self.log.numbers(self.positions())

    def index(self, attribute: str) -> AttributeIndex:
        return self.followed(attribute, *self._bounds())

    def followed(self, attribute: str, first: int, end: int) -> AttributeIndex:
        """The values of an attribute between two positions."""
        column = self.log.column(attribute)
        index = self.index_of(column)
        alive = self.log.alive() if self.has_gaps() else _ALL
        index.follow(Line(column.domains, column.keys, alive, first, end), None if len(alive) else self.chains(column))
        return index

    def index_of(self, column: Column) -> AttributeIndex:
        """The index of a column, as it was asked for last."""
        self._follow_positions()
        index = self._indexes.get(column.attribute)
        if index is None or index.column is not column:
            index = self._indexes[column.attribute] = AttributeIndex(column, block=self.block)
        return index

    def _follow_positions(self) -> None:
        """Follow the log if positions changed."""
        if self._rewrites != self.log.rewrites:
            self._rewrites = self.log.rewrites
            for each in self._indexes.values():
                each.forget()
        dropped = self.log.dropped - self._dropped
        if dropped:
            for index in self._indexes.values():
                index.drop(dropped)
            for chains in self._chains.values():
                chains.drop(dropped)
            self._dropped = self.log.dropped

    def shows(self, column: Column, domain: int, wanted: KeyRange, inside: bool) -> bool:
        if self.log.gaps:
            return False
        self._follow_positions()
        first, end = self._bounds()
        index = self._indexes.get(column.attribute)
        is_valid = index is not None and index.column is column and index.changes == column.changes
        if index is not None and is_valid and index.is_shown(domain, wanted, inside, first):
            return True
        if not inside or wanted[0] != wanted[1]:
            return False
        chains = self._chains.get(column.attribute)
        if chains is None or chains.column is not column or not chains.is_valid():
            return False
        return chains.latest(domain, wanted[0], end) >= first

    def chained_before(self, column: Column) -> tuple[KeyChains, int, int] | None:
        chains = self._chains.get(column.attribute)
        if self.log.gaps or chains is None or chains.column is not column or not chains.is_valid():
            return None
        self._follow_positions()
        first, end = self._bounds()
        return chains, first, min(chains.end, end)

    def at(self, first: int, end: int) -> Events:
        """The events between two positions. There are no gaps."""
        return _Part(self, first, end)

    def has_gaps(self) -> bool:
        """Whether events left, or never came, between the first and the last one."""
        return self.log.gaps > 0

    def chained(self, column: Column) -> tuple[KeyChains, int, int] | None:
        if self.has_gaps():
            return None
        chains, (first, end) = self.chains(column), self._bounds()
        chains.follow(end)
        return chains, first, end

    def chains(self, column: Column) -> KeyChains:
        """Chains of equal keys. They are right if there are no gaps."""
        self._follow_positions()
        chains = self._chains.get(column.attribute)
        if chains is None or chains.column is not column:
            chains = self._chains[column.attribute] = KeyChains(column)
        chains.floor = self.log.position(self.first) if self.count else 0
        return chains

    def log_positions(self, positions: I64s) -> I64s:
        return positions

    def left_early(self, position: int) -> None:
        """Note that an event left while an earlier one stays."""
        self.log.gaps += 1
        for index in self._indexes.values():
            index.left_early(position)

    def indexed(self) -> set[str]:
        return set(self._indexes)

    def keep_indexes(self, attributes: Collection[str]) -> None:
        self._indexes = {name: index for name, index in self._indexes.items() if name in attributes}
        self._chains = {name: chains for name, chains in self._chains.items() if name in attributes}


class _Part(Window):
    """The events of a window between two positions."""

    def __init__(self, window: Window, first: int, end: int) -> None:
        super().__init__(window.log, window.block)
        self._window, self._part = window, (first, end)
        self.count = end - first

    def _bounds(self) -> tuple[int, int]:
        return self._part

    def index(self, attribute: str) -> AttributeIndex:
        return self._window.followed(attribute, *self._part)

    def chains(self, column: Column) -> KeyChains:
        return self._window.chains(column)


class _Gathered:
    """The values of one attribute for the events of a shelf."""

    def __init__(self, column: Column, block: int) -> None:
        self.index = AttributeIndex(column, block=block)
        self.domains, self.keys = GrowingArray(np.int8), GrowingArray(np.int64)
        self.changes = column.changes


class Shelf:
    """The numbers of the events that share a key."""

    __slots__ = ("first", "gathered", "last", "late", "listed")

    def __init__(self) -> None:
        self.listed = array("q")
        """Numbers, ascending. Those before place `first` left."""
        self.first = 0
        self.last: Any = None
        """The highest time so far."""
        self.late: list[tuple[Any, int]] | None = None
        """A heap of times and numbers, once an event came late."""
        self.gathered: dict[str, _Gathered] | None = None

    def __len__(self) -> int:
        return len(self.listed) - self.first

    def has(self, number: int) -> bool:
        """Whether an event is there."""
        place = bisect_left(self.listed, number, self.first)
        return place < len(self.listed) and self.listed[place] == number

    def leave(self, number: int) -> None:
        """Forget an event that is there."""
        listed = self.listed
        if listed[self.first] == number:
            self.first += 1
            if self.first > 8 and 2 * self.first > len(listed):
                del listed[: self.first]
                self.first = 0
                self.gathered = None
        else:
            del listed[bisect_left(listed, number, self.first)]
            self.gathered = None


class KeyedEvents(Events):
    """The events of one shelf, for one event that asks."""

    def __init__(self, log: EventLog, shelf: Shelf | None, few: int, block: int = BLOCK) -> None:
        super().__init__(log, block)
        self._shelf = Shelf() if shelf is None else shelf
        self._few = few
        self._indexes: dict[str, AttributeIndex] = {}
        self._positions: I64s | None = None

    def __len__(self) -> int:
        return len(self._shelf)

    def numbers(self) -> I64s:
        return np.array(self._shelf.listed[self._shelf.first :], np.int64)

    def positions(self) -> I64s:
        return np.arange(len(self)) + (0 if len(self) <= self._few else self._shelf.first)

    def log_positions(self, positions: I64s) -> I64s:
        if self._positions is None:
            self._positions = self.log.positions(self.numbers())
        first = 0 if len(self) <= self._few else self._shelf.first
        return self._positions[positions - first]

    def index(self, attribute: str) -> AttributeIndex:
        index = self._indexes.get(attribute)
        column = self.log.column(attribute)
        if index is None or index.changes != column.changes:
            index = self._gather(column) if len(self) <= self._few else self._kept(column)
            self._indexes[attribute] = index
        return index

    def _gather(self, column: Column) -> AttributeIndex:
        if self._positions is None:
            self._positions = self.log.positions(self.numbers())
        index = AttributeIndex(column, block=self.block)
        domains, keys = column.domains[self._positions], column.keys[self._positions]
        index.follow(Line(domains, keys, _ALL, 0, len(keys)))
        return index

    def _kept(self, column: Column) -> AttributeIndex:
        """The index of a long shelf, with the values of new events."""
        shelf = self._shelf
        if shelf.gathered is None:
            shelf.gathered = {}
        kept = shelf.gathered.get(column.attribute)
        if kept is None or kept.index.column is not column or kept.changes != column.changes:
            kept = shelf.gathered[column.attribute] = _Gathered(column, self.block)
        known = len(kept.domains)
        if known < len(shelf.listed):
            if known < shelf.first:  # Events that left have no values any more.
                kept.domains.grow(shelf.first - known, fill=0)
                kept.keys.grow(shelf.first - known, fill=0)
                known = shelf.first
            positions = self.log.positions(np.array(shelf.listed[known:], np.int64))
            kept.domains.extend(column.domains[positions])
            kept.keys.extend(column.keys[positions])
        line = Line(kept.domains.view(), kept.keys.view(), _ALL, shelf.first, len(shelf.listed))
        kept.index.follow(line)
        return kept.index

    def indexed(self) -> set[str]:
        return set(self._shelf.gathered or ())

    def keep_indexes(self, attributes: Collection[str]) -> None:
        if self._shelf.gathered is not None:
            kept = {name: each for name, each in self._shelf.gathered.items() if name in attributes}
            self._shelf.gathered = kept or None
        self._indexes = {}
