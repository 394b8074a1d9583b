"""Looking up the hosts of receivers. Each tenant has threads of its own: names that hang delay only the tenant that uses them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from tamis.service.webhooks.addresses import Address, Networks, Target

LOOKUPS = 4
"""Names that a tenant looks up at the same time. Looking up holds a thread, also when nobody waits any more."""


class Names:
    """The names that one tenant looks up."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._threads = ThreadPoolExecutor(LOOKUPS, "tamis-names")
        self._places = asyncio.Semaphore(LOOKUPS)

    async def look_up(self, target: Target, limit: asyncio.Timeout | None = None) -> list[Address]:
        """The addresses of a host that may be reached. `limit` does not run while others are looked up first.

        Raises
        ------
        ForbiddenError
            There are addresses, and none of them may be reached.
        OSError
            The name cannot be looked up.
        """
        found = _numeric(target)
        if found is None:
            await self._turn(limit)
            found = await self._looked_up(target)
        return self._networks.allowed_of(target, found)

    async def _turn(self, limit: asyncio.Timeout | None) -> None:
        end = None if limit is None else limit.when()
        if limit is None or end is None or not self._places.locked():
            await self._places.acquire()
            return
        loop = asyncio.get_running_loop()
        left = end - loop.time()
        limit.reschedule(None)
        await self._places.acquire()
        limit.reschedule(loop.time() + left)

    async def _looked_up(self, target: Target) -> Sequence[Address]:
        """The addresses. The place is free again when the thread is, which may be long after this was given up."""
        loop = asyncio.get_running_loop()

        def free(_: Future[Sequence[Address]]) -> None:
            with suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(self._places.release)

        future = self._threads.submit(_addresses, target)
        future.add_done_callback(free)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Do not wait for names that are being looked up."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _numeric(target: Target) -> Sequence[Address] | None:
    """The address that a host already is, in any form that the system reads; None if it is a name."""
    try:
        return _addresses(target, socket.AI_NUMERICHOST)
    except socket.gaierror:
        return None


def _addresses(target: Target, flags: int = 0) -> Sequence[Address]:
    rows = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, flags=flags)
    texts = dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows)
    return [ipaddress.ip_address(text) for text in texts]
