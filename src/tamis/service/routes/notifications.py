"""Reading notes, and acknowledging them."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker import Broker
from tamis.broker.answer_json import note_json
from tamis.service.access import SubscribeVisit, Visit
from tamis.service.answers import json_answer
from tamis.service.documented import (
    NOTE,
    NUMBER,
    NUMBER_OR_NULL,
    PageSize,
    SubscriberName,
    documented,
    form,
    list_of,
)
from tamis.service.given import checked_fields, object_of
from tamis.service.note_pages import Page
from tamis.service.problems import ProblemError

router = APIRouter(prefix="/v1/subscribers/{subscriber:name}", tags=["notifications"])


@router.get(
    "/notifications",
    **documented(
        form(notifications=list_of(NOTE), last_sequence=NUMBER_OR_NULL),
        problems={410: "Notes after this number were dropped; `first` is the first one that is left."},
    ),
)
async def notifications(
    visit: SubscribeVisit,
    subscriber: SubscriberName,
    after: Annotated[
        int | None, Query(ge=0, description="Start after this note. By default, after the cursor.")
    ] = None,
    limit: PageSize = 100,
    wait: Annotated[float, Query(ge=0, le=3600, description="Seconds to wait until a note comes.")] = 0,
) -> Response:
    """The next notes of a subscriber: as many as `limit` says, or fewer if they are long. Ask again after the last one."""
    if wait:
        return await _waited(visit, subscriber, after, limit, wait)
    return _answer(await _notes(visit, subscriber, after, limit))


async def _waited(visit: Visit, subscriber: str, after: int | None, limit: int, wait: float) -> Response:
    """The next notes as soon as there are some."""
    end = asyncio.get_running_loop().time() + min(wait, visit.tenant.limits.wait_seconds)
    with visit.streaming():
        async with visit.tenant.hub.waiting(subscriber) as waiter:
            while True:
                found = await _notes(visit, subscriber, after, limit)
                left = end - asyncio.get_running_loop().time()
                visit.check_token()
                if found is not None or left <= 0 or visit.service.stopping.is_set():
                    return _answer(found)
                await waiter.wait(left)


async def _notes(visit: Visit, subscriber: str, after: int | None, limit: int) -> bytes | None:
    """The notes as JSON, which is made in the thread; None if there are none."""

    def read(broker: Broker) -> tuple[int, bytes | None]:
        page = Page(limit)
        for note in islice(broker.notifications(subscriber, after), limit):
            if not page.add(note.sequence, note_json(note)):
                break
        return page.count, page.text(f'"last_sequence":{page.last}', "notifications") if page.count else None

    count, body = await visit.tenant.work(read)
    visit.tenant.metrics.notes_read += count
    return body


def _answer(body: bytes | None) -> Response:
    if body is None:
        return json_answer({"notifications": [], "last_sequence": None})
    return Response(body, media_type="application/json")


@router.post("/acknowledge", **documented(body=form(sequence=NUMBER), example={"sequence": 1}, status=204))
async def acknowledge(request: Request, visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """Move the cursor: reading starts after this note from now on. An earlier number changes nothing."""
    given: dict[str, Any] = await object_of(request, visit.tenant, "an acknowledgement")
    sequence = checked_fields(given, "an acknowledgement", ("sequence",), ("sequence",))["sequence"]
    if type(sequence) is not int:
        raise ProblemError(422, "option-error", "`sequence` must be the number of a note")
    await visit.tenant.work(lambda broker: broker.acknowledge(subscriber, sequence))
    return Response(status_code=204)
