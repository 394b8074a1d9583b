"""A chart of horizontal bars on a logarithmic scale, as SVG text. It has light and dark colours, as the reader prefers."""

from __future__ import annotations

import math
from typing import NamedTuple
from xml.sax.saxutils import escape

_WIDTH, _LEFT, _RIGHT = 880, 190, 80
_BAR, _GAP, _GROUP_GAP = 11, 2, 12
_TOP = 84
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; }
.soft { fill: #59636e; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.series0 { fill: #9aa4b0; } .series1 { fill: #c2571a; } .series2 { fill: #2a72c8; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .soft { fill: #9aa4b0; } .grid { stroke: #3d444d; }
  .series0 { fill: #6b7582; } .series1 { fill: #f0883e; } .series2 { fill: #58a6ff; }
}
"""


class Group(NamedTuple):
    """The bars of one group: a value for each series, or None for no bar."""

    name: str
    values: list[float | None]


def bars(title: str, unit: str, series: list[str], groups: list[Group]) -> str:
    """The chart. All values must be above 0. There may be up to three series."""
    values = [value for group in groups for value in group.values if value is not None]
    low = 10.0 ** math.floor(math.log10(min(values, default=1.0)))
    high = max(10.0 ** math.ceil(math.log10(max(values, default=1.0))), 10 * low)
    height_of_group = len(series) * (_BAR + _GAP) + _GROUP_GAP
    bottom = _TOP + len(groups) * height_of_group
    parts = [_text(16, 26, title, "title"), *_legend(series), *_grid(low, high, bottom, unit)]
    for number, group in enumerate(groups):
        top = _TOP + number * height_of_group + _GROUP_GAP / 2
        middle = top + (height_of_group - _GROUP_GAP) / 2 + 4
        parts.append(_text(_LEFT - 10, middle, group.name, anchor="end"))
        for place, value in enumerate(group.values):
            if value is not None:
                parts += _bar(top + place * (_BAR + _GAP), place, value, _x(value, low, high))
    style = f"<style>{_STYLE}</style>"
    size = f'width="{_WIDTH}" height="{bottom + 36}" viewBox="0 0 {_WIDTH} {bottom + 36}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<title>{escape(title)}</title>'
    return "\n".join([head, style, *parts, "</svg>\n"])


def _x(value: float, low: float, high: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(value / low) / math.log(high / low)


def _bar(top: float, series: int, value: float, end: float) -> list[str]:
    # The bar of the smallest value must be visible, too.
    width = max(end - _LEFT, 2)
    bar = f'<rect class="series{series}" x="{_LEFT}" y="{top:.1f}" width="{width:.1f}" height="{_BAR}" rx="1.5"/>'
    return [bar, _text(_LEFT + width + 5, top + _BAR - 1.5, number_text(value), "soft")]


def _legend(series: list[str]) -> list[str]:
    parts, x = [], 16.0
    for number, name in enumerate(series):
        parts.append(f'<rect class="series{number}" x="{x:.1f}" y="40" width="11" height="11" rx="1.5"/>')
        parts.append(_text(x + 17, 50, name))
        x += 40 + 6.6 * len(name)
    return parts


def _grid(low: float, high: float, bottom: float, unit: str) -> list[str]:
    parts = []
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        x = _x(10.0**power, low, high)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(_text(x, _TOP - 12, number_text(10.0**power), "soft", "middle"))
    parts.append(_text(_WIDTH - 16, bottom + 22, unit, "soft", "end"))
    return parts


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def number_text(value: float) -> str:
    """A number with two or three significant digits, and commas between thousands."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 10 or value == round(value) else f"{value:.2g}"
