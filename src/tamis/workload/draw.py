"""Drawing subscriptions and events, as arrays of numbers, block by block.

The seed of block b of a stream comes from the config's seed, the stream and b. So a block does not depend on other blocks, their
order or the machine. Many workers can make one workload, and each of them needs only the config.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import ClassVar

import numpy as np

from tamis.kernels.numbers import I64s
from tamis.workload.arrays import EventArrays, PredicateArrays, first_subscriptions

SUBSCRIPTION_BLOCK = 10_000
EVENT_BLOCK = 1_000


class Stream(IntEnum):
    """Streams of random numbers. Each purpose has its own stream, so that they do not influence each other."""

    EVENTS = 0
    SUBSCRIPTIONS = 1
    OTHER_EVENTS = 2
    BASE_PRICES = 3
    VALUE_ORDER = 4


class Draws(ABC):
    """Draws for a config: events by their numbers, subscriptions by block."""

    value_type: ClassVar[type[np.int64 | np.float64]] = np.int64

    def __init__(self, seed: int, subscriptions: int, event_size: int) -> None:
        self._seed = seed
        self._subscriptions = subscriptions
        self._event_size = event_size

    def events(self, rows: I64s) -> EventArrays:
        """The events with these numbers."""
        return self._pick(rows, partial(self._event_block, Stream.EVENTS))

    def other_events(self, rows: I64s) -> EventArrays:
        """Events from a separate stream. No subscription is derived from them."""
        return self._pick(rows, partial(self._event_block, Stream.OTHER_EVENTS))

    def subscriptions(self, block: int) -> PredicateArrays:
        """One block of the subscriptions."""
        first = block * SUBSCRIPTION_BLOCK
        whole = self._subscription_block(self._rng(Stream.SUBSCRIPTIONS, block), first)
        # Cut the block only now, so that a smaller workload is the beginning of a larger one.
        return first_subscriptions(whole, min(SUBSCRIPTION_BLOCK, self._subscriptions - first))

    @abstractmethod
    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        """SUBSCRIPTION_BLOCK subscriptions. `first` is the number of the first one."""

    @abstractmethod
    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        """EVENT_BLOCK events."""

    def _rng(self, stream: Stream, block: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(stream, block)))

    def _pick(self, rows: I64s, draw_block: Callable[[int], EventArrays], size: int | None = None) -> EventArrays:
        """The events with these numbers, taken from their blocks. Only one block is in memory at a time.

        `size` is the number of their columns. None: the event size.
        """
        attribute = np.empty((len(rows), self._event_size if size is None else size), np.int32)
        value = np.empty(attribute.shape, self.value_type)
        blocks, within = np.divmod(rows, EVENT_BLOCK)
        for block in np.unique(blocks).tolist():
            here = blocks == block
            events = draw_block(block)
            attribute[here] = events.attribute[within[here]]
            value[here] = events.value[within[here]]
        return EventArrays(attribute, value)
