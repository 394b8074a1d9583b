"""What a broker hands out, as JSON lines on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tamis.errors import FileError

if TYPE_CHECKING:
    from datetime import datetime

    from tamis.broker.answers import Change, Note, Receipt, StandingSubscription

Record = dict[str, Any]


def write_records(records: Iterable[Record]) -> None:
    """Write records and flush them. When this returns, the reader of the pipe can read them.

    Raises
    ------
    FileError
        Stdout is closed.
    BrokenPipeError
        The reader of the pipe is gone.
    """
    if sys.stdout is None:
        raise FileError("is closed", path="stdout")
    left = memoryview("".join(f"{json.dumps(record)}\n" for record in records).encode("ascii"))
    while left:
        # With PYTHONUNBUFFERED, this is a plain file, which may write a part only.
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()


def note_record(note: Note) -> Record:
    """A note. Values that JSON lacks have tags, as in the tables."""
    from tamis.broker.event_text import event_text

    return {
        "sequence": note.sequence,
        "event_sequence": note.event_sequence,
        "subscriptions": list(note.subscriptions),
        "expired": note.expired,
        "event": json.loads(event_text(note.event)),
    }


def receipt_record(receipt: Receipt, *, with_matches: bool) -> Record:
    """The number of an event and of its matches, and perhaps the matches."""
    record: Record = {"sequence": receipt.sequence, "matches": len(receipt.matches)}
    if with_matches:
        record["subscriptions"] = [{"subscriber": subscriber, "name": name} for subscriber, name in receipt.matches]
    return record


def subscription_record(subscription: StandingSubscription) -> Record:
    """A subscription, in the form that ``tamis subscribe --file`` reads."""
    return {
        "subscriber": subscription.subscriber,
        "name": subscription.name,
        "expression": subscription.text,
        "weight": subscription.weight,
        "valid_from": _moment(subscription.valid_from),
        "valid_until": _moment(subscription.valid_until),
        "paused": subscription.paused,
    }


def change_record(change: Change) -> Record:
    """A change of a subscription, with the columns of the change feed."""
    bounds = {"valid_from": _moment(change.valid_from), "valid_until": _moment(change.valid_until)}
    return {**change._asdict(), **bounds}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment.replace(tzinfo=None).isoformat()}Z"
