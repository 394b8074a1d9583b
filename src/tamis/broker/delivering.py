"""Delivering: events that were matched elsewhere, such as on Spark, are stored with their matches and told.

A stream delivers batches that count up. After a failure it may repeat a batch. The number of the batch is stored in the same
transaction as its events, so a batch is stored and told once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.broker.event_text import event_text
from tamis.broker.history_table import known_event
from tamis.broker.number_lists import numbers_text
from tamis.broker.retention import Retention
from tamis.broker.state import State
from tamis.errors import OptionError, UnknownIdError, shortened
from tamis.kernels.numbers import I64s
from tamis.language.values import INT64_MAX, is_iterable


class StoredText(str):
    """An event that was made JSON text before, by `event_text`."""

    __slots__ = ()


class Delivery(NamedTuple):
    """An event, and the numbers of the subscriptions that it satisfies: distinct, in order."""

    text: str
    numbers: I64s


def read_deliveries(given: Iterable[Any]) -> list[Delivery]:
    """Pairs of an event and numbers of subscriptions, as a user gives them, checked.

    Raises
    ------
    EventError, OptionError
    """
    if not is_iterable(given):
        raise OptionError(f"`matched` must be a list of pairs of an event and numbers, not {shortened(given)}")
    found = []
    for row, pair in enumerate(given):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise OptionError(f"delivery {row} must be a pair of an event and numbers, not {shortened(pair)}")
        event, numbers = pair
        text = event if isinstance(event, StoredText) else event_text(event, row=row)
        found.append(Delivery(text, _read_numbers(numbers, row)))
    return found


def _read_numbers(given: Any, row: int) -> I64s:
    try:
        plain = np.asarray(given)
    except (OverflowError, TypeError, ValueError):  # such as lists of different lengths
        plain = np.empty((0, 0))
    if plain.ndim == 1 and not len(plain):
        return np.empty(0, np.int64)
    if plain.ndim != 1 or plain.dtype.kind not in "iu" or plain.max() > INT64_MAX:
        raise OptionError(f"delivery {row} must have a list of numbers of subscriptions, not {shortened(given)}")
    return np.unique(plain.astype(np.int64))


class Delivering:
    """Takes in the batches of streams. The caller holds the lock."""

    def __init__(self, state: State, retention: Callable[[], Retention]) -> None:
        self._state = state
        self._retention = retention

    def last_batch(self, source: str) -> int | None:
        """The last batch of a stream that was delivered; None if there is none."""
        return self._state.tables.last_batch(source)

    def put(self, deliveries: Sequence[Delivery], source: str, batch: int) -> bool:
        """Store and tell a batch. Returns False if that has happened before.

        Raises
        ------
        UnknownIdError, QueueFullError, BrokerError
            Nothing is stored.
        """
        state, now = self._state, self._state.now()
        last = self.last_batch(source)
        if last is not None and batch <= last:
            return False
        told = self._awake([each.numbers for each in deliveries])
        retention = self._retention()
        if retention.refuses:
            waiting: Counter[int] = Counter()
            for numbers in told:
                retention.refuse(numbers.astype(np.int32), waiting, state)
        first = state.event + 1
        if state.history is not None:
            state.history.begin()
            flat = [known_event(each.text) for each in deliveries]
            state.history.decide(flat, [True] * len(flat), first)
        rows = [
            (sequence, now, None, each.text, numbers_text(numbers))
            for sequence, (each, numbers) in enumerate(zip(deliveries, told, strict=True), first)
        ]
        with state.changing():
            with state.tables.transaction():
                state.tables.put_events(rows)
                state.tables.put_batch(source, batch)
                if state.history is not None:
                    state.history.put()
            if state.history is not None:
                state.history.settle()
            if rows:
                names = np.concatenate(told).astype(np.int32)
                state.tell_events(first, list(map(len, told)), names, np.full(len(rows), now))
        return True

    def _awake(self, matches: Sequence[I64s]) -> list[I64s]:
        """The matches without subscriptions that were removed or paused meanwhile, or begin later.

        Raises
        ------
        UnknownIdError
        """
        distinct = np.unique(np.concatenate([np.empty(0, np.int64), *matches]))
        subscriber_of = self._state.subscriber_of.view()
        is_known = (distinct > 0) & (distinct < len(subscriber_of))
        is_known[is_known] = subscriber_of[distinct[is_known]] > 0
        if not is_known.all():
            raise UnknownIdError(int(distinct[~is_known][0]), "subscription with the number")
        matcher, tables = self._state.matcher, self._state.tables
        # A subscription that has ended meanwhile is not in the matcher, but was valid when the stream found it.
        idle = [number for number in distinct.tolist() if number not in matcher]
        sql = "SELECT removed OR paused OR NOT started FROM subscriptions WHERE number = ?"
        gone = [number for number in idle if tables.one(sql, (number,))[0]]
        return [numbers[~np.isin(numbers, gone)] for numbers in matches] if gone else list(matches)
