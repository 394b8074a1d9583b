"""HTTP as uvicorn speaks it, with limits: on connections, and on the time and size of the head of a request.

Without them, clients that send a byte now and then would hold all connections, and an endless head would fill the memory.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tamis.service.answers import json_bytes
from tamis.service.problems import MEDIA_TYPE, ProblemError

MOST_HEAD = 64 * 1024
"""Bytes of the first line and the headers."""
_LINGER_SECONDS = 1.0
"""How long a client that was refused may go on sending, so that it can read the answer."""
_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class Protocol(HttpToolsProtocol):
    """One connection. `most`, `seconds` and `idle` are set in a class of their own for each server, see `limited`."""

    most = 2000
    seconds = 10.0
    idle: dict[Protocol, None]
    """Connections that wait for the head of a request, or were refused. The one that has waited longest comes first."""
    _head = 0
    _timer: asyncio.TimerHandle | None = None
    _is_refused = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most:
            # Clients that open connections and ask nothing must not keep out those that do.
            longest = next(iter(self.idle), self)
            longest._make_room()
            if longest is self:
                return
        self._begin_head()
        self.idle[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self.idle.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_refused and not self.transport.is_closing():
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """uvicorn calls this for text that is not HTTP, and when a callback of the parser raises an error."""
        if self._head > MOST_HEAD:
            problem = ProblemError(431, "head-too-long", f"the headers have more than {MOST_HEAD:,} bytes")
        else:
            problem = ProblemError(400, "not-http", "the request is not HTTP/1.1")
        self._refuse(problem)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        if self._timer is None:
            self._begin_head()

    def on_url(self, url: bytes) -> None:
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(name + value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_head()
        self.idle.pop(self, None)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.timeout_keep_alive_task is not None:
            self.idle[self] = None

    def _count(self, part: bytes) -> None:
        self._head += len(part) + 4
        if self._head > MOST_HEAD:
            raise httptools.HttpParserError("the head is too long")

    def _begin_head(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self._late)

    def _end_head(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(ProblemError(408, "too-slow", f"the head of a request did not come within {self.seconds:g} s"))

    def _make_room(self) -> None:
        """End the connection, since there are too many."""
        self.idle.pop(self, None)
        if self._is_refused:
            self.transport.abort()
            return
        detail = f"more than {self.most} connections are open"
        self._refuse(ProblemError(503, "too-many-connections", detail, headers={"Retry-After": "1"}), lingers=False)

    def _refuse(self, problem: ProblemError, *, lingers: bool = True) -> None:
        """Answer, and end the connection."""
        self._end_head()
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()  # The bytes of an answer are on their way, so another one would be taken for a part of it.
            return
        for cycle in (self.cycle, *(waiting for waiting, _ in self.pipeline)):
            if cycle is not None:  # A request that is not whole: nobody gets its own answer.
                cycle.disconnected = True
                cycle.message_event.set()
        body = json_bytes(problem.document())
        headers = {
            "content-type": MEDIA_TYPE, "content-length": str(len(body)), "connection": "close", **problem.headers,
        }  # fmt: skip
        lines = [
            f"HTTP/1.1 {problem.status} {_REASONS[problem.status]}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        if not lingers or not self.transport.can_write_eof():
            self.transport.close()
            return
        # Closing while bytes come that nobody reads would reset the connection, and the client might lose the answer.
        self._is_refused = True
        self.idle[self] = None
        self.transport.write_eof()
        self.flow.resume_reading()
        self._timer = self.loop.call_later(_LINGER_SECONDS, self.transport.close)


def limited(connections: int, seconds: int) -> type[Protocol]:
    """The protocol of a server with these limits."""
    return type("LimitedProtocol", (Protocol,), {"most": connections, "seconds": float(seconds), "idle": {}})
