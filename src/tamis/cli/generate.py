"""``tamis generate``: workloads of the papers, written to a folder."""

from __future__ import annotations

from typing import Any

import click

from tamis.cli.diagnostics import counted
from tamis.cli.options import quiet_option


@click.command()
@click.argument("folder")
@click.option(
    "--preset",
    "name",
    metavar="NAME",
    default="dense",
    show_default=True,
    help="What to start from: be-tree, ps-tree-dense, ps-tree-sparse, op-index, dense, sparse, zipf, range or ads. "
    "The options below change it.",
)
@click.option("--subscriptions", type=int, help="How many subscriptions; a million if nothing is said.")
@click.option("--events", type=int, help="How many events. Default: every base event once.")
@click.option("--other-events", type=int, help="How many events that no subscription is derived from.")
@click.option("--seed", type=int, help="Chooses one of the workloads that the parameters describe.")
@click.option("--style", help="be-gen: subscriptions derived from events; op-index: independent of them.")
@click.option("--dimensions", type=int, help="How many attributes there are.")
@click.option("--cardinality", type=int, help="How many values an attribute has.")
@click.option("--subscription-size", type=float, help="Predicates per subscription: the mean; op-index: the most.")
@click.option("--event-size", type=int, help="Attributes per event.")
@click.option("--match-probability", type=float, help="Share of the subscriptions derived from each event.")
@click.option("--equality-ratio", type=float, help="Share of = among the predicates.")
@click.option("--alpha", type=float, help="Popularity of attributes: 0 is uniform, above it is Zipf.")
@click.option("--operator-class", help="min (=), low (IN), med (< <= > >= BETWEEN) or high (<> NOT IN).")
@click.option("--range-share", type=float, help="Mean width of BETWEEN, as a share of the cardinality.")
@click.option("--string-share", type=float, help="Share of the attributes that carry strings.")
@click.option("--prefix-share", type=float, help="Share of LIKE 'prefix%' on these.")
@click.option("--numbers", help="How numbers are written: integer or float.")
@click.option("--wide", is_flag=True, help="Events with a column per attribute instead of a list of pairs.")
@quiet_option
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

    config = preset(name, **{key: value for key, value in parameters.items() if value is not None})
    paths = write(config, folder, wide=wide)
    if not quiet:
        wrote = f"{counted(config.subscriptions, 'subscription')}, {counted(config.event_count, 'event')}"
        click.echo(f"{wrote} and {config.other_events:,} others:", err=True)
        for path in paths:
            click.echo(f"  {path} ({path.stat().st_size / 1e6:,.1f} MB)", err=True)
