"""Pages of experiments in Markdown: one for each paper, and a front page with what held and a leaderboard.

FOLDER/index.md             what was run, on which machine, verdicts, leaderboard
FOLDER/ps-tree.md           each figure: plot, claim, the paper's figures, ours, verdict
FOLDER/ps-tree-6.svg        its plots
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

from tamis.experiments.catalog import PAPERS, find_figures
from tamis.experiments.contenders import CONTENDERS, find_contender
from tamis.experiments.figure import Curves, Figure, Verdict
from tamis.experiments.findings import finding_of
from tamis.experiments.plots import drawn
from tamis.experiments.point import Point
from tamis.experiments.profiles import Profile, profile_of
from tamis.experiments.running import results_of
from tamis.experiments.scales import Scale
from tamis.storage.replacing import replacing_target

_ABOUT = (
    "`tamis experiments` repeats the figures of the papers whose indexes Tamis has, on the papers' own workloads. Our engine "
    "stands beside the papers' indexes."
)
_READING = (
    "A claim of an order is held if the order is the same. A claim with a figure is held from half of the paper's lead on, "
    "counted on a logarithmic scale: 89 % less is a lead of 9 times, and 3 times is enough. Claims that join several are held "
    "if all of them are. All times are of one thread, on events that are encoded already; compiling is not counted. The "
    "answers of each point were compared with those of a scan on some events."
)
_COMPARED = (
    "How many times as long as our engine each contender takes for an event: geometric mean, least and most over all workloads "
    "that both were measured on."
)
_SYMBOLS = {"held": "held", "not held": "**not held**", "not tested": "*not tested*"}


class Judged(NamedTuple):
    """A figure with what was measured of it."""

    figure: Figure
    curves: Curves
    verdict: Verdict
    profile: Profile | None


class Pages(NamedTuple):
    """The pages that were written."""

    files: list[Path]
    """The front page first."""
    judged: list[Judged]


def write_pages(folder: Path, scale: Scale, pages: Path | None = None) -> Pages:
    """Write the pages of the results that a folder has, there or into the folder `pages`. Without any, nothing is written."""
    target = folder if pages is None else pages
    points = [point for figure in find_figures() for point in figure.points(scale)]
    results = results_of(points, scale, folder)
    judged = {paper: there for paper in PAPERS if (there := _judged(paper, scale, results))}
    if not judged:
        return Pages([], [])
    front = target / "index.md"
    files = [front]
    for paper, there in judged.items():
        files.append(_write(target / f"{paper}.md", _paper_page(paper, there, scale)))
        for family, group in _families(there):
            plot = drawn([each.figure for each in group], [each.curves for each in group])
            _write(target / f"{paper}-{family}.svg", plot)
    _write(front, _front_page(judged, results, scale))
    return Pages(files, [each for there in judged.values() for each in there])


def _judged(paper: str, scale: Scale, results: Mapping[Point, Mapping[str, Any]]) -> list[Judged]:
    """The figures of a paper that were measured whole."""
    judged = []
    for figure in find_figures(paper):
        if all(point in results for point in figure.points(scale)):
            curves = figure.curves(scale, results)
            judged.append(Judged(figure, curves, figure.judge(curves), profile_of(figure, scale, results)))
    return judged


def _families(judged: Sequence[Judged]) -> list[tuple[str, list[Judged]]]:
    ordered = sorted(judged, key=lambda each: [other.figure.family for other in judged].index(each.figure.family))
    return [(family, list(group)) for family, group in groupby(ordered, key=lambda each: each.figure.family)]


def _paper_page(paper: str, judged: Sequence[Judged], scale: Scale) -> str:
    title, _ = PAPERS[paper]
    lines = [
        f"# {title}",
        "",
        f"Scale: {scale.name}. How to read this page, the machine and all verdicts: [Experiments](index.md).",
        "",
    ]
    for family, group in _families(judged):
        name = _named(family)
        lines += [f"## {name}", "", f"![{name}: {group[0].figure.title}]({paper}-{family}.svg)", ""]
        for each in group:
            lines += _figure_lines(each)
    return "\n".join(lines).rstrip() + "\n"


def _named(number: str) -> str:
    if number.startswith("table-"):
        return f"Table {number.removeprefix('table-')}"
    return f"Figure {number}" if any(letter.isdigit() for letter in number) else number.replace("-", " ").capitalize()


def _figure_lines(judged: Judged) -> list[str]:
    figure, verdict = judged.figure, judged.verdict
    lines = [
        f"**{_named(figure.number)}. {figure.title}.**",
        "",
        f"- The paper claims: {figure.claim}",
        f"- Its figures: {figure.says}",
        f"- Ours: {verdict.ours}.",
        f"- Verdict: {_SYMBOLS[verdict.word]}.",
    ]
    found = finding_of(figure.name)
    if found and not verdict.held:
        lines.append(f"- Why: {found}")
    if figure.departures:
        lines.append(f"- Departures: {figure.departures}")
    lines += ["", *_table(judged), ""]
    if verdict.held is False and judged.profile is not None:
        lines += [*_profile_lines(judged.profile), ""]
    return lines


def _profile_lines(profile: Profile) -> list[str]:
    table = [_row(profile.head), _row(["---", *["---:"] * (len(profile.head) - 1)]), *map(_row, profile.rows)]
    return ["<details><summary>Profile</summary>", "", *table, "", "</details>"]


def _table(judged: Judged) -> list[str]:
    """All values of a figure: a row for each line, a column for each place."""
    places = list(dict.fromkeys(value.place for values in judged.curves.values() for value in values))
    head = [judged.figure.axis, *(f"{place:,}" if isinstance(place, int) else f"{place}" for place in places)]
    lines = [_row(head), _row(["---", *["---:"] * len(places)])]
    notes: list[str] = []
    for name, values in judged.curves.items():
        cells = []
        for place in places:
            value = next((each for each in values if each.place == place), None)
            if value is None:
                cells.append("")
            elif value.number is not None:
                cells.append(_number(value.number))
            else:
                cells.append("—")
                if value.failure and value.failure != "not measured":
                    notes.append(f"{name} at {place}: {value.failure}")
        lines.append(_row([name, *cells]))
    if notes:
        lines += ["", f"Missing: {'; '.join(notes)}."]
    return ["<details><summary>Values</summary>", "", *lines, "", "</details>"]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _front_page(
    judged: Mapping[str, Sequence[Judged]], results: Mapping[Point, Mapping[str, Any]], scale: Scale
) -> str:
    every = [each for there in judged.values() for each in there]
    counts = {word: sum(each.verdict.word == word for each in every) for word in _SYMBOLS}
    run = (
        f"This run: scale {scale.name}. {_machine(results)} Of {len(every)} figures, the claims of "
        f"{counts['held']} held, of {counts['not held']} did not hold, and {counts['not tested']} could not be tested."
    )
    lines = [
        "# Experiments of the papers",
        "",
        _ABOUT,
        "",
        run,
        "",
        _READING,
        "",
        *_leaderboard(results),
        "## Verdicts",
        "",
        _row(["figure", "shows", "verdict", "ours"]),
        _row(["---"] * 4),
    ]
    for paper, there in judged.items():
        for each in there:
            figure = each.figure
            link = f"[{paper} {figure.number}]({paper}.md#{_anchor(figure.family)})"
            lines.append(_row([link, figure.title, _SYMBOLS[each.verdict.word], each.verdict.ours]))
    return "\n".join(lines) + "\n"


def _anchor(family: str) -> str:
    return _named(family).lower().replace(" ", "-")


def _machine(results: Mapping[Point, Mapping[str, Any]]) -> str:
    for result in results.values():
        about = result["machine"]
        versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
        return (
            f"Machine: {about['processor']} ({about['model']}), {about['cores']} cores, {about['system']}, "
            f"Python {about['python']}, {versions}, Tamis {result['tamis']}."
        )
    return ""


def _leaderboard(results: Mapping[Point, Mapping[str, Any]]) -> list[str]:
    """How contenders compare over all workloads that they have in common with our engine."""
    times: dict[str, dict[str, float]] = {}
    for point, result in results.items():
        plain = not point.options and point.task == "matching"
        if plain and "figures" in result:
            kinds = result["figures"]["kinds"]
            workload = str(sorted(point.to_dict()["workload"].items()))
            times.setdefault(point.contender, {})[workload] = kinds.get("planted", kinds["other"])["microseconds"]
    ours = times.get("tamis", {})
    rows = []
    for name, there in times.items():
        common = ours.keys() & there.keys()
        if name != "tamis" and common:
            ratios = [there[workload] / ours[workload] for workload in common]
            rows.append((exp(sum(map(log, ratios)) / len(ratios)), min(ratios), max(ratios), len(common), name))
    if not rows:
        return []
    lines = [
        "## Leaderboard",
        "",
        _COMPARED,
        "",
        _row(["", "mean", "least", "most", "workloads"]),
        _row(["---", "---:", "---:", "---:", "---:"]),
        _row([find_contender("tamis").label, "1", "1", "1", str(len(ours))]),
    ]
    for mean, least, most, count, name in sorted(rows):
        lines.append(_row([CONTENDERS[name].label, _number(mean), _number(least), _number(most), str(count)]))
    return [*lines, ""]


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing_target(file, durable=False) as stream:
        stream.write(text.encode())
    return file
