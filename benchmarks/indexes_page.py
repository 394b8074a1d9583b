"""The figures of the indexes as text: lines, tables and a chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.markdown import table
from benchmarks.svg import Group, bars, number_text

DESCRIPTION = """The indexes of the papers beside a scan. Each index is built and measured in its own process, perhaps on
another day than the others, but on one machine and with one version. The benchmark checks that all give the scan's answers.
Times are microseconds per event, the best of several passes, from encoded events to conjunctions.

- *Planted* events: 1,000 subscriptions were derived from each of them. *Other* events have the same distribution.
- *Times a scan* is the time of a scan divided by the time of the index, measured in turns in the same process. Above 1, the
  index is faster.
- *Again* is the time of a planted event that has just been matched, so that all its data is in the caches. The difference to
  *planted* is time spent waiting for memory.
- *Matches*, *candidates* (conjunctions visited) and *nodes* (nodes, lists or tables visited) are per planted event.
- *Bytes* are bytes of the index alone, per conjunction."""

_KINDS = ("planted", "other")
_SCAN = "scan"
_COUNTED = ("op-index", "op-index-bs", "k-index")

Row = dict[str, Any]


class Measured(NamedTuple):
    """One index on one shape and size, and its figures by kind of events."""

    name: str
    shape: str
    size: int
    kinds: dict[str, Row]


class Ordering(NamedTuple):
    """A paper's claim about the speed of indexes: `ahead` is faster than each of `behind`."""

    claim: str
    source: str
    shapes: tuple[str, ...] | None
    """None: all measured shapes."""
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
    """One row as text. It is printed as soon as it is measured."""
    place = f"{row['index']:18} {row['shape']:9} {row['subscriptions']:9,}"
    if "failure" in row:
        return f"{place}  {row['failure']}"
    return (
        f"{place} {row['kind']:8} {row['microseconds']:9.1f} us, {_ratio(row):7.1f} times a scan, {row['matches']:6.0f} matches "
        f"of {row['candidates']:9.1f} candidates, {row['nodes']:8.1f} nodes, build {row['build_seconds']:6.2f} s, "
        f"{row['bytes_each']:5.0f} B each"
    )


def to_tables(result: dict[str, Any]) -> str:
    """All tables as Markdown, each under its heading."""
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
    """All indexes on one shape, sorted by size, then by time."""
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
    """What OpIndex, its version without signatures and k-index visit, as in OpIndex's paper. Empty if none was measured."""
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
        "Figures are per event. `op-index-bs` is OpIndex without signatures, so every list is one segment. A candidate of "
        "OpIndex is a subscription whose counter is lowered. A candidate of `k-index` is a subscription at the head of a posting "
        "list, and its segments are its posting lists."
    )
    return f"{note}\n\n{table(heads, lines)}" if lines else ""


def orderings_table(measured: list[Measured]) -> str:
    """The papers' claims about speed, checked with planted events at the largest size. Empty if none can be checked."""
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
    heads = ["ordering", "from", "shape", "subscriptions", "ahead", "best of the others", "in this run"]
    note = (
        "*Ahead* is the index that should be ahead, *best of the others* the fastest of the measured indexes that should be "
        "behind it. Figures say how many times faster than a scan an index is, in the same process, with planted events. The "
        "papers measured other machines, sizes and implementations."
    )
    failed = [(ordering, first, second) for ordering, first, second in compared if not _holds(first, second)]
    return "\n\n".join([note, table(heads, lines), *_explained(failed, measured)])


def _ahead(ordering: Ordering, first: Measured, measured: list[Measured]) -> list[Measured]:
    """The indexes that should be behind an index but are ahead of it."""
    there = [each for each in _others(ordering, measured, first.shape) if each.size == first.size]
    return sorted((each for each in there if not _holds(first, each)), key=_speed, reverse=True)


def _others(ordering: Ordering, measured: list[Measured], shape: str) -> list[Measured]:
    """The indexes that should be behind, on one shape."""
    return [
        each
        for each in measured
        if each.shape == shape
        and each.name not in (_SCAN, ordering.ahead)
        and (ordering.behind is None or each.name in ordering.behind)
    ]


def _explained(failed: list[tuple[Ordering, Measured, Measured]], measured: list[Measured]) -> Iterator[str]:
    """Why some orderings do not hold: what each index visits, and the known reasons."""
    if not failed:
        return
    lines = [
        [each.shape, f"`{each.name}`", *_evidence(each.kinds["planted"])]
        for ordering, first, _ in failed
        for each in [first, *_ahead(ordering, first, measured)]
    ]
    yield (
        "The next table shows figures per planted event where an ordering does not hold: for the index that should be ahead, "
        "and for all that are ahead of it. *Waiting* is the share of the time that an event does not take *again*: time spent "
        "waiting for memory. *Each* is the time *again* per candidate, in nanoseconds, including the way to the candidate."
    )
    heads = ["shape", "index", *_COUNTED_FIGURES, "waiting", "each"]
    yield table(heads, {tuple(line): line for line in lines}.values())
    for claim in dict.fromkeys(ordering.claim for ordering, _, _ in failed):
        yield f"*{claim}.* {REASONS.get(claim, 'Not looked into yet.')}"


_COUNTED_FIGURES = ("microseconds", "matches", "candidates", "predicates", "nodes")


