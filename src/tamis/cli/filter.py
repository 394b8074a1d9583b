"""``tamis filter``: the events that match one expression."""

from __future__ import annotations

import os
import sys

import click

from tamis.cli.diagnostics import Diagnostics, OnError
from tamis.cli.error_file import open_errors
from tamis.cli.event_files import expanded
from tamis.cli.exit_status import FAILED, NOT_MATCHED, SKIPPED
from tamis.cli.expression_text import read_expression
from tamis.cli.match_files import write_all
from tamis.cli.options import (
    errors_option,
    event_format_option,
    on_error_option,
    read_schema,
    schema_option,
)
from tamis.errors import FileError


@click.command("filter")
@click.argument("expression")
@click.argument("files", nargs=-1, metavar="[FILES]...")
@click.option("-v", "--invert", is_flag=True, help="Print the events that do not match: FALSE or UNKNOWN.")
@click.option("-c", "--count", is_flag=True, help="Print only the number of events, of all files together.")
@event_format_option
@schema_option
@on_error_option
@errors_option
@click.option("--exit-code", is_flag=True, help="Exit with status 4 if no event is printed or counted.")
@click.option("-q", "--quiet", is_flag=True, help="Print no hints when no event matches.")
# Its parameters are the options of the command.
def filter_events(
    expression: str,
    files: tuple[str, ...],
    invert: bool,
    count: bool,
    event_format: str | None,
    schema_path: str | None,
    on_error: OnError,
    errors: str | None,
    exit_code: bool,
    quiet: bool,
) -> None:
    """Print the events of FILES that match EXPRESSION.

    EXPRESSION is a condition, as after WHERE in SQL. FILES are files or patterns such as 'logs/*.jsonl': JSONL, a JSON
    array, CSV or Parquet. Files packed with gzip or zstd are unpacked. Without FILES, or for -, events come from stdin,
    but not as Parquet.

    Lines of JSONL and CSV are printed as they are, below the header of CSV. Other events are printed as JSONL. So CSV
    files cannot be mixed with other files, except with --count.

    A bad line is reported as file:line: message. The exit status is 1 if a bad line stopped the work, 3 if bad lines
    were skipped.

    \b
    Examples:
      tamis filter 'price < 20' books.jsonl
      tamis filter "level = 'ERROR' AND NOT host LIKE 'test%'" 'logs/*.jsonl.gz' --count
      tail -f events.jsonl | tamis filter 'user.age >= 18'
      tamis filter -v 'price IS NOT NULL' books.csv > without-price.csv
    """
    from tamis.cli.event_filter import EventFilter
    from tamis.cli.filter_run import FilterRun

    if os.path.isfile(expression):
        raise click.UsageError(f"EXPRESSION comes first, then FILES; {expression} is a file.")
    paths = expanded(files)
    if errors is not None and errors in paths:
        raise click.BadParameter("bad lines need a file of their own", param_hint="--errors")
    schema = read_schema(schema_path)
    event_filter = EventFilter(read_expression(expression), schema, expression)
    with open_errors(errors) as error_file:
        diagnostics = Diagnostics(on_error, quiet=quiet, progress=False, errors=error_file)
        write = None if count else _print
        run = FilterRun(event_filter, diagnostics, write=write, invert=invert, schema=schema)
        try:
            run.filter_all(paths, event_format)
        except FileError as error:
            diagnostics.say(str(error))
            sys.exit(FAILED)
    if count:
        click.echo(run.selected)
    if not run.matched:
        for hint in event_filter.hint():
            diagnostics.summary(f"nothing matches: {hint}")
    if diagnostics.bad_lines:
        sys.exit(SKIPPED)
    if exit_code and not run.selected:
        sys.exit(NOT_MATCHED)


def _print(data: bytes) -> None:
    write_all(sys.stdout.buffer, data)
    sys.stdout.buffer.flush()
