"""Metrics, figures and the log."""

from __future__ import annotations

import json
import re

import pytest
from websockets.sync.client import connect

from tests.service.serving import NDJSON, Server, add_indexed_tenant, in_tenant

SAMPLE = re.compile(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})? (-?[0-9.e+-]+|NaN|[+-]Inf)')


@pytest.fixture(scope="module")
def measured(server: Server) -> Server:
    """A tenant in which something happened."""
    found = in_tenant(server, "measured")
    found.subscribe("ann", "all", "price >= 0")
    found.subscribe('b"ob', "some\\", "price > 5")
    found.publish({"price": 3})
    found.client.post("/v1/events", content=b'{"price": 7}\n' * 4, headers=NDJSON)
    found.notes("ann")
    found.client.get("/v1/subscribers/nobody")
    return found


def samples(server: Server) -> dict[str, float]:
    found = {}
    described: set[str] = set()
    families: set[str] = set()
    answer = server.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in answer.text.splitlines():
        if line.startswith("#"):
            if line.startswith("# HELP"):
                # Readers of the newer format know a counter without its ending.
                assert line.split()[2].removesuffix("_total") not in families
                families.add(line.split()[2].removesuffix("_total"))
            described.add(line.split()[2])
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        assert re.sub("_(bucket|sum|count)$", "", match[1]) in described or match[1] in described
        found[match[1] + (match[2] or "")] = float(match[3])
    return found


def test_prometheus(measured: Server) -> None:
    found = samples(measured)
    own = '{tenant="measured"}'
    assert found[f"tamis_events_total{own}"] == 5
    assert found[f"tamis_matches_total{own}"] == 9
    assert found[f"tamis_notes_read_total{own}"] == 5
    assert found[f"tamis_candidates_total{own}"] >= 9
    assert found[f"tamis_publish_seconds_count{own}"] == 2
    assert found['tamis_publish_seconds_bucket{tenant="measured",le="+Inf"}'] == 2
    assert found[f"tamis_waiting_notes{own}"] == 9
    assert found['tamis_queue_depth{tenant="measured",name="ann"}'] == 5
    assert found['tamis_hottest_matches{tenant="measured",subscriber="ann",name="all"}'] == 5
    assert found['tamis_hottest_matches{tenant="measured",subscriber="b\\"ob",name="some\\\\"}'] == 4
    route = 'tenant="measured",method="GET",route="/v1/subscribers/{subscriber}",status="404"'
    assert found["tamis_requests_total{" + route + "}"] == 1
    assert found["tamis_resident_bytes"] > 10_000_000


def test_the_slowest_and_the_hottest_subscriptions(measured: Server) -> None:
    """Both lists have real subscriptions with plain values, the largest first."""
    headers = add_indexed_tenant(measured)
    figures = measured.client.get("/v1/figures", headers=headers).json()
    assert figures["drift"] > 0
    found = samples(measured)
    for name, member, value in (
        ("tamis_slowest_nanoseconds", "slowest", "nanoseconds"),
        ("tamis_hottest_matches", "hottest", "matches"),
    ):
        listed = figures[member]
        assert len(listed) == 10
        values = [each[value] for each in listed]
        assert values == sorted(values, reverse=True)
        assert values[-1] > 0
        for each in listed:
            path = f"/v1/subscribers/{each['subscriber']}/subscriptions/{each['name']}"
            assert measured.client.get(path, headers=headers).status_code == 200
            label = f'tenant="indexed",subscriber="{each["subscriber"]}",name="{each["name"]}"'
            assert found[f"{name}{{{label}}}"] == each[value]
    # 7 came 51 times. Three subscriptions want it, and each other event is wanted by two or three.
    assert {(each["name"], each["matches"]) for each in figures["hottest"][:3]} == {
        ("7", 51), ("2007", 51), ("4007", 51),
    }  # fmt: skip
    costs = measured.client.get("/v1/costs?most=4700", headers=headers).json()["costs"]
    assert max(each["nanoseconds"] for each in costs) >= figures["slowest"][0]["nanoseconds"]


def test_figures(measured: Server) -> None:
    found = measured.client.get("/v1/figures").json()
    assert (found["events"], found["matches"], found["subscriptions"], found["waiting"]) == (5, 9, 2, 9)
    assert found["publish_seconds"]["count"] == sum(found["publish_seconds"]["counts"]) == 2
    assert [(each["subscriber"], each["matches"]) for each in found["hottest"]] == [("ann", 5), ('b"ob', 4)]
    assert [each["name"] for each in found["deepest"]] == ["ann", 'b"ob']
    assert found["uptime"] > 0


def test_the_log_has_a_line_for_each_request(measured: Server) -> None:
    answer = measured.client.get("/v1/stats", headers={"X-Request-Id": "find-me"})
    assert answer.status_code == 200
    while "find-me" not in measured.log():
        pass
    lines = [json.loads(line) for line in measured.log().splitlines()]
    (line,) = [line for line in lines if line.get("request_id") == "find-me"]
    assert (line["method"], line["route"], line["status"], line["tenant"]) == ("GET", "/v1/stats", 200, "measured")
    assert line["ms"] >= 0
    assert not [line for line in lines if line.get("route") == "/health"]


def test_a_socket_in_the_log(measured: Server) -> None:
    path = f"ws://127.0.0.1:{measured.port}/v1/subscribers/ann/socket"
    with connect(path, additional_headers={"Tamis-Tenant": "measured", "X-Request-Id": "the-socket"}, proxy=None):
        pass
    while "the-socket" not in measured.log():
        pass
    (line,) = [line for line in map(json.loads, measured.log().splitlines()) if line.get("request_id") == "the-socket"]
    assert (line["method"], line["status"]) == ("WEBSOCKET", 101)
