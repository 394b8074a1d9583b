"""What a broker hands out, as JSON. Values that JSON lacks have tags, as in the tables."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from tamis.broker import Change, Note, Receipt, StandingSubscription, SubscriberFigures
from tamis.broker.event_text import event_text

Record = dict[str, Any]


def receipt_record(receipt: Receipt, *, with_matches: bool) -> Record:
    """The number of an event and of its matches, and perhaps the matches."""
    record: Record = {"sequence": receipt.sequence, "matches": len(receipt.matches)}
    if with_matches:
        record["subscriptions"] = [{"subscriber": subscriber, "name": name} for subscriber, name in receipt.matches]
    return record


def event_record(event: dict[str, Any]) -> Record:
    """An event."""
    found: Record = json.loads(event_text(event))
    return found


def note_record(note: Note) -> Record:
    """A note."""
    return {
        "sequence": note.sequence,
        "event_sequence": note.event_sequence,
        "subscriptions": list(note.subscriptions),
        "expired": note.expired,
        "event": event_record(note.event),
    }


def subscription_record(subscription: StandingSubscription) -> Record:
    """A subscription."""
    return {
        "subscriber": subscription.subscriber,
        "name": subscription.name,
        "expression": subscription.text,
        "weight": subscription.weight,
        "valid_from": moment_text(subscription.valid_from),
        "valid_until": moment_text(subscription.valid_until),
        "paused": subscription.paused,
    }


def subscriber_record(subscriber: SubscriberFigures) -> Record:
    """A subscriber and the state of its queue."""
    return subscriber._asdict()


def change_record(change: Change) -> Record:
    """A change of a subscription."""
    bounds = {"valid_from": moment_text(change.valid_from), "valid_until": moment_text(change.valid_until)}
    return {**change._asdict(), **bounds}


def moment_text(moment: datetime | None) -> str | None:
    """A moment in UTC."""
    return None if moment is None else f"{moment.replace(tzinfo=None).isoformat()}Z"
