"""Publishing single events of many requests together.

While a thread publishes some events, those of other requests gather. The next call takes all of them. So 64 connections share a
commit and a match, and no threads wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from tamis.broker import Broker, Receipt
from tamis.errors import EventError, QueueFullError
from tamis.service.turns import AT_ONCE

_MOST = 256
"""Events of one call. With more, the first of them would wait for long."""

Work = Callable[[Callable[[Broker], list[Receipt | Exception]]], Awaitable[list[Receipt | Exception]]]


class _Offer(NamedTuple):
    event: dict[str, Any]
    valid_until: datetime | None
    key: str | None
    k: int | None
    done: asyncio.Future[Receipt]


class SinglePublisher:
    """Publishes the single events of one tenant. `work` runs a call of its broker in a thread."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._waiting: list[_Offer] = []
        self._running: asyncio.Task[None] | None = None

    async def publish(
        self, event: dict[str, Any], valid_until: datetime | None, key: str | None, k: int | None
    ) -> Receipt:
        """Publish one event. It is published also if the request is given up meanwhile.

        Raises
        ------
        EventError, QueueFullError, BrokerError
        """
        done: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Offer(event, valid_until, key, k, done))
        if self._running is None:
            self._running = asyncio.create_task(self._publish_all())
        return await asyncio.shield(done)

    async def _publish_all(self) -> None:
        """Publish until nothing waits. It never ends with an error: each offer gets its own."""
        while self._waiting:
            offers, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            found: list[Receipt | Exception]
            try:
                found = await self._work(partial(_put, offers))
            except Exception as error:
                found = [error] * len(offers)
            for place, (offer, result) in enumerate(zip(offers, found, strict=True), 1):
                if isinstance(result, Exception):
                    offer.done.set_exception(result)
                    offer.done.exception()  # Nobody may wait for it any more.
                else:
                    offer.done.set_result(result)
                if place % AT_ONCE == 0:
                    await asyncio.sleep(
                        0
                    )  # Their answers are sent in this turn of the loop, the others in the next ones.
        self._running = None


def _put(offers: list[_Offer], broker: Broker) -> list[Receipt | Exception]:
    """The receipt or the error of each offer."""
    by_k: dict[int | None, list[int]] = {}
    for place, offer in enumerate(offers):
        by_k.setdefault(offer.k, []).append(place)
    found: list[Any] = [None] * len(offers)
    for places in by_k.values():
        for place, result in zip(places, _together(broker, [offers[place] for place in places]), strict=True):
            found[place] = result
    return found


def _together(broker: Broker, offers: list[_Offer]) -> list[Receipt | Exception]:
    """Publish offers with the same `k`. A refused part is halved until the wrong event is alone."""
    first = offers[0]
    try:
        if len(offers) == 1:
            return [broker.publish(first.event, valid_until=first.valid_until, key=first.key, k=first.k)]
        events, ends, keys = ([getattr(each, name) for each in offers] for name in ("event", "valid_until", "key"))
        return list(broker.publish_many(events, valid_until=ends, keys=keys, k=first.k))
    except (EventError, QueueFullError) as error:
        if len(offers) == 1:
            return [error]
        half = len(offers) // 2
        return [*_together(broker, offers[:half]), *_together(broker, offers[half:])]
    except Exception as error:
        return [error] * len(offers)
