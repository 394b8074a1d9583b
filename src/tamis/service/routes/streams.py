"""Notes as they come: server-sent events, and a WebSocket.

A stream reads a page of notes, sends it, and reads the next page when the network has taken the first. So a slow consumer holds
one page in memory, and nobody waits for it. A stream that waits for notes holds no thread.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tamis.errors import OptionError, TamisError, shortened
from tamis.service.access import SubscribeVisit, Visit
from tamis.service.answers import json_bytes
from tamis.service.documented import TEXT, SubscriberName, documented
from tamis.service.json_reader import read_object
from tamis.service.note_pages import NoteText, read_page
from tamis.service.problems import ProblemError, problem_of

router = APIRouter(prefix="/v1", tags=["streams"])

_BEAT = 15.0
"""Seconds without notes after which a stream shows that it lives. It also looks whether its subscriber is still there."""
_PATIENCE = 2.0
"""Seconds in which a stream may end by itself when the service ends."""
_DEPTH = 4
_GOING_AWAY, _LOST, _POLICY = 1001, 1006, 1008
"""Codes with which a WebSocket ends: the service ends; the connection is lost; the stream cannot go on."""

_After = Annotated[int | None, Query(ge=0, description="Start after this note. By default, after the cursor.")]


class Pages:
    """The notes of a subscriber, page by page, as long as the service lives."""

    def __init__(self, visit: Visit, subscriber: str, after: int) -> None:
        self._visit = visit
        self._subscriber = subscriber
        self._after = after

    async def read(self) -> list[NoteText]:
        """The next page; empty if there are no more notes yet.

        Raises
        ------
        UnknownIdError, RetentionError
        """
        after = self._after
        found = await self._visit.tenant.work(lambda broker: read_page(broker, self._subscriber, after))
        if found:
            self._after = found[-1].sequence
            self._visit.tenant.metrics.notes_read += len(found)
        return found

    async def follow(self, first: list[NoteText]) -> AsyncIterator[list[NoteText]]:
        """Pages as they come, and an empty page every `_BEAT` seconds without notes.

        Raises
        ------
        UnknownIdError, RetentionError
        ProblemError
            The token was revoked.
        """
        visit, last = self._visit, time.monotonic()
        async with visit.tenant.hub.waiting(self._subscriber) as waiter:
            page = first or await self.read()  # Notes may have come before somebody waited for them.
            while not visit.service.stopping.is_set():
                if page or time.monotonic() - last >= _BEAT:
                    visit.check_token()
                    yield page
                    last = time.monotonic()
                else:
                    await waiter.wait(_BEAT)
                page = await self.read()


async def _begin(visit: Visit, subscriber: str, after: int | None) -> tuple[Pages, list[NoteText]]:
    """The pages of a subscriber, and the first of them, so that errors come before the stream begins."""
    if after is None:
        after = (await visit.tenant.work(lambda broker: broker.subscriber(subscriber))).cursor
    pages = Pages(visit, subscriber, after)
    return pages, await pages.read()


@router.get(
    "/subscribers/{subscriber:name}/stream",
    **documented(
        TEXT,
        media_type="text/event-stream",
        needs="stream",
        problems={410: "Notes after this number were dropped; `first` is the first one that is left."},
    ),
)
async def stream(
    visit: SubscribeVisit,
    subscriber: SubscriberName,
    after: _After = None,
    last_event_id: Annotated[
        str | None, Header(description="The last note that was received; it wins over after.")
    ] = None,
) -> Response:
    """The notes of a subscriber as server-sent events, without an end. The id of each is the number of the note."""
    if last_event_id is not None:
        if not last_event_id.isascii() or not last_event_id.isdigit() or int(last_event_id) >= 2**63:
            raise OptionError(f"Last-Event-ID must be the number of a note, not {shortened(last_event_id)}")
        after = int(last_event_id)
    return EventStream(visit, *await _begin(visit, subscriber, after))


class EventStream(Response):
    """Server-sent events: notes, comments while there are none, and the problem that ends the stream, if any."""

    def __init__(self, visit: Visit, pages: Pages, first: list[NoteText]) -> None:
        super().__init__(
            media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        del self.headers["content-length"]
        self._visit = visit
        self._pages = pages
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._visit.streaming():
            seconds = self._visit.service.config.send_seconds
            await until_first([self._send(send, seconds), _disconnected(receive), _end_of_patience(self._visit)])

    async def _send(self, send: Send, seconds: float) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await _put(send, seconds, b"retry: 1000\n\n")
        try:
            async for page in self._pages.follow(self._first):
                self._first = []
                await _put(send, seconds, b"".join(map(_event, page)) or b":\n\n")
        except (TamisError, ProblemError) as error:
            document = json_bytes(_problem(error).document())
            await _put(send, seconds, b"event: problem\ndata: " + document + b"\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _put(send: Send, seconds: float, part: bytes) -> None:
    """Send a part, which the consumer must take in time."""
    async with asyncio.timeout(seconds):
        await send({"type": "http.response.body", "body": part, "more_body": True})


def _event(note: NoteText) -> bytes:
    return f"id: {note.sequence}\ndata: {note.text}\n\n".encode()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end_of_patience(visit: Visit) -> None:
    await visit.service.stopping.wait()
    await asyncio.sleep(_PATIENCE)


async def until_first(works: Iterable[Awaitable[None]]) -> None:
    """Do some things at the same time, until the first of them ends. The others are cancelled."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        error = task.exception()
        # A consumer that went away or takes nothing is no error of the service.
        if error is not None and not isinstance(error, OSError | WebSocketDisconnect):
            raise error


