"""``tamis generate``: workloads of the papers, written to a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.diagnostics import counted
from tamis.errors import WorkloadError

if TYPE_CHECKING:
    from tamis.workload import WorkloadConfig

# Written out here, as the library would take long to load for --help.
_PRESETS = ("be-tree", "ps-tree-dense", "ps-tree-sparse", "op-index", "dense", "sparse", "zipf", "range", "ads")
_STYLES = ("be-gen", "op-index")
_OPERATOR_CLASSES = ("min", "low", "med", "high")
_NUMBERS = ("integer", "float")


@click.command()
@click.argument("folder")
@click.option(
    "--preset",
    "name",
    type=click.Choice(_PRESETS),
    metavar="NAME",
    default="dense",
    show_default=True,
    help=f"What to start from: {', '.join(_PRESETS[:-1])} or {_PRESETS[-1]}. The options below change it.",
)
@click.option("--subscriptions", type=int, help="How many subscriptions; a million if nothing is said.")
@click.option("--events", type=int, help="How many events. Default: every base event once.")
@click.option("--other-events", type=int, help="How many events that no subscription is derived from.")
@click.option("--seed", type=int, help="Chooses one of the workloads that the parameters describe.")
@click.option(
    "--style",
    type=click.Choice(_STYLES),
    help="be-gen: subscriptions derived from events; op-index: independent of them. Default: that of the preset.",
)
@click.option("--dimensions", type=int, help="How many attributes there are.")
@click.option("--cardinality", type=int, help="How many values an attribute has.")
@click.option("--subscription-size", type=float, help="Predicates per subscription: the mean; op-index: the most.")
@click.option("--event-size", type=int, help="Attributes per event.")
@click.option(
    "--match-probability",
    type=float,
    help="be-gen only: share of the subscriptions derived from each event. Others may match it by chance.",
)
@click.option("--equality-ratio", type=float, help="Share of = among the predicates.")
@click.option("--alpha", type=float, help="Popularity of attributes: 0 is uniform, above it is Zipf.")
@click.option(
    "--operator-class",
    type=click.Choice(_OPERATOR_CLASSES),
    help="be-gen only: min (=), low (also IN), med (also < <= > >= BETWEEN) or high (also <> NOT IN).",
)
@click.option("--range-share", type=float, help="be-gen only: mean width of BETWEEN, as a share of the cardinality.")
@click.option("--string-share", type=float, help="Share of the attributes that carry strings.")
@click.option("--prefix-share", type=float, help="Share of LIKE 'prefix%' on these.")
@click.option("--numbers", type=click.Choice(_NUMBERS), help="How numbers are written.")
@click.option("--wide", is_flag=True, help="Events with a column per attribute instead of a list of pairs.")
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
def generate(folder: str, name: str, wide: bool, quiet: bool, **parameters: Any) -> None:
    """Write a generated workload to FOLDER.

    It gets subscriptions and events as Parquet, and the parameters as JSON. The same parameters give the same workload. A
    workload that is in the folder already is replaced.

    \b
    Example:
      tamis generate workload --preset zipf --subscriptions 100000 --seed 7
      tamis match workload/subscriptions.parquet workload/events.parquet --count
    """
    from tamis.workload import preset, write

    given = {key: value for key, value in parameters.items() if value is not None}
    try:
        config = preset(name, **given)
        _check_style(config, given)
        paths = write(config, folder, wide=wide)
    except WorkloadError as error:
        raise click.UsageError(_with_options(str(error), parameters)) from None
    if not quiet:
        wrote = f"{counted(config.subscriptions, 'subscription')}, {counted(config.event_count, 'event')}"
        click.echo(f"{wrote} and {config.other_events:,} others:", err=True)
        for path in paths:
            click.echo(f"  {path} ({path.stat().st_size / 1e6:,.1f} MB)", err=True)


def _check_style(config: WorkloadConfig, given: Iterable[str]) -> None:
    """Refuse what was asked for and would have no effect."""
    from tamis.workload.config import BE_GEN_ONLY

    for name in BE_GEN_ONLY:
        if config.style == "op-index" and name in given:
            raise WorkloadError(f"{name} plays no part in style op-index. Hint: leave it out, or choose style be-gen")


def _with_options(message: str, parameters: Iterable[str]) -> str:
    """A message of the library with options where it names parameters: alone in front, or with an underscore."""
    for name in parameters:
        place = rf"\b{name}\b" if "_" in name else rf"^{name}\b|(?<=\(){name}(?=\))"
        message = re.sub(place, f"--{name.replace('_', '-')}", message)
    return message
