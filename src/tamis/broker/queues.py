"""The queues: the notes of each subscriber, found without touching those of others.

The tables have the truth: which subscriptions each event was told to. The queues turn that round. New notes lie in a dictionary by
subscriber, the *tail*. A full tail becomes a block, and blocks of one size are merged into a larger one, as in an LSM tree. So
reading asks a few dozen blocks, however many notes there are.

    tables    event 40 -> subscriptions 12, 31     event 41 -> 12 ...
    blocks    [ subscriber 3: events 40, 41, 44 | subscriber 8: event 40 | ... ]  [ ... ]  [ ... ]
    tail      { 3: [note, note], 9: [note] }

Queues have no lock of their own. `Broker` changes them under its lock; readers take `snapshot` there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tamis.broker.queue_block import Block, Span, Told, merged, told_block
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import I64s

_FAN = 8
"""Blocks of one size that are merged into one."""


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
    """The notes of all subscribers. `most_in_tail` is the number of notes in the tail before it becomes a block."""

    def __init__(self, blocks: Sequence[Block] = (), *, most_in_tail: int) -> None:
        self.blocks = list(blocks)
        self._most_in_tail = most_in_tail
        self._tail: dict[int, list[_TailNote]] = {}
        self._in_tail = 0
        self._counts = GrowingArray(np.int64)
        """By subscriber: how many notes it has in blocks, and had in blocks before."""
        for block in self.blocks:
            self._make_room(int(block.subscriber.max(initial=-1)))
            self._counts.view()[block.subscriber] = block.first - 1 + np.diff(block.start)
        self._end = self.blocks[-1].span.end if self.blocks else (0, 0)
        self._tail_start = self._end

    def __len__(self) -> int:
        """Numbers below this are known subscribers."""
        return len(self._counts)

    @property
    def end(self) -> tuple[int, int]:
        """The last event and the last meeting whose notes are here."""
        return self._end

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
        self._append(told)
        self._end = end
        if self._in_tail >= self._most_in_tail:
            self.flush()

    def _append(self, told: Told) -> None:
        rows = sorted(zip(*(column.tolist() for column in told[:3]), told.moment.tolist(), strict=True))
        names: list[int] = []
        for place, (subscriber, event, name, moment) in enumerate(rows):
            names.append(name)
            if place + 1 == len(rows) or rows[place + 1][:2] != (subscriber, event):
                self._tail.setdefault(subscriber, []).append(_TailNote(event, moment, tuple(names)))
                self._in_tail += 1
                names = []

    def flush(self) -> None:
        """Make a block of the tail."""
        if self._tail:
            self._add(_tail_block(self._tail, Span(*self._tail_start, *self._end), self._counts.view()))
            self._tail, self._in_tail, self._tail_start = {}, 0, self._end

    def _add(self, block: Block) -> None:
        self._counts.view()[block.subscriber] += np.diff(block.start)
        self.blocks.append(block)
        while len(self.blocks) >= _FAN and self._is_due():
            self.blocks[-_FAN:] = [merged(self.blocks[-_FAN:])]

    def _is_due(self) -> bool:
        """Whether the last blocks are of one size: none is much larger than all later ones together."""
        last = self.blocks[-_FAN:]
        return last[0].notes <= _FAN * max(1, last[-1].notes)

    def total(self, subscriber: int) -> int:
        """How many notes a subscriber has ever had: the number of the last one."""
        return int(self._counts.view()[subscriber]) + len(self._tail.get(subscriber, ()))

    def read(self, subscriber: int, after: int, most: int) -> list[QueuedNote]:
        """The next notes of a subscriber after a number, at most `most`."""
        found: list[QueuedNote] = []
        for block in self.blocks:
            if len(found) == most:
                return found
            start, end, first = block.place(subscriber)
            skipped = max(0, after + 1 - first)
            found += _notes(block, start + skipped, min(end, start + skipped + most - len(found)), first + skipped)
        number = int(self._counts.view()[subscriber])
        skipped = max(0, after - number)
        for place, note in enumerate(self._tail.get(subscriber, [])[skipped : skipped + most - len(found)]):
            found.append(QueuedNote(number + skipped + place + 1, *note))
        return found

    def first_since(self, subscriber: int, moment: int) -> int:
        """The number of the first note that was told at `moment` or later; one more than the last number if there is none."""
        for block in self.blocks:
            start, end, first = block.place(subscriber)
            skipped = int(np.searchsorted(block.moment[start:end], moment))
            if skipped < end - start:
                return first + skipped
        number = int(self._counts.view()[subscriber]) + 1
        for note in self._tail.get(subscriber, ()):
            if note.moment >= moment:
                break
            number += 1
        return number

    def told_to(self, subscriber: int, subscription: int) -> I64s:
        """The events that one of its subscriptions was told about."""
        found = []
        for block in self.blocks:
            start, end, _ = block.place(subscriber)
            low, high = block.name_start[start], block.name_start[end]
            names = low + np.flatnonzero(block.name[low:high] == subscription)
            found.append(block.event[np.searchsorted(block.name_start, names, "right") - 1])
        later = [note.event for note in self._tail.get(subscriber, ()) if subscription in note.subscriptions]
        return np.concatenate([*found, np.array(later, np.int64)])


def _notes(block: Block, start: int, end: int, number: int) -> Iterator[QueuedNote]:
    if start >= end:
        return
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
    lengths = [len(tail[each]) for each in subscribers]
    return Block(
        span,
        subscriber,
        np.concatenate([[0], np.cumsum(lengths)]),
        counts[subscriber] + 1,
        np.array([note.event for note in notes], np.int64),
        np.array([note.moment for note in notes], np.int64),
        np.concatenate([[0], np.cumsum([len(note.subscriptions) for note in notes])]),
        np.array([number for note in notes for number in note.subscriptions], np.int32),
    )