@router.websocket("/subscribers/{subscriber:name}/socket")
async def socket(socket: WebSocket, visit: SubscribeVisit, subscriber: SubscriberName, after: _After = None) -> None:
    """Notes go out as ``{"note": {...}}``, acknowledgements come in as ``{"acknowledge": 17}``."""
    with visit.streaming():
        pages, first = await _begin(visit, subscriber, after)
        await socket.accept()
        await until_first(
            [_send_notes(socket, pages, first), _take_numbers(socket, visit, subscriber), _end_of_patience(visit)]
        )


async def _send_notes(socket: WebSocket, pages: Pages, first: list[NoteText]) -> None:
    try:
        async for page in pages.follow(first):
            first = []
            for note in page:
                await _say(socket, f'{{"note":{note.text}}}')
    except (TamisError, ProblemError) as error:
        await _say(socket, _problem_text(error))
        await _end(socket, _POLICY)
    else:
        await _end(socket, _GOING_AWAY)


async def _take_numbers(socket: WebSocket, visit: Visit, subscriber: str) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        while seconds := visit.tenant.requests.wait():
            await asyncio.sleep(seconds)
        visit.tenant.requests.take(1)
        try:
            visit.check_token()
        except ProblemError as error:
            await _say(socket, _problem_text(error))
            await _end(socket, _POLICY)
            return
        try:
            number = _number_in(message.get("text") or (message.get("bytes") or b"").decode(errors="replace"))
            await _acknowledge(visit, subscriber, number)
            await _say(socket, json.dumps({"acknowledged": number}))
        except (TamisError, ProblemError) as error:
            await _say(socket, _problem_text(error))


async def _acknowledge(visit: Visit, subscriber: str, number: int) -> None:
    await visit.tenant.work(lambda broker: broker.acknowledge(subscriber, number))


def _number_in(text: str) -> Any:
    found = read_object(text.encode(errors="replace"), "a message", _DEPTH)
    if list(found) != ["acknowledge"]:
        raise ProblemError(422, "invalid", 'a message must be {"acknowledge": 17}, where 17 is the number of a note')
    return found["acknowledge"]


async def _say(socket: WebSocket, text: str) -> None:
    if socket.application_state is not WebSocketState.CONNECTED:  # The client has left while another task was sending.
        raise WebSocketDisconnect(_LOST)
    async with asyncio.timeout(socket.app.state.service.config.send_seconds):
        await socket.send_text(text)


async def _end(socket: WebSocket, code: int) -> None:
    if socket.application_state is WebSocketState.CONNECTED:
        await socket.close(code)


def _problem(error: TamisError | ProblemError) -> ProblemError:
    return error if isinstance(error, ProblemError) else problem_of(error)


def _problem_text(error: TamisError | ProblemError) -> str:
    return json_bytes({"problem": _problem(error).document()}).decode()
