"""The experiments of Zhang, Chan and Tan, An Efficient Publish/Subscribe Index for E-Commerce Databases, VLDB 2014, section 7.

Subscriptions and events are independent of each other, so there are no planted events. Our copy of table 3 has lost which values
are defaults; those of the preset `op-index` are the middle of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tamis.experiments.claims import (
    always_best,
    best,
    close,
    fails,
    flatter,
    grow_alike,
    grows,
    lead,
    lead_grows,
    together,
    within,
)
from tamis.experiments.contenders import find_contender
from tamis.experiments.figure import (
    BUILDING,
    MATCHING,
    MATCHING_OTHER,
    MEMORY,
    SHRUNK,
    Figure,
    Judge,
    Metric,
    Spot,
)
from tamis.experiments.leaf_capacity import capacity_option
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale
from tamis.experiments.sweeps import Sweep, along, joined, libraries, over, over_size
from tamis.workload import column, preset

_ALL = ("k-index", "be-tree", "op-index-bs", "op-index", "tamis")
_PAPERS = ("k-index", "BE-Tree", "OpIndex-BS", "OpIndex")
_RIVALS = ("k-index", "BE-Tree")
_SIZES = column("op-index", "subscriptions")
_CLAUSES = (40_000, 400_000, 800_000)
"""A twenty-fifth of the paper's: expressions of several clauses are read from text, for the index and for the scan."""
_LARGEST = column("op-index", "subscription-size").values
_CAPACITIES = (5, 50, 100, 150, 250)

_LOG_SIZES = (1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000)

_figure = partial(Figure, paper="op-index", departures=SHRUNK)


def _forms(places: Sequence[tuple[int, int, int]]) -> list[Spot]:
    """A line for each normal form. `places` are places of the axis, the number of all clauses, and the most of one."""
    return [
        Spot(
            f"{find_contender(name).label}, {form.upper()}",
            place,
            Point(
                name,
                preset("op-index", subscriptions=count),
                "normal-forms",
                (("form", form), ("clauses", most)),
            ),
        )
        for name in ("op-index", "tamis")
        for form in ("dnf", "cnf")
        for place, count, most in places
    ]


def _log(letter: str, metric: Metric, operator: str, documents: str, title: str) -> Figure:
    building = metric is BUILDING
    judges: list[Judge] = [best("OpIndex", _RIVALS)]
    if building:
        words = close("k-index", "OpIndex") if operator == "words" else best("OpIndex", ("k-index",))
        judges = [words, lead("OpIndex", "BE-Tree", 100)]
    elif documents.startswith("twitter"):
        judges += [lead("OpIndex", "BE-Tree", 4), lead("OpIndex", "k-index", 100)]
    claims = {
        "words": "OpIndex and k-index build in similar time; BE-Tree takes orders of magnitude longer.",
        "intervals": "k-index takes longer than OpIndex; BE-Tree takes orders of magnitude longer.",
    }
    if building:
        says = "BE-Tree takes two orders of magnitude longer to build."
    elif documents.startswith("twitter"):
        says = "OpIndex is 4 to 9 times as fast as BE-Tree, and two orders of magnitude faster than k-index."
    else:
        says = "Only curves."
    return _figure(
        number=f"11{letter}",
        title=f"{title}: number of subscriptions",
        axis="subscriptions",
        log=True,
        metric=metric,
        spots=over_size(_ALL, preset(f"op-index-{documents}"), _LOG_SIZES),
        claim=claims[operator] if building else "OpIndex matches fastest.",
        says=says,
        judge=together(*judges),
        departures=f"{SHRUNK} Queries and documents are made, with the paper's sizes.",
    )


def _by_size(name: str) -> Sweep:
    return over_size(_ALL, preset(f"op-index-{name}"), _LOG_SIZES)


def _by_largest(name: str) -> Sweep:
    return over(_ALL, preset(f"op-index-{name}"), "subscription_size", _LARGEST)


def _products(letter: str, metric: Metric, name: str, title: str, sweep: Callable[[str], Sweep]) -> Figure:
    building = metric is BUILDING
    if building:
        claim = "k-index builds about as fast as OpIndex, BE-Tree far more slowly."
        judge = together(close("k-index", "OpIndex"), lead("OpIndex", "BE-Tree", 100))
    elif sweep is _by_size:
        claim, judge = "OpIndex always matches fastest.", always_best("OpIndex", _RIVALS)
    else:
        claim = "OpIndex always matches fastest; its lead over BE-Tree grows with the size of subscriptions."
        judge = together(always_best("OpIndex", _RIVALS), lead_grows("OpIndex", "BE-Tree"))
    return _figure(
        number=f"12{letter}",
        title=f"Products. {title}",
        axis="subscriptions" if sweep is _by_size else "largest number of predicates",
        log=sweep is _by_size,
        metric=metric,
        spots=sweep(name),
        claim=claim,
        says="Orders of magnitude." if building else "Only curves.",
        judge=judge,
        departures=f"{SHRUNK} Products are made, with the paper's sizes.",
    )


