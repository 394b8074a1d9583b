"""What a broker hands out, as JSON objects. Values that JSON lacks have tags, as in the tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tamis.broker.answers import Change, Note, Receipt, StandingSubscription, SubscriberFigures
from tamis.broker.event_text import event_text

JsonObject = dict[str, Any]


def receipt_json(receipt: Receipt, *, with_matches: bool) -> JsonObject:
    """The number of an event and of its matches, and perhaps the matches."""
    found: JsonObject = {"sequence": receipt.sequence, "matches": len(receipt.matches)}
    if with_matches:
        found["subscriptions"] = names_json(receipt.matches)
    return found


def names_json(pairs: Iterable[tuple[str, str]]) -> list[JsonObject]:
    """Names of subscribers and of their subscriptions."""
    return [{"subscriber": subscriber, "name": name} for subscriber, name in pairs]


def event_json(event: dict[str, Any]) -> JsonObject:
    """An event."""
    found: JsonObject = json.loads(event_text(event))
    return found


def note_json(note: Note) -> JsonObject:
    """A note."""
    return {
        "sequence": note.sequence,
        "event_sequence": note.event_sequence,
        "subscriptions": list(note.subscriptions),
        "expired": note.expired,
        "event": event_json(note.event),
    }


def subscription_json(subscription: StandingSubscription) -> JsonObject:
    """A subscription, in the form that ``tamis subscribe --file`` reads."""
    return {
        "subscriber": subscription.subscriber,
        "name": subscription.name,
        "expression": subscription.text,
        "weight": subscription.weight,
        "valid_from": moment_text(subscription.valid_from),
        "valid_until": moment_text(subscription.valid_until),
        "paused": subscription.paused,
    }


def subscriber_json(subscriber: SubscriberFigures) -> JsonObject:
    """A subscriber and the state of its queue."""
    return subscriber._asdict()


def change_json(change: Change) -> JsonObject:
    """A change of a subscription, with the columns of the change feed."""
    bounds = {"valid_from": moment_text(change.valid_from), "valid_until": moment_text(change.valid_until)}
    return {**change._asdict(), **bounds}


def moment_text(moment: datetime | None) -> str | None:
    """A moment in UTC."""
    return None if moment is None else f"{moment.replace(tzinfo=None).isoformat()}Z"
