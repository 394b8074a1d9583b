"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tamis.cli import event_files, subscription_files

if TYPE_CHECKING:
    from tamis.language.schema import Schema

F = TypeVar("F", bound=Callable[..., Any])


def format_option(command: F) -> F:
    """``--format`` of the file of subscriptions."""
    return click.option(
        "--format",
        type=click.Choice(subscription_files.FORMATS),
        help="Format of the subscriptions. Default: by the end of the name (.jsonl, .csv, .parquet), text with one "
        "expression per line for other names, jsonl for stdin.",
    )(command)


def event_format_option(command: F) -> F:
    """``--event-format`` of a file of events."""
    return click.option(
        "--event-format",
        type=click.Choice(event_files.FORMATS),
        help="Format of the events. Default: by the end of the name (.csv, .parquet), else jsonl.",
    )(command)


def schema_option(command: F) -> F:
    """``--schema``, the path of a declared schema; `read_schema` reads it."""
    return click.option(
        "--schema",
        "schema_path",
        metavar="FILE",
        help='JSON file that declares attributes: {"price": "number", "tags": "list<string>", "at": "timestamp"}. '
        "Kinds are then checked, and strings of declared timestamps are read as timestamps.",
    )(command)


def on_error_option(command: F) -> F:
    """``--on-error``, the action at a bad line."""
    return click.option(
        "--on-error",
        type=click.Choice(["stop", "skip"]),
        default="stop",
        show_default=True,
        help="At a bad line: stop, or report it, skip it and end with status 3.",
    )(command)


def errors_option(command: F) -> F:
    """``--errors``, a file for bad lines."""
    return click.option(
        "--errors", metavar="FILE", help="Write all bad lines to FILE, as JSONL with file, line and message."
    )(command)


def index_option(command: F) -> F:
    """``--index``, a file that holds the subscriptions, or the name of an index to put them in."""
    return click.option(
        "--index",
        metavar="FILE|NAME",
        default="auto",
        show_default=True,
        help="File that `tamis build` wrote. It holds the subscriptions, so leave SUBSCRIPTIONS out. Or the name of an "
        "index; `tamis indexes` lists them.",
    )(command)


def quiet_option(command: F) -> F:
    """``--quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help="Print no progress and no summary.")(command)


def read_schema(path: str | None) -> Schema | None:
    """The schema of a JSON file.

    Raises
    ------
    FileError
    """
    if path is None:
        return None
    from tamis.cli.json_text import JsonError, read_object
    from tamis.cli.lines import read_text
    from tamis.errors import FileError, SchemaError
    from tamis.language.schema import Schema

    try:
        return Schema.of(read_object(read_text(path), "a schema"))
    except (JsonError, SchemaError) as error:
        raise FileError(str(error), path=path) from None
