"""The figures of the README, on little data: all systems agree, and the README and the page show what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import tamis
from benchmarks import headline, page
from benchmarks.markdown import renewed
from tamis.experiments.peers import DuckDB, Polars
from tests.markdown import ROOT

RESULTS = ROOT / "docs" / "results" / "headline.json"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("headline")
    readme = folder / "README.md"
    readme.write_text(f"# Tamis\n\n{headline.BEGIN}\nbefore\n{headline.END}\n\nThe rest\n")
    path = folder / "results" / "headline.json"
    headline.main(["--quick", "--sizes", "300", "500", "--json", str(path), "--readme", str(readme)])
    return path, json.loads(path.read_text())


def test_all_systems_are_measured(measured: tuple[Path, dict[str, Any]]) -> None:
    _, results = measured
    assert [row["subscriptions"] for row in results["sizes"]] == [300, 500]
    for row in results["sizes"]:
        assert set(row["rates"]) == {"tamis", "scan", "duckdb", "polars"}
        assert min(row["rates"].values()) > 0


def test_the_readme_gets_the_table(measured: tuple[Path, dict[str, Any]]) -> None:
    path, results = measured
    text = (path.parent.parent / "README.md").read_text()
    assert headline.to_table(results) in text
    assert "before" not in text
    assert text.endswith(f"{headline.END}\n\nThe rest\n")


def test_the_page_gets_a_section_and_a_chart(measured: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, results = measured
    page.main([str(path.parent), str(tmp_path / "benchmarks.md")])
    assert headline.to_table(results) in (tmp_path / "benchmarks.md").read_text()
    drawing = ElementTree.parse(path.parent / "headline.svg").getroot()
    said = {element.text for element in drawing.iter()}
    assert {"Tamis", "scan", "DuckDB", "polars", "300 subscriptions"} <= said


def test_the_readme_has_the_published_figures() -> None:
    readme = (ROOT / "README.md").read_text()
    assert headline.BEGIN in readme
    if RESULTS.exists():
        section = headline.to_section(json.loads(RESULTS.read_text()))
        assert renewed(readme, headline.BEGIN, headline.END, section) == readme, "make bench-headline"


def test_rivals_know_every_operator() -> None:
    """On all values around the constants, DuckDB and polars find what a matcher finds."""
    operators = {"=": [3], "<": [3], "<=": [3], ">": [3], ">=": [3], "between": [2, 4], "in": [2, 4, 4]}
    predicates = [
        [{"attribute": "a", "operator": operator, "values": values}, {"attribute": "b", "operator": "=", "values": [1]}]
        for operator, values in operators.items()
    ]
    subscriptions = pa.table({"id": range(len(predicates)), "predicates": predicates})
    events = pa.table({"event": [[{"attribute": "a", "value": a}, {"attribute": "b", "value": 1}] for a in range(6)]})
    matcher = tamis.Matcher()
    matcher.add_table(subscriptions)
    wanted = {(pair["event"], pair["subscription"]) for pair in matcher.match_batch(events).to_pylist()}
    assert len(wanted) == 18
    duckdb, polars = DuckDB(subscriptions), Polars(subscriptions)
    duckdb.take(events)
    polars.take(pa.table({"a": range(6), "b": [1] * 6}))
    for answer in (duckdb.match(), polars.match()):
        assert {(pair["event"], pair["subscription"]) for pair in answer.to_pylist()} == wanted


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the marks"):
        renewed("# A page\n", headline.BEGIN, headline.END, "")
