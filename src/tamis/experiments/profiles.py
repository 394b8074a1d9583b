"""Profiles: what each contender did at the first and the last place of a plot. They stand beside claims that did not hold.

             subscriptions   µs an event   candidates   predicates   bytes a subscription
PSTBloom            10,000             9          120          410                    180
PSTBloom           200,000            60          900        2,900                    160
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tamis.experiments.figure import Figure, Spot, kind_of
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale


class Profile(NamedTuple):
    """A table: a row for each line of a plot at its first, and one at its last place."""

    head: list[str]
    rows: list[list[str]]


def _counted(name: str) -> Callable[[Mapping[str, Any], int], float | None]:
    return lambda figures, _: kind_of(figures, "planted").get(name)


def _index_bytes(figures: Mapping[str, Any], count: int) -> float | None:
    size = figures.get("index_bytes")
    return None if size is None else size / count


def _build_microseconds(figures: Mapping[str, Any], count: int) -> float | None:
    return figures["build_seconds"] / count * 1e6 if "build_seconds" in figures else None


_COLUMNS: tuple[tuple[str, Callable[[Mapping[str, Any], int], float | None]], ...] = (
    ("µs an event", _counted("microseconds")),
    ("matches", _counted("matches")),
    ("candidates", _counted("candidates")),
    ("predicates", _counted("predicates")),
    ("nodes", _counted("nodes")),
    ("µs to build a subscription", _build_microseconds),
    ("bytes a subscription", _index_bytes),
)


def profile_of(figure: Figure, scale: Scale, results: Mapping[Point, Mapping[str, Any]]) -> Profile | None:
    """The profile of a figure, or None if its points count no work."""
    rows = []
    for spot in _ends(figure.seeded(scale)):
        figures = results.get(spot.point, {}).get("figures", {})
        if "kinds" in figures:
            count = spot.point.workload.subscriptions
            cells = [_number(read(figures, count)) for _, read in _COLUMNS]
            place = f"{spot.place:,}" if isinstance(spot.place, int) else str(spot.place)
            rows.append([spot.line, place, *cells])
    return Profile(["", figure.axis, *(name for name, _ in _COLUMNS)], rows) if rows else None


def _ends(spots: list[Spot]) -> list[Spot]:
    """The first and the last spot of each line."""
    lines: dict[str, list[Spot]] = {}
    for spot in spots:
        lines.setdefault(spot.line, []).append(spot)
    return [spot for line in lines.values() for spot in dict.fromkeys((line[0], line[-1]))]


def _number(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
