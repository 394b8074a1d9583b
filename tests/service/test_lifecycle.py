"""A service begins, works, and ends: what it has acknowledged is there, whatever happens."""

from __future__ import annotations

import json
import signal
import socket
import threading
from pathlib import Path

import httpx2
import pytest

from tamis.broker import open as open_broker
from tests.service.serving import NDJSON, PATIENCE, Server, serving


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


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_acknowledged_is_there(folder: Path, end: signal.Signals) -> None:
    server = Server(folder)
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
    with serving(folder) as again:
        assert again.client.get("/v1/subscribers/all").json()["waiting"] >= sum(map(len, acknowledged))
        assert again.publish({"mark": -1})["matches"] == 0


def test_requests_that_wait_get_an_answer_at_the_end(folder: Path) -> None:
    server = Server(folder)
    server.subscribe("ann", "all", "a = 1")
    answers: list[int] = []
    url = f"{server.url}/v1/subscribers/ann/notifications?wait=3600"
    thread = threading.Thread(
        target=lambda: answers.append(httpx2.get(url, timeout=PATIENCE, trust_env=False).status_code)
    )
    thread.start()
    while server.client.get("/v1/figures").json()["streams"] == 0:
        pass
    log = server.stop()
    thread.join()
    assert answers == [200]
    assert json.loads(log.splitlines()[-1])["event"] == "ended"


def test_health_answers_while_calls_run(folder: Path) -> None:
    """Publishing many lines and searching covered subscriptions run beside the event loop: answers about the health come before
    theirs."""
    with serving(folder) as server:
        rows = [{"subscriber": "s", "name": f"n{n}", "expression": f"a = {n} AND b < {n % 7}"} for n in range(1500)]
        body = "".join(json.dumps(row) + "\n" for row in rows)
        assert server.client.post("/v1/subscriptions", content=body, headers=NDJSON).status_code == 200
        lines = b'{"a": 7, "b": 1}\n' * 30_000
        order: list[str] = []

        def publish() -> None:
            answer = httpx2.post(
                f"{server.url}/v1/events", content=lines, headers=NDJSON, timeout=PATIENCE, trust_env=False
            )
            order.append(f"events {answer.status_code}")

        def cover() -> None:
            answer = httpx2.post(f"{server.url}/v1/covering", json={}, timeout=PATIENCE, trust_env=False)
            order.append(f"covering {answer.status_code}")

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


def test_one_service_for_a_folder(folder: Path) -> None:
    with serving(folder), pytest.raises(AssertionError, match="writes to"):
        Server(folder)


def test_a_port_that_is_taken(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(AssertionError, match=r"cannot listen on 127\.0\.0\.1, port"):
            Server(folder, "--port", taken.getsockname()[1])


def test_tls(folder: Path, tmp_path: Path) -> None:
    import shutil
    import ssl
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(["openssl", *words.split(" "), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    with serving(folder, "--tls-certificate", certificate, "--tls-key", key) as server:
        assert server.url.startswith("https://")
        context = ssl.create_default_context(cafile=certificate)
        assert httpx2.get(f"{server.url}/health", verify=context, trust_env=False).json() == {"status": "ok"}
