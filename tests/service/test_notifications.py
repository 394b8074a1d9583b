"""Reading notes over HTTP: pages, waiting, acknowledging."""

from __future__ import annotations

import threading
from typing import Any

from tests.service.serving import Server, kind


def test_pages_and_the_cursor(server: Server) -> None:
    server.subscribe("reader", "all", "for_reader = TRUE")
    for number in range(5):
        server.publish({"for_reader": True, "n": number})
    page = server.client.get("/v1/subscribers/reader/notifications?limit=2").json()
    assert page["last_sequence"] == 2
    assert [note["event"]["n"] for note in server.notes("reader", after=2)] == [2, 3, 4]
    client = server.client
    assert client.post("/v1/subscribers/reader/acknowledge", json={"sequence": 3}).status_code == 204
    assert [note["sequence"] for note in server.notes("reader")] == [4, 5]
    queue = client.get("/v1/subscribers/reader").json()
    assert (queue["cursor"], queue["last"], queue["waiting"]) == (3, 5, 2)
    for wrong, status in (({"sequence": 6}, 422), ({"sequence": "1"}, 422), ({}, 422), ({"sequence": -1}, 422)):
        assert client.post("/v1/subscribers/reader/acknowledge", json=wrong).status_code == status
    assert kind(client.post("/v1/subscribers/nobody/acknowledge", json={"sequence": 0})) == "unknown-id-error"
    assert kind(client.get("/v1/subscribers/nobody/notifications")) == "unknown-id-error"


def test_notes_that_were_dropped(server: Server) -> None:
    (server.folder / "tenants" / "drops").mkdir(exist_ok=True)
    own = {"Tamis-Tenant": "drops"}
    client = server.client
    client.put("/v1/subscribers/d/subscriptions/all", json={"expression": "TRUE"}, headers=own)
    for _ in range(5):
        client.post("/v1/events", json={"a": 1}, headers=own)
    client.put("/v1/retention", json={"max_notes": 2}, headers=own)
    answer = client.get("/v1/subscribers/d/notifications?after=1", headers=own)
    assert (answer.status_code, kind(answer), answer.json()["first"]) == (410, "retention-error", 4)
    assert client.post("/v1/compact", headers=own).status_code == 204


def test_a_request_waits_for_notes(server: Server) -> None:
    server.subscribe("waiter", "all", "for_waiter = TRUE")
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(server.notes("waiter", wait=60)))
    thread.start()
    while server.client.get("/v1/figures").json()["streams"] == 0:
        pass
    assert found == []
    server.publish({"for_waiter": True})
    thread.join()
    assert [note["event"] for note in found[0]] == [{"for_waiter": True}]


def test_waiting_ends_in_time(server: Server) -> None:
    server.subscribe("patient", "all", "for_patient = TRUE")
    assert server.notes("patient", wait=0.05) == []


def test_a_note_that_comes_at_its_time_wakes_a_waiter(server: Server) -> None:
    """The alarm of the broker tells it, not a request."""
    from datetime import UTC, datetime, timedelta

    server.publish({"timed": 1}, valid_until="2999-01-01")
    begin = (datetime.now(UTC) + timedelta(seconds=0.5)).isoformat()
    server.subscribe("timed", "soon", "timed = 1", valid_from=begin)
    assert [note["event"] for note in server.notes("timed", wait=60)] == [{"timed": 1}]
