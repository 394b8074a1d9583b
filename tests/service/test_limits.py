"""Each limit is a clear error, and the service goes on."""

from __future__ import annotations

import json
import socket

import pytest

from tests.service.serving import NDJSON, Server, kind


def test_a_long_body(strict: Server) -> None:
    answer = strict.client.post("/v1/events", content=b'{"a": "' + b"x" * 100_000 + b'"}')
    assert (answer.status_code, kind(answer)) == (413, "body-too-long")

    answer = strict.client.post("/v1/events", content=(b"x" * 10_000 for _ in range(20)))
    assert (answer.status_code, kind(answer)) == (413, "body-too-long")


@pytest.mark.parametrize("path", ["/v1/events", "/v1/subscriptions"])
def test_a_long_line(strict: Server, path: str) -> None:
    good = json.dumps({"subscriber": "a", "name": "b", "expression": "c = 1"} if "subs" in path else {"a": 1}).encode()
    answer = strict.client.post(path, content=good + b"\n" + b"x" * 10_001 + b"\n", headers=NDJSON)
    assert (answer.status_code, kind(answer), answer.json()["line"]) == (413, "line-too-long", 2)
    answer = strict.client.post(path, content=b"x" * 400_000, headers=NDJSON)
    assert (answer.status_code, kind(answer)) == (413, "line-too-long")


def test_deep_json(strict: Server) -> None:
    assert strict.publish({"a": json.loads("[" * 19 + "]" * 19)})["matches"] == 0
    answer = strict.client.post("/v1/events", content=b'{"a": ' + b"[" * 20 + b"]" * 20 + b"}")
    assert (answer.status_code, kind(answer)) == (413, "nesting")
    assert strict.publish({"a": "[" * 100})["matches"] == 0
    answer = strict.client.post("/v1/events", content=b'{"a": ' + b"[" * 90_000 + b"}")
    assert kind(answer) == "nesting"


def test_a_long_expression(strict: Server) -> None:
    text = " OR ".join(f"a = {n}" for n in range(400))
    for answer in (
        strict.client.put("/v1/subscribers/a/subscriptions/long", json={"expression": text}),
        strict.client.post("/v1/check", json={"expression": text}),
        strict.client.get("/v1/events", params={"expression": text}),
    ):
        assert (answer.status_code, kind(answer)) == (413, "expression-too-long")


def test_many_subscriptions(strict: Server) -> None:
    own = {"Tamis-Tenant": "few"}
    rows = [json.dumps({"subscriber": "a", "name": f"n{n}", "expression": "a = 1"}) for n in range(3)]
    assert (
        strict.client.post("/v1/subscriptions", content="\n".join(rows), headers={**NDJSON, **own}).status_code == 200
    )
    path = "/v1/subscribers/a/subscriptions/n4"
    answer = strict.client.put(path, json={"expression": "a = 1"}, headers=own)
    assert (answer.status_code, kind(answer)) == (422, "too-many-subscriptions")
    assert strict.client.delete("/v1/subscribers/a/subscriptions/n0", headers=own).status_code == 204
    assert strict.client.put(path, json={"expression": "a = 1"}, headers=own).status_code == 200


