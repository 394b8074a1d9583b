"""The experiments of Ji and Jacobsen, PS-Tree-based Efficient Boolean Expression Matching for High-dimensional and Dense
Workloads, VLDB 2018, section 7.

Our copy of table 1 has lost which values are defaults. The prose names the numbers of subscriptions and dimensions; the others
are those of the presets `ps-tree-dense` and `ps-tree-sparse`. Events are the base events of BE-Gen, from which subscriptions
are derived.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tamis.experiments.claims import (
    always_best,
    below,
    best,
    close,
    flatter,
    grows,
    lead,
    order,
    together,
)
from tamis.experiments.figure import BUILDING, FIRST, MATCHING, MATCHING_OTHER, MEMORY, SHRUNK, Figure
from tamis.experiments.sweeps import Sweep, along, bars, joined, libraries
from tamis.workload import column, preset

_SPARSE = {"dimensions": preset("ps-tree-sparse").dimensions}
_RIVALS = ("scan", "k-index", "propagation", "op-index", "be-tree")
_ALL = (*_RIVALS, "pst-bloom", "pst-hash", "tamis")
_BUILT = tuple(name for name in _ALL if name != "scan")
_PAPERS = ("SCAN", "k-index", "Propagation", "OpIndex", "BE-Tree", "PSTBloom", "PSTHash")
_MADE_TEXT = f"{SHRUNK} Queries and documents are made; the paper's log and documents are not public."
_MADE_ADS = f"{SHRUNK} Advertisements are made with the paper's sizes; its data is not public."
_LOG = bars(_ALL, (("query log", preset("ps-tree-query-log")),))
_ADS = bars(_ALL, (("advertisements", preset("ps-tree-ads")),))
_INTERVALS = bars(
    ("scan", "interval-tree", "segment-tree", "ps-tree", "tamis"), (("intervals", preset("ps-tree-intervals")),)
)

_SIZES = column("ps-tree", "subscriptions")
_figure = partial(Figure, paper="ps-tree", departures=SHRUNK)


def _along(contenders: tuple[str, ...], name: str, **changes: Any) -> Sweep:
    return along(contenders, column("ps-tree", name), **changes)


FIGURES = (
    _figure(
        number="5a",
        title="Building, dense: number of subscriptions",
        axis="subscriptions",
        log=True,
        metric=BUILDING,
        spots=_along(_BUILT, "subscriptions"),
        claim="PSTBloom builds fastest, and BE-Tree is next.",
        says="At 100M subscriptions PSTBloom takes 78 % less than BE-Tree.",
        judge=together(best("PSTBloom", _PAPERS[1:]), below("PSTBloom", "BE-Tree", 78)),
    ),
    _figure(
        number="5b",
        title="Building: number of dimensions",
        axis="dimensions",
        log=True,
        metric=BUILDING,
        spots=joined(
            _along(_BUILT, "dimensions"),
            _along(("op-index-sorted",), "dimensions"),
        ),
        claim=(
            "BE-Tree and Propagation grow with the dimensions; PSTBloom, PSTHash and k-index do not. OpIndex kept sorted "
            "after each subscription is far slower where dimensions are few."
        ),
        says="OpIndex kept sorted takes 1,000 times PSTBloom at 100 dimensions.",
        judge=together(
            grows("PSTBloom", most=2.0),
            grows("PSTHash", most=2.0),
            grows("k-index", most=2.0),
            grows("BE-Tree", least=2.0),
            grows("Propagation", least=2.0),
            lead("PSTBloom", "OpIndex, kept sorted", 1_000, 100),
        ),
    ),
    _figure(
        number="5c",
        title="Building, dense: size of subscriptions",
        axis="predicates of a subscription",
        metric=BUILDING,
        spots=_along(_BUILT, "subscription-size"),
        claim="PSTBloom, OpIndex and k-index grow with the size; BE-Tree and Propagation do not; PSTHash falls.",
        says="Only curves.",
        judge=together(
            grows("PSTBloom", least=1.0),
            grows("OpIndex", least=1.0),
            grows("k-index", least=1.0),
            grows("BE-Tree", most=2.0),
            grows("Propagation", most=2.0),
            grows("PSTHash", most=1.0),
        ),
    ),
    _figure(
        number="5d",
        title="Building, dense: share of equalities",
        axis="share of = among predicates",
        metric=BUILDING,
        spots=_along(_BUILT, "equality-ratio"),
        claim="All indexes build faster with more equalities, PSTHash most so; PSTBloom builds fastest.",
        says="Only curves.",
        judge=together(
            *(grows(name, most=1.0) for name in ("k-index", "Propagation", "OpIndex", "BE-Tree", "PSTBloom")),
            flatter("PSTHash", ("k-index", "Propagation", "OpIndex", "BE-Tree", "PSTBloom")),
            best("PSTBloom", _PAPERS[1:]),
        ),
    ),
    _figure(
        number="6a",
        title="Matching, dense: number of subscriptions",
        axis="subscriptions",
        log=True,
        metric=MATCHING,
        spots=joined(_along(_ALL, "subscriptions"), libraries(_SIZES.default, _SIZES.values)),
        claim="PSTBloom matches fastest at the smallest size, PSTHash from 1M on.",
        says="At 300K PSTBloom takes 84 % less than OpIndex; at 100M PSTHash takes 92 % less than OpIndex.",
        judge=together(
            best("PSTBloom", _PAPERS, FIRST),
            below("PSTBloom", "OpIndex", 84, FIRST),
            best("PSTHash", _PAPERS),
            below("PSTHash", "OpIndex", 92),
        ),
    ),
    _figure(
        number="6b",
        title="Matching, sparse: number of subscriptions",
        axis="subscriptions",
        log=True,
        metric=MATCHING,
        spots=_along(_ALL, "subscriptions", **_SPARSE),
        claim="PSTBloom always matches fastest; PSTHash comes up to OpIndex at 30M.",
        says="Only curves.",
        judge=together(always_best("PSTBloom", _PAPERS), close("PSTHash", "OpIndex")),
    ),
    *(
        _figure(
            number=number,
            title=f"Matching, {shape}: Zipf's alpha of the attributes",
            axis="alpha",
            metric=MATCHING,
            spots=_along(_ALL, "alpha", **changes),
            claim="PSTHash matches fastest under Zipf; BE-Tree is ahead of OpIndex, and k-index behind SCAN.",
            says="Only curves.",
            judge=together(best("PSTHash", _PAPERS), order("BE-Tree", "OpIndex"), order("SCAN", "k-index")),
        )
        for number, shape, changes in (("7a", "dense", {}), ("7b", "sparse", _SPARSE))
    ),
    _figure(
        number="8a",
        title="Matching: number of dimensions",
        axis="dimensions",
        log=True,
        metric=MATCHING,
        spots=_along(_ALL, "dimensions"),
        claim="With more dimensions PSTBloom, OpIndex and k-index become much faster.",
        says="Only curves.",
        judge=together(*(grows(name, most=0.5) for name in ("PSTBloom", "OpIndex", "k-index"))),
    ),
    _figure(
        number="8b",
        title="Matching: dimensions, with as many subscriptions for each",
        axis="dimensions",
        log=True,
        metric=MATCHING,
        spots=_along(_ALL, "dimensions-and-subscriptions"),
        claim="Above 300 dimensions PSTBloom matches fastest.",
        says="Only curves.",
        judge=best("PSTBloom", _PAPERS),
        departures=f"{SHRUNK} The paper does not tell how many subscriptions a dimension has; here 33.",
    ),
    _figure(
        number="9a",
        title="Matching, dense: cardinality",
        axis="values of an attribute",
        log=True,
        metric=MATCHING,
        spots=_along(_ALL, "cardinality"),
        claim="PSTHash matches fastest below 300 values, PSTBloom from there on.",
        says="At 1,000 values PSTBloom takes 91 % less than OpIndex.",
        judge=together(best("PSTHash", _PAPERS, FIRST), best("PSTBloom", _PAPERS), below("PSTBloom", "OpIndex", 91)),
    ),
    _figure(
        number="9b",
        title="Matching, sparse: cardinality",
        axis="values of an attribute",
        log=True,
        metric=MATCHING,
        spots=_along(_ALL, "cardinality", **_SPARSE),
        claim="PSTBloom matches fastest.",
        says="Only curves.",
        judge=best("PSTBloom", _PAPERS),
    ),
    _figure(
        number="10a",
        title="Matching, dense: size of subscriptions",
        axis="predicates of a subscription",
        metric=MATCHING,
        spots=_along(_ALL, "subscription-size"),
        claim="PSTBloom, PSTHash, BE-Tree and Propagation become faster with the size, OpIndex becomes slower.",
        says="From 5 to 30 predicates OpIndex takes 350 % more.",
        judge=together(
            *(grows(name, most=1.0) for name in ("PSTBloom", "PSTHash", "BE-Tree", "Propagation")),
            grows("OpIndex", least=4.5**0.5),
        ),
    ),
    _figure(
        number="10b",
        title="Matching, sparse: size of subscriptions",
        axis="predicates of a subscription",
        metric=MATCHING,
        spots=_along(_ALL, "subscription-size", **_SPARSE),
        claim="Only OpIndex becomes slower with the size.",
        says="From 5 to 30 predicates OpIndex takes 200 % more.",
        judge=together(
            grows("OpIndex", least=3**0.5), *(grows(name, most=1.5) for name in ("PSTBloom", "PSTHash", "BE-Tree"))
        ),
    ),
    _figure(
        number="11a",
        title="Matching, dense: size of events",
        axis="attributes of an event",
        metric=MATCHING,
        spots=_along(_ALL, "event-size"),
        claim="All but Propagation and SCAN become slower with the size of events; PSTHash matches fastest.",
        says="At 90 attributes PSTHash takes 85 % less than BE-Tree.",
        judge=together(
            best("PSTHash", _PAPERS),
            below("PSTHash", "BE-Tree", 85),
            *(grows(name, least=1.0) for name in ("k-index", "OpIndex", "BE-Tree", "PSTBloom", "PSTHash")),
        ),
    ),
    _figure(
        number="11b",
        title="Matching, sparse: size of events",
        axis="attributes of an event",
        metric=MATCHING,
        spots=_along(_ALL, "event-size", **_SPARSE),
        claim="All but Propagation and SCAN become slower with the size of events; PSTBloom matches fastest.",
        says="At 90 attributes PSTBloom takes 80 % less than OpIndex.",
        judge=together(
            best("PSTBloom", _PAPERS),
            below("PSTBloom", "OpIndex", 80),
            *(grows(name, least=1.0) for name in ("k-index", "OpIndex", "BE-Tree", "PSTBloom", "PSTHash")),
        ),
    ),
    *(
        _figure(
            number=number,
            title=f"Matching, {shape}: share of subscriptions that match",
            axis="share that matches",
            log=True,
            metric=MATCHING,
            spots=_along(_ALL, "match-probability", **changes),
            claim=(
                "Where half of the subscriptions match, BE-Tree, OpIndex and Propagation come close to SCAN; PSTBloom and "
                "PSTHash do not."
            ),
            says="At 50 % PSTBloom and PSTHash take about 25 % of what SCAN takes.",
            judge=together(
                *(close(name, "SCAN") for name in ("BE-Tree", "OpIndex", "Propagation")),
                below("PSTBloom", "SCAN", 75),
                below("PSTHash", "SCAN", 75),
            ),
        )
        for number, shape, changes in (("12a", "dense", {}), ("12b", "sparse", _SPARSE))
    ),
    _figure(
        number="13a",
        title="Matching, dense: share of equalities",
        axis="share of = among predicates",
        metric=MATCHING,
        spots=_along((*_ALL, "pst-hash-cells"), "equality-ratio"),
        claim="All become faster with more equalities; PSTHash always matches fastest.",
        says="Only curves.",
        judge=together(
            always_best("PSTHash", _PAPERS),
            *(
                grows(name, most=1.0)
                for name in ("k-index", "Propagation", "OpIndex", "BE-Tree", "PSTBloom", "PSTHash")
            ),
        ),
        departures=(
            f"{SHRUNK} The paper limits no cells. By default we do: without equalities, a third of the subscriptions is then in "
            "PSTHash's own PSTBloom. With 4,096 cells for each, hardly any is."
        ),
    ),
    _figure(
        number="13b",
        title="Matching, sparse: share of equalities",
        axis="share of = among predicates",
        metric=MATCHING,
        spots=_along(_ALL, "equality-ratio", **_SPARSE),
        claim="With equalities only, Propagation is as good as PSTBloom, and far ahead of SCAN.",
        says="Only curves.",
        judge=together(below("Propagation", "SCAN", 90), close("Propagation", "PSTBloom")),
    ),
    _figure(
        number="14a",
        title="Memory, dense: number of subscriptions",
        axis="subscriptions",
        log=True,
        metric=MEMORY,
        spots=_along(_BUILT, "subscriptions"),
        claim="Propagation needs least memory; PSTBloom and PSTHash grow more slowly than OpIndex and BE-Tree.",
        says="PSTBloom needs up to 94 % less than BE-Tree and 99 % less than OpIndex.",
        judge=together(
            best("Propagation", _PAPERS[1:]),
            flatter(("PSTBloom", "PSTHash"), ("OpIndex", "BE-Tree")),
            below("PSTBloom", "BE-Tree", 94),
            below("PSTBloom", "OpIndex", 99),
        ),
        departures=f"{SHRUNK} The paper reads the memory of processes; here the bytes of the index's arrays are counted.",
    ),
    _figure(
        number="14b",
        title="Memory, dense: size of subscriptions",
        axis="predicates of a subscription",
        metric=MEMORY,
        spots=_along(_BUILT, "subscription-size"),
        claim=(
            "With the size OpIndex and k-index need more, BE-Tree and Propagation remain as they are, PSTBloom and PSTHash "
            "need less."
        ),
        says="Only curves.",
        judge=together(
            grows("OpIndex", least=1.2),
            grows("k-index", least=1.2),
            grows("BE-Tree", most=1.5),
            grows("Propagation", most=1.5),
            grows("PSTBloom", most=1.0),
            grows("PSTHash", most=1.0),
        ),
        departures=f"{SHRUNK} The bytes of the index's arrays are counted.",
    ),
    _figure(
        number="15a",
        title="Matching: query log",
        axis="workload",
        metric=MATCHING_OTHER,
        spots=_LOG,
        claim="From fast to slow: PSTBloom, OpIndex, PSTHash, BE-Tree, k-index, Propagation, SCAN.",
        says="Only bars.",
        judge=order("PSTBloom", "OpIndex", "PSTHash", "BE-Tree", "k-index", "Propagation", "SCAN"),
        departures=_MADE_TEXT,
    ),
    _figure(
        number="15b",
        title="Building: query log",
        axis="workload",
        metric=BUILDING,
        spots=_LOG,
        claim="In the same order; PSTBloom is like BE-Tree, and OpIndex like k-index.",
        says="Only bars.",
        judge=order("PSTBloom", "BE-Tree", "OpIndex", "k-index"),
        departures=_MADE_TEXT,
    ),
    _figure(
        number="table-2a",
        title="Matching: advertisements",
        axis="workload",
        metric=MATCHING,
        spots=_ADS,
        claim="PSTHash matches fastest, then PSTBloom; BE-Tree is slightly ahead of OpIndex.",
        says="PSTHash 0.24 ms, PSTBloom 0.82, BE-Tree 2.26, OpIndex 3.21, Propagation 168.73, SCAN 435.27, k-index 616.42.",
        judge=together(
            order("PSTHash", "PSTBloom", "BE-Tree", "OpIndex", "Propagation", "SCAN", "k-index"),
            below("PSTHash", "BE-Tree", 89),
        ),
        departures=_MADE_ADS,
    ),
    _figure(
        number="table-2b",
        title="Building: advertisements",
        axis="workload",
        metric=BUILDING,
        spots=_ADS,
        claim="PSTBloom builds fastest.",
        says="PSTBloom 7.81 s, PSTHash 8.22, BE-Tree 13.70, OpIndex 24.92, Propagation 62.43, k-index 140.76.",
        judge=order("PSTBloom", "PSTHash", "BE-Tree", "OpIndex", "Propagation", "k-index"),
        departures=_MADE_ADS,
    ),
    _figure(
        number="table-2c",
        title="Memory: advertisements",
        axis="workload",
        metric=MEMORY,
        spots=_ADS,
        claim="PSTBloom needs less memory than BE-Tree and OpIndex.",
        says="Propagation 14.41 MB, PSTBloom 55.93, BE-Tree 393.21, OpIndex 574.38, PSTHash 759.72, k-index 7,320.",
        judge=together(
            order("Propagation", "PSTBloom", "BE-Tree"), order("PSTBloom", "OpIndex"), lead("PSTBloom", "BE-Tree", 7)
        ),
        departures=_MADE_ADS,
    ),
    _figure(
        number="table-3a",
        title="Points in intervals: the time of a point",
        axis="workload",
        metric=MATCHING,
        spots=_INTERVALS,
        claim="PS-Tree locates a point fastest, then Segment Tree, then Interval Tree.",
        says="100K points: PS-Tree 0.71 ms, Segment Tree 6.27 ms, Interval Tree 2.52 s, SCAN 23.11 s.",
        judge=together(order("PS-Tree", "Segment Tree", "Interval Tree", "SCAN"), lead("PS-Tree", "Segment Tree", 9)),
        departures="Here each interval that has the point is found. The paper's PS-Tree only locates the leaf, it seems.",
    ),
    _figure(
        number="table-3b",
        title="Points in intervals: building",
        axis="workload",
        metric=BUILDING,
        spots=_INTERVALS,
        claim="PS-Tree builds slowest.",
        says="Interval Tree 16.02 ms, Segment Tree 29.71, PS-Tree 91.88.",
        judge=order("Interval Tree", "Segment Tree", "PS-Tree"),
    ),
)
"""All figures of the paper, in its order."""
