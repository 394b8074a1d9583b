"""The steps of the calls that change subscriptions and list them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tamis.broker import StandingSubscription, SubscriberFigures
from tamis.broker.arguments import listed, plain_number
from tamis.broker.listing_calls import MOST, Numbered
from tamis.broker.subscribing import checked_name
from tamis.broker.subscription_calls import words_of
from tamis.broker.table_rows import row_events
from tamis.client.answers import numbered_of, subscriber_of, subscription_of
from tamis.client.exchange import Reply, Request, Steps, exchange
from tamis.client.writing import (
    JSON,
    NDJSON,
    body_of,
    chunks,
    known_name,
    names_of,
    path_of,
    query_of,
    subscription_fields,
)
from tamis.errors import DuplicateIdError, OptionError, shortened
from tamis.matcher.event_input import as_table

PAGE = 1000
"""Entries of a page of a list."""


class StepMaker:
    """Makes the steps of calls."""

    def __init__(self, tries: int) -> None:
        self._tries = tries

    def _ask(self, method: str, path: str, **words: Any) -> Steps[Reply]:
        return exchange(Request(method, path, **words), self._tries)

    def _json(self, method: str, path: str, body: Any = None, **words: Any) -> Steps[Any]:
        content = {} if body is None else {"content": body_of(body), "headers": JSON}
        reply = yield from self._ask(method, path, **{**content, **words})
        return reply.json()


class SubscriptionSteps(StepMaker):
    """Subscribing, pausing, removing."""

    def subscribe(self, subscriber: Any, name: Any, words: dict[str, Any]) -> Steps[None]:
        path = _path(subscriber, name)
        given = subscription_fields(words)
        text = given.get("expression")
        yield from self._json("PUT", path, given, subject={"expression_of": lambda line: text})

    def subscribe_many(self, subscriptions: Iterable[Any]) -> Steps[None]:
        table = as_table(subscriptions)
        rows = listed(subscriptions, "subscriptions") if table is None else row_events(table)
        wanted = [subscription_fields(words_of(row, place)) for place, row in enumerate(rows)]
        seen = set()
        for each in wanted:
            names = names_of(each["subscriber"], each["name"])
            if names in seen:
                raise DuplicateIdError(names, twice=True)
            seen.add(names)
        if not wanted:
            return
        subject: dict[str, Any] = {
            "row_of": lambda line: line - 1,
            "expression_of": lambda line: line and wanted[line - 1].get("expression"),
        }
        if len(wanted) > 1:
            subject["subscription_of"] = lambda line: line and wanted[line - 1]["name"]
        yield from self._ask(
            "POST",
            path_of("subscriptions"),
            content=lambda: chunks(body_of(each) + b"\n" for each in wanted),
            headers=NDJSON,
            subject=subject,
            patience=0,
        )

    def unsubscribe(self, subscriber: Any, name: Any) -> Steps[None]:
        yield from self._ask("DELETE", _path(subscriber, name), removes=True)

    def pause(self, subscriber: Any, name: Any) -> Steps[None]:
        yield from self._ask("POST", f"{_path(subscriber, name)}/pause")

    def resume(self, subscriber: Any, name: Any) -> Steps[None]:
        yield from self._ask("POST", f"{_path(subscriber, name)}/resume")

    def remove_subscriber(self, subscriber: Any) -> Steps[None]:
        yield from self._ask("DELETE", path_of("subscribers", known_name(subscriber)), removes=True)

    def numbered(self, subscriber: Any, name: Any) -> Steps[Numbered]:
        return numbered_of((yield from self._json("GET", _path(subscriber, name))))

    def find_subscriptions(self, search: Any, subscriber: Any, after: Any, limit: Any) -> Steps[list[Numbered]]:
        name = None if subscriber is None else known_name(subscriber)
        found = yield from self._find("subscriptions", after, limit, search=_searched(search), subscriber=name)
        return list(map(numbered_of, found))

    def find_subscribers(self, search: Any, after: Any, limit: Any) -> Steps[list[SubscriberFigures]]:
        found = yield from self._find("subscribers", after, limit, search=_searched(search))
        return list(map(subscriber_of, found))

    def _find(self, noun: str, after: Any, limit: Any, **words: Any) -> Steps[list[Any]]:
        """A page as a broker has it. It may be longer than those of the service."""
        following: int | None = plain_number(after, "after")
        left = plain_number(limit, "limit")
        if left > MOST:
            raise OptionError(f"`limit` must be at most {MOST}, not {shortened(limit)}")
        records: list[Any] = []
        while left and following is not None:
            query = query_of(after=following, limit=min(left, PAGE), **words)
            found = yield from self._json("GET", path_of(noun), query=query)
            records += found[noun]
            left -= len(found[noun])
            following = found["next"]
        return records

    def subscription(self, subscriber: Any, name: Any) -> Steps[StandingSubscription]:
        return subscription_of((yield from self._json("GET", _path(subscriber, name))))

    def subscriber(self, name: Any) -> Steps[SubscriberFigures]:
        return subscriber_of((yield from self._json("GET", path_of("subscribers", known_name(name)))))

    def subscriptions_page(
        self, subscriber: Any, search: Any, after: int
    ) -> Steps[tuple[Sequence[StandingSubscription], int | None]]:
        name = None if subscriber is None else known_name(subscriber)
        query = query_of(subscriber=name, search=_searched(search), after=after, limit=PAGE)
        found = yield from self._json("GET", path_of("subscriptions"), query=query)
        return list(map(subscription_of, found["subscriptions"])), found["next"]


def _searched(search: Any) -> str | None:
    return checked_name(search, "search") if search else None


def _path(subscriber: Any, name: Any) -> str:
    own, given = names_of(subscriber, name)
    return path_of("subscribers", own, "subscriptions", given)
