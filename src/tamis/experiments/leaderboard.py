"""The leaderboard: how many times as long as our engine each contender takes for an event.

             all   least   most   workloads   PS-Tree   BE-Tree ...
BE-Tree     5.37    0.87     83         138       7.1       4.9
Static      0.67    0.34    2.5          11
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import Any, NamedTuple

from tamis.experiments.catalog import PAPERS, find_figures
from tamis.experiments.claims import shown_number
from tamis.experiments.contenders import find_contender
from tamis.experiments.figure import Spot
from tamis.experiments.leaf_capacity import guided_options
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale

_SHARE = 0.1
"""Contenders that were measured on a smaller share of the workloads stand below the others."""


class Standing(NamedTuple):
    """A contender beside our engine."""

    label: str
    ratios: dict[str, list[float]]
    """Paper -> the contender's time as a multiple of our engine's, for each workload that both were measured on."""

    @property
    def all(self) -> list[float]:
        return [ratio for there in self.ratios.values() for ratio in there]

    @property
    def mean(self) -> float:
        return _mean(self.all)


def standings(scale: Scale, results: Mapping[Point, Mapping[str, Any]]) -> tuple[dict[str, int], list[Standing]]:
    """The number of our engine's workloads in each paper, and all other contenders, by their mean."""
    times = {paper: _times(paper, scale, results) for paper in PAPERS}
    counts = {paper: len(there["tamis"]) for paper, there in times.items() if "tamis" in there}
    found: dict[str, dict[str, list[float]]] = {}
    for paper in counts:
        ours = times[paper]["tamis"]
        for name, there in times[paper].items():
            ratios = [there[workload] / ours[workload] for workload in there if workload in ours]
            if name != "tamis" and ratios:
                found.setdefault(name, {})[paper] = ratios
    rows = [Standing(find_contender(name).label, ratios) for name, ratios in found.items()]
    return counts, sorted(rows, key=lambda row: row.mean)


def _times(paper: str, scale: Scale, results: Mapping[Point, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Contender -> workload -> microseconds of an event, in the figures of a paper."""
    times: dict[str, dict[str, float]] = {}
    spots = [spot for figure in find_figures(paper) for spot in figure.seeded(scale)]
    for point in dict.fromkeys(spot.point for spot in spots if _is_usual(spot)):
        figures = results.get(point, {}).get("figures")
        if figures is not None:
            kinds = figures["kinds"]
            workload = str(sorted(point.to_dict()["workload"].items()))
            times.setdefault(point.contender, {})[workload] = kinds.get("planted", kinds["other"])["microseconds"]
    return times


def _is_usual(spot: Spot) -> bool:
    """Whether a spot is the time of a contender as its paper sets it. Lines that vary an option have another name or options."""
    point = spot.point
    usual = ((), guided_options(point.contender, point.workload))
    named = spot.line == find_contender(point.contender).label
    return point.task == "matching" and named and point.options in usual


def leaderboard_rows(scale: Scale, results: Mapping[Point, Mapping[str, Any]]) -> list[list[str]]:
    """A head and rows, or nothing if our engine was not measured. Contenders with few workloads come last."""
    counts, rows = standings(scale, results)
    if not rows:
        return []
    total = sum(counts.values())
    titles = [f"{PAPERS[paper].title.split(':')[1].split(',')[0].strip()} ({count})" for paper, count in counts.items()]
    ours = ["1"] * 3 + [str(total)] + ["1"] * len(counts)
    table = [["", "all", "least", "most", "workloads", *titles], [find_contender("tamis").label, *ours]]
    for row in sorted(rows, key=lambda row: len(row.all) < _SHARE * total):
        cells = [_cell(row.ratios.get(paper, []), count) for paper, count in counts.items()]
        bounds = [shown_number(number) for number in (row.mean, min(row.all), max(row.all))]
        table.append([row.label, *bounds, str(len(row.all)), *cells])
    return table


def _cell(ratios: list[float], count: int) -> str:
    """The mean of a paper's workloads, and how many there are if they are fewer than ours."""
    if not ratios:
        return ""
    return shown_number(_mean(ratios)) + (f" ({len(ratios)})" if len(ratios) < count else "")


def _mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, ratios)) / len(ratios))
