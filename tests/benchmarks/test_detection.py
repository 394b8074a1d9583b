"""The benchmark of detection rules and JSON, on little data: it runs, and the page shows what it measured."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks import detection, page


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    rules = [{"id": "a", "expression": "Image ILIKE '%\\x.exe'"}, {"id": "b", "expression": "Level = 3"}]
    (tmp_path / "rules.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    events = [{"Image": f"C:\\{name}.exe", "Level": level} for name in "xyz" for level in (1, 3)] * 10
    with gzip.open(tmp_path / "events.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(event) + "\n" for event in events))
    return tmp_path


def test_results_become_tables_and_a_page(tmp_path: Path, sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results" / "detection.json"
    detection.main(["--quick", "--no-commands", "--sample", str(sample), "--json", str(results)])
    printed = capsys.readouterr().out
    measured = json.loads(results.read_text())
    generated, given = measured["data"]
    assert (generated["rules"], generated["events"]) == (100, 300)
    assert (given["rules"], given["events"], given["matches"]) == (2, 60, pytest.approx(2 / 6 + 3 / 6))
    assert generated["matches"] >= 0.01
    for name, way in given["ways"].items():
        assert f"| {name} |" in printed
        assert way["processor"] > 0
    page.main([str(results.parent), str(tmp_path / "benchmarks.md")])
    assert detection.to_tables(measured) in (tmp_path / "benchmarks.md").read_text()


def test_commands_are_measured(sample: Path) -> None:
    data = detection.Data.of_sample(sample, 60)
    figures = detection.measure_commands(data, copies=2, passes=1)
    assert figures["lines"] == 120
    assert figures["condition"] == "\"Image\" = 'C:\\x.exe'"
    assert {"tamis match", "tamis filter"} <= set(figures["commands"])
    assert all(each["few_processor"] > 0 for each in figures["commands"].values())
