"""What both clients are made with, and how their requests look."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tamis import __version__
from tamis.client.exchange import Failure, Reply, Request
from tamis.errors import OptionError, shortened

TIMEOUT = 30.0
TRIES = 5


@dataclass(frozen=True)
class Connection:
    """The address of a service, a token, and how patient a client is.

    Raises
    ------
    OptionError
    """

    url: str
    token: str | None = field(default=None, repr=False)
    tenant: str | None = None
    timeout: float = TIMEOUT
    tries: int = TRIES
    verify: ssl.SSLContext | str | bool = True

    def __post_init__(self) -> None:
        parts = urlsplit(self.url) if isinstance(self.url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise OptionError(f"`url` must be an address such as http://127.0.0.1:8750, not {shortened(self.url)}")
        if type(self.tries) is not int or self.tries < 1:
            raise OptionError(f"`tries` must be a number from 1 on, not {shortened(self.tries)}")
        if not isinstance(self.timeout, int | float) or self.timeout <= 0:
            raise OptionError(f"`timeout` must be a number of seconds, not {shortened(self.timeout)}")
        for name in ("token", "tenant"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, str) and given.isascii() and given.isprintable()):
                raise OptionError(f"`{name}` must be text in ASCII")  # without the text: it may be a secret

    def options(self) -> dict[str, Any]:
        """The options of a client of httpx2."""
        headers = {"user-agent": f"tamis/{__version__}"}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        if self.tenant is not None:
            headers["tamis-tenant"] = self.tenant
        # Every stream has a connection of its own, so there is no limit.
        limits = library().Limits(max_connections=None, max_keepalive_connections=20)
        return {"headers": headers, "timeout": self.timeout, "verify": self.verify, "limits": limits}

    def words(self, request: Request) -> dict[str, Any]:
        """A request as httpx2 takes it, without its body."""
        query = "&".join(f"{name}={_escaped(value)}" for name, value in request.query)
        address = f"{self.url.rstrip('/')}{request.path}"
        found: dict[str, Any] = {
            "method": request.method,
            "url": f"{address}?{query}" if query else address,
            "headers": dict(request.headers),
        }
        if request.patience is not None:
            httpx2 = library()
            read = None if request.patience == 0 else request.patience
            found["timeout"] = httpx2.Timeout(self.timeout, read=read)
        return found


def _escaped(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


def library() -> Any:
    """The package httpx2, which is heavy and optional.

    Raises
    ------
    OptionError
    """
    try:
        import httpx2
    except ModuleNotFoundError as error:
        if error.name != "httpx2":
            raise
        raise OptionError("a client needs the package httpx2. Hint: pip install 'tamis[client]'") from None
    return httpx2


def reply_of(answer: Any, body: bytes) -> Reply:
    """An answer of httpx2."""
    return Reply(answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, body)


def failure_of(error: Exception) -> Failure:
    """An error of httpx2: a request without an answer."""
    httpx2 = library()
    unsent = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
    return Failure(str(error) or type(error).__name__, not isinstance(error, unsent))
