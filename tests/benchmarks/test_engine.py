"""The engine's benchmark, on little data: it runs, and the page and the chart show what it measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import engine, engine_page, page
from benchmarks.matching import QUICK, Loaded, Scanned, events_of
from benchmarks.shapes import PLANTED_MATCHES, SHAPES, Variant, config_of
from benchmarks.svg import Group, bars, number_text
from tamis.engine.rows import concatenated
from tamis.workload import WorkloadConfig


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    path = tmp_path_factory.mktemp("bench") / "results" / "engine.json"
    engine.main(["--quick", "--json", str(path)])
    return path, json.loads(path.read_text())


def test_everything_is_measured(results: tuple[Path, dict[str, Any]]) -> None:
    _, measured = results
    assert {row["shape"] for row in measured["matching"]} >= {"dense", "alerts", "wide-12", "wide-12, 100 values"}
    for row in measured["matching"]:
        assert row["index_bytes_each"] > 0
        for figures in row["kinds"].values():
            assert figures["candidates"] >= 0
            assert min(figures[name] for name in ("engine", "scan", "batch", "batch_two_threads", "dict")) > 0
        if "planted" in row["kinds"]:
            assert row["kinds"]["planted"]["matches"] >= PLANTED_MATCHES
    turns = {row["shape"]: row["beside"] for row in measured["matching"] if "beside" in row}
    assert set(turns) == {row["shape"] for row in measured["matching"]}
    assert all(each["smallest"] for each in turns.values())
    assert {name for name, each in turns.items() if "narrow" in each} == {"wide-12", "wide-12, floats"}
    assert min(figures["other"] for figures in turns["wide-12"]["narrow"].values()) > 0
    assert measured["updates"]["one thread"]["changes_per_second"] > 0
    assert measured["updates"]["two threads, SQL text"]["changes_per_second"] > 0
    assert measured["updates"]["subscriptions"] == max(row["subscriptions"] for row in measured["matching"])
    assert measured["rules"]["kinds"]["planted"]["matches"] >= 1
    assert measured["seed"] == 1
    assert set(measured["versions"]) == {"numba", "numpy", "pyarrow"}


def test_results_become_a_page_with_a_chart(results: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, measured = results
    page.main([str(path.parent), str(tmp_path / "benchmarks.md")])
    text = (tmp_path / "benchmarks.md").read_text()
    assert engine_page.to_tables(measured) in text
    titles = ["Matching", "End to end", "Reading and naming", "Growth", "Wide domains"]
    for title in [*titles, "Changes while matching", "Detection rules"]:
        assert f"### {title}\n" in text
    chart = text.split("![Engine](")[1].split(")")[0]
    drawing = ElementTree.parse(tmp_path / chart).getroot()
    said = [element.text for element in drawing.iter() if element.tag.endswith("text")]
    assert {"dense", "alerts", "wide-12, floats"} <= set(said)


def test_what_was_not_measured_is_left_out(results: tuple[Path, dict[str, Any]]) -> None:
    _, measured = results
    few = {**measured, "matching": [], "updates": None}
    assert engine_page.to_tables(few).startswith("### Detection rules\n")
    ElementTree.fromstring(engine_page.to_chart(few))
    row = {**measured["matching"][0], "snapshot": {"save_seconds": 1.0, "load_seconds": 0.5, "bytes_each": 100.0}}
    assert "two threads, SQL text" in engine_page.updates_table(measured["updates"])
    older = {name: each for name, each in measured["updates"].items() if name != "two threads, SQL text"}
    assert "SQL text |" not in engine_page.updates_table(older)
    tables = engine_page.to_tables({**measured, "matching": [row], "rules": None})
    assert "| 1.00 | 0.50 |" in tables
    assert "### Growth" not in tables


def test_bars_grow_with_the_logarithm() -> None:
    text = bars("A < B", "logarithmic", ["one", "two"], [Group("x", [1.0, 10.0]), Group("y", [None, 100.0])])
    drawing = ElementTree.fromstring(text)
    widths = [
        float(each.get("width", 0))
        for each in drawing.iter()
        if each.tag.endswith("rect") and float(each.get("x", 0)) > 100 and float(each.get("y", 0)) > 60
    ]
    assert len(widths) == 3
    assert widths[2] == pytest.approx(2 * widths[1])
    assert [number_text(value) for value in (0.123, 1.26, 3, 12.34, 1234.5)] == ["0.12", "1.3", "3", "12.3", "1,234"]


def test_planted_events_match_as_many_at_every_size() -> None:
    for variants in SHAPES.values():
        for variant in variants:
            for size in (10_000, 1_000_000):
                config = config_of(variant, size, 1)
                assert config.subscriptions == size
                if isinstance(config, WorkloadConfig):
                    assert config.match_probability * size == pytest.approx(PLANTED_MATCHES)


def test_a_scan_that_differs_is_noticed() -> None:
    loaded = Loaded(config_of(Variant("dense", "dense", {}), 4_200, 1))
    segments, _, life, _, _ = loaded.engine.version
    scanned = Scanned(concatenated([segment.rows(life) for segment in segments]))
    batch = loaded.encoded(events_of(loaded.workload, "planted", QUICK.events))
    found = loaded.match(batch)
    slots = scanned.slots(batch, len(loaded.store.dimensions))
    assert [len(each) for each in slots] == found.counts.tolist()
    assert np.array_equal(np.sort(found.slots[: found.counts[0]]), slots[0])


def test_wrong_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        engine.main(["--shapes", "dens"])
    assert "dens" in capsys.readouterr().err
