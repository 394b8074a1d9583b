"""Each limit is a clear error, and the service goes on."""

from __future__ import annotations

import asyncio
import json
import socket
import threading

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tamis.service.work import SMALL, Lane, Threads
from tests.service.serving import NDJSON, Server, in_tenant, kind


def test_a_long_body(strict: Server) -> None:
    answer = strict.client.post("/v1/events", content=b'{"a": "' + b"x" * 100_000 + b'"}')
    assert (answer.status_code, kind(answer)) == (413, "body-too-long")

    answer = strict.client.post("/v1/events", content=(b"x" * 10_000 for _ in range(20)))
    assert (answer.status_code, kind(answer)) == (413, "body-too-long")


def test_a_long_event(strict: Server) -> None:
    own = {"Tamis-Tenant": "brief"}
    short, long = {"a": "x" * 400}, {"a": "x" * 600}
    for path in ("/v1/events", "/v1/would-match"):
        assert strict.client.post(path, json=short, headers=own).status_code == 200
        answer = strict.client.post(path, json=long, headers=own)
        assert (answer.status_code, kind(answer)) == (413, "event-too-long")
        assert answer.json()["detail"] == "an event may have 500 bytes. Hint: the limit is `event_bytes` of [limits]"
    lines = f"{json.dumps(short)}\n{json.dumps(long)}\n"
    answer = strict.client.post("/v1/events", content=lines, headers={**NDJSON, **own})
    assert (answer.status_code, kind(answer), answer.json()["line"]) == (413, "event-too-long", 2)
    wrapped = json.dumps({"event": {"a": "x" * 3000}})
    answer = strict.client.post("/v1/events?wrapped=true", content=wrapped, headers={**NDJSON, **own})
    assert (answer.status_code, kind(answer)) == (413, "event-too-long")


def test_a_long_body_of_settings(server: Server) -> None:
    answer = server.client.post("/v1/subscribers/a/acknowledge", json={"sequence": [1] * 50_000})
    assert (answer.status_code, kind(answer)) == (413, "body-too-long")
    assert answer.json()["detail"] == "the body has more than 65,536 bytes, too many for an acknowledgement"


def test_a_long_schema(server: Server) -> None:
    own = {"Tamis-Tenant": "declared"}
    (server.folder / "tenants" / "declared").mkdir()
    for declared in ({f"a{n}": "number" for n in range(10_001)}, {"a": {f"a{n}": "number" for n in range(10_000)}}):
        answer = server.client.put("/v1/schema", json=declared, headers=own)
        assert (answer.status_code, kind(answer)) == (413, "schema-too-long")
        assert "10,000 attributes" in answer.json()["detail"]
    assert server.client.get("/v1/schema", headers=own).json() == {}


def test_long_notes_come_on_several_pages(server: Server) -> None:
    own = in_tenant(server, "heavy")
    own.subscribe("a", "b", "a = 1")
    for _ in range(6):
        own.publish({"a": 1, "long": "x" * 1_000_000})
    first = own.notes("a", after=0, limit=1000)
    assert [note["sequence"] for note in first] == [1, 2, 3, 4]
    assert [note["sequence"] for note in own.notes("a", after=4, limit=1000)] == [5, 6]
    found = own.client.get("/v1/events", params={"limit": 6}).json()
    assert ([each["sequence"] for each in found["events"]], found["next"]) == ([1, 2, 3, 4], 4)
    found = own.client.get("/v1/events", params={"limit": 6, "after": 4}).json()
    assert ([each["sequence"] for each in found["events"]], found["next"]) == ([5, 6], None)


def test_a_large_body_is_read_in_a_thread() -> None:
    async def steps() -> None:
        threads = Threads(1)
        lane, own = Lane(threads), threading.get_ident()
        assert await lane.aside(SMALL, threading.get_ident) == own
        assert await lane.aside(SMALL + 1, threading.get_ident) != own
        threads.close(60)

    asyncio.run(steps())


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
    path = "/v1/subscribers/a/subscriptions/n0"
    assert strict.client.put(path, json={"weight": 2}, headers=own).status_code == 200  # It is there already.
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


