"""What subscribers want."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker import Broker
from tamis.broker.answer_json import subscriber_json, subscription_json
from tamis.service.access import SubscribeVisit, Visit
from tamis.service.answers import json_answer
from tamis.service.bodies import has_lines
from tamis.service.documented import (
    MOMENT,
    NUMBER,
    NUMBER_OR_NULL,
    REAL,
    SUBSCRIBER,
    SUBSCRIPTION,
    TEXT,
    After,
    PageSize,
    SubscriberName,
    SubscriptionName,
    documented,
    form,
    list_of,
    may_have,
)
from tamis.service.given import most_of_expression, object_of, wanted
from tamis.service.line_subscribing import LineSubscriber
from tamis.service.note_pages import Page
from tamis.service.problems import ProblemError

router = APIRouter(prefix="/v1", tags=["subscriptions"])

_ONE = "/subscribers/{subscriber:name}/subscriptions/{name:name}"
_CRIME = {"expression": "price < 20 AND genre = 'crime'"}
Search = Annotated[str, Query(max_length=1000, description="A part of a name or of an expression, in any case.")]


def _record(visit: Visit, found: Any) -> dict[str, Any]:
    matches = visit.tenant.hub.hits_of(found.number)
    return {"number": found.number, **subscription_json(found.subscription), "matches": matches}


@router.put(
    _ONE,
    **documented(
        SUBSCRIPTION,
        body=may_have(expression={"type": ["string", "array"]}, weight=REAL, valid_from=MOMENT, valid_until=MOMENT),
        example=_CRIME,
    ),
)
async def subscribe(
    request: Request, visit: SubscribeVisit, subscriber: SubscriberName, name: SubscriptionName
) -> Response:
    """Add a subscription, or change the one with this name: what is not given stays, and null takes a bound away."""
    given = await object_of(request, visit.tenant, "a subscription", most_of_expression(visit.tenant.limits))

    def call(broker: Broker) -> Any:
        words = wanted(given, visit.tenant)
        visit.tenant.check_subscriptions(broker, [(subscriber, name)])
        broker.subscribe(subscriber, name, **words)
        return broker.numbered(subscriber, name)

    return json_answer(_record(visit, await visit.tenant.work(call)))


@router.get(_ONE, **documented(SUBSCRIPTION))
async def subscription(visit: SubscribeVisit, subscriber: SubscriberName, name: SubscriptionName) -> Response:
    """One subscription."""
    return json_answer(_record(visit, await visit.tenant.work(lambda broker: broker.numbered(subscriber, name))))


@router.delete(_ONE, **documented(status=204))
async def unsubscribe(visit: SubscribeVisit, subscriber: SubscriberName, name: SubscriptionName) -> Response:
    """Remove a subscription. Notes that were told stay."""
    await visit.tenant.work(lambda broker: broker.unsubscribe(subscriber, name))
    return Response(status_code=204)


@router.post(_ONE + "/pause", **documented(SUBSCRIPTION))
async def pause(visit: SubscribeVisit, subscriber: SubscriberName, name: SubscriptionName) -> Response:
    """Let events pass a subscription by, until it is resumed."""

    def call(broker: Broker) -> Any:
        broker.pause(subscriber, name)
        return broker.numbered(subscriber, name)

    return json_answer(_record(visit, await visit.tenant.work(call)))


@router.post(_ONE + "/resume", **documented(SUBSCRIPTION))
async def resume(visit: SubscribeVisit, subscriber: SubscriberName, name: SubscriptionName) -> Response:
    """Wake a paused subscription. It meets the stored events that are still valid."""

    def call(broker: Broker) -> Any:
        broker.resume(subscriber, name)
        return broker.numbered(subscriber, name)

    return json_answer(_record(visit, await visit.tenant.work(call)))


@router.post(
    "/subscriptions",
    **documented(
        form(subscribed=NUMBER),
        lines=form(subscriber=TEXT, name=TEXT, expression=TEXT),
        line_examples=(
            {"subscriber": "ann", "name": "crime", **_CRIME},
            {"subscriber": "bob", "name": "poems", "expression": "genre = 'poetry'", "weight": 2},
        ),
        problems={415: "The body must be NDJSON and not compressed."},
    ),
)
async def subscribe_many(request: Request, visit: SubscribeVisit) -> Response:
    """Add or change many subscriptions, one on each line. It stops at a wrong line; those before it are stored."""
    if not has_lines(request):
        raise ProblemError(
            415, "not-lines", "send a subscription on each line, with Content-Type: application/x-ndjson"
        )
    return json_answer({"subscribed": await LineSubscriber(visit).subscribe(request)})


@router.get("/subscriptions", **documented(form(subscriptions=list_of(SUBSCRIPTION), next=NUMBER_OR_NULL)))
async def subscriptions(
    visit: SubscribeVisit,
    subscriber: Annotated[str | None, Query(description="Whose subscriptions.")] = None,
    search: Search = "",
    after: After = 0,
    limit: PageSize = 100,
) -> Response:
    """A page of the subscriptions, in the order in which they first came. `next` is the `after` of the next page."""

    def call(broker: Broker) -> bytes:
        page = Page(limit)
        for each in broker.find_subscriptions(search, subscriber=subscriber, after=after, limit=limit):
            if not page.add(each.number, _record(visit, each)):
                break
        return page.text(f'"next":{"null" if page.is_last else page.last}', "subscriptions")

    return Response(await visit.tenant.work(call), media_type="application/json")


@router.get("/subscriptions/{number}", **documented(form(number=NUMBER, subscriber=TEXT, name=TEXT)))
async def names(visit: SubscribeVisit, number: Annotated[int, Path(ge=1, le=2**63 - 1, examples=[1])]) -> Response:
    """The names of the subscription with a number. They never change, also after it was removed."""
    subscriber, name = await visit.tenant.work(lambda broker: broker.names(number))
    return json_answer({"number": number, "subscriber": subscriber, "name": name})


@router.get("/deepest", tags=["subscribers"], **documented(form(waiting=NUMBER, subscribers=list_of(SUBSCRIBER))))
async def deepest(
    visit: SubscribeVisit, most: Annotated[int, Query(ge=0, le=1000, description="How many subscribers.")] = 10
) -> Response:
    """How many notes wait in all queues, and the subscribers with the most of them."""
    waiting, found = await visit.tenant.work(lambda broker: broker.deepest(most))
    return json_answer({"waiting": waiting, "subscribers": list(map(subscriber_json, found))})


@router.get(
    "/subscribers", tags=["subscribers"], **documented(form(subscribers=list_of(SUBSCRIBER), next=NUMBER_OR_NULL))
)
async def subscribers(visit: SubscribeVisit, search: Search = "", after: After = 0, limit: PageSize = 100) -> Response:
    """A page of the subscribers with the states of their queues."""

    def call(broker: Broker) -> dict[str, Any]:
        found = broker.find_subscribers(search, after=after, limit=limit)
        following = found[-1].number if len(found) == limit else None
        return {"subscribers": list(map(subscriber_json, found)), "next": following}

    return await visit.tenant.answer(call)


@router.get("/subscribers/{subscriber:name}", tags=["subscribers"], **documented(SUBSCRIBER))
async def subscriber(visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """A subscriber with the state of its queue."""
    return json_answer(subscriber_json(await visit.tenant.work(lambda broker: broker.subscriber(subscriber))))


@router.delete("/subscribers/{subscriber:name}", tags=["subscribers"], **documented(status=204))
async def remove_subscriber(visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """Remove a subscriber with all its subscriptions and notes, and its webhook."""
    await visit.tenant.work(lambda broker: broker.remove_subscriber(subscriber))
    await visit.tenant.webhooks.leave(subscriber)
    return Response(status_code=204)
