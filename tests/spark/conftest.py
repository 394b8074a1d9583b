"""The stores that tests put indexes into: a shelf, or real servers, see `stores`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.stores import STORES, running_store


@pytest.fixture(scope="session", params=STORES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a store."""
    with running_store(request.param, tmp_path_factory) as address:
        yield address
