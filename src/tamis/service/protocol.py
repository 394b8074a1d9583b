"""HTTP as uvicorn speaks it, with limits: on connections, and on the time and size of the head of a request.

Without them, clients that send a byte now and then would hold all connections, and an endless head would fill the memory.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from secrets import token_hex
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tamis.service.answers import json_bytes
from tamis.service.connections import PLACE, TOO_MANY, Connections, Place
from tamis.service.problems import MEDIA_TYPE, ProblemError

MOST_HEAD = 64 * 1024
"""Bytes of the first line and the headers."""
_LINGER_SECONDS = 1.0
"""How long a client that was refused may go on sending, so that it can read the answer."""
HEALTH = b"/health"
_WELL = b'{"status":"ok"}'
_NOT_PLAIN = (b"content-length", b"transfer-encoding", b"expect", b"origin", b"upgrade", b"x-request-id")
_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
}


class Protocol(HttpToolsProtocol):
    """One connection. `places` and `seconds` are set in a class of their own for each server, see `limited`."""

    places: Connections
    seconds = 10.0
    said_well: Callable[[], None]
    """Counts an answer about the health."""
    _head = 0
    _timer: asyncio.TimerHandle | None = None
    _is_refused = False
    _is_offer = False
    """Whether the request offers another protocol than that of WebSockets."""
    _wrong = "the request is not HTTP/1.1"
    """What a request that cannot be parsed is told."""

    def __init__(self, *arguments: Any, place: Place | None = None, **words: Any) -> None:
        super().__init__(*arguments, **words)
        self._place = place

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self._place is None:
            self._place = self.places.enter(address_of(transport), self)
        else:
            self._place.holder = self
        # Requests find the place of their connection in their scope, and a WebSocket takes it over.
        self.app_state = {**self.app_state, PLACE: self._place}
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._leave()
        super().connection_lost(exc)

    def _leave(self) -> None:
        if self._place is not None:
            self._place.leave()

    def make_room(self) -> None:
        """End the connection, since others need its place."""
        if self._is_refused:
            self.transport.abort()
            return
        self._refuse(ProblemError(429, *TOO_MANY, headers={"Retry-After": "1"}), lingers=False)

    def is_stuck(self) -> bool:
        return self.flow.write_paused

    def is_waited_for(self) -> bool:
        return not self.flow.read_paused

    def data_received(self, data: bytes) -> None:
        if self._is_refused or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.send_400_response(str(error))
        except httptools.HttpParserUpgrade as stopped:
            if self._is_offer:
                self._pass_over(data[stopped.args[0] :])
            elif self._should_upgrade():
                self.handle_websocket_upgrade()

    def _pass_over(self, rest: bytes) -> None:
        """Read a request again without its offer of another protocol, such as HTTP/2. The parser would lose its body."""
        self._is_offer = False
        lines = [self.scope["method"].encode() + b" " + self.url + b" HTTP/1.1"]
        for name, value in self.headers:
            if name == b"connection":
                value = b", ".join(each for each in value.split(b",") if each.strip().lower() != b"upgrade")
            if name != b"upgrade":
                lines.append(name + b": " + value)
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"\r\n".join([*lines, b"", b""]) + rest)

    def send_400_response(self, msg: str) -> None:
        """uvicorn calls this for text that is not HTTP, and when a callback of the parser raises an error."""
        if self._head > MOST_HEAD:
            problem = ProblemError(431, "head-too-long", f"the headers have more than {MOST_HEAD:,} bytes")
        else:
            problem = ProblemError(400, "not-http", self._wrong)
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
        method = self.parser.get_method()
        if self.parser.should_upgrade() and not self._should_upgrade() and method != b"CONNECT":
            self.scope["method"] = method.decode("ascii")
            self._is_offer = True
            return
        self._end_head()
        assert self._place is not None
        self._place.work()
        self._place.begin_body()
        if self.parser.should_upgrade() and self._should_upgrade():
            self._check_upgrade()
        super().on_headers_complete()

    def _check_upgrade(self) -> None:
        """Refuse a WebSocket that begins with a body, which would never be read, or behind a request without an answer."""
        lengths = {value.strip(b"0 ") for name, value in self.headers if name == b"content-length"}
        is_whole = lengths <= {b""} and not any(name == b"transfer-encoding" for name, _ in self.headers)
        if not is_whole or (self.cycle is not None and not self.cycle.response_complete):
            self._wrong = "a WebSocket must begin with a request of its own, without a body"
            raise httptools.HttpParserError(self._wrong)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.scope["raw_path"] != HEALTH or cycle.scope["method"] != "GET" or not self._is_plain():
            super()._start_asgi_task(cycle, app)
            return
        # At once, and not in the next turn of the loop, which may have much to do.
        answering = cycle.run_asgi(_be_well)
        try:
            answering.send(None)
        except StopIteration:
            self.said_well()
        else:  # It would wait until the client takes something.
            answering.close()
            self.transport.abort()

    def _is_plain(self) -> bool:
        """Whether a request has a usual place, and no header that needs a look."""
        is_usual = self._place is not None and not self._place.is_extra
        return is_usual and not any(name in _NOT_PLAIN for name, _ in self.headers)

    def on_body(self, body: bytes) -> None:
        if self._place is not None:
            self._place.size += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_offer:
            return
        if self._place is not None:
            self._place.is_sending = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.timeout_keep_alive_task is not None and self._place is not None:
            self._place.wait()

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

    def _close(self) -> None:
        self._leave()
        if self.transport.get_write_buffer_size():  # The client takes nothing, and closing would wait for it.
            self.transport.abort()
        else:
            self.transport.close()

    def _refuse(self, problem: ProblemError, *, lingers: bool = True) -> None:
        """Answer, and end the connection."""
        self._end_head()
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            # The bytes of an answer are on their way, so another one would be taken for a part of it.
            self._close()
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
            self._close()
            return
        # Closing while bytes come that nobody reads would reset the connection, and the client might lose the answer.
        self._is_refused = True
        if self._place is not None:
            self._place.wait()
        self.transport.write_eof()
        self.flow.resume_reading()
        self._timer = self.loop.call_later(_LINGER_SECONDS, self.transport.close)


async def _be_well(scope: Any, receive: Any, send: Any) -> None:
    """Answer about the health, as the route does."""
    headers = [
        (b"content-length", str(len(_WELL)).encode()),
        (b"content-type", b"application/json"),
        (b"x-request-id", token_hex(8).encode()),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": _WELL})


class Handshake(asyncio.Protocol):
    """A connection until its client has agreed on keys for TLS. It has a place from the first byte on, and little time."""

    places: Connections
    seconds = 10.0
    context: ssl.SSLContext
    http: type[Protocol]

    def __init__(self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
        self._make = partial(self.http, config=config, server_state=server_state, app_state=app_state, _loop=_loop)
        self._loop = _loop or asyncio.get_running_loop()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._place = self.places.enter(address_of(transport), self)
        self._task = self._loop.create_task(self._shake())

    async def _shake(self) -> None:
        early = _Early()
        try:
            encrypted = await self._loop.start_tls(
                self._transport,
                early,
                self.context,
                server_side=True,
                ssl_handshake_timeout=self.seconds,
                ssl_shutdown_timeout=_LINGER_SECONDS,
            )
        except OSError:  # errors of TLS, too
            encrypted = None
        if encrypted is None or early.is_lost:
            self._place.leave()
            self._transport.abort()
            return
        protocol = self._make(place=self._place)
        protocol.connection_made(encrypted)
        encrypted.set_protocol(protocol)
        if early.data:
            protocol.data_received(bytes(early.data))

    def make_room(self) -> None:
        self._transport.abort()

    def is_stuck(self) -> bool:
        return False

    def is_waited_for(self) -> bool:
        return False


class _Early(asyncio.Protocol):
    """Keeps what comes together with the last message of a handshake."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True


def address_of(transport: asyncio.BaseTransport) -> str:
    """The address of a client."""
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) and peer else ""


def limited(
    places: Connections, seconds: int, context: ssl.SSLContext | None, said_well: Callable[[], None]
) -> type[asyncio.Protocol]:
    """The protocol of a server with these limits, which speaks TLS if there is a context for it."""
    words = {"places": places, "seconds": float(seconds)}
    http = type("LimitedProtocol", (Protocol,), {**words, "said_well": staticmethod(said_well)})
    if context is None:
        return http
    return type("LimitedHandshake", (Handshake,), {**words, "context": context, "http": http})
