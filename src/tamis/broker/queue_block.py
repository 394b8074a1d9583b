"""A block of notes: immutable arrays, sorted by subscriber.

    subscriber   3              8          9                        each once, ascending
    start        0              3          4      6                 notes of subscriber i: start[i] .. start[i + 1]
    last         19             1          6                        the number of the last of these notes
    event        40   41   44   40         41     44                by note, in the order in which they were told
    moment       ...                                                by note: when it was told
    name_start   0    1    2    4          5      6     7           names of note j: name_start[j] .. name_start[j + 1]
    name         12   12   12 13 20        31     31                numbers of subscriptions

A block has the notes of an unbroken part of the tables, its `span`. So the blocks of a queue are a chain of spans, and a later
block has later notes. Notes count back from the last one: the oldest notes may be missing, see `without`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.kernels.bits import halves, second_half
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.kernels.ranges import span_indices


class Span(NamedTuple):
    """A part of the tables: events and meetings after the first numbers, up to the last ones."""

    after_event: int
    after_meeting: int
    event: int
    meeting: int

    @property
    def start(self) -> tuple[int, int]:
        return self.after_event, self.after_meeting

    @property
    def end(self) -> tuple[int, int]:
        return self.event, self.meeting


class Stretch(NamedTuple):
    """The notes of one subscriber in a block: from `start` to `end`; `last` is the number of the last one."""

    start: int
    end: int
    last: int

    def skipped(self, after: int) -> int:
        """The place of the first note with a number above `after`."""
        return max(self.start, self.end - max(0, self.last - after))


class Block(NamedTuple):
    """Notes by subscriber."""

    span: Span
    subscriber: I32s
    start: I64s
    last: I64s
    event: I64s
    moment: I64s
    name_start: I64s
    name: I32s

    @property
    def notes(self) -> int:
        return len(self.event)

    def stretch(self, subscriber: int) -> Stretch:
        """The notes of a subscriber. The stretch is empty if there are none."""
        # With a number of Python, NumPy would make the whole array one of int64 first.
        at = int(self.subscriber.searchsorted(np.int32(subscriber)))
        if at == len(self.subscriber) or self.subscriber[at] != subscriber:
            return Stretch(0, 0, 0)
        return Stretch(int(self.start[at]), int(self.start[at + 1]), int(self.last[at]))


class Told(NamedTuple):
    """Subscriptions that are told about events, in any order. Each pair is there once."""

    subscriber: I32s
    event: I64s
    name: I32s
    moment: I64s


def told_block(told: Told, span: Span, counts: I64s) -> Block:
    """The notes of one call. `counts` has the number of earlier notes by subscriber."""
    order = _by_subscriber(told.subscriber)
    subscriber, event, name = told.subscriber[order], told.event[order], told.name[order]
    is_first = _changes(subscriber) | _changes(event)
    name_start = np.append(np.flatnonzero(is_first), len(order))
    notes = _Notes(subscriber[is_first], event[is_first], told.moment[order][is_first], name_start, name)
    block = _block(span, notes, notes.subscriber[_changes(notes.subscriber)])
    return block._replace(last=counts[block.subscriber] + np.diff(block.start))


def merged(blocks: Sequence[Block]) -> Block:
    """The notes of several blocks that follow each other."""
    by_note = np.concatenate([np.repeat(block.subscriber, np.diff(block.start)) for block in blocks])
    order = _by_subscriber(by_note)
    counts = np.concatenate([np.diff(block.name_start) for block in blocks])
    starts = np.cumsum(counts) - counts
    names = np.concatenate([block.name for block in blocks])[span_indices(starts[order], counts[order])]
    notes = _Notes(
        by_note[order],
        np.concatenate([block.event for block in blocks])[order],
        np.concatenate([block.moment for block in blocks])[order],
        np.append(0, np.cumsum(counts[order])),
        names,
    )
    subscribers = np.unique(np.concatenate([block.subscriber for block in blocks]))
    block = _block(Span(*blocks[0].span.start, *blocks[-1].span.end), notes, subscribers)
    return block._replace(last=_last_numbers(blocks))


def without(block: Block, is_kept: Bools) -> Block:
    """A block with some of its notes alone. A note may go only if all earlier notes of its subscriber cannot be read any more."""
    counts = np.diff(block.name_start)[is_kept]
    by_note = np.repeat(block.subscriber, np.diff(block.start))[is_kept]
    names = block.name[span_indices(block.name_start[:-1][is_kept], counts)]
    notes = _Notes(by_note, block.event[is_kept], block.moment[is_kept], np.append(0, np.cumsum(counts)), names)
    # A subscriber stays though all its notes go: its last number must not be given again.
    return _block(block.span, notes, block.subscriber)._replace(last=block.last)


class _Notes(NamedTuple):
    """The arrays of a block by note."""

    subscriber: I32s
    event: I64s
    moment: I64s
    name_start: I64s
    name: I32s


def _block(span: Span, notes: _Notes, subscriber: I32s) -> Block:
    """A block of sorted notes. `subscriber` has all subscribers, also those without notes. The caller knows the last numbers."""
    start = np.append(np.searchsorted(notes.subscriber, subscriber), len(notes.subscriber))
    return Block(span, subscriber, start, start[1:], notes.event, notes.moment, notes.name_start, notes.name)


def _last_numbers(blocks: Sequence[Block]) -> I64s:
    """The number of the last note of each subscriber, in the order of their numbers."""
    newest_first = blocks[::-1]
    subscribers = np.concatenate([block.subscriber for block in newest_first])
    _, place = np.unique(subscribers, return_index=True)  # The place of the first of equal ones.
    return np.concatenate([block.last for block in newest_first])[place]


def _by_subscriber(subscriber: I32s) -> I64s:
    """The order by subscriber, otherwise unchanged. One sort of packed numbers is faster than a stable argsort."""
    packed = halves(subscriber.astype(np.int64), np.arange(len(subscriber)))
    packed.sort()
    return second_half(packed)


def _changes(values: I32s | I64s) -> Bools:
    """Where a value differs from the one before it. The first value counts as different."""
    is_new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return is_new
