"""Archives: all results of a paper in one file, small enough to be kept beside the pages that were made from it.

FOLDER/experiments-be-tree.json
    scale       the name of the scale
    runs        machines and versions, each once
    measured    a line for each workload: its run, its parameters, and the figures of all contenders
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tamis.errors import ExperimentError
from tamis.experiments.catalog import PAPERS, find_figures
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale
from tamis.storage.replacing import replacing_target

Results: TypeAlias = Mapping[Point, Mapping[str, Any]]
"""Point -> its result, as its own file has it, or without the details of the scale."""

_RUN = ("machine", "versions", "tamis")
"""What all results of a run have in common."""
_OF_POINT = ("contender", "task", "options")
_MEASURED = ("figures", "failure")


def archive_file(folder: Path, paper: str) -> Path:
    return folder / f"experiments-{paper}.json"


def with_archived(results: Results, scale: Scale, folder: Path) -> dict[Point, Mapping[str, Any]]:
    """The results of papers that were measured whole, and the archived ones of other papers. Papers share no points."""
    whole: dict[Point, Mapping[str, Any]] = {}
    for paper in PAPERS:
        points = points_of(paper, scale)
        archived = {} if _is_whole(points, results) else read_archive(archive_file(folder, paper), points, scale)
        there = archived or results
        whole.update((point, there[point]) for point in points if point in there)
    return whole


def write_archives(results: Results, scale: Scale, folder: Path) -> list[Path]:
    """Write the archives of the papers that were measured whole."""
    written = []
    for paper in PAPERS:
        points = points_of(paper, scale)
        if _is_whole(points, results):
            written.append(archive_file(folder, paper))
            _write_archive(written[-1], [results[point] for point in points], scale)
    return written


def points_of(paper: str, scale: Scale) -> list[Point]:
    """The points of all figures of a paper, each once."""
    return list(dict.fromkeys(point for figure in find_figures(paper) for point in figure.points(scale)))


def read_archive(file: Path, points: Iterable[Point], scale: Scale) -> dict[Point, dict[str, Any]]:
    """The archived results of some points. Without a file of this scale there are none.

    Raises
    ------
    ExperimentError
        If the file is not an archive.
    """
    try:
        kept = json.loads(file.read_text())
        found = _results_by_name(kept) if kept["scale"] == scale.name else {}
    except FileNotFoundError:
        return {}
    except (ValueError, LookupError, TypeError) as error:
        raise ExperimentError(
            f"{file} is not an archive of results: {error!r}. Hint: tamis experiments run writes it again"
        ) from None
    return {point: found[point.name] for point in points if point.name in found}


def _is_whole(points: Iterable[Point], results: Results) -> bool:
    return all(point in results for point in points)


def _write_archive(file: Path, results: Iterable[Mapping[str, Any]], scale: Scale) -> None:
    """Write results of points, where what several have in common stands once."""
    runs: list[dict[str, Any]] = []
    groups: dict[str, dict[str, Any]] = {}
    for result in results:
        run = {name: result[name] for name in _RUN}
        if run not in runs:
            runs.append(run)
        group = {"run": runs.index(run), "workload": result["point"]["workload"]}
        points = groups.setdefault(json.dumps(group), {**group, "points": []})["points"]
        measured = {name: result[name] for name in _MEASURED if name in result}
        points.append({**{name: result["point"][name] for name in _OF_POINT}, **measured})
    lines = ",\n".join(json.dumps(group) for group in groups.values())
    head = json.dumps({"scale": scale.name, "runs": runs}, indent=1).removesuffix("\n}")
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing_target(file, durable=False) as stream:
        stream.write(f'{head},\n "measured": [\n{lines}\n ]\n}}\n'.encode())


def _results_by_name(kept: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Name of a point -> its result."""
    results = {}
    for group in kept["measured"]:
        for measured in group["points"]:
            point = {name: measured[name] for name in _OF_POINT} | {"workload": group["workload"]}
            figures = {name: measured[name] for name in _MEASURED if name in measured}
            results[Point.from_dict(point).name] = {"point": point, **kept["runs"][group["run"]], **figures}
    return results
