"""``tamis experiments``: repeat the papers' experiments."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tamis.cli.diagnostics import Diagnostics, counted
from tamis.errors import ExperimentError

if TYPE_CHECKING:
    from tamis.experiments.pages import Pages
    from tamis.experiments.running import Progress

# Repeated here, because loading the experiments for --help would take long.
_SCALES = ("smoke", "laptop", "paper")

_paper = click.option("--paper", help="Paper: ps-tree, be-tree, op-index, fabret or tatbul. Default: all.")
_figure = click.option(
    "--figure",
    "number",
    help="Number of a figure, such as 6a or aging, or of a family, such as 6. Default: all.",
)
_scale = click.option(
    "--scale",
    default="laptop",
    show_default=True,
    metavar="NAME",
    help=f"How large: {', '.join(_SCALES)}. smoke takes seconds a figure, laptop an hour for all, paper has the papers' sizes.",
)

_pages = click.option(
    "--pages",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the pages. Default: that of the results.",
)
_archive = click.option(
    "--archive",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with a file for each paper, of all its results. Papers measured whole are written there, others read.",
)


@click.group()
def experiments() -> None:
    """Repeat the papers' experiments on the papers' workloads.

    Each figure of a paper is measured, compared with what its authors claim, and drawn. Our own engine stands beside the
    papers' indexes.

    \b
    Examples:
      tamis experiments list
      tamis experiments run --paper ps-tree --figure 6a --scale laptop --output results
      tamis experiments report results --scale laptop
    """


@experiments.command("list")
@_paper
def list_figures(paper: str | None) -> None:
    """List the figures that can be repeated."""
    from tamis.experiments.catalog import find_figures

    for figure in find_figures(paper):
        click.echo(f"{figure.paper:9} {figure.number:11} {figure.title}")


@experiments.command()
@_paper
@_figure
@_scale
@click.option(
    "--output", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder of the results."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the workloads.")
@_pages
@_archive
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Points measured at the same time.")
@click.option("--estimate", is_flag=True, help="Only print what the run would need.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
# One parameter for each option of the command.
def run(
    paper: str | None,
    number: str | None,
    scale: str,
    output: Path,
    seed: int,
    pages: Path | None,
    archive: Path | None,
    jobs: int,
    estimate: bool,
    quiet: bool,
) -> None:
    """Measure figures, and write pages about them.

    Every point of a plot is measured in a process of its own, and its result is kept in a JSON file. A run that was stopped
    goes on where it was. Points that do not fit into the machine's memory are left out, and the pages say so.
    """
    from tamis.experiments import running
    from tamis.experiments.catalog import find_figures
    from tamis.experiments.pages import write_pages
    from tamis.experiments.scales import find_scale

    chosen, figures = find_scale(scale)._replace(seed=seed), find_figures(paper, number)
    points = list(dict.fromkeys(point for figure in figures for point in figure.points(chosen)))
    if not quiet or estimate:
        fitting = [point for point in points if running.fits(point, chosen, running.memory() / jobs)]
        needed, large = running.need_of_all(fitting, chosen), len(points) - len(fitting)
        left_out = f"; {counted(large, 'point')} too large for it, left out" if large else ""
        has = f"the machine has {running.memory() / 2**30:.1f} GiB{left_out}"
        click.echo(
            f"{counted(len(figures), 'figure')}, {counted(len(points), 'point')}: about {_duration(needed.seconds / jobs)}, "
            f"up to {jobs * needed.bytes / 2**30:.1f} GiB of memory; {has}",
            err=not estimate,
        )
    if estimate:
        return
    _need_plots()
    diagnostics = Diagnostics(quiet=quiet)

    def tell(progress: Progress) -> None:
        point = progress.point
        failure = f": {progress.result['failure']}" if "failure" in progress.result else ""
        diagnostics.clear()
        if not quiet:
            click.echo(
                f"[{progress.done}/{progress.points}, {_duration(progress.seconds_left)} left] {point.contender}, "
                f"{point.workload.subscriptions:,} subscriptions{failure}",
                err=True,
            )

    running.run(points, chosen, output, tell, jobs=jobs)
    _tell(write_pages(output, chosen, pages, archive), [figure.name for figure in figures])


@experiments.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@_scale
@_pages
@_archive
def report(folder: Path, scale: str, pages: Path | None, archive: Path | None) -> None:
    """Write the pages of the results in FOLDER again.

    FOLDER is the output of a run, or an archive.
    """
    from tamis.experiments.catalog import find_figures
    from tamis.experiments.pages import write_pages
    from tamis.experiments.scales import find_scale

    _need_plots()
    chosen = find_scale(scale)
    written = write_pages(folder, chosen, pages, archive)
    if not written.judged:
        raise ExperimentError(
            f"{folder} has no results of scale {chosen.name}. Hint: tamis experiments run --output {folder}"
        )
    _tell(written, [figure.name for figure in find_figures()])


def _need_plots() -> None:
    """Say what is missing before hours of measuring."""
    if find_spec("matplotlib") is None:
        raise click.ClickException("the plots need matplotlib. Hint: pip install 'tamis[experiments]'")


def _tell(pages: Pages, names: list[str]) -> None:
    """Print the verdicts of some figures, and where the pages are."""
    for each in pages.judged:
        if each.figure.name in names:
            click.echo(f"{each.figure.name:18} {each.verdict.word:10}  {each.verdict.ours}")
    click.echo(f"Pages: {', '.join(map(str, pages.files))}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"
