"""`Client`: the methods of a broker, over HTTP."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal, TypeVar

from tamis.broker import Change, Note, Receipt, StandingSubscription, StoredEvent, SubscriberFigures
from tamis.broker.arguments import plain_number
from tamis.broker.listing_calls import Numbered
from tamis.broker.subscribing import NOT_GIVEN, NotGiven
from tamis.client.connection import Connection, failure_of, library, reply_of
from tamis.client.exchange import Failure, Pause, Reply, Request, Steps
from tamis.client.following import Following
from tamis.client.note_steps import NotePage
from tamis.client.steps import CallSteps
from tamis.errors import BrokerError
from tamis.language.explain import Explanation
from tamis.matcher.covering import CoveringReport

T = TypeVar("T")


class Client:
    """A broker behind a service. Make one with `tamis.connect`.

    The methods have the meaning, the types and the errors of `tamis.broker.Broker`. What differs stands at the methods. If a
    service does not answer or refuses a request, that is a `ServiceError`. If a token is not valid or lacks a role, that is an
    `AccessError`.
    """

    def __init__(self, connection: Connection) -> None:
        self._httpx2 = library()
        self._connection = connection
        self._http = self._httpx2.Client(**connection.options())
        self._steps = CallSteps(connection.tries)
        self._lock = threading.Lock()
        self._streams: set[Any] = set()
        self._is_closed = False

    def subscribe(
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
        self._run(self._steps.subscribe(subscriber, name, words))

    def subscribe_many(self, subscriptions: Iterable[Any]) -> None:
        """Add or change subscriptions: a list of mappings or an Arrow table.

        Unlike a broker, a service stores those before a wrong one. The error names the subscription.
        """
        self._run(self._steps.subscribe_many(subscriptions))

    def unsubscribe(self, subscriber: str, name: str) -> None:
        """Remove a subscription. Notes that were told stay."""
        self._run(self._steps.unsubscribe(subscriber, name))

    def pause(self, subscriber: str, name: str) -> None:
        """Let events pass a subscription by, until `resume`."""
        self._run(self._steps.pause(subscriber, name))

    def resume(self, subscriber: str, name: str) -> None:
        """Wake a paused subscription. It meets the stored events that are still valid."""
        self._run(self._steps.resume(subscriber, name))

    def remove_subscriber(self, subscriber: str) -> None:
        """Remove a subscriber with all its subscriptions and notes."""
        self._run(self._steps.remove_subscriber(subscriber))

    def subscriptions(self, subscriber: str | None = None, *, search: str = "") -> Iterator[StandingSubscription]:
        """The subscriptions of a subscriber, or of all, in the order in which they first came.

        `search` is a part of the name, the subscriber or the expression, without regard to case.
        """
        return self._pages(lambda after: self._steps.subscriptions_page(subscriber, search, after), 0)

    def subscription(self, subscriber: str, name: str) -> StandingSubscription:
        """One subscription."""
        return self._run(self._steps.subscription(subscriber, name))

    def numbered(self, subscriber: str, name: str) -> Numbered:
        """One subscription with its number."""
        return self._run(self._steps.numbered(subscriber, name))

    def find_subscriptions(
        self, search: str = "", *, subscriber: str | None = None, after: int = 0, limit: int = 100
    ) -> list[Numbered]:
        """A page of the subscriptions, in the order in which they first came. See `Broker.find_subscriptions`."""
        return self._run(self._steps.find_subscriptions(search, subscriber, after, limit))

    def find_subscribers(self, search: str = "", *, after: int = 0, limit: int = 100) -> list[SubscriberFigures]:
        """A page of the subscribers, in the order in which they first came."""
        return self._run(self._steps.find_subscribers(search, after, limit))

    def subscriber(self, name: str) -> SubscriberFigures:
        """A subscriber and the state of its queue."""
        return self._run(self._steps.subscriber(name))

    def publish(
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
        return self._run(self._steps.publish(event, valid_until, key, k, with_matches))

    def publish_many(
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
        return self._run(self._steps.publish_many(events, valid_until, keys, k, with_matches))

    def would_match(self, event: Any) -> bool:
        """Whether anyone wants an event."""
        return self._run(self._steps.would_match(event))

    def attributes(self) -> set[str]:
        """The attributes that subscriptions ask about."""
        return self._run(self._steps.attributes())

    def notifications(self, subscriber: str, after: int | None = None, *, follow: bool = False) -> Iterator[Note]:
        """The notes of a subscriber, in order. With `follow`, wait for more at the end; closing the client ends the iterator."""
        page = self._run(self._steps.first_page(subscriber, after))
        return self._notes(subscriber, page, follow)

    def acknowledge(self, subscriber: str, sequence: int) -> None:
        """Move the cursor of a subscriber: reading starts after this note from now on."""
        self._run(self._steps.acknowledge(subscriber, sequence))

    def acknowledge_many(self, sequences: Mapping[str, int]) -> None:
        """Move the cursors of subscribers, one after another. If one is wrong, those before it are moved."""
        self._run(self._steps.acknowledge_many(sequences))

    def event(self, sequence: int) -> StoredEvent:
        """A stored event."""
        return self._run(self._steps.event(sequence))

    def explain(self, subscriber: str, name: str, event_sequence: int) -> Explanation:
        """Explain why a stored event satisfies a subscription or not."""
        return self._run(self._steps.explain(subscriber, name, event_sequence))

    def covering(self, *, most: int = 3, one_value: bool = False) -> CoveringReport[tuple[str, str]]:
        """Find subscriptions that are identical, covered by others, or never true."""
        return self._run(self._steps.covering(most, one_value))

    def replay(self, expression: Any, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        """The stored events that an expression is true of, with their numbers. Nobody is told."""
        number = plain_number(after, "after")
        return self._pages(lambda after: self._steps.replay_page(expression, after), number)

    def changes(self, after: int = 0, *, limit: int | None = None) -> Iterator[Change]:
        """The subscriptions that have changed after a number, each with its last change, in order of the changes."""
        return self._pages(self._steps.changes_pages(limit), plain_number(after, "after"))

    def names(self, number: int) -> tuple[str, str]:
        """The names of the subscriber and of the subscription with a number. They never change."""
        return self._run(self._steps.names(number))

    def cost(self, number: int) -> float | None:
        """What a subscription costs: expected nanoseconds for each event; None if that is not known."""
        return self._run(self._steps.cost(number))

    def costs(self, most: int = 1000, seed: int = 0) -> list[tuple[int, float]]:
        """What subscriptions cost: numbers, and expected nanoseconds for each event, the most expensive first."""
        return self._run(self._steps.costs(most, seed))

    def counts(self) -> dict[str, int]:
        """How many subscribers, subscriptions and stored events there are."""
        return self._run(self._steps.counts())

    def deepest(self, most: int = 10) -> tuple[int, list[SubscriberFigures]]:
        """How many notes wait in all queues, and the subscribers with the most of them."""
        return self._run(self._steps.deepest(most))

    def brief(self) -> dict[str, Any]:
        """The figures of `stats` that are quick to find, also with a million subscriptions."""
        return self._run(self._steps.stats(brief=True))

    def stats(self) -> dict[str, Any]:
        """Figures about the contents and the work of the broker."""
        return self._run(self._steps.stats())

    def retain(
        self,
        *,
        max_age: timedelta | NotGiven | None = NOT_GIVEN,
        max_notes: int | NotGiven | None = NOT_GIVEN,
        when_full: Literal["drop oldest", "refuse publish"] | NotGiven = NOT_GIVEN,
    ) -> None:
        """Say how long notes are kept. What is not given stays."""
        self._run(self._steps.retain({"max_age": max_age, "max_notes": max_notes, "when_full": when_full}))

    def compact(self) -> None:
        """Delete what nobody can read any more, and give free space back to the disk."""
        self._run(self._steps.compact())

    def close(self) -> None:
        """Close all connections. Iterators that wait for notes end."""
        with self._lock:
            self._is_closed = True
            streams = list(self._streams)
        for answer in streams:
            with suppress(Exception):  # It has ended meanwhile.
                # Closing a socket does not wake the thread that reads from it.
                answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        """The result of a call."""
        try:
            step = next(steps)
            while True:
                step = steps.send(self._done(step))
        except StopIteration as end:
            result: T = end.value
            return result

    def _done(self, step: Request | Pause) -> Reply | Failure | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        self._check_open()
        content = step.content() if callable(step.content) else step.content
        try:
            answer = self._http.request(**self._connection.words(step), content=content or None)
        except self._httpx2.TransportError as error:
            return failure_of(error)
        except RuntimeError:
            self._check_open()  # Another thread has closed the client.
            raise
        return reply_of(answer, answer.content)

    def _check_open(self) -> None:
        if self._is_closed:
            raise BrokerError("the client is closed. Hint: connect again")

    def _pages(self, page_after: Callable[[int], Steps[tuple[Sequence[T], int | None]]], after: int) -> Iterator[T]:
        return self._entries(page_after, *self._run(page_after(after)))

    def _entries(
        self,
        page_after: Callable[[int], Steps[tuple[Sequence[T], int | None]]],
        found: Sequence[T],
        following: int | None,
    ) -> Iterator[T]:
        yield from found
        while following is not None:
            found, following = self._run(page_after(following))
            yield from found

    def _notes(self, subscriber: str, page: NotePage, follow: bool) -> Iterator[Note]:
        while page.notes:
            yield from page.notes
            try:
                page = self._run(self._steps.next_page(subscriber, page.last))
            except BrokerError:
                if follow and self._is_closed:
                    return
                raise
        if follow:
            yield from self._follow(Following(subscriber, page.last, self._connection.tries))

    def _follow(self, following: Following) -> Iterator[Note]:
        while not self._is_closed:
            try:
                with self._stream(following.request()) as answer:
                    if answer.status_code != 200:
                        ended: Reply | Failure = reply_of(answer, answer.read())
                    else:
                        for event in self._httpx2.EventSource(answer, None):
                            if self._is_closed:
                                return
                            note = following.note_in(event.event, event.data)
                            if note is not None:
                                yield note
                        ended = reply_of(answer, b"")
            except self._httpx2.TransportError as error:
                ended = failure_of(error)
            except (BrokerError, RuntimeError):
                if self._is_closed:
                    return
                raise
            if not self._is_closed:
                time.sleep(following.wait(ended))

    @contextmanager
    def _stream(self, request: Request) -> Iterator[Any]:
        with self._http.stream(**self._connection.words(request)) as answer:
            with self._lock:
                self._streams.add(answer)
            try:
                self._check_open()  # `close` may have looked at the streams just before.
                yield answer
            finally:
                with self._lock:
                    self._streams.discard(answer)
