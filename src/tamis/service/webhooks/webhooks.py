"""All webhooks of a tenant: their couriers, and what users change about them."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tamis.errors import BrokerError, OptionError, UnknownIdError, shortened
from tamis.service.problems import ProblemError
from tamis.service.webhooks.addresses import ForbiddenError, read_url
from tamis.service.webhooks.courier import Courier
from tamis.service.webhooks.delivery import Sender
from tamis.service.webhooks.post import Home, Post
from tamis.service.webhooks.record import MOST_IN_BATCH, STATES, DeadLetter, Webhook
from tamis.service.webhooks.signing import checked_secret, new_secret

_ACKNOWLEDGE_EVERY = 0.5
"""Seconds between commits of cursors. One commit serves all webhooks. What a crash leaves out is delivered again."""
_PATIENCE = 5.0
"""Seconds that batches under way get when the service ends."""
_LOOK_UP = 3.0
"""Seconds to look up the host of a new webhook, so that a forbidden address is an error at once."""
_OVERLAP, _MOST_OVERLAP = 24 * 60 * 60, 30 * 24 * 60 * 60
"""Seconds for which an old secret stays valid after a rotation: unless a user says another number, and at most."""


class Webhooks:
    """The webhooks of a tenant."""

    def __init__(self, tenant: Home, sender: Sender, stopping: asyncio.Event) -> None:
        self._post = Post(tenant, sender, stopping)
        self._tenant = tenant
        self._webhooks: dict[str, Webhook] = {}
        self._couriers: dict[str, Courier] = {}
        self._changing = asyncio.Lock()
        self._opened = asyncio.Event()

    async def run(self) -> None:
        """Deliver until the service ends."""
        post = self._post
        await self._tenant.work(lambda _: self._open())
        for webhook in self._webhooks.values():
            self._start(webhook)
        self._opened.set()
        try:
            while not post.stopping.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(post.stopping.wait(), _ACKNOWLEDGE_EVERY)
                with suppress(BrokerError):  # such as a full disk
                    await post.acknowledge_now()
                    await self._remove_gone()
        finally:
            async with self._changing:
                couriers = list(self._couriers.values())
                self._couriers.clear()
            for courier in couriers:
                courier.look_again()
            await asyncio.gather(*(each.finish(_PATIENCE) for each in couriers))
            post.names.close()
            with suppress(BrokerError):
                await post.acknowledge_now()
            await self._tenant.work(lambda _: post.store.close())

    def _open(self) -> None:
        self._webhooks = {each.subscriber: each for each in self._post.store.all()}

    def _start(self, webhook: Webhook) -> None:
        if webhook.state == "active":
            self._couriers[webhook.subscriber] = Courier(self._post, webhook)

    async def _stop(self, subscriber: str) -> None:
        courier = self._couriers.pop(subscriber, None)
        if courier is not None:
            await courier.stop()
            # The next courier begins at the cursor.
            await self._post.acknowledge_now()

    async def _remove_gone(self) -> None:
        gone, self._post.gone = self._post.gone, []
        for webhook in gone:
            async with self._changing:
                if self._webhooks.get(webhook.subscriber) is webhook:
                    await self._remove(webhook.subscriber)

    async def _remove(self, subscriber: str) -> None:
        await self._stop(subscriber)
        del self._webhooks[subscriber]
        await self._tenant.work(lambda _: self._post.store.remove(subscriber))

    async def _get(self, subscriber: str) -> Webhook:
        await self._opened.wait()
        found = self._webhooks.get(subscriber)
        if found is None:
            raise UnknownIdError(subscriber, "webhook of the subscriber")
        return found

    async def put(self, subscriber: str, url: object, secret: object, batch: object) -> dict[str, Any]:
        """Add a webhook, or change it. What is None stays. Returns it with its secret.

        Raises
        ------
        OptionError
        UnknownIdError
            There is no such subscriber.
        """
        await self._opened.wait()
        if url is not None:
            await self._check(url)
        await self._tenant.work(lambda broker: broker.subscriber(subscriber))
        async with self._changing:
            old = self._webhooks.get(subscriber)
            webhook = _changed(old, subscriber, url, secret, batch)
            if old is None and len(self._webhooks) >= self._post.sender.settings.most:
                raise ProblemError(
                    422, "too-many-webhooks", f"this tenant has {len(self._webhooks):,} webhooks, and may have no more"
                )
            await self._write(webhook)
        return {**await self.shown(subscriber), "secret": webhook.secret}

    async def _check(self, url: object) -> None:
        target = read_url(url)
        try:
            await asyncio.wait_for(self._post.names.look_up(target), _LOOK_UP)
        except ForbiddenError as error:
            raise OptionError(f"`url`: {error}") from None
        except (OSError, TimeoutError):
            pass  # It may be known later. Each try looks again.

    async def _write(self, webhook: Webhook) -> None:
        """Store a webhook that was changed, and let it begin again. The caller holds the lock."""
        await self._stop(webhook.subscriber)
        try:
            await self._tenant.work(lambda _: self._post.store.put(webhook))
            self._webhooks[webhook.subscriber] = webhook
        finally:  # If it cannot be stored, the webhook goes on as it was.
            if webhook.subscriber in self._webhooks:
                self._start(self._webhooks[webhook.subscriber])

    async def pause(self, subscriber: str) -> None:
        """Send nothing until `resume`. The notes wait."""
        await self._get(subscriber)
        async with self._changing:
            webhook = await self._get(subscriber)
            await self._stop(subscriber)
            await self._write(replace(webhook, state="paused"))

    async def resume(self, subscriber: str) -> None:
        """Begin again at once, with all tries."""
        await self._get(subscriber)
        async with self._changing:
            webhook = await self._get(subscriber)
            await self._stop(subscriber)
            await self._write(replace(webhook, state="active", reason="", tries=0, failures=0, next_try=0.0))

    async def rotate(self, subscriber: str, secret: object, overlap: object) -> dict[str, Any]:
        """Take a new secret. For `overlap` seconds, the old one signs messages, too. Returns the webhook with the new secret.

        Raises
        ------
        OptionError
        """
        new = new_secret() if secret is None else checked_secret(secret)
        seconds = _OVERLAP if overlap is None else overlap
        if type(seconds) not in (int, float) or not 0 <= seconds <= _MOST_OVERLAP:  # type: ignore[operator]
            raise OptionError(
                f"`overlap` must be a number of seconds from 0 to {_MOST_OVERLAP:,}, not {shortened(overlap)}"
            )
        await self._get(subscriber)
        async with self._changing:
            webhook = await self._get(subscriber)
            await self._stop(subscriber)
            after = replace(webhook)
            after.rotate(new, time.time(), float(seconds))  # type: ignore[arg-type]
            await self._write(after)
        return {**await self.shown(subscriber), "secret": new}

    async def remove(self, subscriber: str) -> None:
        """Remove a webhook and its dead letters. The notes stay."""
        await self._get(subscriber)
        async with self._changing:
            await self._get(subscriber)
            await self._remove(subscriber)

    async def leave(self, subscriber: str) -> None:
        """Remove the webhook of a subscriber that is no more, if it has one."""
        await self._opened.wait()
        async with self._changing:
            if subscriber in self._webhooks:
                await self._remove(subscriber)

    async def shown(self, subscriber: str) -> dict[str, Any]:
        """A webhook for an answer."""
        webhook = await self._get(subscriber)
        return webhook.shown(await self._tenant.work(lambda _: self._post.store.count_dead_letters(subscriber)))

    async def page(self, after: str, limit: int) -> list[dict[str, Any]]:
        """Some webhooks after a name, in the order of their names."""
        await self._opened.wait()
        names = sorted(name for name in self._webhooks if name > after)[:limit]
        counts = await self._tenant.work(lambda _: list(map(self._post.store.count_dead_letters, names)))
        pairs = zip(names, counts, strict=True)
        return [self._webhooks[name].shown(count) for name, count in pairs if name in self._webhooks]

    def figures(self) -> dict[str, Any]:
        """How many webhooks there are in each state, and their dead letters. It runs in a thread."""
        found = Counter(each.state for each in list(self._webhooks.values()))
        letters = self._post.store.count_all_dead_letters() if self._opened.is_set() else 0
        return {"states": {state: found[state] for state in STATES}, "dead_letters": letters}

    async def dead_letters(self, subscriber: str, after: int, limit: int) -> list[DeadLetter]:
        """Notes that could not be delivered."""
        await self._get(subscriber)
        return await self._tenant.work(lambda _: self._post.store.dead_letters(subscriber, after, limit))

    async def replay(self, subscriber: str, sequences: Sequence[int] | None) -> int:
        """Send dead letters again: some, or all. Returns how many."""
        await self._get(subscriber)
        count = await self._tenant.work(lambda _: self._post.store.replay(subscriber, sequences))
        if subscriber in self._couriers:
            self._couriers[subscriber].look_again()
        return count

    async def forget(self, subscriber: str, sequences: Sequence[int] | None) -> int:
        """Delete dead letters: some, or all. Returns how many."""
        await self._get(subscriber)
        return await self._tenant.work(lambda _: self._post.store.forget(subscriber, sequences))


def _changed(old: Webhook | None, subscriber: str, url: object, secret: object, batch: object) -> Webhook:
    """A webhook with what a user gives. It begins again: a new address may well work."""
    if old is None and url is None:
        raise OptionError("a new webhook needs `url`")
    if batch is not None and (type(batch) is not int or not 0 < batch <= MOST_IN_BATCH):
        raise OptionError(f"`batch` must be a number from 1 to {MOST_IN_BATCH}, not {batch!r}")
    identifier = f"wh_{secrets.token_hex(8)}" if old is None else old.id
    found = Webhook(subscriber, identifier, old.url if old else "", old.secret if old else new_secret())
    if old is not None:
        found.batch, found.state, found.missed = old.batch, old.state, old.missed
        found.old_secret, found.old_until = old.old_secret, old.old_until
    if url is not None:
        found.url = read_url(url).url
        if found.state == "disabled":
            found.state = "active"
    if secret is not None:
        found.secret, found.old_secret, found.old_until = checked_secret(secret), "", 0.0
    if isinstance(batch, int):
        found.batch = batch
    return found
