"""What surrounds every request: its id, whether it may come from there, how long its body may take, the log and the metrics."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
import traceback
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.service.answers import problem_answer
from tamis.service.connections import PLACE, Place
from tamis.service.origins import check_origin, headers_for_pages, preflight
from tamis.service.problems import ProblemError
from tamis.service.service import Service

_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
LEAST_BYTES = 1024
"""Bytes a second that a body must have."""
_DRAIN_BYTES, _DRAIN_SECONDS = 8 * 1024 * 1024, 2.0
"""How much of a body is read although the request was refused, and for how long."""
_QUIET = ("/health", "/ready")
"""Routes that are asked every few seconds. They are not logged and do not wait in line. Any name in `Host` is right: a proxy or a
container asks by an address."""


class Surroundings:
    """The outermost part of the application.

    It routes by the path as the client sent it, so that a name in a path may have a slash (%2F).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        service: Service = scope["app"].state.service
        scope["path"] = scope["raw_path"].decode("latin-1")
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        scope.setdefault("state", {})
        method = scope.get("method", "WEBSOCKET")
        if method == "HEAD" and not scope["path"].endswith("/stream"):
            # The server leaves out the body of the answer, since its own scope still says HEAD.
            scope = {**scope, "method": "GET"}
        request = _Request(service, scope, method, given if _ID.fullmatch(given) else secrets.token_hex(8))
        scope["state"]["request_id"] = request.identifier
        if scope["type"] == "http":
            receive, send = request.patient(receive), request.watched(send, headers)
        else:
            send = request.noted(send)
        try:
            if scope["path"] not in _QUIET:
                await service.turns.wait()
                check_origin(service.config, headers)
            answer = preflight(service.config, scope, headers)
            await (answer or self._app)(scope, receive, send)
        except ProblemError as problem:  # raised outside of a route
            await request.answer(problem, scope, receive, send)
        except asyncio.CancelledError:
            if not service.stopping.is_set():
                raise
            await request.give_up(scope, receive, send)
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            service.log("error", "failure", request_id=request.identifier, traceback=text)
            detail = "the service failed. Hint: its log has the reason under the request_id of this answer"
            await request.answer(ProblemError(500, "failure", detail), scope, receive, send)
        finally:
            request.end()


class _Request:
    """One request on its way."""

    def __init__(self, service: Service, scope: Scope, method: str, identifier: str) -> None:
        self.identifier = identifier
        self._method = method
        self._place: Place | None = scope["state"].get(PLACE)
        self._service = service
        self._scope = scope
        self._began = time.perf_counter()
        self._status = 0
        self._has_body = True
        self._receive: Receive | None = None

    def patient(self, receive: Receive) -> Receive:
        """Reading a body whose parts must come in time. Only the time that the client takes counts, not that of the service."""
        seconds = self._service.config.body_seconds
        self._receive = receive
        waited, size = 0.0, 0

        async def patient_receive() -> Message:
            nonlocal waited, size
            if not self._has_body:
                return await receive()  # It waits until the client leaves.
            began = time.monotonic()
            try:
                async with asyncio.timeout(seconds):
                    message = await receive()
            except TimeoutError:
                raise _too_slow(f"no part of the body came for {seconds} s") from None
            waited += time.monotonic() - began
            size += len(message.get("body", b""))
            self._has_body = message.get("more_body", False)
            if self._has_body and waited > seconds + size / LEAST_BYTES:
                raise _too_slow(f"a body must have {LEAST_BYTES:,} bytes a second after the first {seconds} s")
            return message

        return patient_receive

    def watched(self, send: Send, headers: Headers) -> Send:
        """Sending an answer with the id of its request."""
        more = [
            (b"x-request-id", self.identifier.encode()),
            (b"x-content-type-options", b"nosniff"),
            *headers_for_pages(self._service.config, headers),
        ]

        async def watched_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._status = message["status"]
                message["headers"] = [*message["headers"], *more]
                ends = self._place is not None and self._place.is_extra
                if self._status >= 400 and self._has_body and not await self._drained():
                    ends = True  # The rest of the body is not read, so the next request cannot be found.
                if ends:
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        return watched_send

    def noted(self, send: Send) -> Send:
        """Sending to a WebSocket. The status says whether it was accepted."""

        async def noted_send(message: Message) -> None:
            if self._status == 0:
                self._status = 101 if message["type"] == "websocket.accept" else int(message.get("status", 0))
            await send(message)

        return noted_send

    async def _drained(self) -> bool:
        """Whether the rest of the body could be read, which nobody wants any more.

        A connection that ends with bytes that nobody has read is reset, and the client may lose the answer.
        """
        if self._receive is None or self._status == 408 or b"expect" in dict(self._scope["headers"]):
            return False
        if self._place is not None:
            self._place.wait()  # What comes is not wanted, so it keeps nobody out.
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while size < _DRAIN_BYTES:
                    message = await self._receive()
                    size += len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        self._has_body = False
                        return True
        return False

    async def answer(self, problem: ProblemError, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a problem, unless an answer has begun."""
        if self._status == 0:
            try:
                await problem_answer(problem, self.identifier)(scope, receive, send)
            except RuntimeError:
                return  # A WebSocket that was accepted already.

    async def give_up(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose time is over because the service ends."""
        self._receive = None
        headers = {"Retry-After": "1", "Connection": "close"}
        detail = "the service has ended before the request was done. Hint: try again"
        await self.answer(ProblemError(503, "ending", detail, headers=headers), scope, receive, send)

    def end(self) -> None:
        seconds = time.perf_counter() - self._began
        route = getattr(self._scope.get("route"), "path", "")
        plain_route = re.sub(r":\w+}", "}", route)
        tenant = self._scope["state"].get("tenant")
        method = self._method
        if tenant is not None:
            is_stream = self._scope["state"].get("is_stream", False) or method == "WEBSOCKET"
            tenant.metrics.requests[method, plain_route, self._status] += 1
            if not is_stream:
                tenant.metrics.request_seconds.add(seconds)
        else:
            self._service.requests[method if self._status != 405 else "", plain_route, self._status] += 1
        if plain_route in _QUIET:
            return
        client = self._scope.get("client")
        self._service.log(
            "warning" if self._status >= 500 else "info",
            "request",
            request_id=self.identifier,
            method=method,
            route=plain_route,
            status=self._status,
            ms=round(seconds * 1000, 2),
            tenant=None if tenant is None else tenant.name,
            token=self._scope["state"].get("token"),
            client=client[0] if client else None,
        )


def _too_slow(detail: str) -> ProblemError:
    return ProblemError(408, "too-slow", detail, headers={"Connection": "close"})
