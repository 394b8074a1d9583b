"""The first use of compiled code, before the service is ready: no request has to wait until it is compiled or loaded."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from contextlib import suppress

from tamis.broker import open as open_broker
from tamis.errors import TamisError


def begin_first_use(loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
    """Do in a thread what a first subscriber and a first publisher do. The future is done when that has ended.

    With compiled code on disk, it takes half a second. Compiling takes some more, once on a machine.
    """
    ended: asyncio.Future[None] = loop.create_future()

    def run() -> None:
        with suppress(TamisError, OSError):  # There is no room: the first requests compile.
            use()
        with suppress(RuntimeError):  # The start has failed, and the loop is closed.
            loop.call_soon_threadsafe(_end, ended)

    threading.Thread(target=run, name="tamis-first-use", daemon=True).start()
    return ended


def _end(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


def use() -> None:
    """Do in a temporary folder what a first subscriber and a first publisher do.

    Raises
    ------
    BrokerError, OSError
    """
    with (
        tempfile.TemporaryDirectory(prefix="tamis-", ignore_cleanup_errors=True) as folder,
        open_broker(folder, synchronous="off") as broker,
    ):
        broker.subscribe("ann", "cheap", "price < 20 AND genre = 'crime' AND title LIKE '%Sign%'")
        broker.publish({"genre": "crime", "price": 15, "title": "The Sign of Four"})
