"""Two tenants and three roles, held against each other for every route. The routes are found by listing them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.datastructures import Headers
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tamis.service.access import OPEN, Needs
from tamis.service.app import ROUTERS, make_app
from tamis.service.config import ServiceConfig
from tamis.service.origins import check_origin
from tamis.service.problems import ProblemError
from tamis.service.tokens import ROLES, Role
from tests.service.conftest import PAGE
from tests.service.serving import NDJSON, Server, TokenServer, kind

SECRETS = {"bank": "zanzibar", "shop": "ultramarine"}
"""A word that only one tenant knows: in names, expressions and events."""
SECRET = SECRETS["bank"]
BOTH = pytest.mark.parametrize(("asker", "owner"), [("shop", "bank"), ("bank", "shop")])


def declared() -> Iterator[tuple[str, str, tuple[Role, ...]]]:
    """Each route of the application: its method, its path, and the roles that are enough."""
    for route in chain.from_iterable(router.routes for router in ROUTERS):
        if isinstance(route, APIRoute):
            for method in route.methods or ():
                yield method, route.path_format, roles_of(route.dependant)


def roles_of(dependant: Dependant) -> tuple[Role, ...]:
    found = [each.call.roles for each in dependant.dependencies if isinstance(each.call, Needs)]
    return found[0] if found else ()


def test_every_route_needs_a_role(tmp_path: Path) -> None:
    routes = list(declared())
    document = make_app(ServiceConfig(tmp_path)).openapi()
    assert {path for _, path, _ in routes} == set(document["paths"])
    assert {path for _, path, roles in routes if not roles} <= set(OPEN)
    for route in chain.from_iterable(router.routes for router in ROUTERS):
        if isinstance(route, APIWebSocketRoute):
            assert roles_of(route.dependant), route.path


def test_the_application_has_no_other_routes(tmp_path: Path) -> None:
    known = {route.path for route in chain.from_iterable(router.routes for router in ROUTERS)}
    found = make_app(ServiceConfig(tmp_path)).routes
    assert {route.path for route in listed(found)} - known <= set(OPEN)


def listed(routes: Any) -> Iterator[Any]:
    """All routes, also those of routers that are included."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is None:
            yield route
        else:
            yield from listed(included.routes)


@pytest.fixture(scope="module")
def bank(guarded: TokenServer) -> TokenServer:
    """Each tenant has subscribers, a subscription and events, all with its own secret word."""
    for tenant, secret in SECRETS.items():
        admin = guarded.clients[tenant, "admin"]
        path = f"/v1/subscribers/{secret}/subscriptions/{secret}"
        assert admin.put(path, json={"expression": f"{secret} = '{secret}'"}).status_code == 200
        for _ in range(3):
            assert admin.post("/v1/events", json={secret: secret}).json()["matches"] == 1
        # A webhook without notes sends nothing.
        quiet = f"/v1/subscribers/{secret}-quiet"
        assert admin.put(f"{quiet}/subscriptions/{secret}", json={"expression": "FALSE"}).status_code == 200
        assert admin.put(f"{quiet}/webhook", json={"url": f"https://{secret}.example/"}).status_code == 200
    return guarded


@pytest.fixture(autouse=True)
def _no_settings_are_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """The examples of OpenAPI declare attributes and a retention."""
    yield
    if "bank" in request.fixturenames:
        for tenant in SECRETS:
            admin = request.getfixturevalue("bank").clients[tenant, "admin"]
            assert admin.put("/v1/schema", json={}).status_code == 200
            assert admin.put("/v1/retention", json={"max_age": None, "max_notes": None}).status_code == 200


def request(client: Any, operation: tuple[str, str], document: Any, subscriber: str, name: str) -> Any:
    """Send the example of a route, with these names."""
    method, path = operation
    given = document["paths"][path][method.lower()]
    for word, value in (("subscriber", subscriber), ("name", name), ("sequence", 1)):
        path = path.replace("{" + word + "}", quote(str(value), safe=""))
    content = given.get("requestBody", {}).get("content", {})
    if not content:
        return client.request(method, path)
    media_type, body = next(iter(content.items()))
    example = body["example"]
    text = example if isinstance(example, str) else json.dumps(example)
    return client.request(method, path, content=text, headers={"Content-Type": media_type})


def test_roles_of_every_route(bank: TokenServer) -> None:
    document = bank.server.client.get("/openapi.json").json()
    stranger = bank.client(None)
    for method, path, roles in declared():
        if path in OPEN:
            continue
        nobody = request(stranger, (method, path), document, "nobody", "nothing")
        assert (nobody.status_code, kind(nobody)) == (401, "no-token"), path
        for role in ROLES:
            answer = request(bank.clients["shop", role], (method, path), document, "nobody", "nothing")
            may = role in roles or role == "admin"
            assert (answer.status_code == 403) == (not may), (method, path, role, answer.text)


