"""``tamis match``: events of a file against subscriptions of a file, or of an index on disk."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from tamis.cli import match_files
from tamis.cli.byte_stream import STDIN
from tamis.cli.diagnostics import Diagnostics, OnError, is_terminal
from tamis.cli.error_file import open_errors
from tamis.cli.event_files import EventFiles, expanded
from tamis.cli.exit_status import FAILED, SKIPPED
from tamis.cli.history_options import history_options
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
    from tamis.earlier.history import History
    from tamis.matcher.matcher import Matcher


@click.command()
@click.argument("files", nargs=-1, metavar="[SUBSCRIPTIONS] [EVENTS]...")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default=STDOUT,
    help="Write the matches to FILE, which appears when it is complete. Default: stdout.",
)
@click.option(
    "--output-format",
    type=click.Choice(match_files.FORMATS),
    help="Format of the matches. Default: by the end of the name of --output, else jsonl.",
)
@click.option("--count", is_flag=True, help="Write how many subscriptions match each event, not which.")
@click.option(
    "-k",
    type=click.IntRange(1),
    help="Write at most this many matches of each event, highest weights first.",
)
@click.option(
    "--event-id",
    metavar="FIELD",
    help="Write the value of this field, a string or an integer, instead of the number of the event.",
)
@format_option
@event_format_option
@schema_option
@on_error_option
@errors_option
@index_option
@history_options("Keep earlier events, for ANY, ALL and EXISTS")
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Number of events to read at a time.",
)
@click.option(
    "--device",
    metavar="DEVICE",
    default="cpu",
    show_default=True,
    help="Match on gpu, or on one of several cards such as gpu:1. Cards like batches of 100,000 events or more.",
)
@quiet_option
# Its parameters are the options of the command.
def match(
    files: tuple[str, ...],
    output: str,
    output_format: str | None,
    count: bool,
    k: int | None,
    event_id: str | None,
    format: str | None,
    event_format: str | None,
    schema_path: str | None,
    on_error: OnError,
    errors: str | None,
    index: str,
    history: History | None,
    batch_size: int,
    device: str,
    quiet: bool,
) -> None:
    """Match EVENTS against SUBSCRIPTIONS.

    SUBSCRIPTIONS is a file: JSONL ({"id": ..., "expression": ...}), CSV (id,expression), Parquet, or text with one
    expression per line, whose id is the line number. With --index FILE, leave SUBSCRIPTIONS out.

    EVENTS are files or patterns such as 'logs/*.jsonl': JSONL, a JSON array, CSV or Parquet. Files packed with gzip or
    zstd are unpacked. Without EVENTS, or for -, events come from stdin.

    With --history-rows or --history-age, each event is compared with the events before it.

    Each match is a line {"event": ..., "line": ..., "subscription": ...}. "event" counts from 0 over all files, "line"
    counts from 1. With several files there is also "file".

    A bad line is reported as file:line: message. The exit status is 1 if a bad line stopped the work, 3 if bad lines
    were skipped.

    \b
    Examples:
      tamis match alerts.jsonl events.jsonl > matches.jsonl
      tamis match alerts.jsonl 'logs/*.jsonl.gz' -k 10
      tamis match alerts.jsonl logins.jsonl --history-rows 10 --history-key user
      tail -f events.jsonl | tamis match alerts.txt - --event-id order_id
      tamis match subscriptions.parquet events.parquet --output matches.parquet
      tamis match --index alerts.tamis events.csv > matches.jsonl
    """
    subscriptions, events = _inputs(files, built=_is_built(index))
    if subscriptions == STDIN and (not events or STDIN in events):
        raise click.UsageError("Subscriptions and events cannot both come from stdin.")
    if count and k is not None:
        raise click.UsageError("Give --count or -k, not both: -k chooses matches, --count writes none.")
    if not output:
        raise click.BadParameter("the name of the file is empty", param_hint="--output")
    paths = expanded(events)
    _check_apart(output, errors, (*files, *paths), index)
    if subscriptions is None:
        _check_built(schema_path or format, history)
    from tamis.matcher.matcher import asked_by, check_device

    matcher = _matcher(index, schema_path, history, built=subscriptions is None)
    check_device(matcher, device)
    to_terminal = output == STDOUT and is_terminal(sys.stdout)
    with open_errors(errors) as error_file:
        diagnostics = Diagnostics(on_error, quiet=quiet, progress=not to_terminal, errors=error_file)
        source = None if subscriptions is None else SubscriptionFile(subscriptions, format)
        event_files = EventFiles(paths, event_format, id_field=event_id, schema=matcher.schema, asked=asked_by(matcher))
        run = MatchRun(matcher, event_files, diagnostics, count=count, k=k, device=device)
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


def _check_apart(output: str, errors: str | None, read: tuple[str, ...], index: str) -> None:
    """Refuse to write matches or bad lines to a file that is read, or both to one file."""
    if errors is not None and errors in (*read, index, output):
        raise click.BadParameter("bad lines need a file of their own", param_hint="--errors")
    if output != STDOUT and output in read:
        raise click.BadParameter("matches need a file of their own", param_hint="--output")


def _is_built(index: str) -> bool:
    """Whether --index gives a file; the names of indexes come first."""
    from tamis.papers.registry import AUTO, indexes

    return index not in (AUTO, *indexes()) and os.path.exists(index)


def _check_built(about_subscriptions: str | None, history: History | None) -> None:
    """Refuse options that do not go with a file that holds the subscriptions."""
    if about_subscriptions:
        raise click.UsageError(
            "--schema and --format are about SUBSCRIPTIONS; the file given with --index has its own schema."
        )
    if history is not None:
        raise click.UsageError("The options of a history do not go with a file that is given with --index.")


def _inputs(files: tuple[str, ...], *, built: bool) -> tuple[str | None, tuple[str, ...]]:
    """The subscriptions, None if they are built already, and the events."""
    if built:
        return None, files
    if not files:
        raise click.UsageError("Give SUBSCRIPTIONS, or --index with a file that `tamis build` wrote.")
    return files[0], files[1:]


def _matcher(index: str, schema_path: str | None, history: History | None, *, built: bool) -> Matcher:
    if built:
        from tamis.matcher.load import load as load_built

        return load_built(index)
    from tamis.matcher.matcher import Matcher

    schema = read_schema(schema_path)
    try:
        return Matcher(index, schema, history=history)
    except UnknownIndexError as error:
        raise click.BadParameter(f"{error}, or a file that `tamis build` wrote", param_hint="--index") from None
