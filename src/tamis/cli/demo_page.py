"""The output of the demo: headings, wishes and books, in colour on a terminal."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.diagnostics import counted

if TYPE_CHECKING:
    from tamis.matcher.ids import Id

_WIDTH = 72
_READERS_SHOWN = 3


def heading(text: str) -> None:
    click.echo()
    click.echo(click.style(f"  {text}", fg="cyan", bold=True))


def line(*parts: str) -> None:
    click.echo("  " + " ".join(parts))


def figure(text: str) -> None:
    """A line with timings."""
    line(click.style(text, fg="magenta"))


def wish(reader: str, text: str) -> None:
    first, *others = wrap(text, _WIDTH)
    line(f"  {name(f'{reader:<14}')} {first}")
    for other in others:
        line(f"  {'':<14} {other}")


def call(text: str, matched: bool) -> None:
    """A line of Python, and whether the reader's wish matches after it."""
    answer = click.style("matches", fg="green") if matched else click.style("does not match", fg="red")
    line(f"  {text:<54} {answer}")


def code(text: str) -> None:
    """A line of Python."""
    line(f"  {text}")


def book(event: dict[str, Any]) -> None:
    line(f"  {title(event)}, {event['author']}, {price(event['price'])}")
    facts = [event["format"], event["condition"], event["language"], str(event["year"]), f"from {event['country']}"]
    facts += [*event["tags"], *(["inscribed"] if event["inscribed"] else [])]
    line(faint(f"  {', '.join(facts)}"))


def wanted_by(readers: list[Id], known: str) -> str:
    """Some of the readers as text, the known reader first."""
    if not readers:
        return "  Nobody is waiting for it."
    first = [known] if known in readers else []
    others = sorted(str(reader) for reader in readers if reader != known)
    spread = first + others[:: max(1, len(others) // _READERS_SHOWN)]
    shown = ", ".join(name(reader) for reader in spread[:_READERS_SHOWN])
    rest = len(readers) - _READERS_SHOWN
    return f"  Wanted by {shown}" + (f" and {counted(rest, 'other reader')}." if rest > 0 else ".")


def title(event: dict[str, Any]) -> str:
    return click.style(event["title"], bold=True)


def name(reader: str) -> str:
    return click.style(reader, fg="yellow")


def price(amount: float) -> str:
    return f"€{amount:.2f}"


def faint(text: str) -> str:
    return click.style(text, dim=True)
