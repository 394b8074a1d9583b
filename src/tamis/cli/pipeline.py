"""``tamis pipeline``: matches files on Spark and writes a page about the matches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tamis.cli.diagnostics import counted
from tamis.cli.exit_status import SKIPPED

if TYPE_CHECKING:
    from tamis.spark.summary_page import Summary


def _pairs(settings: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{setting!r} is not NAME=VALUE", param_hint="--conf")
        found[name] = value
    return found


@click.command()
@click.argument("subscriptions")
@click.argument("events")
@click.argument("output")
@click.option(
    "--event-id", metavar="COLUMN", default="id", show_default=True, help="Column of events that holds their ids."
)
@click.option(
    "--attribute",
    "attributes",
    metavar="COLUMN",
    multiple=True,
    help="Column of events to match; may be repeated. Default: all columns.",
)
@click.option(
    "--keep", metavar="COLUMN", multiple=True, help="Column of events to write beside each match; may be repeated."
)
@click.option(
    "--carry",
    metavar="COLUMN",
    multiple=True,
    help="Column of subscriptions to write beside each match; may be repeated.",
)
@click.option(
    "-k",
    type=click.IntRange(min=1),
    help="Write at most this many matches of each event, those with the highest weights.",
)
@click.option("--time", "time_column", metavar="COLUMN", help="Column of events that says when they happened.")
@click.option(
    "--shards", type=click.IntRange(min=1), help="Number of files of the index. Default: one per million subscriptions."
)
@click.option(
    "--subscription-format",
    type=click.Choice(["parquet", "json", "csv"]),
    help="Format of the subscriptions. Default: by the ends of the names.",
)
@click.option(
    "--event-format",
    type=click.Choice(["parquet", "json", "csv"]),
    help="Format of the events. Default: by the ends of the names.",
)
@click.option(
    "--event-schema",
    metavar="COLUMNS",
    help="Columns and types of events, such as 'id long, price double'. A line with another value is a bad line.",
)
@click.option("--overwrite", is_flag=True, help="Delete what an earlier run wrote to OUTPUT.")
@click.option(
    "--master", metavar="ADDRESS", help="Cluster to run on. Default: Spark's own settings, else this machine."
)
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="Setting of Spark; may be repeated.")
# Its parameters are the options of the command.
def pipeline(
    subscriptions: str,
    events: str,
    output: str,
    event_id: str,
    attributes: tuple[str, ...],
    keep: tuple[str, ...],
    carry: tuple[str, ...],
    k: int | None,
    time_column: str | None,
    shards: int | None,
    subscription_format: str | None,
    event_format: str | None,
    event_schema: str | None,
    overwrite: bool,
    master: str | None,
    conf: tuple[str, ...],
) -> None:
    """Match files on Spark and write a report.

    SUBSCRIPTIONS and EVENTS are files or folders: Parquet, JSON lines or CSV. They are checked before Spark starts. This
    command needs Spark: pip install 'tamis[spark]'.

    The folder OUTPUT gets the matches, the index, the number of matches of each subscription, statistics of the
    attributes, and a page about all of it: summary.html. Lines that cannot be used go to OUTPUT as well: bad_subscriptions
    and bad_events (not readable), rejected (subscriptions with an error), wrong_events. The exit status is 3 if there are
    any.

    \b
    Examples:
      tamis pipeline alerts.parquet events/ out
      tamis pipeline rules.csv logs.jsonl out --event-id uuid --keep host --conf spark.driver.memory=8g
    """
    settings = _pairs(conf)
    try:
        from tamis.spark.pipeline import UNUSED, check_inputs, run_pipeline
        from tamis.spark.session import start_session

        check_inputs(subscriptions, events, output, subscription_format, event_format, overwrite=overwrite)
        spark = start_session(master, settings)
    except ImportError as error:
        raise click.ClickException(f"Spark is not installed ({error.name}). Hint: pip install 'tamis[spark]'") from None
    spark.sparkContext.setLogLevel("FATAL")  # An error is printed once, below, without a Java stack trace.
    try:
        summary = run_pipeline(
            spark,
            subscriptions,
            events,
            output,
            event_id=event_id,
            attributes=attributes or None,
            keep=keep,
            carry=carry,
            k=k,
            time_column=time_column,
            shards="auto" if shards is None else shards,
            subscription_format=subscription_format,
            event_format=event_format,
            event_schema=event_schema,
            overwrite=overwrite,
        )
    finally:
        spark.stop()
    _report(summary, sum(summary.figures[name] for name in UNUSED), output)


def _report(summary: Summary, unused: int, output: str) -> None:
    for name, value in summary.figures.items():
        click.echo(f"{name:>30}  {value:,}")
    for note in summary.notes:
        click.echo(note, err=True)
    click.echo(f"{'page':>30}  {output}/summary.html")
    if unused:
        click.echo(f"{counted(unused, 'line')} could not be used; {output} has them with the reasons", err=True)
        sys.exit(SKIPPED)
