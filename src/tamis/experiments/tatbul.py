"""The experiments of Tatbul's thesis, Matching Profiles with Joins over History, 2001, section 4.1.6: figures 7 and 8.

Work is counted in comparisons of values, as there. The overlap is the share of the pairs of profiles that intersect; the thesis
does not define its own.
"""

from __future__ import annotations

from functools import partial

from tamis.experiments.claims import best, grows, lead, order, together
from tamis.experiments.figure import COMPARING, MATCHING, Figure
from tamis.experiments.sweeps import Sweep, exactly_over
from tamis.workload import preset

_BASE = preset("tatbul")
_INDEXES = ("cluster-index", "interval-index", "hybrid-index", "segment-tree", "interval-tree")
_ALL = ("scan", *_INDEXES)
_NAMES = ("Cluster Index", "Interval Index", "Hybrid Index", "Segment Tree", "Interval Tree")
_PROFILES = (100, 200, 400, 600, 800, 1_000)
_OVERLAPS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.98)

_figure = partial(Figure, paper="tatbul", departures="The overlap is our reading: the share of pairs that intersect.")


def _profiles(contenders: tuple[str, ...]) -> Sweep:
    return exactly_over(contenders, _BASE, "subscriptions", _PROFILES)


FIGURES = (
    _figure(
        number="7",
        title="Comparisons: number of profiles",
        axis="profiles",
        metric=COMPARING,
        spots=_profiles(_ALL),
        claim="All indexes need far fewer comparisons than none. Interval and Cluster Index need fewest, Hybrid not fewer.",
        says="100 to 1,000 profiles: without an index 200 to 2,000 comparisons, with the worst index 18 to 47.",
        judge=together(
            *(lead(name, "SCAN", 2_000 / 47) for name in _NAMES),
            order("Interval Index", "Hybrid Index", "Interval Tree"),
        ),
    ),
    _figure(
        number="7t",
        title="Matching: number of profiles",
        axis="profiles",
        metric=MATCHING,
        spots=_profiles((*_ALL, "tamis")),
        claim="The thesis counts comparisons only. This is the time that they take here.",
        says="None.",
        judge=best("Tamis", ("SCAN", *_NAMES)),
    ),
    _figure(
        number="8",
        title="Comparisons: overlap of 100 profiles",
        axis="share of the pairs of profiles that intersect",
        metric=COMPARING,
        spots=exactly_over(_INDEXES, preset("tatbul", subscriptions=100), "overlap", _OVERLAPS),
        claim=(
            "Interval Index and Segment Tree stay flat, Cluster Index and Interval Tree rise. Hybrid is ahead of Cluster only "
            "above 90 %."
        ),
        says="Only curves.",
        judge=together(
            grows("Interval Index", most=1.3),
            grows("Segment Tree", most=1.3),
            grows("Cluster Index", least=1.3),
            grows("Interval Tree", least=1.3),
            order("Hybrid Index", "Cluster Index"),
        ),
    ),
)
"""The figures on profiles without joins. `benchmarks.history_parts` measures what the join table and the pre-filter save."""
