"""``tamis generate``: workloads after the papers and of our own, written to a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import click

from tamis.cli.diagnostics import counted
from tamis.errors import WorkloadError

# Written out here, as the library would take long to load for --help.
_PRESETS = (
    "be-tree", "ps-tree-dense", "ps-tree-sparse", "op-index", "dense", "sparse", "zipf", "range", "ads", "wide-dense",
    "wide-range", "wide-12", "wide-12-range", "alerts", "detection",
)  # fmt: skip
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
@click.option("--subscriptions", type=int, help="How many subscriptions. Default: a million; detection: 4,000.")
@click.option("--events", type=int, help="How many events. Default: be-gen: every base event once; others: 1,000.")
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
@click.option("--alpha", type=float, help="Popularity of attributes; alerts: of symbols. 0 is uniform.")
@click.option(
    "--operator-class",
    type=click.Choice(_OPERATOR_CLASSES),
    help="be-gen only: min (=), low (also IN), med (also < <= > >= BETWEEN) or high (also <> NOT IN).",
)
@click.option("--range-share", type=float, help="be-gen only: mean width of BETWEEN, as a share of the cardinality.")
@click.option("--string-share", type=float, help="Share of the attributes that carry strings.")
@click.option("--prefix-share", type=float, help="Share of LIKE 'prefix%' on these.")
@click.option("--numbers", type=click.Choice(_NUMBERS), help="How numbers are written.")
@click.option("--symbols", type=int, help="alerts only: how many symbols there are.")
@click.option("--distance", type=float, help="alerts only: how far from usual prices alerts wait. 1 is near, 2 is far.")
@click.option("--band-share", type=float, help="alerts only: share of BETWEEN.")
@click.option("--volume-share", type=float, help="alerts only: share with a third predicate, on the volume.")
@click.option("--planted-share", type=float, help="detection only: share of the events that satisfy a rule on purpose.")
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
        _check_effect(name, given)
        config = preset(name, **given)
        paths = write(config, folder, wide=wide)
    except WorkloadError as error:
        raise click.UsageError(_with_options(str(error), parameters)) from None
    if not quiet:
        wrote = f"{counted(config.subscriptions, 'subscription')}, {counted(config.event_count, 'event')}"
        click.echo(f"{wrote} and {config.other_events:,} others:", err=True)
        for path in paths:
            click.echo(f"  {path} ({path.stat().st_size / 1e6:,.1f} MB)", err=True)


def _check_effect(name: str, given: Mapping[str, Any]) -> None:
    """Refuse what was asked for and would have no effect."""
    from tamis.workload import PRESETS, WorkloadConfig
    from tamis.workload.config import BE_GEN_ONLY

    config = PRESETS[name]
    known = {field.name for field in fields(config)}
    for parameter in given:
        if parameter not in known:
            raise WorkloadError(
                f"{parameter} plays no part in preset {name}. Hint: leave it out, or choose another preset"
            )
    if isinstance(config, WorkloadConfig) and given.get("style", config.style) == "op-index":
        for parameter in BE_GEN_ONLY:
            if parameter in given:
                hint = "Hint: leave it out, or choose style be-gen"
                raise WorkloadError(f"{parameter} plays no part in style op-index. {hint}")


def _with_options(message: str, parameters: Iterable[str]) -> str:
    """A message of the library with options where it names parameters: alone in front, or with an underscore."""
    for name in parameters:
        place = rf"\b{name}\b" if "_" in name else rf"^{name}\b|(?<=\(){name}(?=\))"
        message = re.sub(place, f"--{name.replace('_', '-')}", message)
    return message
