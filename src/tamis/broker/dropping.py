"""Dropping: notes that can no longer be read stay so, and events that have only such notes leave the tables.

A note beyond `max_notes` can no longer be read as soon as a later one comes. A publish does not store that: it would have to
write a row for each subscriber. `drop` stores it in `subscribers.dropped`: before events are deleted, and before `retain` changes
the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.broker.queue_block import Block
from tamis.broker.retention import Retention
from tamis.broker.state import State
from tamis.kernels.numbers import I64s


class Glance(NamedTuple):
    """The queues at a moment. Later, only more notes can be unreadable."""

    moment: int
    blocks: Sequence[Block]
    last: I64s
    """By subscriber: the number of the last note."""


def glance(state: State) -> Glance:
    """The queues as they are now. The caller holds the lock."""
    state.queues.flush()
    return Glance(state.moment, list(state.queues.blocks), state.queues.last_numbers())


def too_many_or_old(seen: Glance, retention: Retention) -> tuple[I64s, I64s]:
    """By subscriber: the last note beyond `max_notes`, and the last note older than `max_age`. 0 if there is none."""
    none = np.zeros(len(seen.last), np.int64)
    many = none if retention.max_notes is None else np.maximum(0, seen.last - retention.max_notes)
    return many, none if retention.max_age is None else _last_before(seen, seen.moment - retention.max_age)


def _last_before(seen: Glance, moment: int) -> I64s:
    """By subscriber: the number of the last note that was told before a moment. As `Queues.last_before`, for all at once."""
    found = seen.last.copy()
    for block in reversed(seen.blocks):  # What comes before the first note in a block has left.
        lengths = np.diff(block.start)
        found[block.subscriber[lengths > 0]] = (block.last - lengths)[lengths > 0]
    for block in seen.blocks:
        lengths = np.diff(block.start)
        before = np.diff(np.append(0, np.cumsum(block.moment < moment))[block.start])
        found[block.subscriber[before > 0]] = (block.last - lengths + before)[before > 0]
    return found


def drop(state: State, retention: Retention, many: I64s, old: I64s, numbers: range) -> I64s:
    """Store which notes of some subscribers cannot be read any more. Returns the last such note of each.

    The caller holds the lock, and has begun a transaction.
    """
    sql = "SELECT number, cursor, dropped FROM subscribers WHERE number >= ? AND number < ?"
    rows = np.array(list(state.tables.rows(sql, (numbers.start, numbers.stop))), np.int64).reshape(-1, 3)
    number, cursor, dropped = rows.T
    beyond = many[number] if retention.when_full == "drop oldest" else np.minimum(many[number], cursor)
    hidden = np.maximum(dropped, np.maximum(beyond, old[number]))
    is_more = hidden > dropped
    changes = zip(hidden[is_more].tolist(), number[is_more].tolist(), strict=True)
    state.tables.change_subscribers("dropped", "?1", changes)
    found = np.zeros(len(numbers), np.int64)
    found[number - numbers.start] = hidden
    return found


def unreadable_events(seen: Glance, hidden: I64s) -> I64s:
    """The events that have notes, but none that can be read. `hidden` has the last note that cannot be read by subscriber."""
    readable, others = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for block in seen.blocks:
        lengths = np.diff(block.start)
        number = np.repeat(block.last + 1 - block.start[1:], lengths) + np.arange(block.notes)
        is_hidden = number <= np.repeat(hidden[block.subscriber], lengths)
        readable.append(np.unique(block.event[~is_hidden]))
        others.append(np.unique(block.event[is_hidden]))
    return np.setdiff1d(np.concatenate(others), np.concatenate(readable))
