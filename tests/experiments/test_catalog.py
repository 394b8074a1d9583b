"""The catalog: every figure of the papers, at every scale."""

from __future__ import annotations

from collections import Counter

import pytest

from tamis.errors import ExperimentError
from tamis.experiments.catalog import PAPERS, find_figures
from tamis.experiments.figure import Curves, Figure
from tamis.experiments.findings import FINDINGS
from tamis.experiments.running import need_of_all
from tamis.experiments.scales import LAPTOP, PAPER, SCALES, SMOKE, find_scale


def _id(figure: Figure) -> str:
    return figure.name


@pytest.mark.parametrize("figure", find_figures(), ids=_id)
def test_every_figure_has_spots_at_every_scale(figure: Figure) -> None:
    for scale in SCALES.values():
        points = figure.points(scale)
        assert points
        assert all(point.workload.subscriptions <= scale.most for point in points)
    assert all(word.endswith(".") for word in (figure.claim, figure.says))
    # Without results nothing is said to hold.
    assert figure.judge(figure.curves(SMOKE, {})).held is not True
    assert figure.judge(Curves()).held is not True


def test_a_figure_is_there_once_and_each_finding_has_its_figure() -> None:
    names = Counter(figure.name for figure in find_figures())
    assert set(names.values()) == {1}
    assert set(FINDINGS) <= set(names)


def test_the_papers_sizes_are_those_of_the_papers() -> None:
    sizes = {
        figure.name: sorted({point.workload.subscriptions for point in figure.points(PAPER)})
        for figure in find_figures()
    }
    assert sizes["ps-tree 6a"] == [300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000]
    assert sizes["be-tree 5b"] == [100_000, 300_000, 500_000, 700_000, 1_000_000]
    assert sizes["op-index 10a"] == [1_000_000, 10_000_000, 20_000_000, 30_000_000, 40_000_000]


def test_figures_share_points_so_that_a_laptop_needs_little_more_than_an_hour() -> None:
    all_points = [point for figure in find_figures() for point in figure.points(LAPTOP)]
    different = list(dict.fromkeys(all_points))
    assert len(different) < 0.9 * len(all_points)
    assert len({point.name for point in different}) == len(different)
    assert need_of_all(different, LAPTOP).bytes < 12 * 2**30


def test_a_family_is_found_by_its_number() -> None:
    assert [figure.number for figure in find_figures("ps-tree", "6")] == ["6a", "6b"]
    assert [figure.number for figure in find_figures("ps-tree", "6a")] == ["6a"]
    assert [figure.number for figure in find_figures("fabret", "aging")] == [
        "aging-steady",
        "aging-schema",
        "aging-skew",
    ]
    assert [figure.number for figure in find_figures("ps-tree", "table-2")] == ["table-2a", "table-2b", "table-2c"]
    assert len(find_figures("be-tree")) == len(PAPERS["be-tree"][1])


@pytest.mark.parametrize(
    ("paper", "number", "message"),
    [
        ("ps-three", None, "no paper 'ps-three'; did you mean 'ps-tree'"),
        ("ps-tree", "66a", "ps-tree has no figure '66a'; did you mean '6a'"),
        (None, "6a", "figure 6a of which paper"),
    ],
)
def test_an_unknown_figure_is_an_error(paper: str | None, number: str | None, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        find_figures(paper, number)
    assert message in str(caught.value)


def test_an_unknown_scale_is_an_error() -> None:
    with pytest.raises(ExperimentError, match="no scale 'lap'"):
        find_scale("lap")
