"""The service's benchmark, on little data: it runs and measures what it says."""

from __future__ import annotations

from pathlib import Path

from benchmarks.service import WAYS, measure
from benchmarks.service_page import to_tables


def test_it_measures_everything(tmp_path: Path) -> None:
    figures = measure(True, str(tmp_path))
    assert [each["way"] for each in figures["publishing"]] == list(WAYS)
    assert all(each["ratio"] > 0 for each in figures["publishing"])
    assert [(each["connections"], each["streams"]) for each in figures["crowds"]] == [(64, 0), (0, 1), (64, 1)]
    crowd = figures["crowds"][0]
    assert 0 < crowd["publish"]["p50"] <= crowd["publish"]["p99"] <= crowd["publish"]["most"]
    text = to_tables(figures)
    assert text.count("| publish an event |") == 2
    assert text.count("| health |") == 3
    assert [each.name for each in tmp_path.iterdir()] == ["filled-2000"]  # the next run takes it
