"""Tables for the page of benchmarks."""

from __future__ import annotations

from collections.abc import Iterable


def table(heads: list[str], lines: Iterable[list[str]]) -> str:
    """A table in Markdown."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
