"""Plots of figures with matplotlib, as SVG: a figure's plots side by side, one line or bar for each contender.

Axes of time and memory are logarithmic, as most of the papers' are. Where values differ by little in all plots of a figure, they
start at 0. Text stays text, and the same figures give the same file.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.experiments.claims import shown_number
from tamis.experiments.figure import Curves, Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 5.2, 3.7
"""Inches of one plot."""
_LOGARITHMIC = 10.0
"""The least spread of values for a logarithmic axis. With less, it would make small differences look large."""
_HEADROOM = 1.08
"""The height of a plot from 0 as a multiple of its highest value and margin."""
_MOST_BESIDE = 2
"""Plots side by side. More go below."""


class Style(NamedTuple):
    """How a line looks."""

    colour: str
    marker: str


# Ours is black and bold; a paper's own indexes have warm colours, the others cold ones. A line looks the same in every plot.
STYLES = {
    "Tamis": Style("#111111", "X"),
    "SCAN": Style("#9a9a9a", "o"),
    "k-index": Style("#1f77b4", "s"),
    "Propagation": Style("#17a2a2", "D"),
    "Propagation-wp": Style("#0b6b6b", "d"),
    "Gryphon": Style("#5b8c2a", "^"),
    "Gryphon, equalities only": Style("#9bc46a", "8"),
    "SIFT": Style("#7a5cc0", "v"),
    "Counting": Style("#7a5cc0", "v"),
    "BE-Tree": Style("#d62728", "P"),
    "BE-B": Style("#f08a8a", "*"),
    "OpIndex": Style("#b8860b", "<"),
    "OpIndex-BS": Style("#e0b94a", ">"),
    "OpIndex, kept sorted": Style("#6b4e00", "d"),
    "PSTBloom": Style("#e8650a", "p"),
    "PSTHash": Style("#c2188b", "h"),
    "PSTHash, up to 4,096 cells": Style("#e58fcb", "H"),
    "PS-Tree": Style("#a0522d", "p"),
    "Static": Style("#d62728", "P"),
    "Dynamic": Style("#e8650a", "p"),
    "No-change": Style("#1f77b4", "s"),
    "Cluster Index": Style("#d62728", "P"),
    "Interval Index": Style("#e8650a", "p"),
    "Hybrid Index": Style("#c2188b", "h"),
    "Segment Tree": Style("#b8860b", "<"),
    "Interval Tree": Style("#17a2a2", "D"),
    "DuckDB": Style("#555577", "x"),
    "polars": Style("#8899aa", "+"),
    "OpIndex, DNF": Style("#b8860b", "<"),
    "OpIndex, CNF": Style("#e8650a", "p"),
    "Tamis, DNF": Style("#111111", "X"),
    "Tamis, CNF": Style("#777777", "*"),
    "0.1% match": Style("#1f77b4", "s"),
    "1.0% match": Style("#b8860b", "<"),
    "10.0% match": Style("#d62728", "P"),
    "each join once": Style("#111111", "X"),
    "each profile's join anew": Style("#1f77b4", "s"),
    "with the pre-filter": Style("#111111", "X"),
    "without it": Style("#1f77b4", "s"),
}


def drawn(figures: Sequence[Figure], curves: Sequence[Curves]) -> str:
    """The plots of some figures as SVG."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    beside = min(len(figures), _MOST_BESIDE)
    rows = -(-len(figures) // beside)
    with matplotlib.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "tamis",
            "font.size": 9.0,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "axes.axisbelow": True,
        }
    ):
        canvas = Canvas(figsize=(_WIDTH * beside, _HEIGHT * rows), layout="constrained")
        places = canvas.subplots(rows, beside, squeeze=False)
        logarithmic = _logarithmic(figures, curves)
        for axes, figure, lines in zip(places.flat, figures, curves, strict=False):
            _plot(axes, figure, lines, figure.metric.label in logarithmic)
        for axes in places.flat[len(figures) :]:
            axes.set_visible(False)
        names = list(dict.fromkeys(name for lines in curves for name in lines))
        handles = {
            label: handle
            for axes in places.flat
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        shown = [name for name in names if name in handles]
        columns = min(len(shown), 3 * places.shape[1]) or 1
        canvas.legend([handles[name] for name in shown], shown, loc="outside lower center", ncols=columns)
        text = io.StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _logarithmic(figures: Sequence[Figure], curves: Sequence[Curves]) -> set[str]:
    """The labels of metrics with a logarithmic axis. Plots that are drawn together have the same kind of axis for a metric."""
    return {
        figure.metric.label for figure, lines in zip(figures, curves, strict=True) if _spread(lines) >= _LOGARITHMIC
    }


def _plot(axes: Axes, figure: Figure, curves: Curves, logarithmic: bool) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    words = any(isinstance(value.place, str) for values in curves.values() for value in values)
    if words:
        _bars(axes, curves)
    else:
        _lines(axes, curves)
        if figure.log:
            axes.set_xscale("log")
        _mark_places(axes, curves)
        if not logarithmic:
            axes.set_ylim(0, _HEADROOM * axes.get_ylim()[1])
        else:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title(_title(figure), fontsize=9.5)
    axes.set_xlabel(figure.axis)
    axes.set_ylabel(figure.metric.label)


def _spread(curves: Curves) -> float:
    """The highest value as a multiple of the lowest."""
    numbers = [value.number for values in curves.values() for value in values if value.number is not None]
    return max(numbers) / min(numbers) if numbers else 1.0


def _title(figure: Figure) -> str:
    """The number, if it has one in the paper, and what is shown."""
    number = figure.number.replace("table-", "Table ")
    return f"{number}  {figure.title}" if any(letter.isdigit() for letter in number) else figure.title


def _lines(axes: Axes, curves: Curves) -> None:
    for name, values in curves.items():
        style = STYLES[name]
        there: list[tuple[Any, float]] = [(value.place, value.number) for value in values if value.number is not None]
        if not there:
            continue  # A name in the legend would be looked for in vain.
        axes.plot(
            [place for place, _ in there],
            [number for _, number in there],
            label=name,
            color=style.colour,
            marker=style.marker,
            markersize=5.0,
            linewidth=2.4 if name == "Tamis" else 1.4,
        )


def _mark_places(axes: Axes, curves: Curves) -> None:
    """Mark the places that were measured, and no others."""
    places = sorted({value.place for values in curves.values() for value in values})
    axes.set_xticks(places, [_short(place) for place in places])
    axes.minorticks_off()


def _bars(axes: Axes, curves: Curves) -> None:
    """Groups of bars, from 0 on."""
    places = list(dict.fromkeys(value.place for values in curves.values() for value in values))
    width = 0.8 / len(curves)
    for number, (name, values) in enumerate(curves.items()):
        there = [(places.index(value.place), value.number) for value in values if value.number is not None]
        drawn_bars = axes.bar(
            [place + width * (number - (len(curves) - 1) / 2) for place, _ in there],
            [height for _, height in there],
            width,
            label=name,
            color=STYLES[name].colour,
        )
        # Small bars beside large ones are hard to read.
        axes.bar_label(drawn_bars, fmt=shown_number, fontsize=7)
    axes.set_xticks(range(len(places)), [str(place) for place in places])
    axes.set_ylim(0, _HEADROOM * axes.get_ylim()[1])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.grid(visible=False, axis="x")


def _short(place: Any) -> str:
    if isinstance(place, int) and place >= 1_000:
        for size, letter in ((1_000_000, "M"), (1_000, "K")):
            if place >= size:
                return f"{place / size:.3g}{letter}"
    return f"{place:.3g}" if isinstance(place, float) else str(place)
