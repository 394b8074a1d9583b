"""``tamis changes``: the change feed of a broker."""

from __future__ import annotations

import click

from tamis.cli.broker_folder import reading
from tamis.cli.following import blocks
from tamis.cli.json_output import write_objects


@click.command()
@click.argument("folder")
@click.option(
    "--after", type=click.IntRange(0), metavar="N", default=0, show_default=True, help="Start after change N."
)
@click.option("--follow", is_flag=True, help="Wait for more changes until Ctrl-C.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Print at most N changes.")
def changes(folder: str, after: int, follow: bool, limit: int | None) -> None:
    """Print the changes of subscriptions of the broker in FOLDER.

    A change is a line with "number", which counts up; "change", which is "added" or "removed"; "id", the number of the
    subscription, which never changes; "subscriber", "name", "expression", "weight", "valid_from" and "valid_until".
    Each subscription comes once, with its last change. A paused subscription counts as removed.

    \b
    Examples:
      tamis changes alerts
      tamis changes alerts --after 4711 --follow
    """
    from tamis.broker.answer_json import change_json

    with reading(folder) as broker:
        found = blocks(
            lambda after: broker.changes(after or 0), lambda change: change.number, after, follow=follow, limit=limit
        )
        for block in found:
            write_objects(map(change_json, block))
