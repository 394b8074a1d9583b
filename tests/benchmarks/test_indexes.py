"""The benchmark of the indexes, on little data: it runs, and the page and the chart show what it measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import indexes, indexes_page, page


def row(
    index: str, microseconds: float, shape: str = "dense", kind: str = "planted", size: int = 1000
) -> dict[str, Any]:
    return {
        "index": index,
        "shape": shape,
        "subscriptions": size,
        "kind": kind,
        "matches": 10.0,
        "candidates": 20.0,
        "predicates": 30.0,
        "nodes": 2.0,
        "microseconds": microseconds,
        "again_microseconds": 8.0,
        "scan_microseconds": 100.0,
        "build_seconds": 1.5,
        "bytes_each": 60.0,
        "peak_bytes": 1,
    }


def test_what_is_measured_becomes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results" / "indexes.json"
    options = ["--indexes", "scan", "k-index", "--shapes", "dense", "--sizes", "300", "--events", "3", "--passes", "1"]
    indexes.main([*options, "--json", str(results)])
    measured = json.loads(results.read_text())
    assert [(each["index"], each["kind"]) for each in measured["rows"]] == [
        (name, kind) for name in ("scan", "k-index") for kind in ("planted", "other")
    ]
    printed = capsys.readouterr().out
    for each in measured["rows"]:
        assert indexes_page.line_of(each) in printed
        assert each["microseconds"] > 0
    page.main([str(results.parent), str(tmp_path / "benchmarks.md")])
    text = (tmp_path / "benchmarks.md").read_text()
    assert indexes_page.DESCRIPTION in text
    assert indexes_page.to_tables(measured) in text
    assert "### Shape dense\n" in text
    chart = text.split("![Indexes](")[1].split(")")[0]
    drawing = ElementTree.parse(tmp_path / chart).getroot()
    assert "dense: k-index" in [element.text for element in drawing.iter() if element.tag.endswith("text")]


def test_what_takes_too_long_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    indexes.main(["--indexes", "scan", "--shapes", "dense", "--sizes", "300", "--seconds", "0.01"])
    assert "more than 0 s" in capsys.readouterr().out


def test_tables_have_a_line_for_each_index_and_size() -> None:
    rows = [row("b", 50.0), row("b", 20.0, kind="other"), row("a", 25.0), row("a", 400.0, size=9000)]
    table = indexes_page.to_tables({"rows": rows})
    lines = table.splitlines()[4:]
    assert lines == [
        "| `a` | 1,000 | 25 |  | 8 | 4 |  | 1.50 | 60 | 10 | 20 | 2 |",
        "| `b` | 1,000 | 50 | 20 | 8 | 2 | 5 | 1.50 | 60 | 10 | 20 | 2 |",
        "| `a` | 9,000 | 400 |  | 8 | 0.25 |  | 1.50 | 60 | 10 | 20 | 2 |",
    ]


def test_the_orderings_of_the_papers_are_held_against_the_figures() -> None:
    rows = [
        *(row("scan", 1.0, shape) for shape in ("dense", "sparse")),
        row("pst-hash", 10.0),
        row("be-tree", 30.0),
        row("k-index", 20.0),
        row("op-index", 15.0),
        row("pst-hash", 10.0, "sparse"),
        row("pst-bloom", 11.0, "sparse"),
        # Only the largest size counts.
        row("op-index", 90.0, size=10),
    ]
    table = indexes_page.to_tables({"rows": rows}).split("### The papers' orderings")[1]
    table, evidence = table.split("The next table shows")
    said = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")][
        2:
    ]
    assert "| dense | `be-tree` | 30 | 10 | 20 | 30 | 2 | 73% | 400 |" in evidence
    assert "*BE-Tree ahead of k-index.*" in evidence
    assert "OpIndex ahead" not in evidence
    assert [(line[0], line[2], *line[4:]) for line in said] == [
        ("PSTHash first on dense", "dense", "10", "6.7 (`op-index`)", "holds"),
        ("PSTBloom first on sparse", "sparse", "9.1", "10 (`pst-hash`)", "does not hold"),
        ("BE-Tree ahead of k-index", "dense", "3.3", "5 (`k-index`)", "does not hold"),
        ("OpIndex ahead of k-index", "dense", "6.7", "5 (`k-index`)", "holds"),
    ]


def test_failures_have_their_reason() -> None:
    failed = {"index": "k-index", "shape": "range", "subscriptions": 5, "failure": "no | room"}
    tables = indexes_page.to_tables({"rows": [failed]})
    assert tables.startswith("### Not measured\n")
    assert "| `k-index` | range | 5 | no \\| room |" in tables
    assert "no | room" in indexes_page.line_of(failed)
    ElementTree.fromstring(indexes_page.to_chart({"rows": [failed]}))
    assert indexes_page.to_tables({"rows": []}) == ""


def test_earlier_figures_stay_unless_they_are_measured_again() -> None:
    same = {"machine": {"cores": 2}, "versions": {}, "tamis": "1", "seed": 1, "peak_bytes": 5}
    before = {**same, "rows": [row("scan", 3.0), row("k-index", 1.0), row("scan", 9.0, size=10)]}
    after = {**same, "peak_bytes": 4, "rows": [row("k-index", 2.0)]}
    merged = indexes.with_those_before(after, before)
    assert merged["rows"] == [row("scan", 9.0, size=10), row("scan", 3.0), row("k-index", 2.0)]
    assert merged["peak_bytes"] == 5
    assert indexes.with_those_before({**after, "machine": {"cores": 4}}, before)["rows"] == [row("k-index", 2.0)]
