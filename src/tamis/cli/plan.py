"""``tamis plan``: how an index on disk finds a subscription."""

from __future__ import annotations

import json
from typing import Any

import click

from tamis.errors import IdTypeError


@click.command()
@click.argument("index")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def plan(index: str, id: str, as_json: bool) -> None:
    """Show how INDEX finds the subscription ID.

    INDEX is a file that `tamis build` wrote. The plan names the predicate that leads events to the subscription, and the
    predicates that are checked after that.

    \b
    Examples:
      tamis plan alerts.tamis ann
      tamis plan alerts.tamis 17 --json
    """
    from tamis.matcher.load import load

    matcher: Any = load(index)
    found = _plan(matcher, id)
    click.echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else str(found))


def _plan(matcher: Any, word: str) -> Any:
    """The plan of the subscription whose id is a word, or the number that the word means if ids are numbers."""
    try:
        return matcher.plan(word)
    except IdTypeError:
        if not word.removeprefix("-").isdecimal():
            raise
        return matcher.plan(int(word))
