"""Pages of experiments: plots, verdicts, findings and a leaderboard."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

from tamis.experiments.catalog import find_figures
from tamis.experiments.figure import Figure, Value
from tamis.experiments.pages import write_pages
from tamis.experiments.plots import drawn
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
    times = {"tamis": 1.0, "pst-hash": 2.0, "pst-bloom": 3.0, "op-index": 60.0, "scan": 100.0}
    _fill(tmp_path, find_figures("ps-tree", "6"), times, {"k-index": "takes more than 5 s"})
    pages = write_pages(tmp_path, SMOKE)
    assert [file.name for file in pages.files] == ["index.md", "ps-tree.md"]
    verdicts = {each.figure.number: each.verdict for each in pages.judged if each.verdict.held is not None}
    assert verdicts["6a"].held is True
    assert verdicts["6b"].held is False
    front, page = (file.read_text() for file in pages.files)
    assert "| [ps-tree 6a](ps-tree.md#figure-6) | Matching, dense: number of subscriptions | held |" in front
    assert "| PSTHash | 2 | 2 | 2 |" in front
    assert "| SCAN | 100 | 100 | 100 |" in front
    assert "- Its figures: At 300K PSTBloom takes 84 % less than OpIndex" in page
    assert "- Verdict: **not held**." in page
    assert "<details><summary>Profile</summary>" in page.split("**Figure 6b.")[1]
    assert "| PSTBloom | 1,000 | 3 | 1 |  |  |  | 300 | 1,049 |" in page
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


def test_plots_have_each_line_once_and_are_always_the_same(tmp_path: Path) -> None:
    figures = find_figures("be-tree", "5")
    _fill(tmp_path, figures, {}, {"sift": "ended by signal 9"})
    write_pages(tmp_path, SMOKE)
    svg = (tmp_path / "be-tree-5.svg").read_text()
    texts = [each.text for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    for name in ("Tamis", "BE-Tree", "BE-B", "Gryphon"):
        assert texts.count(name) == 1
    write_pages(tmp_path, SMOKE)
    assert (tmp_path / "be-tree-5.svg").read_text() == svg


def test_words_on_the_axis_become_bars() -> None:
    figure, _ = find_figures("be-tree", "table-5")
    curves = figure.curves(SMOKE, {})
    curves["BE-Tree"] = [Value("uniform", 2.0), Value("Zipf", 3.0)]
    svg = drawn([figure], [curves])
    assert "uniform" in svg
    assert "Zipf" in svg


def test_without_results_no_page_is_written(tmp_path: Path) -> None:
    assert write_pages(tmp_path, SMOKE).files == []
    assert not list(tmp_path.iterdir())
