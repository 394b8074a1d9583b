"""The console when the service ends and starts again, and what the page is made of."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from selenium import webdriver

from tests.console.browsing import Console
from tests.service.serving import Server


def test_it_goes_on_when_the_service_starts_again(browser: webdriver.Chrome, tmp_path: Path) -> None:
    first = Server(tmp_path / "served")
    console = Console(browser, first.url)
    try:
        first.subscribe("ann", "all", "TRUE")
        first.publish({"n": 1})
        console.open("live/ann")
        console.says("#stream", '{"n": 1}')
        first.kill()
        console.says("#connection", "The service does not answer.")
        console.write("#publish-event", '{"n": 0}')
        console.click("#publish-form .main")
        console.says("#publish-problem", "The service does not answer. Nothing is known of the event.")
    finally:
        if first.process.poll() is None:
            first.kill()
    second = Server(tmp_path / "served", "--port", first.port)
    try:
        console.when(lambda: not console.text("#connection"), "the service to be found again")
        second.publish({"n": 2})
        console.says("#stream", '{"n": 2}')
        assert console.text("#stream").count('{"n": 1}') == 1
        console.click('[data-view="overview"]')
        console.says("#overview-facts", "Subscriptions")
    finally:
        second.stop()
    console.says("#connection", "The service does not answer.")


def test_the_page_allows_nothing_foreign(server: Server) -> None:
    page = server.client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.partition(" ")[::2] for part in page.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert {policy[f"{kind}-src"] for kind in ("script", "style", "img", "connect")} == {"'self'"}
    assert policy["frame-ancestors"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"


def test_all_files_are_served_and_name_no_host(server: Server) -> None:
    folder = files("tamis.service").joinpath("console")
    names = {entry.name for entry in folder.iterdir()}
    for name in names:
        answer = server.client.get(f"/console/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["content-security-policy"]
        again = server.client.get(f"/console/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        foreign = set(re.findall(r"https?://[^\s\"'`)]+", answer.text)) - {"http://www.w3.org/2000/svg"}
        assert foreign == set(), name
        used = re.findall(r'(?:from|import) "\./([^"]+)"|="console/([^"]+)"', answer.text)
        assert {a or b for a, b in used} <= names, name
    page = server.client.get("/").text
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", page)
    for name in ("missing.js", "..%2Fapp.py", "%2e%2e%2fapp.py"):
        assert server.client.get(f"/console/{name}").status_code == 404
