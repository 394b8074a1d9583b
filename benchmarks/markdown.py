"""Tables in Markdown, and pages with a section that a benchmark writes."""

from __future__ import annotations

from collections.abc import Iterable


def table(heads: list[str], lines: Iterable[list[str]]) -> str:
    """A table in Markdown."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def renewed(page: str, begin: str, end: str, section: str) -> str:
    """The page with a new section between two marks."""
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page lacks the marks {begin} and {end}")
    return f"{before}{begin}\n\n{section}\n\n{end}{after}"
