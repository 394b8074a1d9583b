"""The benchmark of earlier events, on little data: it runs, measures what it says, and its page has all tables."""

from __future__ import annotations

from benchmarks.history import SETS, SHARED, measure
from benchmarks.history_page import to_tables


def test_it_measures_everything() -> None:
    figures = measure(True)
    assert [each["set"] for each in figures["joins"]] == list(SETS)
    assert all(each["batch_us"] > 0 for each in figures["joins"])
    assert [each["set"] for each in figures["share"]] == list(SHARED)
    assert all(each[way]["ratio"] > 0 for each in figures["share"] for way in ("table", "mappings", "single"))
    assert [each["events"] for each in figures["keys"]] == [200, 1000]
    assert all(each["single_us"] > 0 for each in figures["keys"])
    assert len(figures["exists"]) == 4
    page = to_tables(figures)
    assert page.count("### ") == 5
    assert "most selective index first" in page
