"""The loading benchmark, on little data: it runs, and the page shows what it measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import loading, page


def test_results_become_a_table_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results" / "loading.json"
    loading.main(["--subscriptions", "300", "--conjunctions", "2000", "--json", str(results)])
    printed = capsys.readouterr().out
    measured = json.loads(results.read_text())
    assert len(measured["ways"]) == 6
    for name, way in measured["ways"].items():
        assert name in printed
        assert way["count"] in (300, 2000)
        assert way["microseconds_each"] > 0
    memory = measured["memory"]
    assert memory is None or memory["most_bytes_each"] >= memory["bytes_each"]
    assert memory is None or "2,000 subscriptions as a table take" in printed
    page.main([str(results.parent), str(tmp_path / "benchmarks.md")])
    text = (tmp_path / "benchmarks.md").read_text()
    assert loading.to_table(measured) in text
    assert f"Python {measured['machine']['python']}" in text


def test_texts_of_templates_share_their_shapes() -> None:
    alike, different = loading.sql_texts(400, 10), loading.sql_texts(400, None)
    assert len({shape_of(text) for text in alike}) <= 10
    assert len({shape_of(text) for text in different}) == 400
    assert len(set(alike)) > 390


def shape_of(text: str) -> str:
    """The text without its literals."""
    words = text.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return " ".join(word for word in words if not word[0].isdigit() and word[0] != "'")
