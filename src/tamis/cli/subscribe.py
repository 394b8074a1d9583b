"""``tamis subscribe``: subscriptions of a broker come, change, pause and go."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tamis.cli import wanted_files
from tamis.cli.broker_folder import reading, wait_option, writing
from tamis.cli.diagnostics import Diagnostics, OnError, counted
from tamis.cli.error_file import open_errors
from tamis.cli.exit_status import FAILED, SKIPPED
from tamis.cli.history_options import NO_HISTORY, history_options
from tamis.cli.json_output import write_objects
from tamis.cli.json_text import JsonError, read_json
from tamis.cli.moment_text import moment_of, moment_option
from tamis.cli.options import errors_option, on_error_option, quiet_option
from tamis.errors import ExpressionError, FileError, HistoryError, UnknownIdError

if TYPE_CHECKING:
    from tamis.broker.answers import StandingSubscription
    from tamis.earlier.history import History

_ARGUMENTS = {
    None: (2, 3),
    "--file": (0, 0),
    "--list": (0, 2),
    "--pause": (2, 2),
    "--resume": (2, 2),
    "--remove": (2, 2),
    "--remove-subscriber": (1, 1),
}
"""What to do -> the fewest and the most arguments after FOLDER."""


@click.command()
@click.argument("folder")
@click.argument("names", nargs=-1, metavar="[SUBSCRIBER [NAME [EXPRESSION]]]")
@click.option("--weight", type=float, help="Weight of the subscription. Default for a new one: 1.")
@moment_option("--valid-from", "When the subscription begins; `none`: it has begun.")
@moment_option("--valid-until", "When the subscription ends; `none`: never.")
@click.option("--file", "path", metavar="FILE", help="Add or change the subscriptions in FILE; - is stdin.")
@click.option(
    "--list", "lists", is_flag=True, help="Print the subscriptions of everybody, of SUBSCRIBER, or NAME only."
)
@click.option("--pause", is_flag=True, help="Pause the subscription: events pass it by.")
@click.option("--resume", is_flag=True, help="Wake a paused subscription.")
@click.option("--remove", is_flag=True, help="Remove the subscription. Notes that were told stay.")
@click.option("--remove-subscriber", is_flag=True, help="Remove SUBSCRIBER with all its subscriptions and notes.")
@click.option(
    "--format",
    type=click.Choice(wanted_files.FORMATS),
    help="Format of FILE. Default: by the end of the name (.csv, .parquet), else jsonl.",
)
@history_options("Keep earlier events in the broker, for ANY, ALL and EXISTS")
@on_error_option
@errors_option
@wait_option
@quiet_option
# Its parameters are the options of the command.
def subscribe(
    folder: str,
    names: tuple[str, ...],
    weight: float | None,
    valid_from: str | None,
    valid_until: str | None,
    path: str | None,
    lists: bool,
    pause: bool,
    resume: bool,
    remove: bool,
    remove_subscriber: bool,
    format: str | None,
    history: History | None,
    on_error: OnError,
    errors: str | None,
    wait: float,
    quiet: bool,
) -> None:
    """Add or change a subscription of the broker in FOLDER.

    FOLDER is made if it is not there. SUBSCRIBER is told about the events for which EXPRESSION is TRUE: later events,
    and stored events that are still valid. EXPRESSION is SQL text or the JSON form. If SUBSCRIBER has a subscription
    NAME already, it is changed: what is not given stays.

    With --file, many subscriptions are added or changed. FILE is JSONL with the keys subscriber, name, expression (or
    predicates), weight, valid_from and valid_until, or CSV or Parquet with these columns. --list prints such lines.

    With --history-rows or --history-age, the broker keeps earlier events, and expressions may compare with them. Give
    these options once: the folder remembers them.

    Moments are such as 2026-12-24, 2026-12-24T18:00 or 2026-12-24T18:00+01:00. Without a zone they are UTC.

    \b
    Examples:
      tamis subscribe alerts ann crime "price < 20 AND genre = 'crime'" --valid-until 2026-12-24T18:00
      tamis subscribe alerts ann crime --weight 2
      tamis subscribe prices bob drop "price < ALL (SELECT price FROM history)" --history-rows 100
      tamis subscribe alerts --file wishes.jsonl
      tamis subscribe alerts ann crime --pause
      tamis subscribe alerts --list
    """
    flags = {"--pause": pause, "--resume": resume, "--remove": remove, "--remove-subscriber": remove_subscriber}
    action = _action({"--file": path is not None, "--list": lists, **flags})
    bounds = {"valid_from": valid_from, "valid_until": valid_until}
    words: dict[str, Any] = {name: moment_of(text) for name, text in bounds.items() if text is not None}
    if weight is not None:
        words["weight"] = weight
    _check_arguments(action, names, words)
    if history is not None and (action not in (None, "--file") or len(names) == 2):
        raise click.UsageError("The options of a history go with EXPRESSION or --file.")
    if path is None and (format or errors):
        raise click.UsageError("--format and --errors are about --file.")
    if path is not None:
        if errors == path:
            raise click.BadParameter("bad lines need a file of their own", param_hint="--errors")
        with open_errors(errors) as error_file:
            _subscribe_file(folder, path, format, Diagnostics(on_error, quiet=quiet, errors=error_file), wait, history)
    elif action == "--list":
        _list(folder, *names)
    else:
        _change(folder, action, names, words, wait, history)


def _action(given: Mapping[str, bool]) -> str | None:
    """What to do; None: add or change one subscription."""
    chosen = [name for name, is_given in given.items() if is_given]
    if len(chosen) > 1:
        raise click.UsageError(f"Give {chosen[0]} or {chosen[1]}, not both.")
    return chosen[0] if chosen else None


def _check_arguments(action: str | None, names: tuple[str, ...], words: Mapping[str, Any]) -> None:
    fewest, most = _ARGUMENTS[action]
    with_action = f" with {action}" if action else ""
    if len(names) < fewest:
        raise click.UsageError(f"Give {' and '.join(['SUBSCRIBER', 'NAME'][:fewest])}{with_action}.")
    if len(names) > most:
        raise click.UsageError(f"{names[most]!r} is one argument too many{with_action}.")
    if action is not None and words:
        raise click.UsageError(f"--weight, --valid-from and --valid-until do not go{with_action}.")
    if action is None and len(names) == 2 and not words:
        raise click.UsageError("Give EXPRESSION, or an option that says what to do.")


def _change(
    folder: str,
    action: str | None,
    names: tuple[str, ...],
    words: dict[str, Any],
    wait: float,
    history: History | None,
) -> None:
    """Change one subscription or subscriber."""
    if len(names) == 3:
        words = {**words, "expression": _expression(names[2])}
    # Nothing to pause or to remove is in a folder that is not there.
    with writing(folder, wait, make="expression" in words, history=history) as broker:
        if action is None:
            with _about_history():
                broker.subscribe(*names[:2], **words)
        elif action == "--remove-subscriber":
            broker.remove_subscriber(names[0])
        else:
            change = {"--pause": broker.pause, "--resume": broker.resume, "--remove": broker.unsubscribe}[action]
            change(names[0], names[1])


@contextmanager
def _about_history() -> Iterator[None]:
    """Let the hint of an error name options of the command."""
    try:
        yield
    except HistoryError:
        raise HistoryError(NO_HISTORY) from None


def _expression(text: str) -> Any:
    """SQL text as it is, so that the broker keeps it, or the JSON form, which begins with a bracket."""
    if not text.lstrip().startswith("["):
        return text
    try:
        return read_json(text)
    except JsonError as error:
        raise ExpressionError(str(error)) from None


def _list(folder: str, subscriber: str | None = None, name: str | None = None) -> None:
    from tamis.broker.answer_json import subscription_json

    with reading(folder) as broker:
        found: Iterable[StandingSubscription] = broker.subscriptions(subscriber)
        if name is not None:
            found = [each for each in found if each.name == name]
            if not found:
                raise UnknownIdError((subscriber, name))
        write_objects(map(subscription_json, found))


def _subscribe_file(
    folder: str, path: str, format: str | None, diagnostics: Diagnostics, wait: float, history: History | None
) -> None:
    from tamis.cli.wanted_load import WantedLoad

    file = wanted_files.WantedFile(path, format)
    with writing(folder, wait, make=True, history=history) as broker:
        started = time.perf_counter()
        load = WantedLoad(file, broker, diagnostics)
        try:
            load.put_all()
        except FileError as error:
            diagnostics.say(str(error))
            diagnostics.summary(f"stopped: {counted(load.done, 'subscription')} stored")
            sys.exit(FAILED)
    skipped = f"; {counted(diagnostics.bad_lines, 'bad line')} skipped" if diagnostics.bad_lines else ""
    diagnostics.summary(f"{counted(load.done, 'subscription')} in {time.perf_counter() - started:.1f} s{skipped}")
    if diagnostics.bad_lines:
        sys.exit(SKIPPED)
