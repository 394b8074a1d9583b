"""Running points: results are kept, checked and never mixed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from _pytest.mark import ParameterSet

import tamis
from tamis.errors import ExperimentError
from tamis.experiments import measuring, running, tasks
from tamis.experiments.aging import aging_store
from tamis.experiments.catalog import find_figures
from tamis.experiments.contenders import CONTENDERS
from tamis.experiments.figure import MEMORY, Figure
from tamis.experiments.filling import Pairs, TableRows
from tamis.experiments.point import Point
from tamis.experiments.running import Progress, need, run
from tamis.experiments.scales import LAPTOP, SMOKE, Scale
from tamis.kernels.notice import notice
from tamis.matcher.matcher import matcher_over
from tamis.matcher.paper_store import PaperStore
from tamis.workload import generate, preset

TINY = SMOKE._replace(least=100, most=100)
DENSE = preset("ps-tree-dense", subscriptions=100, match_probability=0.05)


@pytest.mark.parametrize("contender", CONTENDERS)
def test_every_contender_is_measured_and_agrees_with_a_scan(contender: str, tmp_path: Path) -> None:
    workload = replace(DENSE, dimensions=40)
    point = Point(contender, workload)
    (result,) = run([point], TINY, tmp_path, apart=False).values()
    figures = result["figures"]
    assert figures["kinds"]["planted"]["matches"] >= 5
    assert all(kind["microseconds"] > 0 for kind in figures["kinds"].values())
    assert figures["build_seconds"] > 0


def test_cells_of_pst_hash_as_in_the_paper_hold_nearly_all_subscriptions() -> None:
    """Figure 13a, without equalities."""
    table = generate(preset("ps-tree-dense", subscriptions=300, equality_ratio=0.0)).subscriptions()
    small = {}
    for name in ("pst-hash", "pst-hash-cells"):
        matcher = tamis.Matcher(index="pst-hash", options=dict(CONTENDERS[name].options))
        matcher.add_table(table)
        small[name] = matcher.stats()["index_stats"]["small"]
    assert small["pst-hash"] > 20
    assert small["pst-hash-cells"] == 0
    (figure,) = find_figures("ps-tree", "13a")
    assert set(small) < {point.contender for point in figure.points(TINY)}


def _figures() -> list[ParameterSet]:
    """All figures. In the suite, the first of each family; the others in the long form."""
    families: set[str] = set()
    chosen = []
    for figure in find_figures():
        family = f"{figure.paper} {figure.family}"
        chosen.append(pytest.param(figure, id=figure.name, marks=[pytest.mark.long] if family in families else []))
        families.add(family)
    return chosen


@pytest.mark.parametrize("figure", _figures())
def test_every_figure_is_measured(figure: Figure, tmp_path: Path) -> None:
    """Of each figure one point, at the last place: of our engine, or else of an index."""
    points = {point.contender: point for point in figure.points(TINY)}
    few = points.get("tamis") if figure.metric is not MEMORY else None
    point = few or next(point for name, point in points.items() if name not in ("tamis", "scan"))
    curves = figure.curves(TINY, run([point], TINY, tmp_path, apart=False))
    assert any(value.number is not None for values in curves.values() for value in values)


def test_an_aging_store_is_never_built_again() -> None:
    """Its tables would be chosen anew, and those of No-change are frozen."""
    store = aging_store(Point("dynamic", DENSE, options=(("max_schema", 2),)))
    matcher: tamis.Matcher[int] = matcher_over(store)
    assert isinstance(store, PaperStore)
    index = store.index
    for first in range(0, 3_000, 100):
        matcher.add_many(range(first, first + 100), [f"a = {number}" for number in range(first, first + 100)])
        for number in range(max(first - 300, 0), max(first - 200, 0)):
            matcher.remove(number)
    assert store.index is index


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(TableRows):
        def scanned(self, events: pa.Table) -> Pairs:
            return np.append(super().scanned(events), 7)

    monkeypatch.setattr(tasks, "TableRows", Wrong)
    with pytest.raises(ExperimentError, match="the answers are not equal"):
        tasks.measured(Point("tamis", DENSE), TINY)


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    points = [Point(name, DENSE) for name in ("scan", "tamis")]
    run(points[:1], TINY, tmp_path, apart=False)
    told: list[Progress] = []
    results = run(points, TINY, tmp_path, told.append, apart=False)
    assert [progress.point.contender for progress in told] == ["tamis"]
    assert told[0].done == told[0].points == 2
    assert set(results) == set(points)
    assert run(points, TINY, tmp_path, told.append) == results
    assert len(told) == 1


def test_results_of_another_machine_are_not_mixed(tmp_path: Path) -> None:
    point = Point("scan", DENSE)
    run([point], TINY, tmp_path, apart=False)
    (file,) = (tmp_path / "points").iterdir()
    result = json.loads(file.read_text())
    file.write_text(json.dumps({**result, "machine": {"processor": "abacus"}}))
    with pytest.raises(ExperimentError, match="measured with another machine"):
        run([point], TINY, tmp_path, apart=False)
    file.write_text("half a")
    with pytest.raises(ExperimentError, match="is not the result of a point"):
        run([point], TINY, tmp_path, apart=False)


def test_a_point_that_does_not_fit_is_left_out(tmp_path: Path) -> None:
    point = Point("k-index", replace(DENSE, subscriptions=10**10))
    (result,) = run([point], LAPTOP, tmp_path).values()
    assert "GiB; there are" in result["failure"]
    assert need(point, LAPTOP).bytes > 10**12


def test_a_point_has_its_own_process_and_may_fail_or_take_too_long(tmp_path: Path) -> None:
    measured, wrong = Point("scan", DENSE), Point("scan", DENSE, options=(("cap", 3),))
    results = run([measured, wrong], TINY, tmp_path / "a")
    assert results[measured]["figures"]["peak_bytes"] > 0
    assert "the index 'scan' has no option 'cap'" in results[wrong]["failure"]
    hurried = TINY._replace(limit=-running.need(measured, TINY).seconds + 0.01)
    (late,) = run([measured], hurried, tmp_path / "b").values()
    assert "takes more than" in late["failure"]


def test_what_is_compiled_while_measuring_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def compiling(point: Point, _: Scale) -> tasks.Figures:
        sizes.append(point.workload.subscriptions)
        notice.spent += len(sizes) < 3
        return {"build_seconds": len(sizes)}

    monkeypatch.setattr(measuring, "measured", compiling)
    many = Point("be-tree", replace(DENSE, subscriptions=1_000))
    assert measuring.measured_warm(many, TINY)["build_seconds"] == 3
    assert measuring.measured_warm(many, TINY)["build_seconds"] == 5
    assert sizes == [500, 1_000, 1_000, 500, 1_000]


def test_points_of_other_seeds_are_other_points() -> None:
    (figure,) = find_figures("ps-tree", "6a")
    assert set(figure.points(SMOKE)).isdisjoint(figure.points(SMOKE._replace(seed=2)))


def test_a_point_survives_its_file() -> None:
    point = Point("be-tree", DENSE, options=(("max_cap", 7),))
    assert Point.from_dict(json.loads(json.dumps(point.to_dict()))) == point
