"""``tamis indexes``: what there is to match with."""

from __future__ import annotations

import click


@click.command()
def indexes() -> None:
    """List the indexes and what they can do.

    An index is the algorithm that `tamis match --index NAME` matches with. The default is the first one.

    \b
    Example:
      tamis indexes
    """
    from tamis.papers.registry import ENGINE, summary_of
    from tamis.papers.registry import indexes as all_indexes

    for name, capabilities in all_indexes().items():
        click.echo(click.style(name, bold=True) + (" (auto)" if name == ENGINE else ""))
        click.echo(f"  {summary_of(name)}")
        for capability, there in capabilities.to_dict().items():
            click.echo(f"  {'yes' if there else 'no ':<3}  {capability.replace('_', ' ')}")
