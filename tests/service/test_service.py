"""The service as users meet it."""

from __future__ import annotations

import pytest

from tests.service.serving import Server, in_tenant


@pytest.fixture(scope="module")
def server(server: Server) -> Server:
    """A tenant of its own, whose numbers begin with 1."""
    return in_tenant(server, "met")


def test_subscribe_publish_and_receive(server: Server) -> None:
    client = server.client
    crime = {"expression": "price < 20 AND genre = 'crime'"}
    answer = client.put("/v1/subscribers/ann/subscriptions/crime", json=crime)
    assert answer.status_code == 200
    assert answer.json()["expression"] == crime["expression"]
    event = {"genre": "crime", "price": 15}
    assert client.post("/v1/events", json=event).json() == {"sequence": 1, "matches": 1}
    (note,) = client.get("/v1/subscribers/ann/notifications").json()["notifications"]
    assert note == {
        "sequence": 1, "event_sequence": 1, "subscriptions": ["crime"], "expired": False, "event": event,
    }  # fmt: skip


def test_events_on_lines(server: Server) -> None:
    lines = b"".join(b'{"n":%d}\n' % number for number in range(5_000))
    answer = server.client.post("/v1/events", content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code == 200
    assert answer.json()["events"] == 5_000


def test_a_wrong_expression_is_a_problem_with_a_caret(server: Server) -> None:
    answer = server.client.put("/v1/subscribers/ann/subscriptions/bad", json={"expression": "price < "})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:tamis:problem:parse-error"
    assert answer.json()["caret"] == {"position": 8, "line": 1, "column": 9}


def test_a_name_may_have_a_slash(server: Server) -> None:
    server.client.put("/v1/subscribers/a%2Fb%20%25/subscriptions/x%2F..", json={"expression": "slash = 1"})
    server.client.post("/v1/events", json={"slash": 1})
    (note,) = server.client.get("/v1/subscribers/a%2Fb%20%25/notifications").json()["notifications"]
    assert note["subscriptions"] == ["x/.."]
