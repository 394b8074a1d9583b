"""Clients that are slow on purpose, and too many of them: others go on being served."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.service.conftest import CONNECTIONS
from tests.service.hostile import GOODBYE, HANDSHAKE, PING, Health, frame
from tests.service.serving import PATIENCE, Server

HOST = b"Host: 127.0.0.1\r\n"


ASK = b"GET /v1/access HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"


def asked(server: Server, request: bytes = GOODBYE) -> bytes:
    """What a client gets that asks properly: by default, for the health."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        connection.sendall(request)
        return everything(connection)


def everything(connection: socket.socket) -> bytes:
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


@contextmanager
def held(server: Server, count: int, first: bytes) -> Iterator[list[socket.socket]]:
    """Connections that have sent some bytes."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
            connection.sendall(first)
            found.append(connection)
        yield found


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"GET /health HTTP/1.1\r\nX-Slow: ",
        b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
    ids=["nothing", "a part of a head", "a request, and then nothing"],
)
def test_connections_that_ask_nothing_keep_nobody_out(small: Server, first: bytes) -> None:
    """There are always more of them than the limit allows. Each of the others is served."""
    with held(small, CONNECTIONS + 20, first):
        for _ in range(10):
            assert b'{"status":"ok"}' in asked(small)
            assert asked(small, ASK).startswith(b"HTTP/1.1 200 ")


POST = b"POST /v1/events HTTP/1.1\r\n" + HOST
LINES = b"Content-Type: application/x-ndjson\r\n"
LONG = b"Content-Length: 100000\r\n\r\n"


@pytest.mark.parametrize(
    "first",
    [
        b"POST /v1/nothing HTTP/1.1\r\n" + HOST + LONG,
        POST + b"Authorization: Bearer wrong\r\n" + LONG,
        POST + LONG + b"{",
        POST + LINES + LONG + b'{"a"',
        POST + LINES + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{",
    ],
    ids=["no route", "no token", "one value", "lines", "lines without a length"],
)
def test_bodies_that_never_end_keep_nobody_out(small: Server, first: bytes) -> None:
    """The health is answered at any time. Others are told to try again, until they get the place of one of those."""
    with held(small, CONNECTIONS + 20, first):
        for _ in range(5):
            assert b'{"status":"ok"}' in asked(small)
        answer = patient(small, ASK)
        assert answer.startswith(b"HTTP/1.1 200 ")


def patient(server: Server, request: bytes) -> bytes:
    """The first answer that is not a 429. Each 429 says when to try again."""
    while True:
        answer = asked(server, request)
        if not answer.startswith(b"HTTP/1.1 429 "):
            return answer
        assert b"too-many-connections" in answer
        assert b"retry-after: 1\r\n" in answer.lower()


def test_lines_that_come_byte_by_byte(small: Server) -> None:
    assert b"1,024 bytes a second" in trickled(small, POST + LINES + LONG)


def stream_of(tenant: bytes) -> bytes:
    return b"GET /v1/subscribers/target/stream HTTP/1.1\r\n" + HOST + b"Tamis-Tenant: " + tenant + b"\r\n\r\n"


def test_tenants_share_the_connections(small: Server) -> None:
    """One tenant holds all connections with its streams. Another one takes a half of them, and no more."""
    for name in ("greedy", "modest"):
        (small.folder / "tenants" / name).mkdir()
        path = "/v1/subscribers/target/subscriptions/x"
        headers = {"Tamis-Tenant": name, "Connection": "close"}
        assert small.client.put(path, json={"expression": "target = 'x'"}, headers=headers).status_code == 200
    with ExitStack() as stack:

        def begun(tenant: bytes) -> bytes:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", small.port), PATIENCE))
            connection.sendall(stream_of(tenant))
            return connection.recv(12)

        assert [begun(b"greedy") for _ in range(CONNECTIONS)] == [b"HTTP/1.1 200"] * CONNECTIONS
        assert begun(b"greedy") == b"HTTP/1.1 429"
        assert b'{"status":"ok"}' in asked(small)
        half = CONNECTIONS // 2
        assert [begun(b"modest") for _ in range(half)] == [b"HTTP/1.1 200"] * half
        assert [begun(b"modest"), begun(b"greedy")] == [b"HTTP/1.1 429"] * 2


def test_connections_that_send_a_byte_now_and_then(small: Server) -> None:
    """Bytes come until the service ends all these connections; meanwhile others are served."""
    with held(small, CONNECTIONS, b"GET /health HTTP/1.1\r\nX-Slow: ") as connections:
        open_ones = set(connections)
        served = 0
        while open_ones:
            for connection in list(open_ones):
                try:
                    connection.sendall(b"x")
                    connection.setblocking(False)
                    if not connection.recv(1000).startswith(b"HTTP/1.1 408 "):
                        open_ones.discard(connection)
                except BlockingIOError:
                    pass
                except OSError:
                    open_ones.discard(connection)
                finally:
                    connection.setblocking(True)
            assert b'{"status":"ok"}' in asked(small)
            served += 1
        assert served


def test_a_body_that_comes_byte_by_byte(small: Server) -> None:
    assert b"1,024 bytes a second" in trickled(small, POST + LONG)


def trickled(server: Server, head: bytes) -> bytes:
    """What a client gets whose parts come in time, but the whole body would take hours."""
    connection = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    connection.sendall(head)
    ended = threading.Event()

    def trickle() -> None:
        while not ended.wait(0.05):
            try:
                connection.sendall(b" ")
            except OSError:
                return

    thread = threading.Thread(target=trickle)
    thread.start()
    with connection:
        answer = everything(connection)
        ended.set()
        thread.join()
    assert answer.startswith(b"HTTP/1.1 408 ")
    return answer


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs TCP_USER_TIMEOUT")
def test_clients_that_read_nothing_are_cut_off(small: Server) -> None:
    """They ask for long answers and send pings, and read nothing. The service holds little, and not for long."""
    small.publish({"target": "x", "text": "y" * 200_000})
    before = Health(small)
    ask = b"GET /v1/subscribers/target/notifications?after=0 HTTP/1.1\r\n" + HOST + b"\r\n"
    pings = frame(PING, b"x" * 125) * 20_000
    with ExitStack() as stack:
        for payload in (ask * 100, HANDSHAKE + b"\r\n"):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", small.port))
            connection.sendall(payload)
        connection.recv(15)
        connection.settimeout(0.2)
        sent = 0
        try:
            while sent < 100_000_000:
                sent += connection.send(pings)
        except (TimeoutError, OSError):
            pass
        assert sent < 50_000_000
        before.check(more_bytes=30_000_000)


@pytest.mark.long
def test_files_are_allowed_for_all_connections(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1000:
        return
    code = (
        "import resource, sys; from tamis.service import server; from tamis.service.config import ServiceConfig\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "def told(address):\n"
        "    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)\n"
        "    import os, signal; os.kill(os.getpid(), signal.SIGTERM)\n"
        "from pathlib import Path\n"
        f"server.serve(ServiceConfig(Path({str(tmp_path)!r}), port=0, connections=700, log='error'), told)\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert int(answer.stdout) >= 900, answer.stderr
