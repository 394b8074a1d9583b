"""Scales: how large a repeated experiment is, and how carefully it is measured.

smoke     seconds: does everything run?
laptop    all figures within 75 minutes on two cores
paper     the sizes of the papers, as far as the machine can hold them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from tamis.errors import ExperimentError, did_you_mean

T = TypeVar("T")


class Scale(NamedTuple):
    """How large an experiment is."""

    name: str
    divisor: int
    """A paper's numbers of subscriptions are divided by it."""
    least: int
    most: int
    """Bounds of the number of subscriptions, after the division."""
    values: int
    """The most values on a horizontal axis."""
    events: int
    """Events of each kind that are timed."""
    observed: int
    """Other events of each kind that an index observes before it is built."""
    checked: int
    """Events whose answers are compared with those of a scan."""
    budget: float
    """Seconds for timing the passes of one kind of events. There is at least one pass."""
    limit: float
    """Seconds after which the process of a point is stopped."""
    seed: int = 1
    """Chooses one of the workloads that the same parameters describe."""

    def subscriptions(self, paper: int) -> int:
        """How many subscriptions stand for the paper's number."""
        return min(max(paper // self.divisor, self.least), self.most)

    def share(self, paper: int) -> int:
        """The same without the least number."""
        return min(max(paper // self.divisor, 1), self.most)

    def sizes(self, paper: Sequence[Any]) -> list[int]:
        """Numbers of subscriptions for an axis that has the paper's numbers. None stands twice."""
        return self.thinned(sorted({self.subscriptions(size) for size in paper}))

    def thinned(self, values: Sequence[T]) -> list[T]:
        """At most `self.values` of some values: the first, the last, and some in between."""
        if len(values) <= self.values:
            return list(values)
        last = len(values) - 1
        return [values[round(place * last / (self.values - 1))] for place in range(self.values)]


SMOKE = Scale("smoke", 2_000, 300, 1_000, 2, 4, 4, 2, 0.0, 600.0)
LAPTOP = Scale("laptop", 20, 10_000, 200_000, 3, 100, 500, 8, 0.2, 120.0)
PAPER = Scale("paper", 1, 1, 10**9, 99, 1_000, 500, 8, 5.0, 24 * 3_600.0)
SCALES = {scale.name: scale for scale in (SMOKE, LAPTOP, PAPER)}


def find_scale(name: str) -> Scale:
    """The scale of this name.

    Raises
    ------
    ExperimentError
    """
    if name not in SCALES:
        raise ExperimentError(
            f"no scale {name!r}{did_you_mean(name, list(SCALES))}; the scales are: {', '.join(SCALES)}"
        )
    return SCALES[name]
