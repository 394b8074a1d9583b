"""``tamis experiments`` as users run it."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from tamis.cli.main import main


def _run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["experiments", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_list_names_the_figures() -> None:
    status, out, _ = _run("list", "--paper", "op-index")
    assert status == 0
    assert "op-index  10a         Matching: number of subscriptions" in out
    assert "ps-tree" not in out


def test_an_estimate_measures_nothing(tmp_path: Path) -> None:
    status, out, _ = _run("run", "--scale", "paper", "--output", str(tmp_path), "--estimate")
    assert status == 0
    assert "points: about" in out
    assert "GiB of memory; the machine has" in out
    assert not list(tmp_path.iterdir())


def test_an_estimate_tells_how_many_points_do_not_fit(tmp_path: Path) -> None:
    """A hundred million subscriptions need more memory than any machine of ours has."""
    for number, scale, told in (("6a", "paper", True), ("6a", "smoke", False)):
        arguments = (
            "--paper",
            "ps-tree",
            "--figure",
            number,
            "--scale",
            scale,
            "--output",
            str(tmp_path),
            "--estimate",
        )
        out = _run("run", *arguments)[1]
        assert (re.search(r"; \d+ points too large for it, left out", out) is not None) is told


def test_wrong_names_are_errors(tmp_path: Path) -> None:
    assert "no paper 'fabre'" in _run("run", "--paper", "fabre", "--output", str(tmp_path))[2]
    assert "no scale 'huge'" in _run("run", "--scale", "huge", "--output", str(tmp_path))[2]
    status, _, said = _run("report", str(tmp_path))
    assert status == 1
    assert "has no results of scale laptop" in said


def test_a_figure_is_measured_and_reported(tmp_path: Path) -> None:
    """Table 5 has the fewest points; each starts a process."""
    arguments = (
        "run",
        "--paper",
        "be-tree",
        "--figure",
        "table-5",
        "--scale",
        "smoke",
        "--jobs",
        "2",
        "--output",
        str(tmp_path),
    )
    status, out, said = _run(*arguments)
    assert status == 0
    assert "be-tree table-5" in out
    assert "[2/2, 0 s left] be-tree, 500 subscriptions" in said
    assert (tmp_path / "be-tree.md").exists()
    status, again, said = _run(*arguments)
    assert (status, again) == (0, out)
    assert "[" not in said
    assert _run("report", str(tmp_path), "--scale", "smoke") == (0, out, "")
