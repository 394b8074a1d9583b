"""The page about a pipeline's run: figures, the subscriptions with the most matches, and the attributes of the events."""

from __future__ import annotations

import itertools
import math
from html import escape
from typing import Any, NamedTuple

import numpy as np

_STYLE = """
:root { color-scheme: light dark; }
:root { --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --bar: #c2571a; --cool: #2a72c8; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa4b0; --line: #3d444d; --bar: #f0883e; --cool: #58a6ff; --page: #0d1117; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: 1rem; padding: 0; }
.figures div { border-top: 2px solid var(--line); padding-top: .4rem; }
.figures b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; } .figures span { color: var(--soft); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; color: var(--soft); font-weight: 500; }
td, th { padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: middle; }
.number { text-align: right; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; } .wide { width: 40%; }
.name { overflow-wrap: anywhere; min-width: 8rem; } .present { width: 8%; }
td.values { color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; }
small { display: flex; justify-content: space-between; gap: .5rem; width: 144px; }
small { color: var(--soft); font-size: .75rem; white-space: nowrap; }
@media (max-width: 45rem) {
  .attributes tr:first-child { display: none; } .attributes td { border: 0; padding: .1rem .6rem .1rem 0; text-align: left; }
  .attributes tr { display: grid; grid-template-columns: 3fr 2fr 3fr; border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .attributes .name { font-weight: 600; } .attributes .present { width: auto; } .attributes .values { grid-column: 1 / -1; }
  .attributes td[data-label]::before { content: attr(data-label) " "; color: var(--soft); }
  .attributes .spread { grid-column: 1 / -1; } .attributes td:empty { display: none; }
}
.note { border-left: 3px solid var(--bar); padding-left: .8rem; }
rect.bar { fill: var(--bar); } rect.cool { fill: var(--cool); } .none { color: var(--soft); }
"""


class Summary(NamedTuple):
    """What a pipeline did.

    Attributes
    ----------
    figures : dict
        Names and numbers.
    most : list
        The subscriptions with the most matches, and their numbers of matches.
    sizes : list
        Ranges of match counts, by number of digits, with their number of subscriptions.
    attributes : list
        The rows of `statistics`.
    notes : list of str
        Hints for the user.
    """

    figures: dict[str, Any]
    most: list[tuple[str, int]]
    sizes: list[tuple[str, int]]
    attributes: list[dict[str, Any]]
    notes: list[str]


def summary_page(summary: Summary) -> str:
    """The page as HTML without external files."""
    figures = "".join(
        f"<div><b>{_number(value)}</b><span>{escape(name)}</span></div>" for name, value in summary.figures.items()
    )
    sections = [
        "<h1>Matches</h1>",
        f'<div class="figures">{figures}</div>',
        *(f'<p class="note">{escape(note)}</p>' for note in summary.notes),
        "<h2>Matches per subscription</h2>",
        _bars("matches", "subscriptions", summary.sizes, "cool"),
        "<h2>Subscriptions with the most matches</h2>",
        _bars("subscription", "matches", summary.most, "bar"),
        "<h2>Attributes of the events</h2>",
        _attributes(summary.attributes),
    ]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Tamis: matches</title>'
    body = "\n".join(sections)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}<style>{_STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n'


def _bars(name: str, value: str, rows: list[tuple[str, int]], style: str) -> str:
    """A table with a bar for each row."""
    if not rows:
        return '<p class="none">There are none.</p>'
    most = max(count for _, count in rows) or 1
    lines = "".join(
        f'<tr><td class="name">{escape(label)}</td><td class="number">{count:,}</td>'
        f'<td class="wide">{_bar(count / most, style)}</td></tr>'
        for label, count in rows
    )
    head = f'<th>{escape(name)}</th><th class="number">{escape(value)}</th><th></th>'
    return f"<table><tr>{head}</tr>{lines}</table>"


def _bar(share: float, style: str) -> str:
    return (
        '<svg width="100%" height="12" aria-hidden="true" preserveAspectRatio="none" viewBox="0 0 100 12">'
        f'<rect class="{style}" width="{max(100 * share, 0.5 if share else 0):.2f}" height="12"/></svg>'
    )


def _attributes(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return '<p class="none">There are none.</p>'
    heads = ["attribute", "kind", "present", "", "distinct, about", "spread", "frequent"]
    numbers = ("present", "distinct, about")
    head = "".join(f'<th class="number">{each}</th>' if each in numbers else f"<th>{each}</th>" for each in heads)
    lines = "".join(
        f'<tr><td class="name">{escape(row["attribute"])}</td><td>{escape(row["kind"])}</td>'
        f'<td class="number" data-label="present">{row["presence"]:.1%}</td>'
        f'<td class="present">{_bar(row["presence"], "cool")}</td>'
        f'<td class="number" data-label="distinct">{row["distinct"]:,}</td>'
        f'<td class="spread">{_histogram(row["quantiles"], row["kind"])}</td>'
        f'<td class="values">{_frequent(row["frequent"])}</td></tr>'
        for row in rows
    )
    return f'<table class="attributes"><tr>{head}</tr>{lines}</table>'


_BINS, _STEP = 24, 6


def _histogram(quantiles: list[float] | None, kind: str) -> str:
    """The distribution of values from the lowest to the highest: equally many lie between any two quantiles."""
    quantiles = [bound for bound in quantiles or () if math.isfinite(bound)]
    if not quantiles or not quantiles[0] < quantiles[-1]:
        return ""
    ends = f"<small><span>{_end(quantiles[0], kind)}</span><span>{_end(quantiles[-1], kind)}</span></small>"
    if not math.isfinite(quantiles[-1] - quantiles[0]):
        quantiles = [bound / 4 for bound in quantiles]
    low = quantiles[0]
    width = (quantiles[-1] - low) / _BINS
    bins = [0.0] * _BINS
    for start, end in itertools.pairwise(quantiles):
        first, last = (min(int((bound - low) / width), _BINS - 1) for bound in (start, end))
        for place in range(first, last + 1):
            inside = min(end, low + (place + 1) * width) - max(start, low + place * width)
            bins[place] += inside / (end - start) if end > start else 1 / (last - first + 1)
    most = max(bins)
    heights = [24 * value / most for value in bins]
    bars = "".join(
        f'<rect class="bar" x="{place * _STEP}" y="{24 - height:.1f}" width="{_STEP - 1}" height="{height:.1f}"/>'
        for place, height in enumerate(heights)
    )
    return f'<svg width="{_STEP * _BINS}" height="24" aria-hidden="true">{bars}</svg>{ends}'


def _end(value: float, kind: str) -> str:
    """The label at an end of a histogram; for times, the day."""
    if kind == "timestamp":
        return str(np.datetime64(int(value), "us").astype("datetime64[D]"))
    return _number(value)


_SHOWN = 5


def _frequent(values: list[dict[str, Any]]) -> str:
    return ", ".join(f"{escape(str(each['value'])[:40])}&nbsp;({each['count']:,})" for each in values[:_SHOWN])


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
