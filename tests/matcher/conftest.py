"""What tests of the matcher share."""

from __future__ import annotations

import pytest

from tamis.index.interface import Index
from tamis.index.registry import AUTO, find_index
from tamis.matcher import matcher


@pytest.fixture(params=["auto", "scan"])
def each_index(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `Matcher()` mean the engine, and then an index: the answers are the same."""

    def find(name: str) -> type[Index] | None:
        return find_index(request.param if name == AUTO else name)

    monkeypatch.setattr(matcher, "find_index", find)
