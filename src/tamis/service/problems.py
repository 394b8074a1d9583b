"""Errors as problem documents (RFC 9457).

    {"type": "urn:tamis:problem:parse-error", "title": "Parse error", "status": 422,
     "detail": "expected a value (line 1, column 9)\\n  price < \\n          ^",
     "caret": {"position": 8, "line": 1, "column": 9}, "hint": "", "request_id": "..."}

`type` names the kind of error, and never changes. `detail` is for people. Each kind may have members of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tamis.errors import (
    BrokerError,
    DuplicateIdError,
    EventError,
    ExpressionError,
    KindError,
    LockedError,
    ParseError,
    QueueFullError,
    ReentryError,
    RetentionError,
    TableError,
    TamisError,
    UnknownAttributeError,
    UnknownIdError,
)

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:tamis:problem:"


class ProblemError(Exception):
    """An error that is answered as a problem document.

    Parameters
    ----------
    status : int
        The status of the answer.
    kind : str
        The last part of `type`, such as ``"parse-error"``.
    detail : str
        What is wrong, where, and what to do.
    headers : mapping, optional
        Headers of the answer.
    members
        Members of the document besides the usual ones.
    """

    def __init__(
        self, status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.members = members

    def document(self, request_id: str | None = None) -> dict[str, Any]:
        """The problem document."""
        found: dict[str, Any] = {
            "type": PREFIX + self.kind,
            "title": _title(self.kind),
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }
        return found if request_id is None else {**found, "request_id": request_id}


_STATUSES: tuple[tuple[type[TamisError], int], ...] = (
    (UnknownIdError, 404),
    (RetentionError, 410),
    (QueueFullError, 409),
    (LockedError, 503),
    (BrokerError, 503),
    (ReentryError, 500),
    (TamisError, 422),
)
"""The first kind that an error is of decides."""


def problem_of(error: TamisError, **members: Any) -> ProblemError:
    """The problem of an error of Tamis."""
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    found: dict[str, Any] = {}
    if isinstance(error, ExpressionError) and error.position is not None:
        found["caret"] = {"position": error.position, "line": error.line, "column": error.column}
    if isinstance(error, ParseError):
        found["reason"], found["hint"] = error.reason, error.hint
    if isinstance(error, KindError | UnknownAttributeError) and error.attribute is not None:
        found["attribute"] = error.attribute
    if isinstance(error, ExpressionError) and error.subscription is not None:
        found["subscription"] = error.subscription
    if isinstance(error, EventError):
        names = ("row", "attribute", "reason")
        found.update({name: value for name in names if (value := getattr(error, name)) is not None})
    if isinstance(error, TableError) and error.row is not None:
        found["row"] = error.row
    if isinstance(error, RetentionError):
        found.update(subscriber=error.subscriber, after=error.after, first=error.first)
    if isinstance(error, UnknownIdError | DuplicateIdError):
        found["identifier"] = error.identifier
    return ProblemError(status, _kind(type(error)), str(error), **{**found, **members})


def _kind(error: type[TamisError]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__).lower()


def _title(kind: str) -> str:
    words = kind.replace("-", " ")
    return words[:1].upper() + words[1:]
