"""One service for all tests of the clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.serving import Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("client")) as found:
        yield found
