"""Which pages may call the service from a browser: its own, and those of the origins that the configuration allows.

A browser asks before a page of another origin calls (a preflight, by OPTIONS), and shows answers to the page only if their
headers allow it. Requests of all other pages are refused, also by browsers that would not ask.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from tamis.service.config import LOCAL, ServiceConfig
from tamis.service.problems import ProblemError

_METHODS = "GET, HEAD, PUT, POST, DELETE"
_ALLOWED = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Tamis-Tenant, X-Request-Id"
"""Headers that pages may send."""
_EXPOSED = "ETag, Retry-After, X-Request-Id"
"""Headers of answers that pages may read."""
_SECONDS = "600"
"""For so long a browser need not ask again."""

RawHeaders = list[tuple[bytes, bytes]]


def check_origin(config: ServiceConfig, headers: Headers) -> None:
    """Refuse requests that a page of another site makes in somebody's browser.

    Raises
    ------
    ProblemError
    """
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    known: tuple[Any, ...] = (
        *map(str.lower, config.hosts),
        *(("127.0.0.1", "[::1]", "localhost") if config.host in LOCAL else ()),
    )
    if known and (config.hosts or config.is_local) and name.lower() not in known:
        raise ProblemError(
            421, "foreign-host", "the service has another name. Hint: start it with --host-name, or use its address"
        )
    origin = headers.get("origin")
    if origin is not None and not _is_allowed(config, origin) and _place_of(origin) != host.lower():
        raise ProblemError(
            403, "foreign-origin", "a page of another site made this request. Hint: start the service with --origin"
        )


def preflight(config: ServiceConfig, scope: Scope, headers: Headers) -> Response | None:
    """The answer to a browser that asks whether a page may call; None for all other requests."""
    if scope.get("method") != "OPTIONS" or "access-control-request-method" not in headers:
        return None
    if not _is_allowed(config, headers.get("origin", "")):
        return None
    found = {
        "Access-Control-Allow-Methods": _METHODS,
        "Access-Control-Allow-Headers": _ALLOWED,
        "Access-Control-Max-Age": _SECONDS,
    }
    if headers.get("access-control-request-private-network") == "true":
        found["Access-Control-Allow-Private-Network"] = "true"
    return Response(status_code=204, headers=found)


def headers_for_pages(config: ServiceConfig, headers: Headers) -> RawHeaders:
    """What an answer needs so that a page of an allowed origin may read it."""
    if not config.origins:
        return []
    origin = headers.get("origin", "")
    found = [(b"vary", b"Origin")]  # A cache must not show the answer to pages of other origins.
    if _is_allowed(config, origin):
        found.append((b"access-control-allow-origin", origin.encode("latin-1")))
        found.append((b"access-control-expose-headers", _EXPOSED.encode()))
    return found


def _is_allowed(config: ServiceConfig, origin: str) -> bool:
    return origin.lower() in map(str.lower, config.origins)


def _place_of(origin: str) -> str:
    """The host and the port of an origin; nothing if it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
