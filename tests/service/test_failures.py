"""What goes wrong around a service: at its start, on its disk, and when it is told to end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from tamis.broker import open as open_broker
from tests.broker import faults as fault
from tests.service.serving import NDJSON, PATIENCE, Server, TokenServer, kind, refusal, serving


@pytest.mark.long
def test_a_service_that_does_not_start_says_why_in_its_last_line(folder: Path) -> None:
    """As a process, which has no traceback and the status 1."""
    a_file(folder)
    command = [sys.executable, "-m", "tamis", "serve", str(folder), "--port", "0"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "Traceback" not in answer.stderr
    assert "served" in answer.stderr.splitlines()[-1]


def a_file(folder: Path) -> None:
    folder.write_text("", encoding="utf-8")


def no_tables(folder: Path) -> None:
    home = folder / "tenants" / "default"
    home.mkdir(parents=True)
    (home / "broker.sqlite").write_bytes(b"this is no database" * 1000)


def a_wrong_schema(folder: Path) -> None:
    home = folder / "tenants" / "default"
    open_broker(home).close()
    (home / "schema.json").write_text("[", encoding="utf-8")


def wrong_tokens(folder: Path) -> None:
    folder.mkdir()
    (folder / "tokens.json").write_text("{", encoding="utf-8")


def a_tenant_that_is_a_file(folder: Path) -> None:
    folder.mkdir()
    (folder / "tenants").write_text("", encoding="utf-8")


def no_webhooks(folder: Path) -> None:
    home = folder / "tenants" / "default"
    open_broker(home).close()
    (home / "webhooks.sqlite").write_bytes(b"this is no database" * 1000)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (a_file, "served"),
        (no_tables, "broker.sqlite"),
        (a_wrong_schema, "schema.json: not a schema"),
        (wrong_tokens, "tokens.json"),
        (a_tenant_that_is_a_file, "tenants"),
        (no_webhooks, "webhooks.sqlite"),
    ],
)
def test_a_folder_that_cannot_be_served(folder: Path, prepare: Callable[[Path], None], message: str) -> None:
    prepare(folder)
    assert message in refusal(folder)


def test_tokens_that_are_damaged_later(guarded: TokenServer) -> None:
    client, path = guarded.clients["shop", "admin"], guarded.server.folder / "tokens.json"
    assert client.get("/v1/access").status_code == 200
    good = path.read_bytes()
    path.write_text("{", encoding="utf-8")
    try:
        answer = client.get("/v1/access")
        assert (answer.status_code, kind(answer)) == (503, "no-tokens")
        assert str(path.parent) not in answer.text
    finally:
        path.write_bytes(good)
    assert client.get("/v1/access").status_code == 200


def test_a_certificate_that_is_none(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "some.pem").write_text("this is no certificate", encoding="utf-8")
    words = ("--tls-certificate", tmp_path / "some.pem", "--tls-key", tmp_path / "some.pem")
    assert "some.pem" in refusal(folder, *words)


def test_a_wrong_file_of_settings(folder: Path, tmp_path: Path) -> None:
    assert "none.toml: cannot be read" in refusal(folder, "--config", tmp_path / "none.toml")
    assert "cannot be read" in refusal(folder, "--config", tmp_path)


@pytest.mark.long
def test_a_history_of_the_configuration(folder: Path) -> None:
    folder.mkdir()
    (folder / "service.toml").write_text("[broker.history]\nrows = 3\n", encoding="utf-8")
    with serving(folder) as server:
        server.subscribe("ann", "lowest", "price < ALL (SELECT price FROM history)")
        assert [server.publish({"price": price})["matches"] for price in (3, 4, 2)] == [1, 0, 1]
        explained = server.client.post("/v1/explain", json={"subscriber": "ann", "name": "lowest", "event_sequence": 3})
        assert explained.json()["truth"] is True
        other = {"Tamis-Tenant": "other"}
        (folder / "tenants" / "other").mkdir()
        answer = server.client.post("/v1/check", json={"expression": "a = 1"}, headers=other)
        assert answer.json()["needs_history"] is False
    (folder / "service.toml").write_text("[broker.history]\nrows = 4\n", encoding="utf-8")
    assert "the broker has the history" in refusal(folder)
    (folder / "service.toml").unlink()
    with open_broker(folder / "tenants" / "default") as broker:  # The folder remembers it.
        assert [len(broker.publish({"price": price}).matches) for price in (3, 1)] == [0, 1]


@pytest.mark.skipif(not fault.available(), reason=fault.REASON)
def test_a_full_disk(folder: Path) -> None:
    server = Server(folder, module="tests.service.full_disk")
    try:
        server.subscribe("ann", "all", "a > 0")
        assert server.publish({"a": 1})["sequence"] == 1
        server.process.send_signal(signal.SIGUSR1)
        stored = 1
        while (answer := server.client.post("/v1/events", json={"a": 2})).status_code == 200:
            stored += 1
        assert kind(answer) == "broker-error"
        for answer in (
            server.client.post("/v1/events", content=b'{"a": 1}\n' * 5, headers=NDJSON),
            server.client.put("/v1/subscribers/bob/subscriptions/all", json={"expression": "a = 1"}),
            server.client.put("/v1/subscribers/ann/webhook", json={"url": "https://example.com/"}),
        ):
            assert answer.status_code == 503, answer.text
            assert kind(answer)
        assert len(server.notes("ann")) == stored
        assert server.client.get("/health").status_code == 200
        server.process.send_signal(signal.SIGUSR2)
        while (answer := server.client.post("/v1/events", json={"a": 3})).status_code == 503:
            pass
        assert answer.json() == {"sequence": stored + 1, "matches": 1}
        server.subscribe("bob", "all", "a = 1")
        assert [note["sequence"] for note in server.notes("ann")] == list(range(1, stored + 2))
    finally:
        log = server.stop()
    assert server.process.returncode == 0
    assert "Traceback" not in log


def lines_in_parts(server: Server, parts: int, sent: threading.Semaphore, go_on: threading.Event) -> httpx2.Response:
    """Publish lines. After the first half, the client waits until it may go on."""

    def body() -> Iterator[bytes]:
        for part in range(parts):
            yield b"".join(b'{"n": %d, "long": "%s"}\n' % (part * 100 + line, b"x" * 200) for line in range(100))
            if part == parts // 2:
                sent.release()
                assert go_on.wait(PATIENCE)

    with httpx2.Client(timeout=PATIENCE, trust_env=False) as client:
        return client.post(f"{server.url}/v1/events", content=body(), headers=NDJSON)


def test_a_publisher_may_finish_when_the_service_ends(folder: Path) -> None:
    """SIGTERM comes in the middle of a long body. Streams end, new connections are refused, and the publisher gets its answer."""
    server = Server(folder, forks=False)
    server.subscribe("ann", "all", "n >= 0")
    sent, go_on = threading.Semaphore(0), threading.Event()
    answers: list[httpx2.Response] = []
    thread = threading.Thread(target=lambda: answers.append(lines_in_parts(server, 40, sent, go_on)))
    thread.start()
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as stream:
        stream.sendall(b"GET /v1/subscribers/ann/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert stream.recv(15) == b"HTTP/1.1 200 OK"
        assert sent.acquire(timeout=PATIENCE)
        server.process.terminate()
        while stream.recv(65536):
            pass
    go_on.set()
    thread.join()
    assert answers[0].json()["events"] == 4000
    assert server.process.wait(PATIENCE) == 0
    log = server.log()
    assert "Traceback" not in log
    assert json.loads(log.splitlines()[-1])["event"] == "ended"
    with open_broker(folder / "tenants" / "default", read_only=True) as broker:
        assert broker.subscriber("ann").last == 4000


@pytest.mark.long
@pytest.mark.parametrize(("end", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_publisher_that_never_finishes_does_not_hold_up_the_end(
    folder: Path, end: signal.Signals, status: int
) -> None:
    server = Server(folder, environment={"TAMIS_END_SECONDS": "1"})
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        head = b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"
        connection.sendall(head + b"Content-Length: 9000000\r\n\r\n" + b'{"n": 1}\n' * 30_000)
        while server.client.get("/v1/figures").json()["events"] == 0:
            pass
        server.process.send_signal(end)
        assert server.process.wait(PATIENCE) == status
    assert "Traceback" not in server.log()


def test_a_call_and_a_body_that_never_end_do_not_hold_up_the_end(folder: Path) -> None:
    server = Server(folder, module="tests.service.stuck_call", environment={"TAMIS_END_SECONDS": "1"})
    server.publish({"a": 1})
    host = b"Host: 127.0.0.1\r\n"
    lines = b"Content-Type: application/x-ndjson\r\nContent-Length: 9000000\r\n\r\n" + b'{"n": 1}\n' * 30_000
    with (
        socket.create_connection(("127.0.0.1", server.port), PATIENCE) as publisher,
        socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection,
    ):
        publisher.sendall(b"POST /v1/events HTTP/1.1\r\n" + host + lines)
        while server.client.get("/v1/figures").json()["events"] < 2:
            pass
        connection.sendall(b"GET /v1/stats HTTP/1.1\r\n" + host + b"\r\n")
        assert server.process.stdout is not None
        assert server.process.stdout.readline() == "stuck\n"
        log = server.stop()
        assert connection.recv(12) == b"HTTP/1.1 503"
    assert server.process.returncode == 0
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert events[-2:] == ["a call of a broker did not end in time; the process ends without it", "ended"]
    with open_broker(folder / "tenants" / "default") as broker:
        assert broker.publish({"a": 2}).sequence > 2
