"""Requests, replies, and when a request is repeated. Nothing here does input or output.

A call is a generator of steps. It yields a `Request`, and gets a `Reply` or a `Failure`. It yields a `Pause`, and goes on when
the pause is over.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from tamis.client.problems import error_of
from tamis.errors import ServiceError

T = TypeVar("T")

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_BUSY = (429, 503)
"""Statuses of a service that has done nothing and asks for another try."""
_GATEWAY = (502, 504)
"""Statuses of a proxy that has no answer of the service."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a service."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes | Callable[[], Iterable[bytes]] = b""
    """The body, or a function that gives its parts: once for each try."""
    repeatable: bool = True
    """Whether a second request changes nothing that the first has not changed."""
    removes: bool = False
    """Whether the request removes something, so that a repeated one may find nothing."""
    subject: Mapping[str, Any] = field(default_factory=dict)
    """What an error is about, where its problem document does not repeat that."""
    patience: float | None = None
    """Seconds for the answer if it takes longer than others; 0: no limit."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of a service."""

    status: int
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes

    def json(self) -> Any:
        """The value in the body.

        Raises
        ------
        ServiceError
        """
        try:
            return json.loads(self.body)
        except ValueError:
            raise ServiceError(f"the answer is not JSON (status {self.status}). Hint: is this address Tamis?") from None


@dataclass(frozen=True, slots=True)
class Failure:
    """A request without an answer."""

    reason: str
    sent: bool
    """Whether the service may have got the request."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds until the next step."""

    seconds: float


Steps: TypeAlias = Generator[Request | Pause, Any, T]


def exchange(request: Request, tries: int) -> Steps[Reply]:
    """The steps of one request: it is repeated until there is a proper answer.

    Raises
    ------
    TamisError
        What the problem document says.
    ServiceError
        There is no answer after all tries.
    """
    was_lost = False
    for number in range(1, tries + 1):
        reply: Reply | Failure = yield request
        if isinstance(reply, Reply) and 200 <= reply.status < 300:
            return reply
        if isinstance(reply, Reply) and request.removes and was_lost and reply.status == 404:
            return replace(reply, status=204)  # The request before has removed it.
        wait = wait_after(request, reply, number)
        if wait is None or number == tries:
            raise failed(request, reply)
        was_lost = was_lost or not isinstance(reply, Reply) or reply.status in _GATEWAY
        yield Pause(wait)
    raise AssertionError("`tries` is at least 1")


def wait_after(request: Request, reply: Reply | Failure, number: int) -> float | None:
    """Seconds to wait before a request is repeated; None: it is not repeated."""
    wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(number - 1, 30)) * random.uniform(0.5, 1.0)
    if isinstance(reply, Failure):
        return wait if request.repeatable or not reply.sent else None
    if reply.status in _GATEWAY:
        return wait if request.repeatable else None
    asked = reply.headers.get("retry-after", "")
    if reply.status not in _BUSY or not (asked.isascii() and asked.isdecimal()):
        return None
    # A part of a body of lines may be published already.
    if not request.repeatable and callable(request.content):
        return None
    return max(wait, min(float(asked), _LONGEST_WAIT))


def failed(request: Request, reply: Reply | Failure) -> Exception:
    """The error for a request that is not repeated any more."""
    if isinstance(reply, Failure):
        lost = " The service may have done what the request asks for." if reply.sent and not request.repeatable else ""
        return ServiceError(f"the service does not answer: {reply.reason}.{lost}")
    return error_of(reply.status, reply.body, request.subject)
