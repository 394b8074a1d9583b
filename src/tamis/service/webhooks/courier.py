"""One webhook at work: read a batch, send it, write down what came of it, wait for more.

new notes  -->  batch  --2xx-->  acknowledged
                |   ^
          other |   | wait: 1 s, 2 s, 4 s, ... (with jitter)
                v   |
                try again  --after the last try-->  dead letters
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import replace

from tamis.errors import UnknownIdError
from tamis.service.hub import Waiter
from tamis.service.webhooks.delivery import GONE, Outcome
from tamis.service.webhooks.post import Post
from tamis.service.webhooks.reading import next_batch
from tamis.service.webhooks.record import Batch, DeadLetter, Webhook
from tamis.service.webhooks.settings import WebhookSettings

_IDLE = 60.0
"""Seconds after which a courier without notes looks whether its subscriber is still there."""

_AFTER_FAILURE = 5.0
"""Seconds after which a courier tries again if the service itself has failed."""


class Courier:
    """Delivers the notes of one subscriber, one batch after another."""

    def __init__(self, post: Post, webhook: Webhook) -> None:
        self._post = post
        self._webhook = webhook
        self._position = 0
        """The last note that was delivered since the start. The cursor follows a moment later."""
        self._recording = asyncio.Lock()
        """Held while results are written down, so that `stop` does not interrupt that."""
        self._waiter: Waiter | None = None
        self._task = asyncio.create_task(self._run())

    def look_again(self) -> None:
        """Dead letters are to be replayed."""
        if self._waiter is not None:
            self._waiter.ring()

    async def stop(self) -> None:
        """Stop at once. A batch that is being sent is sent again later."""
        async with self._recording:
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def finish(self, patience: float) -> None:
        """Stop after the batch that is being sent, or after some seconds. The service is stopping already."""
        await asyncio.wait([self._task], timeout=patience)
        await self.stop()

    async def _run(self) -> None:
        post, webhook = self._post, self._webhook
        while not post.stopping.is_set():
            try:
                await self._deliver()
                return
            except UnknownIdError:
                post.leave(webhook)
                return
            except Exception as error:  # such as a full disk: other webhooks go on, and this one tries again
                webhook.reason = f"the service failed: {error}"
                with suppress(TimeoutError):
                    await asyncio.wait_for(post.stopping.wait(), _AFTER_FAILURE)

    async def _deliver(self) -> None:
        """Deliver until the service ends or the webhook is disabled."""
        post, webhook = self._post, self._webhook
        channel = post.sender.channel(post.names)
        try:
            async with post.tenant.hub.waiting(webhook.subscriber) as self._waiter:
                while webhook.state == "active" and await self._is_due():
                    batch = await post.tenant.work(
                        lambda broker: next_batch(broker, post.store, webhook, self._position)
                    )
                    if batch is None:
                        if webhook.retrying is None:
                            await self._waiter.wait(_IDLE)
                        webhook.retrying = None  # Somebody else has acknowledged the notes of the batch.
                        continue
                    message, body = batch.message(webhook.id), batch.body(webhook.subscriber)
                    began = time.perf_counter()
                    outcome = await post.sender.send(channel, webhook.url, webhook.secrets(time.time()), message, body)
                    post.tenant.metrics.webhooks.tried(outcome.delivered, len(batch.notes), time.perf_counter() - began)
                    async with self._recording:
                        await (self._delivered(batch) if outcome.delivered else self._failed(batch, outcome))
        finally:
            channel.close()

    async def _is_due(self) -> bool:
        """Wait for the next try. Returns False when the service ends."""
        stopping = self._post.stopping
        seconds = self._webhook.next_try - time.time()
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), seconds)
        return not stopping.is_set()

    async def _delivered(self, batch: Batch) -> None:
        post, webhook = self._post, self._webhook
        if batch.kind == "notes":
            self._position = batch.last
            post.acknowledge_soon(webhook.subscriber, batch.last)
        if webhook.settle() or batch.kind == "replay":
            sequences = [sequence for sequence, _ in batch.notes] if batch.kind == "replay" else []
            await post.tenant.work(lambda _: post.store.settle(webhook, sequences))

    async def _failed(self, batch: Batch, outcome: Outcome) -> None:
        post, webhook = self._post, self._webhook
        # The cursor must stand right before the batch when the failure is written down: after a crash, the batch begins there.
        await post.acknowledge_now()
        webhook.tries += 1
        webhook.reason = outcome.reason
        webhook.retrying, webhook.batch_last = batch.kind, batch.last
        if outcome.status == GONE:
            webhook.state, webhook.reason = "disabled", "the receiver says that it is gone (status 410)"
        elif webhook.tries >= post.sender.settings.tries:
            await self._give_up(batch)
            return
        else:
            webhook.next_try = time.time() + wait_after(webhook.tries, post.sender.settings, outcome.retry_after)
        await post.tenant.work(lambda _: post.store.update(webhook))

    async def _give_up(self, batch: Batch) -> None:
        post, webhook = self._post, self._webhook
        now, settings = time.time(), post.sender.settings
        letters = [DeadLetter(*note, webhook.tries, webhook.reason, now, False) for note in batch.notes]
        after = replace(webhook, failures=webhook.failures + 1)
        after.begin_again()
        if after.failures >= settings.failures:
            after.state = "disabled"
            after.reason = f"{after.failures} batches in a row could not be delivered; the last: {webhook.reason}"
        count = await post.tenant.work(lambda _: post.store.bury(after, letters))
        if after.state == "active" and count >= settings.most_dead_letters:
            after.state, after.reason = "disabled", f"there are {count:,} dead letters"
            await post.tenant.work(lambda _: post.store.update(after))
        if batch.kind == "notes":
            self._position = batch.last
            post.acknowledge_soon(webhook.subscriber, batch.last)
            await post.acknowledge_now()
        post.tenant.metrics.webhooks.dead += len(letters) if batch.kind == "notes" else 0
        webhook.become(after)  # Only now, so that nobody is told of what is not on disk.


def wait_after(tries: int, settings: WebhookSettings, retry_after: float | None = None) -> float:
    """Seconds until the next try: twice as long after each. A random half is left out, so that receivers that fail together are
    not tried together. A receiver may ask for more, up to the longest wait."""
    longest = min(settings.longest_wait, settings.first_wait * 2.0 ** min(tries - 1, 60))
    wait = longest * random.uniform(0.5, 1.0)
    return wait if retry_after is None else max(wait, min(retry_after, settings.longest_wait))
