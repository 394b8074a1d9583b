"""Calls of brokers, in threads. The event loop never waits for a broker.

All tenants share the threads. A tenant holds at most `AT_ONCE` of them, so that a busy tenant leaves threads to others.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

SMALL = 32 * 1024
"""Bytes of a body that is read in the event loop, which takes about a millisecond. All requests would wait for a longer one."""
THREADS = 32
AT_ONCE = 8
"""Calls of one tenant that run at the same time. More would only wait for the lock of the broker."""


class Threads:
    """The threads that all tenants share."""

    def __init__(self, count: int = THREADS) -> None:
        self.pool = ThreadPoolExecutor(count, "tamis-service")

    def close(self, seconds: float) -> bool:
        """Wait until all calls have ended. Returns whether they have ended in time."""
        waiting = threading.Thread(target=self.pool.shutdown, name="tamis-service-end", daemon=True)
        waiting.start()
        waiting.join(seconds)
        return not waiting.is_alive()


class Lane:
    """The calls of one tenant."""

    def __init__(self, threads: Threads, at_once: int = AT_ONCE) -> None:
        self._threads = threads
        self._places = asyncio.Semaphore(at_once)

    async def __call__(self, call: Callable[[], T]) -> T:
        """The result of a call that runs in a thread. A request that is given up does not stop the call."""
        async with self._places:
            return await asyncio.get_running_loop().run_in_executor(self._threads.pool, call)

    async def aside(self, size: int, call: Callable[[], T]) -> T:
        """The result of a call that reads a body of some bytes: at once for a small body, else in a thread."""
        return call() if size <= SMALL else await self(call)
