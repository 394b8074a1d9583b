"""Records of answers as what a broker hands out."""

from __future__ import annotations

from typing import Any

from tamis.broker import Change, Matches, Note, Receipt, StandingSubscription, StoredEvent, SubscriberFigures
from tamis.broker.event_text import read_event
from tamis.broker.listing_calls import Numbered
from tamis.client.writing import encode, read_moment_text
from tamis.errors import OptionError
from tamis.matcher.covering import CoveringReport

Record = dict[str, Any]


def event_of(record: Record) -> dict[str, Any]:
    """An event whose values may have tags."""
    return read_event(encode(record))


def note_of(record: Record) -> Note:
    return Note(
        record["sequence"],
        event_of(record["event"]),
        record["event_sequence"],
        tuple(record["subscriptions"]),
        record["expired"],
    )


def receipt_of(record: Record) -> Receipt:
    """A receipt. Its matches have no names if the call did not ask for them."""
    pairs = record.get("subscriptions")
    if pairs is None:
        return Receipt(record["sequence"], Matches(range(record["matches"]), _unnamed))
    names = [(each["subscriber"], each["name"]) for each in pairs]
    return Receipt(record["sequence"], Matches(range(len(names)), names.__getitem__))


def _unnamed(number: int) -> tuple[str, str]:
    raise OptionError("this receipt only counts the matches. Hint: publish with with_matches=True")


def subscription_of(record: Record) -> StandingSubscription:
    return StandingSubscription(
        record["subscriber"],
        record["name"],
        record["expression"],
        record["weight"],
        read_moment_text(record["valid_from"]),
        read_moment_text(record["valid_until"]),
        record["paused"],
    )


def numbered_of(record: Record) -> Numbered:
    return Numbered(record["number"], subscription_of(record))


def subscriber_of(record: Record) -> SubscriberFigures:
    return SubscriberFigures(**record)


def change_of(record: Record) -> Change:
    bounds = {name: read_moment_text(record[name]) for name in ("valid_from", "valid_until")}
    return Change(**{**record, **bounds})


def stored_event_of(record: Record) -> StoredEvent:
    moments = {name: read_moment_text(record[name]) for name in ("published", "valid_until")}
    return StoredEvent(**{**record, **moments, "event": event_of(record["event"])})


def report_of(record: Record) -> CoveringReport[tuple[str, str]]:
    return CoveringReport(
        subscriptions=record["subscriptions"],
        identical=[list(map(_pair, group)) for group in record["identical"]],
        implied=[(_pair(narrow), _pair(wide)) for narrow, wide in record["implied"]],
        never=list(map(_pair, record["never"])),
        never_single=list(map(_pair, record["never_single"])),
        unfinished=list(map(_pair, record["unfinished"])),
    )


def _pair(names: list[str]) -> tuple[str, str]:
    subscriber, name = names
    return subscriber, name
