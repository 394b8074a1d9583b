"""The figures of the benchmark of earlier events as tables."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import table
from benchmarks.svg import number_text

DESCRIPTION = """What [earlier events](history.md) cost, in processor time of one thread.

- The *evaluator* is the reference evaluator, which looks at all earlier events for each join. It decides some of the
  subscriptions, and its time is multiplied.
- *Shop* has subscriptions like `item = 7 AND price < 80 AND stock >= 1`. About ten of them match an event, whatever their number.
  *Dense* is the shape of the engine's benchmark, with events that no subscription was derived from.
- *Few joins*: every hundredth subscription also has a join. The time of an event is compared with that of a matcher of all other
  subscriptions without a history. Both are settled by `optimize()`.
- *Bytes an event* is the growth of the process divided by the number of events."""

Row = dict[str, Any]


def to_tables(result: Row) -> str:
    """All tables as Markdown."""
    sizes = result["sizes"]
    subscriptions, retained = f"{sizes['subscriptions']:,}", f"{sizes['retained']:,}"
    sections = {
        f"Joins: {subscriptions} subscriptions, {retained} earlier events": joins_table(result["joins"]),
        f"Few joins: 1 % of the subscriptions, {retained} earlier events": share_table(result["share"]),
        "Keys: ten events for each": keys_table(result["keys"]),
        f"Ways to decide EXISTS: {retained} earlier events": exists_table(result["exists"]),
        "Phases and pre-filter": phases_table(result["phases"]),
    }
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in sections.items() if text)


def joins_table(rows: list[Row]) -> str:
    lines = [
        [
            row["set"],
            f"{row['joins']:,}",
            number_text(row["batch_us"]),
            number_text(row["single_us"]),
            f"{row['evaluator_us'] / 1e6:,.0f}",
            f"{row['batch_ratio']:,.0f}",
            f"{row['single_ratio']:,.0f}",
        ]
        for row in rows
    ]
    heads = ["subscriptions", "distinct joins", "batch, us", "single, us", "evaluator, s", "evaluator / batch"]
    return table([*heads, "evaluator / single"], lines)


def share_table(rows: list[Row]) -> str:
    lines = [
        [
            row["set"],
            f"{row['subscriptions']:,}",
            f"{row['matches']:.1f}",
            way,
            number_text(row[key]["plain_us"]),
            number_text(row[key]["mixed_us"]),
            f"{row[key]['ratio']:.2f}",
        ]
        for row in rows
        for way, key in (("batch, Arrow", "table"), ("batch, mappings", "mappings"), ("single", "single"))
    ]
    heads = ["set", "subscriptions", "matches", "events", "without joins, us", "with joins, us", "ratio"]
    return table(heads, lines)


def keys_table(rows: list[Row]) -> str:
    lines = [
        [
            f"{row['keys']:,}",
            f"{row['events']:,}",
            f"{row['bytes']:,.0f}",
            number_text(row["first_us"]),
            number_text(row["last_us"]),
        ]
        for row in rows
    ]
    heads = ["keys", "earlier events", "bytes an event", "us an event, first tenth", "us an event, last tenth"]
    return table(heads, lines)


def exists_table(rows: list[Row]) -> str:
    lines = [
        [
            f"`{row['text'].partition('WHERE ')[2].removesuffix(')')}`",
            f"{row['true']:.2f}",
            number_text(row["selective_us"]),
            number_text(row["vectors_us"]),
        ]
        for row in rows
    ]
    return table(["comparisons", "true for", "most selective index first, us", "document vectors, us"], lines)


def phases_table(rows: list[Row]) -> str:
    """What the join table, the order of phases and the pre-filter each bring."""
    lines = [[row["with"], row["set"], number_text(row["us"])] for row in rows]
    return table(["with", "subscriptions", "us an event"], lines) if rows else ""
