"""The figures of the indexes as text: lines, tables and a chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tamis.bench.markdown import table
from tamis.bench.svg import Group, bars, number_text

DESCRIPTION = """The indexes of the papers beside a scan, each built and measured in a process of its own, perhaps on another
day than the others, but on one machine and with one version; that answers are the scan's is checked. Times are microseconds
per event, the best of several passes, from encoded events to conjunctions. *Planted* events are those that 1,000 subscriptions
each were derived from, *other* events are drawn alike. *Times a scan* is the scan's time, taken by turns in the same process,
through that of the index: above 1 the index is faster. *Again* is what a planted event takes when it has just been matched, so
that all it needs is in the caches: what is less than *planted* was waiting for memory. *Candidates* are conjunctions looked
at, *nodes* the nodes, lists or tables visited, per planted event as *matches* are. *Bytes* are those of the index alone, per
conjunction."""

_KINDS = ("planted", "other")
_SCAN = "scan"
_COUNTED = ("op-index", "op-index-bs", "k-index")

Row = dict[str, Any]


class Measured(NamedTuple):
    """One index on one shape and size: what it is, and the figures by kind of events."""

    name: str
    shape: str
    size: int
    kinds: dict[str, Row]


class Ordering(NamedTuple):
    """What a paper says of the speed of indexes: each of `ahead` is faster than each of `behind`."""

    claim: str
    source: str
    shapes: tuple[str, ...] | None
    """None: all that were measured."""
    ahead: str
    behind: tuple[str, ...] | None
    """None: all other indexes of the papers."""


ORDERINGS = (
    Ordering("PSTHash first on dense", "PS-Tree, Fig. 6a", ("dense",), "pst-hash", None),
    Ordering("PSTHash first on Zipf", "PS-Tree, Fig. 7", ("zipf",), "pst-hash", None),
    Ordering("PSTBloom first on sparse", "PS-Tree, Fig. 6b", ("sparse",), "pst-bloom", None),
    *(
        Ordering(f"BE-Tree ahead of {title}", "BE-Tree, 7.3", None, "be-tree", (name,))
        for title, name in (("Propagation", "propagation"), ("k-index", "k-index"), ("counting", "counting"))
    ),
    Ordering("OpIndex ahead of k-index", "OpIndex, Fig. 10", None, "op-index", ("k-index",)),
)


def line_of(row: Row) -> str:
    """One figure as it is printed while the others are measured."""
    place = f"{row['index']:18} {row['shape']:9} {row['subscriptions']:9,}"
    if "failure" in row:
        return f"{place}  {row['failure']}"
    return (
        f"{place} {row['kind']:8} {row['microseconds']:9.1f} us, {_ratio(row):7.1f} times a scan, {row['matches']:6.0f} matches "
        f"of {row['candidates']:9.1f} candidates, {row['nodes']:8.1f} nodes, build {row['build_seconds']:6.2f} s, "
        f"{row['bytes_each']:5.0f} B each"
    )


def to_tables(result: dict[str, Any]) -> str:
    """All tables as Markdown, under headings of their own."""
    rows = result["rows"]
    measured = _measured(rows)
    shapes = dict.fromkeys(each.shape for each in measured)
    sections = [(f"Shape {shape}", shape_table([each for each in measured if each.shape == shape])) for shape in shapes]
    sections.append(("OpIndex, its signatures, and k-index", segments_table(measured)))
    sections.append(("The papers' orderings", orderings_table(measured)))
    sections.append(("Remarks", remarks(measured)))
    sections.append(("Not measured", failures_table(rows)))
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in sections if table)


def shape_table(measured: list[Measured]) -> str:
    """All indexes on one shape, the smaller size first, within it the fastest."""
    lines = []
    for each in sorted(measured, key=lambda each: (each.size, _microseconds(each))):
        some = next(iter(each.kinds.values()))
        planted = each.kinds.get("planted", some)
        lines.append(
            [
                f"`{each.name}`",
                f"{each.size:,}",
                *(_figure(each.kinds.get(kind), "microseconds") for kind in _KINDS),
                _figure(each.kinds.get("planted"), "again_microseconds"),
                *(_times_a_scan(each.kinds.get(kind)) for kind in _KINDS),
                f"{some['build_seconds']:.2f}",
                number_text(some["bytes_each"]),
                *(number_text(planted[name]) for name in ("matches", "candidates", "nodes")),
            ]
        )
    heads = [
        "index",
        "subscriptions",
        "planted",
        "other",
        "again",
        "times a scan, planted",
        "other",
        "build, s",
        "bytes",
    ]
    return table([*heads, "matches", "candidates", "nodes"], lines)


def segments_table(measured: list[Measured]) -> str:
    """What OpIndex looks at, beside its plain version and k-index, as in its figures; nothing if it was not measured."""
    lines = [
        [
            each.shape,
            f"{each.size:,}",
            f"`{each.name}`",
            number_text(_microseconds(each)),
            *(number_text(each.kinds[kind][name]) for kind in _KINDS for name in ("candidates", "nodes")),
        ]
        for each in sorted(measured, key=lambda each: each.size)
        if each.name in _COUNTED and set(each.kinds) == set(_KINDS)
    ]
    heads = [
        "shape",
        "subscriptions",
        "index",
        "planted",
        "candidates, planted",
        "segments",
        "candidates, other",
        "segments",
    ]
    note = (
        "`op-index-bs` is OpIndex without signatures, so every list is one segment. A candidate is a subscription whose "
        "counter is lowered, or for `k-index` one that is at the head of a posting list; segments of `k-index` are its posting "
        "lists. Per event."
    )
    return f"{note}\n\n{table(heads, lines)}" if lines else ""


def orderings_table(measured: list[Measured]) -> str:
    """What the papers say of who is faster, held against planted events at the largest size; nothing if nothing can be."""
    compared = [(ordering, *pair) for ordering in ORDERINGS for pair in _compared(ordering, measured)]
    if not compared:
        return ""
    lines = [
        [
            ordering.claim,
            ordering.source,
            first.shape,
            f"{first.size:,}",
            number_text(_speed(first)),
            f"{number_text(_speed(second))} (`{second.name}`)",
            "holds" if _holds(first, second) else "does not hold",
        ]
        for ordering, first, second in compared
    ]
    heads = ["ordering", "from", "shape", "subscriptions", "it", "the best of those behind", "in this run"]
    note = (
        "Among the indexes of the papers that were measured; how many times faster than a scan in the same process, with planted "
        "events. The papers measured other machines, sizes and implementations."
    )
    failed = [(ordering, first, second) for ordering, first, second in compared if not _holds(first, second)]
    return "\n\n".join([note, table(heads, lines), *_explained(failed, measured)])


def _ahead(ordering: Ordering, first: Measured, measured: list[Measured]) -> list[Measured]:
    """All that ought to be behind an index, and are not."""
    there = [each for each in _others(ordering, measured, first.shape) if each.size == first.size]
    return sorted((each for each in there if not _holds(first, each)), key=_speed, reverse=True)


def _others(ordering: Ordering, measured: list[Measured], shape: str) -> list[Measured]:
    """Those that an ordering says are behind, on one shape."""
    return [
        each
        for each in measured
        if each.shape == shape
        and each.name not in (_SCAN, ordering.ahead)
        and (ordering.behind is None or each.name in ordering.behind)
    ]


def _explained(failed: list[tuple[Ordering, Measured, Measured]], measured: list[Measured]) -> Iterator[str]:
    """Why orderings do not hold: what each of the two looks at, and what is known of the reasons."""
    if not failed:
        return
    lines = [
        [each.shape, f"`{each.name}`", *_evidence(each.kinds["planted"])]
        for ordering, first, _ in failed
        for each in [first, *_ahead(ordering, first, measured)]
    ]
    yield (
        "What they look at where an ordering does not hold, it and all that are ahead of it, per planted event. *Waiting* is the "
        "share of the time that an event does not take *again*: waiting for memory. *Each* is what a candidate takes then, in "
        "nanoseconds, all that leads to it included."
    )
    heads = ["shape", "index", *_COUNTED_FIGURES, "waiting", "each"]
    yield table(heads, {tuple(line): line for line in lines}.values())
    for claim in dict.fromkeys(ordering.claim for ordering, _, _ in failed):
        yield f"*{claim}.* {REASONS.get(claim, 'Not looked into yet.')}"


_COUNTED_FIGURES = ("microseconds", "matches", "candidates", "predicates", "nodes")


def _evidence(row: Row) -> list[str]:
    """What an index looks at for an event, and what becomes of its time."""
    again = min(row["again_microseconds"] / row["microseconds"], 1.0)
    each = 1000 * row["again_microseconds"] / max(row["candidates"], 1)
    return [*(number_text(row[name]) for name in _COUNTED_FIGURES), f"{1 - again:.0%}", number_text(each)]


REASONS = {
    "PSTHash first on Zipf": """Only `ps-tree` is ahead, which the paper does not measure: the lists of PSTBloom, without
