"""``tamis receive``: the notes of a subscriber."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from tamis.cli.broker_folder import holder, patient, reading, wait_option
from tamis.cli.broker_records import note_record, write_records
from tamis.cli.diagnostics import Diagnostics
from tamis.cli.following import blocks
from tamis.errors import BrokerError, LockedError, RetentionError


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
@wait_option
def receive(
    folder: str, subscriber: str, after: int | None, follow: bool, ack: bool, limit: int | None, wait: float
) -> None:
    """Print the notes of SUBSCRIBER in the broker in FOLDER.

    A note is a line with "sequence", which counts the notes of SUBSCRIBER from 1; "event_sequence", the number of the
    event; "subscriptions", the names of the subscriptions that want the event; "expired", whether the event is no
    longer valid; and "event". Values that JSON lacks have a tag: {"$timestamp": "2026-12-24T18:00:00"}.

    Another process may write to FOLDER meanwhile. Only --ack writes: for a moment, after each block of notes. If
    another process is writing then, --follow acknowledges the notes later.

    \b
    Examples:
      tamis receive alerts ann
      tamis receive alerts ann --limit 100 --ack | ./mail
      tamis receive alerts ann --after 0 --follow
    """
    with reading(folder) as broker, _acknowledging(folder, subscriber, wait, ack) as cursor:
        found = blocks(
            lambda after: broker.notifications(subscriber, after),
            lambda note: note.sequence,
            after,
            follow=follow,
            limit=limit,
        )
        try:
            for notes in found:
                write_records(map(note_record, notes))
                if cursor is not None:
                    cursor.move(notes[-1].sequence if notes else 0)
        except RetentionError as error:
            raise BrokerError(
                f"{str(error).partition(' Hint: ')[0]} Hint: --after {error.first - 1}, or --after 0"
            ) from None


class _Cursor:
    """Acknowledges notes, or remembers them while another process writes."""

    def __init__(self, folder: str, subscriber: str) -> None:
        self._folder = folder
        self._subscriber = subscriber
        self._wanted = 0
        self._has_told = False
        self.moved = 0

    def move(self, sequence: int = 0) -> None:
        """Acknowledge the notes up to a number, and notes that are left from before."""
        self._wanted = max(self._wanted, sequence)
        if self._wanted == self.moved:
            return
        try:
            self.try_now()
        except LockedError as error:
            if not self._has_told:
                Diagnostics().say(f"{holder(error)}; notes are acknowledged when that process has ended")
                self._has_told = True

    def try_now(self) -> None:
        """Acknowledge what was read.

        Raises
        ------
        LockedError
        """
        from tamis.broker.acknowledging import acknowledge

        acknowledge(self._folder, self._subscriber, self._wanted)
        self.moved = self._wanted

    @property
    def is_behind(self) -> bool:
        return self.moved < self._wanted


@contextmanager
def _acknowledging(folder: str, subscriber: str, wait: float, ack: bool) -> Iterator[_Cursor | None]:
    """A cursor that has moved behind the last note that was printed when the block ends.

    Raises
    ------
    LockedError
        Another process writes to the folder.
    """
    if not ack:
        yield None
        return
    cursor = _Cursor(folder, subscriber)
    patient(cursor.try_now, wait)  # Better no notes than notes that cannot be acknowledged.
    try:
        yield cursor
    except BaseException:
        with suppress(LockedError):
            cursor.try_now()
        raise
    if cursor.is_behind:
        patient(cursor.try_now, wait)
