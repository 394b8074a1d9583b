"""Looking after a tenant: figures, changes, retention, schema."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker import Broker
from tamis.broker.answer_json import change_json
from tamis.errors import OptionError, shortened
from tamis.service import metrics
from tamis.service.access import AdminVisit, AnyVisit
from tamis.service.answers import json_answer
from tamis.service.documented import (
    ANY_OBJECT,
    CHANGE,
    MOMENT,
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    After,
    PageSize,
    documented,
    form,
    list_of,
    may_have,
)
from tamis.service.given import checked_fields, object_of
from tamis.service.note_pages import Page
from tamis.service.process_metrics import process_record, process_text

router = APIRouter(tags=["administration"])


@router.get(
    "/v1/access",
    **documented(form(tenant=TEXT, roles=list_of(TEXT), token={"type": ["string", "null"]}, expires=MOMENT)),
)
async def access(visit: AnyVisit) -> Response:
    """The tenant and the roles of the token."""
    token = visit.token
    return json_answer(
        {
            "tenant": visit.tenant.name,
            "roles": sorted(visit.roles),
            "token": None if token is None else token.id,
            "expires": None if token is None else token.expires,
        }
    )


@router.get("/v1/stats", **documented(ANY_OBJECT))
async def stats(
    visit: AdminVisit, brief: Annotated[bool, Query(description="Only figures that are quick to find.")] = False
) -> Response:
    """Figures about the contents and the work of the broker."""

    def call(broker: Broker) -> dict[str, Any]:
        found = broker.brief() if brief else broker.stats()
        return {**found, "retention": _shown(found["retention"])}

    return await visit.tenant.answer(call)


@router.get("/v1/counts", **documented(form(subscribers=NUMBER, subscriptions=NUMBER, events=NUMBER)))
async def counts(visit: AdminVisit) -> Response:
    """How many subscribers, subscriptions and stored events there are."""
    return json_answer(await visit.tenant.work(lambda broker: broker.counts()))


_COST = form(number=NUMBER, nanoseconds={"type": ["number", "null"]})


@router.get("/v1/costs", **documented(form(costs=list_of(_COST))))
async def costs(
    visit: AdminVisit,
    most: Annotated[int, Query(ge=0, le=100_000, description="How many subscriptions are looked at.")] = 1000,
    seed: Annotated[int, Query(description="It chooses them, if there are more.")] = 0,
) -> Response:
    """What subscriptions cost: numbers, and expected nanoseconds for each event, the most expensive first."""

    def call(broker: Broker) -> dict[str, Any]:
        return {"costs": [{"number": number, "nanoseconds": cost} for number, cost in broker.costs(most, seed)]}

    return await visit.tenant.answer(call)


@router.get("/v1/costs/{number}", **documented(_COST))
async def cost(visit: AdminVisit, number: Annotated[int, Path(ge=1, le=2**63 - 1, examples=[1])]) -> Response:
    """What the subscription with a number costs for each event; null if that is not known, or if no event meets it."""
    found = await visit.tenant.work(lambda broker: broker.cost(number))
    return json_answer({"number": number, "nanoseconds": found})


@router.get("/v1/figures", **documented(ANY_OBJECT))
async def figures(visit: AdminVisit) -> Response:
    """The figures of the metrics as JSON. Counters count since the start of the service."""
    found = await visit.tenant.work(visit.tenant.figures.record)
    return json_answer({**process_record(visit.service, sees_all=visit.sees_all), **found})


@router.get("/metrics", **documented(TEXT, media_type="text/plain"))
async def prometheus(visit: AdminVisit) -> Response:
    """Metrics of the tenant in Prometheus' text; of all tenants for an operator's token, or where no tokens are needed."""
    page = metrics.Page()
    chosen = list(visit.service.tenants) if visit.sees_all else [visit.tenant]
    for tenant in chosen:
        metrics.add_tenant(page, tenant.name, tenant.metrics, await tenant.work(tenant.figures.record))
    if visit.sees_all:
        process_text(page, visit.service)
    return Response(page.text().encode(errors="replace"), headers={"Content-Type": metrics.MEDIA_TYPE})


@router.get("/v1/changes", **documented(form(changes=list_of(CHANGE), next=NUMBER_OR_NULL)))
async def changes(visit: AdminVisit, after: After = 0, limit: PageSize = 100) -> Response:
    """The subscriptions that have changed after a number, each with its last change."""

    def call(broker: Broker) -> bytes:
        page = Page(limit)
        for each in islice(broker.changes(after, limit=limit), limit):
            if not page.add(each.number, change_json(each)):
                break
        return page.text(f'"next":{"null" if page.is_last else page.last}', "changes")

    return Response(await visit.tenant.work(call), media_type="application/json")


_RETENTION = may_have(
    max_age={"type": ["number", "null"]},
    max_notes=NUMBER_OR_NULL,
    when_full={"enum": ["drop oldest", "refuse publish"]},
)


@router.put(
    "/v1/retention", **documented(_RETENTION, body=_RETENTION, example={"max_age": 2592000, "max_notes": 10000})
)
async def retention(request: Request, visit: AdminVisit) -> Response:
    """Say how long notes are kept: `max_age` in seconds. What is not given stays; null keeps all."""
    known = ("max_age", "max_notes", "when_full")
    words = dict(checked_fields(await object_of(request, visit.tenant, "a retention"), "a retention", known))
    if words.get("max_age") is not None:
        words["max_age"] = _age(words["max_age"])

    def call(broker: Broker) -> Any:
        broker.retain(**words)
        return broker.stats()["retention"]

    return json_answer(_shown(await visit.tenant.work(call)))


def _age(seconds: Any) -> timedelta:
    try:
        if type(seconds) in (int, float) and seconds > 0:
            return timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        pass
    raise OptionError(f"`max_age` must be a number of seconds above 0, or null, not {shortened(seconds)}")


def _shown(settings: dict[str, Any]) -> dict[str, Any]:
    age = settings["max_age"]
    return {**settings, "max_age": None if age is None else age.total_seconds()}


@router.post("/v1/compact", **documented(status=204))
async def compact(visit: AdminVisit) -> Response:
    """Delete what nobody can read any more, and give free space back to the disk."""
    await visit.tenant.work(lambda broker: broker.compact())
    return Response(status_code=204)


@router.get("/v1/schema", **documented(ANY_OBJECT))
async def schema(visit: AnyVisit) -> Response:
    """The event schema: attributes and their kinds; an empty object if there is none."""
    return await visit.tenant.answer(lambda broker: visit.tenant.schema.declared())


_MOST_SCHEMA = 2 * 1024 * 1024
"""Bytes of a schema."""


@router.put(
    "/v1/schema",
    **documented(
        ANY_OBJECT,
        body=ANY_OBJECT,
        example={"price": "number", "genre": "string", "at": "timestamp"},
        problems={409: "The schema stands in the configuration of the service."},
    ),
)
async def change_schema(request: Request, visit: AdminVisit) -> Response:
    """Declare attributes. Strings of declared timestamps are read as timestamps; events and subscriptions are checked."""
    declared = await object_of(request, visit.tenant, "a schema", _MOST_SCHEMA)

    def call(broker: Broker) -> dict[str, str]:
        visit.tenant.schema.change(declared)
        return visit.tenant.schema.declared()

    return await visit.tenant.answer(call)
