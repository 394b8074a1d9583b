"""Tenants: each is a broker of its own, in a folder of its own.

    FOLDER/tenants/default/broker.sqlite ...
    FOLDER/tenants/shop/broker.sqlite ...

A request knows one tenant only, that of its token. Numbers of events, changes and notes count for each tenant, so none of them
says anything about another tenant.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from starlette.responses import Response

from tamis.broker import Broker
from tamis.broker import open as open_broker
from tamis.errors import IdTypeError, UnknownIdError
from tamis.service.answers import json_bytes
from tamis.service.config import ServiceConfig, TenantConfig
from tamis.service.event_schema import EventSchema
from tamis.service.figures import Figures
from tamis.service.hub import Hub
from tamis.service.metrics import TenantMetrics
from tamis.service.problems import ProblemError
from tamis.service.rate import Rate
from tamis.service.single_publishing import SinglePublisher
from tamis.service.tenant_names import DEFAULT, folder_of, is_tenant, tenants_of
from tamis.service.webhooks.delivery import Sender
from tamis.service.webhooks.store import Store
from tamis.service.webhooks.webhooks import Webhooks
from tamis.service.work import Lane, Threads

T = TypeVar("T")


class Tenant:
    """A broker with what the service keeps beside it."""

    def __init__(
        self, name: str, folder: Path, config: TenantConfig, threads: Threads, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.name = name
        self.folder = folder
        self.limits = config.limits
        self.broker: Broker = open_broker(folder, **config.broker)
        try:
            self.schema = EventSchema(folder, config.schema)
            self.webhook_store = Store(folder)
        except BaseException:
            self.broker.close()
            raise
        self.metrics = TenantMetrics()
        self.requests = Rate(config.limits.requests_per_second)
        self.events = Rate(config.limits.events_per_second)
        self._threads = threads
        self._loop = loop
        self.is_covering = False
        self._counting = threading.Lock()
        self._counted: int | None = None
        """An upper bound of the number of subscriptions. None: nobody has counted them."""

    def begin(self, sender: Sender, stopping: asyncio.Event) -> None:
        """Make what belongs to the event loop."""
        self._lane = Lane(self._threads)
        self.hub = Hub(self.broker, self._number_of, self._loop)
        self.publisher = SinglePublisher(self.work)
        self.webhooks = Webhooks(self, sender, stopping)
        self.figures = Figures(self.name, self.metrics, self.hub, self.webhooks)

    async def _number_of(self, subscriber: str) -> int:
        return await self.work(lambda broker: broker.subscriber(subscriber).number)

    async def work(self, call: Callable[[Broker], T]) -> T:
        """The result of a call of the broker, made in a thread."""
        return await self._lane(lambda: call(self.broker))

    async def aside(self, size: int, call: Callable[[], T]) -> T:
        """The result of a call without the broker: at once for a small body, else made in a thread."""
        return await self._lane.aside(size, call)

    async def answer(self, call: Callable[[Broker], Any]) -> Response:
        """The result of a call of the broker as JSON. Both are made in a thread."""
        return Response(await self.work(lambda broker: json_bytes(call(broker))), media_type="application/json")

    def check_subscriptions(self, broker: Broker, names: Sequence[tuple[str, str]]) -> None:
        """Refuse more subscriptions than the tenant may have. Those that are there may change. It runs in a thread.

        Raises
        ------
        ProblemError
        """
        most = self.limits.subscriptions
        if not most:
            return
        with self._counting:
            coming = len(names)
            if self._counted is None or self._counted + coming > most:
                self._counted = broker.counts()["subscriptions"]
                if self._counted + coming > most:
                    coming = sum(not _has(broker, *each) for each in names)
            self._counted += coming
            if self._counted <= most:
                return
            self._counted = None
            raise ProblemError(
                422, "too-many-subscriptions", f"at most {most:,} subscriptions are allowed. Hint: remove some first"
            )

    def published_in_thread(self, events: int, matches: int, seconds: float) -> None:
        """Count what a thread has published."""
        self._loop.call_soon_threadsafe(self.published, events, matches, seconds)

    def published(self, events: int, matches: int, seconds: float) -> None:
        """Count what was published."""
        self.metrics.published(events, matches, seconds)

    def close(self) -> None:
        self.hub.leave()
        self.broker.close()


def _has(broker: Broker, subscriber: str, name: str) -> bool:
    try:
        broker.subscription(subscriber, name)
    except (UnknownIdError, IdTypeError):
        return False
    return True


class Tenants:
    """All tenants. They are opened when the service starts."""

    def __init__(self, config: ServiceConfig, threads: Threads, begin: Callable[[Tenant], None]) -> None:
        self._config = config
        self._threads = threads
        self._begin = begin
        self._open: dict[str, Tenant] = {}
        self._opening = asyncio.Lock()
        self._is_closed = False

    def __iter__(self) -> Iterator[Tenant]:
        return iter(list(self._open.values()))

    async def get(self, name: str) -> Tenant | None:
        """The tenant of a name, if there is one. A tenant that was made after the service had started is opened now."""
        found = self._open.get(name)
        if found is None and is_tenant(self._config.folder, name):
            loop = asyncio.get_running_loop()
            async with self._opening:
                found = self._open.get(name)
                if found is None and not self._is_closed:
                    found = await loop.run_in_executor(self._threads.pool, self._opened, name, loop)
                    self._begin(found)
                    self._open[name] = found
        return found

    def open_all(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open the brokers of all tenants. It may take seconds for each. If one fails, none stays open.

        Raises
        ------
        BrokerError
        """
        try:
            for name in sorted({DEFAULT, *self._config.tenants, *tenants_of(self._config.folder)}):
                self._open[name] = self._opened(name, loop)
        except BaseException:
            for tenant in self._open.values():
                tenant.broker.close()
            self._open.clear()
            raise

    def _opened(self, name: str, loop: asyncio.AbstractEventLoop) -> Tenant:
        folder = folder_of(self._config.folder, name)
        folder.mkdir(parents=True, exist_ok=True)
        return Tenant(name, folder, self._config.tenant(name), self._threads, loop)

    def close(self) -> None:
        """Close all brokers."""
        self._is_closed = True
        for tenant in self._open.values():
            tenant.close()
        self._open.clear()
