"""``tamis receive``: the notes of a subscriber."""

from __future__ import annotations

import click

from tamis.cli.broker_folder import reading
from tamis.cli.following import blocks
from tamis.cli.json_output import write_objects
from tamis.errors import BrokerError, RetentionError


@click.command()
@click.argument("folder")
@click.argument("subscriber")
@click.option(
    "--after",
    type=click.IntRange(0),
    metavar="N",
    help="Start after note N; 0: at the oldest note. Default: after the last note that was acknowledged.",
)
@click.option("--follow", is_flag=True, help="Wait for more notes until Ctrl-C.")
@click.option("--ack", is_flag=True, help="Acknowledge notes when they are printed: the next call starts after them.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Print at most N notes.")
def receive(folder: str, subscriber: str, after: int | None, follow: bool, ack: bool, limit: int | None) -> None:
    """Print the notes of SUBSCRIBER in the broker in FOLDER.

    A note is a line with "sequence", which counts the notes of SUBSCRIBER from 1; "event_sequence", the number of the
    event; "subscriptions", the names of the subscriptions that want the event; "expired", whether the event is no
    longer valid; and "event". Values that JSON lacks have a tag: {"$timestamp": "2026-12-24T18:00:00"}.

    Another process may write to FOLDER meanwhile.

    \b
    Examples:
      tamis receive alerts ann
      tamis receive alerts ann --limit 100 --ack | ./mail
      tamis receive alerts ann --after 0 --follow
    """
    from tamis.broker.answer_json import note_json

    with reading(folder) as broker:
        found = blocks(
            lambda after: broker.notifications(subscriber, after),
            lambda note: note.sequence,
            after,
            follow=follow,
            limit=limit,
        )
        try:
            for notes in found:
                write_objects(map(note_json, notes))
                if ack:
                    broker.acknowledge(subscriber, notes[-1].sequence)
        except RetentionError as error:
            raise BrokerError(
                f"{str(error).partition(' Hint: ')[0]} Hint: --after {error.first - 1}, or --after 0"
            ) from None
