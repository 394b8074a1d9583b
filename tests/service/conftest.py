"""Services that tests share: one for everybody, one with two tenants and tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.serving import Server, TokenServer, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without tokens. Tests use subscribers and attributes of their own."""
    with serving(tmp_path_factory.mktemp("service")) as found:
        yield found


PAGE = "https://shop.example.com"

LIMITS = """
[limits]
body_bytes = 100000
line_bytes = 10000
expression_bytes = 2000
depth = 20

[tenants.slow.limits]
requests_per_second = 5

[tenants.hasty.limits]
requests_per_second = 5

[tenants.few.limits]
subscriptions = 3

[tenants.paced.limits]
events_per_second = 50

[tenants.fixed.schema]
price = "number"
at = "timestamp"

[tenants.brief.limits]
event_bytes = 500

[tenants.narrow.limits]
streams = 1
"""


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with small limits."""
    folder = tmp_path_factory.mktemp("strict")
    (folder / "service.toml").write_text(LIMITS, encoding="utf-8")
    with serving(folder, environment={"TAMIS_HEADER_SECONDS": "1", "TAMIS_BODY_SECONDS": "1"}) as found:
        yield found


CONNECTIONS = 40


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with few connections and little patience."""
    names = ("HEADER_SECONDS", "BODY_SECONDS", "SEND_SECONDS", "KEEP_ALIVE_SECONDS")
    environment = {"TAMIS_CONNECTIONS": str(CONNECTIONS), **{f"TAMIS_{name}": "1" for name in names}}
    with serving(tmp_path_factory.mktemp("small"), "--log", "warning", environment=environment) as found:
        found.subscribe("target", "x", "target = 'x'")
        yield found


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    """A service that wants tokens, with two tenants: `shop` and `bank`. Pages of one other origin may call it."""
    with serving(tmp_path_factory.mktemp("guarded"), "--tokens", "always", "--origin", PAGE) as found:
        yield TokenServer(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "served"
