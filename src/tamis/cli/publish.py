"""``tamis publish``: events of files, to the subscribers of a broker."""

from __future__ import annotations

import sys

import click

from tamis.cli.broker_folder import wait_option, writing
from tamis.cli.diagnostics import Diagnostics, OnError, is_terminal
from tamis.cli.error_file import open_errors
from tamis.cli.event_files import EventFiles, expanded
from tamis.cli.exit_status import FAILED, SKIPPED
from tamis.cli.moment_text import moment_of, moment_option
from tamis.cli.options import (
    errors_option,
    event_format_option,
    on_error_option,
    quiet_option,
    read_schema,
    schema_option,
)
from tamis.errors import FileError, TamisError


@click.command()
@click.argument("folder")
@click.argument("files", nargs=-1, metavar="[EVENTS]...")
@click.option("--matches", "with_matches", is_flag=True, help="Print which subscriptions were told, not only how many.")
@moment_option("--valid-until", "Until when new subscriptions meet these events, too. Default: they do not meet them.")
@click.option(
    "--key-from",
    metavar="FIELD",
    help="The value of this field, a string or an integer, is the key of an event. An event whose key was published in "
    "the last 24 hours is not published again.",
)
@click.option(
    "-k", type=click.IntRange(1), help="Tell at most this many subscriptions of each event, highest weights first."
)
@event_format_option
@schema_option
@on_error_option
@errors_option
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=1_000,
    show_default=True,
    help="Number of events to store in one step.",
)
@wait_option
@quiet_option
# Its parameters are the options of the command.
def publish(
    folder: str,
    files: tuple[str, ...],
    with_matches: bool,
    valid_until: str | None,
    key_from: str | None,
    k: int | None,
    event_format: str | None,
    schema_path: str | None,
    on_error: OnError,
    errors: str | None,
    batch_size: int,
    wait: float,
    quiet: bool,
) -> None:
    """Publish EVENTS to the subscribers of the broker in FOLDER.

    EVENTS are files or patterns as for `tamis match`: JSONL, a JSON array, CSV or Parquet. Without EVENTS, or for -,
    events come from stdin.

    Each event that is safe on disk is a line {"line": ..., "sequence": ..., "matches": ...}: the line of the event, its
    number in the broker, and how many subscriptions were told. With several files there is also "file".

    A bad line is reported as file:line: message. Events before it are published. The exit status is 1 if a bad line
    stopped the work, 3 if bad lines were skipped. To publish a file again after an error, use --key-from.

    \b
    Examples:
      tamis publish alerts events.jsonl
      tamis publish alerts offers.csv --valid-until 2026-12-24T18:00 --key-from sku
      tail -f events.jsonl | tamis publish alerts - --on-error skip
    """
    from tamis.cli.publish_run import PublishOptions, PublishRun

    paths = expanded(files)
    if errors is not None and errors in paths:
        raise click.BadParameter("bad lines need a file of their own", param_hint="--errors")
    schema = read_schema(schema_path)
    until = None if valid_until is None else moment_of(valid_until)
    options = PublishOptions(until, key_from is not None, k, schema, with_matches)
    with writing(folder, wait) as broker, open_errors(errors) as error_file:
        diagnostics = Diagnostics(on_error, quiet=quiet, progress=not is_terminal(sys.stdout), errors=error_file)
        run = PublishRun(
            broker, EventFiles(paths, event_format, id_field=key_from, schema=schema), diagnostics, options
        )
        try:
            run.publish_all(batch_size)
        except TamisError as error:
            diagnostics.say(str(error) if isinstance(error, FileError) else f"Error: {error}")
            diagnostics.summary(f"stopped after {run.summary()}")
            sys.exit(FAILED)
    diagnostics.summary(run.summary())
    if diagnostics.bad_lines:
        sys.exit(SKIPPED)
