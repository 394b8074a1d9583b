"""JSON objects of answers as what a broker hands out."""

from __future__ import annotations

from typing import Any

from tamis.broker import Change, Matches, Note, Receipt, StandingSubscription, StoredEvent, SubscriberFigures
from tamis.broker.answer_json import JsonObject
from tamis.broker.event_text import read_event
from tamis.broker.listing_calls import Numbered
from tamis.client.writing import encode, read_moment_text
from tamis.errors import OptionError
from tamis.matcher.covering import CoveringReport


def event_of(given: JsonObject) -> dict[str, Any]:
    """An event whose values may have tags."""
    return read_event(encode(given))


def note_of(given: JsonObject) -> Note:
    return Note(
        given["sequence"],
        event_of(given["event"]),
        given["event_sequence"],
        tuple(given["subscriptions"]),
        given["expired"],
    )


def receipt_of(given: JsonObject) -> Receipt:
    """A receipt. Its matches have no names if the call did not ask for them."""
    pairs = given.get("subscriptions")
    if pairs is None:
        return Receipt(given["sequence"], Matches(range(given["matches"]), _unnamed))
    names = [(each["subscriber"], each["name"]) for each in pairs]
    return Receipt(given["sequence"], Matches(range(len(names)), names.__getitem__))


def _unnamed(number: int) -> tuple[str, str]:
    raise OptionError("this receipt only counts the matches. Hint: publish with with_matches=True")


def subscription_of(given: JsonObject) -> StandingSubscription:
    return StandingSubscription(
        given["subscriber"],
        given["name"],
        given["expression"],
        given["weight"],
        read_moment_text(given["valid_from"]),
        read_moment_text(given["valid_until"]),
        given["paused"],
    )


def numbered_of(given: JsonObject) -> Numbered:
    return Numbered(given["number"], subscription_of(given))


def subscriber_of(given: JsonObject) -> SubscriberFigures:
    return SubscriberFigures(**given)


def change_of(given: JsonObject) -> Change:
    bounds = {name: read_moment_text(given[name]) for name in ("valid_from", "valid_until")}
    return Change(**{**given, **bounds})


def stored_event_of(given: JsonObject) -> StoredEvent:
    moments = {name: read_moment_text(given[name]) for name in ("published", "valid_until")}
    return StoredEvent(**{**given, **moments, "event": event_of(given["event"])})


def report_of(given: JsonObject) -> CoveringReport[tuple[str, str]]:
    return CoveringReport(
        subscriptions=given["subscriptions"],
        identical=[list(map(_pair, group)) for group in given["identical"]],
        implied=[(_pair(narrow), _pair(wide)) for narrow, wide in given["implied"]],
        never=list(map(_pair, given["never"])),
        never_single=list(map(_pair, given["never_single"])),
        unfinished=list(map(_pair, given["unfinished"])),
    )


def _pair(names: list[str]) -> tuple[str, str]:
    subscriber, name = names
    return subscriber, name
