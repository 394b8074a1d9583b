"""Problem documents as errors of Tamis, with the same class and the same attributes as those of a broker."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tamis import errors
from tamis.errors import (
    AccessError,
    EventError,
    ExpressionError,
    KindError,
    ParseError,
    RetentionError,
    ServiceError,
    TableError,
    TamisError,
    UnknownAttributeError,
    UnknownIdError,
    restored,
    shortened,
)

_PREFIX = "urn:tamis:problem:"
_LINE = re.compile(r"line \d+: ")


def error_of(status: int, body: bytes, subject: Mapping[str, Any]) -> TamisError:
    """The error in the body of an answer. `subject` has what the document does not repeat, such as the text of an expression."""
    try:
        found = json.loads(body)
        document = found if isinstance(found, dict) else {}
    except ValueError:
        document = {}
    return error_in(document, status, subject)


def error_in(document: Mapping[str, Any], status: int, subject: Mapping[str, Any]) -> TamisError:
    """The error in a problem document."""
    kind = str(document.get("type", "")).removeprefix(_PREFIX)
    detail = str(document.get("detail", f"the service answers with status {status}"))
    cls = getattr(errors, "".join(part.capitalize() for part in kind.split("-")), None) if kind else None
    if isinstance(cls, type) and issubclass(cls, TamisError):
        error = _own(cls, document, detail, subject)
    else:
        made = AccessError if status in (401, 403) else ServiceError
        error = made(detail, status=status, kind=kind, request_id=document.get("request_id"))
    for name, before in (("published", subject.get("before", 0)), ("subscribed", 0)):
        last = document.get(name, 0)
        stored = before + (last if type(last) is int else 0)
        if stored:
            error.add_note(f"{name} before: {stored}")
    return error


def _own(cls: type[TamisError], document: Mapping[str, Any], detail: str, subject: Mapping[str, Any]) -> TamisError:
    line = document.get("line")
    detail = detail if line is None else _LINE.sub("", detail, count=1)
    row = subject["row_of"](line) if line is not None and "row_of" in subject else document.get("row")
    reason = document.get("reason", detail)
    if cls is EventError:
        return EventError(reason, row=row, attribute=document.get("attribute"))
    if cls is TableError:
        return TableError(reason, row=row)
    if cls is RetentionError:
        return RetentionError(document["subscriber"], document["after"], document["first"])
    attributes: dict[str, Any] = {}
    if cls is UnknownIdError or "identifier" in document:
        attributes["identifier"] = _plain(document.get("identifier"))
    if issubclass(cls, ExpressionError):
        attributes["subscription"] = _plain(document.get("subscription", subject.get("subscription_of", _none)(line)))
        detail = detail.removeprefix(f"subscription {shortened(attributes['subscription'])}: ")
    attributes.update(document.get("caret", {}))
    if cls in (KindError, UnknownAttributeError):
        attributes["attribute"] = document.get("attribute")
    if cls is ParseError:
        text = subject.get("expression_of", _none)(line)
        attributes.update(reason=reason, hint=document.get("hint", ""), text=text or "")
    return restored(cls, (detail,), attributes)


def _none(line: int | None) -> None:
    return None


def _plain(value: Any) -> Any:
    """Lists of JSON are pairs of a subscriber and a name."""
    return tuple(value) if isinstance(value, list) else value
