"""Notes as they come: server-sent events and WebSocket, from a real server."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.service.serving import NDJSON, PATIENCE, Server, TokenServer, in_tenant, kind, serving


def subscribe(server: Server, name: str) -> None:
    answer = server.client.put(f"/v1/subscribers/{name}/subscriptions/x", json={"expression": f"who = '{name}'"})
    assert answer.status_code == 200


def publish(server: Server, name: str, *numbers: int, **more: Any) -> None:
    lines = "".join(json.dumps({"who": name, "n": number, **more}) + "\n" for number in numbers)
    answer = server.client.post("/v1/events", content=lines, headers=NDJSON)
    assert answer.json()["matches"] == len(numbers)


@contextmanager
def events(server: Server, name: str, **words: Any) -> Iterator[Iterator[httpx2.ServerSentEvent]]:
    """The server-sent events of a subscriber, without those that are empty."""
    with (
        httpx2.Client(base_url=server.url, timeout=PATIENCE) as client,
        client.stream("GET", f"/v1/subscribers/{name}/stream", **words) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield (each for each in httpx2.EventSource(answer, None) if each.data)


@contextmanager
def socket_of(server: Server, name: str, query: str = "") -> Iterator[ClientConnection]:
    url = f"{server.url.replace('http', 'ws', 1)}/v1/subscribers/{name}/socket{query}"
    with connect(url, max_size=None) as found:
        yield found


def heard(connection: ClientConnection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(connection.recv(PATIENCE))
    return found


class TestServerSentEvents:
    def test_notes_come_as_they_are_published(self, server: Server) -> None:
        subscribe(server, "live")
        publish(server, "live", 1, 2)
        with events(server, "live") as found:
            assert [next(found).id, next(found).id] == ["1", "2"]
            publish(server, "live", 3)
            note = next(found)
            assert note.id == "3"
            assert json.loads(note.data)["event"] == {"who": "live", "n": 3}
            assert json.loads(note.data)["subscriptions"] == ["x"]

    def test_a_stream_begins_after_the_cursor_after_a_number_or_after_the_last_id(self, server: Server) -> None:
        subscribe(server, "begin")
        publish(server, "begin", *range(10))
        server.client.post("/v1/subscribers/begin/acknowledge", json={"sequence": 4})
        starts: list[tuple[dict[str, Any], str]] = [
            ({}, "5"),
            ({"params": {"after": 0}}, "1"),
            ({"params": {"after": 7}}, "8"),
            ({"headers": {"Last-Event-ID": "8"}, "params": {"after": 2}}, "9"),
        ]
        for words, first in starts:
            with events(server, "begin", **words) as found:
                assert next(found).id == first

    def test_all_notes_of_a_long_queue_come_once_and_in_order(self, server: Server) -> None:
        subscribe(server, "long")
        publish(server, "long", *range(3000))
        with events(server, "long") as found:
            assert [int(next(found).id) for _ in range(3000)] == list(range(1, 3001))

    @pytest.mark.parametrize(
        ("path", "headers", "status", "kind"),
        [
            ("nobody/stream", {}, 404, "unknown-id-error"),
            ("errors/stream", {"Last-Event-ID": "x"}, 422, "option-error"),
            ("errors/stream?after=-1", {}, 422, "invalid"),
        ],
    )
    def test_errors_come_before_the_stream(
        self, server: Server, path: str, headers: dict[str, str], status: int, kind: str
    ) -> None:
        subscribe(server, "errors")
        answer = server.client.get(f"/v1/subscribers/{path}", headers=headers)
        assert answer.status_code == status
        assert answer.json()["type"] == f"urn:tamis:problem:{kind}"

    def test_a_stream_whose_notes_were_dropped_ends_with_a_problem(self, server: Server) -> None:
        own = in_tenant(server, "dropping")
        subscribe(own, "ann")
        publish(own, "ann", *range(20))
        own.client.put("/v1/retention", json={"max_notes": 5})
        assert own.client.get("/v1/subscribers/ann/stream?after=3").status_code == 410
        with events(own, "ann", headers={"Tamis-Tenant": "dropping"}) as found:
            assert next(found).id == "16"

    def test_a_stream_ends_when_its_subscriber_is_removed(self, server: Server) -> None:
        subscribe(server, "leaving")
        publish(server, "leaving", 1)
        with events(server, "leaving") as found:
            next(found)
            server.client.delete("/v1/subscribers/leaving")
            subscribe(server, "leaving")
            publish(server, "leaving", 2)
            # The name has come back: its notes count on. A stream that has looked before that ends with a problem.
            following = next(found)
            assert following.event == "problem" or following.id == "2"


class TestWebSocket:
    def test_notes_go_out_and_acknowledgements_come_in(self, server: Server) -> None:
        subscribe(server, "talk")
        publish(server, "talk", 1)
        with socket_of(server, "talk") as talk:
            assert heard(talk)["note"]["sequence"] == 1
            talk.send('{"acknowledge": 1}')
            assert heard(talk) == {"acknowledged": 1}
            publish(server, "talk", 2)
            assert heard(talk)["note"]["event"] == {"who": "talk", "n": 2}
        assert server.client.get("/v1/subscribers/talk").json()["cursor"] == 1
        with socket_of(server, "talk", "?after=0") as talk:
            assert heard(talk)["note"]["sequence"] == 1

    @pytest.mark.parametrize(
        ("message", "kind"),
        [
            ("x", "not-json"),
            ("[]", "not-an-object"),
            ("{}", "invalid"),
            ('{"acknowledge": 1, "x": 2}', "invalid"),
            ('{"acknowledge": "1"}', "option-error"),
            ('{"acknowledge": 99}', "option-error"),
            (b"\xff\xfe", "not-json"),
            ("[" * 100, "nesting"),
        ],
    )
    def test_a_wrong_message_is_a_problem_and_the_socket_stays(
        self, server: Server, message: str | bytes, kind: str
    ) -> None:
        subscribe(server, "mistaken")
        with socket_of(server, "mistaken") as talk:
            talk.send(message)
            assert heard(talk)["problem"]["type"] == f"urn:tamis:problem:{kind}"
            talk.send('{"acknowledge": 0}')
            assert heard(talk) == {"acknowledged": 0}

    def test_a_socket_for_nobody_is_refused_with_a_problem(self, server: Server) -> None:
        with pytest.raises(InvalidStatus) as caught, socket_of(server, "nobody"):
            pass
        assert caught.value.response.status_code == 404
        assert json.loads(caught.value.response.body)["type"] == "urn:tamis:problem:unknown-id-error"

    def test_a_page_of_another_site_is_refused(self, server: Server) -> None:
        subscribe(server, "origin")
        url = f"{server.url.replace('http', 'ws', 1)}/v1/subscribers/origin/socket"
        with (
            pytest.raises(InvalidStatus) as caught,
            connect(url, additional_headers={"Origin": "https://evil.example"}),
        ):
            pass
        assert caught.value.response.status_code == 403


def test_a_token_may_stand_in_the_address_of_a_stream(guarded: TokenServer) -> None:
    _, token = guarded.tokens.create("shop", ("subscribe",))
    guarded.clients["shop", "admin"].put("/v1/subscribers/page/subscriptions/x", json={"expression": "page = 1"})
    guarded.clients["shop", "admin"].post("/v1/events", json={"page": 1})
    with events(guarded.server, "page", params={"access_token": token}) as found:
        assert next(found).id == "1"
    with socket_of(guarded.server, "page", f"?access_token={token}") as talk:
        assert heard(talk)["note"]["sequence"] == 1
    for wrong in ("", "?access_token=tamis_x"):
        assert guarded.client(None).get(f"/v1/subscribers/page/stream{wrong}").status_code == 401
        with pytest.raises(InvalidStatus) as caught, socket_of(guarded.server, "page", wrong):
            pass
        assert caught.value.response.status_code == 401
    assert token not in guarded.server.log()


def test_a_token_that_is_revoked_ends_its_streams(guarded: TokenServer) -> None:
    known, token = guarded.tokens.create("shop", ("subscribe",))
    admin, reader = guarded.clients["shop", "admin"], guarded.client(token)
    path = "/v1/subscribers/revoked"
    admin.put(f"{path}/subscriptions/x", json={"expression": "revoked >= 0"})
    admin.post("/v1/events", json={"revoked": 1})
    with (
        events(guarded.server, "revoked", params={"access_token": token}) as found,
        socket_of(guarded.server, "revoked", f"?access_token={token}") as talk,
        ThreadPoolExecutor(1) as pool,
    ):
        assert next(found).id == "1"
        heard(talk)
        waiting = pool.submit(reader.get, f"{path}/notifications", params={"after": 1, "wait": 60})
        while admin.get("/v1/figures").json()["streams"] < 3:
            pass
        guarded.tokens.revoke(known.id)
        talk.send('{"acknowledge": 1}')
        assert heard(talk)["problem"]["type"] == "urn:tamis:problem:no-token"
        admin.post("/v1/events", json={"revoked": 2})
        ended = next(found)
        assert (ended.event, json.loads(ended.data)["type"]) == ("problem", "urn:tamis:problem:no-token")
        assert list(found) == []
        with pytest.raises(ConnectionClosed) as caught:
            talk.recv(PATIENCE)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1008
        assert waiting.result().status_code == 401
    assert admin.get(path).json()["cursor"] == 0


def test_a_tenant_has_a_limit_of_streams(strict: Server) -> None:
    headers = {"Tamis-Tenant": "narrow"}
    (strict.folder / "tenants" / "narrow").mkdir(exist_ok=True)
    strict.client.put("/v1/subscribers/one/subscriptions/x", json={"expression": "one = 1"}, headers=headers)
    strict.client.post("/v1/events", json={"one": 1}, headers=headers)
    with events(strict, "one", headers=headers) as found:
        assert next(found).id == "1"
        answer = strict.client.get("/v1/subscribers/one/stream", headers=headers)
        assert (answer.status_code, kind(answer)) == (429, "too-many-streams")


def threads_of(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def memory_of(server: Server) -> int:
    """Bytes of memory that the server has in use, without files that are mapped."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def raw_stream(server: Server, name: str, receive_bytes: int | None = None) -> socket.socket:
    """A stream as a plain socket that nobody reads."""
    host, port = server.url.removeprefix("http://").split(":")
    found = socket.socket()
    if receive_bytes is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    found.settimeout(PATIENCE)
    found.connect((host, int(port)))
    found.sendall(f"GET /v1/subscribers/{name}/stream HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    return found


def test_idle_streams_hold_no_thread_and_little_memory(server: Server) -> None:
    subscribe(server, "idle")
    publish(server, "idle", 1)
    server.client.post("/v1/subscribers/idle/acknowledge", json={"sequence": 1})
    before_threads, before = threads_of(server), memory_of(server)
    streams = [raw_stream(server, "idle") for _ in range(300)]
    try:
        for each in streams:
            assert b"200 OK" in each.recv(100)
        # All threads of the pool may have begun by now.
        assert threads_of(server) - before_threads <= 32
        assert memory_of(server) - before < 300 * 100_000
        publish(server, "idle", 2)
        for each in streams:
            text = b""
            while b"id: 2" not in text:
                text += each.recv(10_000)
    finally:
        for each in streams:
            each.close()


def test_a_consumer_that_reads_nothing_slows_nobody_and_takes_bounded_memory(server: Server) -> None:
    subscribe(server, "stuck")
    stuck = [raw_stream(server, "stuck", 4096) for _ in range(20)]
    try:
        for each in stuck:
            each.recv(50)
        for block in range(11):
            if block == 1:  # The broker has its buffers.
                before = memory_of(server)
            publish(server, "stuck", *range(20), padding="x" * 50_000)  # 10 MB for each of 20 consumers
        with events(server, "stuck") as found:
            assert [int(next(found).id) for _ in range(220)] == list(range(1, 221))
        assert memory_of(server) - before < 150_000_000
    finally:
        for each in stuck:
            each.close()


def test_streams_end_when_the_service_ends(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for name in ("ann", "stuck"):
            subscribe(server, name)
            publish(server, name, 1)
        subscribe(server, "waiting")
        ready = threading.Barrier(3, timeout=PATIENCE)

        def read_events() -> list[str]:
            with events(server, "ann") as found:
                ids = [next(found).id]
                ready.wait()
                return [*ids, *(each.id for each in found)]

        def read_socket() -> int:
            with socket_of(server, "ann") as talk:
                heard(talk)
                ready.wait()
                with pytest.raises(ConnectionClosed) as caught:
                    talk.recv(PATIENCE)
                assert caught.value.rcvd is not None
                return caught.value.rcvd.code

        def wait_for_notes() -> int:
            url = f"{server.url}/v1/subscribers/waiting/notifications?wait=3600"
            return httpx2.get(url, timeout=PATIENCE, trust_env=False).status_code

        with ThreadPoolExecutor(3) as pool:
            read, code, waited = pool.submit(read_events), pool.submit(read_socket), pool.submit(wait_for_notes)
            while server.client.get("/v1/figures").json()["streams"] < 3:
                pass
            with raw_stream(server, "stuck", 4096):
                publish(server, "stuck", *range(100), padding="x" * 20_000)
                ready.wait()
                log = server.stop()
                assert waited.result() == 200
                assert json.loads(log.splitlines()[-1])["event"] == "ended"
                assert read.result() == ["1"]
                # The service goes away (1001), or the web server says that it restarts (1012).
                assert code.result() in (1001, 1012)
