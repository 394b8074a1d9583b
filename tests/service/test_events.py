"""Publishing over HTTP: one event, lines, keys, errors."""

from __future__ import annotations

import gzip
import json
from typing import Any

import httpx2
import pytest

from tests.service.serving import NDJSON, Server, kind


def lines(*events: Any) -> bytes:
    return b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in events)


def publish_lines(server: Server, body: bytes, **parameters: Any) -> httpx2.Response:
    return server.client.post("/v1/events", content=body, headers=NDJSON, params=parameters)


def test_options_of_one_event(server: Server) -> None:
    server.subscribe("opt", "light", "opt = 1")
    server.subscribe("opt-heavy", "heavy", "opt = 1", weight=3)
    found = server.publish({"opt": 1}, k=1, with_matches=True)
    assert found["subscriptions"] == [{"subscriber": "opt-heavy", "name": "heavy"}]
    server.publish({"opt": 2, "late": True}, valid_until="2999-01-01")
    server.subscribe("opt-late", "late", "late AND opt = 2")
    assert [note["event"] for note in server.notes("opt-late")] == [{"opt": 2, "late": True}]
    answer = server.client.post("/v1/events", json={"a": 1}, params={"valid_until": "tomorrow"})
    assert (answer.status_code, kind(answer)) == (422, "option-error")


def test_a_key_makes_trying_again_safe(server: Server) -> None:
    key = {"Idempotency-Key": "order-17"}
    first = server.client.post("/v1/events", json={"keyed": 1}, headers=key).json()
    assert server.client.post("/v1/events", json={"keyed": 1}, headers=key).json() == first
    body = lines(*[{"keyed": n} for n in range(5)])
    one = server.client.post("/v1/events", content=body, headers={**NDJSON, **key}).json()
    two = server.client.post("/v1/events", content=body, headers={**NDJSON, **key}).json()
    assert (one["first_sequence"], one["last_sequence"]) == (two["first_sequence"], two["last_sequence"])
    three = publish_lines(server, lines({"id": "x1"}, {"id": 7}), key_from="id").json()
    assert publish_lines(server, lines({"id": "x1"}, {"id": 7}), key_from="id").json() == three
    answer = publish_lines(server, lines({"id": "x2"}, {"no": 7}), key_from="id")
    assert (answer.status_code, answer.json()["line"], answer.json()["published"]) == (422, 2, 1)


@pytest.mark.parametrize(
    ("key", "body", "status"),
    [("", b'{"short": 1}', 422), ("k" * 300, b"{}", 422), ("short", b'{"short": 1}', 200), ("short", b"not JSON", 400)],
)
def test_a_request_without_parameters_is_answered_as_one_with_their_defaults(
    server: Server, key: str, body: bytes, status: int
) -> None:
    defaults: tuple[dict[str, str], ...] = ({}, {"tagged": "false"}, {"on_error": "stop"})
    headers = {"Idempotency-Key": key, "X-Request-Id": "1"}
    first, *others = (server.client.post("/v1/events", content=body, headers=headers, params=each) for each in defaults)
    assert first.status_code == status
    assert {(each.status_code, each.text) for each in others} == {(status, first.text)}


def test_lines(server: Server) -> None:
    server.subscribe("liner", "odd", "odd = TRUE")
    body = lines({"odd": True}, b"", {"odd": False}, b"  ", {"odd": True}).removesuffix(b"\n")
    found = publish_lines(server, body, receipts=True).json()
    first = found["first_sequence"]
    assert found == {
        "events": 3,
        "matches": 2,
        "first_sequence": first,
        "last_sequence": first + 2,
        "skipped": 0,
        "errors": [],
        "receipts": [
            {"line": 1, "sequence": first, "matches": 1},
            {"line": 3, "sequence": first + 1, "matches": 0},
            {"line": 5, "sequence": first + 2, "matches": 1},
        ],
    }
    empty = publish_lines(server, b"").json()
    assert (empty["events"], empty["first_sequence"]) == (0, None)


@pytest.mark.parametrize(
    ("wrong", "kinds"),
    [
        (b"oops", "not-json"),
        (b'{"a": 1, "a": 2}', "not-json"),
        (b"[1]", "not-an-object"),
        (b'{"a": NaN}', "not-json"),
        (b'{"a": "\xff"}', "not-json"),
        (b'{"wrong": ' + b"9" * 5000 + b"}", "not-json"),
        (b'{"wrong": {"$date": "x"}}', "event-error"),
    ],
)
def test_a_wrong_line_stops_or_is_skipped(server: Server, wrong: bytes, kinds: str) -> None:
    body = lines({"n": 1}, {"n": 2}, wrong, {"n": 4})
    answer = publish_lines(server, body, tagged=True)
    assert kind(answer) == kinds
    assert (answer.json()["line"], answer.json()["published"]) == (3, 2)
    assert answer.json()["detail"].startswith("line 3: ")
    last = server.client.get("/v1/stats").json()["last_event"]
    found = publish_lines(server, body, tagged=True, on_error="skip").json()
    assert (found["events"], found["skipped"], found["errors"][0]["line"]) == (3, 1, 3)
    assert found["first_sequence"] == last + 1


