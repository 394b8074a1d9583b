"""One browser and one service for all tests of the console."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.console.browsing import MISSING, Console, browsing, found_browser
from tests.service.serving import NDJSON, Server, TokenServer, serving

SUBSCRIPTIONS = 3_000
SETTINGS = """
[webhooks]
tries = 1
first_wait = 0.05
allowed_networks = ["127.0.0.0/8"]
"""


FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests of the console to one worker, so that one browser serves them. Without a browser, skip them."""
    has_browser = found_browser() is not None
    for item in items:
        if item.path.parent != FOLDER:
            continue
        item.add_marker(pytest.mark.xdist_group("console"))
        if not has_browser and "browser" in getattr(item, "fixturenames", ()):
            # A marker, so that the summary has one line for each file.
            item.add_marker(pytest.mark.skip(reason=MISSING))


@pytest.fixture(scope="session")
def browser() -> Iterator[webdriver.Chrome]:
    """The browser. Tests that need it are skipped where there is none."""
    path = found_browser()
    assert path is not None
    with browsing(path) as driver:
        yield driver


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without tokens. It has some thousands of subscriptions and a few events."""
    folder = tmp_path_factory.mktemp("console")
    (folder / "settings.toml").write_text(SETTINGS)
    with serving(folder / "served", "--config", folder / "settings.toml") as found:
        fill(found)
        yield found


def fill(server: Server) -> None:
    """Add subscriptions of shops, each with its own price, and publish events that the cheapest of them want."""
    lines = (
        {"subscriber": f"shop {n % 300}", "name": f"offer {n}", "expression": f"price < {n} AND genre = 'g{n % 7}'"}
        for n in range(SUBSCRIPTIONS)
    )
    body = "\n".join(map(json.dumps, lines)).encode()
    answer = server.client.post("/v1/subscriptions", content=body, headers=NDJSON)
    assert answer.json() == {"subscribed": SUBSCRIPTIONS}
    for n in range(5):
        server.publish({"price": 2_900 + n, "genre": "g1"})


@pytest.fixture
def console(browser: webdriver.Chrome, server: Server) -> Iterator[Console]:
    """The console of the service, closed. The browser must have nothing to complain about."""
    found = Console(browser, server.url)
    found.complaints()
    yield found
    assert found.complaints() == []


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[TokenServer]:
    """A service that wants tokens. Pages of the other service may call it."""
    with serving(tmp_path_factory.mktemp("guarded"), "--tokens", "always", "--origin", server.url) as found:
        yield TokenServer(found)
