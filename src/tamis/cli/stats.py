"""``tamis stats``: what is in an index on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tamis.cli.diagnostics import counted


@click.command()
@click.argument("index")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def stats(index: str, as_json: bool) -> None:
    """Show what is in INDEX, a file that `tamis build` wrote.

    \b
    Examples:
      tamis stats alerts.tamis
      tamis stats alerts.tamis --json | jq .subscriptions
    """
    figures = _figures(index)
    if as_json:
        click.echo(json.dumps(figures, ensure_ascii=False))
        return
    click.echo(f"{index}: {counted(figures['subscriptions'], 'subscription')}, {_size(figures['file_bytes'])}")
    for name in ("conjunctions", "dimensions", "delta_rows", "dead"):
        click.echo(f"  {name.replace('_', ' '):<12}  {figures[name]:,}")
    click.echo(f"  {'expected':<12}  {figures['expected']:,.1f} candidates per event")
    schema = figures["schema"]
    click.echo(f"  {'schema':<12}  {'none' if schema is None else counted(len(schema), 'attribute')}")
    click.echo(f"  {'segments':<12}  {len(figures['segments']):,}")
    for number, segment in enumerate(figures["segments"]):
        click.echo(f"  {f'segment {number}':<12}  {_segment(segment)}")


def _figures(index: str) -> dict[str, Any]:
    from tamis.matcher.load import load

    matcher = load(index)
    found = matcher.stats()
    return {
        "file": index,
        "file_bytes": Path(index).stat().st_size,
        "schema": None if matcher.schema is None else matcher.schema.to_dict(),
        **{name: found[name] for name in ("subscriptions", "conjunctions", "dimensions")},
        **{name: found["index_stats"][name] for name in ("delta_rows", "dead", "expected", "segments")},
    }


def _segment(figures: dict[str, Any]) -> str:
    counts = [counted(figures[name], name[:-1]) for name in ("rows", "lists")]
    entries = counted(figures["entries"], "entry", "entries")
    return ", ".join([*counts, entries, _size(figures["bytes"] + figures["table_bytes"])])


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
