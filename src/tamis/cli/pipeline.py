"""``tamis pipeline``: raw files in, matches and a page about them out, on Spark."""

from __future__ import annotations

import click


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
@click.option("--event-id", default="id", show_default=True, help="The column of events with their ids.")
@click.option("--attribute", "attributes", multiple=True, help="A column that is an attribute; all, if none is named.")
@click.option("--keep", multiple=True, help="A column of events to write with each match.")
@click.option("--carry", multiple=True, help="A column of subscriptions to write with each match.")
@click.option("-k", type=click.IntRange(min=1), help="Only so many subscriptions of each event, the heaviest.")
@click.option("--time", "time_column", help="The column of events that says when they happened.")
@click.option("--shards", type=click.IntRange(min=1), help="Files of the index; one per million, if not given.")
@click.option("--subscription-format", type=click.Choice(["parquet", "json", "csv"]), help="If names do not tell.")
@click.option("--event-format", type=click.Choice(["parquet", "json", "csv"]), help="If names do not tell.")
@click.option(
    "--event-schema", help="Columns of events and types, such as 'id long, price double'; others are bad lines."
)
@click.option("--overwrite", is_flag=True, help="Delete what an earlier run wrote to OUTPUT.")
@click.option("--master", help="The cluster; this machine, if Spark is not told otherwise.")
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark.")
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
    """Match raw files on Spark, and write a page about it.

    EVENTS are matched with SUBSCRIPTIONS, and everything goes to the folder OUTPUT. Both are files or folders of Parquet, JSON
    lines or CSV. OUTPUT gets the index, the matches, how many each subscription has, statistics of the events' attributes, what
    was rejected, lines that cannot be read (bad_subscriptions, bad_events), events that are wrong (wrong_events), and a page
    about it, summary.html. It needs Spark (pip install 'tamis[spark]').

    \b
    Examples:
      tamis pipeline alerts.parquet events/ out
      tamis pipeline rules.csv logs.jsonl out --event-id uuid --keep host --conf spark.driver.memory=8g
    """
    settings = _pairs(conf)
    try:
        from tamis.spark.pipeline import run_pipeline
        from tamis.spark.session import start_session

        spark = start_session(master, settings)
    except ImportError as error:
        raise click.ClickException(f"Spark is not installed ({error.name}). Hint: pip install 'tamis[spark]'") from None
    spark.sparkContext.setLogLevel("FATAL")  # Whatever fails is told once, below, and without the stack of Java.
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
    for name, value in summary.figures.items():
        click.echo(f"{name:>30}  {value:,}")
    for note in summary.notes:
        click.echo(note, err=True)
    click.echo(f"{'page':>30}  {output}/summary.html")
