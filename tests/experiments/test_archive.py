"""Archives: the results of whole papers, kept in one file each, and the pages that are made from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tamis.errors import ExperimentError
from tamis.experiments.archive import archive_file, points_of
from tamis.experiments.pages import write_pages
from tamis.experiments.point import Point
from tamis.experiments.running import circumstances, keep
from tamis.experiments.scales import LAPTOP, SMOKE


def _keep(point: Point, folder: Path, microseconds: float, model: str = "abacus") -> None:
    """Keep a result that has something of everything. Times are not round, so that digits would be missed."""
    about = circumstances()
    run = {**about, "machine": {**about["machine"], "model": model}}
    kind = {"events": 4, "microseconds": microseconds / 7, "matches": 1.0, "predicates": 2.5}
    figures = {"build_seconds": microseconds / 11, "index_bytes": 2**20, "kinds": {"planted": kind, "other": kind}}
    measured: dict[str, Any] = {"figures": figures}
    if point.contender == "scan":
        measured = {"failure": "takes more than 5 s"}
    keep(point, SMOKE, folder, {"point": point.to_dict(), "scale": SMOKE._asdict(), **run, **measured})


def _pages(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir() if file.suffix in (".md", ".svg")}


def test_pages_of_an_archive_are_those_of_the_points(tmp_path: Path) -> None:
    run, archive = tmp_path / "run", tmp_path / "archive"
    for number, point in enumerate(points_of("op-index", SMOKE)):
        _keep(point, run, 3.0 + number)
    write_pages(run, SMOKE, archive=archive)
    assert [file.name for file in archive.iterdir()] == ["experiments-op-index.json"]
    write_pages(archive, SMOKE)
    assert _pages(archive) == _pages(run)
    assert "op-index.md" in _pages(run)
    # Another scale has no results there.
    assert write_pages(archive, LAPTOP).files == []


def test_an_archive_holds_what_is_common_once(tmp_path: Path) -> None:
    for point in points_of("op-index", SMOKE):
        _keep(point, tmp_path, 3.0, "abacus" if point.contender == "tamis" else "slide rule")
    write_pages(tmp_path, SMOKE, archive=tmp_path)
    text = archive_file(tmp_path, "op-index").read_text()
    assert text.count("slide rule") == text.count("abacus") == 1
    kept = json.loads(text)
    assert len(kept["runs"]) == 2
    points = points_of("op-index", SMOKE)
    assert sum(len(group["points"]) for group in kept["measured"]) == len(points)
    assert len(kept["measured"]) < len(points) / 2
    # A line for each workload, so that changes can be read.
    assert text.count("\n") < len(kept["measured"]) + 50


def test_a_run_of_one_paper_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    first, second, archive = tmp_path / "first", tmp_path / "second", tmp_path / "archive"
    for paper in ("op-index", "tatbul"):
        for point in points_of(paper, SMOKE):
            _keep(point, first, 3.0)
    points = points_of("op-index", SMOKE)
    for point in points:
        _keep(point, second, 4.0, "slide rule")
    write_pages(first, SMOKE, archive=archive)
    tatbul = archive_file(archive, "tatbul").read_bytes()
    pages = write_pages(second, SMOKE, archive=archive)
    assert [file.name for file in pages.files] == ["index.md", "op-index.md", "tatbul.md"]
    assert archive_file(archive, "tatbul").read_bytes() == tatbul
    assert "slide rule" in (second / "op-index.md").read_text()
    assert "abacus" not in (second / "op-index.md").read_text()
    assert "abacus" in (second / "tatbul.md").read_text()
    # A paper of which a point is missing is not archived: its figures are from before.
    before = archive_file(archive, "op-index").read_bytes()
    for file in (second / "points").glob("*op-index-bs*"):
        file.unlink()
    for point in points:
        if point.contender == "tamis":
            _keep(point, second, 5.0, "cold machine")
    write_pages(second, SMOKE, archive=archive)
    assert archive_file(archive, "op-index").read_bytes() == before
    assert "cold machine" not in (second / "op-index.md").read_text()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"scale": "smoke", "runs": [], "measured": [{"points": [{}]}]}'])
def test_a_file_that_is_no_archive_is_an_error(text: str, tmp_path: Path) -> None:
    archive_file(tmp_path, "tatbul").write_text(text)
    with pytest.raises(ExperimentError, match=r"experiments-tatbul\.json is not an archive of results: .* Hint: "):
        write_pages(tmp_path, SMOKE)
