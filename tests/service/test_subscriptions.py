"""Subscriptions over HTTP: one, lines, pages, pausing, expressions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.service.serving import NDJSON, Server, kind

PATH = "/v1/subscribers/sam/subscriptions/one"


def test_one_subscription(server: Server) -> None:
    client = server.client
    given = {"expression": "sam = 1", "weight": 2.5, "valid_until": "2999-01-01T00:00:00Z"}
    made = client.put(PATH, json=given).json()
    assert made == {
        "number": made["number"],
        "subscriber": "sam",
        "name": "one",
        "valid_from": None,
        "paused": False,
        "matches": 0,
        **given,
    }
    assert client.get(PATH).json() == made
    assert client.put(PATH, json={"valid_until": None}).json() == {**made, "valid_until": None}
    server.publish({"sam": 1})
    assert client.get(PATH).json()["matches"] == 1
    assert client.post(f"{PATH}/pause").json()["paused"] is True
    assert server.publish({"sam": 1})["matches"] == 0
    assert client.post(f"{PATH}/resume").json()["paused"] is False
    assert client.delete(PATH).status_code == 204
    assert (client.get(PATH).status_code, kind(client.get(PATH))) == (404, "unknown-id-error")
    assert client.put(PATH, json={}).status_code == 404


def test_the_json_form_of_an_expression(server: Server) -> None:
    made = server.client.put(
        "/v1/subscribers/sam/subscriptions/json", json={"expression": [["json_form", "between", [1, 3]]]}
    ).json()
    assert made["expression"] == "json_form BETWEEN 1 AND 3"


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ({"expression": "a <"}, "parse-error"),
        ({"expression": [["a", "=", 10**400]]}, "literal-error"),
        ({"expression": "NOT " * 200 + "a"}, "nesting-error"),
        ({"expression": 3}, "expression-error"),
        ({"expression": "a = 1", "wieght": 3}, "option-error"),
        ({"expression": "a = 1", "weight": "x"}, "option-error"),
        ({"expression": "a = 1", "valid_from": "x"}, "option-error"),
        ({"expression": "a = 1", "valid_from": "2027-01-01", "valid_until": "2026-01-01"}, "option-error"),
    ],
)
def test_wrong_subscriptions(server: Server, body: Any, kinds: str) -> None:
    answer = server.client.put("/v1/subscribers/sam/subscriptions/wrong", json=body)
    assert (answer.status_code, kind(answer)) == (422, kinds)


def test_the_caret_stands_where_the_error_is(server: Server) -> None:
    text = "price < 20 AND\n  genre == 'crime'"
    answer = server.client.post("/v1/check", json={"expression": text})
    caret = answer.json()["caret"]
    assert caret["line"] == 2
    assert text.splitlines()[1][caret["column"] - 1 :].startswith("=")
    assert text[caret["position"] :].startswith("=")
    assert "^" in answer.json()["detail"]


def test_check(server: Server) -> None:
    found = server.client.post("/v1/check", json={"expression": "b = 1 and (a < 3 or a > 5)"}).json()
    assert found == {"expression": "b = 1 AND (a < 3 OR a > 5)", "attributes": ["a", "b"], "needs_history": False}


def test_explain(server: Server) -> None:
    client = server.client
    server.subscribe("explainer", "deep", "depth > 3 AND colour = 'red'")
    number = server.publish({"depth": 5})["sequence"]
    stored = client.post(
        "/v1/explain", json={"subscriber": "explainer", "name": "deep", "event_sequence": number}
    ).json()
    assert stored["truth"] is None
    assert [each["truth"] for each in stored["tree"]["operands"]] == [True, None]
    assert "colour is missing" in stored["text"]
    given = client.post("/v1/explain", json={"expression": "depth > 3", "event": {"depth": 1}}).json()
    assert given["truth"] is False
    for body in (
        {},
        {"expression": "a = 1"},
        {"name": "x", "event": {}},
        {"expression": "a", "event": {}, "event_sequence": 1},
    ):
        assert client.post("/v1/explain", json=body).status_code == 422


@pytest.mark.parametrize("value", [[0] * 10_100, "x" * 161_600], ids=["list", "string"])
def test_an_explanation_that_would_be_too_long(server: Server, value: Any) -> None:
    """Each predicate of an explanation repeats the values that it asks about."""
    for count, status in ((9, 200), (100, 413)):
        body = {"expression": " AND ".join(["deep = 1"] * count), "event": {"deep": value}}
        answer = server.client.post("/v1/explain", json=body)
        assert answer.status_code == status
    assert kind(answer) == "explanation-too-long"
    body = {"expression": "NOT " * 99 + "deep = 1", "event": {"deep": value}}
    assert kind(server.client.post("/v1/explain", json=body)) == "explanation-too-long"


def test_many_subscriptions_on_lines(server: Server) -> None:
    rows = [{"subscriber": f"bulk{n % 7}", "name": f"n{n}", "expression": f"bulk = {n}"} for n in range(3000)]
    rows.append({**rows[0], "expression": "bulk = -1"})
    body = "".join(json.dumps(row) + "\n" for row in rows)
    answer = server.client.post("/v1/subscriptions", content=body, headers=NDJSON)
    assert answer.json() == {"subscribed": 3001}
    first = server.client.get("/v1/subscribers/bulk0/subscriptions/n0").json()
    assert first["expression"] == "bulk = -1"
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        parameters: dict[str, str | int] = {"subscriber": "bulk3", "after": after, "limit": 100}
        page = server.client.get("/v1/subscriptions", params=parameters).json()
        seen += [each["name"] for each in page["subscriptions"]]
        after = page["next"]
    assert seen == [row["name"] for row in rows[:3000] if row["subscriber"] == "bulk3"]
    found = server.client.get("/v1/subscriptions", params={"search": "BULK = 2999"}).json()["subscriptions"]
    assert [each["name"] for each in found] == ["n2999"]
    names = [each["name"] for each in server.client.get("/v1/subscribers?search=bulk").json()["subscribers"]]
    assert names == [f"bulk{n}" for n in range(7)]


def test_a_wrong_line_stops(server: Server) -> None:
    good = {"subscriber": "liar", "name": "good", "expression": "liar = 1"}
    for wrong, kinds in (
        ({**good, "name": "bad", "expression": "liar ="}, "parse-error"),
        ({"subscriber": "liar", "expression": "a = 1"}, "option-error"),
        ({**good, "name": 3}, "id-type-error"),
        ({"subscriber": "liar", "name": "new"}, "unknown-id-error"),
        ([1], "not-an-object"),
    ):
        body = f"{json.dumps(good)}\n{json.dumps(wrong)}\n{json.dumps({**good, 'name': 'after'})}\n"
        answer = server.client.post("/v1/subscriptions", content=body, headers=NDJSON)
        assert kind(answer) == kinds
        assert (answer.json()["line"], answer.json()["subscribed"]) == (2, 1)
    names = [each["name"] for each in server.client.get("/v1/subscriptions?subscriber=liar").json()["subscriptions"]]
    assert names == ["good"]
    answer = server.client.post("/v1/subscriptions", json=[good])
    assert (answer.status_code, kind(answer)) == (415, "not-lines")


def test_removing_a_subscriber(server: Server) -> None:
    server.subscribe("leaver", "all", "leaver = 1")
    assert server.client.get("/v1/subscribers/leaver").json()["waiting"] == 0
    assert server.client.delete("/v1/subscribers/leaver").status_code == 204
    assert server.client.get("/v1/subscribers/leaver").status_code == 404
    assert server.client.delete("/v1/subscribers/leaver").status_code == 404


def test_changes(server: Server) -> None:
    start = server.client.get("/v1/stats").json()["last_change"]
    server.subscribe("changer", "x", "changer = 1")
    server.subscribe("changer", "y", "changer = 2")
    page = server.client.get("/v1/changes", params={"after": start, "limit": 1}).json()
    assert [(each["name"], each["change"]) for each in page["changes"]] == [("x", "added")]
    page = server.client.get("/v1/changes", params={"after": page["next"]}).json()
    assert [each["name"] for each in page["changes"]] == ["y"]


def test_covering(server: Server) -> None:
    (server.folder / "tenants" / "covers").mkdir(exist_ok=True)
    other = {"Tamis-Tenant": "covers"}
    for name, text in (("narrow", "a = 3"), ("wide", "a > 1"), ("never", "a < 1 AND a > 2")):
        server.client.put(f"/v1/subscribers/c/subscriptions/{name}", json={"expression": text}, headers=other)
    found = server.client.post("/v1/covering", json={"one_value": True}, headers=other).json()
    assert found["implied"] == [[["c", "narrow"], ["c", "wide"]]]
    assert found["never"] == [["c", "never"]]
    assert found["cut"] is False
