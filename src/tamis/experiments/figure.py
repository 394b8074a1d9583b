"""Figure: a plot or table of a paper, what its authors claim of it, and how the claim is judged.

Figure.spots(scale)   where on the plot which points are measured
Curves                what was measured, line by line
Verdict               whether the claim held
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, cast

from tamis.experiments.contenders import find_contender
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale

SHRUNK = "Numbers of subscriptions are divided as the scale says."
"""The departure of most figures."""

Place: TypeAlias = int | float | str
"""A value of the horizontal axis; a word stands for a bar."""

FIRST = "the first place"
"""The first place of a line, whatever it is."""


class Spot(NamedTuple):
    """A place on a plot, and the point that is measured for it."""

    line: str
    """The name of the line, in the legend."""
    place: Place
    point: Point
    part: str = ""
    """Which part of the point's figures it shows, if they have parts."""


class Metric(NamedTuple):
    """What the vertical axis of a plot shows."""

    label: str
    unit: str
    """The unit of its numbers, as it stands behind a number."""
    read: Callable[[Mapping[str, Any], int], float | None]
    """From the figures of a point, and its number of subscriptions, to a number, never 0. None: there is no such figure."""


class Value(NamedTuple):
    """What was measured at a spot."""

    place: Place
    number: float | None
    failure: str = ""

    @property
    def reason(self) -> str:
        """Why it failed, without the name of the exception and the hint for users."""
        return re.sub(r"^[\w.]+Error: |\.? Hint: .*$", "", self.failure)


class Curves(dict[str, list[Value]]):
    """The lines of a figure: name -> values, in the order of the horizontal axis."""

    unit: str = ""
    """The unit of the values."""

    def at(self, line: str, place: Place | None) -> Value:
        """The value of a line at a place; None is the last place of all."""
        values = self.get(line, [])
        if values and (place is None or place == FIRST):
            return values[-1 if place is None else 0]
        return next((value for value in values if value.place == place), Value(place or "", None, "not measured"))


class Verdict(NamedTuple):
    """Whether a claim held."""

    held: bool | None
    """None: it could not be tested."""
    ours: str
    """What was measured, in words."""
    claimed: bool = True
    """Whether there is a claim at all."""

    @property
    def word(self) -> str:
        if not self.claimed:
            return "no claim"
        return "not tested" if self.held is None else "held" if self.held else "not held"


Judge: TypeAlias = Callable[[Curves], Verdict]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A plot or table of a paper.

    Attributes
    ----------
    paper, number : str
        Where it stands, such as "ps-tree" and "6a".
    title, axis : str
        What it shows, and what its horizontal axis is.
    metric : Metric
        What its vertical axis is.
    spots : callable
        From a scale to the spots of the plot.
    claim, says : str
        What the paper claims, in words, and its figures.
    judge : callable
        From the measured curves to a verdict.
    log : bool
        Whether the horizontal axis is logarithmic.
    departures : str
        How our experiment differs from the paper's.
    claimed_by : str
        Who claims it.
    """

    paper: str
    number: str
    title: str
    axis: str
    metric: Metric
    spots: Callable[[Scale], list[Spot]]
    claim: str
    says: str
    judge: Judge
    log: bool = False
    departures: str = ""
    claimed_by: str = "The paper claims"

    @property
    def name(self) -> str:
        return f"{self.paper} {self.number}"

    @property
    def family(self) -> str:
        """The number without its part: figures 6a and 6b, or aging-schema and aging-skew, are drawn side by side."""
        return re.sub(r"(?<=\d)[a-z]$|(?<=[a-z])-[a-z]+$", "", self.number)

    def points(self, scale: Scale) -> list[Point]:
        """The points that are measured, each once."""
        return list(dict.fromkeys(spot.point for spot in self.seeded(scale)))

    def curves(self, scale: Scale, results: Mapping[Point, Mapping[str, Any]]) -> Curves:
        """The lines of the plot, from the results of its points."""
        curves = Curves()
        curves.unit = self.metric.unit
        for spot in self.seeded(scale):
            curves.setdefault(spot.line, []).append(self._value(spot, results.get(spot.point)))
        return curves

    def seeded(self, scale: Scale) -> list[Spot]:
        """The spots, with workloads of the scale's seed."""
        return [
            spot._replace(point=replace(spot.point, workload=replace(spot.point.workload, seed=scale.seed)))
            for spot in self.spots(scale)
        ]

    def _value(self, spot: Spot, result: Mapping[str, Any] | None) -> Value:
        if result is None:
            return Value(spot.place, None, "not measured")
        if "failure" in result:
            return Value(spot.place, None, result["failure"])
        figures = result["figures"]
        shown = figures["parts"][spot.part] if spot.part else figures
        return Value(spot.place, self.metric.read(shown, spot.point.workload.subscriptions))


def spots_of(contenders: Iterable[str], places: Sequence[tuple[Place, Any]]) -> list[Spot]:
    """The spots of a plot with a line for each contender. `places` are places of the axis with their workloads."""
    return [
        Spot(find_contender(name).label, place, Point(name, workload))
        for name in contenders
        for place, workload in places
    ]


def _microseconds(kind: str) -> Callable[[Mapping[str, Any], int], float | None]:
    return lambda figures, _: float(kind_of(figures, kind)["microseconds"])


def kind_of(figures: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The figures of a kind of events. Some workloads have only one."""
    kinds: dict[str, Any] = figures["kinds"]
    return cast(dict[str, Any], kinds.get(kind, kinds["other"]))


def _bytes(figures: Mapping[str, Any], _: int) -> float | None:
    return None if figures["index_bytes"] is None else figures["index_bytes"] / 2**20 or None


MATCHING = Metric("microseconds for an event", "µs", _microseconds("planted"))
MATCHING_OTHER = Metric("microseconds for an independent event", "µs", _microseconds("other"))
BUILDING = Metric("seconds to build", "s", lambda figures, _: float(figures["build_seconds"]))
BUILDING_EACH = Metric(
    "microseconds to build, for a subscription", "µs", lambda figures, count: figures["build_seconds"] / count * 1e6
)
MEMORY = Metric("MiB of the index", "MiB", _bytes)
MEMORY_EACH = Metric(
    "bytes of the index, for a subscription", "bytes", lambda figures, count: figures["index_bytes"] / count
)
COMPARING = Metric(
    "comparisons of values for an event",
    "comparisons",
    lambda figures, _: kind_of(figures, "planted").get("predicates") or None,
)
