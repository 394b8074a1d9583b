"""One process: sockets, signals, the end."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.datastructures import State

from tamis.errors import BrokerError, OptionError, TamisError
from tamis.service.app import make_app
from tamis.service.config import ServiceConfig
from tamis.service.connections import EXTRA, Connections
from tamis.service.protocol import Handshake, limited
from tamis.service.socket_protocol import MOST_MESSAGE, SocketProtocol

_BACKLOG = 2048
_TURN_SECONDS = 0.0005
"""Seconds after which Python lets another thread run. With its own 5 ms, the event loop would wait that long for each of several
threads that publish, at each of its steps."""
_FULL_COLLECTIONS = 1000
"""Collections of the middle generation between full ones of the garbage collector. With Python's own 10, a service that publishes
makes three full ones a second, and each stops all threads for 40 ms."""
_OTHER_FILES = 200
"""Open files that the service may need besides connections, with a few for each tenant."""


def serve(config: ServiceConfig, told: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then end the process. `told` gets the address when the service is ready.

    Raises
    ------
    TamisError
        The address or a folder cannot be used.
    """
    _allow_files(config.connections + EXTRA + _OTHER_FILES)
    app = make_app(config)
    places = app.state.places = Connections(config.connections)
    context = _context(config)
    listening = listen(config)
    settings = uvicorn.Config(
        app,
        http=limited(places, config.header_seconds, context, lambda: _count_health(app.state)),
        # Others may not keep the order of calls that TLS begins with.
        loop="asyncio",
        lifespan="on",
        log_config=None,
        # What uvicorn says of a WebSocket at INFO has its whole address, perhaps with a token.
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        proxy_headers=bool(config.proxy),
        forwarded_allow_ips=list(config.proxy),
        ws=SocketProtocol,
        ws_max_size=MOST_MESSAGE,
        timeout_keep_alive=config.keep_alive_seconds,
        timeout_graceful_shutdown=config.end_seconds,
    )
    # Without any handler, Python would print what uvicorn says of a start that has failed, with a traceback.
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_SECONDS)
    thresholds = gc.get_threshold()
    gc.set_threshold(*thresholds[:2], _FULL_COLLECTIONS)
    # uvicorn sends itself the signal again when all is done.
    ended_by = signal.signal(signal.SIGTERM, _exit)
    try:
        with listening:
            server = _Server(settings, lambda: told(_address(config, listening)), app.state)
            server.run(sockets=[listening])
    except SystemExit:  # uvicorn's own, if the start has failed
        failed: Exception | None = getattr(app.state, "failed", None)
        if failed is None:
            raise
        raise failed if isinstance(failed, TamisError) else BrokerError(f"the service cannot start: {failed}") from None
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        signal.signal(signal.SIGTERM, ended_by)


def _exit(sig: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


class _Server(uvicorn.Server):
    """Says when it is ready, and tells streams to end when the process is told to end."""

    def __init__(self, settings: uvicorn.Config, ready: Callable[[], None], state: State) -> None:
        super().__init__(settings)
        self._ready = ready
        self._state = state

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            # What is there now stays until the end. A full collection that looks at it again stops the event loop for 160 ms.
            gc.collect()
            gc.freeze()
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for holder in self._state.places.holders():
            if isinstance(holder, Handshake):
                holder.make_room()
        await super().shutdown(sockets)
        # All brokers are closed, or a call has not ended in time, and what was acknowledged is on disk anyway. Python would wait
        # for threads that compile, and then take apart every object: seconds in which a supervisor waits.
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(130 if signal.SIGINT in self._captured_signals else 0)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        service = getattr(self._state, "service", None)
        if service is not None:
            service.stop()
        super().handle_exit(sig, frame)


def _allow_files(wanted: int) -> None:
    """Let the process open this many files if the system allows it: often only 1024 are allowed until a process asks for more."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _count_health(state: State) -> None:
    state.service.requests["GET", "/health", 200] += 1


def _context(config: ServiceConfig) -> ssl.SSLContext | None:
    """What the service speaks TLS with."""
    if not config.tls_certificate:
        return None
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(config.tls_certificate, config.tls_key)
    return found


def listen(config: ServiceConfig) -> socket.socket:
    """A socket that listens at the address of a service.

    Raises
    ------
    OptionError
    """
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # asyncio sends small parts of an answer at once (TCP_NODELAY) only if the socket names its protocol. Otherwise the second
    # part waits 40 ms for the client's acknowledgement of the first.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Else, a client that takes nothing would hold its connection for ever.
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, config.send_seconds * 1000)
        found.bind((config.host, config.port))
        found.listen(_BACKLOG)
    except OSError as error:
        found.close()
        raise OptionError(f"cannot listen on {config.host}, port {config.port}: {error.strerror or error}") from None
    return found


def _address(config: ServiceConfig, listening: socket.socket) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    scheme = "https" if config.tls_certificate else "http"
    return f"{scheme}://{host}:{listening.getsockname()[1]}"
