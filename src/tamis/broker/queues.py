"""The queues: the notes of each subscriber, found without touching those of others.

The tables have the truth: which subscriptions each event was told to. The queues sort that by subscriber. New notes lie in a
dictionary by subscriber, the *tail*. A full tail becomes a block, and blocks of one size are merged into a larger one, as in an
LSM tree. So reading asks a few dozen blocks, however many notes there are.

    tables    event 40 -> subscriptions 12, 31     event 41 -> 12 ...
    blocks    [ subscriber 3: events 40, 41, 44 | subscriber 8: event 40 | ... ]  [ ... ]  [ ... ]
    tail      { 3: [note, note], 9: [note] }

The caller holds the broker's lock. `housekeeping` merges blocks and writes them to files, in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tamis.broker.limits import BrokerLimits
from tamis.broker.queue_block import Block, Span, Told, told_block
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import I64s


class QueuedNote(NamedTuple):
    """A note as the queues know it: numbers, no names."""

    sequence: int
    event: int
    moment: int
    subscriptions: tuple[int, ...]


class _TailNote(NamedTuple):
    event: int
    moment: int
    subscriptions: tuple[int, ...]


class Queues:
    """The notes of all subscribers."""

    def __init__(self, limits: BrokerLimits, blocks: Sequence[Block] = ()) -> None:
        self.blocks = list(blocks)
        self.made = 0
        """How many blocks were made here."""
        self._most_in_tail = limits.notes_in_tail
        self._fan = limits.blocks_to_merge
        self._tail: dict[int, list[_TailNote]] = {}
        self._in_tail = 0
        self._counts = GrowingArray(np.int64)
        """By subscriber: the number of the last note in a block, also if the block is gone."""
        for block in self.blocks:
            self._make_room(int(block.subscriber.max(initial=-1)))
            self._counts.view()[block.subscriber] = block.last
        self._end = self.blocks[-1].span.end if self.blocks else (0, 0)
        self._tail_start = self._end

    def __len__(self) -> int:
        """Numbers below this are known subscribers."""
        return len(self._counts)

    @property
    def end(self) -> tuple[int, int]:
        """The last event and the last meeting whose notes are here."""
        return self._end

    @property
    def notes(self) -> int:
        """How many notes are here."""
        return self._in_tail + sum(block.notes for block in self.blocks)

    def know(self, subscriber: int, count: int = 0) -> None:
        """Make room for a subscriber that has had `count` notes or more."""
        self._make_room(subscriber)
        self._counts.view()[subscriber] = max(count, self._counts.view()[subscriber])

    def _make_room(self, subscriber: int) -> None:
        self._counts.grow(max(0, subscriber + 1 - len(self._counts)), fill=0)

    def tell(self, told: Told, end: tuple[int, int]) -> None:
        """Add the notes of one commit. `end` is the last event and the last meeting of the commit."""
        if len(told.name) > self._most_in_tail // 4:
            self.flush()
            self._add(told_block(told, Span(*self._tail_start, *end), self._counts.view()))
            self._end = self._tail_start = end
            return
        self.tell_few(sorted(zip(*(column.tolist() for column in told), strict=True)), end)

    def tell_few(self, rows: Sequence[tuple[int, int, int, int]], end: tuple[int, int]) -> None:
        """Add few notes of one commit: the rows of `Told`, sorted."""
        self._append(rows)
        self._end = end
        if self._in_tail >= self._most_in_tail:
            self.flush()

    def reach(self, end: tuple[int, int]) -> None:
        """Note that nobody was told of the events and meetings up to `end`, or that these have left the tables."""
        self._end = end

    def _append(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        names: list[int] = []
        for place, (subscriber, event, name, moment) in enumerate(rows):
            names.append(name)
            if place + 1 == len(rows) or rows[place + 1][:2] != (subscriber, event):
                self._tail.setdefault(subscriber, []).append(_TailNote(event, moment, tuple(names)))
                self._in_tail += 1
                names = []

    def flush(self) -> None:
        """Make a block of the tail. It says how far the queues go, also if it has no notes."""
        if self._end != self._tail_start:
            self._add(_tail_block(self._tail, Span(*self._tail_start, *self._end), self._counts.view()))
            self._tail, self._in_tail, self._tail_start = {}, 0, self._end

    def _add(self, block: Block) -> None:
        self._counts.view()[block.subscriber] = block.last
        self.blocks.append(block)
        self.made += 1

    def due(self) -> list[Block]:
        """Blocks that should become one; none if no merge is due."""
        for place in range(len(self.blocks) - self._fan, -1, -1):
            alike = self.blocks[place : place + self._fan]
            if alike[0].notes <= self._fan * max(1, min(block.notes for block in alike)):
                return alike
        return []

    def replace(self, old: Sequence[Block], new: Block) -> None:
        """Replace blocks that follow each other by one block."""
        place = next(place for place, block in enumerate(self.blocks) if block is old[0])
        self.blocks[place : place + len(old)] = [new]
        self.made += 1

    def total(self, subscriber: int) -> int:
        """The number of a subscriber's last note; 0 if there is none."""
        return int(self._counts.view()[subscriber]) + len(self._tail.get(subscriber, ()))

    def last_numbers(self) -> I64s:
        """By subscriber: the number of the last note in a block."""
        return self._counts.view().copy()

    def last_numbers_with_tail(self) -> I64s:
        """By subscriber: the number of the last note."""
        found = self.last_numbers()
        for subscriber, notes in self._tail.items():
            found[subscriber] += len(notes)
        return found

    def read(self, subscriber: int, after: int, most: int) -> list[QueuedNote]:
        """The next notes of a subscriber after a number, at most `most`."""
        found: list[QueuedNote] = []
        for block in self.blocks:
            stretch = block.stretch(subscriber)
            start = stretch.skipped(after)
            end = min(stretch.end, start + most - len(found))
            if start < end:
                found += _notes(block, start, end, stretch.last - (stretch.end - 1 - start))
            if len(found) == most:
                return found
        number = int(self._counts.view()[subscriber])
        skipped = max(0, after - number)
        for place, note in enumerate(self._tail.get(subscriber, [])[skipped : skipped + most - len(found)]):
            found.append(QueuedNote(number + skipped + place + 1, *note))
        return found

    def last_before(self, subscriber: int, moment: int) -> int:
        """The number of the last note that was told before a moment; 0 if there is none."""
        number = int(self._counts.view()[subscriber])
        tail = self._tail.get(subscriber, [])
        for place in range(len(tail) - 1, -1, -1):
            if tail[place].moment < moment:
                return number + place + 1
        for block in reversed(self.blocks):
            stretch = block.stretch(subscriber)
            before = int(np.searchsorted(block.moment[stretch.start : stretch.end], moment))
            if before:
                return stretch.last - (stretch.end - stretch.start - before)
            number = stretch.last - (stretch.end - stretch.start) if stretch.end > stretch.start else number
        return number

    def told_to(self, subscriber: int, subscription: int) -> I64s:
        """The events that one of its subscriptions was told about."""
        found = []
        for block in self.blocks:
            start, end, _ = block.stretch(subscriber)
            low, high = block.name_start[start], block.name_start[end]
            names = low + np.flatnonzero(block.name[low:high] == subscription)
            found.append(block.event[np.searchsorted(block.name_start, names, "right") - 1])
        later = [note.event for note in self._tail.get(subscriber, ()) if subscription in note.subscriptions]
        return np.concatenate([*found, np.array(later, np.int64)])

    def keep(self, chosen: Callable[[Block], Block]) -> None:
        """Replace all blocks."""
        self.flush()
        self.blocks = [chosen(block) for block in self.blocks]


def _notes(block: Block, start: int, end: int, number: int) -> Iterator[QueuedNote]:
    names = block.name_start[start : end + 1].tolist()
    events, moments = block.event[start:end].tolist(), block.moment[start:end].tolist()
    numbers = block.name[names[0] : names[-1]].tolist()
    for place, (event, moment) in enumerate(zip(events, moments, strict=True)):
        own = numbers[names[place] - names[0] : names[place + 1] - names[0]]
        yield QueuedNote(number + place, event, moment, tuple(own))


def _tail_block(tail: dict[int, list[_TailNote]], span: Span, counts: I64s) -> Block:
    subscribers = sorted(tail)
    notes = [note for subscriber in subscribers for note in tail[subscriber]]
    subscriber = np.array(subscribers, np.int32)
    lengths = np.array([len(tail[each]) for each in subscribers], np.int64)
    return Block(
        span,
        subscriber,
        np.append(0, np.cumsum(lengths)),
        counts[subscriber] + lengths,
        np.array([note.event for note in notes], np.int64),
        np.array([note.moment for note in notes], np.int64),
        np.append(0, np.cumsum(np.array([len(note.subscriptions) for note in notes], np.int64))),
        np.array([number for note in notes for number in note.subscriptions], np.int32),
    )