def test_an_event_that_a_subscription_refuses_names_its_line(server: Server) -> None:
    server.subscribe("asker", "picky", "picky = 1")
    body = lines({"n": 1}, {"n": 2}, {"picky": {"$bytes": "AP8="}}, {"n": 4})
    answer = publish_lines(server, body, tagged=True)
    assert (answer.status_code, kind(answer), answer.json()["line"]) == (422, "event-error", 3)
    found = publish_lines(server, body, tagged=True, on_error="skip").json()
    assert (found["events"], [each["line"] for each in found["errors"]]) == (3, [3])


def test_what_is_for_lines_is_refused_for_one_event(server: Server) -> None:
    for parameter in ("key_from=id", "receipts=true", "wrapped=true"):
        answer = server.client.post(f"/v1/events?{parameter}", json={"id": 1})
        assert (answer.status_code, kind(answer)) == (422, "option-error")
        assert "application/x-ndjson" in answer.json()["detail"]
    answer = server.client.post("/v1/events", content=b'{"a": 1}\n{"a": 2}\n')
    assert (answer.status_code, kind(answer)) == (400, "not-json")
    assert "application/x-ndjson" in answer.json()["detail"]


@pytest.mark.parametrize("headers", [{}, NDJSON])
def test_a_compressed_body_is_refused(server: Server, headers: dict[str, str]) -> None:
    packed = gzip.compress(b'{"a": 1}')
    answer = server.client.post("/v1/events", content=packed, headers={**headers, "Content-Encoding": "gzip"})
    assert (answer.status_code, kind(answer)) == (415, "content-coding")
    headers = {**headers, "Content-Encoding": "identity"}
    assert server.client.post("/v1/events", content=b'{"a": 1}', headers=headers).status_code == 200


def test_a_full_queue_refuses(server: Server) -> None:
    other = {"Tamis-Tenant": "full"}
    (server.folder / "tenants" / "full").mkdir(exist_ok=True)
    client = server.client
    client.put("/v1/subscribers/slow/subscriptions/all", json={"expression": "TRUE"}, headers=other)
    settings = {"max_notes": 2, "when_full": "refuse publish"}
    assert client.put("/v1/retention", json=settings, headers=other).json() == {"max_age": None, **settings}
    answer = client.post("/v1/events?on_error=skip", content=lines(*[{"n": 1}] * 5), headers={**NDJSON, **other})
    assert (answer.status_code, kind(answer), answer.json()["line"]) == (409, "queue-full-error", 3)
    client.post("/v1/subscribers/slow/acknowledge", json={"sequence": 2}, headers=other)
    assert client.post("/v1/events", json={"n": 1}, headers=other).status_code == 200


def test_values_that_json_lacks_have_tags(server: Server) -> None:
    server.subscribe("tagger", "old", "tagged_at < TIMESTAMP '2026-01-01'")
    event = {"tagged_at": {"$timestamp": "2025-11-18T09:30:00"}, "price": {"$decimal": "9.90"}}
    assert server.publish(event, tagged=True)["matches"] == 1
    assert server.publish(event)["matches"] == 0
    assert server.notes("tagger")[0]["event"] == event
    # JSON may write the mark of a tag in another way.
    answer = publish_lines(server, json.dumps(event).replace("$", "\\u0024").encode(), tagged=True)
    assert answer.json()["matches"] == 1


def test_a_body_that_ends_early_publishes_whole_lines_only(server: Server) -> None:
    import socket

    server.subscribe("early", "all", "early = TRUE")
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n")
        connection.sendall(b"Content-Length: 1000\r\n\r\n" + b'{"early": true}\n{"early": true')
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1000)
    assert len(server.notes("early")) <= 1


def test_stored_events_and_replay(server: Server) -> None:
    first = server.publish({"replayed": 1})["sequence"]
    server.publish({"replayed": 2})
    found = server.client.get("/v1/events", params={"expression": "replayed > 0", "after": first - 1}).json()
    assert [each["event"]["replayed"] for each in found["events"]] == [1, 2]
    page = server.client.get("/v1/events", params={"expression": "replayed > 0", "limit": 1}).json()
    assert page["next"] == first
    one = server.client.get(f"/v1/events/{first}").json()
    assert (one["event"], one["matches"], one["valid_until"]) == ({"replayed": 1}, 0, None)
    assert kind(server.client.get("/v1/events/99999999999999")) == "unknown-id-error"


def test_would_match_and_attributes(server: Server) -> None:
    server.subscribe("would", "be", "would_be = 3")
    assert server.client.post("/v1/would-match", json={"would_be": 3}).json() == {"would_match": True}
    assert "would_be" in server.client.get("/v1/attributes").json()["attributes"]
