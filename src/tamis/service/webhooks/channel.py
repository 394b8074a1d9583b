"""A connection to one checked address. It speaks HTTP/1.1 and stays open for the next request."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import h11

from tamis.service.webhooks.addresses import Target
from tamis.service.webhooks.names import Names

_AT_ONCE = 64 * 1024
_MOST_BODY = 64 * 1024
"""Bytes of an answer that are read. Of a longer answer the rest is left, and the connection is closed."""
_SHOWN = 200


Headers: TypeAlias = Callable[[], list[tuple[str, str]]]
"""The headers of a request. They are made when it is sent."""


class Answer(NamedTuple):
    """What a receiver has answered."""

    status: int
    headers: dict[str, str]
    """Names in small letters."""
    text: str
    """The beginning of the body."""


class Channel:
    """A connection, or none yet. One request at a time."""

    def __init__(self, names: Names, security: ssl.SSLContext) -> None:
        self._names = names
        self._security = security
        self._target: Target | None = None
        self._state: h11.Connection | None = None
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, target: Target, headers: Headers, body: bytes, limit: asyncio.Timeout | None = None) -> Answer:
        """Send a body, and wait for the answer. After an error the connection is closed. `limit` does not run while the names of
        other receivers are looked up first.

        Raises
        ------
        ForbiddenError
            The address may not be reached.
        OSError, ssl.SSLError, h11.ProtocolError
            There is no connection, or no proper answer.
        """
        if self._is_open_to(target):
            try:
                return await self._exchange(target, headers, body)
            except (OSError, h11.RemoteProtocolError):
                pass  # The receiver has closed the idle connection, perhaps. A second copy does no harm: "at least once".
        self.close()
        await self._connect(target, limit)
        return await self._exchange(target, headers, body)

    def _is_open_to(self, target: Target) -> bool:
        return (
            self._target is not None
            and self._target[:3] == target[:3]
            and self._writer is not None
            and not self._reader.at_eof()
            and not self._writer.is_closing()
        )

    async def _connect(self, target: Target, limit: asyncio.Timeout | None) -> None:
        failure: OSError | None = None
        for address in await self._names.look_up(target, limit):
            secure = target.scheme == "https"
            try:
                self._reader, self._writer = await asyncio.open_connection(
                    str(address),
                    target.port,
                    ssl=self._security if secure else None,
                    server_hostname=target.host if secure else None,
                )
            except OSError as error:
                failure = error
                continue
            self._target, self._state = target, h11.Connection(h11.CLIENT)
            return
        raise failure or OSError(f"{target.host} has no address")

    async def _exchange(self, target: Target, headers: Headers, body: bytes) -> Answer:
        try:
            return await self._request(target, headers, body)
        except BaseException:
            self.close()
            raise

    async def _request(self, target: Target, headers: Headers, body: bytes) -> Answer:
        state, writer = self._state, self._writer
        assert state is not None
        assert writer is not None
        every = [("host", target.authority), ("content-length", str(len(body))), *headers()]
        sent = [h11.Request(method="POST", target=target.path, headers=every), h11.Data(data=body), h11.EndOfMessage()]
        for event in sent:
            writer.write(state.send(event) or b"")
        await writer.drain()
        answer = await self._answer(state)
        if state.our_state is h11.DONE and state.their_state is h11.DONE:
            state.start_next_cycle()
        else:
            self.close()
        return answer

    async def _answer(self, state: h11.Connection) -> Answer:
        head: h11.Response | None = None
        parts: list[bytes] = []
        size = 0
        while size <= _MOST_BODY:
            event = state.next_event()
            if event is h11.NEED_DATA:
                state.receive_data(await self._reader.read(_AT_ONCE))
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                parts.append(bytes(event.data))
                size += len(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
        assert head is not None
        found = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        return Answer(head.status_code, found, b"".join(parts)[:_SHOWN].decode(errors="replace"))

    def close(self) -> None:
        """Close the connection, without waiting for the other side."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._target = self._state = self._writer = None
