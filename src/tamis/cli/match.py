"""``tamis match``: events of a file against subscriptions of a file, or of an index on disk."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from tamis.cli import match_files
from tamis.cli.diagnostics import Diagnostics, OnError, is_terminal
from tamis.cli.error_file import open_errors
from tamis.cli.event_files import EventFile
from tamis.cli.exit_status import FAILED, SKIPPED
from tamis.cli.lines import STDIN
from tamis.cli.load import load
from tamis.cli.match_files import STDOUT, open_matches
from tamis.cli.match_run import MatchRun
from tamis.cli.options import (
    errors_option,
    event_format_option,
    format_option,
    index_option,
    on_error_option,
    quiet_option,
    read_schema,
    schema_option,
)
from tamis.cli.subscription_files import SubscriptionFile
from tamis.errors import FileError, UnknownIndexError

if TYPE_CHECKING:
    from tamis.matcher.matcher import Matcher


@click.command()
@click.argument("files", nargs=-1, metavar="[SUBSCRIPTIONS] [EVENTS]")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default=STDOUT,
    help="File for the matches, which appears when it is complete. Default: stdout.",
)
@click.option(
    "--output-format",
    type=click.Choice(match_files.FORMATS),
    help="Format of the matches. Default: by the end of the name of --output, else jsonl.",
)
@click.option("--count", is_flag=True, help="Write how many subscriptions each event matches, not which.")
@click.option(
    "--event-id",
    metavar="FIELD",
    help="Name events by the value of this field, a string or an integer, instead of their number (from 0).",
)
@format_option
@event_format_option
@schema_option
@on_error_option
@errors_option
@index_option
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="How many events are read at once.",
)
@quiet_option
def match(
    files: tuple[str, ...],
    output: str,
    output_format: str | None,
    count: bool,
    event_id: str | None,
    format: str | None,
    event_format: str | None,
    schema_path: str | None,
    on_error: OnError,
    errors: str | None,
    index: str,
    batch_size: int,
    quiet: bool,
) -> None:
    """Match EVENTS against SUBSCRIPTIONS, or against those that a file --index has.

    SUBSCRIPTIONS is JSONL ({"id": ..., "expression": ...}), CSV (id,expression), Parquet, or text with an expression per
    line, whose number is then its id. EVENTS is JSONL or Parquet; - or nothing is JSONL from stdin.

    Matches are written as {"event": ..., "subscription": ...}, with the number of the event, counted from 0. Bad lines are
    reported as file:line: message. The exit status is 1 if one stopped the work, 3 if some were skipped.

    \b
    Examples:
      tamis match alerts.jsonl events.jsonl > matches.jsonl
      tail -f events.jsonl | tamis match alerts.txt - --event-id order_id
      tamis match subscriptions.parquet events.parquet --output matches.parquet
      tamis match --index alerts.tamis events.jsonl > matches.jsonl
    """
    subscriptions, events = _inputs(files, built=_is_built(index))
    if subscriptions == events == STDIN:
        raise click.UsageError("Subscriptions and events cannot both come from stdin.")
    if not output:
        raise click.BadParameter("the name of the file is empty", param_hint="--output")
    if errors is not None and errors in (*files, index, output, events):
        raise click.BadParameter("bad lines need a file of their own", param_hint="--errors")
    if subscriptions is None and (schema_path or format):
        raise click.UsageError(
            "--schema and --format are about SUBSCRIPTIONS; a file given with --index has its own schema."
        )
    matcher = _matcher(index, schema_path, built=subscriptions is None)
    to_terminal = output == STDOUT and is_terminal(sys.stdout)
    with open_errors(errors) as error_file:
        diagnostics = Diagnostics(on_error, quiet=quiet, progress=not to_terminal, errors=error_file)
        file = EventFile(events, event_format, label=event_id, schema=matcher.schema)
        source = None if subscriptions is None else SubscriptionFile(subscriptions, format)
        run = MatchRun(matcher, file, diagnostics, count)
        try:
            if source is not None:
                load(source, matcher, diagnostics)
            with open_matches(output, output_format) as writer:
                run.match_all(writer, batch_size)
        except FileError as error:
            diagnostics.say(str(error))
            diagnostics.summary(run.stopped() + ("" if output == STDOUT else f"; {output} is not written"))
            sys.exit(FAILED)
    diagnostics.summary(run.summary())
    if hint := run.hint():
        diagnostics.summary(hint)
    if diagnostics.bad_lines:
        sys.exit(SKIPPED)


def _is_built(index: str) -> bool:
    """Whether --index gives a file; the names of indexes come first."""
    from tamis.index.registry import AUTO, indexes

    return index not in (AUTO, *indexes()) and os.path.exists(index)


def _inputs(files: tuple[str, ...], *, built: bool) -> tuple[str | None, str]:
    """The subscriptions, None if they are built already, and the events."""
    fewest, most = (0, 1) if built else (1, 2)
    if len(files) < fewest:
        raise click.UsageError("Give SUBSCRIPTIONS, or a file that `tamis build` wrote with --index.")
    if len(files) > most:
        given = "EVENTS, since --index has the subscriptions" if built else "SUBSCRIPTIONS and EVENTS"
        raise click.UsageError(f"Give no more than {given}.")
    events = files[fewest] if len(files) == most else STDIN
    return None if built else files[0], events


def _matcher(index: str, schema_path: str | None, *, built: bool) -> Matcher:
    if built:
        from tamis.matcher.load import load as load_built

        return load_built(index)
    from tamis.matcher.matcher import Matcher

    schema = read_schema(schema_path)
    try:
        return Matcher(index, schema)
    except UnknownIndexError as error:
        raise click.BadParameter(f"{error}, or a file that `tamis build` wrote", param_hint="--index") from None
