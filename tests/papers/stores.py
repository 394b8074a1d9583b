"""Matchers over an index of the papers whose store a test can see."""

from __future__ import annotations

from typing import Any

from tamis.matcher.matcher import new_store
from tamis.matcher.paper_store import PaperStore


def store_over(index: str, **options: Any) -> PaperStore:
    """An empty store over an index. `matcher_over` makes a matcher of it."""
    store = new_store(index, options=options)
    assert isinstance(store, PaperStore)
    return store
