"""The figures of the benchmark of earlier events as tables."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import table
from benchmarks.svg import number_text

DESCRIPTION = """What [earlier events](history.md) cost, in processor time of one thread.

- The *evaluator* is the reference evaluator, which looks at all earlier events for each join. It decides some of the
  subscriptions, and its time is multiplied.
- *Shop* has subscriptions like `item = 7 AND price < 80 AND stock >= 1`. About ten of them match an event, whatever their number.
  *Dense* is the shape of the engine's benchmark, with events that no subscription was derived from, or with planted ones, each of
  which satisfies a thousand subscriptions.
- *Few joins*: every hundredth subscription also has a join. The time of an event is compared with that of a matcher of all other
  subscriptions without a history. Both are settled by `optimize()`. `src/tamis/matcher/history_matching.py` tells where the time
  of a single event goes.
- *Joins an event* counts the joins that are decided for an event on average, each distinct one once.
- *Keys*: each event asks two joins about the ten events of its key. *Bytes an event* is the growth of the process divided by the
  number of events, with columns of two attributes."""

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
        "Beside the paper": claims_table(result),
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
            f"{row[key]['decided']:.2f}",
            number_text(row[key]["plain_us"]),
            number_text(row[key]["mixed_us"]),
            f"{row[key]['ratio']:.2f}",
        ]
        for row in rows
        for way, key in (("batch, Arrow", "table"), ("batch, mappings", "mappings"), ("single", "single"))
    ]
    heads = [
        "set",
        "subscriptions",
        "matches",
        "events",
        "joins an event",
        "without joins, us",
        "with joins, us",
        "ratio",
    ]
    return table(heads, lines)


def keys_table(rows: list[Row]) -> str:
    lines = [
        [
            f"{row['keys']:,}",
            f"{row['events']:,}",
            f"{row['bytes']:,.0f}",
            number_text(row["batch_us"]),
            number_text(row["single_us"]),
        ]
        for row in rows
    ]
    heads = ["keys", "earlier events", "bytes an event", "batch, us an event", "single, us an event"]
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


def claims_table(result: Row) -> str:
    """What Tatbul's paper says, beside what is measured here. The paper has no figures of joins."""
    sizes, by_name = result["sizes"], {row["set"]: row for row in result["joins"]}
    shared, own = by_name["beside constants"], by_name["EXISTS with a constant of its own"]
    subscriptions, retained = f"{sizes['subscriptions']:,} subscriptions", f"{sizes['retained']:,} earlier events"
    slowest = min(row["single_ratio"] for row in result["joins"])
    lines = [
        [
            "4.2: each distinct join is decided once for a document, however many profiles share it",
            f"{subscriptions} share {shared['joins']:,} joins, and a batch takes {number_text(shared['batch_us'])} us an event",
        ],
        [
            "4.3.1: without an index N D c comparisons, with constants first k log N + j' log D",
            f"{subscriptions}, {retained}, {own['joins']:,} joins: 1/{own['batch_ratio']:,.0f} of the evaluator's time",
        ],
        [
            "Figure 7, constants alone, 100 to 1,000 profiles: 200 to 2,000 comparisons, 18 to 47 with the slowest index",
            f"a factor of 11 to 43 there; of {slowest:,.0f} here for single events, with constants and joins",
        ],
        [
            "Figure 8, constants alone: the Cluster Index and the Interval Tree slow down as profiles overlap",
            "figure 8 of [its experiments](experiments.md) repeats this: overlap concerns constants, not joins",
        ],
    ]
    return table(["Tatbul", "here"], lines)
