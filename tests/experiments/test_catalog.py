"""The catalog: every figure of the papers, at every scale."""

from __future__ import annotations

from collections import Counter

import pytest

from tamis.errors import ExperimentError
from tamis.experiments.catalog import PAPERS, find_figures
from tamis.experiments.figure import Curves, Figure
from tamis.experiments.findings import FINDINGS
from tamis.experiments.leaf_capacity import guided_capacity
from tamis.experiments.running import need_of_all
from tamis.experiments.scales import LAPTOP, PAPER, SCALES, SMOKE, find_scale
from tamis.papers.be_tree.tree import BETreeOptions
from tamis.workload import preset


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


def test_be_trees_of_their_own_paper_have_the_capacity_of_its_table_4() -> None:
    table = {0.0001: 5, 0.001: 5, 0.01: 20, 0.03: 20, 0.05: 20, 0.09: 20}
    seen = set()
    for figure in find_figures("be-tree"):
        for point in figure.points(PAPER):
            if figure.number not in ("4", "table-4") and point.contender in ("be-tree", "be-tree-b"):
                capacity = point.index_options.get("max_cap", BETreeOptions().max_cap)
                # The texts of figure 12 have no share.
                assert capacity == table[getattr(point.workload, "match_probability", 0.0001)], figure.name
                seen.add((point.contender, capacity))
    assert seen == {("be-tree", 5), ("be-tree", 20), ("be-tree-b", 5), ("be-tree-b", 20)}


def test_figure_4_has_the_capacities_that_table_4_names() -> None:
    for figure in [*find_figures("be-tree", "4"), *find_figures("be-tree", "table-4")]:
        for values in figure.curves(LAPTOP, {}).values():
            assert [value.place for value in values] == [5, 20, 80, 160, 320]


@pytest.mark.parametrize(("share", "capacity"), [(0.0099, 5), (0.01, 20), (0.0999, 20), (0.1, 160), (0.5, 160)])
def test_the_capacity_follows_the_share_of_matches(share: float, capacity: int) -> None:
    assert guided_capacity(preset("be-tree", match_probability=share)) == capacity


def test_be_trees_of_other_papers_keep_small_leaves() -> None:
    others = [figure for figure in find_figures() if figure.paper != "be-tree"]
    named = [
        figure.name for figure in others if any("max_cap" in dict(point.options) for point in figure.points(PAPER))
    ]
    # These two vary the capacity.
    assert named == ["op-index 7a", "op-index 7b"]


def test_a_family_is_found_by_its_number() -> None:
    assert [figure.number for figure in find_figures("ps-tree", "6")] == ["6a", "6b"]
    assert [figure.number for figure in find_figures("ps-tree", "6a")] == ["6a"]
    assert [figure.number for figure in find_figures("fabret", "aging")] == [
        "aging-steady",
        "aging-schema",
        "aging-skew",
    ]
    assert [figure.number for figure in find_figures("ps-tree", "table-2")] == ["table-2a", "table-2b", "table-2c"]
    assert len(find_figures("be-tree")) == len(PAPERS["be-tree"].figures)


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
