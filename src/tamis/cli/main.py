"""The group of commands. Errors become a message and an exit status, never a traceback."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any

import click

from tamis import __version__
from tamis.cli.backup import backup
from tamis.cli.build import build
from tamis.cli.changes import changes
from tamis.cli.check import check
from tamis.cli.compact import compact
from tamis.cli.demo import demo
from tamis.cli.diagnostics import CLEAR, is_terminal
from tamis.cli.exit_status import FAILED, INTERRUPTED, NO_READER
from tamis.cli.experiments import experiments
from tamis.cli.explain import explain
from tamis.cli.filter import filter_events
from tamis.cli.generate import generate
from tamis.cli.indexes import indexes
from tamis.cli.match import match
from tamis.cli.pipeline import pipeline
from tamis.cli.plan import plan
from tamis.cli.publish import publish
from tamis.cli.receive import receive
from tamis.cli.serve import serve
from tamis.cli.sigma import sigma
from tamis.cli.stats import stats
from tamis.cli.subscribe import subscribe
from tamis.cli.token import token
from tamis.cli.warmup import warmup
from tamis.errors import FileError, TamisError


class Commands(click.Group):
    """A group that turns exceptions into messages for users."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FileError as error:  # begins with file and line, where editors look for them
            _say(str(error))
            ctx.exit(FAILED)
        except TamisError as error:
            _say(f"Error: {error}")
            ctx.exit(FAILED)
        except KeyboardInterrupt:
            _say("Interrupted")
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _clear_line()
            _drop_output()
            ctx.exit(NO_READER)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            _say(f"Error: {place}{error.strerror or error}")
            _drop_output()
            ctx.exit(FAILED)


def _say(message: str) -> None:
    _clear_line()
    click.echo(message, err=True)


def _clear_line() -> None:
    """Remove a progress bar, if there is one."""
    if is_terminal(sys.stderr):
        click.echo(CLEAR, nl=False, err=True)


def _drop_output() -> None:
    """Discard buffered output for stdout. Otherwise Python would complain about it at exit."""
    # Suppressed: stdout is closed, or not a file.
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="tamis")
def main() -> None:
    """Match events against standing Boolean expressions.

    A subscription is a condition, as after WHERE in SQL. It matches an event when a SQL engine would keep the event's
    row under that condition.

    \b
    Examples:
      tamis filter 'price < 20' events.jsonl
      tamis explain "price < 20 AND genre = 'crime'" '{"price": 12, "genre": "crime"}'
      tamis match alerts.jsonl events.jsonl > matches.jsonl
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that is not Unicode gets escapes, not an error.
        sys.stdout.reconfigure(errors="backslashreplace")


for _command in (
    match,
    filter_events,
    explain,
    check,
    build,
    stats,
    plan,
    subscribe,
    publish,
    receive,
    changes,
    backup,
    compact,
    serve,
    token,
    pipeline,
    sigma,
    generate,
    indexes,
    experiments,
    warmup,
    demo,
):
    main.add_command(_command)
