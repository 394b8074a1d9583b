"""A block of notes: immutable arrays, sorted by subscriber.

    subscriber   3              8          9                        each once, ascending
    start        0              3          4      6                 notes of subscriber i: start[i] .. start[i + 1]
    first        17             1          5                        the number of the first of these notes
    event        40   41   44   40         41     44                by note, in the order in which they were told
    moment       ...                                                by note: when it was told
    name_start   0    1    2    4          5      6     7           names of note j: name_start[j] .. name_start[j + 1]
    name         12   12   12 13 20        31     31                numbers of subscriptions

A block holds all notes of an unbroken part of the tables, its `span`. So the blocks of a queue are a chain of spans, and a later
block has later notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.kernels.ranges import run_indices


class Span(NamedTuple):
    """A part of the tables: events and meetings after the first numbers, up to the last ones."""

    after_event: int
    after_meeting: int
    event: int
    meeting: int

    @property
    def end(self) -> tuple[int, int]:
        return self.event, self.meeting

    @property
    def start(self) -> tuple[int, int]:
        return self.after_event, self.after_meeting


class Block(NamedTuple):
    """Notes by subscriber."""

    span: Span
    subscriber: I32s
    start: I64s
    first: I64s
    event: I64s
    moment: I64s
    name_start: I64s
    name: I32s

    @property
    def notes(self) -> int:
        return len(self.event)

    def place(self, subscriber: int) -> tuple[int, int, int]:
        """Where the notes of a subscriber begin and end, and the number of the first one. Two equal places if there are none."""
        at = int(np.searchsorted(self.subscriber, subscriber))
        if at == len(self.subscriber) or self.subscriber[at] != subscriber:
            return 0, 0, 0
        return int(self.start[at]), int(self.start[at + 1]), int(self.first[at])


class Told(NamedTuple):
    """Subscriptions that are told about events, in any order. Each pair is there once."""

    subscriber: I32s
    event: I64s
    name: I32s
    moment: I64s


def told_block(told: Told, span: Span, counts: I64s) -> Block:
    """The notes of one call. `counts` has the number of earlier notes by subscriber."""
    order = np.lexsort((told.name, told.event, told.subscriber))
    subscriber, event = told.subscriber[order], told.event[order]
    is_first = _changes(subscriber) | _changes(event)
    name_start = np.append(np.flatnonzero(is_first), len(order))
    by_note = subscriber[is_first]
    moment = told.moment[order][is_first]
    return _block(span, by_note, event[is_first], moment, name_start, told.name[order], counts)


def merged(blocks: Sequence[Block]) -> Block:
    """The notes of several blocks that follow each other."""
    by_note = np.concatenate([np.repeat(block.subscriber, np.diff(block.start)) for block in blocks])
    order = _order(by_note)
    counts = np.concatenate([np.diff(block.name_start) for block in blocks])
    starts = np.concatenate([[0], np.cumsum(counts)])
    name_start = np.concatenate([[0], np.cumsum(counts[order])])
    name = np.concatenate([block.name for block in blocks])[run_indices(starts[order], counts[order])]
    event = np.concatenate([block.event for block in blocks])[order]
    moment = np.concatenate([block.moment for block in blocks])[order]
    span = Span(*blocks[0].span.start, *blocks[-1].span.end)
    subscribers, firsts = _first_numbers(blocks)
    counts_before = np.zeros(int(subscribers.max(initial=-1)) + 1, np.int64)
    counts_before[subscribers] = firsts - 1
    return _block(span, by_note[order], event, moment, name_start, name, counts_before)


def _first_numbers(blocks: Sequence[Block]) -> tuple[I32s, I64s]:
    """The subscribers of blocks, each with the number of its first note."""
    subscribers = np.concatenate([block.subscriber for block in blocks])
    distinct, place = np.unique(
        subscribers, return_index=True
    )  # The place of the first of equal ones: the oldest block.
    return distinct, np.concatenate([block.first for block in blocks])[place]


def _block(span: Span, by_note: I32s, event: I64s, moment: I64s, name_start: I64s, name: I32s, counts: I64s) -> Block:
    is_first = _changes(by_note)
    subscriber = by_note[is_first]
    start = np.append(np.flatnonzero(is_first), len(by_note))
    return Block(span, subscriber, start, counts[subscriber] + 1, event, moment, name_start, name)


def _order(by_note: I32s) -> I64s:
    """The stable order of notes by subscriber. One sort of packed numbers is much faster than a stable argsort."""
    packed = (by_note.astype(np.int64) << 32) | np.arange(len(by_note))
    packed.sort()
    return packed & 0xFFFFFFFF


def _changes(values: I32s | I64s) -> Bools:
    """Where a value differs from the one before it. The first value counts as different."""
    is_new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return is_new