signatures. Where one selective predicate leaves few candidates, as here, a second one has little to save; but PSTHash looks up
every pair of the spaces that an event meets (*nodes* are those that have a cell), in tables that are larger than the caches:
it waits for memory more than the others do.""",
    "PSTBloom first on sparse": """With 30,000 dimensions the access predicate alone leaves hardly more candidates than there
are matches, so signatures have nothing to filter; what they cost is the difference to `ps-tree`, which has the same lists and
no signatures. A signature belongs to a leaf of another dimension, so asking it is a read somewhere else in memory for every
candidate. What it is to spare, fetching the candidate's predicates, is cheap here: they lie in one record, which is fetched
ahead. PSTHash and OpIndex have few candidates too, and ask nothing first; Propagation has many, and tests them by columns.""",
    "BE-Tree ahead of Propagation": """BE-Tree looks at fewer candidates nearly everywhere, as its paper says, but each costs it
several times as much, also when nothing waits for memory: it pays with nodes. Every node, directory and list is a place of its
own, reached through the one before, and each candidate is a record with predicates to go through. Propagation reads the columns
of its clusters from beginning to end, which the processor foresees, and tests bits of a vector that stays in the caches. So
it takes less time with many times the candidates; only where clusters are behind equalities that many events satisfy, on ads, are
they too many. On zipf, where few attributes are in most subscriptions, BE-Tree has the more candidates as well.""",
    "BE-Tree ahead of counting": """On range, where an event satisfies some predicate of nearly every subscription, counting
