"""The broker's benchmark, on little data: it runs and measures what it says."""

from __future__ import annotations

from pathlib import Path

from benchmarks.broker import measure


def test_it_measures_everything(tmp_path: Path) -> None:
    figures = measure(True, str(tmp_path))
    assert [(each["matches"], len(each["options"])) for each in figures["publishing"]] == [
        (matches, options) for matches in (1, 100) for options in (0, 1, 1, 2)
    ]
    assert all(0 < each["commits"] <= 1 for each in figures["sharing"])
    assert len(figures["layouts"]) == 3
    assert all(each["milliseconds"] > 0 for each in figures["meeting"])
    assert figures["reading"]["notes"] > 2000
    assert 0 < figures["first_meeting"]["told"] < figures["first_meeting"]["events"]