@BOTH
def test_no_answer_to_another_tenant_reveals_anything(bank: TokenServer, asker: str, owner: str) -> None:
    document = bank.server.client.get("/openapi.json").json()
    secret = SECRETS[owner]
    bank.clients[asker, "admin"].put("/v1/subscribers/ann/subscriptions/crime", json={"expression": "price < 20"})
    before = seen(bank, owner)
    # What makes a subscription of this name for the asker comes last.
    routes = sorted(declared(), key=lambda each: each[0] == "PUT" and "{name}" in each[1])
    for method, path, roles in routes:
        for role in ROLES:
            client = bank.clients[asker, role]
            answer = request(client, (method, path), document, secret, secret)
            other = request(client, (method, path), document, "unknown", "unknown")
            place = (method, path, role)
            assert answer.status_code == other.status_code, place
            assert (answer.status_code == 403) == (path not in OPEN and role not in roles and role != "admin"), place
            # An error repeats the names that were asked for. Apart from them, both answers are alike.
            if answer.status_code >= 400:
                assert answer.json()["detail"].replace(secret, "unknown") == other.json()["detail"], place
            elif method == "PUT" and "{name}" in path:
                assert {**answer.json(), "number": 0} == {
                    **other.json(), "number": 0, "subscriber": secret, "name": secret,
                }  # fmt: skip
            else:
                assert secret not in answer.text, place
            assert f'"{owner}"' not in answer.text, place
    assert seen(bank, owner) == before
    for name in (secret, "unknown"):
        assert bank.clients[asker, "admin"].delete(f"/v1/subscribers/{name}").status_code == 204


def seen(bank: TokenServer, tenant: str) -> list[Any]:
    """What a tenant has: nothing that others ask for may change it."""
    admin, secret = bank.clients[tenant, "admin"], SECRETS[tenant]
    paths = (
        "/v1/subscriptions", "/v1/subscribers", "/v1/webhooks", "/v1/changes", "/v1/events", "/v1/schema", "/v1/attributes",
        "/v1/counts", f"/v1/subscribers/{secret}/notifications",
    )  # fmt: skip
    figures = admin.get("/v1/stats").json()
    return [
        *(admin.get(path).json() for path in paths),
        figures["last_event"],
        figures["commits"],
        figures["retention"],
    ]


@BOTH
def test_sockets_of_two_tenants_and_three_roles(bank: TokenServer, asker: str, owner: str) -> None:
    paths = [
        (route.path_format, roles_of(route.dependant))
        for route in chain.from_iterable(router.routes for router in ROUTERS)
        if isinstance(route, APIWebSocketRoute)
    ]
    assert paths
    for path, roles in paths:
        own, other = path.replace("{subscriber}", SECRETS[owner]), path.replace("{subscriber}", "unknown")
        assert handshake(bank, own, None) == (401, "no-token")
        assert handshake(bank, own, "tamis_x_y") == (401, "no-token")
        for role in ROLES:
            may = role in roles or role == "admin"
            expected = (404, "unknown-id-error") if may else (403, "forbidden")
            token = bank.clients[asker, role].headers["authorization"].removeprefix("Bearer ")
            assert handshake(bank, own, token) == handshake(bank, other, token) == expected


