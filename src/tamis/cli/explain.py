"""``tamis explain``: why an event matches an expression or not."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.byte_stream import STDIN
from tamis.cli.event_files import EventFile
from tamis.cli.event_json import TimestampReader
from tamis.cli.exit_status import NOT_MATCHED
from tamis.cli.expression_text import read_expression
from tamis.cli.json_text import read_object
from tamis.cli.lines import LineError, read_text
from tamis.cli.options import event_format_option, format_option, read_schema, schema_option
from tamis.cli.subscription_files import SubscriptionFile
from tamis.cli.subscription_lines import expression_of, wrong_expression
from tamis.errors import ExpressionError, FileError

if TYPE_CHECKING:
    from tamis.language.expression import Expression
    from tamis.language.schema import Schema

_COLOURS = {"TRUE": "green", "FALSE": "red", "UNKNOWN": "yellow"}
_HEADLINE = re.compile(r"^([│├└─ ]*)(TRUE|FALSE|UNKNOWN)\b", re.MULTILINE)


@click.command()
@click.argument("words", nargs=-1, metavar="[EXPRESSION] EVENT")
@click.option("--subscriptions", metavar="FILE", help="File of subscriptions to take the expression from; needs --id.")
@click.option("--id", "identifier", help="Id of the subscription; in a text file, the number of its line.")
@click.option(
    "--history", metavar="FILE", help="File of earlier events, for ANY, ALL and EXISTS: JSONL, CSV or Parquet."
)
@format_option
@event_format_option
@schema_option
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON.")
@click.option("--exit-code", is_flag=True, help="Exit with status 4 if the event does not match.")
# Its parameters are the options of the command.
def explain(
    words: tuple[str, ...],
    subscriptions: str | None,
    identifier: str | None,
    history: str | None,
    format: str | None,
    event_format: str | None,
    schema_path: str | None,
    as_json: bool,
    exit_code: bool,
) -> None:
    """Explain why EVENT matches EXPRESSION or not.

    EXPRESSION is SQL text or the JSON form. EVENT is a JSON object, @FILE for a file with one, or - for stdin. The answer
    shows every part of the expression with its truth: TRUE, FALSE or UNKNOWN.

    \b
    Examples:
      tamis explain "price < 20 AND genre = 'crime'" '{"price": 12, "genre": "crime"}'
      sed -n 17p events.jsonl | tamis explain --subscriptions alerts.jsonl --id ann -
      tamis explain "price < ALL (SELECT price FROM history)" @offer.json --history earlier.jsonl
    """
    from tamis.language.explain import explain as explain_expression

    schema = read_schema(schema_path)
    if subscriptions is None and identifier is None and len(words) == 2:
        expression = read_expression(words[0])
    elif subscriptions is not None and identifier is not None and len(words) == 1:
        expression = _of_file(SubscriptionFile(subscriptions, format), identifier)
    else:
        raise click.UsageError("Give EXPRESSION and EVENT, or --subscriptions FILE, --id ID and EVENT.")
    if schema is not None:
        schema.check(expression, words[0] if len(words) == 2 else None)
    event = _read_event(words[-1], schema)
    earlier = [] if history is None else _read_history(EventFile(history, event_format, schema=schema))
    explanation = explain_expression(expression, event, earlier)
    if as_json:
        answer = {"matched": explanation.matched, "expression": str(expression), "explanation": explanation.to_dict()}
        click.echo(json.dumps(answer, ensure_ascii=False))
    else:
        click.echo("The event matches." if explanation.matched else "The event does not match.")
        click.echo(coloured(str(explanation)))
    if exit_code and not explanation.matched:
        sys.exit(NOT_MATCHED)


def coloured(tree: str) -> str:
    """A drawn explanation with its truths in colour; click removes the colour if the output is not a terminal."""
    return _HEADLINE.sub(lambda found: found[1] + click.style(found[2], fg=_COLOURS[found[2]]), tree)


def _of_file(file: SubscriptionFile, identifier: str) -> Expression:
    """The expression of a subscription. Other lines may be wrong."""
    unread = 0
    for item in file:
        if isinstance(item, FileError):
            unread += 1
        elif str(item.id) == identifier:
            try:
                return expression_of(item)
            except ExpressionError as error:
                raise file.error(item.line, wrong_expression(error)) from None
    also = f"; {unread:,} of its lines cannot be read, see `tamis check`" if unread else ""
    raise FileError(f"there is no subscription {identifier!r}{also}", path=file.name)


def _read_event(word: str, schema: Schema | None) -> dict[str, Any]:
    path = STDIN if word == STDIN else word.removeprefix("@")
    name = "stdin" if path == STDIN else path if word.startswith("@") else "the event"
    text = read_text(path) if word == STDIN or word.startswith("@") else word
    try:
        event = TimestampReader(schema).read(read_object(text, "an event"))
    except LineError as error:
        raise FileError(f"{error}{_hint(word, str(error))}", path=name) from None
    if schema is not None:
        from tamis.language.event import flatten

        schema.check_event(flatten(event))
    return event


def _hint(word: str, problem: str) -> str:
    """A hint about a word that is not an event."""
    if os.path.isfile(word):
        return f". Hint: @{word} reads the file"
    return ". Hint: EVENT is one object; `sed -n 17p` picks one line of a file" if "extra data" in problem else ""


def _read_history(file: EventFile) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for batch in file.batches(10_000, until_error=True):
        for error in batch.errors:
            raise error
        events += batch.mappings()
    return events
