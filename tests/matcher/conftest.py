"""Fixtures for all tests of the matcher."""

from __future__ import annotations

import pytest

from tamis.matcher import matcher
from tamis.papers.interface import Index
from tamis.papers.registry import AUTO, find_index


@pytest.fixture(params=["auto", "scan"])
def each_index(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with the engine, and again with an index as the default of `Matcher()`."""

    def find(name: str) -> type[Index] | None:
        return find_index(request.param if name == AUTO else name)

    monkeypatch.setattr(matcher, "find_index", find)
