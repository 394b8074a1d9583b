"""The experiments of Tatbul's thesis, Matching Profiles with Joins over History, 2001, section 4.1.6: figures 7 and 8.

Work is counted in comparisons of values, as there. The overlap is the share of the pairs of profiles that intersect; the thesis
does not define its own. It describes a join table (4.2) and a pre-filter (4.3.2) and measures neither: here both are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tamis.experiments.claims import best, costs, grows, lead, order, together, unclaimed
from tamis.experiments.figure import COMPARING, MATCHING, SHRUNK, Figure, Spot
from tamis.experiments.point import Point
from tamis.experiments.sweeps import Sweep, exactly_over
from tamis.workload import preset

_BASE = preset("tatbul")
_INDEXES = ("cluster-index", "interval-index", "hybrid-index", "segment-tree", "interval-tree")
_ALL = ("scan", *_INDEXES)
_NAMES = ("Cluster Index", "Interval Index", "Hybrid Index", "Segment Tree", "Interval Tree")
_PROFILES = (100, 200, 400, 600, 800, 1_000)
_OVERLAPS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.98)

_JOINED = (200_000, 1_000_000)
"""Numbers of profiles with joins; ours, since the thesis has none."""

_figure = partial(Figure, paper="tatbul", departures="The overlap is our reading: the share of pairs that intersect.")


def _profiles(contenders: tuple[str, ...]) -> Sweep:
    return exactly_over(contenders, _BASE, "subscriptions", _PROFILES)


def _with_joins(joins: str, ways: dict[str, str]) -> Sweep:
    """Profiles with joins: a line for each way to match them."""
    return lambda scale: [
        Spot(
            line,
            count,
            Point("tamis", replace(_BASE, subscriptions=count), "joining", (("joins", joins), ("way", way))),
        )
        for line, way in ways.items()
        for count in scale.sizes(_JOINED)
    ]


_TABLE = {"each join once": "join table", "each profile's join anew": "no join table"}
_FILTER = {"with the pre-filter": "pre-filter", "without it": "no pre-filter"}
_joins = partial(
    Figure,
    paper="tatbul",
    axis="profiles, and earlier documents",
    log=True,
    metric=MATCHING,
    says="None; the thesis measures no joins.",
    claimed_by="We expect",
    departures=f"{SHRUNK} Profiles and documents are those of figure 7, and the joins are ours.",
)

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
            best("Interval Index", _NAMES),
            order("Cluster Index", "Hybrid Index"),
        ),
    ),
    _figure(
        number="7t",
        title="Matching: number of profiles",
        axis="profiles",
        metric=MATCHING,
        spots=_profiles((*_ALL, "tamis")),
        claim="Nothing: the thesis counts comparisons only. This is the time that they take here.",
        says="None.",
        judge=unclaimed,
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
            order("Cluster Index", "Hybrid Index", place=0.5),
            order("Hybrid Index", "Cluster Index"),
        ),
    ),
    _joins(
        number="joins-few",
        title="Join table: six joins that profiles share",
        spots=_with_joins("few joins", _TABLE),
        claim="Each distinct join is decided at most once for a document, however many profiles share it.",
        judge=lead("each join once", "each profile's join anew", 4),
    ),
    _joins(
        number="joins-own",
        title="Join table: profiles with a join of their own",
        spots=_with_joins("a join of its own", _TABLE),
        claim="Where profiles share hardly any join, the table has nothing to save. It costs at most a tenth of the time.",
        judge=costs("each join once", "each profile's join anew"),
    ),
    _joins(
        number="filter-rare",
        title="Pre-filter: profiles that ask for documents that are not there",
        spots=_with_joins("a rare document", _FILTER),
        claim="Fewer profiles are left to be matched, and parts of the indexes are not used.",
        judge=lead("with the pre-filter", "without it", 4),
    ),
    _joins(
        number="filter-own",
        title="Pre-filter: profiles whose documents are there",
        spots=_with_joins("a join of its own", _FILTER),
        claim="Where nothing can be skipped, the pre-filter costs at most a tenth of the time.",
        judge=costs("with the pre-filter", "without it"),
    ),
)
"""All figures of the thesis, and those of what it describes without measuring it."""
