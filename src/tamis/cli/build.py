"""``tamis build``: subscriptions of a file into an index on disk."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from tamis.cli.byte_stream import STDIN
from tamis.cli.diagnostics import Diagnostics, OnError, counted
from tamis.cli.error_file import open_errors
from tamis.cli.exit_status import FAILED, SKIPPED
from tamis.cli.load import load
from tamis.cli.options import (
    errors_option,
    format_option,
    on_error_option,
    quiet_option,
    read_schema,
    schema_option,
)
from tamis.cli.subscription_files import SubscriptionFile
from tamis.errors import FileError


@click.command()
@click.argument("subscriptions")
@click.argument("index")
@format_option
@schema_option
@on_error_option
@errors_option
@quiet_option
def build(
    subscriptions: str,
    index: str,
    format: str | None,
    schema_path: str | None,
    on_error: OnError,
    errors: str | None,
    quiet: bool,
) -> None:
    """Build the file INDEX from SUBSCRIPTIONS.

    SUBSCRIPTIONS is what `tamis match` takes; - is stdin. INDEX holds everything that matching needs, including the schema.
    `tamis match --index` and `tamis.load` in Python open it at once. INDEX appears when it is complete, and replaces a
    file of that name. The exit status is 1 if a bad line stopped the work, 3 if bad lines were skipped.

    \b
    Examples:
      tamis build alerts.jsonl alerts.tamis
      tamis match --index alerts.tamis events.jsonl > matches.jsonl
      tamis build subscriptions.parquet subscriptions.tamis --on-error skip --errors bad.jsonl
    """
    from tamis.matcher.matcher import Matcher

    if index in (STDIN, "", subscriptions):
        raise click.BadParameter("the index needs a file of its own", param_hint="INDEX")
    if errors in (subscriptions, index):
        raise click.BadParameter("bad lines need a file of their own", param_hint="--errors")
    started = time.perf_counter()
    matcher = Matcher(schema=read_schema(schema_path))
    with open_errors(errors) as error_file:
        diagnostics = Diagnostics(on_error, quiet=quiet, errors=error_file)
        try:
            load(SubscriptionFile(subscriptions, format), matcher, diagnostics)
            parts = matcher.stats()["index_stats"]
            if len(parts["segments"]) > 1 or parts["delta_rows"]:
                matcher.optimize()  # Subscriptions came in blocks; one piece is matched faster.
            matcher.save(index)
        except FileError as error:
            diagnostics.say(str(error))
            diagnostics.summary(f"{index} is not written")
            sys.exit(FAILED)
    skipped = f"; {counted(diagnostics.bad_lines, 'bad line')} skipped" if diagnostics.bad_lines else ""
    size, seconds = Path(index).stat().st_size / 1e6, time.perf_counter() - started
    diagnostics.summary(f"{index}: {counted(len(matcher), 'subscription')}, {size:,.1f} MB in {seconds:.1f} s{skipped}")
    if diagnostics.bad_lines:
        sys.exit(SKIPPED)
