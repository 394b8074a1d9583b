"""A proxy on 127.0.0.1 that breaks connections when a test wants it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

PATIENCE = 60


class BreakingProxy:
    """Passes bytes on. Set `lose_answers` to the number of answers to throw away: the service gets those requests, and the
    client gets nothing. Set `refuse` to the number of connections to close at once."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._target = (parts.hostname, parts.port)
        self.lose_answers = 0
        self.refuse = 0
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.connections += 1
                if self.refuse:
                    self.refuse -= 1
                    client.close()
                    continue
                server = socket.create_connection(self._target, PATIENCE)
                self._open |= {client, server}
                for one, other, is_answer in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass_on, args=(one, other, is_answer), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while part := one.recv(65536):
                if is_answer and self.lose_answers:
                    self.lose_answers -= 1
                    break
                other.sendall(part)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def break_all(self) -> None:
        """Break all connections."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listening.close()
        self.break_all()


@contextmanager
def breaking(url: str) -> Iterator[BreakingProxy]:
    """A proxy in front of a service. It ends with the block."""
    proxy = BreakingProxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
