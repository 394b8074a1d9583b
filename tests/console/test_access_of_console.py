"""Tokens and roles: the console asks for a token, and shows only what the token allows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium import webdriver

from tamis.service.tokens import Role
from tests.console.browsing import Console
from tests.service.serving import Server, TokenServer


@pytest.fixture
def closed(browser: webdriver.Chrome, guarded: TokenServer) -> Iterator[Console]:
    """The console of a service that wants tokens."""
    found = Console(browser, guarded.server.url)
    found.complaints()
    yield found
    assert found.complaints() == []


def new_token(guarded: TokenServer, *roles: Role, tenant: str = "shop") -> str:
    return guarded.tokens.create(tenant, roles)[1]


def views(console: Console) -> list[str]:
    return [each.text for each in console.all("[data-view]") if each.is_displayed()]


def test_it_asks_for_a_token_and_keeps_it_for_the_tab(closed: Console, guarded: TokenServer) -> None:
    closed.open()
    closed.says("#token-reason", "This service wants a token.")
    assert closed.focused() == "token-text"
    assert views(closed) == []
    closed.click("#token-form .main")
    closed.says("#token-problem", "Enter a token.")
    closed.write("#token-text", "tamis_wrong")
    closed.click("#token-form .main")
    closed.says("#token-reason", "does not accept this token")
    closed.write("#token-text", new_token(guarded, "admin"))
    closed.click("#token-form .main")
    closed.says("#tenant", "shop")
    assert closed.text("#roles") == "admin"
    assert views(closed) == ["Overview", "Subscriptions", "Live", "Queues", "Index"]
    assert closed.run("return localStorage.length") == 0
    assert "tamis_" not in closed.driver.current_url

    closed.driver.refresh()
    closed.says("#tenant", "shop")
    closed.click("#change-token")
    closed.click("#token-forget")
    closed.says("#token-reason", "This service wants a token.")
    assert views(closed) == []
    assert closed.run("return sessionStorage.getItem('tamis token')") is None


def test_a_closed_dialog_can_be_opened_again(closed: Console) -> None:
    closed.open()
    closed.click("#token-cancel")
    closed.says("#closed-reason", "This service wants a token.")
    closed.click("#give-token")
    closed.the("#token-dialog")


@pytest.mark.parametrize(
    ("role", "expected"),
    [("publish", ["Live"]), ("subscribe", ["Subscriptions", "Live", "Queues"])],
)
def test_a_role_shows_only_what_it_allows(
    closed: Console, guarded: TokenServer, role: Role, expected: list[str]
) -> None:
    closed.open("index", token=new_token(guarded, role))
    closed.says("#roles", role)
    assert views(closed) == expected
    assert closed.all(f"#view-{expected[0].lower()}")[0].is_displayed()
    for view in expected:
        closed.go(view.lower())
        closed.the(f"#view-{view.lower()}")
        assert closed.all(".problem") == [] or not any(each.is_displayed() for each in closed.all(".problem"))
    closed.go("live")
    closed.the("#view-live")
    assert closed.all("#publish-panel")[0].is_displayed() == (role == "publish")
    assert closed.all("#watch-panel")[0].is_displayed() == (role == "subscribe")


def test_a_publisher_publishes(closed: Console, guarded: TokenServer) -> None:
    guarded.clients["shop", "subscribe"].put("/v1/subscribers/eve/subscriptions/x", json={"expression": "x = 1"})
    closed.open("live", token=new_token(guarded, "publish"))
    closed.write("#publish-event", '{"x": 1}')
    closed.click("#publish-form .main")
    closed.says("#published", "1 subscription matched:")
    assert closed.all("#published a") == []


def test_a_subscriber_watches_and_explains(closed: Console, guarded: TokenServer) -> None:
    guarded.clients["bank", "subscribe"].put("/v1/subscribers/eve/subscriptions/y", json={"expression": "y = 1"})
    closed.open("live/eve", token=new_token(guarded, "subscribe", tenant="bank"))
    closed.says("#watch-status", "Waiting for notes.")
    guarded.clients["bank", "publish"].post("/v1/events", json={"y": 1})
    closed.says("#stream", '{"y": 1}')
    closed.click("#stream a")
    closed.says("#explanation", "The event matches.")


def test_an_operator_chooses_the_tenant(closed: Console, guarded: TokenServer) -> None:
    closed.open()
    closed.the("#token-dialog")
    closed.write("#token-text", new_token(guarded, "admin", tenant="*"))
    closed.write("#token-tenant", "bank")
    closed.click("#token-form .main")
    closed.says("#tenant", "bank")


def test_a_revoked_token_closes_the_console(closed: Console, guarded: TokenServer) -> None:
    token, text = guarded.tokens.create("shop", ("admin",))
    closed.open("overview", token=text)
    closed.says("#tenant", "shop")
    guarded.tokens.revoke(token.id)
    closed.the("#token-dialog")
    assert views(closed) == []


FETCH = """
const [url, headers, done] = arguments;
fetch(url, {headers})
  .then(async (answer) => done([answer.status, answer.headers.get("x-request-id") !== null, (await answer.json()).tenant]))
  .catch((error) => done(String(error)));
"""


def test_a_browser_lets_pages_of_allowed_origins_call_and_no_others(
    browser: webdriver.Chrome, server: Server, guarded: TokenServer
) -> None:
    own = {"Authorization": guarded.clients["shop", "admin"].headers["authorization"]}
    there = f"{guarded.server.url}/v1/access"
    browser.get(f"{server.url}/health")
    assert browser.execute_async_script(FETCH, there, own) == [200, True, "shop"]
    assert browser.execute_async_script(FETCH, there, {}) == [401, True, None]
    # The other way round nothing is allowed.
    browser.get(f"{guarded.server.url}/health")
    assert browser.execute_async_script(FETCH, f"{server.url}/v1/access", {}) == "TypeError: Failed to fetch"
    browser.get_log("browser")  # type: ignore[no-untyped-call, unused-ignore]
