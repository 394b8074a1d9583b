"""The published report: its pages and plots are what the published results give."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.experiments.archive import with_archived
from tamis.experiments.catalog import PAPERS, find_figures
from tamis.experiments.findings import finding_of
from tamis.experiments.pages import judged_papers, plots_of, texts_of
from tamis.experiments.scales import LAPTOP

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "experiments"
RESULTS = with_archived({}, LAPTOP, ROOT / "docs" / "results")
JUDGED = judged_papers(LAPTOP, RESULTS)
AGAIN = "the pages are not those of the results: run `make report`"


def test_all_figures_were_measured() -> None:
    assert {paper: len(there) for paper, there in JUDGED.items()} == {
        paper: len(find_figures(paper)) for paper in PAPERS
    }


def test_the_pages_are_made_of_the_published_results() -> None:
    texts = texts_of(JUDGED, RESULTS, LAPTOP)
    assert set(texts) == {file.name for file in PAGES.glob("*.md")}
    for name, text in texts.items():
        assert (PAGES / name).read_text() == text, AGAIN


def test_each_claim_that_did_not_hold_has_a_finding() -> None:
    lacking = [
        each.figure.name
        for there in JUDGED.values()
        for each in there
        if each.verdict.held is False and not finding_of(each.figure.name)
    ]
    assert not lacking


@pytest.mark.long
def test_the_plots_are_made_of_the_published_results() -> None:
    plots = plots_of(JUDGED)
    assert set(plots) == {file.name for file in PAGES.glob("*.svg")}
    for name, plot in plots.items():
        assert (PAGES / name).read_text() == plot, AGAIN