def _evidence(row: Row) -> list[str]:
    """What an index visits for an event, and how it spends its time."""
    again = min(row["again_microseconds"] / row["microseconds"], 1.0)
    each = 1000 * row["again_microseconds"] / max(row["candidates"], 1)
    return [*(number_text(row[name]) for name in _COUNTED_FIGURES), f"{1 - again:.0%}", number_text(each)]


REASONS = {
    "PSTHash first on Zipf": """Only `ps-tree` is ahead. The paper does not measure it: it is PSTBloom without signatures. Here
one selective predicate leaves few candidates, so a second one saves little. But PSTHash looks up every pair of the spaces of an
event (*nodes* counts the pairs that have a cell). Its tables are larger than the caches, so it waits for memory more than the
others.""",
    "PSTBloom first on sparse": """With 30,000 dimensions, the access predicate alone leaves hardly more candidates than
matches. So signatures have nothing to filter. The difference to `ps-tree`, which has the same lists and no signatures, is their
cost. A signature belongs to a leaf of another dimension, so each candidate costs a read elsewhere in memory. A signature should
save fetching the candidate's predicates. But this is cheap here: they lie in one record, which is fetched ahead. PSTHash and
OpIndex also have few candidates, and check nothing first. Propagation has many, and tests them by columns.""",
    "BE-Tree ahead of Propagation": """BE-Tree visits fewer candidates on nearly all shapes, as its paper says. But each
candidate costs several times as much, even without waiting for memory. The nodes cause this cost: every node, directory and
list lies elsewhere in memory and is reached through the previous one, and each candidate is a record with predicates to check.
Propagation reads the columns of its clusters from beginning to end, which the processor predicts, and tests bits of a vector
that stays in the caches. So it takes less time with many times the candidates. The candidates are too many only on ads, where
clusters are behind equalities that many events satisfy. On zipf, where few attributes are in most subscriptions, BE-Tree even
has more candidates.""",
    "BE-Tree ahead of counting": """On range, an event satisfies some predicate of nearly every subscription. Counting changes
a counter for each, in lists that it reads from beginning to end. BE-Tree visits a seventh of the subscriptions, but reads a
record for each, below tens of thousands of nodes. Both take the same time.""",
}
"""Claim -> why it does not hold in our runs."""


def _holds(first: Measured, second: Measured) -> bool:
    return _speed(first) >= _speed(second)


def _speed(measured: Measured) -> float:
    """How many times faster than a scan an index is, with planted events."""
    kinds = measured.kinds
    return _ratio(kinds.get("planted", next(iter(kinds.values()))))


def _compared(ordering: Ordering, measured: list[Measured]) -> Iterator[tuple[Measured, Measured]]:
    """The index that should be ahead and the best of the others, on each shape, at the largest size of both."""
    for shape in ordering.shapes or dict.fromkeys(each.shape for each in measured):
        others = _others(ordering, measured, shape)
        sizes = {each.size for each in others}
        own = [each for each in measured if each.shape == shape and each.name == ordering.ahead and each.size in sizes]
        for first in _largest(own):
            yield first, max((each for each in others if each.size == first.size), key=_speed)


REMARKS = {
    "dynamic-clustering": """`dynamic-clustering` creates no table here, so its figures are those of `propagation`. It creates a
table if a cluster costs an event more than one check. Here equalities are spread over a hundred attributes and more, so
clusters are small. With 100,000 subscriptions, the largest cluster has 9 on dense, 15 on equality and 35 on ads. The most
expensive cluster costs an average event 0.1, 0.1 and 0.6 checks. `static-clustering` weighs the savings of a table against the
cost of a look-up. It has tables only on equality, and they do not make it faster. In the paper's workloads, all subscriptions
have equalities on the same two attributes. There `dynamic-clustering` creates a table from about 2,500 subscriptions on.""",
}
"""Index -> a remark that explains its figures."""


def remarks(measured: list[Measured]) -> str:
    """The remarks about the indexes that were measured."""
    names = {each.name for each in measured}
    return "\n\n".join(text for name, text in REMARKS.items() if name in names)


def failures_table(rows: list[Row]) -> str:
    """The indexes that were not measured, and the reasons. Empty if all were measured."""
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
            # The first colour belongs to the scan, which is always 1 and gets no bar.
            groups.append(Group(f"{shape}: {each.name}", [None, *values]))
    most = max((each.size for each in measured), default=0)
    title = f"Times a scan, {most:,} subscriptions, one thread"
    return bars(
        title, "time of a scan / time of the index, logarithmic", ["scan: 1", "planted events", "other events"], groups
    )


def _measured(rows: list[Row]) -> list[Measured]:
    """Group the rows by index, shape and size, in the order of measurement."""
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
    """Microseconds per planted event. If planted events were not measured, of another kind of events."""
    kinds = measured.kinds
    microseconds: float = kinds.get("planted", next(iter(kinds.values())))["microseconds"]
    return microseconds


def _figure(figures: Row | None, name: str) -> str:
    return "" if figures is None else number_text(figures[name])


def _times_a_scan(figures: Row | None) -> str:
    return "" if figures is None else number_text(_ratio(figures))


def _ratio(figures: Row) -> float:
    """The time of a scan divided by the time of the index."""
    ratio: float = figures["scan_microseconds"] / figures["microseconds"]
    return ratio
