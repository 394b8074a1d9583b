"""The benchmark of the parts, on little data: it runs, and has a figure with and without each part."""

from __future__ import annotations

import pytest

from benchmarks.history_parts import CLAIMS, PREFILTERED, measure
from benchmarks.history_parts_page import to_tables


@pytest.mark.long
def test_it_measures_each_part_with_and_without() -> None:
    figures = measure(True)
    assert all(each["shared_us"] > 0 and each["alone_us"] > 0 for each in figures["table"])
    assert all(each["constants_first_us"] > 0 and each["joins_first_us"] > 0 for each in figures["phases"])
    assert [each["set"] for each in figures["prefilter"]] == list(PREFILTERED)
    assert all(
        each[f"{way}_{label}_us"] > 0
        for each in figures["prefilter"]
        for way in ("batch", "single")
        for label in ("on", "off")
    )
    assert {each["claim"] for part in CLAIMS for each in figures[part]} == set(CLAIMS.values())
    assert to_tables(figures).count("### ") == 4
    # What is skipped is not decided.
    assert all(each["decided_on"] <= each["decided_off"] for each in figures["prefilter"])
