"""Webhooks of subscribers, and their dead letters."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker import Broker
from tamis.broker.answer_json import moment_text
from tamis.errors import OptionError, shortened
from tamis.service.access import SubscribeVisit
from tamis.service.answers import json_answer
from tamis.service.documented import (
    MOMENT,
    NOTE,
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    TRUTH,
    After,
    PageSize,
    SubscriberName,
    documented,
    form,
    list_of,
    may_have,
)
from tamis.service.given import checked_fields, object_of
from tamis.service.note_pages import Page
from tamis.service.webhooks.record import DeadLetter

router = APIRouter(prefix="/v1", tags=["webhooks"])

_NEEDS = "receiver"
_STATE = form(
    subscriber=TEXT,
    url=TEXT,
    state={"enum": ["active", "paused", "disabled"]},
    batch=NUMBER,
    tries=NUMBER,
    next_try=MOMENT,
    reason=TEXT,
    failures=NUMBER,
    missed=NUMBER,
    dead_letters=NUMBER,
    old_secret_until=MOMENT,
)
_WITH_SECRET = {**_STATE, "properties": {**_STATE["properties"], "secret": TEXT}}
_LETTER = form(sequence=NUMBER, tries=NUMBER, reason=TEXT, moment=MOMENT, replaying=TRUTH, note=NOTE)
_CHOICE: dict[str, Any] = {"body": may_have(sequences=list_of(NUMBER)), "example": {"sequences": [1]}, "needs": _NEEDS}
_WEBHOOK = "/subscribers/{subscriber:name}/webhook"
_LETTERS = f"{_WEBHOOK}/dead-letters"


@router.put(
    _WEBHOOK,
    **documented(
        _WITH_SECRET,
        body=may_have(url=TEXT, secret=TEXT, batch=NUMBER),
        example={"url": "https://example.com/notes", "batch": 50},
        needs=_NEEDS,
    ),
)
async def put_webhook(request: Request, visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """Send the notes of a subscriber to a URL, or change where they are sent. What is not given stays.

    The answer has the secret that signs the messages. No other answer has it.
    """
    body = await object_of(request, visit.tenant, "a webhook")
    checked_fields(body, "a webhook", ("url", "secret", "batch"))
    found = await visit.tenant.webhooks.put(subscriber, body.get("url"), body.get("secret"), body.get("batch"))
    return json_answer(_shown(found))


@router.get(_WEBHOOK, **documented(_STATE, needs=_NEEDS))
async def get_webhook(visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """A webhook, its state and its last failure."""
    return json_answer(_shown(await visit.tenant.webhooks.shown(subscriber)))


@router.delete(_WEBHOOK, **documented(status=204, needs=_NEEDS))
async def delete_webhook(visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """Remove a webhook and its dead letters. The notes stay."""
    await visit.tenant.webhooks.remove(subscriber)
    return Response(status_code=204)


@router.post(
    f"{_WEBHOOK}/rotate",
    **documented(
        _WITH_SECRET,
        body=may_have(secret=TEXT, overlap={"type": "number"}),
        example={"overlap": 3600},
        needs=_NEEDS,
    ),
)
async def rotate_secret(request: Request, visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """Take a new secret: the one that is given, or a new one. No other answer has it.

    For `overlap` seconds (one day, if nothing is given), messages have two signatures: of the new and of the old secret.
    """
    body = await object_of(request, visit.tenant, "a rotation", may_be_empty=True)
    checked_fields(body, "a rotation", ("secret", "overlap"))
    found = await visit.tenant.webhooks.rotate(subscriber, body.get("secret"), body.get("overlap"))
    return json_answer(_shown(found))


@router.post(f"{_WEBHOOK}/pause", **documented(_STATE, needs=_NEEDS))
async def pause_webhook(visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """Send nothing until the webhook is resumed. The notes wait."""
    await visit.tenant.webhooks.pause(subscriber)
    return json_answer(_shown(await visit.tenant.webhooks.shown(subscriber)))


@router.post(f"{_WEBHOOK}/resume", **documented(_STATE, needs=_NEEDS))
async def resume_webhook(visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """Begin again at once, also after the service has disabled the webhook."""
    await visit.tenant.webhooks.resume(subscriber)
    return json_answer(_shown(await visit.tenant.webhooks.shown(subscriber)))


@router.get("/webhooks", **documented(form(webhooks=list_of(_STATE), next={"type": ["string", "null"]})))
async def list_webhooks(visit: SubscribeVisit, after: str = "", limit: PageSize = 100) -> Response:
    """All webhooks, in the order of their subscribers' names. `next` is the `after` of the next page."""
    found = await visit.tenant.webhooks.page(after, limit)
    return json_answer(
        {"webhooks": list(map(_shown, found)), "next": found[-1]["subscriber"] if len(found) == limit else None}
    )


@router.get(_LETTERS, **documented(form(dead_letters=list_of(_LETTER), next=NUMBER_OR_NULL), needs=_NEEDS))
async def list_dead_letters(
    visit: SubscribeVisit, subscriber: SubscriberName, after: After = 0, limit: PageSize = 100
) -> Response:
    """Notes that could not be delivered, in the order of their numbers."""
    found = await visit.tenant.webhooks.dead_letters(subscriber, after, limit)

    def call(broker: Broker) -> bytes:
        page = Page(limit)
        for each in found:
            if not page.add(each.sequence, _letter(each)):
                break
        return page.text(f'"next":{"null" if page.is_last else page.last}', "dead_letters")

    return Response(await visit.tenant.work(call), media_type="application/json")


@router.post(f"{_LETTERS}/replay", **documented(form(replayed=NUMBER), **_CHOICE))
async def replay_dead_letters(request: Request, visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """Send dead letters again, before new notes: those in ``{"sequences": [3, 4]}``, or all for ``{}`` and without a body."""
    sequences = await _sequences(request, visit)
    return json_answer({"replayed": await visit.tenant.webhooks.replay(subscriber, sequences)})


@router.post(f"{_LETTERS}/forget", **documented(form(forgotten=NUMBER), **_CHOICE))
async def forget_dead_letters(request: Request, visit: SubscribeVisit, subscriber: SubscriberName) -> Response:
    """Delete dead letters: those in ``{"sequences": [3, 4]}``, or all for ``{}`` and without a body."""
    sequences = await _sequences(request, visit)
    return json_answer({"forgotten": await visit.tenant.webhooks.forget(subscriber, sequences)})


_MOST_CHOICE = 1024 * 1024
"""Bytes of a choice of dead letters: more than all letters of a webhook have."""


async def _sequences(request: Request, visit: SubscribeVisit) -> list[int] | None:
    body = await object_of(request, visit.tenant, "a choice of dead letters", _MOST_CHOICE, may_be_empty=True)
    found = checked_fields(body, "a choice of dead letters", ("sequences",)).get("sequences")
    if found is not None and (
        not isinstance(found, list) or not all(type(each) is int and 0 < each < 2**63 for each in found)
    ):
        raise OptionError(f"`sequences` must be a list of numbers of notes, not {shortened(found)}")
    return found


def _letter(letter: DeadLetter) -> dict[str, Any]:
    return {
        "sequence": letter.sequence,
        "tries": letter.tries,
        "reason": letter.reason,
        "moment": _moment(letter.moment),
        "replaying": letter.replaying,
        "note": json.loads(letter.note),
    }


def _shown(webhook: dict[str, Any]) -> dict[str, Any]:
    moments = {name: _moment(webhook[name]) for name in ("next_try", "old_secret_until")}
    return {**webhook, **moments}


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else moment_text(datetime.fromtimestamp(round(seconds, 3), UTC))
