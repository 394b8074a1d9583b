"""WebSocket as uvicorn speaks it, with limits on what a client can make the service hold.

Without them, a client that sends pings and reads nothing, or a message of endless empty parts, would fill the memory.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from tamis.service.connections import PLACE, Place

MOST_MESSAGE = 64 * 1024
"""Bytes of a message from a WebSocket. Clients only acknowledge."""
_MOST_PARTS = 1000
"""Frames of one message."""


class SocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket."""

    _is_full = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._place: Place | None = self.app_state.get(PLACE)
        if self._place is not None:
            self._place.holder = self

    def connection_lost(self, exc: Exception | None) -> None:
        if self._place is not None:
            self._place.leave()
        super().connection_lost(exc)

    def make_room(self) -> None:
        """End the connection, since others need its place."""
        if self._is_full or not self.handshake_complete or self.close_sent:
            self.transport.abort()
            return
        self.queue.put_nowait({"type": "websocket.disconnect", "code": int(CloseCode.TRY_AGAIN_LATER)})
        self.conn.send_close(CloseCode.TRY_AGAIN_LATER)
        self.close_sent = True
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.close()

    def is_stuck(self) -> bool:
        return self._is_full

    def is_waited_for(self) -> bool:
        return False

    def pause_writing(self) -> None:
        """The client does not read. What it sends is not read either: each ping has an answer, which would wait, too."""
        super().pause_writing()
        self._is_full = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._is_full = False
        if not self.read_paused:
            self.transport.resume_reading()

    async def receive(self) -> Any:
        message = await super().receive()  # It reads on.
        if self._is_full:
            self.transport.pause_reading()
        return message

    async def send(self, message: Any) -> None:
        await self.writable.wait()
        if self.close_sent and self.initial_response is None:  # The client has broken the protocol meanwhile.
            raise ClientDisconnected
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # By an answer that refuses it. uvicorn would log an error.

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():
            super().data_received(data)

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= _MOST_PARTS:
            self._fail(CloseCode.MESSAGE_TOO_BIG, f"a message has more than {_MOST_PARTS} frames")
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self._fail(CloseCode.INVALID_DATA, "not UTF-8")
                return
        super().send_receive_event_to_app()

    def _fail(self, code: CloseCode, reason: str) -> None:
        """End the connection with a code."""
        self.frames = []
        if not self.close_sent:
            self.conn.fail(code, reason)
            self.handle_parser_exception()
