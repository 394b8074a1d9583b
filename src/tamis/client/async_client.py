"""`AsyncClient`: the methods of a broker, over HTTP, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeVar

from tamis.broker import Change, Note, Receipt, StandingSubscription, StoredEvent, SubscriberFigures
from tamis.broker.arguments import plain_number
from tamis.broker.listing_calls import Numbered
from tamis.broker.subscribing import NOT_GIVEN, NotGiven
from tamis.client.connection import Connection, failure_of, library, reply_of
from tamis.client.exchange import Failure, Pause, Reply, Request, Steps
from tamis.client.following import Following
from tamis.client.steps import CallSteps
from tamis.errors import BrokerError
from tamis.language.explain import Explanation
from tamis.matcher.covering import CoveringReport

T = TypeVar("T")


class AsyncClient:
    """A broker behind a service, for asyncio. Make one with `tamis.connect_async`.

    The methods are those of `Client`. Read a method that returns a list with ``async for``; an error comes with the first entry.
    """

    def __init__(self, connection: Connection) -> None:
        self._httpx2 = library()
        self._connection = connection
        self._http = self._httpx2.AsyncClient(**connection.options())
        self._steps = CallSteps(connection.tries)
        self._streams: set[Any] = set()
        self._is_closed = False

    async def subscribe(
        self,
        subscriber: str,
        name: str,
        expression: Any = NOT_GIVEN,
        *,
        weight: float | NotGiven = NOT_GIVEN,
        valid_from: datetime | NotGiven | None = NOT_GIVEN,
        valid_until: datetime | NotGiven | None = NOT_GIVEN,
    ) -> None:
        """Add a subscription, or change the one with this name: what is not given stays."""
        words = {"expression": expression, "weight": weight, "valid_from": valid_from, "valid_until": valid_until}
        await self._run(self._steps.subscribe(subscriber, name, words))

    async def subscribe_many(self, subscriptions: Iterable[Any]) -> None:
        """Add or change subscriptions: a list of mappings or an Arrow table.

        Unlike a broker, a service stores those before a wrong one. The error names the subscription.
        """
        await self._run(self._steps.subscribe_many(subscriptions))

    async def unsubscribe(self, subscriber: str, name: str) -> None:
        """Remove a subscription. Notes that were told stay."""
        await self._run(self._steps.unsubscribe(subscriber, name))

    async def pause(self, subscriber: str, name: str) -> None:
        """Let events pass a subscription by, until `resume`."""
        await self._run(self._steps.pause(subscriber, name))

    async def resume(self, subscriber: str, name: str) -> None:
        """Wake a paused subscription. It meets the stored events that are still valid."""
        await self._run(self._steps.resume(subscriber, name))

    async def remove_subscriber(self, subscriber: str) -> None:
        """Remove a subscriber with all its subscriptions and notes."""
        await self._run(self._steps.remove_subscriber(subscriber))

    def subscriptions(self, subscriber: str | None = None, *, search: str = "") -> AsyncIterator[StandingSubscription]:
        """The subscriptions of a subscriber, or of all, in the order in which they first came.

        `search` is a part of the name, the subscriber or the expression, without regard to case.
        """
        return self._pages(lambda after: self._steps.subscriptions_page(subscriber, search, after), 0)

    async def subscription(self, subscriber: str, name: str) -> StandingSubscription:
        """One subscription."""
        return await self._run(self._steps.subscription(subscriber, name))

    async def numbered(self, subscriber: str, name: str) -> Numbered:
        """One subscription with its number."""
        return await self._run(self._steps.numbered(subscriber, name))

    async def find_subscriptions(
        self, search: str = "", *, subscriber: str | None = None, after: int = 0, limit: int = 100
    ) -> list[Numbered]:
        """A page of the subscriptions, in the order in which they first came. See `Broker.find_subscriptions`."""
        return await self._run(self._steps.find_subscriptions(search, subscriber, after, limit))

    async def find_subscribers(self, search: str = "", *, after: int = 0, limit: int = 100) -> list[SubscriberFigures]:
        """A page of the subscribers, in the order in which they first came."""
        return await self._run(self._steps.find_subscribers(search, after, limit))

    async def subscriber(self, name: str) -> SubscriberFigures:
        """A subscriber and the state of its queue."""
        return await self._run(self._steps.subscriber(name))

    async def publish(
        self,
        event: Any,
        *,
        valid_until: datetime | None = None,
        key: str | None = None,
        k: int | None = None,
        with_matches: bool = True,
    ) -> Receipt:
        """Store an event and tell the subscribers that want it. When this returns, all of it is safe on disk.

        With a `key`, a request that got no answer is sent again. Without `with_matches`, the receipt has the number of the
        matches only, which is faster.
        """
        return await self._run(self._steps.publish(event, valid_until, key, k, with_matches))

    async def publish_many(
        self,
        events: Any,
        *,
        valid_until: datetime | Sequence[datetime | None] | None = None,
        keys: Sequence[str | None] | None = None,
        k: int | None = None,
        with_matches: bool = True,
    ) -> list[Receipt]:
        """Publish events: a list of mappings, or an Arrow table.

        Unlike a broker, a service stores the events before a wrong one. The error names the row.
        """
        return await self._run(self._steps.publish_many(events, valid_until, keys, k, with_matches))

    async def would_match(self, event: Any) -> bool:
        """Whether anyone wants an event."""
        return await self._run(self._steps.would_match(event))

    async def attributes(self) -> set[str]:
        """The attributes that subscriptions ask about."""
        return await self._run(self._steps.attributes())

    def notifications(self, subscriber: str, after: int | None = None, *, follow: bool = False) -> AsyncIterator[Note]:
        """The notes of a subscriber, in order. With `follow`, wait for more at the end; closing the client ends the iterator."""
        return self._notes(subscriber, after, follow)

    async def acknowledge(self, subscriber: str, sequence: int) -> None:
        """Move the cursor of a subscriber: reading starts after this note from now on."""
        await self._run(self._steps.acknowledge(subscriber, sequence))

    async def acknowledge_many(self, sequences: Mapping[str, int]) -> None:
        """Move the cursors of subscribers, one after another. If one is wrong, those before it are moved."""
        await self._run(self._steps.acknowledge_many(sequences))

    async def event(self, sequence: int) -> StoredEvent:
        """A stored event."""
        return await self._run(self._steps.event(sequence))

    async def explain(self, subscriber: str, name: str, event_sequence: int) -> Explanation:
        """Explain why a stored event satisfies a subscription or not."""
        return await self._run(self._steps.explain(subscriber, name, event_sequence))

    async def covering(self, *, most: int = 3, one_value: bool = False) -> CoveringReport[tuple[str, str]]:
        """Find subscriptions that are identical, covered by others, or never true."""
        return await self._run(self._steps.covering(most, one_value))

    def replay(self, expression: Any, after: int = 0) -> AsyncIterator[tuple[int, dict[str, Any]]]:
        """The stored events that an expression is true of, with their numbers. Nobody is told."""
        number = plain_number(after, "after")
        return self._pages(lambda after: self._steps.replay_page(expression, after), number)

    def changes(self, after: int = 0, *, limit: int | None = None) -> AsyncIterator[Change]:
        """The subscriptions that have changed after a number, each with its last change, in order of the changes."""
        return self._pages(self._steps.changes_pages(limit), plain_number(after, "after"))

    async def names(self, number: int) -> tuple[str, str]:
        """The names of the subscriber and of the subscription with a number. They never change."""
        return await self._run(self._steps.names(number))

    async def cost(self, number: int) -> float | None:
        """What a subscription costs: expected nanoseconds for each event; None if that is not known."""
        return await self._run(self._steps.cost(number))

    async def costs(self, most: int = 1000, seed: int = 0) -> list[tuple[int, float]]:
        """What subscriptions cost: numbers, and expected nanoseconds for each event, the most expensive first."""
        return await self._run(self._steps.costs(most, seed))

    async def counts(self) -> dict[str, int]:
        """How many subscribers, subscriptions and stored events there are."""
        return await self._run(self._steps.counts())

    async def deepest(self, most: int = 10) -> tuple[int, list[SubscriberFigures]]:
        """How many notes wait in all queues, and the subscribers with the most of them."""
        return await self._run(self._steps.deepest(most))

    async def brief(self) -> dict[str, Any]:
        """The figures of `stats` that are quick to find, also with a million subscriptions."""
        return await self._run(self._steps.stats(brief=True))

    async def stats(self) -> dict[str, Any]:
        """Figures about the contents and the work of the broker."""
        return await self._run(self._steps.stats())

    async def retain(
        self,
        *,
        max_age: timedelta | NotGiven | None = NOT_GIVEN,
        max_notes: int | NotGiven | None = NOT_GIVEN,
        when_full: Literal["drop oldest", "refuse publish"] | NotGiven = NOT_GIVEN,
    ) -> None:
        """Say how long notes are kept. What is not given stays."""
        await self._run(self._steps.retain({"max_age": max_age, "max_notes": max_notes, "when_full": when_full}))

    async def compact(self) -> None:
        """Delete what nobody can read any more, and give free space back to the disk."""
        await self._run(self._steps.compact())

    async def close(self) -> None:
        """Close all connections. Iterators that wait for notes end."""
        self._is_closed = True
        for answer in list(self._streams):
            with suppress(Exception):  # It has ended meanwhile.
                await answer.aclose()
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        """The result of a call. The steps themselves run in a thread: events and notes may be many."""
        reply: Reply | Failure | None = None
        while True:
            step = await asyncio.to_thread(_next, steps, reply)
            if isinstance(step, _Result):
                result: T = step.value
                return result
            reply = await self._done(step)

    async def _done(self, step: Request | Pause) -> Reply | Failure | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        self._check_open()
        content = _parts(step.content()) if callable(step.content) else step.content
        try:
            answer = await self._http.request(**self._connection.words(step), content=content or None)
        except self._httpx2.TransportError as error:
            return failure_of(error)
        return reply_of(answer, answer.content)

    def _check_open(self) -> None:
        if self._is_closed:
            raise BrokerError("the client is closed. Hint: connect again")

    async def _pages(
        self, page_after: Callable[[int], Steps[tuple[Sequence[T], int | None]]], after: int
    ) -> AsyncIterator[T]:
        following: int | None = after
        while following is not None:
            found, following = await self._run(page_after(following))
            for each in found:
                yield each

    async def _notes(self, subscriber: str, after: int | None, follow: bool) -> AsyncIterator[Note]:
        page = await self._run(self._steps.first_page(subscriber, after))
        while page.notes:
            for note in page.notes:
                yield note
            try:
                page = await self._run(self._steps.next_page(subscriber, page.last))
            except BrokerError:
                if follow and self._is_closed:
                    return
                raise
        if follow:
            async for note in self._follow(Following(subscriber, page.last, self._connection.tries)):
                yield note

    async def _follow(self, following: Following) -> AsyncIterator[Note]:
        while not self._is_closed:
            try:
                async with self._http.stream(**self._connection.words(following.request())) as answer:
                    if answer.status_code != 200:
                        ended: Reply | Failure = reply_of(answer, await answer.aread())
                    else:
                        self._streams.add(answer)
                        try:
                            async for event in self._httpx2.EventSource(answer, None):
                                if self._is_closed:
                                    return
                                note = following.note_in(event.event, event.data)
                                if note is not None:
                                    yield note
                        finally:
                            self._streams.discard(answer)
                        ended = reply_of(answer, b"")
            except self._httpx2.TransportError as error:
                ended = failure_of(error)
            except Exception:
                if self._is_closed:  # `close` took the stream away.
                    return
                raise
            if not self._is_closed:
                await asyncio.sleep(following.wait(ended))


class _Result(NamedTuple):
    value: Any


def _next(steps: Steps[Any], reply: Reply | Failure | None) -> Request | Pause | _Result:
    """The next step, or the result. An exception of `StopIteration` cannot pass through a future."""
    try:
        return steps.send(reply)
    except StopIteration as end:
        return _Result(end.value)


async def _parts(content: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in content:
        yield part
