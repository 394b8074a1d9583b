"""A service begins, works, and ends: what it has acknowledged is there, whatever happens."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import threading
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tamis.broker import open as open_broker
from tests.service.receiver import new_certificate
from tests.service.serving import NDJSON, PATIENCE, Server, in_tenant, refusal, serving


def stored(folder: Path) -> set[int]:
    """The marks of all events in the tables."""
    with open_broker(folder / "tenants" / "default", read_only=True) as broker:
        return {event["mark"] for _, event in broker.replay("mark IS NOT NULL")}


def publish_until_it_ends(server: Server, start: int, acknowledged: list[int], told: threading.Semaphore) -> None:
    """Publish events with marks. Those that got a 2xx are noted."""
    with httpx2.Client(base_url=server.url, timeout=PATIENCE, trust_env=False) as client:
        for mark in range(start, start + 1_000_000):
            try:
                if mark % 3:
                    answer = client.post("/v1/events", json={"mark": mark})
                    marks = [mark]
                else:
                    marks = list(range(10_000_000 + 10 * mark, 10_000_000 + 10 * mark + 10))
                    lines = "".join(json.dumps({"mark": each}) + "\n" for each in marks)
                    answer = client.post("/v1/events", content=lines, headers=NDJSON)
            except httpx2.HTTPError:
                return
            if answer.status_code != 200:
                return
            acknowledged += marks
            told.release()


@pytest.mark.long
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_acknowledged_is_there(folder: Path, end: signal.Signals) -> None:
    server = Server(folder, forks=False)
    server.subscribe("all", "marks", "mark >= 0")
    acknowledged: list[list[int]] = [[], [], []]
    told = threading.Semaphore(0)
    threads = [
        threading.Thread(target=publish_until_it_ends, args=(server, 1_000_000 * place, found, told))
        for place, found in enumerate(acknowledged)
    ]
    for thread in threads:
        thread.start()
    for _ in range(40):
        assert told.acquire(timeout=PATIENCE)
    server.process.send_signal(end)
    for thread in threads:
        thread.join()
    assert server.process.wait(PATIENCE) == (0 if end is signal.SIGTERM else -end)
    assert {mark for found in acknowledged for mark in found} <= stored(folder)
    with open_broker(folder / "tenants" / "default") as broker:
        assert broker.subscriber("all").waiting >= sum(map(len, acknowledged))
        assert len(broker.publish({"mark": -1}).matches) == 0


def test_health_answers_while_calls_run(server: Server) -> None:
    """Publishing many lines and searching covered subscriptions run beside the event loop: answers about the health come before
    theirs."""
    own = in_tenant(server, "busy")
    rows = [{"subscriber": "s", "name": f"n{n}", "expression": f"a = {n} AND b < {n % 7}"} for n in range(500)]
    body = "".join(json.dumps(row) + "\n" for row in rows)
    assert own.client.post("/v1/subscriptions", content=body, headers=NDJSON).status_code == 200
    lines = b'{"a": 7, "b": 1}\n' * 10_000
    order: list[str] = []

    def publish() -> None:
        order.append(f"events {own.client.post('/v1/events', content=lines, headers=NDJSON).status_code}")

    def cover() -> None:
        order.append(f"covering {own.client.post('/v1/covering', json={}).status_code}")

    threads = [threading.Thread(target=publish), threading.Thread(target=cover)]
    for thread in threads:
        thread.start()
    answers = 0
    while len(order) < 2:
        assert server.client.get("/health").json() == {"status": "ok"}
        answers += not order
    for thread in threads:
        thread.join()
    assert sorted(order) == ["covering 200", "events 200"]
    assert answers > 3


def test_one_service_for_a_folder(server: Server) -> None:
    assert "writes to" in refusal(server.folder)


def test_a_port_that_is_taken(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1, port {port}" in refusal(folder, "--port", port)


def test_tls(folder: Path, tmp_path: Path) -> None:
    certificate, key = new_certificate(tmp_path, "IP:127.0.0.1")
    few = {"TAMIS_CONNECTIONS": "5", "TAMIS_HEADER_SECONDS": "3600"}
    files = ("--tls-certificate", certificate, "--tls-key", key)
    with serving(folder, *files, environment=few) as server, ExitStack() as stack:
        assert server.url.startswith("https://")
        context = ssl.create_default_context(cafile=certificate)
        # Connections count from their first byte on: those whose handshakes never end make room for others.
        for first in (b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n") * 4:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            connection.sendall(first)
        for path in ("/health", "/v1/access", "/v1/access"):
            assert httpx2.get(server.url + path, verify=context, trust_env=False).status_code == 200
        assert "Traceback" not in server.log()