def handshake(bank: TokenServer, path: str, token: str | None) -> tuple[int, str]:
    """The status and the kind of the problem with which a WebSocket is refused."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with (
        pytest.raises(InvalidStatus) as refusal,
        connect(bank.server.url.replace("http", "ws", 1) + path, additional_headers=headers),
    ):
        pass
    response = refusal.value.response
    document = json.loads(response.body or b"{}")
    assert not any(f"'{tenant}'" in str(document) for tenant in SECRETS)
    return response.status_code, document["type"].removeprefix("urn:tamis:problem:")


def test_keys_and_questions_of_two_tenants(bank: TokenServer) -> None:
    """A key that another tenant has used is a new one, and nobody wants what only others want."""
    shop, owner = bank.clients["shop", "admin"], bank.clients["bank", "admin"]
    key = {"Idempotency-Key": "order-17", "X-Request-Id": "same"}
    theirs = owner.post("/v1/events?with_matches=true", json={SECRET: SECRET}, headers=key)
    ours = shop.post("/v1/events?with_matches=true", json={SECRET: SECRET}, headers=key)
    assert theirs.json()["matches"] == 1
    assert (ours.json()["matches"], ours.json()["subscriptions"]) == (0, [])
    assert shop.get("/v1/stats").json()["last_event"] == ours.json()["sequence"]
    assert owner.post("/v1/would-match", json={SECRET: SECRET}).json() == {"would_match": True}
    assert shop.post("/v1/would-match", json={SECRET: SECRET}).json() == {"would_match": False}
    assert SECRET in owner.get("/v1/attributes").json()["attributes"]
    for path in (
        "/v1/attributes",
        "/v1/subscriptions",
        "/v1/subscribers",
        "/v1/webhooks",
        "/v1/figures",
    ):
        assert SECRET not in shop.get(path).text, path
    assert SECRET not in shop.post("/v1/covering", json={}).text
    assert SECRET in owner.get("/v1/webhooks").text


def test_a_token_in_an_address_is_for_streams_alone(bank: TokenServer) -> None:
    token = bank.clients["bank", "admin"].headers["authorization"].removeprefix("Bearer ")
    stranger = bank.client(None)
    for method, path, _ in declared():
        if path not in OPEN and not path.endswith("/stream"):
            path = path.replace("{subscriber}", SECRET).replace("{name}", SECRET).replace("{sequence}", "1")
            assert stranger.request(method, path, params={"access_token": token}).status_code == 401, path
    assert stranger.get("/v1/subscribers/unknown/stream", params={"access_token": token}).status_code == 404


def test_tenants_count_for_themselves(bank: TokenServer) -> None:
    shop, owner = bank.clients["shop", "admin"], bank.clients["bank", "admin"]
    before = owner.get("/v1/stats").json()
    shop.post("/v1/events", json={SECRET: SECRET})
    after = owner.get("/v1/stats").json()
    assert (before["last_event"], before["commits"]) == (after["last_event"], after["commits"])
    metrics = shop.get("/metrics").text
    assert 'tenant="shop"' in metrics
    assert "bank" not in metrics
    assert SECRET not in metrics


def test_a_token_knows_one_tenant(bank: TokenServer) -> None:
    client = bank.clients["shop", "admin"]
    assert client.get("/v1/access").json()["tenant"] == "shop"
    for name in ("bank", "none-such"):
        answer = client.get("/v1/access", headers={"Tamis-Tenant": name})
        assert (answer.status_code, kind(answer)) == (404, "unknown-tenant")


def test_an_operator_chooses_the_tenant(bank: TokenServer) -> None:
    operator = bank.client(bank.tokens.create("*", ("admin",))[1])
    assert operator.get("/v1/access", headers={"Tamis-Tenant": "bank"}).json()["tenant"] == "bank"
    metrics = operator.get("/metrics").text
    assert 'tenant="shop"' in metrics
    assert 'tenant="bank"' in metrics


def test_a_token_that_is_revoked_or_over_is_refused_at_once(guarded: TokenServer) -> None:
    token, text = guarded.tokens.create("shop", ("subscribe",), datetime.now(UTC) + timedelta(days=1))
    client = guarded.client(text)
    assert client.get("/v1/access").json() == {
        "tenant": "shop",
        "roles": ["subscribe"],
        "token": token.id,
        "expires": token.expires,
    }
    guarded.tokens.revoke(token.id)
    assert client.get("/v1/access").status_code == 401
    over = guarded.client(guarded.tokens.create("shop", ("admin",), datetime(2020, 1, 1, tzinfo=UTC))[1])
    assert over.get("/v1/access").status_code == 401


@pytest.mark.parametrize(
    ("role", "path", "line", "counted", "word"),
    [
        ("publish", "/v1/events", {"long": "x" * 60_000}, "events", "published"),
        (
            "subscribe",
            "/v1/subscriptions",
            {"subscriber": "s", "name": "n", "expression": f"long = '{'x' * 60_000}'"},
            "subscriptions",
            "subscribed",
        ),
    ],
)
def test_a_token_that_is_revoked_ends_a_long_body(
    guarded: TokenServer, role: Role, path: str, line: dict[str, str], counted: str, word: str
) -> None:
    (guarded.server.folder / "tenants" / f"long-{role}").mkdir()
    admin = guarded.client(guarded.tokens.create(f"long-{role}", ("admin",))[1])
    token, text = guarded.tokens.create(f"long-{role}", (role,))

    def body() -> Iterator[bytes]:
        for number in range(5):
            yield json.dumps({**line, "name": f"n{number}"}).encode() + b"\n"
        while not admin.get("/v1/counts").json()[counted]:
            pass
        guarded.tokens.revoke(token.id)
        for number in range(5):
            yield json.dumps({**line, "name": f"m{number}"}).encode() + b"\n"

    answer = guarded.client(text).post(path, content=body(), headers=NDJSON)
    assert (answer.status_code, kind(answer)) == (401, "no-token")
    stored = admin.get("/v1/counts").json()[counted]
    assert stored < 10
    assert answer.json()[word] == stored
    assert answer.json()["detail"].startswith(f"after {stored} ")


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1], lambda text: text + "x", lambda text: text.upper(), lambda text: "x"]
)
def test_a_wrong_token_is_refused(guarded: TokenServer, change: Any) -> None:
    _, text = guarded.tokens.create("shop", ("admin",))
    answer = guarded.client(change(text)).get("/v1/access")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_new_tenant_is_opened_when_it_is_asked_for(guarded: TokenServer) -> None:
    (guarded.server.folder / "tenants" / "late").mkdir()
    client = guarded.client(guarded.tokens.create("late", ("admin",))[1])
    assert client.post("/v1/events", json={"a": 1}).json() == {"sequence": 1, "matches": 0}


def test_without_tokens_a_header_names_the_tenant(server: Server) -> None:
    (server.folder / "tenants" / "other").mkdir()
    other = {"Tamis-Tenant": "other"}
    assert server.client.post("/v1/events", json={"a": 1}, headers=other).json()["sequence"] == 1
    for name in ("none-such", "..", "../default", "Default"):
        assert server.client.get("/v1/access", headers={"Tamis-Tenant": name}).status_code == 404
    assert server.client.get("/v1/access", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_pages_of_other_sites_are_refused(server: Server) -> None:
    client = server.client
    own = {"Origin": server.url}
    assert client.get("/v1/access", headers=own).status_code == 200
    answer = client.post("/v1/events", json={"a": 1}, headers={"Origin": "https://evil.example"})
    assert (answer.status_code, kind(answer)) == (403, "foreign-origin")
    for origin in ("null", "http://[", "https://[::1", ""):
        assert client.get("/v1/access", headers={"Origin": origin}).status_code == 403
    answer = client.get("/v1/access", headers={"Host": "evil.example"})
    assert (answer.status_code, kind(answer)) == (421, "foreign-host")
    assert client.get("/v1/access", headers={"Host": f"localhost:{server.port}"}).status_code == 200
    # A proxy or a container asks for the health by an address.
    assert client.get("/health", headers={"Host": "10.0.0.7"}).status_code == 200


def test_names_of_the_service_have_no_case(tmp_path: Path) -> None:
    config = ServiceConfig(tmp_path, host="10.0.0.1", hosts=("Alerts.Example.com",))
    for host in ("alerts.example.com", "ALERTS.example.com:8443"):
        check_origin(config, Headers({"host": host}))
    with pytest.raises(ProblemError):
        check_origin(config, Headers({"host": "alerts.example.org"}))


def cors(answer: Any) -> dict[str, str]:
    """What an answer tells a browser about pages of other origins."""
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


def asked_before(server: Server, origin: str, path: str = "/v1/events") -> Any:
    """The answer to the question of a browser, whether a page may publish."""
    words = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    return server.client.options(path, headers=words)


def test_a_browser_may_show_answers_to_pages_of_allowed_origins(guarded: TokenServer) -> None:
    before = asked_before(guarded.server, PAGE)
    assert (before.status_code, before.content) == (204, b"")
    assert before.headers["vary"] == "Origin"
    found = cors(before)
    assert found["access-control-allow-origin"] == PAGE
    assert "authorization" in found["access-control-allow-headers"].lower()
    for method in ("GET", "PUT", "POST", "DELETE"):
        assert method in found["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in found
    token = {"Authorization": f"Bearer {guarded.tokens.create('shop', ('admin',))[1]}"}
    for path, headers, status in (
        ("/v1/access", token, 200),
        ("/v1/access", {}, 401),
        ("/v1/none", {}, 404),
        ("/health", {}, 200),
    ):
        answer = guarded.server.client.get(path, headers={"Origin": PAGE, **headers})
        assert answer.status_code == status
        assert cors(answer)["access-control-allow-origin"] == PAGE
        assert "X-Request-Id" in cors(answer)["access-control-expose-headers"]


@pytest.mark.parametrize("origin", ["https://evil.example", "http://shop.example.com", PAGE + ".evil.example", "null"])
def test_a_browser_shows_nothing_to_pages_of_other_origins(guarded: TokenServer, origin: str) -> None:
    for answer in (
        asked_before(guarded.server, origin),
        guarded.server.client.get("/v1/access", headers={"Origin": origin}),
    ):
        assert (answer.status_code, kind(answer), cors(answer)) == (403, "foreign-origin", {})
        assert answer.headers["vary"] == "Origin"
    assert cors(asked_before(guarded.server, origin, "/health")) == {}


def test_without_origins_no_page_of_another_origin_may_call(server: Server) -> None:
    assert (asked_before(server, PAGE).status_code, cors(asked_before(server, PAGE))) == (403, {})
    assert cors(server.client.get("/v1/access", headers={"Origin": server.url})) == {}
