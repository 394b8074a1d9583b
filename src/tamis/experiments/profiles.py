"""Profiles: what each contender did at the first and the last place of a plot. They stand beside claims that did not hold.

             subscriptions   µs an event   candidates   predicates   bytes a subscription
PSTBloom            10,000             9          120          410                    180
PSTBloom           200,000            60          900        2,900                    160
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tamis.experiments.claims import shown_number
from tamis.experiments.figure import MATCHING_OTHER, Figure, Spot, kind_of
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale

_PLANTED = ("ps-tree", "be-tree")
"""Papers whose events are made from subscriptions. In the others both are drawn independently."""


class Profile(NamedTuple):
    """A table: a row for each line of a plot at its first, and one at its last place."""

    head: list[str]
    rows: list[list[str]]


def _counted(name: str, kind: str = "planted") -> Callable[[Mapping[str, Any], int], float | None]:
    return lambda figures, _: kind_of(figures, kind).get(name)


def _index_bytes(figures: Mapping[str, Any], count: int) -> float | None:
    size = figures.get("index_bytes")
    return None if size is None else size / count


def _build_microseconds(figures: Mapping[str, Any], count: int) -> float | None:
    return figures["build_seconds"] / count * 1e6 if "build_seconds" in figures else None


def _columns(kind: str, planted: bool) -> tuple[tuple[str, Callable[[Mapping[str, Any], int], float | None]], ...]:
    """The columns of a figure that shows events of this kind. If its paper has planted events, other ones stand beside them."""
    return (
        ("µs an event", _counted("microseconds", kind)),
        ("matches", _counted("matches", kind)),
        ("candidates", _counted("candidates", kind)),
        ("filtered", _counted("filtered", kind)),
        ("predicates", _counted("predicates", kind)),
        ("nodes", _counted("nodes", kind)),
        ("µs an event made without subscriptions", _counted("microseconds", "other") if planted else _none),
        ("candidates of it", _counted("candidates", "other") if planted else _none),
        ("µs to build a subscription", _build_microseconds),
        ("bytes a subscription", _index_bytes),
    )


def _none(figures: Mapping[str, Any], count: int) -> None:
    """What a figure does not show."""


def profile_of(figure: Figure, scale: Scale, results: Mapping[Point, Mapping[str, Any]]) -> Profile | None:
    """The profile of a figure, or None if its points count no work."""
    rows = []
    other = figure.metric is MATCHING_OTHER
    columns = _columns("other" if other else "planted", not other and figure.paper in _PLANTED)
    for spot in _ends(figure.seeded(scale)):
        figures = results.get(spot.point, {}).get("figures", {})
        figures = figures.get("parts", {}).get(spot.part, figures)
        if "kinds" in figures:
            count = spot.point.workload.subscriptions
            cells = [_number(read(figures, count)) for _, read in columns]
            place = f"{spot.place:,}" if isinstance(spot.place, int) else str(spot.place)
            rows.append([spot.line, place, *cells])
    used = [column for column in range(len(columns)) if any(row[2 + column] not in ("", "0") for row in rows)]
    kept = [[*row[:2], *(row[2 + column] for column in used)] for row in rows]
    return Profile(["", figure.axis, *(columns[column][0] for column in used)], kept) if rows else None


def _ends(spots: list[Spot]) -> list[Spot]:
    """The first and the last spot of each line."""
    lines: dict[str, list[Spot]] = {}
    for spot in spots:
        lines.setdefault(spot.line, []).append(spot)
    return [spot for line in lines.values() for spot in dict.fromkeys((line[0], line[-1]))]


def _number(number: float | None) -> str:
    return "" if number is None else shown_number(number)
