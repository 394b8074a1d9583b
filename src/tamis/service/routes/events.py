"""Publishing, and looking at stored events."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker import Broker
from tamis.broker.answer_json import event_json, moment_text
from tamis.errors import OptionError
from tamis.service.access import AnyVisit, Needs, PublishVisit, SubscribeVisit, too_fast
from tamis.service.answers import json_answer
from tamis.service.bodies import has_lines
from tamis.service.documented import (
    ANY_OBJECT,
    MOMENT,
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    TRUTH,
    After,
    PageSize,
    Tagged,
    documented,
    form,
    list_of,
)
from tamis.service.given import moment_of, plain_options, published_event, read_expression
from tamis.service.line_publishing import LineOptions, LinePublisher
from tamis.service.note_pages import Page
from tamis.service.receipts import receipt_text
from tamis.service.tenants import Tenant

router = APIRouter(prefix="/v1", tags=["events"])

_EVENT = {"genre": "crime", "price": 15, "title": "The Sign of Four"}
_RECEIPT = form(sequence=NUMBER, matches=NUMBER)
_SUMMARY = form(
    events=NUMBER,
    matches=NUMBER,
    first_sequence=NUMBER_OR_NULL,
    last_sequence=NUMBER_OR_NULL,
    skipped=NUMBER,
    errors=list_of(form(line=NUMBER, detail=TEXT)),
)


# Its parameters are those of the request.
async def publish(
    request: Request,
    visit: PublishVisit,
    valid_until: Annotated[str | None, Query(description="Until then, new subscriptions meet the events, too.")] = None,
    k: Annotated[int | None, Query(ge=0, description="Tell only the subscriptions with the largest weights.")] = None,
    tagged: Tagged = False,
    with_matches: Annotated[
        bool, Query(description="List who was told: of one event, or of lines with receipts.")
    ] = False,
    key_from: Annotated[str | None, Query(description="Of lines: the field that has the key of an event.")] = None,
    receipts: Annotated[bool, Query(description="Of lines: list the number and the matches of each.")] = False,
    wrapped: Annotated[
        bool, Query(description='Of lines: each is {"event": {...}, "key": "...", "valid_until": "..."}.')
    ] = False,
    on_error: Annotated[Literal["stop", "skip"], Query(description="Of lines: what happens at a wrong one.")] = "stop",
    idempotency_key: Annotated[
        str | None, Header(description="The key of the event; of lines, with /LINE added.")
    ] = None,
) -> Response:
    """Publish one event, or with the type application/x-ndjson one on each line. When the answer comes, they are safe on disk.

    An event with a key that was published within 24 hours gets the first receipt again, and nothing else happens.
    """
    tenant = visit.tenant
    plain_options(k, idempotency_key)
    end = moment_of(valid_until, "valid_until")
    if has_lines(request):
        if key_from is not None and idempotency_key is not None:
            raise OptionError("keys come from a field (key_from) or from the Idempotency-Key, not from both")
        if wrapped and (key_from, idempotency_key, valid_until) != (None, None, None):
            raise OptionError("with wrapped=true, keys and valid_until stand in the lines only")
        skips = on_error == "skip"
        options = LineOptions(end, k, idempotency_key, key_from, tagged, skips, receipts, with_matches, wrapped)
        return (await LinePublisher(visit, options).publish(request)).answer()
    if key_from is not None or receipts or wrapped:
        name = "key_from" if key_from is not None else "receipts" if receipts else "wrapped"
        raise OptionError(f"`{name}` is for events on lines. Hint: send Content-Type: application/x-ndjson")
    _check_rate(tenant)
    event = await published_event(request, tenant, tagged=tagged)
    _check_rate(tenant)  # Others may have come meanwhile.
    tenant.events.take(1)
    began = time.perf_counter()
    receipt = await tenant.publisher.publish(event, end, idempotency_key, k)
    tenant.published(1, len(receipt.matches), time.perf_counter() - began)
    if with_matches:  # Names are looked up.
        text = await tenant.work(lambda broker: receipt_text(receipt, with_matches=True))
    else:
        text = receipt_text(receipt, with_matches=False)
    return Response(text, media_type="application/json")


class PublishRoute(APIRoute):
    """A route that answers requests without parameters behind the question mark itself.

    For each request, FastAPI looks for all parameters, checks them and copies their defaults. That takes longer than publishing
    an event. Most publishers send an event and at most a key, so everything else has the default of `publish`.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        usual = super().get_route_handler()
        (needs,) = (each.call for each in self.dependant.dependencies)
        assert isinstance(needs, Needs)

        async def handle(request: Request) -> Response:
            if request.scope["query_string"]:
                return await usual(request)
            visit = await needs(request)
            return await publish(request, visit, idempotency_key=request.headers.get("idempotency-key"))

        return handle


