"""What all requests share: configuration, tenants, threads, log. A route reaches it as ``visit.service``."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from tamis.service.config import ServiceConfig
from tamis.service.first_use import begin_first_use
from tamis.service.request_log import Log
from tamis.service.tenants import Tenant, Tenants
from tamis.service.tokens import TokenFile
from tamis.service.turns import Turns
from tamis.service.webhooks.delivery import Sender
from tamis.service.work import Threads


class Service:
    """One process that serves a folder."""

    def __init__(self, config: ServiceConfig) -> None:
        self.config = config
        self.log = Log(config.log)
        self.threads = Threads()
        self.turns = Turns()
        self.tokens = TokenFile(config.folder)
        self.tenants = Tenants(config, self.threads, self._begin)
        self.sender = Sender(config.webhooks)
        self.started = time.time()
        self.is_ready = False
        self.stopping = asyncio.Event()
        """Set when the process was told to end. Streams and long polls end then."""
        self._end = 0.0
        """When running calls must have ended, once the process was told to end."""
        self.is_stuck = False
        """Whether a call has not ended in time, so that its broker cannot be closed."""
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """Requests of no tenant: by method, route and status."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """Open all brokers, in a thread.

        Raises
        ------
        TamisError
            A folder or a file in it cannot be used.
        """
        self.tokens.all()
        used = begin_first_use(self._loop)
        await self._loop.run_in_executor(self.threads.pool, self.tenants.open_all, self._loop)
        await used
        for tenant in self.tenants:
            self._begin(tenant)
        self.is_ready = True

    def _begin(self, tenant: Tenant) -> None:
        tenant.begin(self.sender, self.stopping)
        self.start(tenant.webhooks.run())

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background until it ends. It must end soon when `stopping` is set."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.log("error", "failure in the background", reason=repr(task.exception()))

    def stop(self) -> None:
        """Say that the process ends. A signal handler may call this."""
        self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if not self.stopping.is_set():
            self._end = time.monotonic() + self.config.end_seconds
        self.stopping.set()
        for tenant in self.tenants:
            tenant.hub.close()

    async def close(self) -> None:
        """Let running calls end, then close all brokers. What they have acknowledged is on disk already."""
        self.is_ready = False
        self._stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._seconds_left())
        self.is_stuck = not await asyncio.get_running_loop().run_in_executor(None, self._close)
        if self.is_stuck:
            self.log("error", "a call of a broker did not end in time; the process ends without it")
        self.log("info", "ended")
        self.log.close()

    def _close(self) -> bool:
        if not self.threads.close(self._seconds_left()):
            return False
        self.tenants.close()
        return True

    def _seconds_left(self) -> float:
        """Until everything must have ended; a second at least."""
        return max(1.0, self._end - time.monotonic())
