"""Pages of experiments: plots, verdicts, findings and a leaderboard."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

from tamis.experiments.catalog import find_figures
from tamis.experiments.figure import Figure, Value
from tamis.experiments.leaderboard import leaderboard_rows
from tamis.experiments.pages import write_pages
from tamis.experiments.plots import STYLES, drawn
from tamis.experiments.point import Point
from tamis.experiments.running import circumstances, keep
from tamis.experiments.scales import SMOKE, Scale


def _result(point: Point, scale: Scale, microseconds: float) -> dict[str, object]:
    kind = {"events": 4, "microseconds": microseconds, "matches": 1.0}
    figures = {"build_seconds": microseconds / 10, "index_bytes": 2**20, "kinds": {"planted": kind, "other": kind}}
    return {"point": point.to_dict(), "scale": scale._asdict(), **circumstances(), "figures": figures}


def _fill(folder: Path, figures: list[Figure], times: Mapping[str, float], failures: Mapping[str, str]) -> None:
    for figure in figures:
        for point in figure.points(SMOKE):
            result = _result(point, SMOKE, times.get(point.contender, 50.0))
            if point.contender in failures:
                del result["figures"]
                result["failure"] = failures[point.contender]
            keep(point, SMOKE, folder, result)


def test_pages_tell_claims_figures_verdicts_and_failures(tmp_path: Path) -> None:
    times = {"tamis": 1.0, "pst-hash": 2.0, "pst-bloom": 2.1, "op-index": 60.0, "scan": 100.0}
    _fill(tmp_path, find_figures("ps-tree", "6"), times, {"k-index": "takes more than 5 s"})
    pages = write_pages(tmp_path, SMOKE)
    assert [file.name for file in pages.files] == ["index.md", "ps-tree.md"]
    verdicts = {each.figure.number: each.verdict for each in pages.judged if each.verdict.held is not None}
    assert verdicts["6a"].held is True
    assert verdicts["6b"].held is False
    front, page = (file.read_text() for file in pages.files)
    assert "| [ps-tree 6a](ps-tree.md#figure-6) | Matching, dense: number of subscriptions | held |" in front
    assert "|  | all | least | most | workloads | PS-Tree (4) |" in front
    assert "| PSTHash | 2 | 2 | 2 | 4 | 2 |" in front
    assert "| SCAN | 100 | 100 | 100 | 4 | 100 |" in front
    assert "- Its figures: At 300K PSTBloom takes 84 % less than OpIndex" in page
    assert "- Verdict: **not held**." in page
    assert "<details><summary>Profile</summary>" in page.split("**Figure 6b.")[1]
    assert "| PSTBloom | 1,000 | 2.1 | 1 | 2.1 | 210 | 1,049 |" in page
    assert "<details><summary>Values: microseconds for an event</summary>" in page
    assert "Profile" not in page.split("**Figure 6a.")[1].split("**Figure 6b.")[0]
    assert "k-index at 1000: takes more than 5 s" in page
    assert "![Figure 6: Matching, dense: number of subscriptions](ps-tree-6.svg)" in page


def test_figures_without_a_number_have_names_and_a_profile_may_lack_columns(tmp_path: Path) -> None:
    (figure,) = find_figures("op-index", "13a")
    for point in figure.points(SMOKE):
        result = _result(point, SMOKE, 1.0)
        count = point.workload.subscriptions
        kind = {"events": 4, "microseconds": 1.0 * count, "matches": 1.0}
        figures = {"kinds": {"planted": kind, "other": kind}}
        keep(point, SMOKE, tmp_path, {**result, "figures": figures})
    _fill(tmp_path, find_figures("fabret", "sizes"), {}, {})
    front, page, other = (file.read_text() for file in write_pages(tmp_path, SMOKE).files)
    assert "Profile" in page
    assert "## Sizes" in other
    assert "(fabret.md#sizes)" in front


def test_contenders_with_few_workloads_stand_last_and_tell_how_few() -> None:
    times = {"tamis": 1.0, "be-tree": 2.0, "duckdb": 1.5}
    points = [
        point for paper in ("be-tree", "ps-tree") for figure in find_figures(paper) for point in figure.points(SMOKE)
    ]
    results = {point: _result(point, SMOKE, times.get(point.contender, 50.0)) for point in points}
    head, ours, *rows = leaderboard_rows(SMOKE, results)
    names = [row[0] for row in rows]
    assert head[5].startswith("PS-Tree (")
    assert ours[:4] == ["Tamis", "1", "1", "1"]
    assert names[0] == "BE-Tree"
    assert names.index("DuckDB") > names.index("Gryphon")
    assert rows[names.index("DuckDB")][6].startswith("1.5 (")


def test_lines_that_vary_an_option_are_not_in_the_leaderboard() -> None:
    """BE-Tree counts with the capacity that its paper takes, and not with those that two figures vary."""
    varying = [*find_figures("be-tree", "4"), *find_figures("be-tree", "table-4"), *find_figures("op-index", "7")]
    special = [point for figure in find_figures("be-tree", "10") for point in figure.points(SMOKE) if point.options]
    points = list(dict.fromkeys(point for figure in find_figures("be-tree") for point in figure.points(SMOKE)))
    usual = {point for figure in find_figures("be-tree", "5") for point in figure.points(SMOKE)}
    varied = {point for figure in varying for point in figure.points(SMOKE)} - usual
    slow = varied | {point for point in special if point.contender == "gryphon"}
    results = {point: _result(point, SMOKE, 1_000.0 if point in slow else 1.0) for point in [*points, *varied]}
    rows = {row[0]: row for row in leaderboard_rows(SMOKE, results)}
    assert len(slow) > 10
    assert rows["BE-Tree"][3] == rows["Gryphon"][3] == "1"
    assert rows["BE-Tree"][4] == rows["Tamis"][4]


def test_lines_that_are_drawn_together_have_different_looks() -> None:
    families: dict[tuple[str, str], set[str]] = {}
    for figure in find_figures():
        families.setdefault((figure.paper, figure.family), set()).update(figure.curves(SMOKE, {}))
    for family, lines in families.items():
        looks = [STYLES[line] for line in lines]
        assert len({look.colour for look in looks}) == len({look.marker for look in looks}) == len(lines), family


def test_a_page_names_the_machine_of_each_part_if_there_are_several(tmp_path: Path) -> None:
    _fill(tmp_path, find_figures("be-tree", "table-5"), {}, {})
    for file in (tmp_path / "points").iterdir():
        result = json.loads(file.read_text())
        file.write_text(json.dumps({**result, "machine": {**result["machine"], "model": "abacus"}}))
    front, page = (file.read_text() for file in write_pages(tmp_path, SMOKE).files)
    assert "Machine: " in front
    assert page.count("(abacus)") == 1
    _fill(tmp_path, find_figures("be-tree", "13"), {}, {})
    for file in (tmp_path / "points").glob("*adjusting*"):
        result = json.loads(file.read_text())
        parts = {str(step): result["figures"] for step in range(9)}
        file.write_text(json.dumps({**result, "figures": {"parts": parts}}))
    front, page = (file.read_text() for file in write_pages(tmp_path, SMOKE).files)
    assert "Machine of be-tree 13: " in front
    assert "Machine of be-tree table-5" in front
    assert "(abacus)" in page.split("## Table 5")[1]
    assert "(abacus)" not in page.split("## Table 5")[0]


def test_plots_have_each_line_once_and_are_always_the_same(tmp_path: Path) -> None:
    figures = find_figures("be-tree", "5")
    _fill(tmp_path, figures, {}, {"sift": "ended by signal 9"})
    write_pages(tmp_path, SMOKE)
    svg = (tmp_path / "be-tree-5.svg").read_text()
    texts = [each.text for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    for name in ("Tamis", "BE-Tree", "BE-B", "Gryphon"):
        assert texts.count(name) == 1
    # The legend has no line that was not measured.
    assert "SIFT" not in texts
    write_pages(tmp_path, SMOKE)
    assert (tmp_path / "be-tree-5.svg").read_text() == svg


def test_words_on_the_axis_become_bars() -> None:
    figure, _ = find_figures("be-tree", "table-5")
    curves = figure.curves(SMOKE, {})
    curves["BE-Tree"] = [Value("uniform", 2_000.0), Value("Zipf", 3_000.0)]
    svg = drawn([figure], [curves])
    for text in ("uniform", "Zipf", ">0<", ">1,000<", ">3,000<"):
        assert text in svg


def test_without_results_no_page_is_written(tmp_path: Path) -> None:
    assert write_pages(tmp_path, SMOKE).files == []
    assert not list(tmp_path.iterdir())