def test_many_streams_in_a_second(strict: Server) -> None:
    """The rate of a tenant counts streams and sockets, and the messages on a socket: these wait for their turn."""
    own = {"Tamis-Tenant": "hasty"}
    path = "/v1/subscribers/a/subscriptions/b"
    assert strict.client.put(path, json={"expression": "a = 1"}, headers=own).status_code == 200
    path = "/v1/subscribers/a/stream?after=-1"  # An error of a stream, so that none stays open.
    answers = [strict.client.get(path, headers=own) for _ in range(12)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert {answer.status_code for answer in answers} == {422, 429}
    assert {kind(answer) for answer in refused} == {"too-fast"}
    url = strict.url.replace("http", "ws", 1) + "/v1/subscribers/a/socket"

    def open_often() -> None:
        for _ in range(12):
            connect(url, additional_headers=own).close()

    with pytest.raises(InvalidStatus) as refusal:
        open_often()
    assert refusal.value.response.status_code == 429
    assert int(refusal.value.response.headers["Retry-After"]) >= 1
    while True:
        try:
            with connect(url, additional_headers=own) as socket_:
                for _ in range(8):
                    socket_.send('{"acknowledge": 0}')
                assert [json.loads(socket_.recv(60)) for _ in range(8)] == [{"acknowledged": 0}] * 8
                assert strict.client.get("/v1/access", headers=own).status_code == 429
                break
        except InvalidStatus:
            pass


def test_many_events(strict: Server) -> None:
    own = {"Tamis-Tenant": "paced"}
    line = b'{"a": 1}\n'
    answer = strict.client.post("/v1/events", content=line * 60_000, headers={**NDJSON, **own})
    assert (answer.status_code, kind(answer)) == (429, "too-fast")
    stored = answer.json()["published"]
    assert 50 <= stored < 1000
    assert answer.json()["detail"].startswith(f"after {stored} published events: at most 50 events per second")
    assert int(answer.headers["retry-after"]) == 1
    assert strict.client.get("/v1/counts", headers=own).json()["events"] == stored
    # A body that is only a little too fast is slowed down.
    assert strict.client.post("/v1/events", content=line * 60, headers={**NDJSON, **own}).json()["events"] == 60
    answers = [strict.client.post("/v1/events", json={"a": 1}, headers=own) for _ in range(150)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert {kind(answer) for answer in refused} == {"too-fast"}
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}


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


def test_unknown_routes_and_methods(strict: Server) -> None:
    answer = strict.client.get("/v1/nothing")
    assert (answer.status_code, kind(answer)) == (404, "unknown-route")
    answer = strict.client.patch("/v1/events")
    assert (answer.status_code, kind(answer)) == (405, "wrong-method")
    assert answer.headers["allow"] == "GET, HEAD, POST"
    assert answer.json()["detail"] == "'/v1/events' has no method PATCH; it has: GET, HEAD, POST"
    answer = strict.client.post("/v1/subscribers/a/stream")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    answer = strict.client.get("/v1/subscribers/a/socket")
    assert (answer.status_code, kind(answer), answer.headers["upgrade"]) == (426, "not-a-websocket", "websocket")
    answer = strict.client.get("/v1/events?limit=x")
    assert (answer.status_code, kind(answer)) == (422, "invalid")
    assert answer.json()["detail"].startswith("query parameter `limit`: input should be a valid integer")
    assert answer.json()["detail"].endswith(", not 'x'")


def test_unknown_parameters(strict: Server) -> None:
    strict.client.put("/v1/subscribers/asked/subscriptions/b", json={"expression": "asked = 1"})
    answer = strict.client.get("/v1/subscriptions?limt=5")
    assert (answer.status_code, kind(answer)) == (422, "option-error")
    detail = answer.json()["detail"]
    assert (
        detail == "there is no parameter 'limt'; did you mean 'limit'?; the parameters are: "
        "subscriber, search, after, limit"
    )
    for path, words in (
        ("/v1/subscriptions?limit=5&limit=6", "the parameter 'limit' is given twice"),
        ("/v1/counts?x=1", "there is no parameter 'x'; this route has no parameters"),
        ("/v1/subscribers/asked/notifications?access_token=x", "there is no parameter 'access_token'"),
    ):
        answer = strict.client.get(path)
        assert (answer.status_code, kind(answer)) == (422, "option-error")
        assert words in answer.json()["detail"]
    assert strict.client.post("/v1/events?keyfrom=id", content=b"{}\n", headers=NDJSON).status_code == 422


def test_heads_of_answers(strict: Server) -> None:
    for path in ("/health", "/ready", "/v1/subscriptions", "/", "/openapi.json"):
        whole, head = strict.client.get(path), strict.client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(whole.content))
    assert strict.client.head("/v1/nothing").status_code == 404
    assert strict.client.head("/v1/would-match").status_code == 405
    assert strict.client.head("/v1/subscribers/a/stream").status_code == 405


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
    for text, expected, column in (
        ("price < 3 AND\n  prize < 3", "unknown-attribute-error", 3),
        ("price < 3 AND\n price = 'x'", "kind-error", 10),
    ):
        for answer in (
            client.put(path, json={"expression": text}, headers=own),
            client.post("/v1/check", json={"expression": text}, headers=own),
        ):
            assert (answer.status_code, kind(answer)) == (422, expected)
            place = text.index("\n") + column
            assert answer.json()["caret"] == {"position": place, "line": 2, "column": column}
            assert answer.json()["detail"].endswith("^")
    assert client.post("/v1/events", json={"at": "2026-05-01"}, headers=own).json()["matches"] == 1
    answer = client.post("/v1/events", json={"at": "May"}, headers=own)
    assert (kind(answer), answer.json()["attribute"]) == ("event-error", "at")
    answer = client.post("/v1/events", content=b'{"price": 1}\n{"price": "x"}\n', headers={**NDJSON, **own})
    assert (kind(answer), answer.json()["line"]) == ("event-error", 2)