def test_many_requests(strict: Server) -> None:
    answers = [strict.client.get("/v1/access", headers={"Tamis-Tenant": "slow"}) for _ in range(12)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert 5 <= sum(answer.status_code == 200 for answer in answers) < 12
    assert kind(refused[0]) == "too-fast"
    assert int(refused[0].headers["retry-after"]) >= 1
    assert strict.client.get("/v1/access").status_code == 200


def test_many_events(strict: Server) -> None:
    own = {"Tamis-Tenant": "paced"}
    body = b'{"a": 1}\n' * 500
    assert strict.client.post("/v1/events", content=body, headers={**NDJSON, **own}).json()["events"] == 500
    answer = strict.client.post("/v1/events", json={"a": 1}, headers=own)
    assert (answer.status_code, kind(answer)) == (429, "too-fast")
    assert int(answer.headers["retry-after"]) > 1


def test_many_streams(strict: Server) -> None:
    own = {"Tamis-Tenant": "narrow"}
    strict.client.put("/v1/subscribers/a/subscriptions/b", json={"expression": "a = 1"}, headers=own)
    request = b"GET /v1/subscribers/a/notifications?wait=60 HTTP/1.1\r\nHost: 127.0.0.1\r\nTamis-Tenant: narrow\r\n\r\n"
    with socket.create_connection(("127.0.0.1", strict.port)) as waiting:
        waiting.sendall(request)
        while strict.client.get("/v1/figures", headers=own).json()["streams"] == 0:
            pass
        answer = strict.client.get("/v1/subscribers/a/notifications?wait=1", headers=own)
        assert (answer.status_code, kind(answer)) == (429, "too-many-streams")
        strict.client.post("/v1/events", json={"a": 1}, headers=own)
        assert b"200 OK" in waiting.recv(100)


def answer_to(server: Server, *parts: bytes) -> bytes:
    """What a connection gets until the service ends it."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        for part in parts:
            connection.sendall(part)
        connection.settimeout(60)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


def test_a_slow_head(strict: Server) -> None:
    assert answer_to(strict, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ").startswith(b"HTTP/1.1 408 ")
    assert answer_to(strict, b"").startswith(b"HTTP/1.1 408 ")


def test_a_slow_body(strict: Server) -> None:
    head = b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"
    answer = answer_to(strict, head + b'{"a"')
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"urn:tamis:problem:too-slow"' in answer


def test_a_long_head(strict: Server) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    assert answer_to(strict, head + b"X-Long: " + b"x" * 70_000 + b"\r\n\r\n").startswith(b"HTTP/1.1 431 ")
    assert answer_to(strict, head + b"X-Many: x\r\n" * 8000 + b"\r\n").startswith(b"HTTP/1.1 431 ")
    assert answer_to(strict, b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 431 ")


def test_what_is_not_http(strict: Server) -> None:
    answer = answer_to(strict, b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"urn:tamis:problem:not-http" in answer


def test_many_connections(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.service.serving import serving

    with serving(tmp_path_factory.mktemp("connections"), environment={"TAMIS_CONNECTIONS": "3"}) as server:
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
        request = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        assert answer_to(server, request).startswith(b"HTTP/1.1 200 ")
        # The one that has waited longest has made room.
        answer = held[0].recv(1000)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"too-many-connections" in answer
        for each in held:
            each.close()


def test_connections_that_all_work(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.service.serving import serving

    with serving(tmp_path_factory.mktemp("working"), environment={"TAMIS_CONNECTIONS": "2"}) as server:
        server.subscribe("ann", "all", "a = 1")
        request = b"GET /v1/subscribers/ann/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        server.client.close()
        streams = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        for each in streams:
            each.sendall(request)
            assert each.recv(15) == b"HTTP/1.1 200 OK"
        answer = answer_to(server, b"")
        assert answer.startswith(b"HTTP/1.1 503 ")
        for each in streams:
            each.close()


def test_unknown_routes_and_methods(strict: Server) -> None:
    answer = strict.client.get("/v1/nothing")
    assert (answer.status_code, kind(answer)) == (404, "unknown-route")
    answer = strict.client.patch("/v1/events")
    assert (answer.status_code, kind(answer)) == (405, "wrong-method")
    assert "POST" in answer.headers["allow"]
    answer = strict.client.get("/v1/events?limit=x")
    assert (answer.status_code, kind(answer)) == (422, "invalid")


def test_a_request_has_an_id(strict: Server) -> None:
    answer = strict.client.get("/v1/nothing", headers={"X-Request-Id": "mine-7"})
    assert (answer.headers["x-request-id"], answer.json()["request_id"]) == ("mine-7", "mine-7")
    answer = strict.client.get("/v1/nothing", headers={"X-Request-Id": "not good\t!"})
    assert answer.headers["x-request-id"] != "not good\t!"


def test_the_schema_of_the_configuration(strict: Server) -> None:
    own = {"Tamis-Tenant": "fixed"}
    client = strict.client
    assert client.get("/v1/schema", headers=own).json() == {"price": "number", "at": "timestamp"}
    assert client.put("/v1/schema", json={}, headers=own).status_code == 409
    path = "/v1/subscribers/s/subscriptions/new"
    assert client.put(path, json={"expression": "at > DATE '2026-01-01'"}, headers=own).status_code == 200
    assert kind(client.put(path, json={"expression": "prize < 3"}, headers=own)) == "unknown-attribute-error"
    assert client.post("/v1/events", json={"at": "2026-05-01"}, headers=own).json()["matches"] == 1
    answer = client.post("/v1/events", json={"at": "May"}, headers=own)
    assert (kind(answer), answer.json()["attribute"]) == ("event-error", "at")
    answer = client.post("/v1/events", content=b'{"price": 1}\n{"price": "x"}\n', headers={**NDJSON, **own})
    assert (kind(answer), answer.json()["line"]) == ("event-error", 2)
