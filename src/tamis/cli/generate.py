"""``tamis generate``: workloads after the papers and of our own, written to a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import click

from tamis.cli.diagnostics import counted
from tamis.cli.generate_options import style_options
from tamis.errors import WorkloadError

# Repeated here, because loading the library for --help would take long.
_PRESETS = (
    "be-tree", "ps-tree-dense", "ps-tree-sparse", "op-index", "dense", "sparse", "zipf", "range", "ads", "wide-dense",
    "wide-range", "wide-12", "wide-12-range", "alerts", "detection", "fabret", "fabret-inequalities", "fabret-focus",
    "fabret-other-focus", "fabret-few-values", "tatbul", "ps-tree-intervals", "ps-tree-ads", "be-tree-authors",
    "be-tree-titles", "be-tree-match-authors", "be-tree-match-titles", "ps-tree-query-log",
    "op-index-twitter", "op-index-twitter-counts", "op-index-wikipedia", "op-index-wikipedia-counts", "op-index-ebay",
    "op-index-ebay-sets", "op-index-prefixes",
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
    help=f"Preset to start from: {', '.join(_PRESETS[:-1])} or {_PRESETS[-1]}. The options below change it.",
)
@click.option("--subscriptions", type=int, help="Number of subscriptions. Default: a million; detection: 4,000.")
@click.option("--events", type=int, help="Number of events. Default: every base event once (be-gen), else 1,000.")
@click.option("--other-events", type=int, help="Number of events that no subscription is derived from.")
@click.option("--seed", type=int, help="Seed of the random choices.")
@click.option(
    "--style",
    type=click.Choice(_STYLES),
    help="be-gen: subscriptions derived from events; op-index: independent of them. Default: as in the preset.",
)
@click.option("--dimensions", type=int, help="Number of attributes.")
@click.option("--cardinality", type=int, help="Number of values of an attribute.")
@click.option(
    "--subscription-size",
    type=float,
    help="Mean number of predicates per subscription; op-index, products, prefixes: the highest number.",
)
@click.option("--event-size", type=int, help="Number of attributes per event.")
@click.option(
    "--match-probability",
    type=float,
    help="be-gen only: share of the subscriptions that is derived from each event. Others may match by chance.",
)
@click.option("--equality-ratio", type=float, help="Share of = among the predicates.")
@click.option("--alpha", type=float, help="Skew of the popularity of attributes (alerts: symbols). 0 is uniform.")
@click.option(
    "--operator-class",
    type=click.Choice(_OPERATOR_CLASSES),
    help="be-gen only: min (=), low (also IN), med (also < <= > >= BETWEEN) or high (also <> NOT IN).",
)
@click.option("--range-share", type=float, help="be-gen only: mean width of BETWEEN, as a share of the cardinality.")
@click.option("--string-share", type=float, help="Share of the attributes that carry strings.")
@click.option("--prefix-share", type=float, help="Share of LIKE 'prefix%' among predicates on strings.")
@click.option("--numbers", type=click.Choice(_NUMBERS), help="Type of the numbers.")
@click.option("--symbols", type=int, help="alerts only: number of symbols.")
@click.option(
    "--distance", type=float, help="alerts only: distance of alerts from the usual price. 1 is near, 2 is far."
)
@click.option("--band-share", type=float, help="alerts only: share of alerts with BETWEEN.")
@click.option("--volume-share", type=float, help="alerts only: share of alerts with a third predicate, on the volume.")
@click.option(
    "--planted-share",
    type=float,
    help="detection, keywords, products, prefixes: share of the events that are made to satisfy a subscription.",
)
@style_options
@click.option("--wide", is_flag=True, help="Write events with one column per attribute, not as a list of pairs.")
@click.option("-q", "--quiet", is_flag=True, help="Print no summary.")
def generate(folder: str, name: str, wide: bool, quiet: bool, **parameters: Any) -> None:
    """Write a generated workload to FOLDER.

    FOLDER gets subscriptions and events as Parquet, and the parameters as JSON. The same parameters give the same workload.
    A workload that is already in FOLDER is replaced.

    \b
    Example:
      tamis generate workload --preset zipf --subscriptions 100000 --seed 7
      tamis match workload/subscriptions.parquet workload/events.parquet --count
    """
    from tamis.workload import preset, write

    given = {key: _plain(value) for key, value in parameters.items() if value is not None}
    try:
        _check_effect(name, given)
        config = preset(name, **given)
        paths = write(config, folder, wide=wide)
    except WorkloadError as error:
        raise click.UsageError(_with_options(str(error), parameters)) from None
    if not quiet:
        wrote = f"{counted(config.subscriptions, 'subscription')}, {counted(config.event_count, 'event')}"
        click.echo(f"{wrote} and {counted(config.other_events, 'other event')}:", err=True)
        for path in paths:
            click.echo(f"  {path} ({path.stat().st_size / 1e6:,.1f} MB)", err=True)


def _plain(value: Any) -> Any:
    """A whole number as an integer: what is a mean size in one style is a number of predicates in another."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_effect(name: str, given: Mapping[str, Any]) -> None:
    """Refuse options that would have no effect."""
    from tamis.workload import PRESETS, WorkloadConfig
    from tamis.workload.config import BE_GEN_ONLY

    config = PRESETS[name]
    known = {field.name for field in fields(config)}
    for parameter in given:
        if parameter not in known:
            raise WorkloadError(
                f"{parameter} has no effect in preset {name}. Hint: leave it out, or choose another preset"
            )
    if isinstance(config, WorkloadConfig) and given.get("style", config.style) == "op-index":
        for parameter in BE_GEN_ONLY:
            if parameter in given:
                hint = "Hint: leave it out, or choose style be-gen"
                raise WorkloadError(f"{parameter} has no effect in style op-index. {hint}")


def _with_options(message: str, parameters: Iterable[str]) -> str:
    """A library message with options in place of parameters: a parameter stands alone in front, or has an underscore."""
    for name in parameters:
        place = rf"\b{name}\b" if "_" in name else rf"^{name}\b|(?<=\(){name}(?=\))"
        message = re.sub(place, f"--{name.replace('_', '-')}", message)
    return message