router.add_api_route(
    "/events",
    publish,
    methods=["POST"],
    route_class_override=PublishRoute,
    **documented(
        {"anyOf": [_RECEIPT, _SUMMARY]},
        body=ANY_OBJECT,
        example=_EVENT,
        lines=ANY_OBJECT,
        line_examples=(_EVENT, {"genre": "poetry", "price": 12}),
        problems={409: "A subscriber has too many notes that were not acknowledged."},
    ),
)


def _check_rate(tenant: Tenant) -> None:
    """Refuse an event that comes too soon.

    Raises
    ------
    ProblemError
    """
    seconds = tenant.events.wait()
    if seconds:
        tenant.metrics.refused += 1
        raise too_fast(tenant.limits.events_per_second, "events", seconds)


@router.get("/events", **documented(form(events=list_of(form(sequence=NUMBER, event=ANY_OBJECT)), next=NUMBER_OR_NULL)))
async def replay(
    visit: SubscribeVisit,
    expression: Annotated[str, Query(examples=["price < 20"], description="Which events.")] = "TRUE",
    after: After = 0,
    limit: PageSize = 100,
) -> Response:
    """The stored events that an expression is true of. Nobody is told."""

    def call(broker: Broker) -> bytes:
        wanted = read_expression(expression, visit.tenant)
        page = Page(limit)
        for sequence, event in islice(broker.replay(wanted, after), limit):
            if not page.add(sequence, {"sequence": sequence, "event": event_json(event)}):
                break
        return page.text(f'"next":{"null" if page.is_last else page.last}', "events")

    return Response(await visit.tenant.work(call), media_type="application/json")


@router.get(
    "/events/{sequence}",
    **documented(form(sequence=NUMBER, event=ANY_OBJECT, published=MOMENT, valid_until=MOMENT, matches=NUMBER)),
)
async def stored_event(visit: SubscribeVisit, sequence: Annotated[int, Path(ge=1, examples=[1])]) -> Response:
    """A stored event."""

    def call(broker: Broker) -> dict[str, Any]:
        found = broker.event(sequence)
        return {
            "sequence": found.sequence,
            "event": event_json(found.event),
            "published": moment_text(found.published),
            "valid_until": moment_text(found.valid_until),
            "matches": found.matches,
        }

    return await visit.tenant.answer(call)


@router.post("/would-match", **documented(form(would_match=TRUTH), body=ANY_OBJECT, example=_EVENT))
async def would_match(request: Request, visit: PublishVisit, tagged: Tagged = False) -> Response:
    """Whether anyone wants an event. Publishers may ask this before they make an expensive event."""
    event = await published_event(request, visit.tenant, tagged=tagged)
    return json_answer({"would_match": await visit.tenant.work(lambda broker: broker.would_match(event))})


@router.get("/attributes", **documented(form(attributes=list_of(TEXT))))
async def attributes(visit: AnyVisit) -> Response:
    """The attributes that subscriptions ask about."""
    return await visit.tenant.answer(lambda broker: {"attributes": sorted(broker.attributes())})
