"""The experiments of Fabret et al., Filtering Algorithms and Implementation for Very Fast Publish/Subscribe Systems, SIGMOD 2001.

Our copy of the paper has lost the numbers of its workloads and figures. The workloads are the presets `fabret...`, and the
figures have names: throughput, operators, domains, sizes, memory, loading, aging. Subscriptions and events are drawn
independently.
"""

from __future__ import annotations

from functools import partial

from tamis.experiments.aging import AGING_BEFORE, AGING_ROUNDS
from tamis.experiments.claims import best, close, grow_alike, grows, lead, order, settled, together, worst
from tamis.experiments.figure import BUILDING, MATCHING, MEMORY, SHRUNK, Figure, Judge, Metric, Spot
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale
from tamis.experiments.sweeps import bars, joined, libraries, over, over_changes, over_size
from tamis.workload import preset

_BASE = preset("fabret")
_ALL = ("counting", "propagation", "propagation-wp", "static", "dynamic", "tamis")
_SETTING = ("static", "dynamic", "tamis")
_AGED = (("Dynamic", "dynamic", False), ("No-change", "dynamic", True), ("Tamis", "tamis", False))
"""Lines of the aging experiment: name, contender, and whether its tables are frozen after the start."""
_SIZES = (500_000, 1_000_000, 2_000_000, 4_000_000, 6_000_000)
_ORDER = ("Dynamic", "Propagation-wp", "Propagation", "Counting")

_figure = partial(Figure, paper="fabret", departures=SHRUNK)


def _by_size(number: str, title: str, metric: Metric, claim: str, says: str, judge: Judge) -> Figure:
    spots = over_size(_SETTING if number == "static" else _ALL, _BASE, _SIZES)
    return _figure(
        number=number,
        title=f"{title}: number of subscriptions",
        axis="subscriptions",
        log=True,
        metric=metric,
        spots=joined(spots, libraries(_BASE, _SIZES)) if number == "throughput" else spots,
        claim=claim,
        says=says,
        judge=judge,
    )


def _aged(change: str, scale: Scale) -> list[Spot]:
    """A line over the rounds. In each of them the oldest subscriptions go, and as many come."""
    workload = preset("fabret-focus" if change == "schema" else "fabret", subscriptions=scale.subscriptions(1_000_000))
    return [
        Spot(line, number, Point(name, workload, "aging", (("change", change), ("frozen", frozen))), str(number))
        for line, name, frozen in _AGED
        for number in range(AGING_ROUNDS + 1)
    ]


FIGURES = (
    _by_size(
        "throughput",
        "Matching",
        MATCHING,
        "From slow to fast: counting, propagation, propagation with prefetching, dynamic. Dynamic stays flat.",
        "Its numbers are lost; the abstract has 600 events a second at 6M subscriptions.",
        together(order(*_ORDER), grows("Dynamic", most=3.0)),
    ),
    _by_size(
        "static",
        "Matching, static beside dynamic",
        MATCHING,
        "Static is about equal to dynamic.",
        "Only curves.",
        close("Static", "Dynamic"),
    ),
    _figure(
        number="operators",
        title="Matching: inequalities among the fixed predicates",
        axis="workload",
        metric=MATCHING,
        spots=bars(_ALL, (("equalities", _BASE), ("inequalities", preset("fabret-inequalities")))),
        claim="Inequalities slow down dynamic and propagation by the same factor.",
        says="Its numbers are lost.",
        judge=grow_alike("Dynamic", "Propagation-wp", least=1.0),
    ),
    _figure(
        number="domains",
        title="Matching: size of the domains",
        axis="values of an attribute",
        log=True,
        metric=MATCHING,
        spots=over_changes(
            _ALL, _BASE, [(highest, {"highest": highest, "event_highest": highest}) for highest in (10, 35, 100, 350)]
        ),
        claim="Larger domains help both dynamic and propagation.",
        says="Its numbers are lost.",
        judge=together(grows("Dynamic", most=1.0), grows("Propagation-wp", most=1.0)),
    ),
    _figure(
        number="sizes",
        title="Matching: predicates of a subscription",
        axis="predicates of a subscription",
        metric=MATCHING,
        spots=over(_ALL, _BASE, "subscription_size", (3, 5, 7, 9)),
        claim="More predicates help dynamic.",
        says="Its numbers are lost.",
        judge=grows("Dynamic", most=1.0),
    ),
    _by_size(
        "memory",
        "Memory",
        MEMORY,
        "Propagation needs least, counting is close, dynamic needs most.",
        "Only curves.",
        together(order("Propagation", "Counting", "Dynamic"), close("Counting", "Propagation")),
    ),
    _by_size(
        "loading",
        "Loading",
        BUILDING,
        "Counting loads fastest, static slowest; dynamic is well below static.",
        "Only curves.",
        together(
            best("Counting", ("Propagation", "Dynamic", "Static")),
            worst("Static", ("Propagation", "Dynamic", "Counting")),
            lead("Dynamic", "Static", 4),
        ),
    ),
    *(
        _figure(
            number=f"aging-{change}",
            title=f"Aging: {title}",
            axis="rounds, of which each replaces a tenth of the subscriptions",
            metric=MATCHING,
            spots=partial(_aged, change),
            claim=claim,
            says="Its numbers are lost; the curves run over hours.",
            judge=judge,
            departures=(
                f"{SHRUNK} At scale paper 1,000,000 subscriptions are live. The change begins after the fourth round. "
                "No-change is dynamic clustering that creates and drops no tables after the start."
            ),
        )
        for change, title, claim, judge in (
            ("steady", "nothing changes", "The time does not change.", grows("Dynamic", most=1.3, start=AGING_BEFORE)),
            (
                "schema",
                "another set of attributes",
                "Without change of its tables it falls behind; dynamic recovers.",
                together(
                    settled("Dynamic", "No-change"),
                    grows("No-change", least=1.5, start=AGING_BEFORE),
                    grows("Dynamic", most=2.0, start=AGING_BEFORE),
                ),
            ),
            (
                "skew",
                "few values",
                "Dynamic is slightly worse in the transition, and better once it is stable.",
                settled("Dynamic", "No-change"),
            ),
        )
    ),
)
"""The figures of the paper."""
