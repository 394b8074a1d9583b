"""Who waits for notes. A waiter holds no thread, so thousands of streams may wait.

The broker tells the hub which subscribers have new notes, in the thread that writes. The hub wakes their waiters in the event
loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import numpy as np

from tamis.broker import Broker
from tamis.kernels.numbers import I32s, I64s


class Waiter:
    """Waits for notes of one subscriber."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Return when notes have come since the last call or since the waiter was made, when the hub closes, or in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        self._rung.clear()

    def ring(self) -> None:
        self._rung.set()


class Hub:
    """The waiters of one tenant."""

    def __init__(
        self, broker: Broker, number_of: Callable[[str], Awaitable[int]], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._number_of = number_of
        self._loop = loop
        self._waiters: dict[int, set[Waiter]] = {}
        self._leave = broker.listen(self._told)
        self.is_closed = False
        self.hits: I64s = np.zeros(1024, np.int64)
        """By the number of a subscription: its matches since the start."""

    def __len__(self) -> int:
        return sum(map(len, self._waiters.values()))

    def _told(self, subscribers: I32s, names: I32s) -> None:
        """Runs in the thread that writes, under the lock of the broker."""
        if not len(names):
            return
        top = int(names.max())
        if top >= len(self.hits):
            self.hits = np.concatenate([self.hits, np.zeros(max(len(self.hits), top + 1 - len(self.hits)), np.int64)])
        np.add.at(self.hits, names, 1)
        # As of now is enough: who waits from now on reads the notes of this call first.
        waiting = np.array(list(self._waiters), np.int64)
        told = np.intersect1d(subscribers, waiting).tolist() if len(waiting) else []
        if told:
            with suppress(RuntimeError):  # The loop is closed.
                self._loop.call_soon_threadsafe(self._wake, told)

    def _wake(self, told: list[int]) -> None:
        for number in told:
            for waiter in self._waiters.get(number, ()):
                waiter.ring()

    @asynccontextmanager
    async def waiting(self, subscriber: str) -> AsyncIterator[Waiter]:
        """A waiter for the notes of a subscriber. Make it before you read, then no note is missed.

        Raises
        ------
        UnknownIdError
        """
        number = await self._number_of(subscriber)
        waiter = Waiter()
        if self.is_closed:
            waiter.ring()
        self._waiters.setdefault(number, set()).add(waiter)
        try:
            yield waiter
        finally:
            others = self._waiters[number]
            others.discard(waiter)
            if not others:
                del self._waiters[number]

    def hits_of(self, number: int) -> int:
        """The matches of a subscription since the start."""
        return int(self.hits[number]) if number < len(self.hits) else 0

    def hottest(self, most: int) -> list[tuple[int, int]]:
        """The subscriptions with the most matches since the start, and how many."""
        hits = self.hits
        most = min(most, len(hits))
        top = np.argpartition(-hits, most - 1)[:most]
        top = top[np.argsort(-hits[top], kind="stable")]
        return [(int(number), int(hits[number])) for number in top if hits[number]]

    def close(self) -> None:
        """Wake all waiters for the last time."""
        self.is_closed = True
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.ring()

    def leave(self) -> None:
        """Stop listening. The broker may be closed then."""
        self._leave()
