"""The page of benchmarks is what the published results give."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks import page
from tests.markdown import ROOT


def test_the_page_is_made_from_the_results(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "results")
    page.main([str(tmp_path / "results"), str(tmp_path / "benchmarks.md")])
    assert (tmp_path / "benchmarks.md").read_text() == (ROOT / "docs" / "benchmarks.md").read_text()
