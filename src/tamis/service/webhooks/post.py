"""What the couriers of a tenant share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from tamis.broker import Broker
from tamis.errors import BrokerError, UnknownIdError
from tamis.service.hub import Hub
from tamis.service.metrics import TenantMetrics
from tamis.service.webhooks.delivery import Sender
from tamis.service.webhooks.names import Names
from tamis.service.webhooks.record import Webhook
from tamis.service.webhooks.store import Store

T = TypeVar("T")


class Home(Protocol):
    """What webhooks need of their tenant."""

    @property
    def webhook_store(self) -> Store: ...
    @property
    def hub(self) -> Hub: ...
    @property
    def metrics(self) -> TenantMetrics: ...
    async def work(self, call: Callable[[Broker], T]) -> T: ...


class Post:
    """The store of a tenant, its sender, and the cursors that are to be moved."""

    def __init__(self, tenant: Home, sender: Sender, stopping: asyncio.Event) -> None:
        self.tenant = tenant
        self.sender = sender
        self.names = Names(sender.networks)
        self.stopping = stopping
        self.store = tenant.webhook_store
        self.gone: list[Webhook] = []
        """Webhooks whose subscribers were removed."""
        self._acknowledged: dict[str, int] = {}

    def acknowledge_soon(self, subscriber: str, sequence: int) -> None:
        """Move a cursor, with the next commit."""
        self._acknowledged[subscriber] = sequence

    async def acknowledge_now(self) -> None:
        """Commit all cursors.

        Raises
        ------
        BrokerError
            They are committed with the next call.
        """
        found, self._acknowledged = self._acknowledged, {}
        if not found:
            return
        try:
            await self.tenant.work(lambda broker: _acknowledge(broker, found))
        except BrokerError:
            self._acknowledged = {**found, **self._acknowledged}
            raise

    def leave(self, webhook: Webhook) -> None:
        """Have a webhook removed."""
        self.gone.append(webhook)


def _acknowledge(broker: Broker, sequences: dict[str, int]) -> None:
    try:
        broker.acknowledge_many(sequences)
    except UnknownIdError:
        for subscriber, sequence in sequences.items():
            with suppress(UnknownIdError):  # It was removed meanwhile.
                broker.acknowledge(subscriber, sequence)