def _along(name: str) -> Sweep:
    return along(_ALL, column("op-index", name))


def _capacities(scale: Scale) -> list[Spot]:
    workload = preset("op-index", subscriptions=scale.subscriptions(1_000_000))
    return [
        Spot("BE-Tree", capacity, Point("be-tree", workload, options=capacity_option(capacity)))
        for capacity in scale.thinned(_CAPACITIES)
    ]


def _matching(letter: str, title: str, axis: str, spots: Sweep, claim: str, log: bool = False) -> Figure:
    growth = {
        "a": flatter("OpIndex", "OpIndex-BS"),
        "b": together(flatter("OpIndex", _RIVALS), grows("k-index", least=2.0), grows("BE-Tree", least=1.0)),
        "c": together(grow_alike("OpIndex", "BE-Tree"), flatter(("OpIndex", "BE-Tree"), "k-index")),
        "d": flatter(_RIVALS, "OpIndex"),
        "e": grows("OpIndex", most=2.0, least=0.5),
        "f": together(always_best("OpIndex", _RIVALS), flatter("OpIndex", "k-index")),
    }[letter]
    judges = [best("OpIndex", _PAPERS), lead("OpIndex", "k-index", 10)]
    if letter == "f":
        judges = []
    return _figure(
        number=f"10{letter}",
        title=f"Matching: {title}",
        axis=axis,
        log=log,
        metric=MATCHING,
        spots=spots,
        claim=claim,
        says="Only curves." if letter == "f" else "OpIndex is more than 10 times as fast as k-index.",
        judge=together(*judges, growth),
    )


def _attributes(letter: str, metric: Metric, title: str, claim: str) -> Figure:
    return _figure(
        number=f"1{letter}",
        title=f"{title}: number of dimensions",
        axis="dimensions",
        metric=metric,
        spots=_along("dimensions"),
        claim=claim,
        says="Only curves.",
        judge=together(best("OpIndex", _RIVALS), best("k-index", ("BE-Tree",)))
        if metric is BUILDING
        else always_best("OpIndex", _RIVALS),
    )


