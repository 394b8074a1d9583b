"""The log: retained events in order of arrival, and columns of the attributes that joins ask about.

    number      17     18     21     22     23  |  24     25          never given twice
    position    0      1      2      3      4      5      6           counts the events that are there, or left lately
    alive       1      1      0      1      1
                [  chunk  ]  [     chunk    ]      [ waiting ]

Single events wait in a list and are packed together. When a third of all events are dead, the log is written again without them.
Then positions change, and numbers do not.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate

import numpy as np

from tamis.earlier.alike import AlikeEvents
from tamis.earlier.chunks import Chunk, LeftEvents, ListedEvents, LogEvent, packed, values_of
from tamis.earlier.column import Column, Given
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import Bools, I64s, U8s
from tamis.language.event import FlatEvent

WAITING = 1024
"""Single events that are packed together."""
_AT_A_GLANCE = 256
"""Waiting events of which looking at one value takes less time than reading columns."""
_SPARE = 2048
"""Dead events that are not worth a new log."""
_FEW_FOR_A_CHUNK = 64
"""Chunks with fewer events are joined with others when the log is written again."""


class EventLog:
    """Events by number, and columns of their attributes by position."""

    def __init__(self) -> None:
        self.rewrites = 0
        """How often positions changed."""
        self.dropped = 0
        """How many positions `drop_left` has dropped. The others count from 0 again."""
        self.gaps = 0
        """Events that left while an earlier one stays, or that never came. Writing the log again closes the gaps."""
        self.columns: dict[str, Column] = {}
        self._numbers: GrowingArray | None = None
        """The number of each position, or None if numbers count on from `_first` without gaps."""
        self._first = 0
        self._alive = GrowingArray(np.uint8)
        self._dead = 0
        self._chunks: list[Chunk] = []
        self._starts: list[int] = []
        """The first position of each chunk."""
        self._packed = 0
        """Events in chunks."""
        self._behind_packed = 0
        """The number behind the last event in chunks."""
        self._released = 0
        """The first chunks, whose events all left."""
        self.waiting: list[LogEvent] = []
        """The events that are not packed yet. To append one here takes it in. Then `pack` is due from WAITING events on."""
        self.left: array[int] | None = None
        """The numbers of events that left, if somebody follows them. Writing the log again forgets them."""

    def __len__(self) -> int:
        """The number of positions."""
        return self._packed + len(self.waiting)

    @property
    def next(self) -> int:
        """The number of the next event."""
        return self._behind_packed + len(self.waiting)

    @property
    def nbytes(self) -> int:
        """The bytes of packed events and columns."""
        columns = sum(column.nbytes for column in self.columns.values())
        numbers = 0 if self._numbers is None else self._numbers.nbytes
        return sum(chunk.nbytes for chunk in self._chunks) + columns + numbers + self._alive.nbytes

    def append(self, event: LogEvent) -> int:
        """Take in one event; returns its number."""
        number = self.next
        self.waiting.append(event)
        if len(self.waiting) >= WAITING:
            self.pack()
        return number

    def extend(self, chunk: Chunk) -> int:
        """Take in events; returns the number of the first one. `settle` must follow, when it is known which of them stay."""
        self.pack()
        first = self.next
        self._take(chunk)
        return first

    def pack(self) -> None:
        """Pack the events that wait."""
        waiting, first = self.waiting, self._behind_packed
        if waiting:
            for column in self.columns.values():
                seen = column.count - self._packed
                if 0 < seen < len(waiting):
                    column.append(values_of(waiting[seen:], column.attribute), range(first + seen, self.next))
            self.waiting = []
            self._take(ListedEvents(waiting))

    def _take(self, chunk: Chunk) -> None:
        count, first = len(chunk), self._behind_packed
        self._behind_packed += count
        if not count:
            return
        kept = packed(chunk.listed) if isinstance(chunk, ListedEvents) else chunk
        # Groups of events would have to be read.
        self._fill(kept if isinstance(kept, AlikeEvents) else chunk, self._packed, first)
        self._chunks.append(kept)
        self._starts.append(self._packed)
        self._note(first, count)
        self._packed += count

    def _note(self, first: int, count: int) -> None:
        """Note the numbers of new positions."""
        if self._packed == 0:
            self._first, self._numbers = first, None
        self._cover(self._packed + count)
        if self._numbers is not None:
            self._numbers.grow(count)[:] = np.arange(first, first + count)
        elif self._first + self._packed != first:
            before = np.arange(self._first, self._first + self._packed)
            self._numbers = GrowingArray.of(np.append(before, np.arange(first, first + count)))

    def _cover(self, positions: int) -> None:
        """Make `_alive` at least this long."""
        self._alive.grow(max(positions - len(self._alive), 0), fill=1)

    def _fill(self, chunk: Chunk, start: int, first: int) -> None:
        """Let the columns read a chunk, unless they have seen its events while they waited."""
        numbers = np.arange(first, first + len(chunk))
        for column in self.columns.values():
            if column.count == start:
                chunk.fill(column, numbers)

    def column(self, attribute: str) -> Column:
        """The values of an attribute for all events."""
        column, waiting = self.columns.get(attribute), len(self.waiting)
        if column is not None and column.count == self._packed + waiting:
            return column
        if column is None:
            column = Column(attribute)
            for start, chunk in zip(self._starts, self._chunks, strict=True):
                chunk.fill(column, self.numbers(np.arange(start, start + len(chunk))))
            self.columns[attribute] = column
        seen = column.count - self._packed
        if seen < waiting:
            numbers = range(self._behind_packed + seen, self.next)
            column.append(values_of(self.waiting[seen:], attribute), numbers)
        return column

    def may_have(self, attribute: str, value: Given, start: int) -> bool:
        """Whether some event from a position on may have a value. It may not, if this is seen at a glance."""
        waiting, seen = self.waiting, start - self._packed
        if seen < 0 or len(waiting) - seen > _AT_A_GLANCE:
            return True
        values = values_of(waiting[seen:], attribute)
        return value in values or tuple in set(map(type, values))

    def keep_columns(self, attributes: Collection[str]) -> None:
        """Drop the columns of all other attributes."""
        self.columns = {name: column for name, column in self.columns.items() if name in attributes}

    # -- numbers and positions

    def alive(self) -> U8s:
        """Whether the event of each position is alive; an array of no length if all are."""
        if not self._dead:
            return _ALL
        self._cover(len(self))
        return self._alive.view()

    def next_alive(self, position: int, end: int) -> int:
        """The number of the first living event behind a position, or `end` if there is none before this number."""
        self._cover(len(self))
        alive, stop = self._alive.view(), self.position(end)
        while position < stop and not alive[position]:
            position += 1
        return self.number(position) if position < stop else end

    def number(self, position: int) -> int:
        """The number of a position."""
        if self._numbers is None or position >= self._packed:
            return self._behind_packed - self._packed + position
        return int(self._numbers.view()[position])

    def position(self, number: int) -> int:
        """The position of an event, or of the next one if it is not there."""
        if self._numbers is None or number >= self._behind_packed:
            return max(0, self._packed - self._behind_packed + number)
        return int(np.searchsorted(self._numbers.view(), number))

    def positions(self, numbers: I64s) -> I64s:
        """The positions of events that are there."""
        behind = self._packed - self._behind_packed
        if self._numbers is None:
            return numbers + behind
        packed = self._numbers.view()
        found = np.searchsorted(packed, numbers)
        return np.where(found < len(packed), found, numbers + behind)

    def numbers(self, positions: I64s) -> I64s:
        """The numbers of some positions."""
        if self._numbers is None:
            return positions + (self._behind_packed - self._packed)
        packed = self._numbers.view()
        inside = np.minimum(positions, len(packed) - 1)
        return np.where(positions < len(packed), packed[inside], positions + (self._behind_packed - self._packed))

    def events(self, positions: I64s) -> list[FlatEvent]:
        """Some events in their normal form. Positions ascend."""
        found: list[FlatEvent] = []
        bounds = [*self._starts, self._packed]
        cuts = np.searchsorted(positions, bounds).tolist()
        for place, chunk in enumerate(self._chunks):
            if cuts[place] < cuts[place + 1]:
                found += chunk.events((positions[cuts[place] : cuts[place + 1]] - self._starts[place]).tolist())
        waiting = (positions[cuts[-1] :] - self._packed).tolist()
        return found + ListedEvents(self.waiting).events(waiting)

    # -- leaving

    def leave(self, number: int) -> int:
        """Note that an event left; returns its position."""
        position = self.position(number)
        self._cover(position + 1)
        self._alive.view()[position] = 0
        self._dead += 1
        if self.left is not None:
            self.left.append(number)
        return position

    def leave_before(self, position: int) -> None:
        """Note that all events before a position left."""
        self._cover(position)
        alive = self._alive.view()[:position]
        self._dead += int(np.count_nonzero(alive))
        alive[:] = 0

    def release_before(self, position: int) -> None:
        """Free the memory of chunks before a position, all of whose events left.

        One chunk at a time: memory that is freed together is returned to the system, and getting it back takes time.
        """
        while (
            self._released < len(self._chunks)
            and self._starts[self._released] + len(self._chunks[self._released]) <= position
        ):
            self._chunks[self._released] = LeftEvents(len(self._chunks[self._released]))
            self._released += 1

    def drop_left(self, unit: int) -> int:
        """Drop the positions of released chunks, a multiple of `unit`; returns how many. All other positions move down."""
        start = self._starts[self._released] if self._released < len(self._chunks) else self._packed
        count = start - start % unit
        if not count:
            return 0
        chunks, self._released = self._chunks[self._released :], 0
        if start > count:
            chunks, self._released = [LeftEvents(start - count), *chunks], 1
        self._chunks, self._starts = chunks, list(accumulate(map(len, chunks), initial=0))[:-1]
        self._cover(count)
        self._dead -= count - int(np.count_nonzero(self._alive.view()[:count]))
        self._alive.drop(count)
        if self._numbers is not None:
            self._numbers.drop(count)
        self._first += count
        self._packed -= count
        for column in self.columns.values():
            column.drop(count, self.number(0))
        self.dropped += count
        return count

    def cut(self, number: int) -> None:
        """Forget the events from a number on, which the last `extend` took in."""
        position = self.position(number)
        self._dead -= int(np.count_nonzero(self._alive.view()[position:] == 0))
        self._alive = GrowingArray.of(self._alive.view()[:position].copy())
        if self._numbers is not None:
            self._numbers = GrowingArray.of(self._numbers.view()[:position].copy())
        for column in self.columns.values():
            column.cut(position, number)
        self._behind_packed, self._packed = number, position
        rows = np.arange(position - self._starts[-1])
        if len(rows):
            self._chunks[-1] = self._chunks[-1].keep(rows)
        else:
            del self._chunks[-1], self._starts[-1]
        self._changed_positions()

    def settle(self) -> None:
        """Copy the events that the last `extend` took in. Those that left meanwhile go, if they are many."""
        if self.is_due():
            self.rewrite()
        elif self._chunks:
            self._chunks[-1] = self._chunks[-1].keep(np.arange(len(self._chunks[-1])))

    def is_due(self) -> bool:
        """Whether the log should be written again, without the dead."""
        return self.is_worth(self._dead)

    def is_worth(self, dead: int) -> bool:
        """Whether this number of dead events is worth a new log."""
        return dead > _SPARE + len(self) // 3

    def rewrite(self) -> None:
        """Write the log again, without most of the dead. Positions change."""
        self.pack()
        alive = self._alive.view() != 0
        kept = self._worth_keeping(alive)
        numbers = self.numbers(np.arange(self._packed))
        self._chunks, self._released = list(_with_only(self._chunks, kept)), 0
        self._starts = list(accumulate(map(len, self._chunks[:-1]), initial=0)) if self._chunks else []
        self._packed = sum(map(len, self._chunks))
        gone, numbers = numbers[~kept], numbers[kept]
        for column in self.columns.values():
            column.keep(kept, gone)
        self._alive = GrowingArray.of(self._alive.view()[kept])
        self._dead = int(np.count_nonzero(self._alive.view() == 0))
        # Without gaps, up to the last event?
        is_dense = not len(numbers) or self.next - numbers[0] == len(numbers)
        self._numbers = None if is_dense else GrowingArray.of(numbers)
        self._first = self.next - len(numbers)
        self.gaps = self._dead if self.gaps else 0
        self._changed_positions()

    def _changed_positions(self) -> None:
        self.rewrites += 1
        if self.left is not None:
            self.left = array("q")

    def _worth_keeping(self, alive: Bools) -> Bools:
        """The living events, and dead ones of chunks that are not worth a new chunk."""
        kept = alive.copy()
        living = np.count_nonzero(alive)
        for start, chunk in zip(self._starts, self._chunks, strict=True):
            part = slice(start, start + len(chunk))
            dead = len(chunk) - np.count_nonzero(alive[part])
            if 0 < dead < len(chunk) and (4 * dead < len(chunk) if self.gaps else 3 * dead < living):
                kept[part] = True
        return kept


def _with_only(chunks: Sequence[Chunk], kept: Bools) -> Iterator[Chunk]:
    """Chunks with only some events, of which small ones are joined."""
    small: list[FlatEvent] = []
    start = 0
    for chunk in chunks:
        rows = np.flatnonzero(kept[start : start + len(chunk)])
        start += len(chunk)
        is_small = len(rows) < _FEW_FOR_A_CHUNK
        if is_small:
            small += chunk.events(rows.tolist())
        if small and (not is_small or len(small) >= WAITING):
            yield packed(small)
            small = []
        if not is_small:
            yield chunk.keep(rows)
    if small:
        yield packed(small)


_ALL = np.zeros(0, np.uint8)
