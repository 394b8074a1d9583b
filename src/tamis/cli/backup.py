"""``tamis backup``: a copy of a broker."""

from __future__ import annotations

import time
from pathlib import Path

import click

from tamis.cli.broker_folder import reading, size_of
from tamis.cli.diagnostics import Diagnostics
from tamis.cli.options import quiet_option
from tamis.service.tenant_files import copy_files


@click.command()
@click.argument("folder")
@click.argument("target")
@quiet_option
def backup(folder: str, target: str, quiet: bool) -> None:
    """Copy the broker in FOLDER to the new folder TARGET.

    The copy has the state of one moment, also if another process writes to FOLDER meanwhile. It is a broker like any
    other: to restore it, use it instead of FOLDER. Of a tenant of a service, webhooks and schema are copied, too.

    \b
    Example:
      tamis backup alerts copies/alerts-monday
    """
    with reading(folder) as broker:
        started = time.perf_counter()
        broker.backup(target)
        copy_files(Path(folder), Path(target))
    Diagnostics(quiet=quiet).summary(f"{target}: {size_of(target)} in {time.perf_counter() - started:.1f} s")
