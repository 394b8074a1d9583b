"""The steps of all calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tamis.broker import Change, StoredEvent, SubscriberFigures
from tamis.broker.arguments import check_storable, plain_number
from tamis.broker.subscribing import NotGiven
from tamis.client.answers import change_of, event_of, report_of, stored_event_of, subscriber_of
from tamis.client.exchange import Steps
from tamis.client.note_steps import NoteSteps
from tamis.client.publish_steps import PublishSteps
from tamis.client.subscription_steps import PAGE, SubscriptionSteps
from tamis.client.writing import expression_text, path_of, query_of
from tamis.errors import UnknownIdError
from tamis.language.event import flatten
from tamis.language.explain import Explanation, explain_flat
from tamis.matcher.covering import CoveringReport

_MOST_LISTED = 100_000
"""Entries of each list of a covering report."""

StoredPair = tuple[int, dict[str, Any]]


class CallSteps(SubscriptionSteps, NoteSteps, PublishSteps):
    """All calls of a broker that a service has."""

    def event(self, sequence: Any) -> Steps[StoredEvent]:
        number = str(plain_number(sequence, "sequence"))
        return stored_event_of((yield from self._json("GET", path_of("events", number))))

    def explain(self, subscriber: Any, name: Any, event_sequence: Any) -> Steps[Explanation]:
        """The explanation is made here, from the expression and the event, so that it has the type of a broker's."""
        number = plain_number(event_sequence, "event_sequence")
        found = yield from self.subscription(subscriber, name)
        stored = yield from self.event(number)
        return explain_flat(found.expression, flatten(stored.event))

    def covering(self, most: Any, one_value: Any) -> Steps[CoveringReport[tuple[str, str]]]:
        body = {"most": most, "one_value": bool(one_value), "limit": _MOST_LISTED}
        return report_of((yield from self._json("POST", path_of("covering"), body, patience=0)))

    def replay_page(self, expression: Any, after: int) -> Steps[tuple[Sequence[StoredPair], int | None]]:
        text = expression_text(expression)
        found = yield from self._json(
            "GET",
            path_of("events"),
            query=query_of(expression=text, after=after, limit=PAGE),
            subject={"expression_of": lambda line: text},
            patience=0,
        )
        return [(each["sequence"], event_of(each["event"])) for each in found["events"]], found["next"]

    def changes_pages(self, limit: Any) -> Callable[[int], Steps[tuple[Sequence[Change], int | None]]]:
        """A function of the steps of a page after a number. All pages together have `limit` changes."""
        left = None if limit is None else plain_number(limit, "limit")

        def page(after: int) -> Steps[tuple[Sequence[Change], int | None]]:
            nonlocal left
            size = PAGE if left is None else min(PAGE, left)
            if size == 0:
                return [], None
            found = yield from self._json("GET", path_of("changes"), query=query_of(after=after, limit=size))
            changes = list(map(change_of, found["changes"]))
            if left is not None:
                left -= len(changes)
            return changes, found["next"]

        return page

    def names(self, number: Any) -> Steps[tuple[str, str]]:
        place = plain_number(number, "number")
        if not 0 < place < 2**63:
            raise UnknownIdError(place)
        found = yield from self._json("GET", path_of("subscriptions", str(place)))
        return found["subscriber"], found["name"]

    def cost(self, number: Any) -> Steps[float | None]:
        place = plain_number(number, "number")
        if not 0 < place < 2**63:
            return None
        found: float | None = (yield from self._json("GET", path_of("costs", str(place))))["nanoseconds"]
        return found

    def costs(self, most: Any, seed: Any) -> Steps[list[tuple[int, float]]]:
        query = query_of(most=plain_number(most, "most"), seed=plain_number(seed, "seed"))
        found = yield from self._json("GET", path_of("costs"), query=query, patience=0)
        return [(each["number"], each["nanoseconds"]) for each in found["costs"]]

    def counts(self) -> Steps[dict[str, int]]:
        found: dict[str, int] = yield from self._json("GET", path_of("counts"))
        return found

    def deepest(self, most: Any) -> Steps[tuple[int, list[SubscriberFigures]]]:
        found = yield from self._json("GET", path_of("deepest"), query=query_of(most=plain_number(most, "most")))
        return found["waiting"], list(map(subscriber_of, found["subscribers"]))

    def stats(self, *, brief: bool = False) -> Steps[dict[str, Any]]:
        found: dict[str, Any] = yield from self._json("GET", path_of("stats"), query=query_of(brief=brief or None))
        age = found["retention"]["max_age"]
        found["retention"]["max_age"] = None if age is None else timedelta(seconds=age)
        return found

    def retain(self, words: dict[str, Any]) -> Steps[None]:
        given = {name: value for name, value in words.items() if not isinstance(value, NotGiven)}
        check_storable(given)
        age = given.get("max_age")
        if isinstance(age, timedelta):
            given["max_age"] = age.total_seconds()
        yield from self._json("PUT", path_of("retention"), given)

    def compact(self) -> Steps[None]:
        yield from self._ask("POST", path_of("compact"), patience=0)
