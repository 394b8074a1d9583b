"""Pages of experiments in Markdown: one for each paper, and a front page with what held and a leaderboard.

FOLDER/index.md             what was run, on which machine, verdicts, leaderboard
FOLDER/ps-tree.md           each figure: plot, claim, the paper's figures, ours, verdict
FOLDER/ps-tree-6.svg        its plots
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tamis.experiments.archive import with_archived, write_archives
from tamis.experiments.catalog import PAPERS, find_figures
from tamis.experiments.claims import shown_number
from tamis.experiments.figure import Curves, Figure, Verdict
from tamis.experiments.findings import finding_of
from tamis.experiments.leaderboard import leaderboard_rows
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
    "A claim of an order is held if the order is the same; values within a tenth of each other count as equal. A claim with a "
    "lead is held from half of the paper's lead on, counted on a logarithmic scale: 89 % less is a lead of 9 times, and 3 times "
    "is enough. *Close* is within a factor of two, and *orders of magnitude* are at least 10 times. Claims are judged at the "
    "last place of the plot, unless they say *always* or name another place. Claims that join several are held if all of them "
    "are. All times are of one thread, on events that are encoded already; compiling is not counted. The answers of each point "
    "were compared with those of a scan on some events."
)
_NAMES = (
    "Names in the plots: *SCAN* tries one subscription after the other. *BE-B* is BE-Tree built from all subscriptions at once, "
    "*OpIndex-BS* is OpIndex without signatures, *Propagation-wp* is propagation with prefetching, and *No-change* is dynamic "
    "clustering whose tables are frozen. *Dense* workloads have 100 attributes, *sparse* ones 30,000. *Uniform* and *Zipf* are "
    "how often attributes occur. *Independent* events are made without looking at the subscriptions. Operators of class *low* "
    "are = and IN. *Med* has comparisons and BETWEEN as well, *high* also <> and NOT IN."
)
_COMPARED = (
    "How many times as long as our engine each contender takes for an event: the geometric mean, the least and the most over all "
    "workloads that both were measured on, and the mean for the workloads of each paper. The numbers in brackets are workloads. "
    "Contenders stand in the plots of their own papers, so rows are about different workloads: compare rows within a paper. "
    "Contenders with few workloads come last."
)
_SYMBOLS = {"held": "held", "not held": "**not held**", "not tested": "*not tested*", "no claim": "no claim"}


class Judged(NamedTuple):
    """A figure with what was measured of it."""

    figure: Figure
    curves: Curves
    verdict: Verdict
    profile: Profile | None
    machines: tuple[str, ...]
    """The machines that it was measured on. A run does not mix them, but pages may be about several runs."""


class Pages(NamedTuple):
    """The pages that were written."""

    files: list[Path]
    """The front page first."""
    judged: list[Judged]


def write_pages(folder: Path, scale: Scale, pages: Path | None = None, archive: Path | None = None) -> Pages:
    """Write the pages of the results that a folder has, there or into the folder `pages`. Without any, nothing is written.

    Papers that were measured whole are written into the folder `archive`. Those of other papers are read from there, or else from
    the folder itself.
    """
    target = folder if pages is None else pages
    points = [point for figure in find_figures() for point in figure.points(scale)]
    measured = results_of(points, scale, folder)
    if archive is not None:
        write_archives(measured, scale, archive)
    results = with_archived(measured, scale, folder if archive is None else archive)
    judged = judged_papers(scale, results)
    if not judged:
        return Pages([], [])
    for name, plot in plots_of(judged).items():
        _write(target / name, plot)
    files = [_write(target / name, text) for name, text in texts_of(judged, results, scale).items()]
    return Pages(files, [each for there in judged.values() for each in there])


def texts_of(
    judged: Mapping[str, Sequence[Judged]], results: Mapping[Point, Mapping[str, Any]], scale: Scale
) -> dict[str, str]:
    """The texts of the pages: name of a file -> text. The leaderboard is that of the results."""
    front = {"index.md": _front_page(judged, results, scale)}
    return front | {f"{paper}.md": _paper_page(paper, there, scale) for paper, there in judged.items()}


def plots_of(judged: Mapping[str, Sequence[Judged]]) -> dict[str, str]:
    """The plots of the pages: name of a file -> SVG."""
    return {
        f"{paper}-{family}.svg": drawn([each.figure for each in group], [each.curves for each in group])
        for paper, there in judged.items()
        for family, group in _families(there)
    }


def judged_papers(scale: Scale, results: Mapping[Point, Mapping[str, Any]]) -> dict[str, list[Judged]]:
    """Paper -> the figures that were measured whole, if there are some."""
    return {paper: there for paper in PAPERS if (there := judged_figures(find_figures(paper), scale, results))}


def judged_figures(figures: Iterable[Figure], scale: Scale, results: Mapping[Point, Mapping[str, Any]]) -> list[Judged]:
    """The figures that were measured whole."""
    judged = []
    for figure in figures:
        points = figure.points(scale)
        if all(point in results for point in points):
            curves, profile = figure.curves(scale, results), profile_of(figure, scale, results)
            machines = tuple(dict.fromkeys(_machine(results[point]) for point in points))
            judged.append(Judged(figure, curves, figure.judge(curves), profile, machines))
    return judged


def _families(judged: Sequence[Judged]) -> list[tuple[str, list[Judged]]]:
    ordered = sorted(judged, key=lambda each: [other.figure.family for other in judged].index(each.figure.family))
    return [(family, list(group)) for family, group in groupby(ordered, key=lambda each: each.figure.family)]


def _paper_page(paper: str, judged: Sequence[Judged], scale: Scale) -> str:
    title, _, note = PAPERS[paper]
    lines = [
        f"# {title}",
        "",
        f"Scale: {scale.name}. How to read this page, and all verdicts: [Experiments](index.md).",
        "",
    ]
    if note:
        lines += [note, ""]
    machines = list(dict.fromkeys(machine for each in judged for machine in each.machines))
    if len(machines) == 1:
        lines += [f"Machine: {machines[0]}.", ""]
    for family, group in _families(judged):
        name = _named(family)
        lines += [f"## {name}", "", f"![{name}: {group[0].figure.title}]({paper}-{family}.svg)", ""]
        if len(machines) > 1:
            there = dict.fromkeys(machine for each in group for machine in each.machines)
            lines += [f"Machine: {'; '.join(there)}.", ""]
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
        f"- {figure.claimed_by}: {figure.claim}",
        f"- Its figures: {figure.says}",
        f"- Ours: {verdict.ours}.",
        f"- Verdict: {_SYMBOLS[verdict.word]}.",
    ]
    found = finding_of(figure.name)
    if found and verdict.held is False:
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
                cells.append(shown_number(value.number))
            else:
                cells.append("—")
                if value.failure and value.failure != "not measured":
                    notes.append(f"{name} at {place}: {value.reason}")
        lines.append(_row([name, *cells]))
    if notes:
        lines += ["", f"Missing: {'; '.join(notes)}."]
    return [f"<details><summary>Values: {judged.figure.metric.label}</summary>", "", *lines, "", "</details>"]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _front_page(
    judged: Mapping[str, Sequence[Judged]], results: Mapping[Point, Mapping[str, Any]], scale: Scale
) -> str:
    every = [each for there in judged.values() for each in there]
    counts = {word: sum(each.verdict.word == word for each in every) for word in _SYMBOLS}
    machines = " ".join(_machines(judged))
    run = (
        f"This run: scale {scale.name}. {machines} Of {len(every)} figures, the claims of "
        f"{counts['held']} held, and of {counts['not held']} did not hold. {counts['not tested']} could not be tested, and for "
        f"{counts['no claim']} there is no claim."
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
        _NAMES,
        "",
        *_leaderboard(scale, results),
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


def _machines(judged: Mapping[str, Sequence[Judged]]) -> list[str]:
    """The machines that figures were measured on: one for all, or each with its papers or figures."""
    found: dict[str, list[str]] = {}
    for paper, there in judged.items():
        several = len({machine for each in there for machine in each.machines}) > 1
        for each in there:
            for machine in each.machines:
                found.setdefault(machine, []).append(f"{paper} {each.figure.family}" if several else paper)
    if len(found) == 1:
        return [f"Machine: {text}." for text in found]
    return [f"Machine of {', '.join(dict.fromkeys(names))}: {text}." for text, names in found.items()]


def _machine(result: Mapping[str, Any]) -> str:
    about = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return (
        f"{about['processor']} ({about['model']}), {about['cores']} cores, {about['system']}, Python {about['python']}, "
        f"{versions}, Tamis {result['tamis']}"
    )


def _leaderboard(scale: Scale, results: Mapping[Point, Mapping[str, Any]]) -> list[str]:
    rows = leaderboard_rows(scale, results)
    if not rows:
        return []
    head, *others = rows
    rule = _row(["---", *["---:"] * (len(head) - 1)])
    return ["## Leaderboard", "", _COMPARED, "", _row(head), rule, *map(_row, others), ""]


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing_target(file, durable=False) as stream:
        stream.write(text.encode())
    return file