lowers a counter for each, in lists that it goes through from beginning to end. BE-Tree looks at a seventh of them, but for each
it goes through a record, below tens of thousands of nodes. It comes to the same time.""",
}
"""Claim -> why it does not hold in our runs."""


def _holds(first: Measured, second: Measured) -> bool:
    return _speed(first) >= _speed(second)


def _speed(measured: Measured) -> float:
    """How many times faster than a scan, with planted events."""
    kinds = measured.kinds
    return _ratio(kinds.get("planted", next(iter(kinds.values()))))


def _compared(ordering: Ordering, measured: list[Measured]) -> Iterator[tuple[Measured, Measured]]:
    """The index that is said to be ahead and the best of the others, on each shape at the largest size that both have."""
    for shape in ordering.shapes or dict.fromkeys(each.shape for each in measured):
        others = _others(ordering, measured, shape)
        sizes = {each.size for each in others}
        own = [each for each in measured if each.shape == shape and each.name == ordering.ahead and each.size in sizes]
        for first in _largest(own):
            yield first, max((each for each in others if each.size == first.size), key=_speed)


REMARKS = {
    "dynamic-clustering": """`dynamic-clustering` creates no table here, and measures as `propagation` does. A table is due where
a cluster costs an event more than one check. Equalities are spread over a hundred attributes and more here, so clusters are
small: with 100,000 subscriptions the largest has 9 on dense, 15 on equality and 35 on ads, and the costliest takes
0.1, 0.1 and 0.6 checks of an average event. `static-clustering`, which weighs what a table saves against what looking it up
takes, has tables on equality alone, and is no faster for them. The paper's workloads have equalities on two attributes that
are the same for all subscriptions: there `dynamic-clustering` creates their table from about 2,500 subscriptions on.""",
}
"""Index -> what its figures do not tell."""


def remarks(measured: list[Measured]) -> str:
    """What is to be said of the indexes that were measured."""
    names = {each.name for each in measured}
    return "\n\n".join(text for name, text in REMARKS.items() if name in names)


def failures_table(rows: list[Row]) -> str:
    """What was not measured, and why; nothing if all was."""
    lines = [
        [f"`{row['index']}`", row["shape"], f"{row['subscriptions']:,}", row["failure"].replace("|", "\\|")]
        for row in rows
        if "failure" in row
    ]
    return table(["index", "shape", "subscriptions", "reason"], lines) if lines else ""


def to_chart(result: dict[str, Any]) -> str:
    """How many times faster than a scan each index is, at the largest size of every shape, as SVG."""
    groups = []
    measured = [each for each in _measured(result["rows"]) if each.name != _SCAN]
    for shape in dict.fromkeys(each.shape for each in measured):
        largest = _largest([each for each in measured if each.shape == shape])
        for each in sorted(largest, key=_microseconds):
            kinds = (each.kinds.get(kind) for kind in _KINDS)
            values = [None if figures is None else _ratio(figures) for figures in kinds]
            # The first colour is the scan's, which is 1 everywhere.
            groups.append(Group(f"{shape}: {each.name}", [None, *values]))
    most = max((each.size for each in measured), default=0)
    title = f"Times a scan, {most:,} subscriptions, one thread"
    return bars(
        title, "the scan's time through the index's, logarithmic", ["scan: 1", "planted events", "other events"], groups
    )


def _measured(rows: list[Row]) -> list[Measured]:
    """The rows of one index, shape and size together, in the order in which they were measured."""
    found: dict[tuple[str, str, int], Measured] = {}
    for row in rows:
        if "failure" not in row:
            place = (row["index"], row["shape"], row["subscriptions"])
            found.setdefault(place, Measured(*place, {})).kinds[row["kind"]] = row
    return list(found.values())


def _largest(measured: list[Measured]) -> list[Measured]:
    most = max((each.size for each in measured), default=0)
    return [each for each in measured if each.size == most]


def _microseconds(measured: Measured) -> float:
    """Per planted event, or another if there is none."""
    kinds = measured.kinds
    microseconds: float = kinds.get("planted", next(iter(kinds.values())))["microseconds"]
    return microseconds


def _figure(figures: Row | None, name: str) -> str:
    return "" if figures is None else number_text(figures[name])


def _times_a_scan(figures: Row | None) -> str:
    return "" if figures is None else number_text(_ratio(figures))


def _ratio(figures: Row) -> float:
    """How many times as long a scan takes."""
    ratio: float = figures["scan_microseconds"] / figures["microseconds"]
    return ratio
