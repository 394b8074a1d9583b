"""``tamis compact``: a broker takes less space on disk."""

from __future__ import annotations

import time

import click

from tamis.cli.broker_folder import size_of, wait_option, writing
from tamis.cli.diagnostics import Diagnostics
from tamis.cli.options import quiet_option


@click.command()
@click.argument("folder")
@wait_option
@quiet_option
def compact(folder: str, wait: float, quiet: bool) -> None:
    """Make the broker in FOLDER smaller, and quick to open.

    Events and notes that are older than the broker keeps them are deleted, and free space goes back to the disk.
    Everything that can be computed ahead is stored, so the next command opens FOLDER sooner.

    \b
    Example:
      tamis compact alerts
    """
    before = size_of(folder)
    with writing(folder, wait) as broker:
        started = time.perf_counter()
        broker.compact()
    Diagnostics(quiet=quiet).summary(
        f"{folder}: {size_of(folder)}, before {before}, in {time.perf_counter() - started:.1f} s"
    )