FIGURES = (
    _attributes("a", BUILDING, "Building", "OpIndex builds fastest, then k-index; BE-Tree builds slowest."),
    _attributes("b", MATCHING, "Matching", "OpIndex always matches fastest."),
    _figure(
        number="7a",
        title="Building BE-Tree: capacity of its leaves",
        axis="most expressions of a leaf",
        metric=BUILDING,
        spots=_capacities,
        claim="A larger capacity builds faster.",
        says="From 5 to 150 it builds 15 times as fast.",
        judge=grows("BE-Tree", most=15**-0.5),
    ),
    _figure(
        number="7b",
        title="Matching with BE-Tree: capacity of its leaves",
        axis="most expressions of a leaf",
        metric=MATCHING,
        spots=_capacities,
        claim="A larger capacity matches more slowly.",
        says="From 5 to 150 it matches 15 times as slowly.",
        judge=grows("BE-Tree", least=15**0.5),
    ),
    _figure(
        number="8a",
        title="Memory: number of subscriptions",
        axis="subscriptions",
        log=True,
        metric=MEMORY,
        spots=along(_ALL, _SIZES),
        claim="OpIndex needs least memory, then BE-Tree; k-index needs most.",
        says="BE-Tree needs 2 times, k-index 7 times the memory of OpIndex.",
        judge=together(lead("OpIndex", "BE-Tree", 2), lead("OpIndex", "k-index", 7)),
    ),
    _figure(
        number="8b",
        title="Memory: cardinality",
        axis="values of an attribute",
        log=True,
        metric=MEMORY,
        spots=_along("cardinality"),
        claim="OpIndex is not affected by the cardinality, BE-Tree grows, and k-index runs out of memory.",
        says="OpIndex always 0.2 GB; BE-Tree from 1 to 10 GB; k-index fails from 3,200 on.",
        judge=together(grows("OpIndex", most=1.2), grows("BE-Tree", least=10**0.5), fails("k-index")),
    ),
    _figure(
        number="9a",
        title="Insertion: number of subscriptions",
        axis="subscriptions",
        log=True,
        metric=BUILDING,
        spots=along(_ALL, _SIZES),
        claim="OpIndex is inserted into far faster than k-index, and k-index than BE-Tree.",
        says="OpIndex is 3 orders of magnitude below BE-Tree, and 1 below k-index.",
        judge=together(lead("OpIndex", "BE-Tree", 1_000), lead("OpIndex", "k-index", 10)),
    ),
    _figure(
        number="9b",
        title="Insertion: largest size of subscriptions",
        axis="largest number of predicates",
        metric=BUILDING,
        spots=_along("subscription-size"),
        claim="OpIndex is inserted into far faster than k-index, and k-index than BE-Tree.",
        says="OpIndex is 3 orders of magnitude below BE-Tree, and 1 below k-index.",
        judge=together(lead("OpIndex", "BE-Tree", 1_000), lead("OpIndex", "k-index", 10)),
    ),
    _matching(
        "a",
        "number of subscriptions",
        "subscriptions",
        joined(along(_ALL, _SIZES), libraries(_SIZES.default, _SIZES.values)),
        "OpIndex matches fastest, and scales better than OpIndex-BS.",
        log=True,
    ),
    _matching(
        "b",
        "largest size of subscriptions",
        "largest number of predicates",
        _along("subscription-size"),
        "OpIndex matches fastest and scales best; k-index grows with the size, and BE-Tree degrades at 20.",
    ),
    _matching(
        "c",
        "size of events",
        "attributes of an event",
        _along("event-size"),
        "OpIndex matches fastest and scales like BE-Tree; k-index scales worst.",
    ),
    _matching(
        "d",
        "share of equalities",
        "share of = among predicates",
        _along("equality-ratio"),
        "OpIndex matches fastest; k-index and BE-Tree gain more than OpIndex from more equalities.",
    ),
    _matching(
        "e",
        "cardinality",
        "values of an attribute",
        _along("cardinality"),
        "OpIndex matches fastest, and its time does not change with the cardinality.",
        log=True,
    ),
    _matching(
        "f",
        "Zipf's alpha of attributes and values",
        "alpha",
        _along("alpha"),
        "OpIndex always matches fastest, and scales better than k-index.",
    ),
    _log("a", BUILDING, "words", "twitter", "Building, queries of ="),
    _log("b", BUILDING, "intervals", "twitter-counts", "Building, queries of intervals"),
    _log("c", MATCHING_OTHER, "words", "twitter", "Matching, messages, ="),
    _log("d", MATCHING_OTHER, "intervals", "twitter-counts", "Matching, messages, intervals"),
    _log("e", MATCHING_OTHER, "words", "wikipedia", "Matching, articles, ="),
    _log("f", MATCHING_OTHER, "intervals", "wikipedia-counts", "Matching, articles, intervals"),
    _products("a", BUILDING, "ebay", "Building, =: number of subscriptions", _by_size),
    _products("b", MATCHING_OTHER, "ebay", "Matching, =: number of subscriptions", _by_size),
    _products("c", MATCHING_OTHER, "ebay", "Matching, =: largest size", _by_largest),
    _products("d", BUILDING, "ebay-sets", "Building, sets: number of subscriptions", _by_size),
    _products("e", MATCHING_OTHER, "ebay-sets", "Matching, sets: number of subscriptions", _by_size),
    _products("f", MATCHING_OTHER, "ebay-sets", "Matching, sets: largest size", _by_largest),
    _figure(
        number="13a",
        title="Normal forms of up to 5 clauses: number of clauses in all",
        axis="clauses of all subscriptions",
        log=True,
        metric=MATCHING,
        spots=lambda scale: _forms([(count, count, 5) for count in scale.sizes(_CLAUSES)]),
        claim="DNF scales better with the number of subscriptions.",
        says="Only curves.",
        judge=flatter("OpIndex, DNF", "OpIndex, CNF"),
        departures=(
            f"{SHRUNK} The subscriptions of the workload are the clauses, a twenty-fifth of the paper's. So there are a third as "
            "many subscriptions of several clauses."
        ),
    ),
    _figure(
        number="13b",
        title="Normal forms: most clauses of a subscription",
        axis="most clauses",
        metric=MATCHING,
        spots=lambda scale: _forms(
            [(most, scale.subscriptions(_CLAUSES[0]), most) for most in scale.thinned((1, 3, 5, 7, 9))]
        ),
        claim="CNF scales better with the number of clauses.",
        says="Only curves.",
        judge=flatter("OpIndex, CNF", "OpIndex, DNF"),
        departures=f"{SHRUNK} All clauses together are as many at each place, a twenty-fifth of the paper's.",
    ),
    _figure(
        number="14a",
        title="Prefixes: their share",
        axis="share of prefixes among predicates",
        metric=MATCHING_OTHER,
        spots=over(("op-index", "tamis"), preset("op-index-prefixes"), "like_share", (0.2, 0.4, 0.6, 0.8, 1.0)),
        claim="More prefixes take longer; with prefixes only an event still takes little.",
        says="Less than 400 microseconds with prefixes only, at 1M subscriptions.",
        judge=together(grows("OpIndex", least=1.0), within("OpIndex", 400)),
        departures=f"{SHRUNK} Words are made.",
    ),
    _figure(
        number="14b",
        title="Prefixes: their length",
        axis="characters of a prefix",
        metric=MATCHING_OTHER,
        spots=over(
            ("op-index", "tamis"), preset("op-index-prefixes", like_share=1.0), "prefix_length", (1, 2, 3, 4, 5)
        ),
        claim="The length changes little; longer prefixes are slightly faster.",
        says="Only curves.",
        judge=grows("OpIndex", most=1.1),
        departures=f"{SHRUNK} Words are made.",
    ),
)
"""All figures of the paper, in its order."""
